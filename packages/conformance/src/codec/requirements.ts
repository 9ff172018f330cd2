import { type RequirementTable, requiredBy } from '../requirement.ts';

/** Sources of the requirements for codecs. */
const CONTRACT = 'RequestStateCodec of the MCP Python SDK 2.3.0 (mcp.server.request_state)';
const SPEC = 'MCP 2026-07-28, multi round-trip requests: requestState is untrusted when it comes back';
const RFC4648 = 'RFC 4648, section 3.5: canonical encoding';
const NO_IO = 'RequestStateCodec of @sealring/core: synchronous, without I/O';
const REFUSAL = 'InvalidRequestState of @sealring/core: no part of the token is kept';
const NOT_KEPT = 'RequestStateCodec of @sealring/core: the payload is neither kept nor changed';
const KIT = 'Sealring conformance kit';

const { must, should } = requiredBy(CONTRACT);

/** The requirements for codecs, in the order of the checks. */
export const CODEC_TABLE: RequirementTable = {
  // Checked first, since a close that overwrites a shared key leaves all later instances with the same wrong key.
  'CODEC-CLOSE-ALONE': must('Closing one instance does not affect another one with the same keys.', KIT),
  'CODEC-SYNCHRONOUS': must('seal and unseal return their results synchronously, not as promises.'),
  'CODEC-TOKEN-TEXT': must('A token is a string of characters that URLs, forms and JSON leave unchanged.'),
  'CODEC-TOKEN-UNRESERVED': should('A token needs no escaping anywhere in a URL.', 'RFC 3986, section 2.3'),
  'CODEC-ANY-ORDER': must('Tokens can be unsealed in any order, more than once, and after many later seals.'),
  'CODEC-ROUNDTRIP-BYTES': must('unseal returns exactly the bytes that were passed to seal, for any bytes.'),
  'CODEC-ROUNDTRIP-VIEW': must('seal reads a view of a larger buffer only within its bounds.'),
  'CODEC-ROUNDTRIP-REALM': should(
    'seal accepts shared memory, and a Uint8Array of another realm, as in some test runners.',
    KIT,
  ),
  'CODEC-CALLERS-BUFFER': must('seal does not modify its input buffer or read it after returning.'),
  'CODEC-OWN-RESULT': must('Overwriting the bytes that unseal returned has no side effects.'),
  'CODEC-NOT-KEPT': must('seal keeps neither its payload nor a visible copy of it.', NOT_KEPT),
  'CODEC-SIZE-LIMIT': must('seal refuses a payload that is too long instead of truncating it.'),
  'CODEC-BIT-FLIP': must('A token with any single bit changed is refused.', SPEC),
  'CODEC-LONG-PAYLOAD': must('A long token is authenticated over its whole length.', SPEC),
  'CODEC-TRUNCATION': must('A token truncated at either end is refused.', SPEC),
  'CODEC-EXTENSION': must('A token is refused if it, or a part of it, is extended at either end.', SPEC),
  'CODEC-SPLICE': must('A token assembled from parts of other tokens is refused.', SPEC),
  'CODEC-DOWNGRADE': must('A token that names another version or algorithm is refused.', SPEC),
  'CODEC-TAG-LENGTH': should(
    'A token is long enough for a tag that cannot be guessed.',
    'NIST SP 800-38D, section 5.2.1.2',
  ),
  'CODEC-FORGE': must(
    'A token cannot be guessed: random tokens and changed tokens with a corrected checksum are refused.',
    SPEC,
  ),
  'CODEC-CANONICAL-LAST-CHAR': must('A token with a different last character is refused.', RFC4648),
  'CODEC-CANONICAL-PADDING': must('A token with padding added or removed is refused.', RFC4648),
  'CODEC-CANONICAL-SPACE': must('A token with white space in or around it is refused.', RFC4648),
  'CODEC-CANONICAL-ALPHABET': must('A token in the other base64 alphabet is refused.', RFC4648),
  'CODEC-CANONICAL-CASE': must('A token with changed letter case is refused.', RFC4648),
  'CODEC-CANONICAL-UNICODE': must('A token with look-alike Unicode characters is refused.', RFC4648),
  'CODEC-CANONICAL-PERCENT': must('A token with percent-encoding or other escapes is refused.', RFC4648),
  'CODEC-GARBAGE': must(
    'Text that is not a token is refused: empty, short, long, or the name of an object property.',
    SPEC,
  ),
  'CODEC-HUGE': must('Text of ten megabytes is refused in bounded time.', SPEC),
  'CODEC-HUGE-QUICK': should('Text of ten megabytes is refused within two seconds.', KIT),
  'CODEC-NOT-TEXT': must('unseal throws for a value that is not a string.'),
  'CODEC-NOT-TEXT-CLASS': should(
    'For a value that is not a string, unseal throws the error for a bad token or a TypeError.',
    KIT,
  ),
  'CODEC-REFUSAL-CLASS': must('For every refused token, unseal throws the same error, InvalidRequestState.'),
  'CODEC-REFUSAL-SECRET': must('A refusal does not reveal the payload in its message, stack or properties.', SPEC),
  'CODEC-REFUSAL-TOKEN': must('A refusal does not repeat the token.', REFUSAL),
  'CODEC-REFUSAL-REASON': should('A refusal gives its reason in at most 32 characters.'),
  'CODEC-AFTER-REFUSAL': must('A refused token does not affect the next valid one.'),
  'CODEC-STRANGER': must('A token from another service with different keys is refused.', SPEC),
  'CODEC-PEER': must('Another process with the same keys unseals the token.'),
  'CODEC-ROTATED-OPENS': must('After a rotation, earlier tokens can still be unsealed.'),
  'CODEC-ROTATED-SEALS': must('After a rotation, new tokens are sealed with the new key.'),
  'CODEC-REPEATS': must(
    'When one payload is sealed many times, no token reappears after a different one.',
    'NIST SP 800-38D, section 8',
  ),
  'CODEC-DISTINCT': should('Two seals of one payload produce different tokens.', KIT),
  'CODEC-CONFIDENTIAL': must('The payload cannot be read from the token in any common encoding.', KIT),
  'CODEC-PATTERN': must('Repetitions in payloads do not show in tokens.', 'NIST SP 800-38A, sections 5.3 and 6.1'),
  'CODEC-NO-COMPRESSION': should(
    'Payloads of equal length produce tokens of equal length.',
    'CRIME and BREACH: compression before encryption',
  ),
  'CODEC-KEYSTREAM': must(
    'No two tokens encrypt their payloads with the same key stream.',
    'NIST SP 800-38D, section 8',
  ),
  'CODEC-KEYLESS': must('No part of a token can be derived from the payload without a key.', KIT),
  'CODEC-QUIET': must('seal and unseal print nothing.', NO_IO),
  'CODEC-NO-IO': must('seal and unseal do not access files, other processes or services.', NO_IO),
  'CODEC-NO-TIMERS': should('seal and unseal leave no timers or handles behind.', KIT),
  'CODEC-NO-GLOBALS': should(
    'A codec does not change globals, built-ins, the environment, settings or listeners.',
    KIT,
  ),
  'CODEC-NO-EXIT': must('seal and unseal do not end the process.'),
  'CODEC-ENDS': should('A closed codec leaves no timer that keeps the process alive.', KIT),
  'CODEC-CLOSES': must('Closing an instance of the target completes.', KIT),
  'CODEC-WORKERS': must('Codecs in worker threads of one process do not interfere with each other.', KIT),
  'CODEC-TIMING': should('The duration of a refusal does not reveal which byte of the tag is wrong.', KIT),
  // Checked last, since a codec may react to a different time by changing its keys.
  'CODEC-CLOCK-SKEW': should('A peer whose clock is a minute ahead or behind unseals the token.', CONTRACT),
  'CODEC-AGE': should(
    'A token can still be unsealed nine minutes after it was sealed.',
    'RequestStateSecurity of the MCP Python SDK 2.3.0: ttl',
  ),
};
