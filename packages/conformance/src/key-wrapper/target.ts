import type { KeyWrapper } from '@sealring/core';
import * as v from 'valibot';
import { aFlag, aFunction, anObject, aText, checkArgument } from '../options.ts';

/** A key wrapper, and what ends it. */
export interface KeyWrapperInstance {
  readonly keyWrapper: KeyWrapper;
  /** Called when the requirement has been tried, also after the key wrapper itself was closed. */
  close?(): Promise<void> | void;
}

/** What a key wrapper, or the service behind it, claims where they may differ. */
export interface KeyWrapperSupport {
  /** Whether there is a service to be asked. Default true; false for what wraps within its own process. */
  readonly remote?: boolean;
  /** Whether wraps made after a rotation name another version of the KMS key. Default true. */
  readonly versions?: boolean;
  /** Whether it signs, where its unwraps do not authenticate the origin. Default true. */
  readonly signatures?: boolean;
}

/**
 * What can be done to KMS key A. Each resolves when it is in force, which a service may take minutes for. `disable` and
 * `enable` go together, and so do `deny` and `allow`: the key is left as it was found, but for its rotations.
 */
export interface KeyWrapperControl {
  /** Disables the KMS key for all callers. */
  disable?(): Promise<void> | void;
  enable?(): Promise<void> | void;
  /** Removes the caller's permission to use the key. */
  deny?(): Promise<void> | void;
  allow?(): Promise<void> | void;
  /** Makes a new version, with which wraps are made from now on. */
  rotate?(): Promise<void> | void;
}

/** The key wrapper under test, and the company it keeps. Every call makes a fresh instance. */
export interface KeyWrapperTarget {
  readonly name: string;
  /** A key wrapper on KMS key A: another process of the fleet, each time. */
  create(): Promise<KeyWrapperInstance> | KeyWrapperInstance;
  /** The same on KMS key B of the same service. */
  createOtherKey(): Promise<KeyWrapperInstance> | KeyWrapperInstance;
  /** The same on KMS key A, whose service cannot be reached. Required unless `supports.remote` is false. */
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
  // Of a target that runs a program: who made it ends it.
  close: v.optional(aFunction),
});

const PAIRS = [
  ['disable', 'enable'],
  ['deny', 'allow'],
] as const;

/** @throws {TypeError | RangeError} naming what is wrong with the target. */
export function checkKeyWrapperTarget(owner: string, target: KeyWrapperTarget): void {
  checkArgument(owner, TARGET, target);
  const { control = {}, supports: { remote = true } = {} } = target;
  if (remote !== (target.createUnreachable !== undefined)) {
    const words = remote
      ? 'is missing: only supports.remote: false is without it'
      : 'contradicts supports.remote: false';
    throw new TypeError(`${owner}: createUnreachable ${words}`);
  }
  for (const pair of PAIRS) {
    const [given, ...more] = pair.filter((member) => control[member] !== undefined);
    if (given === undefined || more.length > 0) continue;
    throw new TypeError(`${owner}: control.${given} is given without control.${pair.find((one) => one !== given)}`);
  }
}
