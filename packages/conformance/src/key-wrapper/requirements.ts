import { type RequirementTable, requiredBy } from '../requirement.ts';

const CONTRACT = 'KeyWrapper of @sealring/core';
const RING = 'Sealring ring document: what it stores of a wrapped key';
const KIT = 'Sealring conformance kit';
const [DECISION_4, DECISION_9] = ['decision 0004', 'Sealring decision 0009'];
const DOCUMENTS: readonly unknown[] = [RING, KIT, DECISION_4, DECISION_9];

/** The source is the whole contract, a clause of it by its number, a section of it by its name, or another document. */
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

/** What every key wrapper is held to, in the order in which it is tried. docs/key-wrapper-requirements.md says with what. */
export const KEY_WRAPPER_TABLE: RequirementTable = {
  'WRAP-PROMISES': must('wrap, unwrap, generate and sign return promises.'),
  'WRAP-ROUNDTRIP': must('unwrap returns exactly the bytes that wrap was given.', 1),
  'WRAP-LENGTH-64': must(
    'Where the service binds no context, 64 bytes go round: a data key and a hash.',
    6,
    DECISION_4,
  ),
  'WRAP-LENGTH-32': should(
    'Where the service binds no context, 32 bytes go round, too, or are refused by a TypeError or RangeError.',
    4,
    6,
    DECISION_4,
  ),
  'WRAP-TWICE': must('Two wraps of one data key both unwrap, and so does an old wrap after many new ones.', 1),
  'WRAP-GENERATE': must('generate makes a fresh data key each time, and its wrap unwraps.', 'generate'),
  'WRAP-CONCURRENT': must('Calls that are made at once do not mix.'),
  'WRAP-VIEW': must('A view of a larger buffer is read within its own bounds.', 1),
  'WRAP-OWN-BYTES': must('The bytes that a call returns are the caller’s to overwrite.', 1),
  'WRAP-CALLERS-BYTES': must('No call changes the bytes it was given, or looks at them after it has ended.', 1),
  'WRAP-CALLERS-BYTES-AT-ONCE': should(
    'wrap reads the data key, and sign the entry, before they first wait for anything.',
    KIT,
  ),
  'WRAP-SIGNAL-AFTER': must('A signal that aborts after its call has ended changes nothing.', 'WrapOptions'),
  'WRAP-FACTS': must('A key wrapper names its provider and its KMS key, and says what it supports.'),
  'WRAP-RECORD': must('A wrapped key names its provider and a KMS key, in a form that a ring can store.', RING),
  'WRAP-RECORD-SIZE': should('A ring of 64 keys has room for its wraps.', RING),
  'WRAP-CONFIDENTIAL': must('A wrapped key shows nothing of the data key.'),
  'WRAP-STORED': must('A wrapped key unwraps after it was stored as text and read again.', RING),
  'WRAP-PEER': must('Another instance with the same KMS key unwraps a wrapped key.'),
  'WRAP-OPTIONS': must('A signal and onServiceDate may be given, and the latter receives dates.', 'WrapOptions'),
  'WRAP-CALLERS-RECORD': must(
    'No call changes the wrapped key or the options it was given, and each wrapped key is an object of its own.',
    'WrappedKey',
  ),
  'WRAP-CONTEXT-BINDS': must('A wrapped key under another context is refused as corrupt.', 2),
  'WRAP-CONTEXT-BOUNDARIES': must('A context whose names and values only read alike is another one.', 2),
  'WRAP-CONTEXT-ORDER': should('The order of a context’s members does not matter.', KIT),
  'WRAP-CONTEXT-DECLARED': should('A key wrapper with supports.context false binds no context.', 'supports'),
  'WRAP-BIT-FLIP': must('A wrapped key with any one bit changed is refused as corrupt.', 2),
  'WRAP-SPELLING': must('A wrapped key that is text is refused in any other spelling.', 2),
  'WRAP-TRUNCATION': must('A wrapped key that was cut, at either end, is refused as corrupt.', 2),
  'WRAP-EXTENSION': must('A wrapped key with something added, at either end, is refused as corrupt.', 2),
  'WRAP-EMPTY': must('A wrapped key of no bytes, or of bytes that were never wrapped, is refused.', 2),
  'WRAP-SPLICE': must('A wrapped key put together from two is refused as corrupt.', 2),
  'WRAP-AFTER-REFUSAL': must('A call that was refused changes nothing for the next good one.', 1),
  'WRAP-OTHER-KEY': must('What another KMS key wrapped is refused as corrupt, under our key’s name.', 2),
  'WRAP-OTHER-KEY-NAMED': must('A wrapped key that names another KMS key is refused as corrupt.', 3),
  'WRAP-FOREIGN-PROVIDER': must('A wrapped key that names another provider is refused as corrupt.', 3),
  'WRAP-BEFORE-CALL': must('A wrapped key that names another provider or KMS key is refused before any call.', 3),
  'WRAP-OWNS': must('owns distinguishes its own wrapped keys from others, at once and without a call.', 'owns'),
  'WRAP-UNREACHABLE': must('A service that cannot be reached is unavailable, in bounded time.', 5),
  'WRAP-ABORT': must('A call under way ends at once, as unavailable, when its signal aborts.', 5),
  'WRAP-ABORT-ALONE': must('Aborting one call ends no other.', 5),
  'WRAP-ABORTED': must('A call with a signal that has aborted is unavailable.', 5),
  'WRAP-ERROR-CLASS': must('Every failure is a KeyWrapperError of a known kind.', 4),
  'WRAP-ERROR-SUMMARY': should('A failure names its provider and its operation.', 'errors'),
  'WRAP-ERROR-SECRET': must(
    'A failure shows no data key: not in its message, its stack or anything it holds.',
    'errors',
  ),
  'WRAP-ERROR-CAUSE': should('No foreign error is attached to a failure.', 'errors'),
  'WRAP-OUTPUT-SECRET': must('No call prints a data key, or writes one to a file.', KIT),
  'WRAP-INSPECT-SECRET': should(
    'A key wrapper that is printed shows no data key it has handled, nor does the environment or a global.',
    KIT,
  ),
  'WRAP-KEY-LENGTH': must(
    'A data key of another length is refused by a TypeError or RangeError, before any call.',
    4,
    6,
  ),
  'WRAP-KEY-CONSTANT': must(
    'One byte 32 times is refused as a data key by a TypeError or RangeError, before any call.',
    4,
    6,
  ),
  'WRAP-ARGUMENTS': must('Wrong arguments are refused by a TypeError or RangeError, before any call.', 4),
  'WRAP-ARGUMENT-CONTEXT': should('A context of anything but strings is refused by a TypeError or RangeError.', 4),
  'WRAP-REJECTS': should('A failure is a rejection, not thrown before there is a promise.', KIT),
  'WRAP-SIGN': must(
    'A key wrapper whose unwrap does not authenticate the origin signs ring entries, and verifies its signatures.',
    'sign',
  ),
  'WRAP-SIGN-BINDS': must('verify says false of a changed entry or signature.', 'verify'),
  'WRAP-VERIFY-LOCAL': must('verify answers at once, and without a call.', 'verify'),
  'WRAP-DISABLED': must('While the KMS key is disabled, unwrap fails as disabled, every time.', 'KeyWrapperErrorKind'),
  'WRAP-ENABLED': must('Once the KMS key is enabled again, keys that it wrapped before unwrap.'),
  'WRAP-DENIED': must(
    'While the caller may not use the KMS key, unwrap fails as denied, every time.',
    'KeyWrapperErrorKind',
  ),
  'WRAP-ALLOWED': must('Once the caller may use the KMS key again, keys that it wrapped before unwrap.'),
  'WRAP-ROTATED-OPENS': must('After a rotation, what was wrapped before still unwraps.'),
  'WRAP-ROTATED-NAMES': must('After a rotation, new wraps name the new version.', 'WrappedKey.keyId'),
  'WRAP-VERSIONS-DECLARED': should(
    'supports.keyVersions is true exactly where new wraps name a new version.',
    'supports',
  ),
  'WRAP-VERSION-BINDS': should('A wrapped key that names another version of its KMS key does not unwrap.', DECISION_9),
  'WRAP-CLOSE-ALONE': must('close ends no other instance: a client that was given stays open.', 'close'),
  'WRAP-CLOSE': must('close returns a promise that ends, and so does every call under way and after it.', 5),
  'WRAP-CLOSED': should('After close, calls are unavailable, and a second close does nothing.', KIT),
  'WRAP-INSTANCE-CLOSES': must('The target’s close of an instance ends.', KIT),
  'WRAP-NO-TIMERS': should('A key wrapper that was closed leaves no timers behind.', KIT),
  'WRAP-SIGNAL-LEFT': should('A call that has ended leaves no listener on its signal.', 'WrapOptions'),
};
