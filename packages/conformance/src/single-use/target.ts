import * as v from 'valibot';
import { aFunction, anObject, aText, checkArgument } from '../options.ts';

/** A `SingleUseStore` of `@sealring/mcp`. */
export interface SingleUseStoreLike {
  /** The margin of the store, if it reports one, which must equal the margin of the target. */
  readonly clockSkewSeconds?: number;
  claim(id: string, expiresAt: Date): Promise<boolean>;
  close?(): Promise<void> | void;
}

/** A store and its close function. */
export interface SingleUseInstance {
  readonly store: SingleUseStoreLike;
  /** Default: the store's own `close`, if it has one. */
  close?(): Promise<void> | void;
}

/** The single-use store under test. The kit claims ids that no earlier run used. */
export interface SingleUseTarget {
  readonly name: string;
  /** Creates a store on its own connections; all stores share their claims. */
  create(): Promise<SingleUseInstance> | SingleUseInstance;
  /**
   * Makes the backend unreachable for existing and future stores. Resolves to a function that makes it reachable again.
   */
  breakConnection?(): Promise<() => Promise<void> | void>;
  /**
   * The margin of the store, which corresponds to `policy.clockSkewSeconds` of the ring; in seconds, 0 to 86 400.
   * Default: 300.
   */
  readonly clockSkewSeconds?: number;
}

const BOUNDS = 'must be a number from 0 to 86400';

const TARGET = anObject({
  name: aText,
  create: aFunction,
  breakConnection: v.optional(aFunction),
  clockSkewSeconds: v.optional(v.pipe(v.number(BOUNDS), v.minValue(0, BOUNDS), v.maxValue(86_400, BOUNDS))),
});

export const DEFAULT_CLOCK_SKEW_SECONDS = 300;

/** @throws {TypeError | RangeError} for an invalid target; the message names the error. */
export function checkSingleUseTarget(owner: string, target: SingleUseTarget): void {
  checkArgument(owner, TARGET, target);
}
