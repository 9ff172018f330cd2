import type { KmsCodec } from '@sealring/core';
import type { Command } from 'commander';
import { Failure } from '../failure.ts';
import { askMembers, checkMemberUrl, membersText } from '../ring/members.ts';
import { attempt } from '../ring/open.ts';
import { statusOf, statusText } from '../ring/status.ts';
import { paintFor } from '../terminal/paint.ts';
import { stopSignal, waits } from '../terminal/until-stopped.ts';
import { visibleLine } from '../terminal/visible.ts';
import { withRing } from './connect.ts';
import { numberIn } from './numbers.ts';
import { addCommonOptions, type CommonOptions, printJson } from './options.ts';

const EXAMPLE = `
Reads the ring and unwraps its keys, as a reader does; changes nothing. With --watch it goes on until Ctrl-C, and with
--json too it prints one object per line. With --member it also asks servers how they are: an address that answers with
JSON of codec.health().

Example:
  $ npx sealring init --local
  $ npx sealring status
`;

interface StatusOptions extends CommonOptions {
  readonly watch?: number | true;
  readonly member: readonly string[];
}

const DEFAULT_WATCH_SECONDS = 5;

export function addStatusCommand(program: Command): void {
  addCommonOptions(
    program
      .command('status')
      .summary('the ring: its keys, their states, a timeline')
      .description('Shows the ring, with the states of its keys on a timeline.')
      .option('--watch [seconds]', `again and again (default: every ${DEFAULT_WATCH_SECONDS} s)`, numberIn(1, 86_400))
      .option('--member <address>', 'a server to ask for its health; again for another one', member, []),
  )
    .addHelpText('after', EXAMPLE)
    .action(async ({ config: file, json = false, color, watch, member: addresses }: StatusOptions) => {
      await withRing(file, 'reader', async (codec, { config }) => {
        const show = async (): Promise<void> => {
          const status = await statusOf(codec, config);
          const members = await askMembers(addresses);
          const all = addresses.length === 0 ? status : { ...status, members };
          if (!json) {
            process.stdout.write(statusText(status, paintFor(process.stdout, color)));
            if (addresses.length > 0) process.stdout.write(`\n${membersText(members)}`);
          } else if (watch === undefined) printJson(all);
          else process.stdout.write(`${JSON.stringify(all)}\n`);
        };
        await show();
        if (watch === undefined) return;
        const every = watch === true ? DEFAULT_WATCH_SECONDS : watch;
        const stop = stopSignal();
        while (await waits(every * 1_000, stop)) {
          await refreshed(codec);
          await show();
        }
      });
    });
}

/** A store or a KMS that is away for a while is something to be watched, no reason to stop. */
async function refreshed(codec: KmsCodec): Promise<void> {
  try {
    await attempt('reading the ring', () => codec.refresh());
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    process.stderr.write(`note: ${visibleLine(error.message)}\n`);
  }
}

function member(address: string, before: readonly string[]): readonly string[] {
  return [...before, checkMemberUrl(address)];
}
