/**
 * For programs that monitor a ring: the content of its document, the times that follow from a policy, and when a
 * rotation is due, as members compute it. A document is not authenticated here: report what it says, never act on it.
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
