import { type KeyObject, randomBytes } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { types } from 'node:util';
import { CodecClosedError, type RequestStateCodec, SealUnavailableError } from '@sealring/core';
import { PRINCIPAL_SALT_BYTES, principalClaim, principalMatches } from '../boundary/principal-claim.ts';
import { errorName } from '../boundary/refusal.ts';
import { codecReason, type PreparedCodec, swallow } from '../shared/codec-option.ts';
import { equalText } from '../shared/constant-time.ts';
import { CodecFailedError } from '../shared/errors.ts';
import type { LiveKeys } from '../shared/live-keys.ts';
import { printEnvelope } from './envelope.ts';
import { bindTag, refusal, signToken, verifyToken } from './wire.ts';

/** An authenticated envelope. */
export interface OpenedEnvelope {
  readonly bytes: Uint8Array;
  /** Whether `b`, from the envelope, was made for the text `bound`. */
  isBoundTo(b: unknown, bound: string): boolean;
}

/** Turns envelopes into tokens and back, signed or sealed. */
export interface EnvelopeTokens {
  /**
   * Makes the token for an envelope. If no key may seal, prepares the codec and tries once more, for runtimes where no
   * timer fires between requests.
   */
  seal(payload: unknown, exp: number, bound: string | undefined, signal: AbortSignal | undefined): Promise<string>;
  /** @throws {Error} `malformed` or `mac`. @throws {CodecFailedError} when the codec failed. */
  unseal(token: string, signal: AbortSignal | undefined): Promise<OpenedEnvelope>;
}

/** The SDK's own tokens: readable by clients, and signed with a key. */
export class SignedTokens implements EnvelopeTokens {
  readonly #keys: LiveKeys<KeyObject>;
  readonly #codec: PreparedCodec | undefined;

  /** @param codec - The codec of the ring that some of the keys come from; its `prepare` is called before they are tried. */
  constructor(keys: LiveKeys<KeyObject>, codec: PreparedCodec | undefined) {
    this.#keys = keys;
    this.#codec = codec;
  }

  async seal(
    payload: unknown,
    exp: number,
    bound: string | undefined,
    signal: AbortSignal | undefined,
  ): Promise<string> {
    const key = await sealPrepared(this.#codec, signal, () => this.#keys.seal);
    return signToken(key, printEnvelope(payload, exp, bound === undefined ? undefined : bindTag(key, bound)));
  }

  async unseal(token: string, signal: AbortSignal | undefined): Promise<OpenedEnvelope> {
    // A failed `prepare` is ignored: if the failure matters, reading the keys throws.
    if (this.#codec !== undefined) await prepare(this.#codec, token, signal);
    const opened = verifyToken(this.#keys.open, token) ?? (await this.#tryNewKeys(token, signal));
    if (opened === undefined) throw refusal('mac');
    const { envelope, key } = opened;
    return {
      bytes: envelope,
      isBoundTo: (b, bound) => typeof b === 'string' && equalText(b, bindTag(key, bound)),
    };
  }

  /** Reads the ring and tries again: tokens name no key, so another member may have just published the right key. */
  async #tryNewKeys(token: string, signal: AbortSignal | undefined): Promise<ReturnType<typeof verifyToken>> {
    if (this.#codec === undefined) return undefined;
    const waited = new AbortController();
    const pause = setTimeout(LOOK_MS, undefined, { ref: false, signal: waited.signal }).catch(() => undefined);
    await Promise.race([this.#keys.noteUnknownKey(), pause]);
    waited.abort();
    signal?.throwIfAborted();
    return verifyToken(this.#keys.open, token);
  }
}

/** Longest wait for a key, the same as that of `KmsCodec.prepare`. Milliseconds. */
const LOOK_MS = 2_000;

/**
 * Precedes the envelope in a sealed token. The codec may also serve a boundary, whose claims also have `exp` and `p`:
 * without this mark, a token of the boundary would be accepted here, and the handler would get its principal claim.
 */
const MARK = Buffer.from('sealring/v1/typescript\0');

/** Tokens of a codec, with the envelope as their payload. */
export class SealedTokens implements EnvelopeTokens {
  readonly #codec: PreparedCodec;
  readonly #tokens: RequestStateCodec;

  /** @param tokens - The codec that seals and unseals: `codec` itself, or its codec for this purpose. */
  constructor(codec: PreparedCodec, tokens: RequestStateCodec) {
    this.#codec = codec;
    this.#tokens = tokens;
  }

  async seal(
    payload: unknown,
    exp: number,
    bound: string | undefined,
    signal: AbortSignal | undefined,
  ): Promise<string> {
    // Sealed tokens have no key for a bind tag, so the text is salted and hashed, like the principals in the boundary.
    const b = bound === undefined ? undefined : principalClaim(bound, randomBytes(PRINCIPAL_SALT_BYTES));
    const marked = Buffer.concat([MARK, Buffer.from(printEnvelope(payload, exp, b))]);
    let token: unknown;
    try {
      token = await sealPrepared(this.#codec, signal, () => this.#tokens.seal(marked));
    } catch (error) {
      signal?.throwIfAborted();
      throw codecFailure(error);
    }
    if (typeof token !== 'string' || token === '') throw codecFailure(undefined);
    return token;
  }

  async unseal(token: string, signal: AbortSignal | undefined): Promise<OpenedEnvelope> {
    const unprepared = await prepare(this.#codec, token, signal);
    const payload = this.#unseal(token, unprepared);
    if (!MARK.equals(payload.subarray(0, MARK.length))) throw refusal('malformed');
    return {
      bytes: payload.subarray(MARK.length),
      isBoundTo: (b, bound) => typeof b === 'string' && principalMatches(b, bound),
    };
  }

  #unseal(token: string, unprepared: { readonly error: unknown } | undefined): Uint8Array {
    let payload: unknown;
    try {
      payload = this.#tokens.unseal(token);
    } catch (error) {
      const reason = codecReason(error);
      if (reason === 'malformed') throw refusal('malformed');
      if (reason === undefined) throw codecFailure(error);
      // A key that could not be looked up is not an unknown key (F9).
      if (reason === 'unknown key' && unprepared !== undefined) throw codecFailure(unprepared.error);
      throw refusal('mac');
    }
    if (!types.isUint8Array(payload)) {
      swallow(payload);
      throw codecFailure(undefined);
    }
    return payload;
  }
}

/** Seals; if no key may seal, prepares the codec and tries once more. */
async function sealPrepared<T>(
  codec: PreparedCodec | undefined,
  signal: AbortSignal | undefined,
  seal: () => T,
): Promise<T> {
  try {
    return seal();
  } catch (error) {
    if (codec === undefined || !(error instanceof SealUnavailableError)) throw error;
  }
  await prepare(codec, undefined, signal);
  return seal();
}

/**
 * Prepares the codec for a synchronous seal or unseal.
 * @returns the failure, if any; unsealing decides whether it counts.
 */
async function prepare(
  codec: PreparedCodec,
  token: string | undefined,
  signal: AbortSignal | undefined,
): Promise<{ readonly error: unknown } | undefined> {
  let failure: { readonly error: unknown } | undefined;
  try {
    await codec.prepare?.(token, signal === undefined ? {} : { signal });
  } catch (error) {
    failure = { error };
  }
  signal?.throwIfAborted();
  return failure;
}

/**
 * The error for a codec that failed. The errors of `@sealring/core` contain no secret. The text of another error may
 * contain one, and a client sees the errors that a tool throws.
 */
function codecFailure(error: unknown): Error {
  if (error instanceof SealUnavailableError || error instanceof CodecClosedError) return error;
  return new CodecFailedError(`createRequestStateCodec: the codec failed (${errorName(error)})`);
}
