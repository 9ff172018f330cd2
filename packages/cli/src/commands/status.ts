import { setTimeout as pause } from 'node:timers/promises';
import type { KmsCodec } from '@sealring/core';
import { type Command, InvalidArgumentError } from 'commander';
import { Failure } from '../failure.ts';
import { paintFor } from '../paint.ts';
import { statusOf, statusText } from '../ring-status.ts';
import { visibleLine } from '../visible.ts';
import { attempt, withRing } from './connect.ts';
import { addCommonOptions, type CommonOptions, printJson } from './options.ts';

const EXAMPLE = `
Reads the ring and unwraps its keys, as a reader does; changes nothing. With --watch it goes on until Ctrl-C, and with
--json too it prints one object per line.

Example:
  $ npx sealring init --local
  $ npx sealring status
`;

interface StatusOptions extends CommonOptions {
  readonly watch?: number | true;
}

const DEFAULT_WATCH_SECONDS = 5;

export function addStatusCommand(program: Command): void {
  addCommonOptions(
    program
      .command('status')
      .summary('the ring: its keys, their states, a timeline')
      .description('Shows the ring, with the states of its keys on a timeline.')
      .option('--watch [seconds]', `again and again (default: every ${DEFAULT_WATCH_SECONDS} s)`, seconds),
  )
    .addHelpText('after', EXAMPLE)
    .action(async ({ config: file, json = false, color, watch }: StatusOptions) => {
      await withRing(file, 'reader', async (codec, { config }) => {
        const show = (): void => {
          const status = statusOf(codec, config);
          if (!json) process.stdout.write(statusText(status, paintFor(process.stdout, color)));
          else if (watch === undefined) printJson(status);
          else process.stdout.write(`${JSON.stringify(status)}\n`);
        };
        show();
        if (watch === undefined) return;
        const every = watch === true ? DEFAULT_WATCH_SECONDS : watch;
        const stop = stopSignal();
        while (await waits(every * 1_000, stop)) {
          await refreshed(codec);
          show();
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

/** Aborted by Ctrl-C: the ring is closed then, and its keys are overwritten. */
function stopSignal(): AbortSignal {
  const controller = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => controller.abort());
  return controller.signal;
}

async function waits(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await pause(ms, undefined, { signal });
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}

function seconds(text: string): number {
  const value = Number(text);
  if (/^[\d.]+$/.test(text) && value >= 1 && value <= 86_400) return value;
  throw new InvalidArgumentError('It must be a number of seconds from 1 to 86400.');
}
