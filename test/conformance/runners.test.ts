import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CODEC_REQUIREMENTS, describeCodec } from '@sealring/conformance';
import { describe, expect, test } from 'vitest';
import { type Ended, runProgram } from '../support/run-program.ts';
import { target } from './runners/target.ts';

const folder = fileURLToPath(new URL('runners/', import.meta.url));
const mocha = join(dirname(createRequire(import.meta.url).resolve('mocha/package.json')), 'bin', 'mocha.js');

/** Runs Node on a file of tests. */
function run(args: readonly string[], env: Readonly<Record<string, string>>): Promise<Ended> {
  const { NODE_OPTIONS: _, NODE_TEST_CONTEXT: __, ...inherited } = process.env;
  return runProgram(process.execPath, args, { env: { ...inherited, ...env }, timeoutMs: 120_000 });
}

describeCodec(target, { describe, test });

describe.each([
  ['node:test', ['--test', '--test-reporter=tap', join(folder, 'node-test.ts')]],
  // Each requirement has its own time limit.
  ['mocha', [mocha, '--timeout', '20', '--reporter', 'tap', join(folder, 'mocha.mjs')]],
])('the kit under %s', (_, args) => {
  test('passes a sound codec, with one test for each requirement', async () => {
    const { code, output } = await run(args, {});
    expect(code, output).toBe(0);
    for (const { id } of CODEC_REQUIREMENTS) expect(output).toMatch(new RegExp(`\\bok \\d+ .*${id}: `));
  });

  test('fails a broken codec at the requirement that it breaks', async () => {
    const { code, output } = await run(args, { SEALRING_BROKEN: '1' });
    expect(code).not.toBe(0);
    const failed = output.match(/not ok \d+ .*/g) ?? [];
    expect(failed.filter((line) => line.includes('CODEC-'))).toEqual([expect.stringContaining('CODEC-ROTATED-OPENS')]);
  });
});
