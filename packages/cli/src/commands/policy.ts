import type { RingPolicy } from '@sealring/core';
import { MAX_RING_KEYS } from '@sealring/core/ring';
import { type Command, InvalidArgumentError } from 'commander';
import { rejectedOptionIn } from '../foreign-error.ts';
import { type PolicyFigures, policyFigures } from '../policy/figures.ts';
import { findConfigFile } from '../settings/config-file.ts';
import { tableOf } from '../terminal/table.ts';
import { UsageError } from '../usage-error.ts';
import { withSettings } from './connect.ts';
import { numberIn } from './numbers.ts';
import { addCommonOptions, type CommonOptions, printJson } from './options.ts';

const EXAMPLE = `
Calculates the outages that servers tolerate, how soon every server has read a
revocation, the number of keys, and the calls to the KMS and the store. The
policy comes from the configuration file, if there is one, and --set changes it.
Does not call the KMS or the store.

Exit codes: 0 done; 2 for a policy that servers would reject.

Example for five servers whose keys rotate every week:
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
      .summary('calculate the effects of a policy')
      .description('Calculates the effects of a policy before you deploy it.')
      .option('--servers <n>', 'number of servers, 1 to 100 000', numberIn(1, 100_000, 'whole number'), 1)
      .option('--set <name=seconds>', 'change an option of the policy; can be repeated', policyTime, {}),
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
  if (name === '') throw new InvalidArgumentError('It must be <name>=<seconds>, such as rotateEverySeconds=604800.');
  return { ...before, [name]: Number(value) };
}

/** The policy of the configuration file. The environment has none. */
async function configuredPolicy(file: string | undefined): Promise<Partial<RingPolicy>> {
  if (file === undefined && findConfigFile() === undefined) return {};
  return withSettings(file, async ({ config }) => config.policy ?? {});
}

/** @throws {UsageError} that names the option, or the options that contradict each other. */
function checkedFigures(policy: Partial<RingPolicy>): PolicyFigures {
  try {
    return policyFigures(policy);
  } catch (error) {
    const rejection = rejectedOptionIn(error);
    throw rejection === undefined ? error : new UsageError(rejection);
  }
}

function textOf(servers: number, figures: PolicyFigures): string {
  const perDay = (calls: number): string => (calls * servers).toFixed(1);
  return [
    ...tableOf([
      ['KMS outage without effect', s(figures.kmsOutage)],
      ['sealing without the KMS, the store', `${s(figures.sealOutage)}, ${s(figures.storeOutage)}`],
      ['last seal, unseal after the KMS key is disabled', `${s(figures.refusedSeal)}, ${s(figures.refusedUnseal)}`],
      ['last use of a revoked key', s(figures.revoked)],
      ['a new key seals after', s(figures.propagation)],
      ['token lifetime, at most', s(figures.tokenLifetime)],
      ['keys in the ring', `up to ${figures.keys} of ${MAX_RING_KEYS}`],
      [`KMS calls per day, ${fleet(servers)}`, perDay(figures.kmsCallsPerServerDay)],
      ['  checks for a new version of the KMS key', perDay(figures.versionChecksPerServerDay)],
      [`store reads per day, ${fleet(servers)}`, perDay(figures.storeReadsPerServerDay)],
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
