import { must as mustOf, should as shouldOf, type Tried, type TriedRequirement } from '../requirement.ts';
import type { RingStoreTrial } from './trial.ts';

/** A requirement of ring stores: its text, its check, and what the check covers. */
export type RingStoreRequirement = TriedRequirement<RingStoreTrial>;

/** Cells that most requirements have in common. */
const USUAL = {
  bytes: 'ASCII: other characters have RING-ROUNDTRIP and RING-BOUNDARIES',
  lengths: 'a few bytes: other lengths have RING-LENGTHS, RING-LARGEST and RING-TOO-LARGE',
  order: 'one call after the other, on two connections',
  latency: 'the backend’s own: the kit cannot slow a backend down, only cut it off',
} as const;

/** The cells of a requirement; {@link USUAL} where nothing else is given. */
type Cells = Pick<Tried, 'operations'> & Partial<Tried>;
type Run = RingStoreRequirement['run'];

export const must = (id: string, text: string, source: string, tried: Cells, run: Run): RingStoreRequirement =>
  mustOf<RingStoreRequirement>(id, text, source, { tried: { ...USUAL, ...tried }, run });

export const should = (id: string, text: string, source: string, tried: Cells, run: Run): RingStoreRequirement =>
  shouldOf<RingStoreRequirement>(id, text, source, { tried: { ...USUAL, ...tried }, run });

/** Cells that several requirements share. */
export const NO_DOCUMENT: string = 'none: no document is compared';
export const ONE_STORE: string = 'one call after the other, on one connection';
export const AT_ONCE: string = 'many calls at once, on several connections';

/** Where requirements come from. */
export const CONTRACT: string = 'RingStore of @sealring/core (ring-store.ts)';
export const ABSENT: string = `${CONTRACT}, 1: undefined only when known to be absent`;
export const SWAP: string = `${CONTRACT}, 2: write is one atomic compare-and-swap`;
export const DURABLE: string = `${CONTRACT}, 3: a write that resolved is durable and seen by every later read`;
export const BOUND: string = `${CONTRACT}, 4: documents over 262 144 bytes are refused in both directions`;
export const REVISION: string = `${CONTRACT}: a revision is opaque, and equal for equal versions`;
export const SIGNAL: string = `${CONTRACT}: signal ends the call early, it then rejects with kind unavailable`;
export const WATCH: string = `${CONTRACT}: watch calls soon after a write, and returns a function that ends it`;
export const DATE: string = `${CONTRACT}: onServiceDate is called with the date that the service puts on its answer`;
export const ERRORS: string = `${CONTRACT}: RingConflictError, RingStoreError and its kinds`;
export const CLOSE: string = `${CONTRACT}: close ends what the store itself has created`;
export const KIT: string = 'Sealring conformance kit';
