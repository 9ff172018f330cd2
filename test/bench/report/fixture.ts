import type { Estimate } from '../statistics.ts';
import type { ConditionReport } from '../steadiness-report.ts';
import { type Cost, OPERATIONS, OURS } from '../token-path.ts';
import { LEADS } from '../token-path-report.ts';
import type { KeptParts } from './kept.ts';
import type { PartName } from './parts.ts';

const of = (median: number): Estimate => ({ median, low: median * 0.9, high: median * 1.1 });
const calls = { generate: 1, wrap: 0, unwrap: 1, read: 2, write: 1 };
const counts = { valid: 100, failed: 0, hostile: 10, refused: 10, failures: [] };
const tail = { operations: 10_000, p50: 1, p99: 2, p999: 3, longest: 4 };

function cost(contender: string, times: number): readonly Cost[] {
  return OPERATIONS.flatMap((operation) =>
    [64, 358].map((bytes) => ({
      contender,
      operation,
      bytes,
      tokenLength: bytes + 100,
      batch: of(4 * times),
      p50: 4 * times,
      p99: 8 * times,
      p999: 16 * times,
      collecting: times,
      timesOurs: of(times),
      timesOursAtP50: of(times),
    })),
  );
}

function condition(name: ConditionReport['condition'], tokenRatio: number): ConditionReport {
  return {
    condition: name,
    phases: 6,
    disturbances: name === 'quiet' ? 0 : 6,
    fewestDisturbances: name === 'quiet' ? 0 : 1,
    fewestSealingKeys: 2,
    token: tail,
    seal: tail,
    unseal: tail,
    refusal: undefined,
    tokenRatio: of(tokenRatio),
    sealRatio: of(tokenRatio),
    unsealRatio: of(tokenRatio),
    pooledTokenRatio: tokenRatio,
    request: { p50: 1, p99: 2, p999: 3 },
    requestRatio: of(1),
    latenessP999: 1,
    eventLoopP999: 2,
    collecting: 1,
    longestCollection: 2,
    counts,
  };
}

const peers = { 'bare cipher': 0.9, 'plain codec': 1.5, '@fastify/secure-session': 0.8, ...LEADS };
const counted = { instructions: 1_000, heapBytes: 100 };
const baseline = {
  node: 'v24.0.0 linux x64',
  processor: 'some',
  payloadBytes: 358,
  operations: { seal: counted, unseal: counted },
};
const about = <Name extends PartName>(part: Name) => ({
  part,
  date: '2026-01-02',
  machine: 'Some processor × 2, linux x64',
  node: 'v24.0.0',
  versions: { OpenSSL: '3.5.0' },
  options: { rounds: 6 },
});

/** Invented results that meet every limit. */
export const ALL_MET: Required<KeptParts> = {
  'token-path': {
    ...about('token-path'),
    report: {
      rounds: 6,
      turnMilliseconds: 1,
      headlineBytes: 358,
      contenders: [OURS, ...Object.keys(peers)].map((name) => ({ name, note: `what ${name} is` })),
      costs: [cost(OURS, 1), ...Object.entries(peers).map(([name, times]) => cost(name, times))].flat(),
    },
  },
  boundary: {
    ...about('boundary'),
    report: { bare: of(1), guarded: of(1.1), ratio: of(1.1), busyRatio: of(1.08), statelessRatio: of(1.03) },
  },
  'fleet-costs': {
    ...about('fleet-costs'),
    report: {
      perMemberDay: {
        formula: { kms: 100, store: 300 },
        simulated: { kms: 101, store: 303 },
        members: 2,
        days: 1,
        lossShare: 0.02,
      },
      perMillionTokens: [{ tokensPerSecond: 100, formula: { kms: 12, store: 34 }, simulated: { kms: 13, store: 35 } }],
      measured: { tokens: 1_000, seconds: 1, calls: { generate: 0, wrap: 0, unwrap: 0, read: 0, write: 0 } },
      coldStart: { founder: calls, joiners: [{ keys: 1, calls: { ...calls, generate: 0 } }] },
      herd: {
        concurrent: 200,
        oneProcess: calls,
        encryptionSdk: 200,
        members: { calls, keysInRing: 1, openNext: true },
      },
    },
  },
  growth: {
    ...about('growth'),
    report: {
      opening: [
        {
          keys: 8,
          salts: 1_000,
          warm: of(3),
          firstTimesWarm: of(2.3),
          nextTimesWarm: of(1.2),
          bareTimesWarm: of(1.3),
          nextTimesBare: of(0.95),
          kmsCalls: 0,
        },
      ],
      rings: [{ keys: 8, sealTimesSmallest: of(1), unsealTimesSmallest: of(1) }],
      memory: { perKey: 4_000, perSalt: 700 },
      heap: {
        tokens: 1_000,
        perMillionTokens: { median: 0, low: -10, high: 10 },
        samples: Array.from({ length: 10 }, (_, i) => 1_000_000 + 100 * (i % 3)),
      },
    },
  },
  steadiness: {
    ...about('steadiness'),
    report: {
      closedLoopRate: 900,
      rate: 300,
      rounds: 6,
      phaseSeconds: 10,
      conditions: [
        condition('quiet', 1),
        condition('rotation', 1.05),
        condition('KMS hang', 1.1),
        condition('KMS outage', 1.15),
        condition('hostile tokens', 1.2),
      ],
      besides: counts,
    },
  },
  instructions: { ...about('instructions'), report: { ...baseline, baseline } },
};
