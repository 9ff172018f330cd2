import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';

/** Maximum length of an input, in bytes; repetitions stop here. */
const LONGEST = 8_192;
/** Bytes that parsers treat specially: ends of ranges, quotes, brackets, signs, characters of base64url and JSON. */
const TELLING = Buffer.from('\0\x01\t\n\r "\'+,-./019:=AZ[\\]_az{|}~\x7f\x80\xbf\xc0\xef\xfe\xff', 'latin1');
const NUMBERS = ['0', '-1', '1e400', '-0', '4294967296', '9007199254740993', '1.5', '1e-7', 'NaN'];

/** Makes inputs from others by small changes. Everything random comes from the seed. */
export class Mutator {
  readonly #generator;
  readonly #words: readonly Buffer[];

  constructor(seed: number, words: readonly string[]) {
    this.#generator = xoroshiro128plus(seed);
    this.#words = [...words, ...NUMBERS].map((word) => Buffer.from(word, 'utf8'));
  }

  /** A changed copy of one of `inputs`. */
  next(inputs: readonly Uint8Array[]): Uint8Array {
    let input = this.#pick(inputs);
    for (let changes = 1 + this.#below(4); changes > 0; changes--) input = this.#change(input, inputs);
    return input.length > LONGEST ? input.subarray(0, LONGEST) : input;
  }

  #change(input: Uint8Array, inputs: readonly Uint8Array[]): Uint8Array {
    const at = this.#below(input.length + 1);
    const count = Math.min(1 + this.#below(16), input.length - at);
    switch (this.#below(10)) {
      case 0:
        return changed(input, at, (byte) => byte ^ (1 << this.#below(8)));
      case 1:
        return changed(input, at, () => this.#below(256));
      case 2:
        return changed(input, at, () => this.#pick(TELLING));
      case 3:
        return spliced(input, at, count, NOTHING);
      case 4:
        return spliced(input, at, 0, input.subarray(at, at + count));
      case 5:
        return spliced(input, at, this.#below(2) * count, this.#pick(this.#words));
      case 6:
        return input.subarray(0, at);
      case 7: {
        const other = this.#pick(inputs);
        return spliced(input, at, input.length - at, other.subarray(this.#below(other.length + 1)));
      }
      case 8:
        return spliced(input, at, 0, Buffer.of(this.#pick(TELLING)));
      default:
        return this.#below(16) === 0
          ? repeated(input, at, count, 1 + this.#below(600))
          : changed(input, at, (byte) => byte + 1);
    }
  }

  #below(end: number): number {
    return end === 0 ? 0 : (this.#generator.next() >>> 0) % end;
  }

  #pick<Item>(items: ArrayLike<Item>): Item {
    return items[this.#below(items.length)] as Item;
  }
}

const NOTHING = Buffer.alloc(0);

function changed(input: Uint8Array, at: number, change: (byte: number) => number): Uint8Array {
  const copy = new Uint8Array(input);
  if (at < copy.length) copy[at] = change(copy[at] as number);
  return copy;
}

function spliced(input: Uint8Array, at: number, remove: number, insert: Uint8Array): Uint8Array {
  const out = new Uint8Array(input.length - remove + insert.length);
  out.set(input.subarray(0, at));
  out.set(insert, at);
  out.set(input.subarray(at + remove), at + insert.length);
  return out;
}

function repeated(input: Uint8Array, at: number, count: number, times: number): Uint8Array {
  const part = input.subarray(at, at + count);
  const copies = Math.min(times, Math.floor(LONGEST / Math.max(1, part.length)));
  return spliced(input, at, 0, Buffer.concat(Array.from({ length: copies }, () => part)));
}
