import {
  createDecipheriv,
  createHash,
  createHmac,
  createSecretKey,
  randomBytes,
  randomFillSync,
  timingSafeEqual,
} from 'node:crypto';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { Moment } from '../../src/base/clock.ts';
import { AesGcmRequestStateCodec } from '../../src/codec/aes-gcm-codec.ts';
import { InvalidRequestState } from '../../src/contracts/codec.ts';
import { SealUnavailableError } from '../../src/contracts/errors.ts';
import { derivePythonKey } from '../../src/formats/python.ts';
import { decodeToken } from '../../src/formats/sealring-token.ts';
import { DataKey } from '../../src/keys/data-key.ts';
import { formatOf, PythonTokens, type TokenFormat } from '../../src/tokens/token-formats.ts';
import { sourceOf, tokensOver, usable } from '../support/tokens.ts';

const RING = 'payments';
const MAX_LENGTH = 256 * 1024;
const now: Moment = Object.freeze({ wallMs: 1_795_000_000_000, steadyMs: 5_000 });
const random = (fill: Uint8Array): void => void randomFillSync(fill);
const state = Buffer.from('state');

function native(keys: readonly DataKey[], options: { purpose?: string; maxTokenLength?: number } = {}) {
  return tokensOver(sourceOf(keys), options);
}

function python(keys: readonly DataKey[], maxTokenLength: number = MAX_LENGTH) {
  const source = sourceOf(keys);
  const { misses } = source;
  return Object.assign(new PythonTokens(source, { random, hedge: false }, maxTokenLength), { misses });
}

function newKey(): DataKey {
  return new DataKey(randomBytes(32), RING);
}

/** The payload and the key of a token, or the reason of its refusal. */
function outcome(tokens: TokenFormat, token: string): string {
  try {
    const { payload, key } = tokens.open(token, now);
    return `${Buffer.from(payload).toString()} under ${key.id}`;
  } catch (error) {
    if (error instanceof InvalidRequestState) return error.reason;
    throw error;
  }
}

function changed(token: string): string {
  return `${token.slice(0, -6)}${token.at(-6) === 'A' ? 'B' : 'A'}${token.slice(-5)}`;
}

afterEach(() => {
  vi.restoreAllMocks();
});

/** Records the results of a method of node:crypto from now on. Passes everything through. */
function results(prototype: object, method: string): () => readonly Buffer[] {
  const spy = vi.spyOn(prototype as Record<string, () => Buffer>, method);
  return () => spy.mock.results.map(({ value }) => value);
}

const hmacs = Object.getPrototypeOf(createHmac('sha512', 'x')) as object;
const deciphers = Object.getPrototypeOf(createDecipheriv('aes-256-gcm', randomBytes(32), randomBytes(12))) as object;
const isZero = (bytes: Uint8Array): boolean => bytes.every((byte) => byte === 0);

describe('the format that a token claims', () => {
  test.each([
    ['sr1.', 'sealring'],
    ['sr1.AAAA.AAAA', 'sealring'],
    ['v1.', 'python'],
    ['v1.AAAA', 'python'],
    ['v1.AAAA.AAAA', undefined],
    ['v1..', undefined],
    ['v1', undefined],
    ['sr1', undefined],
    ['v2.AAAA', undefined],
    ['AAAA', undefined],
    ['', undefined],
    ['.', undefined],
    [' v1.AAAA', undefined],
  ])('the format that the token %j claims is %j', (token, format) => {
    expect(formatOf(token)).toBe(format);
  });
});

describe('a payload whose token no server would accept (F30)', () => {
  for (const [name, make, least] of [
    ['sealring', (held: DataKey, maxTokenLength: number) => native([held], { maxTokenLength }), 102],
    ['python', (held: DataKey, maxTokenLength: number) => python([held], maxTokenLength), 46],
  ] as const) {
    test(`a payload whose token would be too long is not sealed as ${name}, but the longest valid payload is`, () => {
      const held = newKey();
      for (let maxTokenLength = least; maxTokenLength < least + 9; maxTokenLength++) {
        const tokens = make(held, maxTokenLength);
        const fits = (length: number): boolean => {
          try {
            return tokens.seal(new Uint8Array(length), now).length > 0;
          } catch (error) {
            if (error instanceof RangeError) return false;
            throw error;
          }
        };
        const lengths = Array.from({ length: 20 }, (_, length) => length);
        const length = lengths.find((each) => !fits(each)) ?? Infinity;
        const token = tokens.seal(new Uint8Array(length - 1), now);
        expect(token.length).toBeLessThanOrEqual(maxTokenLength);
        expect(tokens.open(token, now).payload).toHaveLength(length - 1);
        // One more byte would not have fitted.
        const longer = make(held, MAX_LENGTH).seal(new Uint8Array(length), now);
        expect(longer.length).toBeGreaterThan(maxTokenLength);
      }
    });
  }
});

describe('native tokens', () => {
  test('a native token is not unsealed under the same key for another purpose or without a purpose, with a cold or warm cache (F4)', () => {
    const held = newKey();
    const [none, cursor, other] = [
      native([held]),
      native([held], { purpose: 'cursor' }),
      native([held], { purpose: 'x' }),
    ];
    for (const sealer of [none, cursor, other]) {
      const token = sealer.seal(state, now);
      for (let round = 0; round < 2; round++) {
        for (const opener of [none, cursor, other, none]) {
          expect(outcome(opener, token)).toBe(opener === sealer ? `state under ${held.id}` : 'authentication failed');
        }
      }
    }
  });

  test('a native token costs no key derivation if its header was seen before, even when headers alternate', () => {
    const held = newKey();
    const tokens = native([held]);
    const [a, b] = [native([held]), native([held])].map((sealer) => [sealer.seal(state, now), sealer.seal(state, now)]);
    if (a === undefined || b === undefined) throw new Error('there are two sealers');
    const derived = results(hmacs, 'digest');
    for (const token of [a[0], b[0]]) expect(outcome(tokens, token ?? '')).toBe(`state under ${held.id}`);
    expect(derived()).toHaveLength(2);
    for (const token of [a[1], a[0], b[1], a[1], b[0], b[0]]) {
      expect(outcome(tokens, token ?? '')).toBe(`state under ${held.id}`);
    }
    expect(derived()).toHaveLength(2);
    expect(held.tokenKeyCount).toBe(2);
  });

  test('sealing and unsealing each allocate a buffer for a native payload over 4 KiB, and none for a smaller one', () => {
    const tokens = native([newKey()]);
    tokens.open(tokens.seal(state, now), now);
    const made = vi.spyOn(Buffer, 'allocUnsafeSlow');
    for (const [length, buffers] of [
      [0, 0],
      [4_096, 0],
      [4_097, 2],
      [9_000, 2],
    ] as const) {
      const payload = randomBytes(length);
      made.mockClear();
      const opened = tokens.open(tokens.seal(payload, now), now);
      expect([length, made.mock.calls.length]).toEqual([length, buffers]);
      expect(Buffer.from(opened.payload).equals(payload)).toBe(true);
    }
  });

  test('for a native token of an unknown key, the id of that key is noted (F5)', () => {
    const tokens = native([newKey()]);
    const stranger = newKey();
    expect(outcome(tokens, native([stranger]).seal(state, now))).toBe('unknown key');
    expect(tokens.misses).toEqual([stranger.id]);
    expect(tokens.keyIdOf(native([stranger]).seal(state, now))).toBe(stranger.id);
    expect(() => tokens.keyIdOf(`sr1.${stranger.id}`)).toThrow('malformed');
  });

  test('short and long native tokens are decoded into their parts', () => {
    const tokens = native([newKey()]);
    for (const length of [0, 1, 358, 4_096, 4_097, 9_000]) {
      const token = tokens.seal(randomBytes(length), now);
      const bytes = Buffer.from(token.slice(4), 'base64url');
      const { words, aad, salt, commitment, nonce, ciphertext, tag } = decodeToken(token);
      expect(aad).toEqual(Buffer.concat([Buffer.from('sr1.'), bytes.subarray(0, 45)]));
      expect(Buffer.from(words.buffer, words.byteOffset, words.byteLength)).toEqual(aad.subarray(1));
      expect(Buffer.concat([bytes.subarray(0, 9), salt, commitment, nonce, ciphertext, tag])).toEqual(bytes);
      expect([salt, commitment, nonce, ciphertext, tag].map((part) => part.length)).toEqual([18, 18, 12, length, 16]);
    }
  });
});

describe('tokens of the Python SDK', () => {
  test('a Python token is valid in the Python SDK’s codec under the secret derived from the data key', () => {
    const dataKey = randomBytes(32);
    const held = new DataKey(dataKey, RING);
    const message = Buffer.concat([Buffer.from('sealring/v1/python\0'), Buffer.from([0, 8]), Buffer.from(RING)]);
    const secret = createHmac('sha512', dataKey).update(message).digest().subarray(0, 32);
    const peer = new AesGcmRequestStateCodec([secret]);
    const tokens = python([held]);
    const token = tokens.seal(state, now);
    expect(Buffer.from(peer.unseal(token)).toString()).toBe('state');
    expect(outcome(tokens, peer.seal(state))).toBe(`state under ${held.id}`);
    expect([[newKey(), held], [newKey()], []].map((keys) => tokens.keyIdOf(token, keys.map(usable)))).toEqual([
      held.id,
      '',
      '',
    ]);
  });

  test.each([false, true])(
    'the nonce of a Python token comes from the generator, and depends on the payload only if hedge is set: %j (F2)',
    (hedge) => {
      const held = newKey();
      const tokens = new PythonTokens(sourceOf([held]), { random: (fill) => void fill.fill(7), hedge }, MAX_LENGTH);
      const hedgeKey = createHmac('sha256', held.secret('python')).update('sealring/python/hedge').digest();
      const hash = createHmac('sha256', hedgeKey).update(state).digest().subarray(0, 12);
      const nonce = Buffer.from(tokens.seal(state, now).slice(3), 'base64url').subarray(4, 16);
      expect(nonce).toEqual(hedge ? Buffer.from(hash.map((byte) => byte ^ 7)) : Buffer.alloc(12, 7));
    },
  );

  test('each Python token has a nonce of 12 bytes from the random source (F1)', () => {
    const drawn: Buffer[] = [];
    const source = sourceOf([newKey()]);
    const tokens = new PythonTokens(
      source,
      {
        hedge: false,
        random: (fill) => {
          random(fill);
          drawn.push(Buffer.from(fill));
        },
      },
      MAX_LENGTH,
    );
    for (let i = 0; i < 5; i++) {
      const body = Buffer.from(tokens.seal(state, now).slice(3), 'base64url');
      expect(drawn).toHaveLength(i + 1);
      expect(body.subarray(4, 16)).toEqual(drawn[i]);
    }
  });

  test('Python tokens cost one derivation per key, however many are sealed and unsealed', () => {
    const secrets = vi.spyOn(DataKey.prototype, 'secret');
    const tokens = python([newKey(), newKey()]);
    for (let i = 0; i < 5; i++) tokens.open(tokens.seal(state, now), now);
    expect(secrets).toHaveBeenCalledTimes(2);
  });

  test('each data key seals a limited number of Python tokens', () => {
    const keys = [newKey(), newKey()];
    const source = sourceOf(keys);
    const tokens = new PythonTokens(source, { random, hedge: false }, MAX_LENGTH, 2);
    for (let i = 0; i < 2; i++) tokens.seal(state, now);
    expect(() => tokens.seal(state, now)).toThrow('cannot seal: token limit of the key reached');
    keys.shift();
    for (let i = 0; i < 2; i++) tokens.seal(state, now);
    expect(() => tokens.seal(state, now)).toThrow(SealUnavailableError);
  });

  // Found by search: their keys on this wire have one fingerprint, of 32 bits.
  const twins = [15_985, 69_952].map(
    (n) => new DataKey(createHash('sha256').update(`data key ${n}`).digest(), RING),
  ) as [DataKey, DataKey];

  test('a Python token is unsealed under the right one of two keys that share a fingerprint, and under neither key once the token is changed (F16)', () => {
    expect(twins.map((held) => derivePythonKey(held.secret('python')).kid)).toEqual(['85f629fe', '85f629fe']);
    const others = [newKey(), newKey()];
    for (const order of [twins, twins.toReversed(), [others[0], ...twins, others[1]]]) {
      const tokens = python(order as DataKey[]);
      for (const held of twins) {
        const token = python([held]).seal(state, now);
        expect(outcome(tokens, token)).toBe(`state under ${held.id}`);
        expect(outcome(tokens, changed(token))).toBe('authentication failed');
      }
      // The key is known: another read of the ring would not help.
      expect(tokens.misses).toEqual([]);
    }
  });

  test('a Python token with an unknown fingerprint is noted without a key id, and no key is tried (F5)', () => {
    const tokens = python([newKey(), newKey()]);
    const opened = results(deciphers, 'update');
    expect(outcome(tokens, python([newKey()]).seal(state, now))).toBe('unknown key');
    expect(tokens.misses).toEqual([undefined]);
    expect(opened()).toEqual([]);
  });
});

describe('buffers that hold secrets (F22)', () => {
  test('every buffer from which keys are derived is overwritten, whether or not a header matches its key', () => {
    const dataKey = randomBytes(32);
    const sealer = native([new DataKey(dataKey, RING)]);
    const token = sealer.seal(state, now);
    const blocks = results(hmacs, 'digest');
    const held = new DataKey(dataKey, RING);
    held.deriveTokenKey(randomBytes(18));
    held.deriveTokenKey(randomBytes(18), { hedge: true, purpose: 'cursor' });
    const opener = native([held]);
    expect(outcome(opener, token)).toBe(`state under ${held.id}`);
    expect(outcome(native([held], { purpose: 'cursor' }), sealer.seal(state, now))).toBe('authentication failed');
    for (const label of ['python', 'typescript', 'mcp.d'] as const) expect(isZero(held.secret(label))).toBe(false);
    expect(blocks().map(({ length }) => length)).toEqual(Array.from({ length: 8 }, () => 64));
    expect(blocks().every(isZero)).toBe(true);
  });

  test('no buffer keeps the key of a Python token outside the KeyObject', () => {
    const made = vi.spyOn(Buffer, 'from');
    const { key } = derivePythonKey(randomBytes(32));
    const buffers = made.mock.results.map(({ value }) => value as Buffer);
    expect(buffers.filter((buffer) => buffer.length === 32 && isZero(buffer))).toHaveLength(1);
    expect(buffers.filter((buffer) => buffer.includes(key.export()))).toEqual([]);
    expect(isZero(key.export())).toBe(false);
  });

  test('no buffer keeps plaintext of a payload that did not authenticate, in either format', () => {
    const held = newKey();
    for (const tokens of [native([held]), python([held])]) {
      const token = tokens.seal(Buffer.from('a payload that no one may see'), now);
      const opened = results(deciphers, 'update');
      expect(outcome(tokens, changed(token))).toBe('authentication failed');
      const payloads = opened();
      expect(payloads.map(({ length }) => length)).toEqual([29]);
      expect(payloads.every(isZero)).toBe(true);
      vi.restoreAllMocks();
    }
  });
});

describe('a token key', () => {
  test('a token key has a key for hedged nonces only on request', () => {
    const held = newKey();
    const salt = randomBytes(18);
    expect(held.deriveTokenKey(salt).hedgeKey).toBeUndefined();
    expect(held.deriveTokenKey(salt, { hedge: false }).hedgeKey).toBeUndefined();
    expect(held.deriveTokenKey(salt, { hedge: true }).hedgeKey).toHaveLength(14);
  });

  test('the key of a format is imported once, and is the secret of that format (F22)', () => {
    const held = newKey();
    for (const format of ['python', 'typescript', 'mcp.d'] as const) {
      const key = held.formatKey(format);
      expect(held.formatKey(format)).toBe(key);
      expect(key.equals(createSecretKey(held.secret(format)))).toBe(true);
      const other = held.secret(format === 'python' ? 'mcp.d' : 'python');
      expect(timingSafeEqual(key.export(), other)).toBe(false);
    }
  });
});
