import { type RequirementTable, requiredBy } from '../requirement.ts';

const CONTRACT = 'KeyWrapper of @sealring/core';
const RING = 'Sealring ring document: what it stores of a wrapped key';
const KIT = 'Sealring conformance kit';

function clause(...numbers: readonly number[]): string {
  return numbers.map((number) => `${CONTRACT}, clause ${number}`).join('; ');
}

const { must, should } = requiredBy(CONTRACT);

/** What every key wrapper is held to, in the order in which it is tried. docs/key-wrapper-requirements.md says with what. */
export const KEY_WRAPPER_TABLE: RequirementTable = {
  'WRAP-PROMISES': must('wrap, unwrap, generate and sign return promises.'),
  'WRAP-ROUNDTRIP': must('unwrap returns exactly the bytes that wrap was given.', clause(1)),
  'WRAP-LENGTH-64': must(
    'Where the service binds no context, 64 bytes go round: a data key and a hash.',
    `${clause(6)}; decision 0004`,
  ),
  'WRAP-LENGTH-32': should(
    'Where the service binds no context, 32 bytes go round, too, or are refused by a TypeError or RangeError.',
    `${clause(4, 6)}; decision 0004`,
  ),
  'WRAP-TWICE': must('Two wraps of one data key both unwrap, and so does an old wrap after many new ones.', clause(1)),
  'WRAP-GENERATE': must('generate makes a fresh data key each time, and its wrap unwraps.', `${CONTRACT}, generate`),
  'WRAP-CONCURRENT': must('Calls that are made at once do not mix.'),
  'WRAP-VIEW': must('A view of a larger buffer is read within its own bounds.', clause(1)),
  'WRAP-OWN-BYTES': must('The bytes that a call returns are the caller’s to overwrite.', clause(1)),
  'WRAP-CALLERS-BYTES': must('No call changes the bytes it was given, or looks at them after it has ended.', clause(1)),
  'WRAP-CALLERS-BYTES-AT-ONCE': should(
    'wrap reads the data key, and sign the entry, before they first wait for anything.',
    KIT,
  ),
  'WRAP-SIGNAL-AFTER': must(
    'A signal that aborts after its call has ended changes nothing.',
    `${CONTRACT}, WrapOptions`,
  ),
  'WRAP-FACTS': must('A key wrapper names its provider and its KMS key, and says what it supports.'),
  'WRAP-RECORD': must('A wrapped key names its provider and a KMS key, in a form that a ring can store.', RING),
  'WRAP-RECORD-SIZE': should('A ring of 64 keys has room for its wraps.', RING),
  'WRAP-CONFIDENTIAL': must('A wrapped key shows nothing of the data key.'),
  'WRAP-STORED': must('A wrapped key unwraps after it was stored as text and read again.', RING),
  'WRAP-PEER': must('Another instance with the same KMS key unwraps a wrapped key.'),
  'WRAP-OPTIONS': must(
    'A signal and onServiceDate may be given, and the latter receives dates.',
    `${CONTRACT}, WrapOptions`,
  ),
  'WRAP-CALLERS-RECORD': must(
    'No call changes the wrapped key or the options it was given, and each wrapped key is an object of its own.',
    `${CONTRACT}, WrappedKey`,
  ),
  'WRAP-CONTEXT-BINDS': must('A wrapped key under another context is refused as corrupt.', clause(2)),
  'WRAP-CONTEXT-BOUNDARIES': must('A context whose names and values only read alike is another one.', clause(2)),
  'WRAP-CONTEXT-ORDER': should('The order of a context’s members does not matter.', KIT),
  'WRAP-CONTEXT-DECLARED': should(
    'A key wrapper with supports.context false binds no context.',
    `${CONTRACT}, supports`,
  ),
  'WRAP-BIT-FLIP': must('A wrapped key with any one bit changed is refused as corrupt.', clause(2)),
  'WRAP-SPELLING': must('A wrapped key that is text is refused in any other spelling.', clause(2)),
  'WRAP-TRUNCATION': must('A wrapped key that was cut, at either end, is refused as corrupt.', clause(2)),
  'WRAP-EXTENSION': must('A wrapped key with something added, at either end, is refused as corrupt.', clause(2)),
  'WRAP-EMPTY': must('A wrapped key of no bytes, or of bytes that were never wrapped, is refused.', clause(2)),
  'WRAP-SPLICE': must('A wrapped key put together from two is refused as corrupt.', clause(2)),
  'WRAP-AFTER-REFUSAL': must('A call that was refused changes nothing for the next good one.', clause(1)),
  'WRAP-OTHER-KEY': must('What another KMS key wrapped is refused as corrupt, under our key’s name.', clause(2)),
  'WRAP-OTHER-KEY-NAMED': must('A wrapped key that names another KMS key is refused as corrupt.', clause(3)),
  'WRAP-FOREIGN-PROVIDER': must('A wrapped key that names another provider is refused as corrupt.', clause(3)),
  'WRAP-BEFORE-CALL': must(
    'A wrapped key that names another provider or KMS key is refused before any call.',
    clause(3),
  ),
  'WRAP-OWNS': must(
    'owns distinguishes its own wrapped keys from others, at once and without a call.',
    `${CONTRACT}, owns`,
  ),
  'WRAP-UNREACHABLE': must('A service that cannot be reached is unavailable, in bounded time.', clause(5)),
  'WRAP-ABORT': must('A call under way ends at once, as unavailable, when its signal aborts.', clause(5)),
  'WRAP-ABORT-ALONE': must('Aborting one call ends no other.', clause(5)),
  'WRAP-ABORTED': must('A call with a signal that has aborted is unavailable.', clause(5)),
  'WRAP-ERROR-CLASS': must('Every failure is a KeyWrapperError of a known kind.', clause(4)),
  'WRAP-ERROR-SUMMARY': should('A failure names its provider and its operation.', `${CONTRACT}, errors`),
  'WRAP-ERROR-SECRET': must(
    'A failure shows no data key: not in its message, its stack or anything it holds.',
    `${CONTRACT}, errors`,
  ),
  'WRAP-ERROR-CAUSE': should('No foreign error is attached to a failure.', `${CONTRACT}, errors`),
  'WRAP-OUTPUT-SECRET': must('No call prints a data key, or writes one to a file.', KIT),
  'WRAP-INSPECT-SECRET': should('A key wrapper that is printed shows no data key it has handled.', KIT),
  'WRAP-KEY-LENGTH': must(
    'A data key of another length is refused by a TypeError or RangeError, before any call.',
    clause(4, 6),
  ),
  'WRAP-KEY-CONSTANT': must(
    'One byte 32 times is refused as a data key by a TypeError or RangeError, before any call.',
    clause(4, 6),
  ),
  'WRAP-ARGUMENTS': must('Wrong arguments are refused by a TypeError or RangeError, before any call.', clause(4)),
  'WRAP-ARGUMENT-CONTEXT': should(
    'A context of anything but strings is refused by a TypeError or RangeError.',
    clause(4),
  ),
  'WRAP-REJECTS': should('A failure is a rejection, not thrown before there is a promise.', KIT),
  'WRAP-SIGN': must(
    'A key wrapper whose unwrap does not authenticate the origin signs ring entries, and verifies its signatures.',
    `${CONTRACT}, sign`,
  ),
  'WRAP-SIGN-BINDS': must('verify says false of a changed entry or signature.', `${CONTRACT}, verify`),
  'WRAP-VERIFY-LOCAL': must('verify answers at once, and without a call.', `${CONTRACT}, verify`),
  'WRAP-DISABLED': must(
    'While the KMS key is disabled, unwrap fails as disabled, every time.',
    `${CONTRACT}, KeyWrapperErrorKind`,
  ),
  'WRAP-ENABLED': must('Once the KMS key is enabled again, keys that it wrapped before unwrap.'),
  'WRAP-DENIED': must(
    'While the caller may not use the KMS key, unwrap fails as denied, every time.',
    `${CONTRACT}, KeyWrapperErrorKind`,
  ),
  'WRAP-ALLOWED': must('Once the caller may use the KMS key again, keys that it wrapped before unwrap.'),
  'WRAP-ROTATED-OPENS': must('After a rotation, what was wrapped before still unwraps.'),
  'WRAP-ROTATED-NAMES': must('After a rotation, new wraps name the new version.', `${CONTRACT}, WrappedKey.keyId`),
  'WRAP-VERSIONS-DECLARED': should(
    'supports.keyVersions is true exactly where new wraps name a new version.',
    `${CONTRACT}, supports`,
  ),
  'WRAP-VERSION-BINDS': should(
    'A wrapped key that names another version of its KMS key does not unwrap.',
    'Sealring decision 0009',
  ),
  'WRAP-CLOSE-ALONE': must('close ends no other instance: a client that was given stays open.', `${CONTRACT}, close`),
  'WRAP-CLOSE': must('close returns a promise that ends, and so does every call under way and after it.', clause(5)),
  'WRAP-CLOSED': should('After close, calls are unavailable, and a second close does nothing.', KIT),
  'WRAP-INSTANCE-CLOSES': must('The target’s close of an instance ends.', KIT),
  'WRAP-NO-TIMERS': should('A key wrapper that was closed leaves no timers behind.', KIT),
  'WRAP-SIGNAL-LEFT': should('A call that has ended leaves no listener on its signal.', `${CONTRACT}, WrapOptions`),
};
