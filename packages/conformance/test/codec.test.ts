import { randomBytes } from 'node:crypto';
import { createKmsCodec, localKeyWrapper, memoryRing } from '@sealring/core';
import { describe, expect, test } from 'vitest';
// @boundaries-ignore code that the tests of all packages share is not a package
import { seedCount } from '../../../test/support/seeds.ts';
import { CODEC_REQUIREMENTS, describeCodec, runCodecConformance } from '../src/index.ts';
import { BROKEN_CODECS, soundCodec, zooTarget } from './zoo/broken-codecs.ts';
import { SOUND_CODECS } from './zoo/sound-codecs.ts';

test('every requirement has its own id', () => {
  const ids = CODEC_REQUIREMENTS.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
});

test('the zoo has more than eighty broken codecs and twenty-seven sound ones, as the README states', () => {
  expect(BROKEN_CODECS.length).toBeGreaterThan(80);
  expect(SOUND_CODECS).toHaveLength(27);
});

describe('broken codecs', () => {
  for (const { target, caughtBy } of BROKEN_CODECS) {
    test(`${caughtBy} catches this broken codec: ${target.name}`, async () => {
      const { results } = await runCodecConformance(target, { seed: 1, only: [caughtBy] });
      const level = CODEC_REQUIREMENTS.find(({ id }) => id === caughtBy)?.level;
      expect(results.map(({ id, status }) => [id, status])).toEqual([[caughtBy, level === 'MUST' ? 'fail' : 'warn']]);
    });
  }
});

/** `SEALRING_SEEDS=200` checks every sound codec with two hundred seeds. */
const SEEDS = seedCount(1);

describe('sound codecs, with any seed', () => {
  for (const { target, warnings } of SOUND_CODECS) {
    test(`${target.name} passes`, { timeout: 600_000 * SEEDS }, async () => {
      for (let seed = 0; seed < SEEDS; seed++) {
        const { results } = await runCodecConformance(target, { seed });
        const complaints = results.filter(({ status }) => status === 'fail' || status === 'warn');
        expect(
          complaints.map(({ id, status }) => `${status} ${id}`),
          complaints.map(({ detail }) => detail).join('\n'),
        ).toEqual(warnings.map((id) => `warn ${id}`));
      }
    });
  }

  test('a codec over a ring passes', async () => {
    const start = async (masterKey: Uint8Array, ring = memoryRing()) => {
      const codec = await createKmsCodec({ keyWrapper: localKeyWrapper({ masterKey }), ring });
      return { codec, close: () => codec.close() };
    };
    const [masterKey, ring] = [randomBytes(32), memoryRing()];
    const { passed, results } = await runCodecConformance({
      name: 'native',
      create: () => start(masterKey, ring),
      createPeer: () => start(masterKey, ring),
      createStranger: () => start(randomBytes(32)),
    });
    expect(results.filter(({ status }) => status === 'fail' || status === 'warn')).toEqual([]);
    expect(passed).toBe(true);
  });
});

describeCodec(zooTarget('the suite as tests of a runner:', soundCodec()), { describe, test });

test('a target that modifies payloads does not affect the next target', async () => {
  const ids = ['CODEC-BIT-FLIP'];
  for (const name of ['modifies the caller’s buffer', 'authenticates decoded text']) {
    const { target } = BROKEN_CODECS.find((broken) => broken.target.name === name) ?? {};
    if (target === undefined) throw new Error(`no codec ${name}`);
    const { results } = await runCodecConformance(target, { seed: 1, only: ids });
    expect(results.map(({ status }) => status)).toEqual([name === 'authenticates decoded text' ? 'fail' : 'pass']);
  }
});

/** Keeps the processor busy like a slow codec. */
function pause(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

describe('targets that misbehave', () => {
  const codec = { seal: () => 'x', unseal: () => new Uint8Array(0) };
  const target = zooTarget('odd', () => codec);

  test('a target that cannot start causes a finding', async () => {
    const { passed, results } = await runCodecConformance(
      { ...target, create: () => Promise.reject(new Error('secret')) },
      { only: ['CODEC-SYNCHRONOUS'] },
    );
    expect(passed).toBe(false);
    expect(results[0]).toMatchObject({
      status: 'fail',
      detail: expect.stringMatching(/^create failed: Error at .*codec\.test\.ts:\d+ \(seed \d+\)$/),
    });
  });

  test('a close that never ends is reported once, under its own requirement', async () => {
    const sound = zooTarget('sound', soundCodec());
    const create = async () => ({ ...(await sound.create()), close: () => new Promise<void>(() => undefined) });
    const only = ['CODEC-SYNCHRONOUS', 'CODEC-TOKEN-TEXT', 'CODEC-CLOSES'];
    const { results } = await runCodecConformance({ ...sound, create }, { only });
    expect(results.map(({ status }) => status)).toEqual(['pass', 'pass', 'fail']);
    expect(results.at(-1)?.detail).toContain('closing an instance took longer than 5000 ms');
  });

  test('a slow codec is checked with fewer variants, including some of each kind', async () => {
    const sound = soundCodec();
    let unseals = 0;
    const slow = zooTarget('slow', (keys) => {
      const made = sound(keys);
      return {
        seal: (payload) => made.seal(payload),
        unseal(token) {
          unseals += 1;
          pause(6);
          return made.unseal(token);
        },
      };
    });
    const { results } = await runCodecConformance(slow, { only: ['CODEC-BIT-FLIP', 'CODEC-AFTER-REFUSAL'] });
    expect(results.map(({ status }) => status)).toEqual(['pass', 'pass']);
    // All unseals together take less than fifteen seconds.
    expect(unseals).toBeLessThan(15_000 / 6);
  });

  test('a target that never starts causes a finding', async () => {
    const { results } = await runCodecConformance(
      { ...target, create: () => new Promise<never>(() => undefined) },
      { only: ['CODEC-SYNCHRONOUS'], timeoutMs: 200 },
    );
    expect(results[0]).toMatchObject({ status: 'fail', detail: expect.stringContaining('did not end within 200 ms') });
  });

  test('invalid targets and options are rejected with an error that names them', async () => {
    await expect(runCodecConformance({ ...target, createPeer: 1 } as never)).rejects.toThrow(
      /createPeer must be a function/,
    );
    await expect(runCodecConformance(target, { only: ['CODEC-NONE'] })).rejects.toThrow(/CODEC-NONE/);
    await expect(runCodecConformance(target, { seed: -1 })).rejects.toThrow(/seed must be/);
    await expect(runCodecConformance(target, { sed: 1 } as never)).rejects.toThrow(/unknown option "sed"/);
  });

  test('progress names the current requirement', async () => {
    const told: string[] = [];
    const only = ['CODEC-SYNCHRONOUS', 'CODEC-TOKEN-TEXT'];
    await runCodecConformance(zooTarget('sound', soundCodec()), {
      only,
      onProgress: (done, total, id) => told.push(`${done}/${total} ${id}`),
    });
    expect(told).toEqual(['0/2 CODEC-SYNCHRONOUS', '1/2 CODEC-TOKEN-TEXT', '2/2 ']);
  });
});
