import { type RequirementTable, requiredBy } from '../requirement.ts';

/** Where the requirements of codecs come from. */
const CONTRACT = 'RequestStateCodec of the MCP Python SDK 2.3.0 (mcp.server.request_state)';
const SPEC = 'MCP 2026-07-28, multi round-trip requests: requestState is untrusted when it comes back';
const RFC4648 = 'RFC 4648, section 3.5: canonical encoding';
const KIT = 'Sealring conformance kit';

const { must, should } = requiredBy(CONTRACT);

/** What every codec is held to, in the order in which it is tried. */
export const CODEC_TABLE: RequirementTable = {
  'CODEC-SYNCHRONOUS': must('seal and unseal return their results at once, not promises.'),
  'CODEC-TOKEN-TEXT': must('A token is a string of characters that URLs, forms and JSON leave as they are.'),
  'CODEC-TOKEN-UNRESERVED': should('A token needs no escaping anywhere in a URL.', 'RFC 3986, section 2.3'),
  'CODEC-ANY-ORDER': must('Tokens are unsealed in any order, however many were sealed since, and again.'),
  'CODEC-ROUNDTRIP-BYTES': must('unseal returns exactly the bytes that seal was given, whatever they are.'),
  'CODEC-ROUNDTRIP-VIEW': must('A view of a larger buffer is sealed within its own bounds.'),
  'CODEC-CALLERS-BUFFER': must('seal neither changes the buffer it was given nor looks at it later.'),
  'CODEC-OWN-RESULT': must('The bytes that unseal returns are the caller’s: changing them changes nothing else.'),
  'CODEC-SIZE-LIMIT': must('A payload that is too long is refused by seal, never cut.'),
  'CODEC-BIT-FLIP': must('A token with any one bit changed is refused.', SPEC),
  'CODEC-LONG-PAYLOAD': must('A long token is authenticated in all its length.', SPEC),
  'CODEC-TRUNCATION': must('A token that was cut, at either end, is refused.', SPEC),
  'CODEC-EXTENSION': must('A token with something added, at either end, is refused.', SPEC),
  'CODEC-SPLICE': must('A token put together from others is refused.', SPEC),
  'CODEC-DOWNGRADE': must('A token that names another version or algorithm is refused.', SPEC),
  'CODEC-TAG-LENGTH': should('A token has room for a tag that cannot be guessed.', 'NIST SP 800-38D, section 5.2.1.2'),
  'CODEC-FORGE': must(
    'A token cannot be guessed: of many that are random, or changed with their checksum, none is unsealed.',
    SPEC,
  ),
  'CODEC-CANONICAL-LAST-CHAR': must('No other last character means the same token.', RFC4648),
  'CODEC-CANONICAL-PADDING': must('A token with padding added or taken away is refused.', RFC4648),
  'CODEC-CANONICAL-SPACE': must('A token with white space in or around it is refused.', RFC4648),
  'CODEC-CANONICAL-ALPHABET': must('A token in the other base64 alphabet is refused.', RFC4648),
  'CODEC-CANONICAL-CASE': must('A token in other case is refused.', RFC4648),
  'CODEC-CANONICAL-UNICODE': must('A token with characters that only look alike is refused.', RFC4648),
  'CODEC-CANONICAL-PERCENT': must('A percent-encoded token, or one with other escapes, is refused.', RFC4648),
  'CODEC-GARBAGE': must('Text that is not a token is refused: empty, short, long, names of object members.', SPEC),
  'CODEC-HUGE': must('Ten megabytes of text are refused in bounded time.', SPEC),
  'CODEC-HUGE-QUICK': should('Ten megabytes of text are refused within two seconds.', KIT),
  'CODEC-NOT-TEXT': must('A value that is not a string is refused by throwing.'),
  'CODEC-NOT-TEXT-CLASS': should('A value that is not a string is refused by the error that refuses tokens.', KIT),
  'CODEC-REFUSAL-CLASS': must('Every token is refused by one and the same error, InvalidRequestState.'),
  'CODEC-REFUSAL-SECRET': must('A refusal shows no payload: not in its message, its stack or its members.', SPEC),
  'CODEC-REFUSAL-TOKEN': should('A refusal does not repeat the token.', KIT),
  'CODEC-REFUSAL-REASON': should('A refusal says why in at most 32 characters.'),
  'CODEC-AFTER-REFUSAL': must('A refused token changes nothing for the next good one.'),
  'CODEC-STRANGER': must('A token of another service, with other keys, is refused.', SPEC),
  'CODEC-PEER': must('Another process with the same keys unseals the token.'),
  'CODEC-ROTATED-OPENS': must('After a rotation, what was sealed before is still unsealed.'),
  'CODEC-ROTATED-SEALS': should('After a rotation, new tokens are sealed with the new key.'),
  'CODEC-REPEATS': must(
    'Of many seals of one payload none comes again after another one.',
    'NIST SP 800-38D, section 8',
  ),
  'CODEC-DISTINCT': should('Two seals of one payload differ.', KIT),
  'CODEC-CONFIDENTIAL': must('The payload cannot be read in the token, in any usual encoding.', KIT),
  'CODEC-PATTERN': must('Repetitions in payloads do not show in tokens.', 'NIST SP 800-38A, sections 5.3 and 6.1'),
  'CODEC-NO-COMPRESSION': must(
    'Payloads of one length have tokens of one length.',
    'CRIME and BREACH: compression before encryption',
  ),
  'CODEC-KEYSTREAM': must(
    'Two tokens never hide their payloads with the same key stream.',
    'NIST SP 800-38D, section 8',
  ),
  'CODEC-KEYLESS': must('Nothing of a token follows from the payload alone, without any key.', KIT),
  'CODEC-QUIET': should('seal and unseal print nothing.', KIT),
  'CODEC-NO-IO': should(
    'seal and unseal call nothing that reaches a file, another process or a service.',
    'RequestStateCodec of @sealring/core: synchronous, without I/O',
  ),
  'CODEC-NO-TIMERS': should('seal and unseal leave no timers and no handles behind.', KIT),
  'CODEC-NO-GLOBALS': should(
    'A codec leaves globals, built-ins, environment, settings and listeners as they were.',
    KIT,
  ),
  'CODEC-NO-EXIT': must('seal and unseal leave the process running.'),
  'CODEC-ENDS': should('A codec that was closed leaves no timer that keeps the process alive.', KIT),
  'CODEC-CLOSES': must('The target’s close of an instance ends.', KIT),
  'CODEC-WORKERS': must('Codecs in worker threads of one process do not get into one another’s way.', KIT),
  'CODEC-TIMING': should('How long a refusal takes does not show which byte of the tag is wrong.', KIT),
};
