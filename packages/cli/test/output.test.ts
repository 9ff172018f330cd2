import { existsSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { columnsOf } from '../src/terminal/page.ts';
import { runCli } from './cli-process.ts';
import { HAS_LIMITS, runToFullDevice, runWithoutSpace } from './limited-process.ts';
import { newRing, RingProject } from './rings.ts';

let ring: RingProject;
beforeEach(async () => {
  ring = await newRing();
});
afterEach(() => ring[Symbol.dispose]());

test('status --watch ends quietly once its reader has ended', async () => {
  const { code, stderr } = await runCli(['status', '--watch', '1'], {
    cwd: ring.cwd,
    onStdout: (_, child) => void child.stdout?.destroy(),
  });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
});

test('NO_COLOR prevents colours even with FORCE_COLOR', async () => {
  const run = (env: NodeJS.ProcessEnv) => runCli(['doctor'], { cwd: ring.cwd, env: { FORCE_COLOR: '1', ...env } });
  expect((await run({})).stdout).toContain('\u001b[32m');
  expect((await run({ NO_COLOR: '1' })).stdout).not.toContain('\u001b');
});

test.each([
  [{ columns: 0 }, 80],
  [{}, 80],
  [{ columns: 40 }, 40],
])('the width of a stream with %j is %i columns', (stream, columns) => {
  expect(columnsOf(stream)).toBe(columns);
});

describe.skipIf(!HAS_LIMITS)('a disk without space', () => {
  test('export removes the file that it could not write', async () => {
    const { code, stderr } = await runWithoutSpace(['export', 'backup.ring'], ring.cwd);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^error: cannot write "backup\.ring" \(E[A-Z]+\): the file was removed again\n$/),
    });
    expect(existsSync(ring.at('backup.ring'))).toBe(false);
    expect((await ring.run(['export', 'backup.ring'])).code).toBe(0);
  });

  test('init --local removes the key file that it could not write', async () => {
    using empty = new RingProject();
    const { code } = await runWithoutSpace(['init', '--local'], empty.cwd);
    expect(code).toBe(1);
    expect(existsSync(empty.at('sealring.local.key'))).toBe(false);
    expect((await empty.run(['init', '--local'])).code).toBe(0);
  });

  test.each([[['export', '-']], [['status']], [['status', '--json']], [['status', '--watch', '1']]])(
    '%j fails with one line if standard output cannot be written',
    async (args) => {
      const { code, stderr } = await runToFullDevice(args, ring.cwd);
      expect({ code, stderr }).toEqual({ code: 1, stderr: 'error: cannot write to standard output (ENOSPC)\n' });
    },
  );
});

test('export - fails if its reader ends before it has read the ring', async () => {
  const { code, stderr } = await runCli(['export', '-'], { cwd: ring.cwd, isOutputClosed: true });
  expect({ code, stderr }).toEqual({ code: 1, stderr: 'error: cannot write to standard output (EPIPE)\n' });
});
