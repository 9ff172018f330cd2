import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { newProject, runCli } from './cli-process.ts';

const MAIN = join(import.meta.dirname, '../dist/main.js');
const COMMANDS = [
  'doctor',
  'status',
  'dashboard',
  'init',
  'rotate',
  'revoke',
  'inspect',
  'export',
  'import',
  'policy',
  'bench',
  'probe',
  'proxy',
  'keeper',
  'complete',
];

let project: ReturnType<typeof newProject>;
beforeEach(() => {
  project = newProject();
});
afterEach(() => project.remove());

const run = (args: readonly string[], input = '') => runCli(args, { cwd: project.cwd, input });
const at = (name: string): string => join(project.cwd, name);

describe('help and version', () => {
  test('-v prints the version', async () => {
    const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../package.json'), 'utf8'));
    expect(await run(['-v'])).toMatchObject({ code: 0, stdout: `${version}\n` });
  });

  test.each([[[]], ...COMMANDS.map((command) => [[command]])])(
    'the output of sealring %j -h is at most 80 columns wide',
    async (args) => {
      const { code, stdout } = await run([...args, '-h']);
      expect(code).toBe(0);
      expect(stdout).toMatch(/^Usage: sealring/);
      expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([]);
    },
  );
});

describe('failures with --json', () => {
  test.each([
    [['status', '--json'], 2, 'usage', /there is no configuration/],
    [['status', '--json', '--watch', 'x'], 2, 'usage', /must be a number/],
    [['nosuch', '--json'], 2, 'usage', /unknown command/],
  ])('%j prints the error as JSON', async (args, exitCode, code, message) => {
    const ended = await run(args);
    expect(ended.code).toBe(exitCode);
    const help = expect.stringMatching(/\/docs\/mistakes\.md$/);
    expect(JSON.parse(ended.stdout)).toEqual({
      error: { code, message: expect.stringMatching(message), help, exitCode },
    });
    expect(ended.stderr).toMatch(message);
  });

  test.each([
    ['ring-absent', 'rm', ['status'], 'packages/cli/README.md#failures'],
    ['store-corrupt', 'junk', ['rotate'], 'docs/errors.md#ringstoreerror-corrupt'],
    ['kms-corrupt', 'key', ['status'], 'docs/errors.md#keywrappererror-corrupt'],
    ['ring-exists', '', ['import', 'copy.ring'], 'packages/cli/README.md#failures'],
    ['not-a-token', '', ['inspect'], 'packages/cli/README.md#failures'],
  ])('the failure has the code %s, and links to the section about that code', async (code, damage, args, section) => {
    await run(['init', '--local']);
    await run(['export', 'copy.ring']);
    if (damage === 'rm') execFileSync('rm', [at('sealring.local.ring')]);
    if (damage === 'junk') writeFileSync(at('sealring.local.ring'), 'junk');
    if (damage === 'key')
      writeFileSync(at('sealring.local.key'), Buffer.alloc(32, 'ÿ another key').toString('base64url'));
    const { code: exitCode, stdout } = await run([...args, '--json'], 'no token');
    expect(exitCode).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      error: { code, exitCode: 1, help: `https://github.com/sealring/sealring/blob/main/${section}` },
    });
  });
});

test('the README lists the code of every failure', () => {
  const read = (path: string): string => readFileSync(join(import.meta.dirname, '..', path), 'utf8');
  const union = /type FailureCode =([^;]*);/.exec(read('src/failure.ts'))?.[1] ?? '';
  const codes = [...union.matchAll(/\| '([a-z-]+)'/g)].map(({ 1: code = '' }) => code);
  const table = /\n### Failures\n([^]*?)\n### /.exec(read('README.md'))?.[1] ?? '';
  const rows = [...table.matchAll(/^\| `([a-z-]+)` \|/gm)].map(({ 1: code = '' }) => code);
  expect(rows.toSorted()).toEqual([...codes, 'usage'].toSorted());
});

test('init creates the ring at once, even if the configuration sets createAfterSeconds', async () => {
  await run(['init', '--local']);
  execFileSync('mv', [at('sealring.local.ring'), at('lost.ring')]);
  const config = readFileSync(at('sealring.config.mjs'), 'utf8');
  const policy = 'policy: { createAfterSeconds: 3600 },';
  writeFileSync(at('sealring.config.mjs'), config.replace("ringName: 'local',", `ringName: 'local', ${policy}`));
  const { code, stdout } = await run(['init']);
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^created the ring; /) });
});

describe('export -', () => {
  test('writes the ring to standard output in a form that import accepts', async () => {
    await run(['init', '--local']);
    const before = readFileSync(at('sealring.local.ring'), 'utf8');
    const { code, stdout, stderr } = await run(['export', '-']);
    expect(code).toBe(0);
    expect(stdout).toBe(`${before}\n`);
    expect(stderr).toBe('wrote 1 wrapped key of ring "local" to standard output\n');
    writeFileSync(at('piped.ring'), stdout);
    execFileSync('mv', [at('sealring.local.ring'), at('lost.ring')]);
    expect((await run(['import', 'piped.ring'])).code).toBe(0);
    expect(readFileSync(at('sealring.local.ring'), 'utf8')).toBe(before);
  });

  test.each([[['--json']], [['--plain', 'python', '--they-leave-the-kms']]])(
    'export to standard output rejects the options %j',
    async (more) => {
      await run(['init', '--local']);
      const { code, stderr } = await run(['export', '-', ...more]);
      expect(code).toBe(2);
      expect(stderr).toMatch(/^error: .*-/);
    },
  );
});

describe('revoke', () => {
  beforeEach(() => run(['init', '--local']));

  test('is rejected without --yes outside a terminal, and changes nothing', async () => {
    const before = readFileSync(at('sealring.local.ring'), 'utf8');
    const { code, stderr } = await run(['revoke', '--all', '--no-wait']);
    expect(code).toBe(2);
    expect(stderr).toMatch(/add --yes, or --dry-run/);
    expect(readFileSync(at('sealring.local.ring'), 'utf8')).toBe(before);
  });

  test('--dry-run lists the keys that the revocation would revoke, and changes nothing', async () => {
    await run(['rotate']);
    const before = readFileSync(at('sealring.local.ring'), 'utf8');
    const time = new Date().toISOString();
    const dry = await run(['revoke', '--before', time, '--dry-run', '--json']);
    expect(dry.code).toBe(0);
    expect(readFileSync(at('sealring.local.ring'), 'utf8')).toBe(before);
    const { wouldRevoke } = JSON.parse(dry.stdout);
    expect(wouldRevoke).toHaveLength(2);
    const wet = await run(['revoke', '--before', time, '--yes', '--no-wait', '--json']);
    expect(JSON.parse(wet.stdout).revoked.toSorted()).toEqual(wouldRevoke.toSorted());
    expect((await run(['revoke', 'AAAAAAAAAAAA', '--dry-run'])).code).toBe(2);
  });
});

describe('the exit code of status', () => {
  /** A ring whose only key was made this long ago. */
  async function agedRing(seconds: number): Promise<void> {
    await run(['init', '--local']);
    execFileSync('rm', [at('sealring.local.ring')]);
    const config = readFileSync(at('sealring.config.mjs'), 'utf8');
    const clock = `clock: { wallMs: () => Date.now() - ${seconds * 1_000}, monotonicNs: () => process.hrtime.bigint() },`;
    writeFileSync(at('past.config.mjs'), config.replace("ringName: 'local',", `ringName: 'local', ${clock}`));
    expect((await run(['init', '--config', 'past.config.mjs'])).code).toBe(0);
  }

  test.each([
    [0, 'a healthy ring', 60, 'ok'],
    [3, 'a late rotation', 23 * 3_600, 'attention'],
    [3, 'an overdue rotation', 25 * 3_600, 'attention'],
    [1, 'a ring whose last key stopped sealing', 31 * 3_600, 'failing'],
    [1, 'a ring whose keys have expired', 40 * 3_600, 'no-sealing-key'],
  ])('status exits with %i for %s', async (exitCode, _, seconds, expected) => {
    await agedRing(seconds);
    const { code, stdout } = await run(['status', '--json']);
    expect(code).toBe(exitCode);
    const { condition, error } = JSON.parse(stdout);
    expect(condition ?? error.code).toBe(expected);
  });

  test('the severity that the doctor reports does not improve while the ring gets worse', async () => {
    const severities: number[] = [];
    const order = ['ok', 'info', 'warning', 'error'];
    for (const hours of [1, 23, 25, 31, 40]) {
      project.remove();
      project = newProject();
      await agedRing(hours * 3_600);
      const { findings } = JSON.parse((await run(['doctor', '--json'])).stdout);
      severities.push(Math.max(...findings.map(({ severity }: { severity: string }) => order.indexOf(severity))));
    }
    expect(severities).toEqual([1, 2, 3, 3, 3]);
  });
});

test('doctor --strict exits with 1 for a warning', async () => {
  await run(['init', '--local']);
  const config = readFileSync(at('sealring.config.mjs'), 'utf8');
  writeFileSync(
    at('memory.config.mjs'),
    config.replace(/ring: fileRing.*,/, 'ring: memoryRing(),').replace('fileRing', 'memoryRing'),
  );
  expect((await run(['doctor', '--config', 'memory.config.mjs'])).code).toBe(0);
  expect((await run(['doctor', '--config', 'memory.config.mjs', '--strict'])).code).toBe(1);
  expect((await run(['doctor', '--strict'])).code).toBe(0);
});

describe('complete', () => {
  test('suggests commands, options and choices', async () => {
    const of = async (...words: readonly string[]): Promise<string> => (await run(['complete', '--', ...words])).stdout;
    expect(await of('rev')).toMatch(/^revoke\t/m);
    expect(await of('revoke', '--')).toMatch(/^--dry-run\t/m);
    expect(await of('export', 'x', '--plain', '')).toMatch(/^python\t/m);
  });

  test.each(['bash', 'zsh', 'fish', 'powershell'])('prints a script for %s', async (shell) => {
    const { code, stdout } = await run(['complete', shell]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/sealring complete '?--/);
  });

  test.each([[['tcsh']], [[]]])('%j is rejected with exit code 2', async (args) => {
    expect((await run(['complete', ...args])).code).toBe(2);
  });

  test.skipIf(process.platform === 'win32')('completes a word in bash', async () => {
    mkdirSync(at('bin'));
    writeFileSync(at('bin/sealring'), `#!/bin/sh\nexec "${process.execPath}" "${MAIN}" "$@"\n`, { mode: 0o755 });
    writeFileSync(at('complete.sh'), (await run(['complete', 'bash'])).stdout);
    // The functions of the package bash-completion.
    const words = '_get_comp_words_by_ref() { cur=rev; prev=sealring; words=(sealring rev); cword=1; }';
    const script = `${words}; source ./complete.sh; __sealring_complete; echo "\${COMPREPLY[@]}"`;
    const out = execFileSync('bash', ['-c', script], {
      cwd: project.cwd,
      env: { PATH: `${at('bin')}:${process.env['PATH']}` },
      encoding: 'utf8',
    });
    expect(out).toContain('revoke');
  });
});
