import { type RequirementTable, requiredBy } from '../requirement.ts';

const CONTRACT = 'RingStore of @sealring/core (ring-store.ts)';
const ABSENT = `${CONTRACT}, 1: undefined only when known to be absent`;
const SWAP = `${CONTRACT}, 2: write is one atomic compare-and-swap`;
const DURABLE = `${CONTRACT}, 3: a write that resolved is durable and seen by every later read`;
const BOUND = `${CONTRACT}, 4: documents over 262 144 bytes are refused in both directions`;
const REPLACE = `${CONTRACT}, 4: by which one write can replace it`;
const REVISION = `${CONTRACT}: a revision is opaque, and equal for equal versions only`;
const SIGNAL = `${CONTRACT}: signal ends the call early, it then rejects with kind unavailable`;
const WATCH = `${CONTRACT}: watch calls soon after a write, and returns a function that ends it`;
const DATE = `${CONTRACT}: onServiceDate is called with the date that the service puts on its answer`;
const ERRORS = `${CONTRACT}: RingConflictError, RingStoreError and its kinds`;
const CLOSE = `${CONTRACT}: close ends what the store itself has created`;
const CLOSED = `${CLOSE}; read and write reject with RingStoreError; F9`;
const KIT = 'Sealring conformance kit';

const NAMES = 'F25: rings of different names share nothing';

const { must, should } = requiredBy(CONTRACT);

/** What every ring store is held to, in the order in which it is tried. docs/ring-store-requirements.md says with what. */
export const RING_STORE_TABLE: RequirementTable = {
  'RING-SHAPE': must('A store has a kind, read and write; watch and close may be there; location has no password.'),
  'RING-ASYNCHRONOUS': must('read and write return promises: they reject and never throw synchronously.'),
  'RING-RESULT': must('read resolves to undefined or { document, revision }, write to { revision }; all are strings.'),
  'RING-OWN-RESULT': should('Changing a result changes nothing in the store, and no call changes its options.', KIT),
  'RING-ERROR-SECRET': must('The text of an error shows no document and no credential.', ERRORS),
  'RING-ERROR-TEXT': should('An error shows no document, no credential and no vendor’s error.', `${ERRORS}; F33`),
  'RING-ABSENT': must('read resolves to undefined for a ring that was never created, on every connection.', ABSENT),
  'RING-ROUNDTRIP': must('A read returns what was written, character for character, on every connection.', DURABLE),
  'RING-NUL': must('A document with a NUL, or an empty one, is stored whole or refused, never changed.', DURABLE),
  'RING-DURABLE': must('What was written is still stored after every store was closed, and a second later.', DURABLE),
  'RING-INSTANCE-CLOSES': must('The close of a store ends: the target’s, or else its own.', CLOSE),
  'RING-CLOSE-OTHERS': should('Closing one store leaves the other stores usable.', CLOSE),
  'RING-CLOSED': must('A call during or after the close of its store ends: right, or a RingStoreError.', CLOSED),
  'RING-CLOSED-UNAVAILABLE': should('Such a rejection is unavailable; a second close does nothing.', `${KIT}; F9`),
  'RING-NAMES-SEPARATE': must('Rings of different names share nothing, however similar the names are.', NAMES),
  'RING-NAMES-AT-ONCE': must('Calls for rings of different names do not disturb each other when made at once.', NAMES),
  'RING-LENGTHS': must('Documents of any length are stored whole, each after a longer or a shorter one.', DURABLE),
  'RING-BOUNDARIES': must('A character is never cut in two, wherever it is in the document.', DURABLE),
  'RING-LARGEST': must('A document as long as the store accepts is stored whole.', BOUND),
  'RING-TOO-LARGE': must('One byte more is rejected with too-large, and nothing is changed.', `${BOUND}; F23`),
  'RING-TOO-LARGE-THERE': must('A longer document in the store is too-large, and never absent.', `${BOUND}; F9, F23`),
  'RING-TOO-LARGE-REPLACED': should('The error about it has a revision, which one write can replace.', REPLACE),
  'RING-EMPTY-THERE': must('An empty document in the store is never taken for absent.', `${ABSENT}; F9`),
  'RING-EMPTY-CORRUPT': should('An empty document, or the error about it, has a revision to replace it by.', REPLACE),
  'RING-REVISION-STABLE': must('Every read of one version returns the revision that its write returned.', REVISION),
  'RING-REVISION-OF-ONE': must('Two different documents never have the same revision.', REVISION),
  'RING-REVISION-UNIQUE': must('A document written again has another revision, where the target says so.', REVISION),
  'RING-REMOVED': must('A ring that was removed is absent, and can be created again.', ABSENT),
  'RING-REVISION-REMOVED': must('A revision from before a removal never wins after it.', `${REVISION}; F31`),
  'RING-CREATE-ONLY-ABSENT': must('expected: undefined loses where a document is stored, and changes nothing.', SWAP),
  'RING-STALE-LOSES': must('A revision that is not the current one loses, and changes nothing.', SWAP),
  'RING-CONFLICT-ERROR': must('A write that loses rejects with RingConflictError.', ERRORS),
  'RING-FOREIGN-LOSES': must('Text that is not the revision never wins, not even empty text or an asterisk.', SWAP),
  'RING-REVISION-FOREIGN': must('The revision of another ring loses, also where no ring is stored.', SWAP),
  'RING-FOREIGN-CONFLICT': should('Text that is not a revision is a conflict, however similar it is.', SWAP),
  'RING-REWRITE': must('The same document once more, with the current revision, wins.', SWAP),
  'RING-CREATE-ONE-WINNER': must('When many create at once, one wins; all others get a conflict.', `${SWAP}; F8`),
  'RING-CAS-ONE-WINNER': must('When many write at once, one wins; all others get a conflict.', `${SWAP}; F32`),
  'RING-CAS-LARGEST': must('The same holds for documents as long as the store accepts.', `${SWAP}; F32`),
  'RING-WRITE-REVISION': must('A write resolves to its own revision, also when others write right after it.', REVISION),
  'RING-NO-LOST-UPDATE': must('When many read, add and write, no addition that resolved is lost.', SWAP),
  'RING-READ-AFTER-WRITE': must('A read that starts after a write resolved sees it, on every connection.', DURABLE),
  'RING-READ-OVERLAPPED': must('The same holds while earlier reads are still under way.', DURABLE),
  'RING-READ-CREATED': must('A read while others create a ring finds it absent, or whole.', `${DURABLE}; F8`),
  'RING-READ-WHOLE': must('A read while others write finds one whole document, with its revision.', `${DURABLE}; F32`),
  'RING-READ-CURRENT': must('A read while others write never finds less than what had resolved before.', DURABLE),
  'RING-READ-MONOTONE': should('On one connection, a later read never finds an earlier version.', KIT),
  'RING-LOSER-NEVER-APPEARS': must('The document of a write that lost is never read, not even later.', SWAP),
  'RING-PARALLEL-READS': must('Many reads at once all find the ring.'),
  'RING-ABORTED': must('A call with an aborted signal rejects with unavailable and writes nothing.', SIGNAL),
  'RING-ABORT-READ': must('A read aborted on its way is right or unavailable, and disturbs no other call.', SIGNAL),
  'RING-ABORT-WRITE': must('A write aborted on its way is whole or not done, and the store stays usable.', SIGNAL),
  'RING-ABORT-CREATE': must('The same holds for a write that creates a ring.', SIGNAL),
  'RING-ABORT-OTHERS': must('An aborted write does not disturb other calls on its connection.'),
  'RING-SIGNAL-LEFT': should('A call that has ended leaves no listener on its signal.', SIGNAL),
  'RING-ABORT-ENDS': must('A call to a backend out of reach ends when its signal aborts.', SIGNAL),
  'RING-UNREACHABLE': must('A backend out of reach is unavailable, never absent.', `${ABSENT}; F9`),
  'RING-RECOVERS': must('A backend that comes back is used again, and holds what it held.', DURABLE),
  'RING-OUTAGE-LATER': must('A write that failed in an outage never replaces what is written after it.', SWAP),
  'RING-OUTAGE-UNDER-WAY': must('A call that an outage interrupts is right or unavailable.', `${SWAP}; F9`),
  'RING-SERVICE-DATE': must('Every read calls onServiceDate first, or none does, as the target says.', `${DATE}; F13`),
  'RING-SERVICE-DATE-VALID': must('A reported date is that of the answer, ten minutes off at most.', `${DATE}; F13`),
  'RING-WATCH-HEARS': must('Every watcher is called after another store wrote.', WATCH),
  'RING-WATCH-ENDS': must('A watcher that ended is no longer called, and all others still are.', WATCH),
  'RING-WATCH-RECOVERS': must('A watcher is called again after an outage.', WATCH),
  'RING-WATCH-ENDS-TWICE': must('A watcher that is ended twice leaves the others as they are.', WATCH),
  'RING-WATCH-ARGUMENT': should('watch without a function throws, or returns a function.', `${KIT}; F17`),
  'RING-WATCH-DECLARED': should('A store of a target that denies push has no watch.', KIT),
  'RING-WRITE-ARGUMENTS': should('A write without document or expected replaces nothing.', `${KIT}; F17`),
  'RING-READ-ARGUMENTS': should('A read with options that are not an object is right or rejects.', `${KIT}; F17`),
};
