import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { type Protection, serveScenarios } from './conformance-server.ts';

const REVISION = '2026-07-28';
const ROOT = dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json'));
// The suite needs Node 22; this workspace brings one, wherever the tests themselves run.
const NODE = fileURLToPath(new URL('../../../node_modules/.bin/node', import.meta.url));

const scenarios = [
  ...readFileSync(join(ROOT, 'requirements', `${REVISION}.yaml`), 'utf8').matchAll(
    /- (input-required-result-[a-z-]+)/g,
  ),
].map(([, name = '']) => name);

interface Run {
  readonly code: number;
  readonly output: string;
}

/** One scenario in one process of the official suite. */
async function run(scenario: string, protection: Protection): Promise<Run> {
  await using server = await serveScenarios(protection);
  const args = [
    join(ROOT, 'dist/index.js'),
    'server',
    '--url',
    server.url,
    '--scenario',
    scenario,
    '--spec-version',
    REVISION,
  ];
  const cwd = mkdtempSync(join(tmpdir(), 'sealring-conformance-'));
  return await new Promise((done) => {
    execFile(NODE, args, { cwd, timeout: 60_000 }, (error, stdout, stderr) => {
      done({ code: error === null ? 0 : Number(error.code ?? -1), output: `${stdout}${stderr}` });
    });
  });
}

describe('the official conformance suite, one process each', () => {
  test('has fourteen scenarios on input_required results', () => {
    expect(new Set(scenarios).size).toBe(14);
  });

  test.each(scenarios)('%s passes behind the boundary', { timeout: 90_000 }, async (scenario) => {
    const { code, output } = await run(scenario, 'reject');
    const passed = expect.stringMatching(/Passed: ([1-9]\d*)\/\1, 0 failed, 0 warnings/);
    expect({ code, output }).toEqual({ code: 0, output: passed });
  });

  test('tampered-state passes when only expired and unknown ask again', { timeout: 90_000 }, async () => {
    expect((await run('input-required-result-tampered-state', 're-elicit')).code).toBe(0);
  });

  test.each(['none', 're-elicit-any'] as const)(
    'tampered-state fails under %s: the run tells a boundary from none',
    { timeout: 90_000 },
    async (protection) => {
      expect((await run('input-required-result-tampered-state', protection)).code).toBe(1);
    },
  );
});
