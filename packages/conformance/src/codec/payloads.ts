import { text } from '../bytes.ts';
import type { Random } from '../random.ts';
import { LONGEST_PAYLOAD } from './target.ts';

/** Payloads that break codecs which take bytes for text, or text for JSON; shortest first. Created for each trial. */
export function edgePayloads(random: Random): readonly Uint8Array[] {
  return [
    new Uint8Array(0),
    ...[0x00, 0x0a, 0x20, 0x22, 0x7b, 0x80, 0xff].map((byte) => Uint8Array.of(byte)),
    Uint8Array.of(0, 0),
    Uint8Array.of(0x41, 0),
    Uint8Array.of(0, 0x41),
    // Not UTF-8: a lone continuation, an overlong slash, half a surrogate pair, a cut sequence.
    Uint8Array.of(0xc0, 0xaf),
    Uint8Array.of(0xed, 0xa0, 0x80),
    Uint8Array.of(0xf0, 0x9f, 0x98),
    // A byte order mark, which decoders of text swallow.
    Uint8Array.of(0xef, 0xbb, 0xbf, 0x41),
    text('{"a":1}'),
    text(' {"a": 1} '),
    text('null'),
    text('a\r\nb\rc\nd\0e\tf '),
    text('é'),
    text('é'),
    ...[15, 16, 17, 31, 32, 33].map((length) => random.bytes(length)),
    Uint8Array.from({ length: 256 }, (_, i) => i),
    new Uint8Array(1_000),
    random.bytes(4_097),
    random.bytes(LONGEST_PAYLOAD),
  ];
}
