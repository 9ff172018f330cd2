import { type KeyObject, randomBytes } from 'node:crypto';
import { types } from 'node:util';
import type { Clock, KmsCodec } from '@sealring/core';
import { option } from '@sealring/core/adapter';
import { MAX_TOKEN_LENGTH } from '@sealring/core/format-secrets';
import { readClock } from '../shared/clock-option.ts';
import { checkLifetime } from '../shared/codec-option.ts';
import { warnEphemeral } from '../shared/ephemeral-warning.ts';
import { fixedKey, joinedKeys, type LiveKeys, ringKeys } from '../shared/live-keys.ts';
import { knownOptions } from '../shared/option-checks.ts';
import { secretKey } from '../shared/secret-key.ts';
import { NonceBudget } from './nonce-budget.ts';
import { deriveMcpdKeys, type McpdKeys, type McpdMode, type McpdRevision, mintMcpd, unsealMcpd } from './wire.ts';

const OWNER = 'createMcpdRequestStateCodec';
const MIN_KEY_BYTES = 32;
const DEFAULT_TTL_SECONDS = 300;

/** The names of the options in {@link McpdRequestStateCodecOptions}. */
export const CODEC_OPTIONS: readonly string[] = [
  'key',
  'allowEphemeral',
  'codec',
  'alsoAccept',
  'mode',
  'binding',
  'ttlSeconds',
  'revision',
  'clock',
];

/** The binding of a token. */
export type McpdBinding = 'none' | 'authSubject' | 'authSubjectAndTool';

/**
 * Options of {@link createMcpdRequestStateCodec}; the defaults are the same as in mcp.d. Set at most one of `key` and
 * `codec`: new tokens are made with it. During a migration, pass the other key or codec as `alsoAccept`, so that tokens
 * that are still in use are accepted.
 */
export interface McpdRequestStateCodecOptions {
  /**
   * The secret of mcp.d: at least 32 bytes, or a string, which is encoded as UTF-8. The key is copied. Default without
   * `codec`: a new random key.
   */
  readonly key?: Uint8Array | string;
  /**
   * Whether an empty `key` counts as absent, as in mcp.d: the codec then makes a random key for this process, and emits a
   * process warning, code `SEALRING_EPHEMERAL`. Otherwise an empty key is an error, because it usually means that an
   * environment variable is not set. Default: false.
   */
  readonly allowEphemeral?: boolean;
  /** A codec made by `createKmsCodec`: the secrets are derived from the keys of its ring. */
  readonly codec?: KmsCodec;
  /** A key (if `codec` is given) or a codec (if `key` is given) whose tokens are accepted, but which makes none. */
  readonly alsoAccept?: Uint8Array | string | KmsCodec;
  /** `signed`: clients can read the state. `encrypted`: they cannot. Tokens of the other mode are refused. Default: `signed`. */
  readonly mode?: McpdMode;
  /**
   * What a token is bound to: the subject, or the subject and the target. With `none`, anyone can redeem it. Default:
   * `authSubject`.
   */
  readonly binding?: McpdBinding;
  /**
   * How long a token is accepted. A whole number of seconds above 0, at most the codec's `tokenLifetimeSeconds`.
   * Default: 300.
   */
  readonly ttlSeconds?: number;
  /**
   * The revision of signed tokens with a fixed key. Until June 2026, mcp.d signed payloads with the same key as the
   * bind tags. Clients can read those tags: if a subject looks like a payload, its bind tag is a valid signature of
   * that payload, which makes a forgery possible. `2026-06` makes tokens of that kind and accepts both revisions. Use it
   * only while servers of that revision, or their tokens, are in use. Tokens that are made with keys of a ring always
   * have the revision `current`. Default: `current`.
   */
  readonly revision?: McpdRevision;
  /** Source of time. Default: the system clock. */
  readonly clock?: Clock;
}

/** The subject and the target of a request. */
export interface McpdRequester {
  /** The authenticated subject; empty for a request without one. */
  readonly subject: string;
  /**
   * The tool; in mcp.d's dispatch this is the method, a zero byte and the name. Required for the binding
   * `authSubjectAndTool`.
   */
  readonly target?: string;
}

/**
 * Returns 32 random bytes for the option `key`. Unless you store them, no token outlives this process. Emits one process
 * warning, code `SEALRING_EPHEMERAL`.
 */
export function generateEphemeralKey(): Uint8Array {
  warnEphemeral();
  return new Uint8Array(randomBytes(MIN_KEY_BYTES));
}

/** The codec returned by {@link createMcpdRequestStateCodec}. Both methods are synchronous. */
export interface McpdRequestStateCodec {
  /**
   * Returns the token for a state.
   * @throws {TypeError} for a state that is not a string, or that contains a lone surrogate.
   * @throws {RangeError} for an empty state, which mcp.d would send in plaintext: send no `requestState` instead; for a
   *   token of more than 262 144 characters; for a subject whose bind tag could equal the bind tag of another subject.
   * @throws {SealUnavailableError} when no key of the ring may seal now.
   */
  encode(state: string, who: McpdRequester): string;
  /**
   * Returns the state of a token; null if the token has expired, belongs to another requester, or was not made with one of
   * the keys. If the result is null, run the handler as on the first round.
   * @throws {TypeError} for an invalid requester.
   * @throws {CodecClosedError} when the codec of the ring has been closed.
   */
  decode(token: string, who: McpdRequester): string | null;
}

/**
 * The codec of mcp.d's `secureRequestState`, with the same two token formats. It and mcp.d accept each other's tokens.
 *
 * Nonces are random, so a key encrypts at most 2^32 tokens; each codec counts only those that it makes. If all servers
 * can read Sealring's own tokens, use `RequestStateSecurity` instead.
 *
 * To move from a key to a ring without losing a token, deploy three times: `{ key, alsoAccept: codec }`, then
 * `{ codec, alsoAccept: key }`, then, after `ttlSeconds`, `{ codec }`.
 *
 * @throws {TypeError} for an unknown option, an option of the wrong type, both `key` and `codec`, or a codec that was not
 *   made by `createKmsCodec`.
 * @throws {RangeError} for a key of less than 32 bytes, an empty key without `allowEphemeral`, or a value out of range.
 *
 * @example
 * ```ts
 * const states = createMcpdRequestStateCodec({ key, mode: 'encrypted' });
 * const token = states.encode('{"step":1}', { subject: 'alice' });
 * const state = states.decode(token, { subject: 'alice' }); // null: ask again
 * ```
 */
export function createMcpdRequestStateCodec(options: McpdRequestStateCodecOptions = {}): McpdRequestStateCodec {
  const given = knownOptions(OWNER, options, CODEC_OPTIONS);
  const mode = modeOf(given['mode']);
  const binding = bindingOf(given['binding']);
  const ttlSeconds = readTtl(given['ttlSeconds']);
  const clock = readClock(OWNER, given['clock']);
  const keys = readKeys(given, ttlSeconds);
  const nonces = new NonceBudget();

  return Object.freeze({
    encode(state: string, who: McpdRequester): string {
      if (!option.text(OWNER, 'state', state).isWellFormed())
        throw option.typeError(`${OWNER}: state must not contain a lone surrogate`);
      if (state === '') throw option.rangeError(`${OWNER}: state must not be empty; send no requestState instead`);
      const material = materialOf(binding, who);
      if (material === undefined)
        throw option.rangeError(
          `${OWNER}: who.subject and who.target must not contain lone surrogates, and who.subject must not contain a zero byte`,
        );
      const key = keys.seal;
      // mcp.d's payloads are JSON objects. The bind tag of a subject like that would be the signature of a forged token.
      if (key.revision !== 'current' && /^\s*\{/.test(material)) {
        throw option.rangeError(
          `${OWNER}: who.subject must not start with {, because revision ${key.revision} could take it for a payload`,
        );
      }
      if (mode === 'encrypted') nonces.spend(key);
      const exp = Math.floor(clock()) + ttlSeconds;
      const token = mintMcpd(mode, key, { state, exp }, material);
      if (token.length > MAX_TOKEN_LENGTH) {
        throw option.rangeError(
          `${OWNER}: a token must not have more than ${MAX_TOKEN_LENGTH} characters, got ${token.length}`,
        );
      }
      return token;
    },
    decode(token: string, who: McpdRequester): string | null {
      const material = materialOf(binding, who);
      const candidates = keys.open;
      // Longer tokens are not decoded, because a token can come from an attacker.
      if (material === undefined || typeof token !== 'string' || token.length > MAX_TOKEN_LENGTH) return null;
      const claims = unsealMcpd(mode, candidates, token, material);
      // The refresh is not awaited, because the caller asks the user again if the result is null.
      if (claims === undefined) void keys.noteUnknownKey();
      return claims === undefined || claims.exp < Math.floor(clock()) ? null : claims.state;
    },
  });
}

function modeOf(mode: unknown = 'signed'): McpdMode {
  return option.oneOf(OWNER, 'mode', mode, ['signed', 'encrypted']);
}

function bindingOf(binding: unknown = 'authSubject'): McpdBinding {
  return option.oneOf(OWNER, 'binding', binding, ['authSubject', 'none', 'authSubjectAndTool']);
}

function revisionOf(revision: unknown = 'current'): McpdRevision {
  return option.oneOf(OWNER, 'revision', revision, ['current', '2026-06']);
}

/** The input of a bind tag; undefined for an input that would have the same tag as another input. */
function materialOf(binding: McpdBinding, who: unknown): string | undefined {
  const { subject, target } = readRequester(binding, who);
  if (binding === 'none') return '';
  if (!subject.isWellFormed() || !target.isWellFormed()) return undefined;
  if (binding === 'authSubject') return subject;
  // A zero byte separates subject and target, so a subject that contains a zero byte could equal the combination of
  // another subject and a target.
  return subject.includes('\0') ? undefined : `${subject}\0${target}`;
}

function readRequester(binding: McpdBinding, who: unknown): { readonly subject: string; readonly target: string } {
  if (typeof who !== 'object' || who === null) throw option.wrongType(OWNER, 'who', 'an object', who);
  const subject = option.text(OWNER, 'who.subject', Reflect.get(who, 'subject'));
  if (binding !== 'authSubjectAndTool') return { subject, target: '' };
  return { subject, target: option.text(OWNER, 'who.target', Reflect.get(who, 'target')) };
}

function readKeys(given: Record<string, unknown>, ttlSeconds: number): LiveKeys<McpdKeys> {
  const { codec, alsoAccept, revision } = given;
  const key = keyOf(given);
  if (key !== undefined && codec !== undefined) throw option.typeError(`${OWNER}: give either key or codec, not both`);
  const hasFixedKey = codec === undefined || alsoAccept !== undefined;
  if (!hasFixedKey && revision !== undefined) {
    throw option.typeError(`${OWNER}: revision requires a fixed key, in key or alsoAccept`);
  }
  const ofKey = revisionOf(revision);
  const fixed = (name: string, value: unknown) => fixedKey(deriveMcpdKeys(readKey(name, value), ofKey));
  if (codec !== undefined) {
    const ring = ringOf('codec', codec);
    checkLifetime(OWNER, Object(codec), ttlSeconds);
    return joinedKeys(ring, alsoAccept === undefined ? undefined : fixed('alsoAccept', alsoAccept));
  }
  if (key !== undefined)
    return joinedKeys(fixed('key', key), alsoAccept === undefined ? undefined : ringOf('alsoAccept', alsoAccept));
  if (alsoAccept !== undefined) throw option.typeError(`${OWNER}: alsoAccept requires key or codec`);
  return fixed('key', generateEphemeralKey());
}

/** Replaces an empty key with a random one, if that is allowed. */
function keyOf({ key, allowEphemeral = false }: Record<string, unknown>): unknown {
  const isAllowed = option.flag(OWNER, 'allowEphemeral', allowEphemeral);
  const isEmpty = key === '' || (types.isUint8Array(key) && key.length === 0);
  if (!isEmpty) return key;
  if (isAllowed) return generateEphemeralKey();
  throw option.rangeError(
    `${OWNER}: key is empty; for a random key of this process, leave key out or set allowEphemeral: true`,
  );
}

function ringOf(name: string, codec: unknown): LiveKeys<McpdKeys> {
  // Keyed by the secret, so that derived keys leave memory together with a revoked key.
  const derived = new WeakMap<KeyObject, McpdKeys>();
  const derive = (secret: KeyObject): McpdKeys => {
    let keys = derived.get(secret);
    if (keys === undefined) {
      keys = deriveMcpdKeys(secret, 'current');
      derived.set(secret, keys);
    }
    return keys;
  };
  try {
    return ringKeys(Object(codec), 'mcp.d', derive);
  } catch {
    throw option.typeError(`${OWNER}: ${name} must be made by createKmsCodec, got ${option.show(codec)}`);
  }
}

function readKey(name: string, value: unknown): KeyObject {
  if (typeof value !== 'string' && !types.isUint8Array(value)) {
    throw option.wrongType(OWNER, name, 'a Uint8Array or a string', value);
  }
  if (typeof value === 'string' && !value.isWellFormed()) {
    throw option.typeError(`${OWNER}: ${name} must not contain a lone surrogate`);
  }
  const bytes = typeof value === 'string' ? new TextEncoder().encode(value) : Uint8Array.from(value);
  if (bytes.length < MIN_KEY_BYTES) {
    throw option.rangeError(`${OWNER}: ${name} must be at least ${MIN_KEY_BYTES} bytes, got ${bytes.length}`);
  }
  return secretKey(bytes);
}

function readTtl(ttlSeconds: unknown = DEFAULT_TTL_SECONDS): number {
  if (typeof ttlSeconds !== 'number') throw option.wrongType(OWNER, 'ttlSeconds', 'a number', ttlSeconds);
  if (!(Number.isSafeInteger(ttlSeconds) && ttlSeconds > 0)) {
    throw option.rangeError(`${OWNER}: ttlSeconds must be a whole number above 0, got ${ttlSeconds}`);
  }
  return ttlSeconds;
}
