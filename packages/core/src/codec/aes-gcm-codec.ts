import { randomBytes } from 'node:crypto';
import { inspect, types } from 'node:util';
import { secretBytes, show } from '../base/options.ts';
import { InvalidRequestState, type RequestStateCodec } from '../contracts/codec.ts';
import {
  derivePythonKey,
  PYTHON_NONCE_BYTES,
  type PythonKey,
  parsePythonToken,
  sealPython,
  unsealPython,
} from '../formats/python.ts';

const OWNER = 'AesGcmRequestStateCodec';
const MIN_SECRET_BYTES = 32;

/**
 * The built-in codec of the MCP Python SDK (`AESGCMRequestStateCodec` in `mcp.server.request_state`, 2.3.0), with the
 * same token format: either side unseals the tokens that the other side sealed with the same keys.
 *
 * `keys[0]` seals, and every key unseals. To rotate without losing a token: append the new key on every server, then
 * move it to the front on every server, then remove the old one when its tokens have expired. Nonces are random, so one
 * key may seal at most 2^32 tokens (SP 800-38D section 8.3).
 *
 * A payload may have up to 196 573 bytes, and a token up to 262 144 characters.
 *
 * @example
 * ```ts
 * const codec = new AesGcmRequestStateCodec([randomBytes(32)]);
 * const token = codec.seal(new TextEncoder().encode('{"step":2}'));
 * const payload = codec.unseal(token);
 * ```
 */
export class AesGcmRequestStateCodec implements RequestStateCodec {
  static {
    // A method with this computed name has no type under isolatedDeclarations (TS9038).
    Object.defineProperty(AesGcmRequestStateCodec.prototype, inspect.custom, {
      value(this: AesGcmRequestStateCodec): string {
        return `${OWNER} { keys: ${this.#byKid.size} }`;
      },
    });
  }

  readonly #sealingKey: PythonKey;
  readonly #byKid: ReadonlyMap<string, PythonKey>;

  /**
   * @param keys - One or more secrets of at least 32 bytes each, as bytes or as text, which is encoded as UTF-8. They
   * are copied.
   * @throws {TypeError} for a key that is neither bytes nor text, or that is text with a lone surrogate; keys are never
   * coerced.
   * @throws {RangeError} if there is no key, or if a key is too short or repeats an earlier key.
   */
  constructor(keys: readonly (Uint8Array | string)[]) {
    if (!Array.isArray(keys)) throw new TypeError(`${OWNER}: keys must be an array, got ${show(keys)}`);
    const byKid = new Map<string, PythonKey>();
    // Array.from visits holes, which forEach would skip.
    const derived = Array.from(keys, (value: unknown, index) => {
      const secret = secretBytes(OWNER, `keys[${index}]`, value, MIN_SECRET_BYTES);
      const key = derivePythonKey(secret);
      secret.fill(0);
      if (byKid.has(key.kid)) throw new RangeError(`${OWNER}: keys[${index}] duplicates an earlier key`);
      byKid.set(key.kid, key);
      return key;
    });
    const [sealingKey] = derived;
    if (sealingKey === undefined) throw new RangeError(`${OWNER}: keys must contain at least one key`);
    this.#sealingKey = sealingKey;
    this.#byKid = byKid;
  }

  /**
   * @throws {TypeError} for a payload that is not a Uint8Array.
   * @throws {RangeError} for a payload over 196 573 bytes, because every server would refuse its token.
   */
  seal(payload: Uint8Array): string {
    if (!types.isUint8Array(payload)) throw new TypeError(`payload must be a Uint8Array, got ${show(payload)}`);
    return sealPython(this.#sealingKey, randomBytes(PYTHON_NONCE_BYTES), payload);
  }

  /** @throws {InvalidRequestState} for a token that none of the keys sealed, or that was modified. */
  unseal(token: string): Uint8Array {
    const parsed = parsePythonToken(token);
    const key = this.#byKid.get(parsed.kid);
    if (key === undefined) throw new InvalidRequestState('unknown key');
    return unsealPython(key, parsed);
  }

  /** Shows the number of keys, but no part of the keys themselves. */
  toJSON(): { readonly codec: string; readonly keys: number } {
    return { codec: OWNER, keys: this.#byKid.size };
  }
}
