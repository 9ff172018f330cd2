import type { RingPolicy } from '@sealring/core';
import { MAX_RING_KEYS } from '@sealring/core/ring';
import { type Command, InvalidArgumentError } from 'commander';
import { refusedOptionIn } from '../foreign-error.ts';
import { type PolicyFigures, policyFigures } from '../policy/figures.ts';
import { findConfigFile } from '../settings/config-file.ts';
import { tableOf } from '../terminal/table.ts';
import { UsageError } from '../usage-error.ts';
import { withSettings } from './connect.ts';
import { numberIn } from './numbers.ts';
import { addCommonOptions, type CommonOptions, printJson } from './options.ts';

const EXAMPLE = `
The outages that servers get over, how soon a revocation has reached them all, the keys in the ring, and the calls of the
KMS and the store that you pay for. The policy is that of the configuration file, if there is one, with --set changed.
Nothing is asked, and nothing written. Exit code: 0, or 2 for a policy that servers would not start with.

Example, five servers whose keys rotate every week:
  $ npx sealring policy --servers 5 --set rotateEverySeconds=604800
`;

interface PolicyOptions extends CommonOptions {
  readonly servers: number;
  readonly set: Partial<RingPolicy>;
}

const HOUR_SECONDS = 3_600;

export function addPolicyCommand(program: Command): void {
  addCommonOptions(
    program
      .command('policy')
      .summary('what a policy tolerates, and what it costs in calls')
      .description('Says what the times of a policy come to: before you deploy them.')
      .option('--servers <n>', 'servers of the fleet, 1 to 100 000', numberIn(1, 100_000, 'whole number'), 1)
      .option('--set <name=seconds>', 'a time of the policy; again for another one', policyTime, {}),
  )
    .addHelpText('after', EXAMPLE)
    .action(async ({ config, json = false, servers, set }: PolicyOptions) => {
      const policy = { ...(await configuredPolicy(config)), ...set };
      const figures = checkedFigures(policy);
      if (json) printJson({ servers, policy, figures });
      else process.stdout.write(textOf(servers, figures));
    });
}

function policyTime(text: string, before: Partial<RingPolicy>): Partial<RingPolicy> {
  const [, name = '', value = ''] = /^(\w+)=(\d+(?:\.\d+)?)$/.exec(text) ?? [];
  if (name === '') throw new InvalidArgumentError('It must be <name>=<seconds>, as rotateEverySeconds=604800.');
  return { ...before, [name]: Number(value) };
}

/** The environment has no policy, and need not be complete here. */
async function configuredPolicy(file: string | undefined): Promise<Partial<RingPolicy>> {
  if (file === undefined && findConfigFile() === undefined) return {};
  return withSettings(file, async ({ config }) => config.policy ?? {});
}

/** @throws {UsageError} naming the option, or both that contradict each other. */
function checkedFigures(policy: Partial<RingPolicy>): PolicyFigures {
  try {
    return policyFigures(policy);
  } catch (error) {
    const refusal = refusedOptionIn(error);
    throw refusal === undefined ? error : new UsageError(refusal);
  }
}

function textOf(servers: number, figures: PolicyFigures): string {
  const perDay = (calls: number): string => (calls * servers).toFixed(1);
  return [
    ...tableOf([
      ['an outage of the KMS that no server notices', s(figures.kmsOutage)],
      ['sealing without the KMS, without the store', `${s(figures.sealOutage)}, ${s(figures.storeOutage)}`],
      ['last seal, last open after the KMS refuses', `${s(figures.refusedSeal)}, ${s(figures.refusedOpen)}`],
      ['last use of a revoked key', s(figures.revoked)],
      ['a new key seals after', s(figures.propagation)],
      ['longest life of a token', s(figures.tokenLifetime)],
      ['keys in the ring', `up to ${figures.keys} of ${MAX_RING_KEYS}`],
      [`KMS calls a day, ${fleet(servers)}`, perDay(figures.kmsCallsPerServerDay)],
      ['  more where wraps name a version of the KMS key', perDay(figures.versionLooksPerServerDay)],
      [`store reads a day, ${fleet(servers)}`, perDay(figures.storeReadsPerServerDay)],
    ]),
    '',
  ].join('\n');
}

function fleet(servers: number): string {
  return servers === 1 ? 'one server' : `${servers} servers`;
}

function s(seconds: number): string {
  return `${Math.round(seconds)} s${seconds >= HOUR_SECONDS ? ` (${(seconds / HOUR_SECONDS).toFixed(1)} h)` : ''}`;
}
