import { beforeAll, describe, expect, test } from 'vitest';
import { type FleetCostsReport, judgeFleetCosts, measureFleetCosts } from './fleet-costs.ts';

const HERD = 40;
let report: FleetCostsReport;
beforeAll(async () => {
  report = await measureFleetCosts({ tokens: 20_000, herd: HERD, members: 3, days: 1, tokensPerSecond: [100] });
});

describe('the calls of a fleet to its KMS and its store', () => {
  test('tokens cause no calls after the start', () => {
    expect(report.measured.calls).toEqual({ generate: 0, wrap: 0, unwrap: 0, read: 0, write: 0 });
    expect(report.measured.tokens).toBe(20_000);
  });

  test('the server that creates the ring makes one data key and checks it, and each later server unwraps each key once', () => {
    const { founder, joiners } = report.coldStart;
    expect(founder).toEqual({ generate: 1, wrap: 0, unwrap: 1, read: 2, write: 1 });
    expect(joiners.map(({ keys, calls }) => [keys, calls])).toEqual([
      [1, { generate: 0, wrap: 0, unwrap: 1, read: 1, write: 0 }],
      [8, { generate: 0, wrap: 0, unwrap: 8, read: 1, write: 0 }],
    ]);
  });

  test('concurrent first seals make one data key, whereas the AWS Encryption SDK makes one for each seal', () => {
    expect(report.herd.oneProcess).toMatchObject({ generate: 1, wrap: 0 });
    expect(report.herd.encryptionSdk).toBe(HERD);
  });

  test('members that start concurrently on an empty store end up with one key, and none makes a second', () => {
    const { calls, keysInRing, openNext } = report.herd.members;
    expect({ keysInRing, openNext }).toEqual({ keysInRing: 1, openNext: true });
    expect(calls).toMatchObject({ generate: 1, wrap: 0, unwrap: HERD, write: 1 });
  });

  test('a million tokens of a member that seals 100 per second cost 12.7 KMS calls by the formula', () => {
    const [cost] = report.perMillionTokens;
    expect(cost?.formula.kms).toBeCloseTo(109.82 / 8.64, 2);
    expect(cost?.formula.store).toBeCloseTo(326.4 / 8.64, 2);
  });

  test('every limit is met, and each limit can fail', () => {
    expect(judgeFleetCosts(report).filter(({ met }) => !met)).toEqual([]);
    const calls = { generate: 1, wrap: 1, unwrap: 9, read: 1, write: 0 };
    const nothing = { kms: 0, store: 0 };
    const broken: FleetCostsReport = {
      ...report,
      perMemberDay: { ...report.perMemberDay, simulated: nothing },
      measured: { ...report.measured, calls },
      coldStart: { founder: calls, joiners: report.coldStart.joiners.map((joiner) => ({ ...joiner, calls })) },
      herd: {
        ...report.herd,
        oneProcess: calls,
        encryptionSdk: HERD - 1,
        members: { calls, keysInRing: 2, openNext: false },
      },
    };
    const verdicts = judgeFleetCosts(broken);
    expect(verdicts.filter(({ met }) => met)).toEqual([]);
    expect(new Set(verdicts.map(({ law }) => law)).size).toBe(verdicts.length);
  });
});
