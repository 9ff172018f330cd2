/**
 * For programs that look after a ring: what its document says, what a policy comes to, and when a rotation is due, as
 * members reckon. Nothing in a document is trusted for being in it: report it, never act on it.
 *
 * @packageDocumentation
 */

export { MAX_DOCUMENT_BYTES } from '../contracts/ring-store.ts';
export {
  type Ancestors,
  type Macs,
  parseDocument,
  type Revocation,
  type RingDocument,
  type RingEntry,
  type RingWrap,
} from './document.ts';
export { MAX_KEYS_TO_ROTATE, MAX_RING_KEYS, type ResolvedPolicy, resolvePolicy } from './policy.ts';
export { compareAge, type KeyTimes, rotateAt } from './schedule.ts';
