import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { type Protection, scenarioFactory } from './conformance-server.ts';
import type { HttpVariant } from './hosting/http-variant.ts';
import { nodeHttp } from './hosting/node-http.ts';
import { HTTP_VARIANTS } from './hosting/variants.ts';

const REVISION = '2026-07-28';
const ROOT = dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json'));
// The suite needs Node 22; this workspace has one, whatever version the tests themselves run on.
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

function suite(args: readonly string[]): Promise<Run> {
  const cwd = mkdtempSync(join(tmpdir(), 'sealring-conformance-'));
  return new Promise((done) => {
    execFile(NODE, [join(ROOT, 'dist/index.js'), ...args], { cwd, timeout: 60_000 }, (error, stdout, stderr) => {
      rmSync(cwd, { recursive: true, force: true });
      done({ code: error === null ? 0 : Number(error.code ?? -1), output: `${stdout}${stderr}` });
    });
  });
}

/** One scenario in one process of the official suite. */
async function run(host: HttpVariant, scenario: string, protection: Protection): Promise<Run> {
  await using server = await host(scenarioFactory(protection));
  const url = `${server.origin}/mcp`;
  return await suite(['server', '--url', url, '--scenario', scenario, '--spec-version', REVISION]);
}

test('the official conformance suite has fourteen scenarios on input_required results', () => {
  expect(new Set(scenarios).size).toBe(14);
});

describe.each(Object.entries(HTTP_VARIANTS))(
  'the official conformance suite on %s, with a process for each scenario',
  (_name, host) => {
    test.each(scenarios)('%s passes behind the boundary', async (scenario) => {
      const { code, output } = await run(host, scenario, 'reject');
      const passed = expect.stringMatching(/Passed: ([1-9]\d*)\/\1, 0 failed, 0 warnings/);
      expect({ code, output }).toEqual({ code: 0, output: passed });
    });

    test('tampered-state fails without the boundary', async () => {
      const failed = expect.stringContaining('RejectTamperedState');
      expect(await run(host, 'input-required-result-tampered-state', 'none')).toEqual({ code: 1, output: failed });
    });
  },
);

describe('the official scenario on tampered state', () => {
  test('passes when only expired tokens and unknown keys run the handler again', async () => {
    expect((await run(nodeHttp, 'input-required-result-tampered-state', 're-elicit')).code).toBe(0);
  });

  test('fails, by design, when every refusal runs the handler again', async () => {
    expect((await run(nodeHttp, 'input-required-result-tampered-state', 're-elicit-any')).code).toBe(1);
  });
});

// This is why stdio is missing above. If this test fails, add stdio there.
test('the official conformance suite takes a URL and starts no server', async () => {
  const { code, output } = await suite(['server', '--command', 'node server.js', '--scenario', scenarios[0] ?? '']);
  expect({ code, output }).toEqual({ code: 1, output: expect.stringContaining("required option '--url <url>'") });
});
