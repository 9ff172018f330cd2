import type { KeyObject } from 'node:crypto';
import { types } from 'node:util';
import type { RequestStateCodec, ServerContext } from '@modelcontextprotocol/server';
import type { Clock, RequestStateCodec as Codec, KmsCodec } from '@sealring/core';
import { option } from '@sealring/core/adapter';
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

/** Options that all forms of {@link RequestStateCodecOptions} share. */
export interface RequestStateCodecTimesAndBinding {
  /**
   * How long a token is accepted. Seconds, a finite number, at most the codec's `tokenLifetimeSeconds`. As in the SDK, a
   * negative value mints tokens that have expired. Default: 600.
   */
  readonly ttlSeconds?: number;
  /**
   * Returns, synchronously, the text that a token is bound to. A request that sends the token back must produce the
   * same text. Include at least the method and the subject. Default: none.
   */
  readonly bind?: (ctx: ServerContext) => string;
  /** Source of time. Default: the system clock. */
  readonly clock?: Clock;
}

/**
 * Options of {@link createRequestStateCodec}. Set exactly one of `key` and `codec`: new tokens are made with it. During
 * a migration, pass the other key or codec as `alsoAccept`, so that tokens that are still in use are accepted. `wire`
 * selects the token format of the codec.
 */
export type RequestStateCodecOptions = RequestStateCodecTimesAndBinding &
  (
    | {
        /** The HMAC secret of the SDK: at least 32 bytes, or a string, which is encoded as UTF-8. It is copied. */
        readonly key: Uint8Array | string;
        readonly codec?: undefined;
        readonly wire?: undefined;
        readonly alsoAccept?: undefined;
      }
    | {
        readonly key: Uint8Array | string;
        readonly codec?: undefined;
        /** The codec that will make new tokens, once every server accepts them. */
        readonly alsoAccept: Codec;
        readonly wire?: 'sealed';
      }
    | {
        readonly key: Uint8Array | string;
        readonly codec?: undefined;
        readonly alsoAccept: KmsCodec;
        readonly wire: 'signed';
      }
    | {
        /** A codec, which encrypts the payload in its own token format. The keys of a `createKmsCodec` codec rotate. */
        readonly codec: Codec;
        readonly key?: undefined;
        /** `sealed`: the codec's own tokens. `signed`: tokens of the SDK, signed with keys of the ring. Default: `sealed`. */
        readonly wire?: 'sealed';
        /** The secret of the SDK, for tokens from before the migration. */
        readonly alsoAccept?: Uint8Array | string;
      }
    | {
        /** A codec made by `createKmsCodec`. */
        readonly codec: KmsCodec;
        readonly key?: undefined;
        readonly wire: 'signed';
        readonly alsoAccept?: Uint8Array | string;
      }
  );

/**
 * A drop-in replacement for `createRequestStateCodec` of the MCP TypeScript SDK 2.4.0: `mint` in a handler, `verify` as
 * `ServerOptions.requestState.verify`.
 *
 * - `{ key }`: tokens of the SDK, byte for byte. This codec and the SDK's accept each other's tokens.
 * - `{ codec }`: encrypted tokens of the codec; with a KMS codec, those of `codec.for('typescript')`.
 * - `{ codec, wire: 'signed' }`: tokens of the SDK, signed with keys derived from the keys of the ring.
 *
 * If no key may seal, `mint` prepares the codec, for at most 2 s, and tries once more. This is necessary on runtimes
 * where no timer fires between requests.
 *
 * `verify` rejects with an Error whose message is `malformed`, `mac` (also for an unknown key), `expired` or `bind`. If
 * the codec fails for any other reason, `verify` rejects with a {@link CodecFailedError}. A token has at most 262 144
 * characters.
 *
 * To move from a key to a ring without losing a token, deploy three times: `{ key, alsoAccept: codec, wire }`, then
 * `{ codec, wire, alsoAccept: key }`, then, after `ttlSeconds`, `{ codec, wire }`.
 *
 * @throws {TypeError} for an unknown option or one of the wrong type, if both or neither of `key` and `codec` are
 *   given, and for signed tokens without a codec made by `createKmsCodec`.
 * @throws {RangeError} for a key of less than 32 bytes, or a `ttlSeconds` that is not finite or is longer than the codec's
 *   `tokenLifetimeSeconds`. As in the SDK, it is also thrown for a `key` or `ttlSeconds` of the wrong type.
 *
 * @example
 * ```ts
 * const states = createRequestStateCodec<{ step: number }>({ codec, bind: (ctx) => ctx.mcpReq.method });
 * const server = new McpServer(info, { requestState: { verify: states.verify } });
 * const requestState = await states.mint({ step: 1 }, ctx);
 * ```
 */
export function createRequestStateCodec<T = unknown>(options: RequestStateCodecOptions): RequestStateCodec<T> {
  const given = knownOptions(OWNER, options, ['key', 'codec', 'wire', 'alsoAccept', 'ttlSeconds', 'bind', 'clock']);
  const { sealing, forToken } = readTokens(given);
  const ttlSeconds = readTtl(given['ttlSeconds']);
  checkLifetime(OWNER, Object(given['codec']), ttlSeconds);
  const bind: Bind | undefined = callback(OWNER, 'bind', given['bind']);
  const clock = readClock(OWNER, given['clock']);
  return {
    async mint(payload, ctx) {
      const exp = Math.floor(clock()) + ttlSeconds;
      const bound = bind && boundText(bind, ctx);
      const token = await sealing.seal(payload, exp, bound, ctx?.mcpReq?.signal);
      if (token.length > MAX_TOKEN_LENGTH) {
        throw option.rangeError(
          `${OWNER}: a token must not have more than ${MAX_TOKEN_LENGTH} characters, got ${token.length}`,
        );
      }
      return token;
    },
    async verify(state, ctx) {
      // Longer tokens are not decoded, because a token can come from an attacker.
      if (typeof state !== 'string' || state.length > MAX_TOKEN_LENGTH) throw refusal('malformed');
      const opened = await forToken(state).unseal(state, ctx?.mcpReq?.signal);
      const { payload, b } = readEnvelope(opened.bytes, clock());
      if (bind === undefined ? b !== undefined : !opened.isBoundTo(b, currentText(bind, ctx))) throw refusal('bind');
      return payload as T;
    },
  };
}

interface Tokens {
  readonly sealing: EnvelopeTokens;
  /** Selects the format of a token by its shape; no other format is tried. */
  readonly forToken: (token: string) => EnvelopeTokens;
}

function readTokens(given: Record<string, unknown>): Tokens {
  const { key, codec } = given;
  if ((key === undefined) === (codec === undefined)) {
    throw option.typeError(
      `${OWNER}: exactly one of key and codec is required, got ${key === undefined ? 'neither' : 'both'}`,
    );
  }
  return codec === undefined ? tokensOfKey(given) : tokensOfCodec(given);
}

function tokensOfKey({ key, alsoAccept, wire }: Record<string, unknown>): Tokens {
  const own = fixedKey(readKey('key', key));
  const signed = new SignedTokens(own, undefined);
  if (alsoAccept === undefined) {
    if (wire !== undefined) throw option.typeError(`${OWNER}: wire requires a codec, in codec or alsoAccept`);
    return always(signed);
  }
  const codec = readCodec(OWNER, 'alsoAccept', alsoAccept);
  if (wireOf(wire) === 'signed') return always(new SignedTokens(joinedKeys(own, ringOf('alsoAccept', codec)), codec));
  return { sealing: signed, forToken: byShape(signed, sealedBy(codec)) };
}

function tokensOfCodec(given: Record<string, unknown>): Tokens {
  const codec = readCodec(OWNER, 'codec', given['codec']);
  const { alsoAccept, wire } = given;
  const key = alsoAccept === undefined ? undefined : fixedKey(readKey('alsoAccept', alsoAccept));
  if (wireOf(wire) === 'signed') return always(new SignedTokens(joinedKeys(ringOf('codec', codec), key), codec));
  const sealed = sealedBy(codec);
  if (key === undefined) return always(sealed);
  return { sealing: sealed, forToken: byShape(new SignedTokens(key, undefined), sealed) };
}

function wireOf(wire: unknown = 'sealed'): 'sealed' | 'signed' {
  return option.oneOf(OWNER, 'wire', wire, ['sealed', 'signed']);
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
    throw option.typeError(`${OWNER}: ${name} must be made by createKmsCodec for wire: 'signed'`);
  }
}

/**
 * The tokens that `codec` seals. A KMS codec has separate token keys for this purpose, so tokens of a boundary are
 * refused here.
 */
function sealedBy(codec: PreparedCodec): SealedTokens {
  if (!isPurposeful(codec)) return new SealedTokens(codec, codec);
  return new SealedTokens(codec, codec.for(PURPOSE));
}

function isPurposeful(codec: PreparedCodec): codec is KmsCodec {
  return hasMethods(codec, ['for']);
}

function readKey(name: 'key' | 'alsoAccept', value: unknown): KeyObject {
  const bytes = keyBytes(value);
  if (bytes === undefined && name === 'alsoAccept') {
    throw option.typeError(
      `${OWNER}: with codec, alsoAccept must be a Uint8Array or a string, got ${option.show(value)}`,
    );
  }
  // The SDK treats a key of the wrong type as an empty key.
  const length = bytes?.length ?? 0;
  if (bytes === undefined || length < MIN_KEY_BYTES) {
    throw option.rangeError(`${OWNER}: ${name} must be at least ${MIN_KEY_BYTES} bytes (got ${length})`);
  }
  return secretKey(bytes);
}

/** A copy of the key. Other types are not coerced: Uint8Array.from(32) would be an empty key. */
function keyBytes(value: unknown): Uint8Array | undefined {
  if (typeof value === 'string') return new TextEncoder().encode(value);
  return types.isUint8Array(value) ? Uint8Array.from(value) : undefined;
}

function readTtl(value: unknown): number {
  const ttlSeconds = value ?? DEFAULT_TTL_SECONDS;
  if (!Number.isFinite(ttlSeconds)) throw option.rangeError(`${OWNER}: ttlSeconds must be a finite number`);
  return Number(ttlSeconds);
}

type Bind = (ctx: ServerContext) => unknown;

/** The text that a new token is bound to. An error that `bind` throws reaches the caller of `mint`. */
function boundText(bind: Bind, ctx: ServerContext | undefined): string {
  if (ctx === undefined) throw option.typeError(`${OWNER}: mint() requires ctx when a bind callback is configured`);
  const text = bind(ctx);
  if (typeof text === 'string') return text;
  swallow(text);
  // The SDK would bind to "undefined" or "[object Promise]", which is the same for every user.
  throw option.typeError(`${OWNER}: bind must return a string, got ${option.show(text)}`);
}

/** The text that a token must be bound to. If it cannot be determined, the token is refused. */
function currentText(bind: Bind, ctx: ServerContext): string {
  try {
    return boundText(bind, ctx);
  } catch {
    // The text of an unknown error may hold a secret, so only the reason is reported.
    throw refusal('bind');
  }
}
