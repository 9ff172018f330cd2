/**
 * The parts of Sealring that a program needs to monitor a ring: they parse its document, complete its policy, and
 * compute when a rotation is due, as members do. A document is not authenticated here, so report its content, but never
 * act on it.
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
