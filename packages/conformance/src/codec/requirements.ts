import { must, type Requirement, should } from '../requirement.ts';

const CONTRACT = 'RequestStateCodec of the MCP Python SDK 2.3.0 (mcp.server.request_state)';
const SPEC = 'MCP 2026-07-28, multi round-trip requests: requestState is untrusted when it comes back';
const RFC4648 = 'RFC 4648, section 3.5: canonical encoding';
const KIT = 'Sealring conformance kit';

/** What every codec is held to, in the order in which it is tried. */
export const CODEC_REQUIREMENTS: readonly Requirement[] = [
  must('CODEC-SYNCHRONOUS', 'seal and unseal return their results at once, not promises.', CONTRACT),
  must('CODEC-TOKEN-TEXT', 'A token is a string of characters that URLs, forms and JSON leave as they are.', CONTRACT),
  should('CODEC-TOKEN-UNRESERVED', 'A token needs no escaping anywhere in a URL.', 'RFC 3986, section 2.3'),
  must('CODEC-ROUNDTRIP-BYTES', 'unseal returns exactly the bytes that seal was given, whatever they are.', CONTRACT),
  must('CODEC-ROUNDTRIP-VIEW', 'A view of a larger buffer is sealed within its own bounds.', CONTRACT),
  must('CODEC-CALLERS-BUFFER', 'seal neither changes the buffer it was given nor looks at it later.', CONTRACT),
  must(
    'CODEC-OWN-RESULT',
    'The bytes that unseal returns are the caller’s: changing them changes nothing else.',
    CONTRACT,
  ),
  must('CODEC-ANY-ORDER', 'Tokens open in any order, however many were sealed since, and again.', CONTRACT),
  must('CODEC-SIZE-LIMIT', 'A payload that is too long is refused by seal, never cut.', CONTRACT),
  must('CODEC-BIT-FLIP', 'A token with any one bit changed is refused.', SPEC),
  must('CODEC-LONG-PAYLOAD', 'A long token is authenticated in all its length.', SPEC),
  must('CODEC-TRUNCATION', 'A token that was cut, at either end, is refused.', SPEC),
  must('CODEC-EXTENSION', 'A token with something added, at either end, is refused.', SPEC),
  must('CODEC-SPLICE', 'A token put together from others is refused.', SPEC),
  must('CODEC-DOWNGRADE', 'A token that names another version or algorithm is refused.', SPEC),
  should('CODEC-TAG-LENGTH', 'A token has room for a tag that cannot be guessed.', 'NIST SP 800-38D, section 5.2.1.2'),
  must(
    'CODEC-FORGE',
    'A token is not made by trying: of many that are random, or changed with their checksum, none opens.',
    SPEC,
  ),
  must('CODEC-CANONICAL-LAST-CHAR', 'No other last character means the same token.', RFC4648),
  must('CODEC-CANONICAL-PADDING', 'A token with padding added or taken away is refused.', RFC4648),
  must('CODEC-CANONICAL-SPACE', 'A token with white space in or around it is refused.', RFC4648),
  must('CODEC-CANONICAL-ALPHABET', 'A token in the other base64 alphabet is refused.', RFC4648),
  must('CODEC-CANONICAL-CASE', 'A token in other case is refused.', RFC4648),
  must('CODEC-CANONICAL-UNICODE', 'A token with characters that only look alike is refused.', RFC4648),
  must('CODEC-CANONICAL-PERCENT', 'A percent-encoded token is refused.', RFC4648),
  must('CODEC-GARBAGE', 'Text that is no token is refused: empty, short, long, names of object members.', SPEC),
  must('CODEC-HUGE', 'Ten megabytes of text are refused in bounded time.', SPEC),
  must('CODEC-NOT-TEXT', 'What is no string is refused by throwing.', CONTRACT),
  should('CODEC-NOT-TEXT-CLASS', 'What is no string is refused by the error that refuses tokens.', KIT),
  must('CODEC-REFUSAL-CLASS', 'Every token is refused by one and the same error, InvalidRequestState.', CONTRACT),
  must('CODEC-REFUSAL-SECRET', 'A refusal shows no payload: not in its message, its stack or its members.', SPEC),
  should('CODEC-REFUSAL-TOKEN', 'A refusal does not repeat the token.', KIT),
  should('CODEC-REFUSAL-REASON', 'A refusal says why in at most 32 characters.', CONTRACT),
  must('CODEC-AFTER-REFUSAL', 'A refused token changes nothing for the next good one.', CONTRACT),
  must('CODEC-STRANGER', 'A token of another service, with other keys, is refused.', SPEC),
  must('CODEC-PEER', 'Another process with the same keys opens the token.', CONTRACT),
  must('CODEC-ROTATED-OPENS', 'After a rotation, what was sealed before still opens.', CONTRACT),
  should('CODEC-ROTATED-SEALS', 'After a rotation, new tokens are sealed with the new key.', CONTRACT),
  must(
    'CODEC-KEYSTREAM',
    'Two tokens never hide their payloads with the same key stream.',
    'NIST SP 800-38D, section 8',
  ),
  must(
    'CODEC-REPEATS',
    'Of many seals of one payload none comes again after another one.',
    'NIST SP 800-38D, section 8',
  ),
  should('CODEC-DISTINCT', 'Two seals of one payload differ.', KIT),
  must('CODEC-CONFIDENTIAL', 'The payload cannot be read in the token, in any usual encoding.', KIT),
  must('CODEC-KEYLESS', 'Nothing of a token follows from the payload alone, without any key.', KIT),
  must('CODEC-PATTERN', 'Repetitions in payloads do not show in tokens.', 'NIST SP 800-38A, sections 5.3 and 6.1'),
  must(
    'CODEC-NO-COMPRESSION',
    'Payloads of one length have tokens of one length.',
    'CRIME and BREACH: compression before encryption',
  ),
  should('CODEC-QUIET', 'seal and unseal print nothing.', KIT),
  should('CODEC-NO-TIMERS', 'seal and unseal leave no timers and no handles behind.', KIT),
  should(
    'CODEC-NO-GLOBALS',
    'seal and unseal leave globals, built-ins, environment, settings and listeners as they were.',
    KIT,
  ),
  must('CODEC-NO-EXIT', 'seal and unseal leave the process running.', CONTRACT),
  must('CODEC-WORKERS', 'Codecs in worker threads of one process do not get into one another’s way.', KIT),
  should('CODEC-TIMING', 'How long a refusal takes does not tell which byte of the tag is wrong.', KIT),
];
