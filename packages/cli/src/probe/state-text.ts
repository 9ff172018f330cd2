import { inflateRawSync, unzipSync } from 'node:zlib';

/** The fewest bytes that count as text: fewer bytes may be text by chance. */
const SHORTEST_TEXT = 12;
/** The fewest bytes that count as an object in a binary format, which is mostly text: fewer may be so by chance. */
const SHORTEST_MIXTURE = 32;
const TEXT_SHARE = 0.8;
const LARGEST_TEXT = 16_777_216;
/** The fewest bytes that count as raw DEFLATE data: the format has no checksum, so fewer may be valid by chance. */
const SHORTEST_COMPRESSED = 16;
/** The longest authentication tag that may follow the compressed data, in bytes. */
const LONGEST_TAG = 32;
/** A state without a part of this length holds no key id and no authentication tag, and is not a random handle. */
const SHORTEST_TOKEN = 16;

/** Whether anyone can read the state: all or part of it is text (plain, encoded or compressed), or the state is short. */
export function isReadable(state: string): boolean {
  // No encoding of bytes uses other characters.
  if (!/^[\w.~*+/=:-]*$/.test(state)) return true;
  const parts = state.split(/[.:~*]/);
  return (
    parts.every(({ length }) => length < SHORTEST_TOKEN) ||
    parts.some((part) => decodings(part).some(isText) || decodings(part).some(isCompressed))
  );
}

/** The state with one letter or digit changed, at the given share of its length; undefined if it contains neither. */
export function altered(state: string, share: number): string | undefined {
  const from = Math.floor((state.length - 1) * share);
  const places = Array.from(state, (_, index) => index).toSorted((a, b) => Math.abs(a - from) - Math.abs(b - from));
  const at = places.find((place) => /[A-Za-z0-9]/.test(state[place] ?? ''));
  if (at === undefined) return undefined;
  return state.slice(0, at) + next(state[at] ?? '') + state.slice(at + 1);
}

/** The fourth character after this one in its group, so that a hexadecimal digit becomes another hexadecimal digit. */
function next(character: string): string {
  const alphabet = ['ABCDEF', 'GHIJKLMNOPQRSTUVWXYZ', 'abcdef', 'ghijklmnopqrstuvwxyz', '0123456789'].find((one) =>
    one.includes(character),
  );
  return alphabet === undefined ? character : (alphabet[(alphabet.indexOf(character) + 4) % alphabet.length] ?? '');
}

function decodings(part: string): Buffer[] {
  const encodings: Buffer[] = [];
  if (/^[\w+/-]+=*$/.test(part)) encodings.push(Buffer.from(part, 'base64'));
  if (/^(?:[0-9a-f]{2})+$/i.test(part)) encodings.push(Buffer.from(part, 'hex'));
  return encodings.filter(({ length }) => length >= SHORTEST_TEXT);
}

function isCompressed(bytes: Buffer): boolean {
  return [unzipSync, inflateRawSync].some((inflate) => {
    try {
      const { text, read } = inflated(inflate, bytes);
      const isWhole = inflate === unzipSync || (read >= SHORTEST_COMPRESSED && read >= bytes.length - LONGEST_TAG);
      return isWhole && text.length >= SHORTEST_TEXT && isText(text);
    } catch {
      // The bytes are not compressed in this format.
      return false;
    }
  });
}

/** The decompressed text, and the number of compressed bytes in `bytes`. */
function inflated(inflate: typeof unzipSync, bytes: Buffer): { readonly text: Buffer; readonly read: number } {
  const options = { maxOutputLength: LARGEST_TEXT, info: true };
  // @types/node does not declare `info`.
  const { buffer, engine } = inflate(bytes, options) as unknown as { buffer: Buffer; engine: { bytesWritten: number } };
  return { text: buffer, read: engine.bytesWritten };
}

function isText(bytes: Buffer): boolean {
  const printable = bytes.filter((byte) => byte >= 0x20 && byte < 0x7f).length;
  if (bytes.length >= SHORTEST_MIXTURE && printable >= TEXT_SHARE * bytes.length) return true;
  return !/[\p{Cc}\uFFFD]/u.test(bytes.toString('utf8').replaceAll(/[\n\r\t]/g, ''));
}
