import type { KeyWrapper } from '@sealring/core';
import * as v from 'valibot';
import { aFlag, aFunction, anObject, aText, checkArgument } from '../options.ts';

/** A key wrapper and its close function. */
export interface KeyWrapperInstance {
  readonly keyWrapper: KeyWrapper;
  /** Closes the instance. Called after the check, even if the key wrapper itself was closed. */
  close?(): Promise<void> | void;
}

/** Optional capabilities of a key wrapper or its service. */
export interface KeyWrapperSupport {
  /** Whether the key wrapper calls a service. Default true. Pass false if it works within its process. */
  readonly remote?: boolean;
  /** Whether wraps after a rotation name another version of the KMS key. Default true. */
  readonly versions?: boolean;
  /** Whether the key wrapper signs ring entries if its unwraps do not authenticate the origin. Default true. */
  readonly signatures?: boolean;
}

/**
 * Changes to KMS key A. Each function resolves when the change is in force, which may take minutes. A target that has
 * `disable` must have `enable`, and vice versa. The same applies to `deny` and `allow`. The kit undoes every change
 * except rotations.
 */
export interface KeyWrapperControl {
  /** Disables the KMS key for all callers. */
  disable?(): Promise<void> | void;
  enable?(): Promise<void> | void;
  /** Removes the caller's permission to use the KMS key. */
  deny?(): Promise<void> | void;
  allow?(): Promise<void> | void;
  /** Creates a new version of the KMS key, which all later wraps use. */
  rotate?(): Promise<void> | void;
}

/** The key wrapper under test, in several variants. Every call creates a new instance. */
export interface KeyWrapperTarget {
  readonly name: string;
  /** Creates a key wrapper for KMS key A. Each instance represents another process of the fleet. */
  create(): Promise<KeyWrapperInstance> | KeyWrapperInstance;
  /** Creates a key wrapper for KMS key B of the same service. */
  createOtherKey(): Promise<KeyWrapperInstance> | KeyWrapperInstance;
  /**
   * Creates a key wrapper for KMS key A whose service is unreachable. Required unless `supports.remote` is false; in
   * that case, it must be absent.
   */
  createUnreachable?(): Promise<KeyWrapperInstance> | KeyWrapperInstance;
  readonly control?: KeyWrapperControl;
  readonly supports?: KeyWrapperSupport;
}

const eachOf = (schema: v.GenericSchema, ...names: readonly string[]): v.GenericSchema =>
  anObject(Object.fromEntries(names.map((name) => [name, v.optional(schema)])));

const TARGET = anObject({
  name: aText,
  create: aFunction,
  createOtherKey: aFunction,
  createUnreachable: v.optional(aFunction),
  control: v.optional(eachOf(aFunction, 'disable', 'enable', 'deny', 'allow', 'rotate')),
  supports: v.optional(eachOf(aFlag, 'remote', 'versions', 'signatures')),
  // Only a target that runs a program has this member. The code that created the target calls it.
  close: v.optional(aFunction),
});

const PAIRS = [
  ['disable', 'enable'],
  ['deny', 'allow'],
] as const;

/** @throws {TypeError | RangeError} for an invalid target; the message names the error. */
export function checkKeyWrapperTarget(owner: string, target: KeyWrapperTarget): void {
  checkArgument(owner, TARGET, target);
  const { control = {}, supports: { remote = true } = {} } = target;
  if (remote !== (target.createUnreachable !== undefined)) {
    const words = remote ? 'is missing, but supports.remote is not false' : 'contradicts supports.remote: false';
    throw new TypeError(`${owner}: createUnreachable ${words}`);
  }
  for (const pair of PAIRS) {
    const [given, ...more] = pair.filter((member) => control[member] !== undefined);
    if (given === undefined || more.length > 0) continue;
    throw new TypeError(`${owner}: control.${given} is given without control.${pair.find((one) => one !== given)}`);
  }
}
