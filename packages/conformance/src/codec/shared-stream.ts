import { decodings } from './decodings.ts';

/** Shorter payloads are not evidence: of many pairs, 96 bits agree by chance in one of 2^61. */
export const LEAST_BYTES = 12;

/** A payload of at least {@link LEAST_BYTES}, and its token. */
export interface Sealed {
  readonly payload: Uint8Array;
  readonly token: string;
}

/** The bits of a number that a double holds. */
const HIGH = 2 ** 21;

/**
 * Whether two of many tokens hide their payloads with the same key stream: the exclusive or of token and payload is the
 * same for both, somewhere. Payloads are random, and of one length.
 */
export function sharedStream(sealed: readonly Sealed[]): boolean {
  const [first] = sealed;
  if (first === undefined) return false;
  const all = sealed.map(({ token }) => decodings(token));
  for (const form of formsOf(first)) {
    const tokens = all.map((forms) => Buffer.from(forms[form] ?? []));
    const last = Math.max(...lengthsOf(tokens)) - first.payload.length;
    for (let at = 0; at <= last; at++) if (sharedAt(sealed, tokens, at)) return true;
  }
  return false;
}

/** Which decodings of a token are long enough to hold its payload; each once. */
function formsOf({ payload, token }: Sealed): readonly number[] {
  const forms = decodings(token).map((bytes) => Buffer.from(bytes).toString('latin1'));
  return forms.flatMap((form, i) => (form.length >= payload.length && forms.indexOf(form) === i ? [i] : []));
}

function lengthsOf(tokens: readonly Buffer[]): ReadonlySet<number> {
  return new Set(tokens.map(({ length }) => length));
}

function sharedAt(sealed: readonly Sealed[], tokens: readonly Buffer[], at: number): boolean {
  // A number for each, so that alike ones are found by sorting.
  const streams = new Float64Array(sealed.length);
  for (const [i, { payload }] of sealed.entries()) streams[i] = beginningOf(payload, tokens[i], at) ?? -1 - i;
  const sorted = streams.toSorted();
  const again = new Set(sorted.filter((stream, i) => stream >= 0 && stream === sorted[i + 1]));
  if (again.size === 0) return false;
  const seen = new Set<string>();
  for (const [i, { payload }] of sealed.entries()) {
    if (!again.has(streams[i] ?? -1)) continue;
    const stream = Buffer.from(payload.map((byte, j) => byte ^ (tokens[i]?.[at + j] ?? 0))).toString('latin1');
    if (seen.has(stream)) return true;
    seen.add(stream);
  }
  return false;
}

/** 53 bits of the key stream at a place. */
function beginningOf(payload: Uint8Array, token: Buffer | undefined, at: number): number | undefined {
  if (token === undefined || at + payload.length > token.length) return undefined;
  const plain = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
  const high = (token.readUInt32BE(at) ^ plain.readUInt32BE(0)) >>> 0;
  const low = (token.readUInt32BE(at + 4) ^ plain.readUInt32BE(4)) >>> 11;
  return high * HIGH + low;
}
