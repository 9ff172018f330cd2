import type { RingStore } from '@sealring/core';
import * as v from 'valibot';
import { aFlag, aFunction, anObject, aText, aWholeNumber, type ConformanceOptions, checkArgument } from '../options.ts';

/** How the suite of ring stores is run. */
export interface RingStoreOptions extends ConformanceOptions {
  /** Longest time for one requirement, milliseconds; 100 to 3 600 000. Default 600 000. */
  readonly timeoutMs?: number;
  /** Contests between writers; 1 to 100 000. Default as many as one second allows, 5 to 200. */
  readonly rounds?: number;
  /** Writers in a contest; 2 to 1 000. Default 20. Fewer for a service that refuses so many calls at once. */
  readonly writers?: number;
}

/** A store, and what ends it. */
export interface RingStoreInstance {
  readonly store: RingStore;
  /** Default: the store's own `close`, where it has one. */
  close?(): Promise<void> | void;
}

/** What a store claims, where stores may differ. */
export interface RingStoreSupport {
  /** Whether `watch` reports writes of other stores. Default: whether the store has `watch`. */
  readonly push?: boolean;
  /** Whether every answer to a read has the service's date. Default: reported dates are checked, but none is required. */
  readonly serviceDate?: boolean;
  /** Whether a document that comes back has a different revision from before; not so where it is a hash. Default false. */
  readonly uniqueRevisions?: boolean;
  /** The longest document it takes, bytes of UTF-8; 1 024 to 262 144. Default 262 144. */
  readonly maxDocumentBytes?: number;
}

/**
 * The store under test, and ways to its backend that do not use the store. The kit makes names of 1 to 64 characters
 * `a–z`, `0–9`, `.`, `_` and `-`, which do not end in a dot and which no earlier run used.
 */
export interface RingStoreTarget {
  readonly name: string;
  /** A store on connections of its own. Those of one name share a document, those of different names share nothing. */
  create(ringName: string): Promise<RingStoreInstance> | RingStoreInstance;
  /** Removes the document behind the stores' backs. Every name is removed in the end, too, whether it was used or not. */
  remove?(ringName: string): Promise<void> | void;
  /** Puts a document there without a store, whatever it is. */
  plant?(ringName: string, document: string): Promise<void> | void;
  /**
   * Makes the backend unreachable, for existing and future stores: no call gets an answer. Resolves to a function that
   * restores it.
   */
  breakConnection?(): Promise<() => Promise<void> | void>;
  readonly supports?: RingStoreSupport;
}

/** Bytes a ring document may have: rule 4 of the contract of `RingStore`. */
export const MAX_DOCUMENT_BYTES: number = 256 * 1024;

const SUPPORT = anObject({
  push: v.optional(aFlag),
  serviceDate: v.optional(aFlag),
  uniqueRevisions: v.optional(aFlag),
  maxDocumentBytes: v.optional(aWholeNumber(1024, MAX_DOCUMENT_BYTES)),
});

const TARGET = anObject({
  name: aText,
  create: aFunction,
  remove: v.optional(aFunction),
  plant: v.optional(aFunction),
  breakConnection: v.optional(aFunction),
  supports: v.optional(SUPPORT),
  // Of a target that runs a program: who made it ends it.
  close: v.optional(aFunction),
});

/** @throws {TypeError | RangeError} naming what is wrong with the target. */
export function checkRingStoreTarget(owner: string, target: RingStoreTarget): void {
  checkArgument(owner, TARGET, target);
}
