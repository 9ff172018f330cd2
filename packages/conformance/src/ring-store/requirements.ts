import { must, type Requirement, should } from '../requirement.ts';

const CONTRACT = 'RingStore of @sealring/core (ring/store.ts)';
const LAW1 = `${CONTRACT}, law 1: undefined only when known to be absent`;
const LAW2 = `${CONTRACT}, law 2: write is one atomic compare-and-swap`;
const LAW3 = `${CONTRACT}, law 3: a write that resolved is durable and seen by every later read`;
const LAW4 = `${CONTRACT}, law 4: documents over 262 144 bytes are refused in both directions`;
const REVISION = `${CONTRACT}: a revision is opaque, and equal for equal versions`;
const SIGNAL = `${CONTRACT}: signal ends the call early, it then rejects with kind unavailable`;
const WATCH = `${CONTRACT}: watch calls soon after somebody writes, and returns what ends it`;
const DATE = `${CONTRACT}: onServiceDate is called with the date that the service puts on its answer`;
const ERRORS = `${CONTRACT}: RingConflictError, RingStoreError and its kinds`;
const KIT = 'Sealring conformance kit';

/** What every ring store is held to, in the order in which it is tried. */
export const RING_STORE_REQUIREMENTS: readonly Requirement[] = [
  must('RING-SHAPE', 'A store has a kind, read and write, and functions where it has watch and close.', CONTRACT),
  must('RING-ASYNCHRONOUS', 'read and write return promises, which reject: they never throw at once.', CONTRACT),
  must(
    'RING-RESULT',
    'read resolves to undefined or { document, revision }, write to { revision }, all text.',
    CONTRACT,
  ),
  should('RING-OWN-RESULT', 'Changing what read resolved to changes nothing in the store.', KIT),
  must('RING-ABSENT', 'A ring that nobody founded is undefined, on every connection.', LAW1),
  must('RING-ROUNDTRIP', 'What was written is read, character for character, on every connection.', LAW3),
  must('RING-NUL', 'A document with a NUL is kept whole or refused, never changed.', LAW3),
  must('RING-LARGEST', 'A document as long as the store takes is kept whole.', LAW4),
  must('RING-TOO-LARGE', 'A document with one byte more is too-large and changes nothing.', `${LAW4}; F23`),
  must('RING-TOO-LARGE-THERE', 'A longer document that is there is too-large, never absent.', `${LAW4}; F9, F23`),
  should(
    'RING-TOO-LARGE-REPLACED',
    'The error about such a document has its revision, and of two who expect that one writes over it.',
    `${CONTRACT}: what a member that knows the ring writes over`,
  ),
  must('RING-EMPTY-THERE', 'An empty document that is there is never absent.', `${LAW1}; F9`),
  should('RING-EMPTY-CORRUPT', 'An empty document that is there is corrupt.', `${LAW1}; F9`),
  must('RING-DURABLE', 'What was written is there when every store was closed and another one opened.', LAW3),
  must('RING-READ-AFTER-WRITE', 'A read that starts after a write resolved sees it, on every connection.', LAW3),
  must('RING-REVISION-STABLE', 'Every read of one version has the revision that its write had.', REVISION),
  must('RING-REVISION-OF-ONE', 'One revision never stands for two documents.', REVISION),
  must('RING-REVISION-UNIQUE', 'A document that comes back has another revision.', REVISION),
  must('RING-REMOVED', 'A ring that was removed is absent, and can be founded again.', LAW1),
  should('RING-REVISION-REMOVED', 'A revision from before a removal never wins after it.', `${KIT}; F31`),
  must('RING-FOUND-ONLY-ABSENT', 'expected: undefined loses where a document is, and changes nothing.', LAW2),
  must('RING-STALE-LOSES', 'A revision that is not the current one loses, and changes nothing.', LAW2),
  must('RING-CONFLICT-ERROR', 'Who loses gets a RingConflictError: no other error, and no result.', ERRORS),
  must('RING-FOREIGN-LOSES', 'Text that is no revision of the store never wins, not even the empty one.', LAW2),
  should('RING-FOREIGN-CONFLICT', 'Text that is no revision of the store is a conflict.', LAW2),
  must('RING-REWRITE', 'The same document once more, with the right expectation, wins.', LAW2),
  must('RING-FOUND-ONE-WINNER', 'Of many who found a ring at once one wins, and all others conflict.', `${LAW2}; F8`),
  must('RING-CAS-ONE-WINNER', 'Of many who write at once one wins, all others conflict, every time.', `${LAW2}; F32`),
  must('RING-NO-LOST-UPDATE', 'Many who read, add and write lose no addition that resolved.', LAW2),
  must(
    'RING-READ-WHOLE',
    'A read while others write finds a document that was written, with its revision.',
    `${LAW3}; F32`,
  ),
  must('RING-READ-CURRENT', 'A read while others write never finds less than what had resolved before.', LAW3),
  should('RING-READ-MONOTONE', 'On one connection, a later read never finds an earlier version.', KIT),
  must('RING-LOSER-NEVER-APPEARS', 'The document of a write that lost is never read, not even later.', LAW2),
  must('RING-PARALLEL-READS', 'Many reads at once all find the ring.', CONTRACT),
  must('RING-NAMES-SEPARATE', 'Rings of different names share nothing, however alike the names.', 'F25'),
  must('RING-ABORTED', 'A call with an aborted signal is unavailable and writes nothing.', SIGNAL),
  must('RING-ABORT-READ', 'A read that is aborted on its way is right or unavailable, and harms nothing.', SIGNAL),
  must('RING-ABORT-WRITE', 'A write that is aborted on its way was done whole or not at all.', SIGNAL),
  must('RING-ABORT-ENDS', 'A call to a backend out of reach ends when its signal aborts.', SIGNAL),
  must('RING-UNREACHABLE', 'A backend out of reach is unavailable, never absent.', `${LAW1}; F9`),
  must('RING-RECOVERS', 'A backend that comes back is used again, and holds what it held.', LAW3),
  should('RING-ERROR-TEXT', 'A failure shows neither the document nor a vendor’s error.', `${ERRORS}; F33`),
  must(
    'RING-SERVICE-DATE',
    'Every answer to a read tells the service’s date, or none does, as the target says.',
    `${DATE}; F13`,
  ),
  must('RING-SERVICE-DATE-VALID', 'A date that is told is a Date, and of these days.', `${DATE}; F13`),
  must('RING-WATCH-HEARS', 'Every watcher hears of what another store wrote.', WATCH),
  must('RING-WATCH-ENDS', 'A watcher that unsubscribed hears nothing more, and others still do.', WATCH),
  should('RING-WATCH-ARGUMENT', 'watch with what is no function is a TypeError.', `${KIT}; F17`),
  should('RING-WATCH-DECLARED', 'A store of a target that denies push has no watch.', KIT),
  should('RING-CLOSE-OTHERS', 'Closing one store leaves the others as they are.', KIT),
  should('RING-WRITE-ARGUMENTS', 'A write of what is no document, or without expected, is a TypeError.', `${KIT}; F17`),
  should('RING-READ-ARGUMENTS', 'A read with options that are no object is a TypeError.', `${KIT}; F17`),
];
