import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { newProject, runCli } from './cli-process.ts';
import { HAS_TERMINAL, runInTerminal, typist } from './terminal-process.ts';

const CTRL_C = '\u0003';
/** The start of a control sequence, printable for regular expressions. */
const ESCAPE = '␛';

let project: ReturnType<typeof newProject>;
beforeEach(async () => {
  project = newProject();
  await runCli(['init', '--local'], { cwd: project.cwd });
});
afterEach(() => project.remove());

const inTerminal = (args: readonly string[], onOutput?: Parameters<typeof runInTerminal>[1]['onOutput']) =>
  runInTerminal(args, { cwd: project.cwd, ...(onOutput !== undefined && { onOutput }) });

/** Escape characters as {@link ESCAPE}. */
function printable(output: string): string {
  return output.replaceAll('\u001b', ESCAPE);
}

async function states(): Promise<readonly string[]> {
  const { stdout } = await runCli(['status', '--json'], { cwd: project.cwd });
  return JSON.parse(stdout).keys.map(({ state }: { state: string }) => state);
}

describe.skipIf(!HAS_TERMINAL)('commands on a terminal', () => {
  test('revoke lists the keys, asks for confirmation, and revokes them after yes', async () => {
    const { stdout } = await runCli(['status', '--json'], { cwd: project.cwd });
    const { sealingKey } = JSON.parse(stdout);
    const { code, output } = await inTerminal(['revoke', '--all', '--no-wait'], typist(/Type yes/, 'yes\r'));
    expect(code).toBe(0);
    expect(output).toContain(`Revoke 1 key of ring "local": ${sealingKey}`);
    expect(await states()).toEqual(expect.arrayContaining(['revoked', 'active']));
  });

  test.each([
    ['no', 'no\r'],
    ['an empty answer', '\r'],
    ['Ctrl-C', CTRL_C],
    ['the end of the input', '\u0004'],
  ])('revoke changes nothing after %s', async (_, keys) => {
    const before = readFileSync(join(project.cwd, 'sealring.local.ring'), 'utf8');
    const { code, output } = await inTerminal(['revoke', '--all', '--no-wait'], typist(/Type yes/, keys));
    expect(code).toBe(1);
    expect(output).toContain('error: not confirmed: nothing was revoked');
    expect(readFileSync(join(project.cwd, 'sealring.local.ring'), 'utf8')).toBe(before);
  });

  test('revoke --yes does not ask, and redraws its progress in place', async () => {
    const { code, output } = await inTerminal(['revoke', '--all', '--yes'], typist(/: 4 of 360 s/, CTRL_C));
    expect(code).toBe(1);
    expect(output).not.toContain('Type yes');
    // Each update is preceded by a clear of the same line.
    expect(printable(output)).toMatch(/\[ +\] revoked; waiting until the store has kept it: 0 of 360 s␛\[1G␛\[2K\[/);
    expect(output.match(/waiting until[^\r]*\n/g)).toBeNull();
  });

  test('status --watch redraws in place, with a note while the store fails', async () => {
    const stop = typist(/note:/, CTRL_C);
    let isBroken = false;
    const { output } = await inTerminal(['status', '--watch', '1'], (text, child) => {
      if (!isBroken) writeFileSync(join(project.cwd, 'sealring.local.ring'), 'no ring');
      isBroken = true;
      stop(text, child);
    });
    const screens = printable(output).split(`${ESCAPE}[1;1H${ESCAPE}[0J`);
    expect(screens.length).toBeGreaterThan(2);
    expect(screens.slice(1).every((screen) => screen.startsWith('ring "local" (file)'))).toBe(true);
    expect(screens.at(-1)).toMatch(/note: reading the ring: the ring store: corrupt/);
  });

  test.each([['status'], ['doctor'], ['policy'], ['bench'], ['--help']])(
    'the output of %s is at most 80 columns wide',
    async (command) => {
      const { output } = await inTerminal([command]);
      const lines = stripVTControlCharacters(output).split(/\r?\n/);
      expect(lines.length).toBeGreaterThan(3);
      expect(lines.filter((line) => line.length > 80)).toEqual([]);
    },
  );

  test.each([80, 0])('a long operation redraws its progress in place on a terminal of %i columns', async (columns) => {
    const config = join(project.cwd, 'slow.config.mjs');
    const seen = join(project.cwd, 'seen');
    writeFileSync(
      config,
      `import { existsSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import config from './sealring.config.mjs';
while (!existsSync('seen')) await setTimeout(20);
export default config;`,
    );
    const onOutput = (text: string): void => {
      if (text.includes('(3 s)')) writeFileSync(seen, '');
    };
    const { code, output } = await runInTerminal(['status', '--config', config], {
      cwd: project.cwd,
      columns,
      onOutput,
    });
    expect(code).toBe(0);
    expect(printable(output)).toMatch(
      /loading the configuration … \(2 s\)␛\[1G␛\[2Kloading the configuration … \(3 s\)/,
    );
    expect(printable(output)).not.toMatch(/loading the configuration[^\r␛]*\n/);
  });
});
