import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runProgram } from '../support/run-program.ts';

const root = join(import.meta.dirname, '../..');

/** The command in the README of an example. */
function commandOf(example: string): string {
  const readme = readFileSync(join(root, 'docs/examples', example, 'README.md'), 'utf8');
  return /^```sh\n(.*)\n```$/m.exec(readme)?.[1] ?? '';
}

async function type(command: string): Promise<{ readonly code: unknown; readonly lines: readonly string[] }> {
  const [program, ...args] = command.split(' ');
  expect(program).toBe('node');
  const { code, output } = await runProgram(process.execPath, args, { cwd: root });
  // The refund causes the warning for a request without a subject; Node prints it with a hint.
  const lines = output.split('\n').filter((line) => !/^\((?:node:\d+\) \[SEALRING_NO_SUBJECT\]|Use `node )/.test(line));
  return { code, lines: lines.join('\n').trimEnd().split('\n') };
}

/** The expected lines in this order: completed steps, and refused steps with their reasons. */
const TOLD: Readonly<Record<string, readonly RegExp[]>> = {
  refund: [
    /^ada → A +a question, and sr1\./,
    /^ada → B +€49\.90 refunded for order 1017 by B$/,
    /the same request once more: -32602 Invalid or expired requestState \(reason on A: already used\)/,
    /one character changed: -32602 Invalid or expired requestState \(reason on B: authentication failed\)/,
    /sent by mallory: -32602 Invalid or expired requestState \(reason on A: principal\)/,
    /another amount: -32602 Invalid or expired requestState \(reason on B: request binding\)/,
    /an app without a user asks: -32603 Internal error \(reason on A: principal binding error\)/,
  ],
  wizard: [
    /^A → ada +Where to\?/,
    /^B → ada +How many nights in Lisbon\?/,
    /^C → ada +Breakfast\?/,
    /^ada +goes back$/,
    /^A → ada +How many nights in Lisbon\?/,
    /^A → ada +booked: 3 nights in Lisbon with breakfast$/,
    /the second page again, with 5 nights: Breakfast\?/,
    /the last page again: already booked/,
    /a state that she made up: -32602 Invalid or expired requestState \(reason on A: malformed\)/,
    /sent by mallory: -32602 Invalid or expired requestState \(reason on B: principal\)/,
  ],
  proxy: [
    /^ada → P1 +a question, and sr1\./,
    /^ada → P2 +North ships a teapot for €7, insured$/,
    /^bob → P2 +a question, and sr1\./,
    /^bob → P1 +South ships a piano for €7, insured$/,
    /ada's token, sent by mallory: -32602 Invalid or expired requestState \(reason on P2: principal\)/,
    /North's own token: -32602 Invalid or expired requestState \(reason on P1: malformed\)/,
    /the proxy's token: -32602 Invalid or expired requestState \(reason on North: malformed\)/,
    /a state that she made up: -32602 Invalid or expired requestState \(reason on P1: malformed\)/,
  ],
};

test.each(Object.entries(TOLD))('the example %s completes and refuses replays and forgeries', async (example, told) => {
  const { code, lines } = await type(commandOf(example));
  let left = [...lines];
  for (const line of told) {
    const at = left.findIndex((text) => line.test(text));
    expect(at, `${line} in\n${lines.join('\n')}`).toBeGreaterThanOrEqual(0);
    left = left.slice(at + 1);
  }
  expect(lines.at(-1)?.trim()).toBe('every step succeeded');
  expect(code).toBe(0);
});
