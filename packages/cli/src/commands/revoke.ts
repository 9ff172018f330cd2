import type { Command } from 'commander';
import { paintFor } from '../paint.ts';
import { statusOf, statusText } from '../ring-status.ts';
import { UsageError } from '../usage-error.ts';
import { attempt, withRing } from './connect.ts';
import { addCommonOptions, type CommonOptions, printJson } from './options.ts';

const EXAMPLE = `
Revokes for ever: tokens that the key sealed are refused from then on. A successor is made in the same write and seals at
once. The id is that of "status" or "inspect"; one that begins with "-" goes after "--".

Example, everything that is older than this moment:
  $ npx sealring init --local
  $ npx sealring revoke --before "$(date -u -d '+1 second' +%Y-%m-%dT%H:%M:%SZ)"
`;

interface RevokeOptions extends CommonOptions {
  readonly before?: string;
}

const TIME = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d))?$/;

export function addRevokeCommand(program: Command): void {
  addCommonOptions(
    program
      .command('revoke')
      .summary('revoke a key, or all that are older')
      .description('Revokes a data key of the ring, or every one created before a time.')
      .argument('[key-id]', 'the key')
      .option('--before <time>', 'every key created before: 2026-11-21T20:00:00Z'),
  )
    .addHelpText('after', EXAMPLE)
    .action(async (keyId: string | undefined, { config: file, json = false, color, before }: RevokeOptions) => {
      const time = checked(keyId, before);
      await withRing(file, 'member', async (codec, { config }) => {
        await attempt('revoking', () => (time === undefined ? codec.revoke(keyId ?? '') : codec.revokeAllBefore(time)));
        const status = statusOf(codec, config);
        if (json) printJson(status);
        else process.stdout.write(statusText(status, paintFor(process.stdout, color)));
      });
    });
}

/** @throws {UsageError} unless exactly one of them is given, and the time is one. */
function checked(keyId: string | undefined, before: string | undefined): Date | undefined {
  if (keyId !== undefined && before !== undefined) {
    throw new UsageError(`both a key id "${keyId}" and --before "${before}" are given: one of them`);
  }
  if (before === undefined) {
    if (keyId === undefined) throw new UsageError('which key? Give its id, or --before a time');
    return undefined;
  }
  const time = new Date(before);
  if (!TIME.test(before) || Number.isNaN(time.getTime())) {
    throw new UsageError(`--before "${before}" must be a time with its zone, as 2026-11-21T20:00:00Z, or a date`);
  }
  return time;
}
