import { must, type Requirement, should } from '../requirement.ts';

const CONTRACT = 'KeyWrapper of @sealring/core';
const RING = 'Sealring ring document: what it stores of a wrapped key';
const KIT = 'Sealring conformance kit';

/** What every key wrapper is held to, in the order in which it is tried. */
export const KEY_WRAPPER_REQUIREMENTS: readonly Requirement[] = [
  must('WRAP-FACTS', 'A key wrapper names its provider and its KMS key, and says what it supports.', CONTRACT),
  must('WRAP-PROMISES', 'wrap, unwrap, generate and sign return promises.', CONTRACT),
  must('WRAP-ROUNDTRIP', 'unwrap returns exactly the bytes that wrap was given.', clause(1)),
  must(
    'WRAP-LENGTH-64',
    'Where the service binds no context, 64 bytes go round: a data key and a hash.',
    `${clause(6)}; decision 0004`,
  ),
  should('WRAP-LENGTH-32', 'Where the service binds no context, 32 bytes go round, too.', 'Sealring decision 0004'),
  must('WRAP-VIEW', 'A view of a larger buffer is read within its own bounds.', clause(1)),
  must('WRAP-OWN-BYTES', 'The bytes that a call returns are the caller’s to overwrite.', clause(1)),
  must('WRAP-CALLERS-BYTES', 'No call changes the bytes it was given, or looks at them after it has ended.', clause(1)),
  should('WRAP-CALLERS-BYTES-AT-ONCE', 'wrap reads the data key before it first waits for anything.', KIT),
  must('WRAP-TWICE', 'Two wraps of one data key both open.', clause(1)),
  must('WRAP-GENERATE', 'generate makes a fresh data key each time, and its wrap opens.', `${CONTRACT}, generate`),
  must('WRAP-RECORD', 'A wrapped key names its provider and a KMS key, in a form that a ring can store.', RING),
  should('WRAP-RECORD-SIZE', 'A ring of 64 keys has room for its wraps.', RING),
  must('WRAP-CONFIDENTIAL', 'A wrapped key shows nothing of the data key.', CONTRACT),
  must('WRAP-STORED', 'A wrapped key opens after it was stored as text and read again.', RING),
  must('WRAP-PEER', 'Another instance with the same KMS key opens a wrapped key.', CONTRACT),
  must(
    'WRAP-OPTIONS',
    'A signal and onServiceDate may be given, and the latter is told dates.',
    `${CONTRACT}, WrapOptions`,
  ),
  must('WRAP-CONCURRENT', 'Calls that are made at once do not mix.', CONTRACT),
  must('WRAP-CONTEXT-BINDS', 'A wrapped key under another context is refused as corrupt.', clause(2)),
  must('WRAP-CONTEXT-BOUNDARIES', 'A context whose names and values only read alike is another one.', clause(2)),
  should('WRAP-CONTEXT-ORDER', 'The order of a context’s members does not matter.', KIT),
  should('WRAP-CONTEXT-DECLARED', 'What says that it binds no context binds none.', `${CONTRACT}, supports`),
  must('WRAP-BIT-FLIP', 'A wrapped key with any one bit changed is refused as corrupt.', clause(2)),
  must('WRAP-TRUNCATION', 'A wrapped key that was cut, at either end, is refused as corrupt.', clause(2)),
  must('WRAP-EXTENSION', 'A wrapped key with something added, at either end, is refused as corrupt.', clause(2)),
  must('WRAP-EMPTY', 'A wrapped key of no bytes is refused.', clause(2)),
  must('WRAP-SPLICE', 'A wrapped key put together from two is refused as corrupt.', clause(2)),
  must('WRAP-AFTER-REFUSAL', 'A refused wrapped key changes nothing for the next good one.', clause(1)),
  must('WRAP-OTHER-KEY', 'What another KMS key wrapped is refused as corrupt, under our key’s name.', clause(2)),
  must('WRAP-OTHER-KEY-NAMED', 'A wrapped key that names another KMS key is refused as corrupt.', clause(3)),
  must('WRAP-FOREIGN-PROVIDER', 'A wrapped key that names another provider is refused as corrupt.', clause(3)),
  must('WRAP-BEFORE-CALL', 'Who names another provider or KMS key is refused before any call.', clause(3)),
  must('WRAP-OWNS', 'owns tells its own wrapped keys from others, at once and without a call.', `${CONTRACT}, owns`),
  must('WRAP-UNREACHABLE', 'A service that cannot be reached is unavailable, in bounded time.', clause(5)),
  must('WRAP-ABORT', 'A call under way ends at once, as unavailable, when its signal aborts.', clause(5)),
  must('WRAP-ABORTED', 'A call with a signal that has aborted is unavailable.', clause(5)),
  must('WRAP-ERROR-CLASS', 'Every failure is a KeyWrapperError of a known kind.', clause(4)),
  should('WRAP-ERROR-SUMMARY', 'A failure says of which provider and which operation it is.', `${CONTRACT}, errors`),
  must(
    'WRAP-ERROR-SECRET',
    'A failure shows no data key: not in its message, its stack or anything it holds.',
    `${CONTRACT}, errors`,
  ),
  should('WRAP-ERROR-CAUSE', 'No error of somebody else’s is attached to a failure.', `${CONTRACT}, errors`),
  must('WRAP-OUTPUT-SECRET', 'No call prints a data key.', KIT),
  should('WRAP-INSPECT-SECRET', 'A key wrapper that is printed shows no data key it has handled.', KIT),
  must(
    'WRAP-KEY-LENGTH',
    'A data key of another length is refused by a TypeError or RangeError, before any call.',
    `${clause(4)}, ${clause(6)}`,
  ),
  must(
    'WRAP-KEY-CONSTANT',
    'One byte 32 times is refused as a data key by a TypeError or RangeError, before any call.',
    `${clause(4)}, ${clause(6)}`,
  ),
  must('WRAP-ARGUMENTS', 'Wrong arguments are refused by a TypeError or RangeError, before any call.', clause(4)),
  should(
    'WRAP-ARGUMENT-CONTEXT',
    'A context of anything but strings is refused by a TypeError or RangeError.',
    clause(4),
  ),
  should('WRAP-REJECTS', 'A failure is a rejection, not thrown before there is a promise.', KIT),
  must('WRAP-SIGN', 'What proves no origin signs ring entries, and verifies its signatures.', `${CONTRACT}, sign`),
  must('WRAP-SIGN-BINDS', 'verify says false of a changed entry or signature.', `${CONTRACT}, verify`),
  must('WRAP-VERIFY-LOCAL', 'verify answers at once, and without a call.', `${CONTRACT}, verify`),
  must(
    'WRAP-DISABLED',
    'While the KMS key is disabled, unwrap fails as disabled, every time.',
    `${CONTRACT}, KeyWrapperErrorKind`,
  ),
  must('WRAP-ENABLED', 'Once the KMS key is enabled again, what it wrapped before opens.', CONTRACT),
  must(
    'WRAP-DENIED',
    'While the caller may not use the KMS key, unwrap fails as denied.',
    `${CONTRACT}, KeyWrapperErrorKind`,
  ),
  must('WRAP-ALLOWED', 'Once the caller may use the KMS key again, what it wrapped before opens.', CONTRACT),
  must('WRAP-ROTATED-OPENS', 'After a rotation, what was wrapped before still opens.', CONTRACT),
  must('WRAP-ROTATED-NAMES', 'After a rotation, new wraps name the new version.', `${CONTRACT}, WrappedKey.keyId`),
  should(
    'WRAP-VERSIONS-DECLARED',
    'supports.keyVersions is true exactly where new wraps name a new version.',
    `${CONTRACT}, supports`,
  ),
  should(
    'WRAP-VERSION-BINDS',
    'A wrapped key that names another version of its KMS key does not open.',
    'Sealring decision 0009',
  ),
  must('WRAP-CLOSE', 'close ends, and so does every call under way and after it.', clause(5)),
  should('WRAP-CLOSED', 'After close, calls are unavailable, and a second close does nothing.', KIT),
  should('WRAP-NO-TIMERS', 'A key wrapper that was closed leaves no timers behind.', KIT),
];

function clause(number: number): string {
  return `${CONTRACT}, clause ${number}`;
}
