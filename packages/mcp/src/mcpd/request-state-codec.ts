import { type KeyObject, randomBytes } from 'node:crypto';
import { types } from 'node:util';
import type { Clock, KmsCodec } from '@sealring/core';
import { flag, oneOf, show } from '@sealring/core/adapter';
import { MAX_TOKEN_LENGTH } from '@sealring/core/format-secrets';
import { readClock } from '../shared/clock-option.ts';
import { checkLifetime } from '../shared/codec-option.ts';
import { warnEphemeral } from '../shared/ephemeral-warning.ts';
import { fixedKey, joinedKeys, type LiveKeys, ringKeys } from '../shared/live-keys.ts';
import { knownOptions } from '../shared/option-checks.ts';
import { secretKey } from '../shared/secret-key.ts';
import { NonceBudget } from './nonce-budget.ts';
import { deriveMcpdKeys, type McpdKeys, type McpdMode, type McpdRevision, mintMcpd, openMcpd } from './wire.ts';

const OWNER = 'createMcpdRequestStateCodec';
const MIN_KEY_BYTES = 32;
const DEFAULT_TTL_SECONDS = 300;

/** The names in {@link McpdRequestStateCodecOptions}. */
export const CODEC_OPTIONS: readonly string[] = [
  'key',
  'allowEphemeral',
  'codec',
  'alsoOpen',
  'mode',
  'binding',
  'ttlSeconds',
  'revision',
  'clock',
];

/** What a token is bound to. */
export type McpdBinding = 'none' | 'authSubject' | 'authSubjectAndTool';

/**
 * Options of {@link createMcpdRequestStateCodec}; the defaults are mcp.d's. At most one of `key` and `codec`, which makes
 * new tokens; `alsoOpen` is the other one, for tokens in flight during a move.
 */
export interface McpdRequestStateCodecOptions {
  /** mcp.d's secret: 32 bytes or more, or text (its UTF-8). Copied. Neither this nor `codec`: a key of this process. */
  readonly key?: Uint8Array | string;
  /**
   * Whether an empty `key` is taken for none, as mcp.d does: a key of this process, and a process warning, code
   * `SEALRING_EPHEMERAL`. Otherwise it is an error: more often than not a variable was not set. Default: false.
   */
  readonly allowEphemeral?: boolean;
  /** One of `createKmsCodec`: secrets that the ring derives, new tokens under the sealing key's, every live one opens. */
  readonly codec?: KmsCodec;
  /** Beside `codec` a key, beside `key` a codec. */
  readonly alsoOpen?: Uint8Array | string | KmsCodec;
  /** `signed`: integrity only, everybody can read the state. `encrypted`: both. Only this one is opened. Default: `signed`. */
  readonly mode?: McpdMode;
  /** The subject alone, or with the target too. `none` lets anybody redeem a token. Default: `authSubject`. */
  readonly binding?: McpdBinding;
  /** How long a token is accepted. Seconds, whole, above 0, not longer than the codec's `tokenLifetimeSeconds`. Default: 300. */
  readonly ttlSeconds?: number;
  /**
   * Of signed tokens under a fixed key. Until June 2026 mcp.d signed payloads with the key of the bind tags, which every
   * client sees: a subject chosen to look like a payload has a bind tag that is a forged signature. `2026-06` mints such
   * tokens and opens both kinds: only for as long as servers of that revision, or their tokens, are around. Tokens under
   * a ring are always current. Default: `current`.
   */
  readonly revision?: McpdRevision;
  /** Where time comes from. Default: the system's clock. */
  readonly clock?: Clock;
}

/** Who is asking, and for what. */
export interface McpdRequester {
  /** The authenticated subject; empty for nobody. */
  readonly subject: string;
  /** The tool; where mcp.d dispatches: method, a zero byte, and the name. Needed for binding `authSubjectAndTool`. */
  readonly target?: string;
}

/**
 * A key of 32 random bytes for `key`, which dies with this process unless you keep it. Emits one process warning, code
 * `SEALRING_EPHEMERAL`.
 */
export function generateEphemeralKey(): Uint8Array {
  warnEphemeral();
  return new Uint8Array(randomBytes(MIN_KEY_BYTES));
}

/** The codec returned by {@link createMcpdRequestStateCodec}. Both methods are synchronous. */
export interface McpdRequestStateCodec {
  /**
   * The token for a state.
   * @throws {TypeError} for what is no text, or has no UTF-8 form.
   * @throws {RangeError} for an empty state, which mcp.d would send in plaintext: send no `requestState` instead; for a
   *   token over 262 144 characters; for a subject that cannot be told from another one once it is bound.
   * @throws {SealUnavailableError} when no key of the ring may seal now.
   */
  encode(state: string, who: McpdRequester): string;
  /**
   * The state of a token; null for every token that was not made by one of the keys, for this requester, in time. Then
   * the handler is to run as on the first round and ask again.
   * @throws {TypeError} for a requester that is none.
   * @throws {CodecClosedError} when the ring's codec was closed, which says nothing of the token.
   */
  decode(token: string, who: McpdRequester): string | null;
}

/**
 * The codec of mcp.d's `secureRequestState`, on the same two wires: either side opens what the other made.
 *
 * Nonces are random: one key encrypts at most 2^32 tokens, which each codec counts for itself. Where every server can read Sealring's own
 * tokens, prefer a boundary over them.
 *
 * To move from a key to a ring without losing a token, three rolling deploys: `{ key, alsoOpen: codec }`, then
 * `{ codec, alsoOpen: key }`, then, when `ttlSeconds` have passed, `{ codec }`.
 *
 * @throws {TypeError} for an unknown option, a wrong type, both `key` and `codec`, or a codec that `createKmsCodec` did
 *   not make.
 * @throws {RangeError} for a key under 32 bytes, an empty one too without `allowEphemeral`, or a value out of range.
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
      if (typeof state !== 'string') throw new TypeError(`${OWNER}: state must be a string, got ${show(state)}`);
      if (!state.isWellFormed()) throw new TypeError(`${OWNER}: state is a string with a lone surrogate`);
      if (state === '') throw new RangeError(`${OWNER}: an empty state is not sealed: send no requestState instead`);
      const material = materialOf(binding, who);
      if (material === undefined) throw new RangeError(`${OWNER}: who.subject, or who.target, cannot be bound`);
      const key = keys.seal;
      // mcp.d's payloads are objects: a bind tag over such a text would be the signature of a forged token.
      if (key.revision !== 'current' && /^\s*\{/.test(material)) {
        throw new RangeError(
          `${OWNER}: who.subject looks like a payload, which revision ${key.revision} must not bind`,
        );
      }
      if (mode === 'encrypted') nonces.spend(key);
      const exp = Math.floor(clock()) + ttlSeconds;
      const token = mintMcpd(mode, key, { state, exp }, material);
      if (token.length > MAX_TOKEN_LENGTH) {
        throw new RangeError(`${OWNER}: a token may have ${MAX_TOKEN_LENGTH} characters, got ${token.length}`);
      }
      return token;
    },
    decode(token: string, who: McpdRequester): string | null {
      const material = materialOf(binding, who);
      const candidates = keys.open;
      // Unread: a token is attacker-chosen.
      if (material === undefined || typeof token !== 'string' || token.length > MAX_TOKEN_LENGTH) return null;
      const claims = openMcpd(mode, candidates, token, material);
      // Nothing to wait for: asking again is what null means.
      if (claims === undefined) void keys.noteUnknownKey();
      return claims === undefined || claims.exp < Math.floor(clock()) ? null : claims.state;
    },
  });
}

function modeOf(mode: unknown = 'signed'): McpdMode {
  return oneOf(OWNER, 'mode', mode, ['signed', 'encrypted']);
}

function bindingOf(binding: unknown = 'authSubject'): McpdBinding {
  return oneOf(OWNER, 'binding', binding, ['authSubject', 'none', 'authSubjectAndTool']);
}

function revisionOf(revision: unknown = 'current'): McpdRevision {
  return oneOf(OWNER, 'revision', revision, ['current', '2026-06']);
}

/** What a bind tag is made over; undefined for a text that would share its tag with another one. */
function materialOf(binding: McpdBinding, who: unknown): string | undefined {
  const { subject, target } = readRequester(binding, who);
  if (binding === 'none') return '';
  if (!subject.isWellFormed() || !target.isWellFormed()) return undefined;
  if (binding === 'authSubject') return subject;
  // A zero byte parts the two: a subject that has one could pass for another subject and target.
  return subject.includes('\0') ? undefined : `${subject}\0${target}`;
}

function readRequester(binding: McpdBinding, who: unknown): { readonly subject: string; readonly target: string } {
  if (typeof who !== 'object' || who === null) throw new TypeError(`${OWNER}: who must be an object, got ${show(who)}`);
  const subject: unknown = Reflect.get(who, 'subject');
  const target: unknown = Reflect.get(who, 'target');
  if (typeof subject !== 'string') throw new TypeError(`${OWNER}: who.subject must be a string, got ${show(subject)}`);
  if (binding !== 'authSubjectAndTool') return { subject, target: '' };
  if (typeof target !== 'string') throw new TypeError(`${OWNER}: who.target must be a string, got ${show(target)}`);
  return { subject, target };
}

function readKeys(given: Record<string, unknown>, ttlSeconds: number): LiveKeys<McpdKeys> {
  const { codec, alsoOpen, revision } = given;
  const key = keyOf(given);
  if (key !== undefined && codec !== undefined) throw new TypeError(`${OWNER}: takes one of key and codec, got both`);
  const hasFixedKey = codec === undefined || alsoOpen !== undefined;
  if (!hasFixedKey && revision !== undefined) {
    throw new TypeError(`${OWNER}: revision speaks of a fixed key, and there is none`);
  }
  const ofKey = revisionOf(revision);
  const fixed = (name: string, value: unknown) => fixedKey(deriveMcpdKeys(readKey(name, value), ofKey));
  if (codec !== undefined) {
    const ring = ringOf('codec', codec);
    checkLifetime(OWNER, Object(codec), ttlSeconds);
    return joinedKeys(ring, alsoOpen === undefined ? undefined : fixed('alsoOpen', alsoOpen));
  }
  if (key !== undefined)
    return joinedKeys(fixed('key', key), alsoOpen === undefined ? undefined : ringOf('alsoOpen', alsoOpen));
  if (alsoOpen !== undefined) throw new TypeError(`${OWNER}: alsoOpen needs key or codec beside it`);
  return fixed('key', generateEphemeralKey());
}

/** An empty key is one of this process where that is allowed. */
function keyOf({ key, allowEphemeral = false }: Record<string, unknown>): unknown {
  const isAllowed = flag(OWNER, 'allowEphemeral', allowEphemeral);
  const isEmpty = key === '' || (types.isUint8Array(key) && key.length === 0);
  if (!isEmpty) return key;
  if (isAllowed) return generateEphemeralKey();
  throw new RangeError(`${OWNER}: key is empty; for a key of this process set allowEphemeral: true, or leave key out`);
}

function ringOf(name: string, codec: unknown): LiveKeys<McpdKeys> {
  // By the secret: a revoked key's leaves the memory with it.
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
    throw new TypeError(`${OWNER}: ${name} must be made by createKmsCodec, got ${show(codec)}`);
  }
}

function readKey(name: string, value: unknown): KeyObject {
  if (typeof value !== 'string' && !types.isUint8Array(value)) {
    throw new TypeError(`${OWNER}: ${name} must be a Uint8Array or a string, got ${show(value)}`);
  }
  if (typeof value === 'string' && !value.isWellFormed()) {
    throw new TypeError(`${OWNER}: ${name} is a string with a lone surrogate`);
  }
  const bytes = typeof value === 'string' ? new TextEncoder().encode(value) : Uint8Array.from(value);
  if (bytes.length < MIN_KEY_BYTES) {
    throw new RangeError(`${OWNER}: ${name} must be at least ${MIN_KEY_BYTES} bytes, got ${bytes.length}`);
  }
  return secretKey(bytes);
}

function readTtl(ttlSeconds: unknown = DEFAULT_TTL_SECONDS): number {
  if (typeof ttlSeconds !== 'number')
    throw new TypeError(`${OWNER}: ttlSeconds must be a number, got ${show(ttlSeconds)}`);
  if (!(Number.isSafeInteger(ttlSeconds) && ttlSeconds > 0)) {
    throw new RangeError(`${OWNER}: ttlSeconds must be whole and above 0, got ${ttlSeconds}`);
  }
  return ttlSeconds;
}
