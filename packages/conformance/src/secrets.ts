import { inspect, types } from 'node:util';

/** Number of consecutive bytes of a key that are too many to occur elsewhere by chance. */
const TELLING_BYTES = 8;
/**
 * The length of the pieces that are searched for in base64. They are longer because base64 encodes groups of three
 * bytes, and a recognizable piece must be complete.
 */
const BASE64_BYTES = 12;
/** Text that is long enough to encode at least {@link TELLING_BYTES} bytes. */
const ENCODED = /[A-Za-z0-9+/_-]{11,}/g;
const HEX = /^[0-9a-f]+$/i;
const MOST_OBJECTS = 20_000;

/** Text and bytes that may contain a secret. */
export interface Readable {
  readonly texts: readonly string[];
  readonly bytes: readonly Uint8Array[];
}

export function contentsOf(error: unknown): Readable {
  const all = reachableFrom(error);
  const texts = [printed(error, 10), ...all.filter((value) => typeof value === 'string')];
  return { texts, bytes: all.flatMap((value) => (isHolder(value) ? (bytesIn(value) ?? []) : [])) };
}

/** The value and everything that is reachable from it. Byte arrays are not searched for members. */
export function reachableFrom(root: unknown): readonly unknown[] {
  const seen = new Set<unknown>();
  const waiting: unknown[] = [root];
  while (waiting.length > 0 && seen.size < MOST_OBJECTS) {
    const value = waiting.pop();
    if (isHolder(value) && !seen.has(value) && bytesIn(value) === undefined) waiting.push(...membersOf(value));
    seen.add(value);
  }
  return [...seen];
}

function isHolder(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}

/** A value as `inspect` and JSON print it. */
export function printed(value: unknown, depth: number): string {
  const shown = inspect(value, { showHidden: true, depth, maxStringLength: 100_000, maxArrayLength: 10_000 });
  try {
    return `${shown}\n${JSON.stringify(value) ?? ''}\n${String(value)}`;
  } catch {
    return shown;
  }
}

/** Whether the contents show a key, or a recognizable piece of it, in any common encoding, or as text within bytes. */
export function shows({ texts, bytes }: Readable, key: Uint8Array): boolean {
  const pieces = windows(key, TELLING_BYTES);
  const inside = [...texts, ...bytes.flatMap(textsIn)];
  const decoded = inside.flatMap(decodedIn);
  const all = [...bytes, ...decoded];
  if (all.some((one) => pieces.some((piece) => Buffer.from(one).includes(piece)))) return true;
  const forms = [
    ...pieces.flatMap(formsOf),
    ...windows(key, BASE64_BYTES).flatMap(encodings),
    // UTF-8 decoding is lossy, but keeps most of a key.
    Buffer.from(key).toString('utf8'),
    jsonOf(key.subarray(0, TELLING_BYTES)),
    ...(key.length < TELLING_BYTES ? [] : [key, key.toReversed()].map(numberOf)),
  ];
  // Long lists are printed in columns, over several lines.
  const joined = [...inside, ...decoded.flatMap(textsIn)].flatMap((text) => [text, text.replaceAll(/\s+/g, ' ')]);
  return joined.some((text) => forms.some((form) => text.includes(form)));
}

function textsIn(bytes: Uint8Array): readonly string[] {
  const buffer = Buffer.from(bytes);
  return [buffer.toString('latin1'), buffer.toString('utf16le')];
}

/**
 * Decodes the parts of a text that may be base64 or hexadecimal. The text may be a request body in base64, for example,
 * that in turn contains the key in base64.
 */
function decodedIn(text: string): readonly Buffer[] {
  const pieces = text.match(ENCODED) ?? [];
  return pieces.flatMap((piece) => [
    Buffer.from(piece, 'base64'),
    ...(HEX.test(piece) ? [Buffer.from(piece, 'hex')] : []),
  ]);
}

export function encodings(bytes: Uint8Array): readonly string[] {
  const buffer = Buffer.from(bytes);
  // The three alignments of base64, without the characters that depend on neighbouring bytes.
  const shifted = [0, 1, 2].flatMap((shift) => {
    const padded = Buffer.concat([Buffer.alloc(shift), buffer]);
    const inner = (encoded: string): string => encoded.slice(shift === 0 ? 0 : shift + 1, -4);
    return [inner(padded.toString('base64')), inner(padded.toString('base64url'))];
  });
  return [buffer.toString('latin1'), buffer.toString('hex'), buffer.toString('hex').toUpperCase(), ...shifted];
}

function windows(key: Uint8Array, length: number): readonly Buffer[] {
  const bytes = Buffer.from(key);
  return Array.from({ length: Math.max(1, key.length - length + 1) }, (_, i) => bytes.subarray(i, i + length));
}

function formsOf(piece: Uint8Array): readonly string[] {
  const pairs = [...piece].map((byte) => byte.toString(16).padStart(2, '0'));
  const hex = ['', ' ', ':', ', 0x', ',0x', '%', '\\x'].map((between) => pairs.join(between));
  const decimal = [piece.join(','), piece.join(', '), piece.join(' ')];
  return [Buffer.from(piece).toString('latin1'), ...hex, ...hex.map((form) => form.toUpperCase()), ...decimal];
}

function numberOf(key: Uint8Array): string {
  return BigInt(`0x${Buffer.from(key).toString('hex')}`).toString();
}

function jsonOf(piece: Uint8Array): string {
  return [...piece].map((byte, i) => `"${i}":${byte}`).join(',');
}

function bytesIn(value: object): Uint8Array | undefined {
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  if (types.isAnyArrayBuffer(value)) return new Uint8Array(value);
  const isList = Array.isArray(value) && value.length >= TELLING_BYTES;
  return isList && value.every((item) => typeof item === 'number') ? Uint8Array.from(value) : undefined;
}

/** Own and inherited members, including non-enumerable ones and getters, and the items of a collection. */
function membersOf(value: object): readonly unknown[] {
  const members: unknown[] = [];
  for (let at: object | null = value; at !== null && !isBuiltIn(at); at = Reflect.getPrototypeOf(at)) {
    for (const name of Reflect.ownKeys(at)) {
      if (typeof name === 'string') members.push(name);
      try {
        members.push(Reflect.get(at, name, value));
      } catch {
        // A getter that throws reveals nothing.
      }
    }
  }
  if (types.isMap(value)) members.push(...value.keys(), ...value.values());
  if (types.isSet(value)) members.push(...value);
  return members;
}

function isBuiltIn(prototype: object): boolean {
  return [Object, Function, Array, Map, Set, Error].some((built) => built.prototype === prototype);
}
