import { ownMember } from '../shared/own-member.ts';
import { refusal } from './wire.ts';

/** The payload with its binding, as it is signed or sealed. `b` does not reveal what the payload is bound to. */
export interface Envelope {
  readonly payload: unknown;
  readonly b: unknown;
}

/**
 * Encodes an envelope, with the members in the SDK's order. As in the SDK, a payload that JSON cannot represent is left out.
 * @throws {TypeError} for a payload that cannot be serialized.
 */
export function printEnvelope(payload: unknown, exp: number, b: string | undefined): string {
  let failure: unknown;
  try {
    return JSON.stringify({ p: payload, exp, b });
  } catch (error) {
    failure = error;
  }
  // Only this message of the engine is passed on: the others name members of the payload.
  const isBigint = failure instanceof TypeError && failure.message === BIGINT;
  throw new TypeError(isBigint ? BIGINT : 'createRequestStateCodec: the payload cannot be serialized as JSON');
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
