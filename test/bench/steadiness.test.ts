import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, describe, expect, inject, test } from 'vitest';
import { startRedis } from '../support/redis.ts';
import { startOrSkip } from '../support/servers.ts';
import { judgeSteadiness, measureSteadiness } from './steadiness.ts';
import { CONDITIONS } from './steadiness-disturbances.ts';
import type { Counts, LoadOrders } from './steadiness-load.ts';
import { Program } from './steadiness-program.ts';
import { type Phase, type SteadinessReport, summarise } from './steadiness-report.ts';

const ROUNDS = 6;
const noCounts: Counts = { valid: 0, failed: 0, hostile: 0, refused: 0, failures: [] };

// Without Redis, the test prints that it is skipped.
const redis = await startOrSkip(() => startRedis());
await redis?.stop();

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** A phase of 2 000 operations of a microsecond, except ten. */
function phaseOf(condition: Phase['condition'], tailMicroseconds: number, counts: Partial<Counts> = {}): Phase {
  const samples = [...Array<number>(990).fill(1_000), ...Array<number>(10).fill(tailMicroseconds * 1_000)];
  return {
    condition,
    disturbances: condition === 'quiet' ? 0 : 1,
    load: { latencies: [1, 2], lateness: [0, 0], counts: { ...noCounts, valid: 1_000, ...counts } },
    recording: {
      seals: samples,
      unseals: samples,
      refusals: [],
      sealingKeys: condition === 'rotation' ? 2 : 1,
      eventLoopP999: 2,
      collecting: 1,
      longestCollection: 1,
      seconds: 1,
    },
  };
}

/** Six rounds without a fault, except for the changes that `change` makes to one phase. */
function reportOf(change: (phase: Phase) => Phase = (phase) => phase, rounds = ROUNDS): SteadinessReport {
  const round = () => CONDITIONS.flatMap((condition) => [phaseOf('quiet', 100), change(phaseOf(condition, 115))]);
  const phases = [...Array.from({ length: rounds }, round).flat(), phaseOf('quiet', 100)];
  return {
    closedLoopRate: undefined,
    rate: 1,
    rounds,
    phaseSeconds: 1,
    conditions: summarise(phases),
    besides: noCounts,
  };
}

function notMet(report: SteadinessReport): readonly string[] {
  return judgeSteadiness(report)
    .filter(({ met }) => !met)
    .map(({ law, measured }) => `${law}: ${measured}`);
}

describe('the verdict on steadiness', () => {
  test('accepts a report without faults, and gives the ratio with its bounds', () => {
    const report = reportOf();
    expect(notMet(report)).toEqual([]);
    expect(report.conditions.map(({ condition }) => condition)).toEqual(['quiet', ...CONDITIONS]);
    const [quiet, ...others] = report.conditions;
    expect(quiet).toMatchObject({ phases: ROUNDS * CONDITIONS.length + 1, tokenRatio: { median: 1, low: 1, high: 1 } });
    for (const other of others) {
      expect(other).toMatchObject({ phases: ROUNDS, pooledTokenRatio: 1.15, requestRatio: { median: 1 } });
      expect(other.tokenRatio).toEqual({ median: 1.15, low: 1.15, high: 1.15 });
      expect(other.token).toEqual({ operations: 12_000, p50: 1, p99: 115, p999: 115, longest: 115 });
    }
  });

  test.each(['rotation', 'KMS hang', 'KMS outage', 'hostile tokens'] as const)(
    'rejects a longer tail in %s',
    (condition) => {
      const slow = reportOf((phase) => (phase.condition === condition ? phaseOf(condition, 121) : phase));
      expect(notMet(slow)).toEqual([
        `p99.9 of token operations during ${condition}, as a multiple of the quiet condition, at most: 1.21`,
      ]);
    },
  );

  test('compares a phase with the geometric mean of its neighbours, so that one slow neighbour does not hide a slow phase', () => {
    const rounds = Array.from({ length: ROUNDS }, () => [phaseOf('quiet', 400), phaseOf('rotation', 300)]).flat();
    const phases = rounds.map((phase, at) => (at % 4 === 0 ? phaseOf('quiet', 100) : phase));
    const [quiet, rotation] = summarise([...phases, phaseOf('quiet', 100)]);
    expect(rotation?.tokenRatio).toEqual({ median: 1.5, low: 1.5, high: 1.5 });
    // Only five have a quiet neighbour on either side: too few.
    expect(quiet?.tokenRatio).toBeUndefined();
  });

  test('treats a longer tail in one phase as chance, and in four of six as a failure', () => {
    const slowIn = (count: number): SteadinessReport => {
      let seen = 0;
      return reportOf((phase) =>
        phase.condition === 'rotation' && ++seen <= count ? phaseOf('rotation', 999) : phase,
      );
    };
    expect(notMet(slowIn(1))).toEqual([]);
    expect(notMet(slowIn(4))).toHaveLength(1);
    expect(slowIn(1).conditions[2]?.tokenRatio).toEqual({ median: 1.15, low: 1.15, high: 9.99 });
  });

  test('rejects a failed request, an accepted hostile token, an idle phase, and a key that does not rotate', () => {
    const failing = reportOf((phase) =>
      phase.condition === 'refresh' ? phaseOf('refresh', 100, { failed: 1, failures: ['why'] }) : phase,
    );
    expect(notMet(failing)).toEqual(['failed valid requests, refresh: 6']);
    expect(failing.conditions[1]?.counts.failures).toEqual(Array(5).fill('why'));
    expect(notMet({ ...reportOf(), besides: { ...noCounts, failed: 1 } })).toEqual([
      'failed valid requests, start and end: 1',
    ]);
    const opened = reportOf((phase) =>
      phase.condition === 'hostile tokens' ? phaseOf(phase.condition, 100, { hostile: 10, refused: 9 }) : phase,
    );
    expect(notMet(opened)).toEqual(['hostile tokens that were not refused: 6']);
    const idle = reportOf((phase) => (phase.condition === 'KMS hang' ? { ...phase, disturbances: 0 } : phase));
    expect(notMet(idle)).toEqual(['conditions with a phase in which nothing happened: 1']);
    const same = reportOf((phase) =>
      phase.condition === 'rotation' ? { ...phase, recording: { ...phase.recording, sealingKeys: 1 } } : phase,
    );
    expect(notMet(same)).toEqual(['keys that sealed in every rotation, at least: 1']);
  });

  test('rejects a run of five rounds, which are too few to bound the ratio', () => {
    expect(notMet(reportOf(undefined, ROUNDS - 1))).toHaveLength(4);
  });
});

describe('the clients of the steadiness benchmark', () => {
  const RATE = 200;
  const SECONDS = 2;
  const SERVED = '{"result":{"requestState":"sr1.x"}}';

  /** Clients of a server that answers each request as the test says. */
  async function startLoad(serve: (response: ServerResponse) => void): Promise<Program<LoadOrders>> {
    const http = createServer((request, response) => {
      request.resume();
      serve(response);
    });
    await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
    closing.push(() => http.close());
    const load = await Program.fork<LoadOrders>('steadiness-load.ts');
    closing.push(() => load.stop());
    await load.ask('prepare', { url: `http://127.0.0.1:${(http.address() as AddressInfo).port}` });
    await load.ask('start', { rate: RATE });
    return load;
  }

  test('latencies include the wait while the server stalled, so there is no coordinated omission', async () => {
    const HELD = 40;
    let isStalled = false;
    const held: ServerResponse[] = [];
    const load = await startLoad((response) => {
      if (!isStalled) {
        response.end(SERVED);
        return;
      }
      held.push(response);
      if (held.length < HELD) return;
      isStalled = false;
      for (const each of held) each.end(SERVED);
    });
    const measuring = load.ask('measure', { seconds: SECONDS });
    await pause(500);
    isStalled = true;
    const { latencies, lateness, counts } = await measuring;
    expect([latencies.length, lateness.length]).toEqual([SECONDS * RATE, SECONDS * RATE]);
    expect(held).toHaveLength(HELD);
    // The first of the held requests waited for the last to arrive, the second for almost as long, and so on.
    const half = (HELD / 2 / RATE) * 1_000;
    expect(latencies.filter((latency) => latency >= half - 1).length).toBeGreaterThanOrEqual(HELD / 2);
    expect(counts).toMatchObject({ failed: 0, hostile: 0 });
  });

  test('latency is measured from the time at which a request was due, even if the client itself stalled', async () => {
    const load = await startLoad((response) => response.end(SERVED));
    const measuring = load.ask('measure', { seconds: SECONDS });
    await pause(500);
    process.kill(load.pid, 'SIGSTOP');
    await pause(300);
    process.kill(load.pid, 'SIGCONT');
    const { latencies, lateness } = await measuring;
    for (const times of [latencies, lateness]) {
      expect(times).toHaveLength(SECONDS * RATE);
      // A fifth of a second's requests had to wait for a tenth or longer.
      expect(times.filter((time) => time >= 90).length).toBeGreaterThanOrEqual(RATE * 0.15);
    }
  });

  test('a valid request that fails and a hostile token without the expected refusal count as errors', async () => {
    let answer = SERVED;
    const load = await startLoad((response) => response.end(answer));
    await load.ask('hostile', { on: true });
    const served = (await load.ask('measure', { seconds: 0.5 })).counts;
    expect(served.failed).toBe(0);
    expect(served.hostile).toBeGreaterThan(0);
    expect(served.refused).toBe(0);
    expect(served.failures).toContain('hostile: "served"');
    answer = '{"error":{"code":-32603,"message":"Internal error"}}';
    // Requests that were answered before are counted here.
    await load.ask('measure', { seconds: 0.1 });
    const { counts } = await load.ask('measure', { seconds: 0.5 });
    expect(counts.failed).toBeGreaterThan(0);
    expect(counts.refused).toBe(0);
    expect(counts.failures).toContain('{"code":-32603,"message":"Internal error"}');
    answer = '{"error":{"code":-32602,"message":"Invalid or expired requestState"}}';
    await load.ask('measure', { seconds: 0.1 });
    const refused = (await load.ask('measure', { seconds: 0.5 })).counts;
    expect(refused.refused).toBe(refused.hostile);
    expect(refused.failed).toBe(refused.valid);
  });
});

test.skipIf(redis === undefined || inject('moto') === '')(
  'a server on AWS KMS and Redis serves every valid request and refuses every hostile token under all disturbances',
  async () => {
    const done: number[] = [];
    const options = { rounds: 1, phaseSeconds: 1, warmUpSeconds: 0.5, rate: 40 };
    const report = await measureSteadiness(options, (share) => done.push(share));

    const [quiet, ...others] = report.conditions;
    expect(others.map(({ condition }) => condition)).toEqual(CONDITIONS);
    expect(quiet).toMatchObject({ condition: 'quiet', phases: CONDITIONS.length + 1, disturbances: 0 });
    for (const { phases, token, counts, fewestDisturbances } of others) {
      expect(phases).toBe(1);
      expect(token.operations).toBeGreaterThan(0);
      expect(counts.valid).toBeGreaterThanOrEqual(options.rate * options.phaseSeconds);
      expect(fewestDisturbances).toBeGreaterThan(0);
    }
    const hostile = others.at(-1);
    expect(hostile?.counts.hostile).toBeGreaterThan(0);
    expect(hostile?.refusal?.operations).toBeGreaterThan(0);
    // So few and so short phases give no bounds for a ratio, and no new key seals within one.
    const counted = judgeSteadiness(report).filter(({ limit }) => limit === 0);
    expect(counted).toHaveLength(1 + CONDITIONS.length + 3);
    expect(counted.filter(({ met }) => !met)).toEqual([]);
    expect(done).toHaveLength(2 * CONDITIONS.length + 1);
    expect(done.at(-1)).toBe(1);
  },
);

test('more rounds than the ring has room for, and idle phases, are rejected', async () => {
  const options = { rounds: 1, phaseSeconds: 1, warmUpSeconds: 1 };
  await expect(measureSteadiness({ ...options, rounds: 21 }, () => undefined)).rejects.toThrow(RangeError);
  await expect(measureSteadiness({ ...options, phaseSeconds: 0.5 }, () => undefined)).rejects.toThrow(RangeError);
});
