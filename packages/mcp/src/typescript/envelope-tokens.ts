import { type KeyObject, randomBytes } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { CodecClosedError, type RequestStateCodec, SealUnavailableError } from '@sealring/core';
import { PRINCIPAL_SALT_BYTES, principalClaim, principalMatches } from '../boundary/principal-claim.ts';
import { errorName } from '../boundary/refusal.ts';
import { codecReason, isSealUnavailable, type PreparedCodec, swallow } from '../shared/codec-option.ts';
import { equalText } from '../shared/constant-time.ts';
import type { LiveKeys } from '../shared/live-keys.ts';
import { printEnvelope } from './envelope.ts';
import { bindTag, openToken, refusal, signToken } from './wire.ts';

/** An envelope that was authenticated. */
export interface OpenedEnvelope {
  readonly bytes: Uint8Array;
  /** Whether its `b` was made for the text `bound`. */
  isBoundTo(b: unknown, bound: string): boolean;
}

/** How an envelope becomes a token: signed or sealed. */
export interface EnvelopeTokens {
  /** When no key may seal, prepares the codec and tries once more: where timers do not run between requests. */
  seal(payload: unknown, exp: number, bound: string | undefined, signal: AbortSignal | undefined): Promise<string>;
  /** @throws {Error} `malformed` or `mac`; anything else is a failure of the codec's. */
  open(token: string, signal: AbortSignal | undefined): Promise<OpenedEnvelope>;
}

/** The SDK's own tokens: everybody can read them, nobody without a key can make one. */
export class SignedTokens implements EnvelopeTokens {
  readonly #keys: LiveKeys<KeyObject>;
  readonly #codec: PreparedCodec | undefined;

  /** @param codec - The ring that some of the keys come from, asked to `prepare` before they are tried. */
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

  async open(token: string, signal: AbortSignal | undefined): Promise<OpenedEnvelope> {
    // What is left of a failure shows when the keys are asked for.
    if (this.#codec !== undefined) await prepare(this.#codec, token, signal);
    const opened = openToken(this.#keys.open, token) ?? (await this.#openAgain(token, signal));
    if (opened === undefined) throw refusal('mac');
    const { envelope, key } = opened;
    return {
      bytes: envelope,
      isBoundTo: (b, bound) => typeof b === 'string' && equalText(b, bindTag(key, bound)),
    };
  }

  /** A token on this wire names no key: it may be of one that another member published meanwhile. */
  async #openAgain(token: string, signal: AbortSignal | undefined): Promise<ReturnType<typeof openToken>> {
    if (this.#codec === undefined) return undefined;
    const waited = new AbortController();
    const pause = setTimeout(LOOK_MS, undefined, { ref: false, signal: waited.signal }).catch(() => undefined);
    await Promise.race([this.#keys.noteUnknownKey(), pause]);
    waited.abort();
    signal?.throwIfAborted();
    return openToken(this.#keys.open, token);
  }
}

/** Longest wait for a key; as long as `KmsCodec.prepare` waits for one of a native token. Milliseconds. */
const LOOK_MS = 2_000;

/**
 * Before the envelope in a sealed token. The codec may also serve a boundary, whose envelope has an `exp` and a `p` too:
 * without a mark of our own, its token would pass here and hand the handler its principal tag.
 */
const MARK = Buffer.from('sealring/v1/typescript\0', 'latin1');

/** Envelopes in the tokens of a codec. */
export class SealedTokens implements EnvelopeTokens {
  readonly #codec: PreparedCodec;
  readonly #tokens: RequestStateCodec;

  /** @param tokens - What seals and unseals: `codec` itself, or its codec for this one purpose. */
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
    // No key of ours to tag with: salted and hashed instead, as the boundary's principal.
    const b = bound === undefined ? undefined : principalClaim(bound, randomBytes(PRINCIPAL_SALT_BYTES));
    const envelope = Buffer.from(printEnvelope(payload, exp, b), 'utf8');
    const marked = Buffer.concat([MARK, envelope]);
    let token: unknown;
    try {
      token = await sealPrepared(this.#codec, signal, () => this.#tokens.seal(marked));
    } catch (error) {
      signal?.throwIfAborted();
      throw codecFailure(error);
    }
    if (typeof token !== 'string' || token === '') {
      swallow(token);
      throw codecFailure(undefined);
    }
    return token;
  }

  async open(token: string, signal: AbortSignal | undefined): Promise<OpenedEnvelope> {
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
      // Absent is not unreadable (F9): a codec that could not look has not learned that the key is unknown.
      if (reason === 'unknown key' && unprepared !== undefined) throw codecFailure(unprepared.error);
      throw refusal('mac');
    }
    if (!(payload instanceof Uint8Array)) {
      swallow(payload);
      throw codecFailure(undefined);
    }
    return payload;
  }
}

/** Seals, and once more when no key might and the codec was prepared. */
async function sealPrepared<T>(
  codec: PreparedCodec | undefined,
  signal: AbortSignal | undefined,
  seal: () => T,
): Promise<T> {
  try {
    return seal();
  } catch (error) {
    if (codec === undefined || !isSealUnavailable(error)) throw error;
  }
  await prepare(codec, undefined, signal);
  return seal();
}

/** What may be awaited before a synchronous seal or unseal. @returns the failure, when there was one: the unseal decides. */
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
 * What a caller is told of a codec that failed. The errors of core hold no secret; a stranger's may, and what a tool
 * throws is shown to the client.
 */
function codecFailure(error: unknown): Error {
  if (error instanceof SealUnavailableError || error instanceof CodecClosedError) return error;
  return new Error(`createRequestStateCodec: the codec failed (${errorName(error)})`);
}
