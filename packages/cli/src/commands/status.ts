import type { KmsCodec } from '@sealring/core';
import type { Command } from 'commander';
import { EXIT_CODE } from '../exit-code.ts';
import { Failure } from '../failure.ts';
import { askMembers, checkMemberUrl, isWell, type MemberHealth, membersText } from '../ring/members.ts';
import { attempt } from '../ring/open.ts';
import { type RevocationTimes, type RingStatus, statusOf } from '../ring/status.ts';
import { statusText } from '../ring/status-text.ts';
import { jsonOf } from '../terminal/json.ts';
import { outputClosed } from '../terminal/output.ts';
import { redraw } from '../terminal/page.ts';
import { paintFor } from '../terminal/paint.ts';
import { stopSignal, waits } from '../terminal/until-stopped.ts';
import { visibleLine } from '../terminal/visible.ts';
import { withRing } from './connect.ts';
import { numberIn } from './numbers.ts';
import { addCommonOptions, type CommonOptions, printJson } from './options.ts';

const EXAMPLE = `
Reads the ring and unwraps its keys, as a reader does. Changes nothing.

--watch repeats the report until Ctrl-C or until its reader ends, in place on a
terminal; with --json, it prints one object per line. --member also asks servers
for their health, at an address that answers with the JSON of codec.health().

Exit codes, for probes:
  0  a key seals, and nothing needs attention
  1  no key seals, or the ring could not be read or unwrapped
  2  wrong command line or configuration
  3  a key seals, but something needs attention: a problem of the ring,
     a late rotation, or a --member that is not ok
With --watch, the exit code is 0.

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
      .summary('show the keys of the ring and their states')
      .description('Shows the keys of the ring, their states and a timeline.')
      .option('--watch [seconds]', `repeat the report (default: every ${DEFAULT_WATCH_SECONDS} s)`, numberIn(1, 86_400))
      .option('--member <address>', 'also ask a server for its health; can be repeated', member, []),
  )
    .addHelpText('after', EXAMPLE)
    .action(async ({ config: file, json = false, color, watch, member: addresses }: StatusOptions) => {
      await withRing(file, 'reader', async (codec, { config }) => {
        const revocations: RevocationTimes = new Map();
        const show = async (note = ''): Promise<void> => {
          const status = await statusOf(codec, config, revocations);
          const members = await askMembers(addresses);
          if (watch === undefined) process.exitCode = exitCodeOf(status, members);
          const all = addresses.length === 0 ? status : { ...status, members };
          const text = (): string =>
            `${statusText(status, paintFor(process.stdout, color))}${addresses.length > 0 ? `\n${membersText(members)}` : ''}`;
          if (json && watch === undefined) printJson(all);
          else if (json) process.stdout.write(`${jsonOf(all)}\n`);
          else if (watch === undefined) process.stdout.write(text());
          else redraw(`${text()}${note}`);
        };
        await show();
        if (watch === undefined) return;
        const every = watch === true ? DEFAULT_WATCH_SECONDS : watch;
        const stop = AbortSignal.any([stopSignal(), outputClosed]);
        while (await waits(every * 1_000, stop)) {
          const note = await refreshed(codec);
          // On a terminal, the note is redrawn with the report.
          const isRedrawn = process.stdout.isTTY && !json;
          if (note !== undefined && !isRedrawn) process.stderr.write(note);
          await show(isRedrawn ? note : undefined);
        }
      });
    });
}

function exitCodeOf({ condition }: RingStatus, members: readonly MemberHealth[]): number {
  if (condition === 'failing') return EXIT_CODE.failed;
  return condition === 'ok' && members.every(isWell) ? EXIT_CODE.done : EXIT_CODE.attention;
}

/** Reads the ring. A failure of the store or the KMS does not end the watch. @returns a note about the failure. */
async function refreshed(codec: KmsCodec): Promise<string | undefined> {
  try {
    await attempt('reading the ring', () => codec.refresh());
    return undefined;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return `note: ${visibleLine(error.message)}\n`;
  }
}

function member(address: string, others: readonly string[]): readonly string[] {
  return [...others, checkMemberUrl(address)];
}
