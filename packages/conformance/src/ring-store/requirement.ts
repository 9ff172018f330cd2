import type { CheckedRequirement } from '../requirement.ts';
import type { RingStoreTrial } from './trial.ts';

/** A requirement of ring stores and its check. docs/ring-store-requirements.md says what each is tried with. */
export type RingStoreRequirement = CheckedRequirement<RingStoreTrial>;

/** Where requirements come from. */
export const CONTRACT: string = 'RingStore of @sealring/core (ring-store.ts)';
export const ABSENT: string = `${CONTRACT}, 1: undefined only when known to be absent`;
export const SWAP: string = `${CONTRACT}, 2: write is one atomic compare-and-swap`;
export const DURABLE: string = `${CONTRACT}, 3: a write that resolved is durable and seen by every later read`;
export const BOUND: string = `${CONTRACT}, 4: documents over 262 144 bytes are refused in both directions`;
export const REVISION: string = `${CONTRACT}: a revision is opaque, and equal for equal versions`;
export const SIGNAL: string = `${CONTRACT}: signal ends the call early, it then rejects with kind unavailable`;
export const WATCH: string = `${CONTRACT}: watch calls soon after somebody writes, and returns what ends it`;
export const DATE: string = `${CONTRACT}: onServiceDate is called with the date that the service puts on its answer`;
export const ERRORS: string = `${CONTRACT}: RingConflictError, RingStoreError and its kinds`;
export const CLOSE: string = `${CONTRACT}: close ends what the store itself has opened`;
export const KIT: string = 'Sealring conformance kit';
