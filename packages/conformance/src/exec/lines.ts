/** Maximum length of a line, in bytes: a refusal may repeat a token of ten megabytes, escaped. */
const LONGEST_LINE: number = 64 * 1024 * 1024;

const NEWLINE = 0x0a;

/** Splits the output of a program into lines, without their line endings. */
export class Lines {
  #parts: Buffer[] = [];
  #length = 0;
  readonly #longest: number;

  constructor(longest: number = LONGEST_LINE) {
    this.#longest = longest;
  }

  /**
   * The lines that end in `chunk`.
   *
   * @throws {RangeError} for a line that is too long, {@link TypeError} for one that is not UTF-8.
   */
  *add(chunk: Buffer): Iterable<string> {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      this.#keep(chunk.subarray(from, end));
      from = end + 1;
      yield this.rest();
    }
    this.#keep(chunk.subarray(from));
  }

  /** The unfinished last line. @throws {TypeError} if it is not UTF-8. */
  rest(): string {
    const bytes = Buffer.concat(this.#parts.splice(0));
    this.#length = 0;
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  }

  #keep(part: Buffer): void {
    this.#length += part.length;
    if (this.#length > this.#longest) throw new RangeError(`a line of more than ${this.#longest} bytes`);
    if (part.length > 0) this.#parts.push(part);
  }
}
