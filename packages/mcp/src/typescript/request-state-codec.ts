import type { KeyObject } from 'node:crypto';
import { types } from 'node:util';
import type { RequestStateCodec, ServerContext } from '@modelcontextprotocol/server';
import type { Clock, RequestStateCodec as Codec, KmsCodec } from '@sealring/core';
import { oneOf, show } from '@sealring/core/adapter';
import { MAX_TOKEN_LENGTH } from '@sealring/core/format-secrets';
import { readClock } from '../shared/clock-option.ts';
import { checkLifetime, type PreparedCodec, readCodec, swallow } from '../shared/codec-option.ts';
import { fixedKey, joinedKeys, type LiveKeys, ringKeys } from '../shared/live-keys.ts';
import { callback, hasMethods, knownOptions } from '../shared/option-checks.ts';
import { secretKey } from '../shared/secret-key.ts';
import { readEnvelope } from './envelope.ts';
import { type EnvelopeTokens, SealedTokens, SignedTokens } from './envelope-tokens.ts';
import { hasSignedShape, refusal } from './wire.ts';

const OWNER = 'createRequestStateCodec';
const MIN_KEY_BYTES = 32;
const DEFAULT_TTL_SECONDS = 600;
const PURPOSE = 'typescript';

/** What every form of {@link RequestStateCodecOptions} takes. */
export interface RequestStateCodecTimesAndBinding {
  /**
   * How long a token is accepted. Seconds, finite; not longer than the codec's `tokenLifetimeSeconds`. As in the SDK, a
   * token that is minted with a negative one has expired. Default: 600.
   */
  readonly ttlSeconds?: number;
  /**
   * What a token is bound to, synchronously: whoever echoes it must give the same text. Bind at least the method and who
   * is signed in. Default: none.
   */
  readonly bind?: (ctx: ServerContext) => string;
  /** Where time comes from. Default: the system's clock. */
  readonly clock?: Clock;
}

/**
 * Options of {@link createRequestStateCodec}: exactly one of `key` and `codec`, which makes new tokens. `alsoOpen` is the
 * other one, for tokens in flight during a move. `wire` says what the codec's tokens look like.
 */
export type RequestStateCodecOptions = RequestStateCodecTimesAndBinding &
  (
    | {
        /** The SDK's HMAC secret: 32 bytes or more, or text (its UTF-8). Copied. */
        readonly key: Uint8Array | string;
        readonly codec?: undefined;
        readonly wire?: undefined;
        readonly alsoOpen?: undefined;
      }
    | {
        readonly key: Uint8Array | string;
        readonly codec?: undefined;
        /** What new tokens will come from, once every server opens them. */
        readonly alsoOpen: Codec;
        readonly wire?: 'sealed';
      }
    | {
        readonly key: Uint8Array | string;
        readonly codec?: undefined;
        readonly alsoOpen: KmsCodec;
        readonly wire: 'signed';
      }
    | {
        /** Any codec: the payload is encrypted, in its own tokens. One of `createKmsCodec` rotates. */
        readonly codec: Codec;
        readonly key?: undefined;
        /** `sealed`: the codec's own tokens. `signed`: the SDK's, under keys of the ring. Default: `sealed`. */
        readonly wire?: 'sealed';
        /** The SDK's secret, for tokens minted before the move. */
        readonly alsoOpen?: Uint8Array | string;
      }
    | {
        /** One of `createKmsCodec`. */
        readonly codec: KmsCodec;
        readonly key?: undefined;
        readonly wire: 'signed';
        readonly alsoOpen?: Uint8Array | string;
      }
  );

/**
 * A drop-in for `createRequestStateCodec` of the MCP TypeScript SDK 2.4.0: `mint` in a handler, `verify` as
 * `ServerOptions.requestState.verify`.
 *
 * - `{ key }`: the SDK's wire, byte for byte; either side opens what the other minted.
 * - `{ codec }`: encrypted, in the tokens of any codec; over a KMS ring in those of `codec.for('typescript')`.
 * - `{ codec, wire: 'signed' }`: the SDK's wire under keys that the ring derives; every live key is tried.
 *
 * When no key of the codec's may seal, `mint` prepares the codec, 2 s at most, and tries once more: where timers do not run
 * between requests, that may be the first moment in which it can be prepared.
 *
 * `verify` rejects with an Error whose message is `malformed`, `mac` (also for an unknown key), `expired` or `bind`; a
 * codec that fails otherwise is another Error, still without any of its text. A token may have 262 144 characters.
 *
 * To move from a key to a ring without losing a token, three rolling deploys: `{ key, alsoOpen: codec, wire }`, then
 * `{ codec, wire, alsoOpen: key }`, then, when `ttlSeconds` have passed, `{ codec, wire }`.
 *
 * @throws {TypeError} for an unknown option, a wrong type, not exactly one of `key` and `codec`, or a signed wire without
 *   a codec of `createKmsCodec`.
 * @throws {RangeError} for a key under 32 bytes, or a `ttlSeconds` that is not finite or longer than the codec's
 *   `tokenLifetimeSeconds`. As in the SDK, also for those two when they are of a wrong type.
 *
 * @example
 * ```ts
 * const states = createRequestStateCodec<{ step: number }>({ codec, bind: (ctx) => ctx.mcpReq.method });
 * const server = new McpServer(info, { requestState: { verify: states.verify } });
 * const requestState = await states.mint({ step: 1 }, ctx);
 * ```
 */
export function createRequestStateCodec<T = unknown>(options: RequestStateCodecOptions): RequestStateCodec<T> {
  const given = knownOptions(OWNER, options, ['key', 'codec', 'wire', 'alsoOpen', 'ttlSeconds', 'bind', 'clock']);
  const { sealing, forToken } = readTokens(given);
  const ttlSeconds = readTtl(given['ttlSeconds']);
  if (given['codec'] !== undefined) checkLifetime(OWNER, Object(given['codec']), ttlSeconds);
  const bind: Bind | undefined = callback(OWNER, 'bind', given['bind']);
  const clock = readClock(OWNER, given['clock']);
  return {
    async mint(payload, ctx) {
      const exp = Math.floor(clock()) + ttlSeconds;
      const token = await sealing.seal(payload, exp, boundText(bind, ctx), ctx?.mcpReq?.signal);
      if (token.length > MAX_TOKEN_LENGTH) {
        throw new RangeError(
          `${OWNER}: a token may have ${MAX_TOKEN_LENGTH} characters, got ${token.length}: it would be refused`,
        );
      }
      return token;
    },
    async verify(state, ctx) {
      // Unread: a token is attacker-chosen.
      if (typeof state !== 'string' || state.length > MAX_TOKEN_LENGTH) throw refusal('malformed');
      const opened = await forToken(state).open(state, ctx?.mcpReq?.signal);
      const { payload, b } = readEnvelope(opened.bytes, clock());
      if (bind === undefined ? b !== undefined : !opened.isBoundTo(b, currentText(bind, ctx))) throw refusal('bind');
      return payload as T;
    },
  };
}

interface Tokens {
  readonly sealing: EnvelopeTokens;
  /** Dispatches a token by its shape: it is tried in that form only. */
  readonly forToken: (token: string) => EnvelopeTokens;
}

function readTokens(given: Record<string, unknown>): Tokens {
  const { key, codec } = given;
  if ((key === undefined) === (codec === undefined)) {
    throw new TypeError(`${OWNER}: takes exactly one of key and codec, got ${key === undefined ? 'neither' : 'both'}`);
  }
  return codec === undefined ? tokensOfKey(given) : tokensOfCodec(given);
}

function tokensOfKey({ key, alsoOpen, wire }: Record<string, unknown>): Tokens {
  const own = fixedKey(readKey('key', key));
  const signed = new SignedTokens(own, undefined);
  if (alsoOpen === undefined) {
    if (wire !== undefined) throw new TypeError(`${OWNER}: wire says what a codec's tokens look like: there is none`);
    return always(signed);
  }
  const codec = readCodec(OWNER, 'alsoOpen', alsoOpen);
  if (wireOf(wire) === 'signed') return always(new SignedTokens(joinedKeys(own, ringOf('alsoOpen', codec)), codec));
  return { sealing: signed, forToken: byShape(signed, sealedBy(codec)) };
}

function tokensOfCodec(given: Record<string, unknown>): Tokens {
  const codec = readCodec(OWNER, 'codec', given['codec']);
  const { alsoOpen, wire } = given;
  const key = alsoOpen === undefined ? undefined : fixedKey(readKey('alsoOpen', alsoOpen));
  if (wireOf(wire) === 'signed') return always(new SignedTokens(joinedKeys(ringOf('codec', codec), key), codec));
  const sealed = sealedBy(codec);
  if (key === undefined) return always(sealed);
  return { sealing: sealed, forToken: byShape(new SignedTokens(key, undefined), sealed) };
}

function wireOf(wire: unknown = 'sealed'): 'sealed' | 'signed' {
  return oneOf(OWNER, 'wire', wire, ['sealed', 'signed']);
}

function always(tokens: EnvelopeTokens): Tokens {
  return { sealing: tokens, forToken: () => tokens };
}

function byShape(signed: EnvelopeTokens, sealed: EnvelopeTokens): (token: string) => EnvelopeTokens {
  return (token) => (hasSignedShape(token) ? signed : sealed);
}

function ringOf(name: string, codec: PreparedCodec): LiveKeys<KeyObject> {
  try {
    return ringKeys(codec, 'typescript', (secret) => secret);
  } catch {
    throw new TypeError(`${OWNER}: ${name} must be made by createKmsCodec for wire signed`);
  }
}

/** A codec of a ring has token keys apart for this: what it seals for a boundary does not open here. */
function sealedBy(codec: PreparedCodec): SealedTokens {
  if (!isPurposeful(codec)) return new SealedTokens(codec, codec);
  return new SealedTokens(codec, codec.for(PURPOSE));
}

function isPurposeful(codec: PreparedCodec): codec is KmsCodec {
  return hasMethods(codec, ['for']);
}

function readKey(name: 'key' | 'alsoOpen', value: unknown): KeyObject {
  const bytes = keyBytes(value);
  if (bytes === undefined && name === 'alsoOpen') {
    throw new TypeError(`${OWNER}: alsoOpen must be a Uint8Array or a string beside codec, got ${show(value)}`);
  }
  // For the SDK, whatever is neither bytes nor text is a key of no bytes.
  const length = bytes?.length ?? 0;
  if (bytes === undefined || length < MIN_KEY_BYTES) {
    throw new RangeError(`${OWNER}: ${name} must be at least ${MIN_KEY_BYTES} bytes (got ${length})`);
  }
  return secretKey(bytes);
}

/** A copy that is the caller's own. Never coerced: Uint8Array.from(32) would silently be something else. */
function keyBytes(value: unknown): Uint8Array | undefined {
  if (typeof value === 'string') return new TextEncoder().encode(value);
  return types.isUint8Array(value) ? Uint8Array.from(value) : undefined;
}

function readTtl(value: unknown): number {
  const ttlSeconds = value ?? DEFAULT_TTL_SECONDS;
  if (typeof ttlSeconds !== 'number' || !Number.isFinite(ttlSeconds)) {
    throw new RangeError(`${OWNER}: ttlSeconds must be a finite number`);
  }
  return ttlSeconds;
}

type Bind = (ctx: ServerContext) => unknown;

/** What a new token is bound to. What `bind` throws is its own caller's to see. */
function boundText(bind: Bind | undefined, ctx: ServerContext | undefined): string | undefined {
  if (bind === undefined) return undefined;
  if (ctx === undefined) throw new TypeError(`${OWNER}: mint() requires ctx when a bind callback is configured`);
  const text = bind(ctx);
  if (typeof text === 'string') return text;
  swallow(text);
  // The SDK would bind to "undefined" or "[object Promise]", which everybody shares.
  throw new TypeError(`${OWNER}: bind must return a string, got ${show(text)}`);
}

/** What the token must be bound to. Whatever is wrong with that, nobody is known to own it. */
function currentText(bind: Bind, ctx: ServerContext): string {
  try {
    const text = boundText(bind, ctx);
    if (text !== undefined) return text;
  } catch {
    // The reasons are a closed set, and a stranger's text may hold what must not be logged.
  }
  throw refusal('bind');
}
