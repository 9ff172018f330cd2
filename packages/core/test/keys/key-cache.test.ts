import { createHmac, randomBytes } from 'node:crypto';
import { inspect } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Moment } from '../../src/base/clock.ts';
import { InvalidRequestState } from '../../src/contracts/codec.ts';
import { subKey } from '../../src/formats/derivation.ts';
import {
  deriveTokenKey,
  type SealingTokenKey,
  sealSealring,
  type TokenKey,
  tokenKeySource,
} from '../../src/formats/sealring.ts';
import { decodeToken } from '../../src/formats/sealring-token.ts';
import { DataKey } from '../../src/keys/data-key.ts';
import { EnvelopeKeyCache, MAX_TOKEN_KEYS } from '../../src/keys/envelope-key-cache.ts';
import { isOverwritten } from '../support/overwritten.ts';
import { sourceOf, tokensOver } from '../support/tokens.ts';

/** The error of every use of an overwritten key. */
const GONE = /was overwritten/;
const START = 1_795_000_000_000;
const moment: Moment = Object.freeze({ wallMs: START, steadyMs: 1_000 });

/** The owner of the keys that a test makes. */
let cache = new EnvelopeKeyCache('payments');
beforeEach(() => {
  cache = new EnvelopeKeyCache('payments');
});

function newKey(): { readonly dataKey: Buffer; readonly held: DataKey } {
  const dataKey = randomBytes(32);
  return { dataKey, held: cache.take(Buffer.from(dataKey)) };
}

function canAuthenticate({ authenticator }: DataKey): boolean {
  try {
    return authenticator.mac('a fact').length === 32;
  } catch {
    return false;
  }
}

/** The token key of a new salt, for unsealing. */
function openingOf(held: DataKey): TokenKey {
  const token = sealWith(held.deriveTokenKey(randomBytes(18)));
  return held.unsealingTokenKey(decodeToken(token), undefined);
}

function sealWith(tokenKey: SealingTokenKey): string {
  return sealSealring(tokenKey, randomBytes(12), Buffer.from('state'), new Uint8Array(16));
}

/** Every Buffer that is made during `run`. Passes everything through. */
function buffersMadeBy(run: () => void): readonly Buffer[] {
  const made: Buffer[] = [];
  const spies = (['from', 'alloc', 'allocUnsafe', 'allocUnsafeSlow', 'concat'] as const).map((name) =>
    vi.spyOn(Buffer, name),
  );
  run();
  for (const spy of spies) {
    for (const result of spy.mock.results) if (result.type === 'return') made.push(result.value);
  }
  vi.restoreAllMocks();
  return made;
}

afterEach(() => {
  vi.restoreAllMocks();
});

describe('the remains of a data key (F22)', () => {
  test('a held key copies the bytes that it is given, and its id depends on them alone', () => {
    const { dataKey, held } = newKey();
    const same = Buffer.from(dataKey);
    dataKey.fill(1);
    expect(held.equals(same)).toBe(true);
    expect(held.equals(dataKey)).toBe(false);
    expect(held.id).toBe(new DataKey(same, 'another').id);
    const copy = held.copyBytes();
    copy.fill(0);
    expect(held.equals(same)).toBe(true);
  });

  const formats = ['python', 'typescript', 'mcp.d'] as const;

  test('destroying a data key overwrites every buffer that holds it or the secret of a format', () => {
    const dataKey = randomBytes(32);
    let held = new DataKey(randomBytes(32), 'payments');
    const secrets: Buffer[] = [];
    const made = buffersMadeBy(() => {
      held = new DataKey(dataKey, 'payments');
      for (const format of [...formats, ...formats]) secrets.push(held.secret(format));
      held.deriveTokenKey(randomBytes(18));
    });
    const canaries = [dataKey, ...secrets].map((bytes) => Buffer.from(bytes));
    const holding = () => made.filter((buffer) => canaries.some((canary) => buffer.includes(canary)));
    expect(holding().length).toBeGreaterThanOrEqual(4);
    held.destroy();
    expect(holding()).toEqual([]);
    expect(secrets.every((secret) => secret.equals(Buffer.alloc(32)))).toBe(true);
  });

  test('a destroyed data key returns no bytes, and derives no token key or format key from its zeros', () => {
    const { held } = newKey();
    held.rememberTokenKey(openingOf(held));
    for (const format of formats) held.formatKey(format);
    held.destroy();
    expect(() => held.copyBytes()).toThrow(GONE);
    expect(() => held.equals(Buffer.alloc(32))).toThrow(GONE);
    expect(() => held.deriveTokenKey(randomBytes(18))).toThrow(GONE);
    expect(() => held.deriveTokenKey(randomBytes(18), { purpose: 'cursor' })).toThrow(GONE);
    for (const format of formats) {
      expect(() => held.secret(format)).toThrow(GONE);
      expect(() => held.formatKey(format)).toThrow(GONE);
    }
    expect(held.tokenKeyCount).toBe(0);
  });

  test('the authenticator of a destroyed data key authenticates facts as before', () => {
    const { held } = newKey();
    const before = held.authenticator.mac('a fact');
    held.destroy();
    expect(held.authenticator.mac('a fact')).toEqual(before);
    expect(held.authenticator.mac('another')).not.toEqual(before);
  });

  test('an authenticator has the ring-mac sub-key of the data key, overwrites it when destroyed, and throws from then on', () => {
    const { dataKey } = newKey();
    const sub = createHmac('sha512', dataKey)
      .update('sealring/v1/ring-mac\0')
      .update(Buffer.from([0, 8]))
      .update('payments')
      .digest()
      .subarray(0, 32);
    let authenticator = newKey().held.authenticator;
    const made = buffersMadeBy(() => {
      ({ authenticator } = new DataKey(dataKey, 'payments'));
    });
    const holding = () => made.filter((buffer) => buffer.includes(sub));
    expect(authenticator.mac('a fact')).toEqual(createHmac('sha256', sub).update('a fact').digest());
    expect(holding().length).toBeGreaterThan(0);
    authenticator.destroy();
    expect(holding()).toEqual([]);
    expect(() => authenticator.mac('a fact')).toThrow(GONE);
  });

  test('warm token keys are dropped with the key (F15)', () => {
    const { held } = newKey();
    const tokenKey = openingOf(held);
    held.rememberTokenKey(tokenKey);
    expect(held.knownTokenKey(tokenKey.words)).toBe(tokenKey);
    held.destroy();
    expect(held.knownTokenKey(tokenKey.words)).toBeUndefined();
  });
});

describe('printed keys (F21)', () => {
  function textsOf(bytes: Uint8Array): string[] {
    const buffer = Buffer.from(bytes);
    return [
      buffer.toString('hex').slice(0, 16),
      buffer.toString('base64').slice(0, 12),
      buffer.toString('base64url').slice(0, 12),
      [...buffer.subarray(0, 6)].join(', '),
      [...buffer.subarray(0, 6)].join(','),
      (buffer.toString('hex').slice(0, 12).match(/../g) ?? []).join(' '),
    ];
  }

  test('inspect, JSON and String of a held key and of the cache show no bytes of the key', () => {
    const { dataKey, held } = newKey();
    held.authenticator.mac('a fact');
    const ringMac = subKey(dataKey, 'ring-mac', 'payments').subarray(0, 32);
    const secrets = [dataKey, held.secret('python'), ringMac, held.secret('mcp.d')];
    const tokenKey = held.deriveTokenKey(randomBytes(18), { hedge: true });
    const opening = openingOf(held);
    held.rememberTokenKey(opening);
    held.formatKey('python');
    const keys = [tokenKey.key.export(), opening.key.export()];
    const bytes = [...secrets, tokenKey.hedgeKey ?? randomBytes(14), ...keys];
    for (const thing of [held, held.authenticator, cache, { held, cache, list: [held] }]) {
      const sinks = [
        inspect(thing, {
          depth: Infinity,
          showHidden: true,
          maxArrayLength: null,
          maxStringLength: null,
          getters: true,
        }),
        JSON.stringify(thing),
        inspect(thing),
      ];
      for (const text of sinks) {
        for (const canary of bytes.flatMap(textsOf)) expect(text).not.toContain(canary);
      }
    }
    expect(JSON.parse(JSON.stringify([held, held.authenticator]))).toEqual([{ id: held.id }, { id: held.id }]);
  });

  test('errors of an overwritten key contain only its id', () => {
    const { dataKey, held } = newKey();
    held.destroy();
    let text = '';
    try {
      held.copyBytes();
    } catch (error) {
      text = inspect(error, { showHidden: true, depth: Infinity });
    }
    expect(text).toContain(held.id);
    for (const canary of textsOf(dataKey)) expect(text).not.toContain(canary);
  });
});

describe('the envelope key cache (F23)', () => {
  const noIds: ReadonlySet<string> = new Set();

  test('returns one data key for equal bytes, and overwrites the bytes that it receives', () => {
    const bytes = randomBytes(32);
    const [once, again] = [Buffer.from(bytes), Buffer.from(bytes)];
    const held = cache.take(once);
    expect(cache.take(again)).toBe(held);
    expect([once, again]).toEqual([Buffer.alloc(32), Buffer.alloc(32)]);
    expect(held.equals(bytes)).toBe(true);
    expect(cache.size).toBe(1);
  });

  test('finds a key only by its id', () => {
    const one = cache.take(randomBytes(32));
    expect([cache.get(one.id), cache.get(randomBytes(9).toString('base64url')), cache.get('')]).toEqual([
      one,
      undefined,
      undefined,
    ]);
  });

  test('overwrites exactly the data keys and authenticators that are not kept (F22)', () => {
    const keys = Array.from({ length: 20 }, () => cache.take(randomBytes(32)));
    const ids = (some: readonly DataKey[]): ReadonlySet<string> => new Set(some.map(({ id }) => id));
    const [held, limited] = [keys.filter((_, i) => i % 3 === 0), keys.filter((_, i) => i % 3 === 1)];
    cache.retain(ids(held), ids(limited));
    expect(cache.size).toBe(held.length);
    for (const key of keys) {
      expect(isOverwritten(key)).toBe(!held.includes(key));
      expect(cache.get(key.id)).toBe(held.includes(key) ? key : undefined);
      expect(canAuthenticate(key)).toBe(held.includes(key) || limited.includes(key));
    }
  });

  test('returns the earlier authenticator for a data key that comes back, which can seal again', () => {
    const bytes = randomBytes(32);
    const { id, authenticator } = cache.take(Buffer.from(bytes));
    cache.retain(noIds, new Set([id]));
    const back = cache.take(bytes);
    expect(back.authenticator).toBe(authenticator);
    expect(sealWith(back.deriveTokenKey(randomBytes(18)))).toMatch(/^sr1\./);
    expect(cache.get(id)).toBe(back);
  });

  test('overwrites a key that is dropped, with its authenticator (F22)', () => {
    const { dataKey, held: one } = newKey();
    const two = cache.take(randomBytes(32));
    cache.drop(one.id);
    cache.drop('none');
    expect([isOverwritten(one), isOverwritten(two), cache.size]).toEqual([true, false, 1]);
    expect(() => one.authenticator.mac('a fact')).toThrow(GONE);
    expect(canAuthenticate(cache.take(dataKey))).toBe(true);
  });

  test('overwrites everything when it is cleared (F22)', () => {
    const keys = Array.from({ length: 5 }, newKey);
    cache.clear();
    expect(cache.size).toBe(0);
    expect(keys.every(({ held }) => isOverwritten(held))).toBe(true);
    for (const { held } of keys) expect(() => held.authenticator.mac('a fact')).toThrow(GONE);
    expect(keys.every(({ dataKey }) => canAuthenticate(cache.take(dataKey)))).toBe(true);
  });
});

/** Reachable bytes on V8's heap. */
function bytesHeld(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().heapUsed;
}

describe('the memory that a token uses (F23)', () => {
  test('only the header of a token is remembered, and the token itself is released', () => {
    const { dataKey, held } = newKey();
    const tokens = tokensOver(sourceOf([held]), { cache });
    const source = tokenKeySource(dataKey, 'payments');
    const payload = Buffer.alloc(150_000);
    const openOne = (): void => {
      const token = sealSealring(deriveTokenKey(source, randomBytes(18)), randomBytes(12), payload, new Uint8Array(16));
      // Flat, like one that came over a socket.
      tokens.open(Buffer.from(token, 'latin1').toString('latin1'), moment);
    };
    openOne();
    const before = bytesHeld();
    for (let i = 0; i < 100; i++) openOne();
    expect(held.tokenKeyCount).toBe(101);
    // A hundred of them would be twenty million bytes.
    expect(bytesHeld() - before).toBeLessThan(2_000_000);
  });
});

describe('remembered token keys (F5)', () => {
  test('token keys are remembered only for headers of an authenticated token', () => {
    const { dataKey, held } = newKey();
    const tokens = tokensOver(sourceOf([held]), { cache });
    const refused = (token: string) => expect(() => tokens.open(token, moment)).toThrow(InvalidRequestState);
    for (let i = 0; i < 5_000; i++) {
      // The right key, and a forged header and body.
      refused(`sr1.${held.id}${randomBytes(36 + 28).toString('base64url')}`);
    }
    for (let i = 0; i < 500; i++) {
      // Also try the right header, including its commitment, with a changed body.
      const token = sealWith(deriveTokenKey(tokenKeySource(dataKey, 'payments'), randomBytes(18)));
      refused(`${token.slice(0, 64)}${randomBytes(33).toString('base64url')}`);
    }
    expect(held.tokenKeyCount).toBe(0);
    const token = tokens.seal(Buffer.from('state'), moment);
    tokens.open(token, moment);
    tokens.open(token, moment);
    expect(held.tokenKeyCount).toBe(1);
    refused(`${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`);
    expect(held.tokenKeyCount).toBe(1);
  });

  test('at most 10 000 token keys are remembered for all data keys; the oldest one of the data key with the most is dropped first', () => {
    const [one, two] = [newKey(), newKey()];
    const tokens = tokensOver(sourceOf([one.held, two.held]), { cache });
    const total = () => one.held.tokenKeyCount + two.held.tokenKeyCount;
    expect(MAX_TOKEN_KEYS).toBe(10_000);
    // Represents ten thousand clients: only the header differs.
    const model = openingOf(two.held);
    const wordsOf = (i: number) => new Int32Array(12).fill(i);
    for (let i = 0; i < 9_990; i++) {
      cache.makeRoomForTokenKey();
      two.held.rememberTokenKey({ ...model, words: wordsOf(i) });
    }
    for (let i = 0; i < 300; i++) {
      const tokenKey = deriveTokenKey(tokenKeySource(one.dataKey, 'payments'), randomBytes(18));
      tokens.open(sealWith(tokenKey), moment);
      expect(total()).toBeLessThanOrEqual(MAX_TOKEN_KEYS);
    }
    expect(one.held.tokenKeyCount).toBe(300);
    expect(two.held.tokenKeyCount).toBe(9_700);
    const known = (i: number) => two.held.knownTokenKey(wordsOf(i)) !== undefined;
    expect([known(0), known(289), known(290), known(5_000)]).toEqual([false, false, true, true]);
    // One key alone is bounded too.
    for (let i = 0; i < 20_000; i++) {
      cache.makeRoomForTokenKey();
      one.held.rememberTokenKey({ ...model, words: wordsOf(-1 - i) });
    }
    expect(total()).toBe(MAX_TOKEN_KEYS);
  });

  test('token keys are looked up by the whole header: another salt, commitment or key id finds none (F4)', () => {
    const { held } = newKey();
    const tokens = tokensOver(sourceOf([held]), { cache });
    const token = tokens.seal(Buffer.from('state'), moment);
    const { words } = decodeToken(token);
    expect(held.knownTokenKey(words)).toBeUndefined();
    tokens.open(token, moment);
    expect(held.knownTokenKey(decodeToken(token).words)?.words).toEqual(new Int32Array(words));
    for (let at = 4; at < 64; at++) {
      const other = token.slice(0, at) + (token.charAt(at) === 'A' ? 'B' : 'A') + token.slice(at + 1);
      expect(held.knownTokenKey(decodeToken(other).words)).toBeUndefined();
    }
  });

  test('token keys whose salts begin alike replace each other: both unseal, but only the last is remembered', () => {
    const { dataKey, held } = newKey();
    const tokens = tokensOver(sourceOf([held]), { cache });
    const source = tokenKeySource(dataKey, 'payments');
    const [one, two] = [1, 2].map((last) => sealWith(deriveTokenKey(source, Buffer.alloc(18).fill(last, 4))));
    if (one === undefined || two === undefined) throw new Error('there are two');
    for (const [opened, other] of [[one, two] as const, [two, one] as const, [one, two] as const]) {
      expect(Buffer.from(tokens.open(opened, moment).payload).toString()).toBe('state');
      expect(held.knownTokenKey(decodeToken(opened).words)).toBeDefined();
      expect(held.knownTokenKey(decodeToken(other).words)).toBeUndefined();
      expect(held.tokenKeyCount).toBe(1);
    }
  });
});
