import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Subject } from './heap-process.ts';
import { createTarget, HostileTokens, refusalOf, type Target } from './hostile.ts';

const TOKENS = 100_000;
const ROUNDS = 5;
const ROTATIONS = 10_000;
const MISS_REFRESH_SECONDS = 10;
const payload = new TextEncoder().encode('{"order":"A1"}');
const run = promisify(execFile);

let target: Target;
beforeEach(async () => {
  target = await createTarget();
});
afterEach(() => target.codec.close());

/** Memory in use after each round, in a separate process; without the first, which compiles and fills caches. */
async function heapAfterRounds(what: Subject, perRound: number): Promise<number[]> {
  const script = join(import.meta.dirname, 'heap-process.ts');
  const given = ['--expose-gc', script, what, String(ROUNDS + 1), String(perRound)];
  const { stdout } = await run(process.execPath, given);
  return (JSON.parse(stdout) as number[]).slice(1);
}

/** Least-squares slope: the growth per round. */
function slope(values: readonly number[]): number {
  const middle = (values.length - 1) / 2;
  const weights = values.map((_, i) => i - middle);
  const moment = values.reduce((sum, value, i) => sum + value * (weights[i] ?? 0), 0);
  return moment / weights.reduce((sum, weight) => sum + weight * weight, 0);
}

describe('tokens that an attacker makes up (F5)', () => {
  test(`${TOKENS} made-up tokens of every kind are all refused, without a KMS call or a write, and with at most one read per missRefresh`, async () => {
    const { codec, clock, counts } = target;
    const genuine = codec.seal(payload);
    const tokens = new HostileTokens(genuine, 5);
    const before = { ...counts };
    const reasons: Record<string, number> = {};
    // The time is shorter than refreshEvery and kmsCheckEvery, so only the tokens can cause a read or a call.
    const seconds = 200;
    for (let second = 0; second < seconds; second++) {
      for (let i = 0; i < TOKENS / seconds; i++) {
        const reason = refusalOf(codec, tokens.next()) ?? 'opened';
        reasons[reason] = (reasons[reason] ?? 0) + 1;
      }
      clock.advance(1);
      // Everything that was started ends before the clock advances.
      await new Promise((resolve) => setTimeout(resolve));
    }
    expect(counts.kms - before.kms).toBe(0);
    expect(counts.writes - before.writes).toBe(0);
    expect(counts.reads - before.reads).toBeGreaterThan(1);
    expect(counts.reads - before.reads).toBeLessThanOrEqual(seconds / MISS_REFRESH_SECONDS);
    // Every check refused some tokens: none is hidden by the check before it.
    expect(Object.keys(reasons).toSorted()).toEqual(['authentication failed', 'malformed', 'unknown key']);
    for (const count of Object.values(reasons)) expect(count).toBeGreaterThan(TOKENS / 20);
    expect(codec.unseal(genuine)).toEqual(payload);
    expect(codec.health().status).toBe('ok');
  });

  test('tokens of up to 10 MB that name the real key are refused like any others, without any call (F30)', () => {
    const { codec, counts } = target;
    const genuine = codec.seal(payload);
    expect(codec.unseal(genuine)).toEqual(payload);
    const tokens = new HostileTokens(genuine, 30);
    const before = { ...counts };
    for (const length of [262_144, 262_145, 1_000_000, 10_000_000, 10_000_001]) {
      for (let i = 0; i < 3; i++) {
        expect(refusalOf(codec, tokens.huge(length))).toBe(length <= 262_144 ? 'authentication failed' : 'malformed');
      }
    }
    expect(counts).toEqual(before);
    expect(codec.unseal(genuine)).toEqual(payload);
  });

  test(`${ROUNDS} times ${TOKENS} made-up tokens leave less than 2 bytes each in memory (F23)`, async () => {
    const used = await heapAfterRounds('tokens', TOKENS);
    expect(used).toHaveLength(ROUNDS);
    expect(slope(used) / TOKENS).toBeLessThan(2);
  });
});

describe('a ring that rotates for seven years (F23)', () => {
  test(`after ${ROTATIONS} rotations, the document is no longer and has no more keys than after the first hundred`, async () => {
    const { codec, ring, clock } = target;
    const sizes: number[] = [];
    const keys: number[] = [];
    const held: number[] = [];
    for (let i = 0; i < ROTATIONS; i++) {
      // Six hours, a quarter of rotateEvery: several keys are alive at any time.
      clock.advance(6 * 3_600);
      await codec.rotate();
      sizes.push((await ring.read())?.document.length ?? 0);
      const health = codec.health();
      keys.push(health.keys.length);
      held.push(health.keys.filter((key) => key.held).length);
    }
    const most = (values: readonly number[], from: number, to: number) => Math.max(...values.slice(from, to));
    expect(most(keys, 0, ROTATIONS)).toBe(most(keys, 0, 100));
    expect(most(held, 0, ROTATIONS)).toBe(most(held, 0, 100));
    expect(most(keys, 0, ROTATIONS)).toBeLessThanOrEqual(10);
    expect(most(sizes, 0, ROTATIONS)).toBe(most(sizes, 0, 100));
    expect(codec.unseal(codec.seal(payload))).toEqual(payload);
  });

  test(`${ROUNDS} times ${ROTATIONS / ROUNDS} rotations leave less than 128 bytes each in memory, less than a key takes`, async () => {
    const used = await heapAfterRounds('rotations', ROTATIONS / ROUNDS);
    expect(used).toHaveLength(ROUNDS);
    expect(slope(used) / (ROTATIONS / ROUNDS)).toBeLessThan(128);
  });
});
