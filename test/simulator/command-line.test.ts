import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runProgram } from '../support/run-program.ts';

const MAIN = join(import.meta.dirname, 'main.ts');

const run = (args: readonly string[]) => runProgram(process.execPath, [MAIN, ...args]);

test.each([
  [['--seed', '1.5'], "'--seed <n>' argument '1.5'", 'whole number from 0 to 2147483648'],
  [['--members', '0'], "'--members <n>' argument '0'", 'from 1 to 100000'],
  [['--loss', '0.6'], "'--loss <share>' argument '0.6'", 'from 0 to 0.5'],
  [['--faults', 'quiet,nope'], "'--faults <classes>' argument 'quiet,nope'", 'no class "nope"'],
  [['--adversary', 'W,nobody'], "'--adversary <names>' argument 'W,nobody'", 'no adversary "nobody"'],
  [['--adversary', 'W', '--seeds', '5-1'], "'--seeds <A-B>' argument '5-1'", 'two numbers, A-B'],
  [['--mutants', 'none-such'], "'--mutants [names]' argument 'none-such'", 'no mutant "none-such"'],
  [['--hours', '5'], "unknown option '--hours'", ''],
])('the simulator rejects %j in one line that names the option and the value', async (args, named, bounds) => {
  const { code, output } = await run(args);
  expect(code).toBe(2);
  expect(output).toContain(named);
  expect(output).toContain(bounds);
  expect(output.trim().split('\n').length).toBeLessThanOrEqual(2);
});

test('a small run passes, and writes its report and its picture', async () => {
  const out = await mkdtemp(join(tmpdir(), 'sealring-simulation-'));
  const { code, output } = await run(['--members', '3', '--days', '1', '--out', out]);
  expect(code).toBe(0);
  expect(output).toMatch(/^3 members, 1 days, seed 1; faults: quiet$/m);
  expect((await readdir(out)).toSorted()).toEqual(['report.json', 'report.svg']);
  await rm(out, { recursive: true });
});

test('a run with an adversary passes, and counts episodes', async () => {
  const { code, output } = await run(['--adversary', 'W,N', '--seeds', '4-4', '--members', '5']);
  expect(code).toBe(0);
  expect(output).toMatch(/^2 episodes of W, N; \d+ hostile acts; 0 episodes failed$/m);
});
