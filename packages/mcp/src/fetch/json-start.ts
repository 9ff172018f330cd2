/** The first bytes of a message's JSON: `{`, `[`, and `/` or `#` of a comment. */
const FIRST: readonly number[] = [0x7b, 0x5b, 0x2f, 0x23];
/** Bytes that can precede a message: byte order marks, and the UTF-8 of white space that many languages remove. */
const SKIPPED: ReadonlySet<number> = new Set(
  Buffer.from(
    'feff efbbbf c285 c2a0 e19a80 e28080 8182838485868788898a a8a9af e2819f e38080'.replaceAll(' ', ''),
    'hex',
  ),
);
/** Some parsers also skip control characters. */
const SPACE = 0x20;
const LAST_ASCII = 0x7f;
/** Bytes that follow the first byte of a message after white space: `{"`, `{'`, `[{`, `[[` and `["`. */
const SECOND: ReadonlyMap<number, readonly number[]> = new Map([
  [0x7b, [0x22, 0x27]],
  [0x5b, [0x7b, 0x5b, 0x22]],
]);

/** Determines from the first bytes of a body, which can arrive in parts, whether the body may be JSON. */
export class JsonStart {
  #first: number | undefined;
  #isGarbled = false;

  /** Whether the body may be JSON; undefined until this is known. */
  mayBeJson(part: Uint8Array): boolean | undefined {
    for (const byte of part) {
      if (byte <= SPACE || SKIPPED.has(byte)) continue;
      if (byte > LAST_ASCII) {
        // Some servers decode a body without its invalid bytes. Most bodies with such a byte at the beginning are binary,
        // so they are read only if the next two characters are those of a message.
        this.#isGarbled = true;
        continue;
      }
      if (this.#first !== undefined) return SECOND.get(this.#first)?.includes(byte) === true;
      if (!this.#isGarbled) return FIRST.includes(byte);
      if (!SECOND.has(byte)) return false;
      this.#first = byte;
    }
    return undefined;
  }
}
