import type { RingPolicy } from '@sealring/core';
import { type Command, InvalidArgumentError } from 'commander';
import { checkSettings } from '../doctor/check-settings.ts';
import { EXIT_CODE } from '../exit-code.ts';
import { POLICY_DEFAULTS } from '../policy-times.ts';
import { findConfigFile } from '../settings/config-file.ts';
import { type FleetOptions, type FleetReport, runFleet } from '../simulation/fleet.ts';
import { type Laws, lawsOf } from '../simulation/laws.ts';
import { SimulatedServices } from '../simulation/services.ts';
import { tableOf } from '../table.ts';
import { UsageError } from '../usage-error.ts';
import { withSettings } from './connect.ts';
import { numberIn } from './numbers.ts';
import { addCommonOptions, type CommonOptions, printJson } from './options.ts';

const EXAMPLE = `
Runs the keeper and codec of a fleet on a virtual clock, with a KMS and a store in memory, and puts what was counted beside
the formulas. The policy is that of the configuration file, if there is one, with --set changed. In the middle of the run KMS or
store can be out of reach. Nothing real is asked, and nothing written. Exit code: 0 everything went as the formulas say, 1 not.

Example, an outage of 40 minutes with keys that rotate every week:
  $ npx sealring simulate --servers 5 --days 2 --kms-outage 2400 --set rotateEverySeconds=604800
`;

interface SimulateOptions extends CommonOptions {
  readonly servers: number;
  readonly days: number;
  readonly seed: number;
  readonly kmsOutage: number;
  readonly storeOutage: number;
  readonly set: Partial<RingPolicy>;
}

const HOUR_SECONDS = 3_600;
const NAMES: readonly string[] = [...Object.keys(POLICY_DEFAULTS), 'propagationSeconds'];

export function addSimulateCommand(program: Command): void {
  addCommonOptions(
    program
      .command('simulate')
      .summary('what a policy does to a fleet, in days of virtual time')
      .description('Runs a fleet on a virtual clock and holds it against the formulas of its policy.')
      .option('--servers <n>', 'servers, 1 to 100', numberIn(1, 100, 'whole number'), 5)
      .option('--days <n>', 'days of virtual time, 0.1 to 60', numberIn(0.1, 60), 3)
      .option('--seed <n>', 'everything random follows from it', numberIn(0, 2 ** 31, 'whole number'), 1)
      .option('--kms-outage <seconds>', 'the KMS is out of reach for so long', numberIn(0, 30 * 86_400), 0)
      .option('--store-outage <seconds>', 'the ring store is out of reach for so long', numberIn(0, 30 * 86_400), 0)
      .option('--set <name=seconds>', 'a time of the policy; again for another one', policyTime, {}),
  )
    .addHelpText('after', EXAMPLE)
    .action(async ({ config, json = false, set, kmsOutage, storeOutage, ...rest }: SimulateOptions) => {
      const policy = { ...(await configuredPolicy(config)), ...set };
      await checkPolicy(policy);
      const options = { ...rest, policy, kmsOutageSeconds: kmsOutage, storeOutageSeconds: storeOutage };
      const laws = lawsOf(policy);
      const report = await runFleet(options, progress(options.days));
      const broken = brokenLaws(options, laws, report);
      if (json) printJson({ options: { ...rest, policy, kmsOutage, storeOutage }, laws, report, broken });
      else process.stdout.write(textOf(options, laws, report, broken));
      process.exitCode = broken.length === 0 ? EXIT_CODE.done : EXIT_CODE.failed;
    });
}

function policyTime(text: string, before: Partial<RingPolicy>): Partial<RingPolicy> {
  const [, name = '', value = ''] = /^(\w+)=(\d+(?:\.\d+)?)$/.exec(text) ?? [];
  if (!NAMES.includes(name)) throw new InvalidArgumentError(`It must be <name>=<seconds>; names: ${NAMES.join(', ')}.`);
  return { ...before, [name]: Number(value) };
}

/** The environment has no policy, and need not be complete here. */
async function configuredPolicy(file: string | undefined): Promise<Partial<RingPolicy>> {
  if (file === undefined && findConfigFile() === undefined) return {};
  return withSettings(file, async ({ config }) => config.policy ?? {});
}

async function checkPolicy(policy: Partial<RingPolicy>): Promise<void> {
  const { ring, keyWrapper } = new SimulatedServices();
  const refusal = (await checkSettings({ ring, keyWrapper, policy })).find(({ severity }) => severity === 'error');
  if (refusal !== undefined) throw new UsageError(refusal.what);
}

/** Told on standard error, every two seconds of real time. */
function progress(days: number): (hours: number) => boolean {
  let told = performance.now();
  return (hours) => {
    if (performance.now() - told >= 2_000) {
      told = performance.now();
      process.stderr.write(`simulating … (${hours} of ${Math.round(days * 24)} hours)\n`);
    }
    return true;
  };
}

/** A rate over a part of a day is no average: jitter, and what the start and an outage cost, are in it. */
const TOLERANCE = 0.15;
/** Of fewer calls of a server, whether the first one comes early or late is more than that. */
const FEWEST = 10;

/** What the formulas promise and the run did not keep. */
function brokenLaws(options: FleetOptions, laws: Laws, report: FleetReport): readonly string[] {
  const { kmsOutageSeconds: kms, storeOutageSeconds: store } = options;
  const refusals = Object.values(report.refusedSeals).reduce((sum, count) => sum + count, 0);
  const isTolerated = kms <= laws.kmsOutage && store <= laws.storeOutage;
  const broken: string[] = [];
  if (isTolerated && refusals > 0) broken.push(`${refusals} seals were refused within the tolerated outages`);
  if (kms <= laws.sealOutage + laws.tokenLifetime && store <= laws.storeOutage && report.refusedTokens > 0) {
    broken.push(`${report.refusedTokens} tokens were refused`);
  }
  if (kms === 0 && store === 0 && options.days >= 1) {
    for (const [what, counted, expected] of [
      ['KMS calls', report.kmsCallsPerServerDay, laws.kmsCallsPerServerDay],
      ['looks for a version of the KMS key', report.versionLooksPerServerDay, laws.versionLooksPerServerDay],
      ['store reads', report.storeReadsPerServerDay, laws.storeReadsPerServerDay],
    ] as const) {
      if (expected * options.days < FEWEST) continue;
      if (Math.abs(counted - expected) > TOLERANCE * expected) {
        broken.push(`${what} per server and day: ${counted.toFixed(1)}, by the formula ${expected.toFixed(1)}`);
      }
    }
  }
  return broken;
}

function textOf(options: FleetOptions, laws: Laws, report: FleetReport, broken: readonly string[]): string {
  const { servers, days, seed, kmsOutageSeconds: kms, storeOutageSeconds: store } = options;
  const refused = Object.entries(report.refusedSeals).map(([reason, count]) => `${count} (${reason})`);
  return [
    `${servers} servers, ${days} days, seed ${seed}; outage of the KMS ${s(kms)}, of the store ${s(store)}`,
    '',
    'by the formulas',
    ...tableOf([
      ['  outage of the KMS that nobody notices', s(laws.kmsOutage)],
      ['  sealing without the KMS, without the store', `${s(laws.sealOutage)}, ${s(laws.storeOutage)}`],
      ['  a new key seals after', s(laws.propagation)],
      ['  last seal, last open after the KMS refuses', `${s(laws.refusedSeal)}, ${s(laws.refusedOpen)}`],
      ['  last use of a revoked key', s(laws.revoked)],
      ['  keys in the ring, of 64', `up to ${laws.keys}`],
      ['  KMS calls of the fleet a day', perDay(laws.kmsCallsPerServerDay * servers)],
      ['  more of them, where wraps name a version', perDay(laws.versionLooksPerServerDay * servers)],
      ['  store reads of the fleet a day', perDay(laws.storeReadsPerServerDay * servers)],
    ]),
    '',
    'counted',
    ...tableOf([
      ['  tokens', `${report.sealed} sealed, ${report.opened} opened, ${report.refusedTokens} refused`],
      ['  seals refused', refused.length === 0 ? 'none' : refused.join(', ')],
      ...(report.firstRefusalSeconds === undefined
        ? []
        : [['  the first of them, after the outage began', s(report.firstRefusalSeconds)]]),
      ['  keys made, most in the ring at once', `${report.keysMade}, ${report.mostKeys}`],
      ['  KMS calls of the fleet a day', perDay(report.kmsCallsPerServerDay * servers)],
      ['  more of them, where wraps name a version', perDay(report.versionLooksPerServerDay * servers)],
      ['  store reads of the fleet a day', perDay(report.storeReadsPerServerDay * servers)],
    ]),
    '',
    ...(broken.length === 0 ? ['as the formulas say'] : broken.map((law) => `NOT as the formulas say: ${law}`)),
    '',
  ].join('\n');
}

function s(seconds: number): string {
  return `${Math.round(seconds)} s${seconds >= HOUR_SECONDS ? ` (${(seconds / HOUR_SECONDS).toFixed(1)} h)` : ''}`;
}

function perDay(calls: number): string {
  return calls.toFixed(1);
}
