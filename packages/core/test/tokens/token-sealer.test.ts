import { createHash, createHmac, hkdfSync, randomBytes, randomFillSync } from 'node:crypto';
import { startupSnapshot } from 'node:v8';
import { describe, expect, test, vi } from 'vitest';
import { type Moment, momentOf, type RandomSource } from '../../src/base/clock.ts';
import { deriveTokenKey, tokenKeySource } from '../../src/formats/sealring.ts';
import { createSealingState, type SealingState, TOKENS_PER_SALT, TokenSealer } from '../../src/tokens/token-sealer.ts';

const FROZEN: Moment = momentAt(1_795_000_000_123, 77_000_000_000n);
const DATA_KEY = randomBytes(32);
const NOTHING = new Uint8Array(0);

const constantRandom: RandomSource = (fill) => {
  fill.fill(7);
};

function stateWith(options: Partial<Pick<SealingState, 'random' | 'kernelEntropy' | 'hedge'>> = {}): SealingState {
  return createSealingState({ random: constantRandom, kernelEntropy: () => NOTHING, hedge: false, ...options });
}

function sealerOver(state: SealingState, dataKey: Uint8Array = DATA_KEY): TokenSealer {
  const { hedge } = state;
  return new TokenSealer(state, (salt) => deriveTokenKey(tokenKeySource(dataKey, 'payments'), salt, { hedge }));
}

/** A generator that returns the same bytes for the same seed. */
function cloneable(seed: string): RandomSource {
  let drawn = 0;
  return (fill) => {
    drawn += 1;
    fill.set(new Uint8Array(hkdfSync('sha256', seed, '', String(drawn), fill.length)));
  };
}

const saltOf = (token: string): string => token.slice(16, 40);
const nonceOf = (token: string): Buffer => Buffer.from(token.slice(64, 80), 'base64url');
const tagOf = (token: string): Buffer => Buffer.from(token.slice(64), 'base64url').subarray(-16);
const useOf = (token: string): string => saltOf(token) + token.slice(64, 80);

function momentAt(wallMs: number, monotonicNs: bigint): Moment {
  return momentOf({ wallMs: () => wallMs, monotonicNs: () => monotonicNs });
}

function nanosecondsOf(moment: Moment): bigint {
  return BigInt(Math.round(moment.steadyMs * 1e6));
}

function after(moment: Moment, ms: number, ns = 0n): Moment {
  return momentAt(moment.wallMs + ms, nanosecondsOf(moment) + BigInt(ms) * 1_000_000n + ns);
}

/** How many (salt, nonce) pairs of some tokens occur more than once. */
function repeats(tokens: readonly string[]): number {
  return tokens.length - new Set(tokens.map(useOf)).size;
}

describe('sealing with a constant random source and stopped clocks (F1)', () => {
  test('no (salt, nonce) pair repeats over 2^21 seals of one payload, and a salt is used for 2^20 tokens', () => {
    const sealer = sealerOver(stateWith());
    const payload = Buffer.from('x');
    const salts = new Map<string, Set<string>>();
    for (let i = 0; i < 2 * TOKENS_PER_SALT; i++) {
      const token = sealer.seal(payload, FROZEN);
      const salt = saltOf(token);
      let nonces = salts.get(salt);
      if (nonces === undefined) {
        // A flat copy, so that two million strings do not keep their tokens alive.
        nonces = new Set();
        salts.set(Buffer.from(salt).toString(), nonces);
      }
      nonces.add(nonceOf(token).toString('latin1'));
    }
    expect(TOKENS_PER_SALT).toBe(2 ** 20);
    expect([...salts.values()].map((nonces) => nonces.size)).toEqual([2 ** 20, 2 ** 20]);
    expect(saltOf(sealer.seal(payload, FROZEN))).not.toBe([...salts.keys()].at(-1));
  });

  test('two data keys or purposes of one instance share the pool of random bytes, but no token key', () => {
    const state = stateWith();
    const sealers = [
      sealerOver(state),
      sealerOver(state, randomBytes(32)),
      new TokenSealer(state, (salt) =>
        deriveTokenKey(tokenKeySource(DATA_KEY, 'payments'), salt, { purpose: 'cursor' }),
      ),
    ];
    const tokens = Array.from({ length: 3_000 }, (_, i) => sealers[i % 3]?.seal(NOTHING, FROZEN) ?? '');
    // One instance: its sealers share the state that keeps their nonces apart, with any salt.
    expect(new Set(tokens.map((token) => token.slice(64, 80))).size).toBe(3_000);
    expect(new Set(tokens.map((token) => token.slice(4, 64))).size).toBe(3);
  });
});

describe('a salt (F2)', () => {
  test('a salt depends on both clocks, the process and the last tag, in addition to the random source', () => {
    function saltAt(moment: Moment, before: readonly Moment[] = []): string {
      const state = stateWith();
      for (const earlier of before) sealerOver(state).seal(NOTHING, earlier);
      return saltOf(sealerOver(state).seal(NOTHING, moment));
    }
    const salts = [
      saltAt(FROZEN),
      saltAt(after(FROZEN, 0, 1_000n)),
      saltAt({ ...FROZEN, wallMs: FROZEN.wallMs + 1 }),
      saltAt(FROZEN, [FROZEN]),
    ];
    const pid = vi.spyOn(process, 'pid', 'get').mockReturnValue(process.pid + 1);
    salts.push(saltAt(FROZEN));
    pid.mockRestore();
    expect(new Set(salts).size).toBe(salts.length);
    expect(saltAt(FROZEN)).toBe(salts[0]);
  });
});

describe('a start-up snapshot that is started many times (F2)', () => {
  test('each start of a snapshot begins with its own salt and random bytes, without any notification', () => {
    const drawn: number[] = [];
    const random: RandomSource = (fill) => {
      drawn.push(fill.length);
      randomFillSync(fill);
    };
    const onStart: (() => void)[] = [];
    const told = vi.spyOn(startupSnapshot, 'addDeserializeCallback').mockImplementation((callback) => {
      onStart.push(() => callback(undefined));
    });
    const building = vi.spyOn(startupSnapshot, 'isBuildingSnapshot');
    try {
      sealerOver(stateWith({ random })).seal(NOTHING, FROZEN);
      expect(onStart).toEqual([]);
      drawn.length = 0;
      building.mockReturnValue(true);
      const sealer = sealerOver(stateWith({ random }));
      const before = [sealer.seal(NOTHING, FROZEN), sealer.seal(NOTHING, FROZEN)];
      expect(new Set(before.map(saltOf)).size).toBe(1);
      // One salt, and 256 nonces at once.
      expect(drawn).toEqual([18, 3_072]);
      for (const start of onStart) start();
      const started = sealer.seal(NOTHING, FROZEN);
      expect(before.map(saltOf)).not.toContain(saltOf(started));
      expect(drawn).toEqual([18, 3_072, 18, 3_072]);
    } finally {
      told.mockRestore();
      building.mockRestore();
    }
  });
});

describe('the end of a salt (F1)', () => {
  /** Whether a second seal, some time after the first, has a new salt. */
  function resalts(...moments: readonly Moment[]): boolean {
    const sealer = sealerOver(stateWith({ random: (fill) => void randomFillSync(fill) }));
    const salts = moments.map((moment) => saltOf(sealer.seal(NOTHING, moment)));
    return salts.at(-1) !== salts.at(-2);
  }

  test('a salt ends after a pause of more than one second by the monotonic clock, but not after exactly one second', () => {
    expect(resalts(FROZEN, after(FROZEN, 1_000))).toBe(false);
    expect(resalts(FROZEN, after(FROZEN, 0, 1_000_000_000n))).toBe(false);
    expect(resalts(FROZEN, after(FROZEN, 0, 1_000_000_001n))).toBe(true);
  });

  test('a salt ends when the wall clock jumps by over a second in either direction, as after a suspension', () => {
    for (const sign of [1, -1]) {
      expect(resalts(FROZEN, { ...FROZEN, wallMs: FROZEN.wallMs + sign * 1_000 })).toBe(false);
      expect(resalts(FROZEN, { ...FROZEN, wallMs: FROZEN.wallMs + sign * 1_001 })).toBe(true);
      expect(resalts(FROZEN, { ...FROZEN, wallMs: FROZEN.wallMs + sign * 86_400_000 })).toBe(true);
    }
  });

  test('a salt ends after 60 s, however steadily tokens are sealed', () => {
    const sealer = sealerOver(stateWith());
    const salts: string[] = [];
    for (let ms = 0; ms <= 180_000; ms += 500) salts.push(saltOf(sealer.seal(NOTHING, after(FROZEN, ms))));
    expect(salts.map((salt, i) => (salt === salts[i - 1] ? -1 : i * 500)).filter((ms) => ms >= 0)).toEqual([
      0, 60_000, 120_000, 180_000,
    ]);
  });

  test('a salt ends for no other reason', () => {
    const sealer = sealerOver(stateWith());
    const salts = new Set<string>();
    for (let ms = 0; ms < 59_900; ms += 100) salts.add(saltOf(sealer.seal(NOTHING, after(FROZEN, ms))));
    expect(salts.size).toBe(1);
  });
});

describe('two clones of one machine (F2)', () => {
  const payloads = (who: string) => Array.from({ length: 2_000 }, (_, i) => Buffer.from(`${who} ${i}`));

  /** The seals of two clones from one generator state. */
  function clones(
    of: (who: 'a' | 'b') => {
      readonly moment: (i: number) => Moment;
      readonly payloads: readonly Buffer[];
      readonly kernel?: Uint8Array;
    },
    hedge = false,
  ): { readonly a: readonly string[]; readonly b: readonly string[] } {
    const sealed = (who: 'a' | 'b'): readonly string[] => {
      const { moment, payloads: own, kernel = NOTHING } = of(who);
      const sealer = sealerOver(stateWith({ random: cloneable('one seed'), hedge, kernelEntropy: () => kernel }));
      return own.map((payload, i) => sealer.seal(payload, moment(i)));
    };
    return { a: sealed('a'), b: sealed('b') };
  }

  test('clones that seal the same payload repeat no (salt, nonce) pair if their clocks differ by 1 ns', () => {
    const same = payloads('same');
    const { a, b } = clones((who) => ({
      moment: (i) => after(FROZEN, i, who === 'a' ? 0n : 1n),
      payloads: same,
    }));
    expect(repeats([...a, ...b])).toBe(0);
  });

  test('clones that differ only in their wall clocks, by 1 ms, use no (salt, nonce) pair twice', () => {
    const same = payloads('same');
    const { a, b } = clones((who) => ({
      moment: (i) => ({ ...after(FROZEN, i), wallMs: FROZEN.wallMs + i + (who === 'a' ? 0 : 1) }),
      payloads: same,
    }));
    expect(repeats([...a, ...b])).toBe(0);
  });

  test('with equal clocks but different payloads, clones repeat nothing from the second token on', () => {
    const { a, b } = clones((who) => ({ moment: (i) => after(FROZEN, i % 900), payloads: payloads(who) }));
    // The first token is the documented exception: it shows that the clones are clones.
    expect(useOf(a[0] ?? '')).toBe(useOf(b[0] ?? ''));
    expect(repeats([...a.slice(1), ...b.slice(1)])).toBe(0);
    expect(repeats([...a, ...b])).toBe(1);
  });

  test('with equal clocks, clones whose payloads differ late repeat nothing after the first difference', () => {
    const same = payloads('same');
    const differ = 100;
    const { a, b } = clones((who) => ({
      moment: () => FROZEN,
      payloads: same.map((payload, i) => (i === differ ? Buffer.from(who) : payload)),
    }));
    expect(a.slice(0, differ)).toEqual(b.slice(0, differ));
    expect(useOf(a[differ] ?? '')).toBe(useOf(b[differ] ?? ''));
    expect(repeats([...a.slice(differ + 1), ...b.slice(differ + 1)])).toBe(0);
  });

  test('clones of a running machine repeat nothing after the first differing token, under the salt they share', () => {
    const run = (who: string) => {
      const sealer = sealerOver(stateWith({ random: cloneable('one seed') }));
      const before = payloads('before the clone').map((payload) => sealer.seal(payload, FROZEN));
      const since = payloads(who).map((payload) => sealer.seal(payload, FROZEN));
      return { before, since };
    };
    const [a, b] = [run('a'), run('b')];
    expect(a.before).toEqual(b.before);
    expect(new Set([...a.since, ...b.since].map(saltOf)).size).toBe(1);
    expect(repeats([...a.since.slice(1), ...b.since.slice(1)])).toBe(0);
  });

  test('random bytes of the kernel alone make the tokens of clones differ from the first token on', () => {
    const same = payloads('same');
    const kernels = { a: randomBytes(32), b: randomBytes(32) };
    const { a, b } = clones((who) => ({ moment: () => FROZEN, payloads: same, kernel: kernels[who] }));
    expect(saltOf(a[0] ?? '')).not.toBe(saltOf(b[0] ?? ''));
    expect(repeats([...a, ...b])).toBe(0);
    const equal = clones(() => ({ moment: () => FROZEN, payloads: same, kernel: kernels.a }));
    expect(equal.a).toEqual(equal.b);
  });

  test('with hedge and different payloads, the tokens of clones differ from the first token on', () => {
    const { a, b } = clones((who) => ({ moment: () => FROZEN, payloads: payloads(who) }), true);
    expect(saltOf(a[0] ?? '')).toBe(saltOf(b[0] ?? ''));
    expect(repeats([...a, ...b])).toBe(0);
  });

  test('clones make equal tokens from equal payloads, hedged or not, because no other input is used', () => {
    const same = payloads('same');
    for (const hedge of [true, false]) {
      const { a, b } = clones(() => ({ moment: () => FROZEN, payloads: same }), hedge);
      expect(a).toEqual(b);
    }
  });
});

describe('the input of a nonce', () => {
  test('a nonce is made of 12 fresh random bytes, the time and count, and the last tag, and each random byte is used once', () => {
    const drawn: Buffer[] = [];
    const random: RandomSource = (fill) => {
      randomFillSync(fill);
      drawn.push(Buffer.from(fill));
    };
    const sealer = sealerOver(stateWith({ random }));
    let last: Buffer = Buffer.alloc(16);
    let count = 0;
    let salt = '';
    const used: Buffer[] = [];
    for (let i = 0; i < 3_000; i++) {
      // Two pauses: the pool continues across salts.
      const moment = after(FROZEN, i + (i >= 1_000 ? 5_000 : 0) + (i >= 2_000 ? 5_000 : 0), 3n);
      const token = sealer.seal(NOTHING, moment);
      if (saltOf(token) !== salt) count = 0;
      salt = saltOf(token);
      // T as in the document: monotonic ns mod 2^44 ‖ wall ms mod 2^32 ‖ count in 20 bits.
      const time =
        ((nanosecondsOf(moment) % 2n ** 44n) << 52n) | ((BigInt(moment.wallMs) % 2n ** 32n) << 20n) | BigInt(count);
      const t = Buffer.from(time.toString(16).padStart(24, '0'), 'hex');
      used.push(Buffer.from(nonceOf(token).map((byte, at) => byte ^ t.readUInt8(at) ^ last.readUInt8(at))));
      last = tagOf(token);
      count += 1;
    }
    const source = Buffer.concat(drawn);
    const positions = used.map((bytes) => source.indexOf(bytes));
    expect(positions).not.toContain(-1);
    const ordered = positions.toSorted((a, b) => a - b);
    expect(ordered).toEqual(positions);
    expect(ordered.every((at, i) => i === 0 || at >= (ordered[i - 1] ?? 0) + 12)).toBe(true);
    // All random bytes but the three salts and the rest of the pool went into nonces.
    const wasted = source.length - 12 * used.length - 3 * 18;
    expect(wasted).toBeGreaterThanOrEqual(0);
    expect(wasted).toBeLessThan(12 * 256);
  });

  test('a hedged nonce also depends on a keyed hash of the payload, which cannot be computed from the payload alone', () => {
    const seal = (payload: Buffer, dataKey: Buffer, hedge: boolean): Buffer =>
      nonceOf(sealerOver(stateWith({ random: cloneable('s'), hedge }), dataKey).seal(payload, FROZEN));
    const xor = (a: Buffer, b: Buffer): Buffer => Buffer.from(a.map((byte, i) => byte ^ b.readUInt8(i)));
    const payload = Buffer.from('state');
    const hashes = [DATA_KEY, randomBytes(32)].map((dataKey) =>
      xor(seal(payload, dataKey, true), seal(payload, dataKey, false)),
    );
    expect(hashes[0]).not.toEqual(hashes[1]);
    expect(hashes[0]).not.toEqual(Buffer.alloc(12));
    for (const unkeyed of [createHash('sha256').update(payload), createHmac('sha256', '').update(payload)]) {
      expect(unkeyed.digest().subarray(0, 12)).not.toEqual(hashes[0]);
    }
  });

  test('a token is valid whatever the clocks show: negative, fractional or far-future times', () => {
    const sealer = sealerOver(stateWith());
    const moments = [
      momentAt(-5.5, -3n),
      momentAt(0, 0n),
      momentAt(1_795_000_000_000.75, 2n ** 63n),
      momentAt(8.64e15, 2n ** 44n - 1n),
    ];
    const tokens = moments.flatMap((moment) =>
      Array.from({ length: 200 }, () => sealer.seal(Buffer.from('s'), moment)),
    );
    expect(repeats(tokens)).toBe(0);
    expect(tokens.every((token) => token.length === 64 + 39)).toBe(true);
  });
});
