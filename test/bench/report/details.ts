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
    `The first four columns of numbers are multiples of ${OURS}: first batches with their 95 % bounds, then single operations at p50, p99 and p99.9. A dash means that too few operations were timed; the limit then uses the p99, which is the smaller number. The column “collecting” shows the share of its own time that a contender spends on garbage collection. The column “token” shows the size of a token in characters, or in bytes for the bare cipher.`,
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
  const memory = withMemory ? ['bytes allocated, heap + off-heap'] : [];
  const head = ['', '× ours', 'p50', 'p99', 'p99.9', 'collecting', 'token', ...memory];
  return `### ${operation}, ${bytes} bytes\n\n${table(head, rows)}`;
}

function boundary({ ratio, busyRatio, statelessRatio }: BoundaryReport): readonly string[] {
  return [
    table(
      ['with the boundary, as a multiple of the same without it', 'ratio'],
      [
        ['elapsed time', estimateShown(ratio)],
        ['CPU time', estimateShown(busyRatio)],
        ['elapsed time of two calls without a state', estimateShown(statelessRatio)],
      ],
    ),
  ];
}

function fleetCosts({ perMemberDay, perMillionTokens, herd }: FleetCostsReport): readonly string[] {
  const { formula, simulated, members, days, lossShare } = perMemberDay;
  const calls = (kind: 'kms' | 'store', of: Pick<typeof perMemberDay, 'formula' | 'simulated'>): readonly string[] =>
    [of.formula[kind], of.simulated[kind]].map(numberShown);
  return [
    `The table shows the calls as calculated with the formula, and as counted by the simulator with ${members} members over ${days} days in which ${numberShown(100 * lossShare)} % of all calls are lost:`,
    table(
      ['calls', 'KMS, formula', 'KMS, simulated', 'store, formula', 'store, simulated'],
      [
        ['by one member in a day', ...calls('kms', { formula, simulated }), ...calls('store', { formula, simulated })],
        ...perMillionTokens.map((one) => [
          `a million tokens, at ${one.tokensPerSecond} a second`,
          ...calls('kms', one),
          ...calls('store', one),
        ]),
      ],
    ),
    `If one process seals its first ${herd.concurrent} tokens at once, it makes ${herd.oneProcess.generate + herd.oneProcess.wrap} data key; the AWS Encryption SDK with its cache requests ${herd.encryptionSdk}.`,
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
        'bare cipher with as many keys, times one key',
        'next, relative to the bare cipher',
      ],
      opening.map(({ keys, salts, firstTimesWarm, nextTimesWarm, bareTimesWarm, nextTimesBare }) => [
        ...[keys, salts].map(String),
        ...[firstTimesWarm, nextTimesWarm, bareTimesWarm, nextTimesBare].map((one) => estimateShown(one)),
      ]),
    ),
    'Cost by number of keys in the ring, as a multiple of the cost with the smallest ring:',
    table(
      ['keys', 'seal', 'unseal'],
      rings.map(({ keys, sealTimesSmallest, unsealTimesSmallest }) => [
        String(keys),
        estimateShown(sealTimesSmallest),
        estimateShown(unsealTimesSmallest),
      ]),
    ),
    `A key takes ${Math.round(memory.perKey)} bytes of memory, and a salt of another process takes ${Math.round(memory.perSalt)} bytes.`,
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
    `The load is ${rate} valid requests a second. The row “quiet” compares each quiet phase with its quiet neighbours, which shows the effect of chance. A dash means that there were too few phases to compute bounds.`,
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
