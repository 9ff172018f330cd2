import { createHmac, hkdfSync, randomBytes, randomFillSync } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { inspect } from 'node:util';
import * as fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { AesGcmRequestStateCodec } from '../../src/codec/aes-gcm-codec.ts';
import { createKmsCodec, type KmsCodec } from '../../src/codec/kms-codec.ts';
import type { KmsCodecOptions } from '../../src/codec/kms-codec-options.ts';
import { keeperOf } from '../../src/codec/ring-codec.ts';
import { InvalidRequestState, type RequestStateCodec } from '../../src/contracts/codec.ts';
import { CodecClosedError, SealUnavailableError } from '../../src/contracts/errors.ts';
import { channels, hashedKeyId } from '../../src/contracts/events.ts';
import type { KeyWrapper } from '../../src/contracts/key-wrapper.ts';
import type { RingStore } from '../../src/contracts/ring-store.ts';
import { localKeyWrapper } from '../../src/kms/local-key-wrapper.ts';
import { memoryRing } from '../../src/stores/memory-ring.ts';
import { EventLog } from '../support/event-log.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const closers: (() => Promise<void>)[] = [];

afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
});

/** A local key wrapper that counts its calls and shows the data keys it generated. */
function countingWrapper(masterKey: Uint8Array = randomBytes(32)) {
  const local = localKeyWrapper({ masterKey });
  const calls = { wrap: 0, unwrap: 0, generate: 0 };
  const dataKeys: Buffer[] = [];
  const keyWrapper: KeyWrapper = {
    ...local,
    async wrap(dataKey, options) {
      calls.wrap += 1;
      return local.wrap(dataKey, options);
    },
    async unwrap(wrapped, options) {
      calls.unwrap += 1;
      return local.unwrap(wrapped, options);
    },
    async generate(options) {
      calls.generate += 1;
      const made = await local.generate?.(options);
      if (made === undefined) throw new Error('the local key wrapper generates');
      dataKeys.push(Buffer.from(made.dataKey));
      return made;
    },
  };
  return { keyWrapper, calls, dataKeys };
}

/** The same wrapper for a service that makes no data keys: they come from the random source. */
function withoutGenerate(local: KeyWrapper): KeyWrapper {
  const { provider, keyId, supports } = local;
  return {
    provider,
    keyId,
    supports,
    wrap: (dataKey, options) => local.wrap(dataKey, options),
    unwrap: (wrapped, options) => local.unwrap(wrapped, options),
  };
}

/** The services that the members of one fleet share. */
function newFleet() {
  const { keyWrapper, calls, dataKeys } = countingWrapper();
  return { keyWrapper, calls, dataKeys, ring: memoryRing(), clock: new VirtualClock('2026-11-21T03:00:00Z') };
}

type Fleet = Pick<ReturnType<typeof newFleet>, 'keyWrapper' | 'ring' | 'clock'>;

async function join(fleet: Fleet, options: Partial<KmsCodecOptions> = {}): Promise<KmsCodec> {
  const { keyWrapper, ring, clock } = fleet;
  const start = { settled: false };
  const starting = createKmsCodec({ keyWrapper, ring, clock, ...options }).finally(() => {
    start.settled = true;
  });
  const ended = starting.catch(() => undefined);
  // Runs all due timers; no time passes.
  while (!start.settled) await Promise.race([clock.advance(0), ended]);
  const codec = await starting;
  closers.push(() => codec.close());
  return codec;
}

const seal = (codec: RequestStateCodec, text = 'state'): string => codec.seal(encoder.encode(text));

function outcome(codec: RequestStateCodec, token: unknown): string {
  try {
    return decoder.decode(codec.unseal(token as string));
  } catch (error) {
    if (error instanceof InvalidRequestState) return `refused: ${error.reason}`;
    throw error;
  }
}

function errorOf(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  return undefined;
}

describe('a codec over a ring', () => {
  test('returns 0 to 100 KB of bytes unchanged, and so does every other member', async () => {
    const fleet = newFleet();
    const [one, two] = [await join(fleet), await join(fleet)];
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 500 }), fc.nat(200), fc.boolean(), (bytes, times, swap) => {
        const payload = Buffer.concat(Array.from({ length: times }, () => bytes));
        const [from, to] = swap ? [two, one] : [one, two];
        expect(Buffer.from(to.unseal(from.seal(payload))).equals(payload)).toBe(true);
        expect(Buffer.from(from.unseal(from.seal(payload))).equals(payload)).toBe(true);
      }),
      { numRuns: 150 },
    );
  });

  test('seals one payload differently each time', async () => {
    const codec = await join(newFleet());
    expect(new Set(Array.from({ length: 1_000 }, () => seal(codec))).size).toBe(1_000);
  });

  test('a reader unseals the tokens of members, and cannot seal, rotate or revoke', async () => {
    const fleet = newFleet();
    const member = await join(fleet);
    const reader = await join(fleet, { role: 'reader' });
    expect(outcome(reader, seal(member))).toBe('state');
    expect(outcome(reader.for('cursor'), seal(member.for('cursor')))).toBe('state');
    for (const codec of [reader, reader.for('cursor')]) {
      const error = errorOf(() => seal(codec));
      expect(error).toBeInstanceOf(SealUnavailableError);
      expect(error).toMatchObject({ code: 'ERR_SEAL_UNAVAILABLE', reason: 'reader' });
    }
    const before = await fleet.ring.read();
    const { sealingKey = '' } = member.health();
    const asked = [
      reader.rotate(),
      reader.rotate({ emergency: true }),
      reader.revoke(sealingKey),
      reader.revokeAllBefore(new Date()),
    ];
    for (const result of await Promise.allSettled(asked)) {
      expect(result).toMatchObject({ status: 'rejected', reason: { name: 'RingStoreError', kind: 'read-only' } });
    }
    expect(await fleet.ring.read()).toEqual(before);
    expect(reader.health()).toMatchObject({ status: 'ok', ready: true, canSeal: false, canUnseal: true });
  });

  test('makes no KMS calls other than generate, KMS check and unwrap for 10 000 seals and unseals on two members', async () => {
    const fleet = newFleet();
    const [one, two] = [await join(fleet), await join(fleet)];
    // The creator generates and checks; the other member unwraps.
    expect(fleet.calls).toEqual({ generate: 1, wrap: 0, unwrap: 2 });
    for (let i = 0; i < 5_000; i++) {
      expect(outcome(two, seal(one, `a${i}`))).toBe(`a${i}`);
      expect(outcome(one, seal(two, `b${i}`))).toBe(`b${i}`);
      expect(outcome(one, `sr1.${randomBytes(90).toString('base64url')}`)).toBe('refused: unknown key');
    }
    expect(fleet.calls).toEqual({ generate: 1, wrap: 0, unwrap: 2 });
  });

  test('unseals tokens of the active key on a member that starts after a rotation', async () => {
    const fleet = newFleet();
    const one = await join(fleet);
    const token = seal(one);
    await one.rotate();
    const two = await join(fleet);
    expect(outcome(two, token)).toBe('state');
    expect(outcome(two, seal(one))).toBe('state');
    expect(two.health().keys.map((key) => [key.state, key.held])).toEqual([
      ['active', true],
      ['propagating', true],
    ]);
  });

  test('refuses a warm token of a revoked key (F15)', async () => {
    const fleet = newFleet();
    const codec = await join(fleet);
    const token = seal(codec);
    expect(outcome(codec, token)).toBe('state');
    const { sealingKey = '' } = codec.health();
    const held = keeperOf(codec)?.view.snapshot.byId.get(sealingKey)?.held;
    await codec.revoke(sealingKey);
    expect(outcome(codec, token)).toBe('refused: unknown key');
    expect(outcome(codec, seal(codec))).toBe('state');
    expect(codec.health().sealingKey).not.toBe(sealingKey);
    // F22: its bytes are gone too.
    expect(() => held?.copyBytes()).toThrow(/was overwritten/);
    expect(held).toBeDefined();
  });
});

describe('codec.for(purpose) (F4)', () => {
  test('a purpose has its own token keys: no token is unsealed for another purpose or without one, cold or warm', async () => {
    const fleet = newFleet();
    const [one, two] = [await join(fleet), await join(fleet)];
    const names = [undefined, 'cursor', 'cursor2', 'curso', 'default'];
    const at = (codec: KmsCodec, name: string | undefined) => (name === undefined ? codec : codec.for(name));
    const tokens = names.map((name) => seal(at(one, name), name));
    for (const warm of [false, true]) {
      for (const [i, name] of names.entries()) {
        for (const [j, token] of tokens.entries()) {
          if (warm) for (const [k, each] of tokens.entries()) outcome(at(two, names[k]), each);
          const expected = i === j ? (name ?? 'state') : 'refused: authentication failed';
          expect(outcome(at(two, name), token)).toBe(expected);
        }
      }
    }
  });

  test('each member has one codec for a purpose, which always uses the sealring format', async () => {
    const fleet = newFleet();
    const python = await join(fleet, { format: 'python', accept: ['python', 'sealring'] });
    const other = await join(fleet);
    expect(python.for('cursor')).toBe(python.for('cursor'));
    expect(seal(python.for('cursor'))).toMatch(/^sr1\./);
    expect(outcome(other.for('cursor'), seal(python.for('cursor')))).toBe('state');
    expect(outcome(python.for('cursor'), seal(python))).toBe('refused: malformed');
  });

  test('accepts 1 to 64 characters of [A-Za-z0-9._-] and nothing else', async () => {
    const codec = await join(newFleet());
    for (const purpose of ['', 'a b', 'a/b', 'a\0', 'x'.repeat(65), 'ä', 'cursor\n']) {
      expect(() => codec.for(purpose)).toThrow(RangeError);
    }
    for (const purpose of [undefined, null, 5, {}, ['cursor']]) {
      expect(() => codec.for(purpose as string)).toThrow(TypeError);
    }
    expect(outcome(codec.for('__proto__'), seal(codec.for('__proto__')))).toBe('state');
    expect(outcome(codec.for('constructor'), seal(codec.for('__proto__')))).toBe('refused: authentication failed');
  });

  test('works for any number of purposes, of which only some are remembered (F23)', async () => {
    const codec = await join(newFleet());
    const tokens = Array.from({ length: 1_000 }, (_, i) => seal(codec.for(`p${i}`)));
    for (const [i, token] of tokens.entries()) {
      expect(outcome(codec.for(`p${i}`), token)).toBe('state');
    }
  });
});

describe('the allow-list accept (F24)', () => {
  test('two codecs of one ring each apply their own accept list, even if the other has unsealed the token (F4)', async () => {
    const fleet = newFleet();
    const native = await join(fleet);
    const python = await join(fleet, { format: 'python' });
    const both = await join(fleet, { accept: ['sealring', 'python'] });
    const tokens = { native: seal(native), python: seal(python) };
    for (let round = 0; round < 2; round++) {
      expect(outcome(both, tokens.native)).toBe('state');
      expect(outcome(both, tokens.python)).toBe('state');
      expect(outcome(native, tokens.native)).toBe('state');
      expect(outcome(native, tokens.python)).toBe('refused: malformed');
      expect(outcome(python, tokens.python)).toBe('state');
      expect(outcome(python, tokens.native)).toBe('refused: malformed');
    }
  });

  test('a fleet moves from sealring to python without losing a token (F27)', async () => {
    const fleet = newFleet();
    const before = await join(fleet);
    const reads = await join(fleet, { accept: ['sealring', 'python'] });
    const writes = await join(fleet, { format: 'python', accept: ['sealring', 'python'] });
    const last = await join(fleet, { format: 'python' });
    expect(seal(writes)).toMatch(/^v1\.[A-Za-z0-9_-]+$/);
    for (const [sealer, openers] of [
      [before, [before, reads, writes]],
      [reads, [before, reads, writes]],
      [writes, [reads, writes, last]],
      [last, [reads, writes, last]],
    ] as const) {
      for (const opener of openers) expect(outcome(opener, seal(sealer))).toBe('state');
    }
  });

  test('the python format is the Python SDK’s, with sub(python) as the secret: the SDK’s codec unseals our tokens, and vice versa', async () => {
    const fleet = newFleet();
    const codec = await join(fleet, { format: 'python', ringName: 'payments' });
    const [dataKey] = fleet.dataKeys;
    if (dataKey === undefined) throw new Error('the ring has a key');
    const message = Buffer.concat([
      Buffer.from('sealring/v1/python\0'),
      Buffer.from([0, 'payments'.length]),
      Buffer.from('payments'),
    ]);
    const secret = createHmac('sha512', dataKey).update(message).digest().subarray(0, 32);
    const peer = new AesGcmRequestStateCodec([secret]);
    expect(outcome(peer, seal(codec))).toBe('state');
    expect(outcome(codec, seal(peer))).toBe('state');
    // The peer's secret unseals only that format.
    expect(new AesGcmRequestStateCodec([dataKey]).seal(new Uint8Array(0)).slice(3, 8)).not.toBe(
      seal(codec).slice(3, 8),
    );
    expect(hkdfSync('sha256', secret, '', 'mcp/request-state/v1/aes-256-gcm', 32).byteLength).toBe(32);
  });

  test('a python token of another ring, or a changed one, is refused with its reason', async () => {
    const codec = await join(newFleet(), { format: 'python' });
    const stranger = await join(newFleet(), { format: 'python' });
    expect(outcome(codec, seal(stranger))).toBe('refused: unknown key');
    const token = seal(codec);
    expect(outcome(codec, `${token.slice(0, -2)}${token.endsWith('AA') ? 'BA' : 'AA'}`)).toBe(
      'refused: authentication failed',
    );
    expect(outcome(codec, `${token}=`)).toBe('refused: malformed');
    expect(outcome(codec, `${token}.${token}`)).toBe('refused: malformed');
  });
});

describe('another ring (F25)', () => {
  test('a token of a ring with other keys is refused as an unknown key', async () => {
    expect(outcome(await join(newFleet()), seal(await join(newFleet())))).toBe('refused: unknown key');
  });

  test('a ring with a different name unseals no token, even with the same KMS key and the same data key', async () => {
    // A wrapper that leaves data keys to the random source, and a source that draws the same key for both rings.
    const wrapper = withoutGenerate(localKeyWrapper({ masterKey: randomBytes(32) }));
    const dataKey = randomBytes(32);
    const random = (fill: Uint8Array) => {
      if (fill.length === 32) fill.set(dataKey);
      else randomFillSync(fill);
    };
    const start = (ringName: string, more: Partial<KmsCodecOptions> = {}) =>
      join(
        { keyWrapper: wrapper, ring: memoryRing(), clock: new VirtualClock('2026-11-21T03:00:00Z') },
        { ringName, random, ...more },
      );
    const both: Partial<KmsCodecOptions> = { accept: ['sealring', 'python'] };
    const [payments, orders, twin] = [await start('payments'), await start('orders', both), await start('payments')];
    expect(orders.health().sealingKey).toBe(payments.health().sealingKey);
    expect(outcome(orders, seal(payments))).toBe('refused: authentication failed');
    expect(outcome(twin, seal(payments))).toBe('state');
    const python = await start('payments', { format: 'python' });
    expect(outcome(orders, seal(python))).toBe('refused: unknown key');
  });

  test('a ring with a different name is not read from the same store', async () => {
    const fleet = newFleet();
    await join(fleet, { ringName: 'payments' });
    await expect(join(fleet, { ringName: 'orders' })).rejects.toMatchObject({
      name: 'RingStoreError',
      kind: 'corrupt',
      detail: 'the ring has a different name: it is "payments", but ringName is "orders"',
    });
  });
});

describe('unseal', () => {
  test('refuses a value that is not a token as malformed, whatever it is', async () => {
    const codec = await join(newFleet(), { accept: ['sealring', 'python'] });
    const token = seal(codec);
    const junk: unknown[] = [
      undefined,
      null,
      0,
      1,
      Number.NaN,
      5n,
      true,
      Symbol('x'),
      {},
      [],
      [token],
      { toString: () => token },
      Object(token),
      Buffer.from(token),
      () => token,
      '',
      'sr1.',
      'v1.',
      'v1..',
      '.',
      `${token}\n`,
      ` ${token}`,
      `sr1.${'A'.repeat(97)}`,
      token.slice(4),
      `${token}.`,
      `v1.${token}`,
      token.slice(0, 101),
    ];
    for (const each of junk) {
      expect(outcome(codec, each)).toBe('refused: malformed');
      expect(outcome(codec.for('cursor'), each)).toBe('refused: malformed');
    }
  });

  test('refuses with errors of one class, whose message is only the reason (F20)', async () => {
    const codec = await join(newFleet());
    const token = seal(codec);
    const refused = {
      malformed: `${token}=`,
      'unknown key': `sr1.AAAAAAAAAAAA${token.slice(16)}`,
      'authentication failed': `${token.slice(0, 70)}${token.charAt(70) === 'A' ? 'B' : 'A'}${token.slice(71)}`,
    };
    for (const [reason, bad] of Object.entries(refused)) {
      const error = errorOf(() => codec.unseal(bad));
      expect(error).toBeInstanceOf(InvalidRequestState);
      expect(error).toMatchObject({ name: 'InvalidRequestState', message: reason, reason });
      expect(error).not.toHaveProperty('cause');
      expect(Object.keys(error as object).toSorted()).toEqual(['code', 'help', 'name', 'reason']);
      expect(reason.length).toBeLessThanOrEqual(32);
    }
  });

  test('throws nothing but InvalidRequestState for text of any kind', async () => {
    const codec = await join(newFleet(), { accept: ['sealring', 'python'] });
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 200 }),
      fc.tuple(fc.constantFrom('sr1.', 'v1.', 'v1e.'), fc.base64String({ maxLength: 200 })).map(([a, b]) => a + b),
      fc
        .uint8Array({ minLength: 73, maxLength: 120 })
        .map((bytes) => `sr1.${Buffer.from(bytes).toString('base64url')}`),
    );
    fc.assert(
      fc.property(text, (each) => {
        expect(outcome(codec, each)).toMatch(/^refused: (malformed|unknown key|seal)$/);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('seal', () => {
  test('rejects a value that is not a Uint8Array with a TypeError', async () => {
    const codec = await join(newFleet());
    for (const each of [
      undefined,
      null,
      'state',
      5,
      [1, 2],
      {},
      new ArrayBuffer(4),
      new Uint16Array(2),
      new DataView(new ArrayBuffer(2)),
    ]) {
      for (const sealer of [codec, codec.for('cursor')]) {
        expect(() => sealer.seal(each as Uint8Array)).toThrow(TypeError);
      }
    }
    for (const view of [Buffer.from('state'), new Uint8Array(encoder.encode('xstatex').buffer, 1, 5)]) {
      expect(decoder.decode(codec.unseal(codec.seal(view)))).toBe('state');
    }
  });

  test('neither keeps nor changes the payload, and the result of unseal belongs to the caller alone', async () => {
    for (const format of ['sealring', 'python'] as const) {
      const codec = await join(newFleet(), { format });
      for (const length of [0, 1, 100, 7_000]) {
        const payload = randomBytes(length);
        const before = Buffer.from(payload);
        const token = codec.seal(payload);
        expect(payload.equals(before)).toBe(true);
        payload.fill(0xee);
        const [first, second] = [codec.unseal(token), codec.unseal(token)];
        expect(Buffer.from(first).equals(before)).toBe(true);
        expect(first.buffer).not.toBe(second.buffer);
        // A separate array, without a shared pool behind it.
        expect([first.byteOffset, first.buffer.byteLength]).toEqual([0, length]);
        first.fill(0xdd);
        expect(Buffer.from(codec.unseal(token)).equals(before)).toBe(true);
        codec.unseal(codec.seal(randomBytes(length)));
        expect(Buffer.from(second).equals(before)).toBe(true);
        expect(Object.getPrototypeOf(second)).toBe(Uint8Array.prototype);
      }
    }
  });

  for (const format of ['sealring', 'python'] as const) {
    test(`seals in the ${format} format only payloads that the codec would unseal: maxTokenLength applies to both (F30)`, async () => {
      for (const maxTokenLength of [102, 103, 104, 105, 106, 500, 1_001]) {
        const codec = await join(newFleet(), { format, maxTokenLength });
        let longest = -1;
        for (let length = 0; length < 1_000; length++) {
          const error = errorOf(() => {
            const token = codec.seal(new Uint8Array(length));
            expect(token.length).toBeLessThanOrEqual(maxTokenLength);
            expect(codec.unseal(token)).toHaveLength(length);
            longest = length;
          });
          expect(error === undefined || error instanceof RangeError).toBe(true);
        }
        const overhead = format === 'sealring' ? { prefix: 4, bytes: 73 } : { prefix: 3, bytes: 32 };
        const next = overhead.prefix + Math.ceil(((overhead.bytes + longest + 1) * 4) / 3);
        expect(next).toBeGreaterThan(maxTokenLength);
        expect(outcome(codec, `sr1.${'A'.repeat(maxTokenLength)}`)).toBe('refused: malformed');
      }
    });
  }
});

describe('health', () => {
  test('the health of a fresh member shows everything except secrets', async () => {
    const codec = await join(newFleet());
    const started = new Date('2026-11-21T03:00:00Z');
    const health = codec.health();
    const at = (seconds: number) => new Date(started.getTime() + seconds * 1_000);
    expect(health).toEqual({
      status: 'ok',
      ready: true,
      canSeal: true,
      canUnseal: true,
      // The limit of the KMS comes first: sealOutage.
      sealUntil: at(3_600),
      sealingKey: health.keys[0]?.id,
      keys: [
        {
          id: expect.stringMatching(/^[A-Za-z0-9_-]{12}$/),
          state: 'active',
          held: true,
          created: started,
          activates: at(-300),
          sealsUntil: at(-300 + 86_400 + 23_400),
          unsealsUntil: at(-300 + 86_400 + 23_400 + 3_600 + 600),
        },
      ],
      lastRefresh: started,
      lastKmsCheck: started,
      lastError: undefined,
      problems: [],
    });
    expect(codec.tokenLifetimeSeconds).toBe(3_600);
  });
});

describe('inspect', () => {
  test('shows the facts in a token, and the state of its key in the ring', async () => {
    const fleet = newFleet();
    const codec = await join(fleet, { accept: ['sealring', 'python'] });
    const { sealingKey = '' } = codec.health();
    const token = seal(codec);
    const active = { format: 'sealring', keyId: sealingKey, state: 'active', stale: false };
    expect(codec.inspect(token)).toEqual(active);
    expect(codec.inspect(seal(codec.for('cursor')))).toEqual(active);
    expect(codec.inspect(seal(await join(newFleet())))).toMatchObject({ state: 'unknown', stale: false });
    expect(codec.inspect(seal(await join(fleet, { format: 'python' })))).toEqual({ ...active, format: 'python' });
    for (const bad of ['', 'jwt.a.b', 'sr1.a', 'v1.a', 5, null]) {
      expect(() => codec.inspect(bad as string)).toThrow(InvalidRequestState);
    }
    await codec.rotate({ emergency: true });
    await fleet.clock.advance(1_200);
    expect(outcome(codec, seal(codec))).toBe('state');
    expect(codec.inspect(token)).toEqual({ ...active, state: 'verify-only', stale: true });
    await codec.revoke(sealingKey);
    expect(codec.inspect(token)).toEqual({ ...active, state: 'revoked', stale: false });
  });
});

describe('tokens of a verify-only key', () => {
  test('each unseal of a token of a verify-only key emits an event that names the key', async () => {
    const fleet = newFleet();
    const codec = await join(fleet);
    const log = new EventLog();
    log.listen();
    const token = seal(codec);
    outcome(codec, token);
    const keyId = hashedKeyId(codec.health().sealingKey ?? '');
    await codec.rotate({ emergency: true });
    await fleet.clock.advance(1_200);
    for (const each of [token, seal(codec), token]) expect(outcome(codec, each)).toBe('state');
    log.end();
    expect(log.of('stale')).toEqual([{ keyId }, { keyId }]);
  });
});

test.each<readonly [string, (codec: KmsCodec) => unknown]>([
  ['for: purpose', (codec) => Reflect.apply(codec.for.bind(codec), undefined, [1])],
  ['prepare: unknown option "sign"', (codec) => Reflect.apply(codec.prepare.bind(codec), undefined, ['', { sign: 1 }])],
  ['prepare: signal', (codec) => Reflect.apply(codec.prepare.bind(codec), undefined, ['', { signal: 1 }])],
  ['rotate: unknown option "soon"', (codec) => Reflect.apply(codec.rotate.bind(codec), undefined, [{ soon: true }])],
  ['rotate: emergency', (codec) => Reflect.apply(codec.rotate.bind(codec), undefined, [{ emergency: 1 }])],
  ['revoke: keyId', (codec) => Reflect.apply(codec.revoke.bind(codec), undefined, [1])],
  ['revokeAllBefore: time', (codec) => Reflect.apply(codec.revokeAllBefore.bind(codec), undefined, [1])],
])('a wrong argument causes a TypeError whose message begins with %s', async (name, call) => {
  const codec = await join(newFleet());
  await expect((async () => call(codec))()).rejects.toThrow(TypeError);
  await expect((async () => call(codec))()).rejects.toThrow(name);
});

describe('revokeAllBefore', () => {
  test('a key is revoked if it was created before the time by any clock of the fleet', async () => {
    const fleet = newFleet();
    const codec = await join(fleet);
    const [key] = codec.health().keys;
    const latest = (key?.created.getTime() ?? 0) - 300_000;
    await codec.revokeAllBefore(new Date(latest - 1_000));
    expect(codec.health().keys.map(({ state }) => state)).toEqual(['active']);
    await codec.revokeAllBefore(new Date(latest));
    expect(codec.health().keys.find(({ id }) => id === key?.id)?.state).toBe('revoked');
  });

  test.each([
    ['a date that is no Date', { getTime: (): number => 0 }, TypeError],
    ['an invalid Date', new Date(Number.NaN), RangeError],
  ])('refuses %s', async (_, time, error) => {
    const codec = await join(newFleet());
    await expect(codec.revokeAllBefore(time as Date)).rejects.toThrow(error);
  });
});

describe('prepare', () => {
  test('a wait for a token of an unknown key ends after 2 s if the store hangs, or when the caller aborts it', async () => {
    const fleet = newFleet();
    const token = seal(await join(newFleet()));
    let isHanging = false;
    const hangs = new Promise<never>(() => undefined);
    const read: RingStore['read'] = (options) => (isHanging ? hangs : fleet.ring.read(options));
    const codec = await join({ ...fleet, ring: { ...fleet.ring, read } });
    isHanging = true;
    const controller = new AbortController();
    const aborted = codec.prepare(token, { signal: controller.signal });
    controller.abort(new Error('the client has gone'));
    await expect(aborted).rejects.toThrow('the client has gone');
    let isOver = false;
    const waiting = codec.prepare(token)?.then(() => void (isOver = true));
    await fleet.clock.advance(1.999);
    expect(isOver).toBe(false);
    await fleet.clock.advance(0.001);
    await waiting;
    const python = await join(newFleet(), { format: 'python' });
    for (const each of [codec, python]) expect(each.prepare(seal(each))).toBeUndefined();
    expect([codec, codec.for('cursor')].map(({ clockSkewSeconds }) => clockSkewSeconds)).toEqual([300, 300]);
  });
});

describe('after close', () => {
  test('every call that needs a key throws CodecClosedError, and nothing is scheduled', async () => {
    const fleet = newFleet();
    const codec = await join(fleet);
    const purpose = codec.for('cursor');
    const token = seal(codec);
    const purposeToken = seal(purpose);
    await codec.close();
    const calls = { ...fleet.calls };
    const synchronous: (() => unknown)[] = [
      () => seal(codec),
      () => codec.unseal(token),
      () => seal(purpose),
      () => purpose.unseal(purposeToken),
      () => codec.for('new'),
      () => codec.prepare(),
      () => purpose.inspect(purposeToken),
      ...[codec, purpose].flatMap((each) => [() => each.unseal('junk'), () => each.inspect('junk')]),
      () => codec.health(),
      () => codec.inspect(token),
    ];
    for (const call of synchronous) {
      const error = errorOf(call);
      expect(error).toBeInstanceOf(CodecClosedError);
      expect(error).toMatchObject({ code: 'ERR_CODEC_CLOSED' });
    }
    const asked = [codec.refresh(), codec.rotate(), codec.revoke('x'), codec.revokeAllBefore(new Date())];
    for (const result of await Promise.allSettled(asked)) {
      expect(result).toMatchObject({ status: 'rejected', reason: { name: 'CodecClosedError' } });
    }
    await codec.close();
    await fleet.clock.advance(10_000);
    expect(fleet.calls).toEqual(calls);
  });

  test('the data keys are overwritten (F22)', async () => {
    const fleet = newFleet();
    const codec = await join(fleet);
    await codec.rotate();
    const keys = keeperOf(codec)?.view.snapshot.keys.map((key) => key.held) ?? [];
    expect(keys).toHaveLength(2);
    for (const [i, held] of keys.entries()) expect(held?.copyBytes()).toEqual(fleet.dataKeys[i]);
    await codec.close();
    for (const held of keys) expect(() => held?.copyBytes()).toThrow(/was overwritten/);
  });

  test('a codec that was declared with await using is closed', async () => {
    const fleet = newFleet();
    const codec = await join(fleet);
    await codec[Symbol.asyncDispose]();
    expect(() => seal(codec)).toThrow(CodecClosedError);
  });
});

/** The forms in which a canary may appear in text. */
function spellings(bytes: Uint8Array): string[] {
  const buffer = Buffer.from(bytes.subarray(0, 12));
  return [
    buffer.toString('hex'),
    buffer.toString('base64').replace(/=+$/, ''),
    buffer.toString('base64url'),
    buffer.toString('latin1'),
    [...buffer].join(', '),
    [...buffer].join(','),
    (buffer.toString('hex').match(/../g) ?? []).join(' '),
  ];
}

describe('canaries for secrets (F21)', () => {
  const everything = { depth: Infinity, showHidden: true, maxArrayLength: null, maxStringLength: null } as const;

  test('no data key, derived secret or payload appears in inspect, JSON, errors or events', async () => {
    const events: unknown[] = [];
    const listen = (event: unknown): void => void events.push(event);
    const names = Object.keys(channels).map((name) => `sealring:${name}`);
    for (const name of names) subscribe(name, listen);
    try {
      const fleet = newFleet();
      const codec = await join(fleet, { accept: ['sealring', 'python'] });
      const python = await join(fleet, { format: 'python' });
      const canary = randomBytes(24);
      const token = codec.seal(canary);
      codec.unseal(token);
      codec.for('cursor').seal(canary);
      codec.unseal(python.seal(canary));
      const errors: unknown[] = [
        errorOf(() => codec.unseal(`${token}=`)),
        errorOf(() => codec.unseal(`${token.slice(0, 66)}AAAA${token.slice(70)}`)),
        errorOf(() => codec.unseal(`sr1.AAAAAAAAAAAA${token.slice(16)}`)),
        // Only the tag is wrong: the bytes that were decrypted before its check are the payload.
        errorOf(() => codec.unseal(`${token.slice(0, -8)}AAAA${token.slice(-4)}`)),
        errorOf(() => codec.seal(canary.toString('latin1') as unknown as Uint8Array)),
        errorOf(() => codec.seal(Buffer.alloc(300_000, canary))),
        errorOf(() => codec.for(canary as unknown as string)),
        await codec.revoke('AAAAAAAAAAAA').catch((error: unknown) => error),
        await codec.revoke(canary as unknown as string).catch((error: unknown) => error),
      ];
      expect(errors.every((error) => error instanceof Error)).toBe(true);
      const stale = seal(codec);
      await codec.rotate({ emergency: true });
      await fleet.clock.advance(1_200);
      seal(codec);
      codec.unseal(stale);
      const { sealingKey = '' } = codec.health();
      const internals = [codec, python, codec.for('cursor'), keeperOf(codec)?.view.snapshot.keys];
      await codec.revoke(sealingKey);
      const held = keeperOf(codec)?.view.snapshot.keys.flatMap((key) => key.held ?? []) ?? [];
      expect(fleet.dataKeys).toHaveLength(3);
      const secrets = [
        canary,
        ...fleet.dataKeys,
        ...held.flatMap((key) => [key.secret('python'), key.secret('mcp.d')]),
      ];
      const sinks = [
        ...internals.flatMap((each) => [inspect(each, everything), inspect(each)]),
        ...[codec, python, codec.for('cursor'), codec.health()].map((each) => JSON.stringify(each)),
        ...errors.flatMap((each) => [inspect(each, everything), String(each), JSON.stringify(each)]),
        ...events.flatMap((each) => [inspect(each, everything), JSON.stringify(each)]),
        inspect(codec.health(), everything),
      ];
      for (const text of sinks) {
        for (const secret of secrets.flatMap(spellings)) expect(text).not.toContain(secret);
      }
      // Events name keys by a hash; a key id would link a metric to a token.
      expect(events.length).toBeGreaterThan(10);
      for (const key of codec.health().keys) expect(JSON.stringify(events)).not.toContain(key.id);
      for (const kind of ['ok', 'reason', 'status', 'provider']) {
        expect(events.some((event) => Object.hasOwn(event as object, kind))).toBe(true);
      }
    } finally {
      for (const name of names) unsubscribe(name, listen);
    }
  });

  test('the ring document in the store contains no data key and no payload', async () => {
    const fleet: Fleet & { dataKeys: Buffer[]; ring: RingStore } = newFleet();
    const codec = await join(fleet);
    await codec.rotate();
    const { document = '' } = (await fleet.ring.read()) ?? {};
    expect(document.length).toBeGreaterThan(500);
    expect(fleet.dataKeys).toHaveLength(2);
    for (const secret of fleet.dataKeys.flatMap(spellings)) expect(document).not.toContain(secret);
  });

  test('each refusal emits one event, with its reason', async () => {
    const seen: unknown[] = [];
    const listen = (event: unknown): void => void seen.push(event);
    const codec = await join(newFleet());
    const token = seal(codec);
    subscribe('sealring:rejected', listen);
    try {
      outcome(codec, `${token}=`);
      outcome(codec, `sr1.AAAAAAAAAAAA${token.slice(16)}`);
      outcome(codec.for('cursor'), token);
      outcome(codec, token);
      outcome(codec, null);
    } finally {
      unsubscribe('sealring:rejected', listen);
    }
    expect(seen).toEqual([
      { ringName: 'default', reason: 'malformed' },
      { ringName: 'default', reason: 'unknown key' },
      { ringName: 'default', reason: 'authentication failed' },
      { ringName: 'default', reason: 'malformed' },
    ]);
  });
});

test('a payload with a false length is refused, and not sealed as a token that no server accepts', async () => {
  const codec = await createKmsCodec({
    ring: memoryRing(),
    keyWrapper: localKeyWrapper({ masterKey: randomBytes(32) }),
  });
  closers.push(() => codec.close());
  const payload = new Uint8Array(300_000);
  Object.defineProperty(payload, 'length', { value: 10 });
  expect(() => codec.seal(payload)).toThrow(new TypeError('payload must not define its own length'));
  expect(() => codec.for('data').seal(payload)).toThrow(TypeError);
  expect(codec.unseal(codec.seal(Buffer.from('state')))).toEqual(new Uint8Array(Buffer.from('state')));
});
