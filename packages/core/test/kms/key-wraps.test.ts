import {
  constants,
  createHash,
  generateKeyPairSync,
  publicEncrypt,
  randomBytes,
  randomFillSync,
  sign,
} from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { describe, expect, test, vi } from 'vitest';
import type { RandomSource } from '../../src/base/clock.ts';
import { Closing } from '../../src/base/closing.ts';
import { hashedKeyId } from '../../src/contracts/events.ts';
import { type KeyWrapper, KeyWrapperError, type WrappedKey } from '../../src/contracts/key-wrapper.ts';
import { DataKey } from '../../src/keys/data-key.ts';
import { EnvelopeKeyCache } from '../../src/keys/envelope-key-cache.ts';
import { boundPlaintext, checkedDataKey, overwrite, unboundPlaintext } from '../../src/kms/data-key-bytes.ts';
import { type CallOptions, KmsCalls } from '../../src/kms/kms-calls.ts';
import { lacksWraps } from '../../src/kms/several-wrappers.ts';
import { KeyWraps } from '../../src/kms/wraps.ts';
import { isRightWrap, wrapMacOf } from '../../src/ring/certificates.ts';
import {
  encodeDocument,
  type Macs,
  parseDocument,
  type RingEntry,
  signedBytes,
  wrapContext,
} from '../../src/ring/document.ts';
import { FaultKms } from '../support/fault-kms.ts';
import { PublicKeyKms } from '../support/public-key-kms.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const RING = 'payments';
const START = '2026-11-21T03:00:00Z';
const T0 = Date.parse(START);
const HOUR = 3_600_000;
const TIMES = { created: T0, activates: T0 + HOUR, sealsUntil: T0 + 2 * HOUR, opensUntil: T0 + 3 * HOUR };
const BACKGROUND: CallOptions = { foreground: false };
const FOREGROUND: CallOptions = { foreground: true };
const nobody = (): boolean => false;
const vouch = (): Macs => new Map();
const systemRandom: RandomSource = (fill) => void randomFillSync(fill);
/** Retries do not wait. */
const zeros: RandomSource = (fill) => void fill.fill(0);

interface Options {
  readonly quorum?: number;
  readonly trustStore?: boolean;
  readonly random?: RandomSource;
  readonly ring?: string;
  readonly clock?: VirtualClock;
}

/** The key wraps of one member, which has no memory of what others unwrapped. */
function member(wrappers: readonly KeyWrapper[], options: Options = {}): KeyWraps {
  const { clock = new VirtualClock(START), random = systemRandom } = options;
  const closing = new Closing();
  return new KeyWraps({
    ring: options.ring ?? RING,
    wrappers,
    quorum: options.quorum ?? wrappers.length,
    trustStore: options.trustStore ?? false,
    calls: new KmsCalls({
      ring: 'r',
      clock,
      random: zeros,
      timeoutSeconds: 5,
      closing,
      onServiceDate: () => undefined,
    }),
    cache: new EnvelopeKeyCache(options.ring ?? RING),
    random,
    clock,
  });
}

/** Advances time until the promise has settled: a retry waits, even if only for 0 ms. */
async function passing<T>(clock: VirtualClock, promise: Promise<T>): Promise<T> {
  const progress = { settled: false };
  const done = (): void => {
    progress.settled = true;
  };
  promise.then(done, done);
  for (let i = 0; i < 100 && !progress.settled; i++) await clock.advance(0.01);
  return promise;
}

const corrupt = expect.objectContaining({ name: 'KeyWrapperError', kind: 'corrupt' });

/** The same wrapper without an optional method. */
function without(wrapper: KeyWrapper, method: 'sign' | 'verify' | 'generate'): KeyWrapper {
  return Object.fromEntries(Object.entries(wrapper).filter(([name]) => name !== method)) as unknown as KeyWrapper;
}

/** Two services of one provider recognize their own wraps by the id of their key. */
function named(kms: FaultKms, provider: string): KeyWrapper {
  return kms.connect(provider);
}

// One RSA key for the whole file: making one takes longer than all tests.
const publicKms = new PublicKeyKms();

describe('a wrap that anyone with a public key can make (F35)', () => {
  test('a wrap is signed by the KMS when it is made, and unwrapped if the signature is valid', async () => {
    const { entry, held } = await member([publicKms.connect()]).create(TIMES, nobody, vouch);
    expect(entry.wraps[0]?.signature).toHaveLength(64);
    const opened = await member([publicKms.connect()]).unwrap(entry, BACKGROUND);
    expect(opened.held.id).toBe(held.id);
    // The wrap comes back from the store with its signature.
    const document = { ring: RING, claim: undefined, entries: [entry] };
    const [stored] = parseDocument(encodeDocument(document), RING).entries;
    if (stored === undefined) throw new Error('the ring has a key');
    expect((await member([publicKms.connect()]).unwrap(stored, BACKGROUND)).held.id).toBe(held.id);
  });

  test('a wrap without a signature, with another signature, or with the signature of another entry is refused before any call', async () => {
    const maker = member([publicKms.connect()]);
    const { entry } = await maker.create(TIMES, nobody, vouch);
    const { entry: second } = await maker.create(TIMES, nobody, vouch);
    const [wrap] = entry.wraps;
    const [otherWrap] = second.wraps;
    if (wrap?.signature === undefined || otherWrap?.signature === undefined) throw new Error('both are signed');
    const { signature, ...unsigned } = wrap;
    const stranger = generateKeyPairSync('ed25519').privateKey;
    const forged = sign(null, signedBytes(RING, entry, wrap), stranger);
    const changed = [
      { ...entry, wraps: [unsigned] },
      { ...entry, wraps: [{ ...wrap, signature: new Uint8Array(0) }] },
      { ...entry, wraps: [{ ...wrap, signature: randomBytes(64) }] },
      { ...entry, wraps: [{ ...wrap, signature: otherWrap.signature }] },
      { ...entry, wraps: [{ ...wrap, signature: forged }] },
      { ...entry, wraps: [{ ...otherWrap, signature }] },
      { ...second, wraps: [wrap] },
      { ...entry, created: entry.created + 1_000 },
      { ...entry, activates: entry.activates + 1_000 },
      { ...entry, sealsUntil: entry.sealsUntil + 1_000 },
      { ...entry, opensUntil: entry.opensUntil + 1_000 },
    ];
    const before = publicKms.calls.unwrap;
    for (const other of changed) {
      await expect(member([publicKms.connect()]).unwrap(other, BACKGROUND)).rejects.toEqual(corrupt);
    }
    await expect(member([publicKms.connect()], { ring: 'orders' }).unwrap(entry, BACKGROUND)).rejects.toEqual(corrupt);
    expect(publicKms.calls.unwrap).toBe(before);
  });

  test('a signed wrap is refused by a wrapper that cannot check a signature', async () => {
    const { entry } = await member([publicKms.connect()]).create(TIMES, nobody, vouch);
    const unable = without(publicKms.connect(), 'verify');
    await expect(member([unable]).unwrap(entry, BACKGROUND)).rejects.toEqual(corrupt);
  });

  /** A wrap by an attacker who knows only the public key, and can write to the store. */
  function madeByStranger(): { readonly dataKey: Buffer; readonly entry: RingEntry } {
    const dataKey = randomBytes(32);
    const key = { key: publicKms.publicKey, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' };
    const wrapped = publicEncrypt(key, boundPlaintext(dataKey, wrapContext(RING, TIMES)));
    const { provider, keyId } = publicKms.connect();
    const held = new DataKey(dataKey, RING);
    const wrap = { provider, keyId, wrapped };
    const wraps = [{ ...wrap, mac: wrapMacOf(RING, wrap, held.authenticator) }];
    return {
      dataKey,
      entry: { id: held.id, ...TIMES, vouchers: vouch(), ancestors: undefined, revoked: undefined, wraps },
    };
  }

  test('a wrap that an attacker made is refused, except by a member configured to trust the store', async () => {
    const { dataKey, entry } = madeByStranger();
    await expect(member([publicKms.connect()]).unwrap(entry, BACKGROUND)).rejects.toEqual(corrupt);
    const trusting = member([publicKms.connect()], { trustStore: true });
    expect((await trusting.unwrap(entry, BACKGROUND)).held.equals(dataKey)).toBe(true);
  });

  test('a wrap is made without a signature if no wrapper can sign and the store is trusted', async () => {
    const unable = without(publicKms.connect(), 'sign');
    const trusting = { trustStore: true };
    const { entry, held } = await member([unable], trusting).create(TIMES, nobody, vouch);
    expect(entry.wraps[0]).not.toHaveProperty('signature');
    expect((await member([unable], trusting).unwrap(entry, BACKGROUND)).held.id).toBe(held.id);
  });

  test('a wrap needs no signature if unwrapping authenticates the origin, even if the service could sign', async () => {
    const kms = new FaultKms();
    let asked = 0;
    const signing = async (): Promise<Uint8Array> => new Uint8Array(++asked);
    const { entry } = await member([{ ...kms.connect(), sign: signing }]).create(TIMES, nobody, vouch);
    expect([asked, entry.wraps[0]?.signature]).toEqual([0, undefined]);
  });

  test('a member waits for a signature no longer than for any call, and reports the hung call (F29)', async () => {
    const clock = new VirtualClock(START);
    const kms = publicKms.connect();
    const signals: (AbortSignal | undefined)[] = [];
    const hanging: KeyWrapper['sign'] = (_, options) => {
      signals.push(options?.signal);
      return new Promise(() => undefined);
    };
    const seen: { error?: unknown } = {};
    member([{ ...kms, sign: hanging }], { clock })
      .create(TIMES, nobody, vouch)
      .catch((error: unknown) => {
        seen.error = error;
      });
    for (let i = 0; i < 10 && signals.length === 0; i++) await clock.advance(0);
    // A caller waits: four attempts.
    for (let i = 0; i < 4; i++) await clock.advance(5);
    expect(seen.error).toMatchObject({ kind: 'unavailable', summary: { provider: 'public-key', operation: 'sign' } });
    expect(signals.map((signal) => signal?.aborted)).toEqual([true, true, true, true]);
  });
});

describe('a new data key', () => {
  test('a new data key is replaced if its id is taken (F16)', async () => {
    const taken: string[] = [];
    const isTaken = (id: string): boolean => taken.length < 2 && taken.push(id) > 0;
    const kms = new FaultKms();
    const { entry, held } = await member([kms.connect()]).create(TIMES, isTaken, vouch);
    expect(taken).toHaveLength(2);
    expect(taken).not.toContain(entry.id);
    expect(entry).toMatchObject({ id: held.id, ...TIMES, revoked: undefined });
    for (const wrap of entry.wraps) expect(isRightWrap(RING, wrap, held.authenticator)).toBe(true);
  });

  test('a new data key that could not be wrapped is overwritten (F22)', async () => {
    const take = vi.spyOn(EnvelopeKeyCache.prototype, 'take');
    const kms = new FaultKms();
    const cut = { ...kms.connect(), wrap: async () => Promise.reject(new Error('no')), generate: undefined };
    const { generate: _, ...keyWrapper } = cut;
    await expect(member([keyWrapper]).create(TIMES, nobody, vouch, BACKGROUND)).rejects.toThrow(KeyWrapperError);
    const [made] = take.mock.results.map(({ value }) => value as DataKey);
    take.mockRestore();
    expect(() => made?.copyBytes()).toThrow('was overwritten');
    expect(() => made?.authenticator.mac('a fact')).toThrow('was overwritten');
  });

  test('a new data key has vouchers for its id and times', async () => {
    const asked: unknown[] = [];
    const vouchers = new Map([['AAAAAAAAAAAA', Buffer.alloc(32, 1)]]);
    const vouching = (entry: unknown): Macs => {
      asked.push(entry);
      return vouchers;
    };
    const { entry } = await member([new FaultKms().connect()]).create(TIMES, nobody, vouching);
    expect(asked).toEqual([{ id: entry.id, ...TIMES }]);
    expect(entry.vouchers).toBe(vouchers);
  });

  test('a new data key is created for a waiting caller even if the KMS fails twice first (F9)', async () => {
    const kms = new FaultKms();
    kms.failNext = 2;
    const clock = new VirtualClock(START);
    const { entry } = await passing(clock, member([kms.connect()], { clock }).create(TIMES, nobody, vouch));
    expect([entry.wraps.length, kms.calls.generate]).toEqual([1, 3]);
  });

  test('a new data key is not published if its wrap unwraps to anything else (F7)', async () => {
    const kms = new FaultKms();
    const wrapper = kms.connect();
    const other = { ...wrapper, unwrap: async () => new Uint8Array(randomBytes(32)) };
    await expect(member([other]).create(TIMES, nobody, vouch)).rejects.toMatchObject({
      kind: 'corrupt',
      summary: { provider: 'local', operation: 'unwrap' },
    });
  });

  test('a generated or unwrapped data key that repeats one byte, has the wrong length or is not bytes is refused (F17)', async () => {
    const kms = new FaultKms();
    const good = kms.connect();
    const { wrapped } = (await good.generate?.({ context: wrapContext(RING, TIMES) })) ?? {};
    if (wrapped === undefined) throw new Error('this key wrapper generates');
    const short = new Uint8Array(randomBytes(31));
    const long = new Uint8Array(randomBytes(33));
    const wrong: unknown[] = [new Uint8Array(32), new Uint8Array(32).fill(7), short, long, new Uint8Array(0)];
    wrong.push([...randomBytes(32)], randomBytes(32).toString('latin1'), undefined, null, { length: 32 });
    for (const dataKey of wrong) {
      const generating = { ...good, generate: async () => ({ dataKey: dataKey as Uint8Array, wrapped }) };
      await expect(member([generating]).create(TIMES, nobody, vouch)).rejects.toMatchObject({
        kind: 'corrupt',
        summary: { provider: 'local', operation: 'generate' },
      });
      const unwrapping = { ...good, unwrap: async () => dataKey as Uint8Array };
      await expect(member([unwrapping]).create(TIMES, nobody, vouch)).rejects.toMatchObject({
        kind: 'corrupt',
        summary: { provider: 'local', operation: 'unwrap' },
      });
    }
  });

  test('a new data key is made locally only if the first service fails and the other wrappers satisfy the quorum', async () => {
    const [down, up] = [new FaultKms(), new FaultKms()];
    down.failing = 'denied';
    const wrappers = [named(down, 'down'), named(up, 'up')];
    const { entry } = await member(wrappers, { quorum: 1 }).create(TIMES, nobody, vouch);
    expect(entry.wraps.map(({ provider }) => provider)).toEqual(['up']);
    await expect(member(wrappers).create(TIMES, nobody, vouch)).rejects.toMatchObject({
      kind: 'denied',
      summary: { provider: 'down', operation: 'generate' },
    });
  });

  test('a failure to make a data key names every unreachable wrapper if the first one keeps a caller waiting', async () => {
    const failureOf = async (options: CallOptions, others: readonly FaultKms[]): Promise<unknown> => {
      const clock = new VirtualClock(START);
      const hanging = new FaultKms();
      hanging.hanging = true;
      const wrappers = [named(hanging, 'hanging'), ...others.map((kms, i) => named(kms, `other-${i}`))];
      const made = member(wrappers, { clock }).create(TIMES, nobody, vouch, options);
      const seen = made.then(
        () => undefined,
        (error: unknown) => error,
      );
      for (let i = 0; i < 4; i++) await clock.advance(5);
      return seen;
    };
    const [down, up] = [new FaultKms(), new FaultKms()];
    down.failing = 'denied';
    const hung = { provider: 'hanging', operation: 'generate' };
    expect(await failureOf(FOREGROUND, [down])).toMatchObject({
      kind: 'unavailable',
      summary: { provider: 'hanging, other-0', causes: [{ summary: hung }, { kind: 'denied' }] },
    });
    expect(down.calls.wrap).toBe(1);
    for (const [options, others] of [
      [BACKGROUND, [down]],
      [FOREGROUND, []],
      [FOREGROUND, [up]],
    ] as const)
      expect(await failureOf(options, others)).toMatchObject({ summary: hung });
    expect([down.calls.wrap, up.calls.wrap]).toEqual([1, 1]);
  });

  test('only the other services wrap a data key that the first service generated with its wrap', async () => {
    const [first, second] = [new FaultKms(), new FaultKms()];
    await member([named(first, 'first'), named(second, 'second')]).create(TIMES, nobody, vouch);
    expect([first.calls, second.calls]).toEqual([
      { generate: 1, wrap: 0, unwrap: 1 },
      { generate: 0, wrap: 1, unwrap: 1 },
    ]);
  });

  test('a data key is overwritten if its id is taken, or if it comes after the deadline (F22)', async () => {
    const clock = new VirtualClock(START);
    const kms = new FaultKms().connect();
    const made: Uint8Array[] = [];
    let late: ((answer: { dataKey: Uint8Array; wrapped: WrappedKey }) => void) | undefined;
    const generate: KeyWrapper['generate'] = async (options) => {
      const answer = await kms.generate?.(options);
      if (answer === undefined) throw new Error('the service generates');
      made.push(answer.dataKey);
      return late === undefined ? answer : new Promise((resolve) => void (late = resolve));
    };
    const maker = member([{ ...kms, generate }], { clock });
    await passing(
      clock,
      maker.create(TIMES, () => made.length === 1, vouch),
    );
    expect(made.map((dataKey) => dataKey.every((byte) => byte === 0))).toEqual([true, true]);
    late = () => undefined;
    const failed = maker.create(TIMES, nobody, vouch, BACKGROUND).catch(() => undefined);
    await clock.advance(6);
    await failed;
    late({ dataKey: made[2] as Uint8Array, wrapped: { provider: 'local', keyId: 'k', wrapped: Buffer.of(1) } });
    await clock.advance(0);
    expect(made[2]?.every((byte) => byte === 0)).toBe(true);
  });

  test('the failure to create a new data key names the wrap call that hung (F29)', async () => {
    const clock = new VirtualClock(START);
    const kms = without(new FaultKms().connect(), 'generate');
    const hanging = { ...kms, wrap: () => new Promise<never>(() => undefined) };
    const seen: { error?: unknown } = {};
    member([hanging], { clock })
      .create(TIMES, nobody, vouch)
      .catch((error: unknown) => {
        seen.error = error;
      });
    for (let i = 0; i < 4; i++) await clock.advance(5);
    expect(seen.error).toMatchObject({ kind: 'unavailable', summary: { provider: 'local', operation: 'wrap' } });
  });
});

describe('a published key', () => {
  test('a published key is held once, however often it is unwrapped, and checked as often as requested (F23)', async () => {
    const kms = new FaultKms();
    const { entry } = await member([kms.connect()]).create(TIMES, nobody, vouch);
    kms.calls.unwrap = 0;
    const other = member([kms.connect()]);
    const { held } = await other.unwrap(entry, BACKGROUND);
    expect((await other.unwrap(entry, BACKGROUND)).held).toBe(held);
    await other.check(entry, held, BACKGROUND);
    await other.check(entry, held, BACKGROUND);
    expect(kms.calls.unwrap).toBe(4);
  });

  test('this member’s wrappers unwrap a published key from any valid wrap, and name that wrap', async () => {
    const kms = new FaultKms();
    const { entry } = await member([kms.connect()]).create(TIMES, nobody, vouch);
    const [wrap] = entry.wraps;
    if (wrap === undefined) throw new Error('an entry has a wrap');
    const junk = { ...wrap, wrapped: randomBytes(60) };
    const spoilt = { ...entry, wraps: [junk, { ...junk, provider: 'theirs' }, wrap] };
    const opened = await member([kms.connect()]).unwrap(spoilt, BACKGROUND);
    expect(opened.wrap).toEqual(wrap);
    expect(opened.held.id).toBe(entry.id);
  });

  test('a corrupt wrap is not unwrapped again for an hour, but another wrap of the same key is (F26)', async () => {
    const kms = new FaultKms();
    const clock = new VirtualClock(START);
    const { entry } = await member([kms.connect()]).create(TIMES, nobody, vouch);
    const [wrap] = entry.wraps;
    if (wrap === undefined) throw new Error('an entry has a wrap');
    const junk = { ...wrap, wrapped: randomBytes(60) };
    const spoilt = { ...entry, wraps: [junk] };
    const other = member([kms.connect()], { clock });
    const asked = async (run: () => Promise<unknown>): Promise<number> => {
      const before = kms.calls.unwrap;
      await run().catch(() => undefined);
      return kms.calls.unwrap - before;
    };
    expect(await asked(() => other.unwrap(spoilt, BACKGROUND))).toBe(1);
    await expect(other.unwrap(spoilt, BACKGROUND)).rejects.toEqual(corrupt);
    expect(await asked(() => other.unwrap(spoilt, BACKGROUND))).toBe(0);
    // The count is kept for each wrap of an entry, not for each id.
    expect(await asked(() => other.unwrap({ ...spoilt, created: spoilt.created - 1_000 }, BACKGROUND))).toBe(1);
    await clock.advance(3_601);
    expect(await asked(() => other.unwrap(spoilt, BACKGROUND))).toBe(1);
    expect((await other.unwrap({ ...entry, wraps: [junk, wrap] }, BACKGROUND)).held.id).toBe(entry.id);
  });

  test('a held key can be checked with a wrap that the KMS reported as corrupt earlier', async () => {
    const kms = new FaultKms();
    const { entry } = await member([kms.connect()]).create(TIMES, nobody, vouch);
    const other = member([kms.connect()]);
    const { held } = await other.unwrap(entry, BACKGROUND);
    kms.failing = 'corrupt';
    await expect(other.check(entry, held, BACKGROUND)).rejects.toEqual(corrupt);
    kms.failing = undefined;
    await other.check(entry, held, BACKGROUND);
  });

  test('if the KMS fails, a published key is unwrapped again at once for a waiting caller, not in the background (F9)', async () => {
    const kms = new FaultKms();
    const { entry } = await member([kms.connect()]).create(TIMES, nobody, vouch);
    const clock = new VirtualClock(START);
    kms.failNext = 3;
    const { held } = await passing(clock, member([kms.connect()], { clock }).unwrap(entry, FOREGROUND));
    expect(held.id).toBe(entry.id);
    kms.failNext = 1;
    await expect(member([kms.connect()]).unwrap(entry, BACKGROUND)).rejects.toHaveProperty('kind', 'unavailable');
  });

  test('fails its KMS check if the answer is another key, which is overwritten (F10, F22)', async () => {
    const kms = new FaultKms();
    const { entry, held } = await member([kms.connect()]).create(TIMES, nobody, vouch);
    const { held: another } = await member([kms.connect()]).create(TIMES, nobody, vouch);
    const came: Uint8Array[] = [];
    const wrapper = kms.connect();
    const watched: KeyWrapper = {
      ...wrapper,
      unwrap: async (wrapped, options) => {
        const bytes = await wrapper.unwrap(wrapped, options);
        came.push(bytes);
        return bytes;
      },
    };
    await expect(member([watched]).check(entry, another, BACKGROUND)).rejects.toMatchObject({
      kind: 'corrupt',
      summary: { provider: 'local', operation: 'unwrap' },
    });
    await member([watched]).check(entry, held, BACKGROUND);
    await member([watched]).unwrap(entry, BACKGROUND);
    expect(came).toEqual([new Uint8Array(32), new Uint8Array(32), new Uint8Array(32)]);
    expect(held.equals(new Uint8Array(32))).toBe(false);
  });

  test('a published key that none of the member’s wrappers wrapped is corrupt, and the error names the wrappers', async () => {
    const { entry } = await member([named(new FaultKms(), 'theirs')]).create(TIMES, nobody, vouch);
    const ours = [named(new FaultKms(), 'one'), named(new FaultKms(), 'two')];
    await expect(member(ours).unwrap(entry, BACKGROUND)).rejects.toMatchObject({
      kind: 'corrupt',
      summary: { provider: 'one or two', operation: 'unwrap', hint: expect.stringMatching(/no wrap/) },
    });
  });

  test('a published key is reported on the channels of wraps and unwraps, by provider and hashed id', async () => {
    const heard: unknown[] = [];
    const listen = (event: unknown, channel: string | symbol): void => void heard.push([channel, event]);
    for (const name of ['sealring:wrap', 'sealring:unwrap']) subscribe(name, listen);
    try {
      const kms = new FaultKms();
      const { entry } = await member([kms.connect()]).create(TIMES, nobody, vouch);
      await member([kms.connect()]).unwrap(entry, BACKGROUND);
      const event = { ringName: 'payments', provider: 'local', keyId: hashedKeyId(entry.id) };
      expect(heard).toEqual([
        ['sealring:wrap', event],
        ['sealring:unwrap', event],
      ]);
    } finally {
      for (const name of ['sealring:wrap', 'sealring:unwrap']) unsubscribe(name, listen);
    }
  });
});

describe('wraps by several wrappers', () => {
  const services = { a: new FaultKms(), b: new FaultKms(), c: new FaultKms() };
  const a = named(services.a, 'a');
  const b = named(services.b, 'b');
  const c = named(services.c, 'c');
  const providers = (entry: RingEntry): readonly string[] => entry.wraps.map(({ provider }) => provider);

  test('wraps are missing if one of the wrappers has made none, whatever other wraps exist', async () => {
    const { entry } = await member([a, b]).create(TIMES, nobody, vouch);
    expect(providers(entry)).toEqual(['a', 'b']);
    for (const [wrappers, expected] of [
      [[a], false],
      [[b], false],
      [[a, b], false],
      [[a, c], true],
      [[c, b], true],
      [[c], true],
      [[], false],
    ] as const) {
      expect(lacksWraps(entry, wrappers)).toBe(expected);
    }
  });

  test('missing wraps are added, each with a MAC by the key, and unwrap to the same key', async () => {
    const { entry, held } = await member([a]).create(TIMES, nobody, vouch);
    const added = await member([a, b, c]).missingWraps(entry, held, BACKGROUND);
    expect(added.map(({ provider }) => provider)).toEqual(['b', 'c']);
    const all = { ...entry, wraps: [...entry.wraps, ...added] };
    for (const wrap of all.wraps) expect(isRightWrap(RING, wrap, held.authenticator)).toBe(true);
    for (const wrapper of [a, b, c]) {
      expect((await member([wrapper]).unwrap(all, BACKGROUND)).held.id).toBe(held.id);
    }
  });

  test('missing wraps are made by the wrappers that can, and no wrapper is called if none is missing', async () => {
    const { entry, held } = await member([a, b]).create(TIMES, nobody, vouch);
    const down = new FaultKms();
    down.failing = 'unavailable';
    const added = await member([a, named(down, 'd'), c]).missingWraps(entry, held, BACKGROUND);
    expect(added.map(({ provider }) => provider)).toEqual(['c']);
    expect(await member([a, named(down, 'd')]).missingWraps(entry, held, BACKGROUND)).toEqual([]);
    const before = services.a.total + services.b.total;
    expect(await member([b]).missingWraps(entry, held, BACKGROUND)).toEqual([]);
    // The data key is not even copied: that would throw for a removed key.
    held.destroy();
    expect(await member([a, b]).missingWraps(entry, held, BACKGROUND)).toEqual([]);
    expect(services.a.total + services.b.total).toBe(before);
  });
});

describe('the current version of the KMS key', () => {
  const wrapOf = (keyId: string, provider = 'kms') => ({ provider, keyId, wrapped: Buffer.of(1) });

  function service(keyId: string | Error, supports: Partial<KeyWrapper['supports']> = {}) {
    const wrap = vi.fn<KeyWrapper['wrap']>(async () => {
      if (typeof keyId !== 'string') throw keyId;
      return wrapOf(keyId);
    });
    const kms = new FaultKms().connect('kms');
    const keyWrapper: KeyWrapper = { ...kms, supports: { ...kms.supports, keyVersions: true, ...supports }, wrap };
    return { keyWrapper, wrap };
  }

  test.each<readonly [string, readonly WrappedKey[], object, string | undefined, number]>([
    ['is new if no wrap of its service was made by it', [wrapOf('v1')], {}, 'v2', 1],
    ['is new if only another service has a version of that name', [wrapOf('v1'), wrapOf('v2', 'other')], {}, 'v2', 1],
    ['is known if some wrap was made by it', [wrapOf('v1'), wrapOf('v2')], {}, undefined, 1],
    ['is not looked for if the service has no wrap yet', [wrapOf('v1', 'other')], {}, undefined, 0],
    ['is not looked for if the key has no versions', [wrapOf('v1')], { keyVersions: false }, undefined, 0],
  ])('the version %s', async (_, known, supports, version, calls) => {
    const { keyWrapper, wrap } = service('v2', supports);
    const found = await member([keyWrapper]).newVersion(known);
    expect([found?.keyId, wrap.mock.calls.length]).toEqual([version, calls]);
  });

  test('random bytes are wrapped in the background, in a separate context, to find the version, and are then overwritten', async () => {
    const seen: string[] = [];
    const { keyWrapper, wrap } = service('v2');
    wrap.mockImplementation(async (dataKey, { context }) => {
      seen.push(Buffer.from(dataKey).toString('hex'));
      expect(context).toEqual({ 'sealring:ring': RING, 'sealring:purpose': 'key-version' });
      return wrapOf('v2');
    });
    expect(await member([keyWrapper]).newVersion([wrapOf('v1')])).toEqual({ provider: 'kms', keyId: 'v2' });
    expect(seen).toEqual([expect.stringMatching(/^[0-9a-f]{64}$/)]);
    expect(wrap.mock.calls[0]?.[0]).toEqual(new Uint8Array(32));
  });

  test('a new version is found even if another service fails, and a failure counts only if none is found', async () => {
    const failing = service(new KeyWrapperError('throttled', { provider: 'kms', operation: 'wrap' }));
    const known = [wrapOf('v1')];
    const besides = (keyId: string) => member([failing.keyWrapper, service(keyId).keyWrapper]).newVersion(known);
    expect(await besides('v2')).toEqual({ provider: 'kms', keyId: 'v2' });
    await expect(besides('v1')).rejects.toMatchObject({ kind: 'throttled' });
    expect(failing.wrap).toHaveBeenCalledTimes(2);
  });
});

test('bytes are overwritten, and other values are left alone', () => {
  const bytes = randomBytes(4);
  for (const each of [bytes, undefined, 'text']) overwrite(each);
  expect(bytes).toEqual(Buffer.alloc(4));
});

describe('the 64 bytes for a service that binds no context (F25)', () => {
  const context = { 'sealring:ring': RING, 'sealring:purpose': 'data-key' };
  const reordered = { 'sealring:purpose': 'data-key', 'sealring:ring': RING };

  test('the 64 bytes are the data key and the SHA-256 hash of the canonical context, whatever its original order', () => {
    const dataKey = randomBytes(32);
    const text = `{"sealring:purpose":"data-key","sealring:ring":"${RING}"}`;
    const expected = Buffer.concat([dataKey, createHash('sha256').update(text).digest()]);
    for (const one of [context, reordered]) expect(boundPlaintext(dataKey, one)).toEqual(expected);
    expect(unboundPlaintext(Buffer.from(expected), reordered, 'kms')).toEqual(new Uint8Array(dataKey));
  });

  test('the 64 bytes are overwritten when the data key has been extracted, and when it is refused (F22)', () => {
    const good = boundPlaintext(randomBytes(32), context);
    unboundPlaintext(good, context, 'kms');
    const bad = boundPlaintext(randomBytes(32), {});
    expect(() => unboundPlaintext(bad, context, 'kms')).toThrow(KeyWrapperError);
    for (const bytes of [good, bad]) expect(bytes.every((byte) => byte === 0)).toBe(true);
  });

  test('the 64 bytes are refused with another context, length or type, and if their data key repeats one byte', () => {
    const whole = boundPlaintext(randomBytes(32), context);
    const other = boundPlaintext(randomBytes(32), { ...context, more: '' });
    const fifty = Buffer.concat([randomBytes(32), randomBytes(18)]);
    const hash = whole.subarray(32);
    for (const wrong of [
      other,
      fifty,
      whole.subarray(0, 63),
      Buffer.concat([whole, Buffer.from([0])]),
      Buffer.concat([randomBytes(31), hash]),
      Buffer.concat([randomBytes(33), hash]),
      whole.subarray(0, 32),
      new Uint8Array(0),
      Buffer.concat([Buffer.alloc(32), hash]),
      Buffer.concat([Buffer.alloc(32, 9), hash]),
      [...whole],
      Buffer.from(whole).toString('latin1'),
      undefined,
      null,
    ]) {
      const given = Buffer.isBuffer(wrong) ? Buffer.from(wrong) : wrong;
      let error: unknown;
      try {
        unboundPlaintext(given, context, 'kms');
      } catch (thrown) {
        error = thrown;
      }
      expect(error).toMatchObject({
        name: 'KeyWrapperError',
        kind: 'corrupt',
        summary: { provider: 'kms', operation: 'unwrap' },
      });
    }
    expect(checkedDataKey(new Uint8Array(whole.subarray(0, 32)), 'kms', 'unwrap')).toHaveLength(32);
  });
});
