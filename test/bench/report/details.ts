import type { BoundaryReport } from '../boundary.ts';
import type { FleetCostsReport } from '../fleet-costs.ts';
import type { GrowthReport } from '../growth.ts';
import type { SteadinessReport } from '../steadiness.ts';
import { type Cost, OPERATIONS, OURS } from '../token-path.ts';
import type { TokenPathReport } from '../token-path-report.ts';
import type { KeptParts } from './kept.ts';
import type { PartName, Reports } from './parts.ts';
import { estimateShown, numberShown, ratioShown, safe, table } from './words.ts';

type Details = { readonly [Name in PartName]: (report: Reports[Name]) => readonly string[] };

const DETAILS: Details = {
  'token-path': tokenPath,
  boundary,
  'fleet-costs': fleetCosts,
  growth,
  steadiness,
  instructions: () => [],
};

/** Details of one part, beside its limits: tables and remarks, a paragraph each. */
export function detailsOf(kept: KeptParts, name: PartName): readonly string[] {
  const report = kept[name]?.report;
  // Maps a part's name to its own report and its own details.
  const details: (report: never) => readonly string[] = DETAILS[name];
  return report === undefined ? [] : details(report as never);
}

function tokenPath({ contenders, costs }: TokenPathReport): readonly string[] {
  const sizes = [...new Set(costs.map(({ bytes }) => bytes))];
  return [
    table(
      ['contender', 'what it is'],
      contenders.map(({ name, note }) => [safe(name), safe(note)]),
    ),
    `All columns but the token are times ${OURS}: first batches with their 95 % bounds, then single operations at p50, p99 and p99.9. A dash means that too few were timed; the limit then uses their p99, which is the smaller number. Collecting is the share of its own time that a contender spends on garbage collection. The size of a token is in characters; for the bare cipher it is in bytes.`,
    ...sizes.flatMap((bytes) => OPERATIONS.map((operation) => sizeTable(costs, bytes, operation))),
  ];
}

function sizeTable(costs: readonly Cost[], bytes: number, operation: Cost['operation']): string {
  const mine = costs.filter((cost) => cost.bytes === bytes && cost.operation === operation);
  const ours = mine.find(({ contender }) => contender === OURS);
  const times = (value: number | undefined, of: number | undefined): string =>
    ratioShown(value === undefined || of === undefined ? undefined : value / of);
  const withMemory = mine.some(({ memory }) => memory !== undefined);
  const rows = mine.map(
    ({ contender, timesOurs, timesOursAtP50, p99, p999, collecting, batch, tokenLength, memory }) => [
      contender === OURS ? `**${contender}**` : safe(contender),
      estimateShown(timesOurs),
      ratioShown(timesOursAtP50.median),
      times(p99, ours?.p99),
      times(p999, ours?.p999),
      `${Math.round((100 * collecting) / batch.median)} %`,
      String(tokenLength),
      ...(withMemory
        ? [memory === undefined ? '–' : `${Math.round(memory.heap)} + ${Math.round(memory.external)}`]
        : []),
    ],
  );
  const memory = withMemory ? ['bytes allocated, heap + outside'] : [];
  const head = ['', '× ours', 'p50', 'p99', 'p99.9', 'collecting', 'token', ...memory];
  return `### ${operation}, ${bytes} bytes\n\n${table(head, rows)}`;
}

function boundary({ ratio, busyRatio, statelessRatio }: BoundaryReport): readonly string[] {
  return [
    table(
      ['with the boundary, times without', 'ratio'],
      [
        ['on the clock', estimateShown(ratio)],
        ['that the processor was busy', estimateShown(busyRatio)],
        ['two calls without a state, on the clock', estimateShown(statelessRatio)],
      ],
    ),
  ];
}

function fleetCosts({ perMemberDay, perMillionTokens, herd }: FleetCostsReport): readonly string[] {
  const { formula, simulated, members, days, lossShare } = perMemberDay;
  const calls = (kind: 'kms' | 'store', of: Pick<typeof perMemberDay, 'formula' | 'simulated'>): readonly string[] =>
    [of.formula[kind], of.simulated[kind]].map(numberShown);
  return [
    `By the formula, and by the simulator with ${members} members over ${days} days where ${numberShown(100 * lossShare)} % of all calls are lost:`,
    table(
      ['calls', 'KMS, formula', 'KMS, simulated', 'store, formula', 'store, simulated'],
      [
        ['of a member a day', ...calls('kms', { formula, simulated }), ...calls('store', { formula, simulated })],
        ...perMillionTokens.map((one) => [
          `a million tokens, at ${one.tokensPerSecond} a second`,
          ...calls('kms', one),
          ...calls('store', one),
        ]),
      ],
    ),
    `A herd: ${herd.concurrent} first seals at once in one process make ${herd.oneProcess.generate + herd.oneProcess.wrap} data key; the AWS Encryption SDK with its cache asks for ${herd.encryptionSdk}.`,
  ];
}

function growth({ opening, rings, memory }: GrowthReport): readonly string[] {
  return [
    'Unsealing the tokens of other processes:',
    table(
      [
        'keys',
        'processes',
        'first, times warm',
        'next, times warm',
        'the bare cipher, as many keys',
        'next, by the bare cipher',
      ],
      opening.map(({ keys, salts, firstTimesWarm, nextTimesWarm, bareTimesWarm, nextTimesBare }) => [
        ...[keys, salts].map(String),
        ...[firstTimesWarm, nextTimesWarm, bareTimesWarm, nextTimesBare].map((one) => estimateShown(one)),
      ]),
    ),
    'Rings, times the smallest:',
    table(
      ['keys', 'seal', 'unseal'],
      rings.map(({ keys, sealTimesSmallest, unsealTimesSmallest }) => [
        String(keys),
        estimateShown(sealTimesSmallest),
        estimateShown(unsealTimesSmallest),
      ]),
    ),
    `A key takes ${Math.round(memory.perKey)} bytes of memory, and a salt of another process ${Math.round(memory.perSalt)}.`,
  ];
}

function steadiness({ rate, conditions }: SteadinessReport): readonly string[] {
  const quiet = conditions[0];
  const rows = conditions.map((one) => [
    one.condition,
    String(one.phases),
    String(one.disturbances),
    ...[one.tokenRatio, one.sealRatio, one.unsealRatio, one.requestRatio].map((ratio) => estimateShown(ratio)),
    ratioShown(one.eventLoopP999 / (quiet?.eventLoopP999 ?? Number.NaN)),
    `${one.counts.failed} of ${one.counts.valid}`,
    `${one.counts.refused} of ${one.counts.hostile}`,
  ]);
  return [
    `${rate} valid requests a second. The quiet condition is the ratio of each quiet phase to its quiet neighbours, which shows the effect of chance. A dash means too few phases for bounds.`,
    table(
      [
        'condition',
        'phases',
        'disturbed',
        'token p99.9',
        'seal p99.9',
        'unseal p99.9',
        'request p99.9',
        'event loop p99.9',
        'failed',
        'hostile, refused',
      ],
      rows,
    ),
  ];
}
