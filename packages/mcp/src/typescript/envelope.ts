import { ownMember } from '../shared/own-member.ts';
import { refusal } from './wire.ts';

/** What is signed or sealed around a payload. `b` shows that it is bound, not to what. */
export interface Envelope {
  readonly payload: unknown;
  readonly b: unknown;
}

/**
 * The text of an envelope, members in the SDK's order. A payload that JSON has no text for is left out, as there.
 * @throws {TypeError} for a payload that cannot be serialised.
 */
export function printEnvelope(payload: unknown, exp: number, b: string | undefined): string {
  let failure: unknown;
  try {
    return JSON.stringify({ p: payload, exp, b });
  } catch (error) {
    failure = error;
  }
  // The one text of the engine's that quotes nothing of the payload; others name its members.
  const isBigint = failure instanceof TypeError && failure.message === BIGINT;
  throw new TypeError(isBigint ? BIGINT : 'createRequestStateCodec: the payload cannot be serialised as JSON');
}

const BIGINT = 'Do not know how to serialize a BigInt';

/**
 * Reads an authenticated envelope.
 * @throws {Error} `malformed` or `expired`.
 */
export function readEnvelope(bytes: Uint8Array, nowSeconds: number): Envelope {
  const envelope = parse(bytes);
  const exp = ownMember(envelope, 'exp');
  if (typeof exp !== 'number' || exp < Math.floor(nowSeconds)) throw refusal('expired');
  return { payload: ownMember(envelope, 'p'), b: ownMember(envelope, 'b') };
}

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw refusal('malformed');
  }
}
