import type { KeyWrapper } from '@sealring/core';
import * as v from 'valibot';
import { aFlag, aFunction, anObject, aText, checkArgument } from '../options.ts';

/** A key wrapper and its close function. */
export interface KeyWrapperInstance {
  readonly keyWrapper: KeyWrapper;
  /** Called after the check, even if the key wrapper itself was closed. */
  close?(): Promise<void> | void;
}

/** Optional capabilities of a key wrapper or its service. */
export interface KeyWrapperSupport {
  /** Whether it calls a service. Default true; false for a key wrapper that works within its process. */
  readonly remote?: boolean;
  /** Whether wraps after a rotation name another version of the KMS key. Default true. */
  readonly versions?: boolean;
  /** Whether it signs if its unwraps do not authenticate the origin. Default true. */
  readonly signatures?: boolean;
}

/**
 * Changes to KMS key A. Each function resolves when the change is in force, which may take minutes. `disable` and
 * `enable` go together, and so do `deny` and `allow`. The kit restores the key, except for its rotations.
 */
export interface KeyWrapperControl {
  /** Disables the KMS key for all callers. */
  disable?(): Promise<void> | void;
  enable?(): Promise<void> | void;
  /** Removes the caller's permission to use the key. */
  deny?(): Promise<void> | void;
  allow?(): Promise<void> | void;
  /** Creates a new version that later wraps use. */
  rotate?(): Promise<void> | void;
}

/** The key wrapper under test, in several variants. Every call creates a new instance. */
export interface KeyWrapperTarget {
  readonly name: string;
  /** A key wrapper on KMS key A: another process of the fleet, each time. */
  create(): Promise<KeyWrapperInstance> | KeyWrapperInstance;
  /** The same on KMS key B of the same service. */
  createOtherKey(): Promise<KeyWrapperInstance> | KeyWrapperInstance;
  /** The same on KMS key A, with an unreachable service. Required unless `supports.remote` is false. */
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
  // A target that runs a program; its creator closes it.
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
    const words = remote ? 'is missing, and supports.remote is not false' : 'contradicts supports.remote: false';
    throw new TypeError(`${owner}: createUnreachable ${words}`);
  }
  for (const pair of PAIRS) {
    const [given, ...more] = pair.filter((member) => control[member] !== undefined);
    if (given === undefined || more.length > 0) continue;
    throw new TypeError(`${owner}: control.${given} is given without control.${pair.find((one) => one !== given)}`);
  }
}
