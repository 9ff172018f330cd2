import { type RequirementTable, requiredBy } from '../requirement.ts';

const CONTRACT = 'RingStore of @sealring/core (ring-store.ts)';
const ABSENT = `${CONTRACT}, 1: read resolves to undefined only if the document is known to be absent`;
const SWAP = `${CONTRACT}, 2: write is one atomic compare-and-swap`;
const DURABLE = `${CONTRACT}, 3: a write that resolved is durable and seen by every later read`;
const BOUND = `${CONTRACT}, 4: documents over 262 144 bytes are refused in both directions`;
const REPLACE = `${CONTRACT}, 4: an error of read has the revision, so that one write can replace the content`;
const REVISION = `${CONTRACT}: a revision is opaque, and equal for equal versions only`;
const SIGNAL = `${CONTRACT}: signal ends the call early; the call then rejects with kind unavailable`;
const WATCH = `${CONTRACT}: watch calls changed soon after a write, and returns a function that ends the watch`;
const DATE = `${CONTRACT}: onServiceDate is called with the date that the service puts on its answer`;
const ERRORS = `${CONTRACT}: RingConflictError, RingStoreError and its kinds`;
const CLOSE = `${CONTRACT}: close ends everything that the store itself has created`;
const CLOSED = `${CLOSE}; read and write reject with RingStoreError; F9`;
const KIT = 'Sealring conformance kit';

const NAMES = 'F25: rings of different names share nothing';

const { must, should } = requiredBy(CONTRACT);

/** The requirements for ring stores, in order. docs/ring-store-requirements.md lists the inputs of their checks. */
export const RING_STORE_TABLE: RequirementTable = {
  'RING-SHAPE': must('A store has kind, read, write and optionally watch and close; location contains no password.'),
  'RING-ASYNCHRONOUS': must(
    'read and write return promises: a failure rejects the promise and is never thrown synchronously.',
  ),
  'RING-RESULT': must(
    'read resolves to undefined or { document, revision }, and write to { revision }; document and revision are strings.',
  ),
  'RING-OWN-RESULT': should('Changing a result does not affect the store, and no call modifies its options.', KIT),
  'RING-ERROR-SECRET': must('The text of an error contains no document and no credential.', ERRORS),
  'RING-ERROR-INSTANCE': should(
    'Every failure is an instance of RingStoreError or RingConflictError, not only an error of that name.',
    ERRORS,
  ),
  'RING-ERROR-TEXT': should('An error contains no document, no credential and no vendor error.', `${ERRORS}; F33`),
  'RING-ABSENT': must('read resolves to undefined for a ring that was never created, on every connection.', ABSENT),
  'RING-ROUNDTRIP': must('A read returns the written document, character for character, on every connection.', DURABLE),
  'RING-NUL': must('A document that is empty or contains a NUL is stored unchanged or refused.', DURABLE),
  'RING-DURABLE': must('A written document is still stored after all stores are closed, and a second later.', DURABLE),
  'RING-INSTANCE-CLOSES': must(
    'Closing a store completes: the target’s close is called if it has one, and the store’s own close otherwise.',
    CLOSE,
  ),
  'RING-CLOSE-OTHERS': should('Closing one store leaves the other stores usable.', CLOSE),
  'RING-CLOSED': must('A call during or after close resolves correctly or rejects with RingStoreError.', CLOSED),
  'RING-CLOSED-UNAVAILABLE': should(
    'A call that fails after close fails as unavailable; a second close does nothing.',
    `${KIT}; F9`,
  ),
  'RING-NAMES-SEPARATE': must('Rings of different names share nothing, however similar the names are.', NAMES),
  'RING-NAMES-AT-ONCE': must('Concurrent calls for rings of different names do not affect each other.', NAMES),
  'RING-LENGTHS': must('Documents of any length are stored whole, after longer and shorter ones.', DURABLE),
  'RING-BOUNDARIES': must('No character is split, at any position in the document.', DURABLE),
  'RING-LARGEST': must('A document of the maximum length is stored whole.', BOUND),
  'RING-TOO-LARGE': must(
    'A document one byte over the maximum is rejected as too-large and changes nothing.',
    `${BOUND}; F23`,
  ),
  'RING-TOO-LARGE-THERE': must(
    'A stored document over the maximum is reported as too-large, never as absent.',
    `${BOUND}; F9, F23`,
  ),
  'RING-TOO-LARGE-REPLACED': should(
    'The too-large error has a revision with which one write can replace the document.',
    REPLACE,
  ),
  'RING-EMPTY-THERE': must('A stored empty document is never reported as absent.', `${ABSENT}; F9`),
  'RING-EMPTY-CORRUPT': should(
    'A stored empty document, or the error from reading it, has a revision with which one write can replace it.',
    REPLACE,
  ),
  'RING-REVISION-STABLE': must('Every read of one version returns the revision that its write returned.', REVISION),
  'RING-REVISION-OF-ONE': must('Two different documents never have the same revision.', REVISION),
  'RING-REVISION-UNIQUE': must(
    'A document that is written again gets a new revision, if the target declares that it does.',
    REVISION,
  ),
  'RING-REMOVED': must('A removed ring is absent, and can be created again.', ABSENT),
  'RING-REVISION-REMOVED': must(
    'A write with the revision of a document that was removed never succeeds.',
    `${REVISION}; F31`,
  ),
  'RING-CREATE-ONLY-ABSENT': must(
    'If a document is stored, a write with expected: undefined is refused as a conflict and changes nothing.',
    SWAP,
  ),
  'RING-STALE-LOSES': must('A write with an outdated revision is refused as a conflict and changes nothing.', SWAP),
  'RING-CONFLICT-ERROR': must('A conflicting write rejects with RingConflictError.', ERRORS),
  'RING-FOREIGN-LOSES': must(
    'A write with text that is not the revision, even empty text or an asterisk, is refused as a conflict.',
    SWAP,
  ),
  'RING-REVISION-FOREIGN': must(
    'A write with the revision of another ring is refused as a conflict, even if no ring is stored.',
    SWAP,
  ),
  'RING-FOREIGN-CONFLICT': should('A write with text that is not a revision rejects with RingConflictError.', SWAP),
  'RING-REWRITE': must('A write of the stored document with the current revision succeeds.', SWAP),
  'RING-CREATE-ONE-WINNER': must(
    'Of many concurrent creations, exactly one succeeds; all others get a conflict.',
    `${SWAP}; F8`,
  ),
  'RING-CAS-ONE-WINNER': must(
    'Of many concurrent writes, exactly one succeeds; all others get a conflict.',
    `${SWAP}; F32`,
  ),
  'RING-CAS-LARGEST': must(
    'Of concurrent writes of documents of maximum length, exactly one succeeds; all others get a conflict.',
    `${SWAP}; F32`,
  ),
  'RING-WRITE-REVISION': must('A write resolves to its own revision, even if others write right after it.', REVISION),
  'RING-NO-LOST-UPDATE': must('When many clients read, add and write, no addition that resolved is lost.', SWAP),
  'RING-READ-AFTER-WRITE': must(
    'A read that starts after a write has resolved sees that write, on every connection.',
    DURABLE,
  ),
  'RING-READ-OVERLAPPED': must(
    'A read that starts after a write has resolved sees that write, even while earlier reads are in progress.',
    DURABLE,
  ),
  'RING-READ-CREATED': must('A read during concurrent creations finds no ring or a whole document.', `${DURABLE}; F8`),
  'RING-READ-WHOLE': must('A read during writes returns one whole document with its revision.', `${DURABLE}; F32`),
  'RING-READ-CURRENT': must(
    'A read during writes never returns a version older than a write that resolved before the read started.',
    DURABLE,
  ),
  'RING-READ-MONOTONE': should('On one connection, a later read never returns an earlier version.', KIT),
  'RING-LOSER-NEVER-APPEARS': must(
    'No read ever returns the document of a write that was refused with a conflict.',
    SWAP,
  ),
  'RING-PARALLEL-READS': must('Many concurrent reads all return the ring.'),
  'RING-ABORTED': must('A call with an aborted signal rejects as unavailable and writes nothing.', SIGNAL),
  'RING-ABORT-READ': must(
    'An aborted read resolves correctly or fails as unavailable, and does not affect other calls.',
    SIGNAL,
  ),
  'RING-ABORT-WRITE': must('An aborted write is applied whole or not at all, and the store stays usable.', SIGNAL),
  'RING-ABORT-CREATE': must('An aborted creation of a ring is applied whole or not at all.', SIGNAL),
  'RING-ABORT-OTHERS': must('An aborted write does not affect other calls on its connection.'),
  'RING-SIGNAL-LEFT': should('A finished call leaves no listener on its signal.', SIGNAL),
  'RING-ABORT-ENDS': must('A call to an unreachable backend ends when its signal aborts.', SIGNAL),
  'RING-UNREACHABLE': must('An unreachable backend is reported as unavailable, never as absent.', `${ABSENT}; F9`),
  'RING-RECOVERS': must('After an outage, the store works again and still has its document.', DURABLE),
  'RING-OUTAGE-LATER': must('A write that failed in an outage never replaces a later one.', SWAP),
  'RING-OUTAGE-UNDER-WAY': must(
    'A call that an outage interrupts resolves correctly or fails as unavailable.',
    `${SWAP}; F9`,
  ),
  'RING-SERVICE-DATE': must(
    'Every read calls onServiceDate before it resolves, or no read does, as the target declares.',
    `${DATE}; F13`,
  ),
  'RING-SERVICE-DATE-VALID': must('A reported date is the date of the response, within ten minutes.', `${DATE}; F13`),
  'RING-WATCH-HEARS': must('Every watcher is called after a write by another store.', WATCH),
  'RING-WATCH-REMOVED': must('A watcher is called after a write that creates a removed ring again.', WATCH),
  'RING-WATCH-ENDS': must('An ended watcher is no longer called; all others still are.', WATCH),
  'RING-WATCH-RECOVERS': must('A watcher is called again after an outage.', WATCH),
  'RING-WATCH-ENDS-TWICE': must('Ending a watcher twice does not affect other watchers.', WATCH),
  'RING-WATCH-QUIET': should('A watcher is not called repeatedly while nothing is written.', WATCH),
  'RING-WATCH-ARGUMENT': should('watch without a callback throws or returns a function.', `${KIT}; F17`),
  'RING-WATCH-DECLARED': should('A store does not offer watch if its target sets supports.push to false.', KIT),
  'RING-WRITE-ARGUMENTS': should(
    'A write with an invalid document or an invalid expected rejects and changes nothing.',
    `${KIT}; F17`,
  ),
  'RING-READ-ARGUMENTS': should(
    'A read with options that are not an object resolves correctly or rejects.',
    `${KIT}; F17`,
  ),
  'RING-NO-TIMERS': should(
    'A closed store leaves behind no timers, watchers, servers or listeners on the process.',
    CLOSE,
  ),
  'RING-QUIET': should('No call prints anything: servers on stdio use standard output for their messages.', KIT),
  'RING-NO-GLOBALS': should('No call changes a built-in object, such as a prototype or Error.stackTraceLimit.', KIT),
};
