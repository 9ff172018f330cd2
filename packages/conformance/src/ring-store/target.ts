import type { RingStore } from '@sealring/core';
import * as v from 'valibot';
import { aFlag, aFunction, anObject, aText, aWholeNumber, type ConformanceOptions, checkArgument } from '../options.ts';

/** Options of the ring store suite. */
export interface RingStoreOptions extends ConformanceOptions {
  /**
   * Time limit for one requirement, in milliseconds; 100 to 3 600 000. Default 600 000. Each call is limited to 60 000.
   */
  readonly timeoutMs?: number;
  /** Number of contests between writers, 1 to 100 000. Default: as many as one second allows, from 5 to 200. */
  readonly rounds?: number;
  /** Writers in a contest, 2 to 1 000. Default 20. Choose fewer for a service that throttles. */
  readonly writers?: number;
}

/** A store and its close function. */
export interface RingStoreInstance {
  readonly store: RingStore;
  /** Default: the store's own `close`, if it has one. */
  close?(): Promise<void> | void;
}

/** Optional capabilities of a store. */
export interface RingStoreSupport {
  /** Whether `watch` reports writes by other stores. Default: whether the store has `watch`. */
  readonly push?: boolean;
  /** Whether every response to a read has the service's date. Default: reported dates are checked, but not required. */
  readonly serviceDate?: boolean;
  /** Whether a document that is written again gets a new revision; false if a revision is a hash. Default false. */
  readonly uniqueRevisions?: boolean;
  /** The longest document that the store accepts, in bytes of UTF-8; 1 024 to 262 144. Default 262 144. */
  readonly maxDocumentBytes?: number;
}

/**
 * The store under test, and functions that reach its backend directly. The kit creates names that consist of 1 to 64
 * characters from `a–z`, `0–9`, `.`, `_` and `-`. They do not end with a dot, and no earlier run has used them.
 */
export interface RingStoreTarget {
  readonly name: string;
  /** Creates a store on its own connections. Stores with the same name share a document; others share nothing. */
  create(ringName: string): Promise<RingStoreInstance> | RingStoreInstance;
  /**
   * Removes the document, without using a store. At the end, the kit calls it for all names, including those without a
   * document.
   */
  remove?(ringName: string): Promise<void> | void;
  /** Writes any text to the backend as the document, without using a store. */
  plant?(ringName: string, document: string): Promise<void> | void;
  /**
   * Makes the backend unreachable, for existing and future stores: no call gets an answer. Resolves to a function that
   * restores it.
   */
  breakConnection?(): Promise<() => Promise<void> | void>;
  readonly supports?: RingStoreSupport;
}

/** Maximum length of a ring document, in bytes: rule 4 of the contract of `RingStore`. */
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
  // A target that runs a program has this function; the code that created the target calls it.
  close: v.optional(aFunction),
});

/** @throws {TypeError | RangeError} for an invalid target; the message names the error. */
export function checkRingStoreTarget(owner: string, target: RingStoreTarget): void {
  checkArgument(owner, TARGET, target);
}
