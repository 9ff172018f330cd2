import { type RequirementTable, requiredBy } from '../requirement.ts';

const CONTRACT = 'KeyWrapper of @sealring/core';
const RING = 'Sealring ring document: what it stores for a wrapped key';
const KIT = 'Sealring conformance kit';
const [DECISION_4, DECISION_9] = ['decision 0004', 'Sealring decision 0009'];
const DOCUMENTS: readonly unknown[] = [RING, KIT, DECISION_4, DECISION_9];

/** The source: the whole contract, one of its clauses by number, a section by name, or another document. */
function from(...parts: readonly (number | string)[]): string {
  if (parts.length === 0) return CONTRACT;
  const sources = parts.map((part) => {
    if (DOCUMENTS.includes(part)) return part;
    return `${CONTRACT}, ${typeof part === 'number' ? 'clause ' : ''}${part}`;
  });
  return sources.join('; ');
}

const { must: mustBy, should: shouldBy } = requiredBy(CONTRACT);
const must = (text: string, ...parts: readonly (number | string)[]) => mustBy(text, from(...parts));
const should = (text: string, ...parts: readonly (number | string)[]) => shouldBy(text, from(...parts));

/** The requirements for key wrappers, in order. docs/key-wrapper-requirements.md lists the inputs of their checks. */
export const KEY_WRAPPER_TABLE: RequirementTable = {
  'WRAP-PROMISES': must('wrap, unwrap, generate and sign return promises.'),
  'WRAP-ROUNDTRIP': must('unwrap returns exactly the bytes that wrap was given.', 1),
  'WRAP-LENGTH-64': must(
    'If the service binds no context, 64 bytes can be wrapped: a data key and a hash.',
    6,
    DECISION_4,
  ),
  'WRAP-LENGTH-32': should(
    'If the service binds no context, 32 bytes are wrapped, or refused with a TypeError or RangeError.',
    4,
    6,
    DECISION_4,
  ),
  'WRAP-TWICE': must('Two wraps of one data key can both be unwrapped, and so can an old wrap after many new ones.', 1),
  'WRAP-GENERATE': must('generate returns a new data key each time and a wrapped key that unwraps to it.', 'generate'),
  'WRAP-CONCURRENT': must('Concurrent calls do not mix up their results.'),
  'WRAP-VIEW': must('A view of a larger buffer is read only within its bounds.', 1),
  'WRAP-OWN-BYTES': must('The caller may overwrite the bytes that a call returns.', 1),
  'WRAP-CALLERS-BYTES': must('No call modifies its input bytes, or reads them after it has ended.', 1),
  'WRAP-CALLERS-BYTES-AT-ONCE': should(
    'wrap reads the data key, and sign the entry, before the first asynchronous step.',
    KIT,
  ),
  'WRAP-SIGNAL-AFTER': must('A signal that aborts after its call has ended has no effect.', 'WrapOptions'),
  'WRAP-FACTS': must('A key wrapper declares its provider, its KMS key and what it supports.'),
  'WRAP-RECORD': must('A wrapped key names its provider and a KMS key in a form that a ring can store.', RING),
  'WRAP-RECORD-SIZE': should('The wrapped keys of a ring of 64 keys fit into the ring document.', RING),
  'WRAP-CONFIDENTIAL': must('A wrapped key reveals nothing about the data key.'),
  'WRAP-STORED': must('A wrapped key unwraps after it is stored as text and read again.', RING),
  'WRAP-PEER': must('Another instance with the same KMS key unwraps a wrapped key.'),
  'WRAP-OPTIONS': must(
    'Calls accept a signal and onServiceDate, which receives the date of the answer to its own call.',
    'WrapOptions',
  ),
  'WRAP-CALLERS-RECORD': must(
    'No call modifies its wrapped key or options, and each wrapped key is a separate object.',
    'WrappedKey',
  ),
  'WRAP-CONTEXT-BINDS': must('A wrapped key is refused as corrupt under a different context.', 2),
  'WRAP-CONTEXT-BOUNDARIES': must('Contexts that merely look alike are treated as different.', 2),
  'WRAP-CONTEXT-ORDER': must('The order of the names in a context does not matter.', 1),
  'WRAP-CONTEXT-DECLARED': should('A key wrapper with supports.context false binds no context.', 'supports'),
  'WRAP-BIT-FLIP': must('A wrapped key with any single bit changed is refused as corrupt.', 2),
  'WRAP-SPELLING': must('A wrapped key that is text is refused in any other spelling.', 2),
  'WRAP-TRUNCATION': must('A wrapped key truncated at either end is refused as corrupt.', 2),
  'WRAP-EXTENSION': must('A wrapped key extended at either end is refused as corrupt.', 2),
  'WRAP-EMPTY': must('An empty wrapped key is refused, and so are bytes that were never wrapped.', 2),
  'WRAP-SPLICE': must('A wrapped key assembled from two others is refused as corrupt.', 2),
  'WRAP-AFTER-REFUSAL': must('A refused call does not affect the next valid one.', 1),
  'WRAP-OTHER-KEY': must(
    'A data key wrapped by another KMS key is refused as corrupt, even under this key’s keyId.',
    2,
  ),
  'WRAP-OTHER-KEY-NAMED': must('A wrapped key that names another KMS key is refused as corrupt.', 3),
  'WRAP-FOREIGN-PROVIDER': must('A wrapped key that names another provider is refused as corrupt.', 3),
  'WRAP-BEFORE-CALL': must('A wrapped key that names another provider or KMS key is refused before any call.', 3),
  'WRAP-OWNS': must('owns distinguishes its own wrapped keys from others, synchronously and without a call.', 'owns'),
  'WRAP-UNREACHABLE': must('An unreachable service is reported as unavailable, in bounded time.', 5),
  'WRAP-ABORT': must('When its signal aborts, a call in progress ends at once as unavailable.', 5),
  'WRAP-ABORT-ALONE': must('Aborting one call does not end any other.', 5),
  'WRAP-ABORTED': must('A call whose signal has already aborted fails as unavailable.', 5),
  'WRAP-ERROR-CLASS': must('Every failure is a KeyWrapperError of a known kind.', 4),
  'WRAP-ERROR-INSTANCE': should('Every failure is an instance of KeyWrapperError, not only an error of that name.', 4),
  'WRAP-ERROR-SUMMARY': must(
    'A failure names its provider and its operation, and the rest of its summary has the right types.',
    'errors',
  ),
  'WRAP-ERROR-SECRET': must('A failure reveals no data key in its message, its stack or any attached value.', 'errors'),
  'WRAP-ERROR-CAUSE': should('No foreign error is attached to a failure, and nothing is copied from one.', 'errors'),
  'WRAP-OUTPUT-SECRET': must('No call prints a data key or writes one to a file.', KIT),
  'WRAP-INSPECT-SECRET': should(
    'No data key appears in a printed key wrapper, the environment, a global, or the buffer of a wrapped key.',
    KIT,
  ),
  'WRAP-QUIET': should('No call prints anything: servers on stdio use standard output for their messages.', KIT),
  'WRAP-NO-GLOBALS': should('No call changes a built-in object, such as a prototype or Error.stackTraceLimit.', KIT),
  'WRAP-KEY-LENGTH': must(
    'wrap refuses a data key of the wrong length with a TypeError or RangeError, before any call.',
    4,
    6,
  ),
  'WRAP-KEY-CONSTANT': must(
    'wrap refuses a data key of 32 equal bytes with a TypeError or RangeError, before any call.',
    4,
    6,
  ),
  'WRAP-ARGUMENTS': must('Wrong arguments are refused with a TypeError or RangeError, before any call.', 4),
  'WRAP-ARGUMENT-CONTEXT': should('A context with non-string values is refused with a TypeError or RangeError.', 4),
  'WRAP-ARGUMENT-BYTES': should(
    'A wrapped key given in a different form, such as text, is refused; null is a wrong argument.',
    4,
  ),
  'WRAP-REJECTS': should('A failure rejects the promise and is not thrown synchronously.', KIT),
  'WRAP-SIGN': must(
    'A key wrapper whose unwrap does not authenticate the origin signs ring entries and verifies its signatures.',
    'sign',
  ),
  'WRAP-SIGN-BINDS': must('verify returns false for a changed entry or signature.', 'verify'),
  'WRAP-VERIFY-LOCAL': must('verify returns its result synchronously, without calling a service.', 'verify'),
  'WRAP-DISABLED': must('While the KMS key is disabled, every unwrap fails as disabled.', 'KeyWrapperErrorKind'),
  'WRAP-ENABLED': must('Once the KMS key is enabled again, earlier wrapped keys can be unwrapped.'),
  'WRAP-DENIED': must('While the caller may not use the KMS key, every unwrap fails as denied.', 'KeyWrapperErrorKind'),
  'WRAP-ALLOWED': must('Once the caller may use the KMS key again, earlier wrapped keys can be unwrapped.'),
  'WRAP-ROTATED-OPENS': must('After a rotation, earlier wrapped keys still unwrap.'),
  'WRAP-ROTATED-REFUSES': must('After a rotation, an older wrapped key that was altered is refused as corrupt.', 2),
  'WRAP-ROTATED-NAMES': must('After a rotation, new wraps name the new version.', 'WrappedKey.keyId'),
  'WRAP-VERSIONS-DECLARED': should(
    'supports.keyVersions is true if and only if new wraps name a new version.',
    'supports',
  ),
  'WRAP-VERSION-BINDS': should('A wrapped key that names another version of its KMS key does not unwrap.', DECISION_9),
  'WRAP-CLOSE-ALONE': must('close does not close other instances or a client that the caller passed in.', 'close'),
  'WRAP-CLOSE': must('close returns a promise that settles, and so do calls made during or after close.', 5),
  'WRAP-CLOSED': should('After close, a call succeeds or fails as unavailable, and a second close does nothing.', KIT),
  'WRAP-INSTANCE-CLOSES': must('Closing an instance of the target completes.', KIT),
  'WRAP-NO-TIMERS': should('A closed key wrapper leaves no timers, watchers or servers behind.', KIT),
  'WRAP-SIGNAL-LEFT': should('A finished call leaves no listener on its signal, and reports no date.', 'WrapOptions'),
};
