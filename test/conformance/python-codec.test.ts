import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ConformanceReport, execCodecTarget, runCodecConformance } from '@sealring/conformance';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectNoFindings } from '../support/findings.ts';
import { pythonVenv } from '../support/python-venv.ts';
import { packTarball } from '../support/tarballs.ts';

const kit = new URL('../../packages/conformance/', import.meta.url);
const example = fileURLToPath(new URL('examples/python/codec.py', kit));
/** The environment for programs in another folder, which import what is installed there. */
const env = { PYTHONPATH: fileURLToPath(new URL('templates/python', kit)) };
const folder = mkdtempSync(join(tmpdir(), 'sealring-python-'));
const STARTING_MS = 60_000;
let python = '';

beforeAll(async () => {
  python = join(await pythonVenv('python-sdk', ['mcp==2.3.0']), 'python');
});
afterAll(() => rmSync(folder, { recursive: true }));

/** The report on a program, from a seed. */
async function reportOn(program: string, seed: number, only?: readonly string[]): Promise<ConformanceReport> {
  const isExample = program.endsWith('examples/python/codec.py');
  const command = [python, program];
  const target = execCodecTarget(command, { name: 'mcp 2.3.0', timeoutMs: STARTING_MS, ...(!isExample && { env }) });
  try {
    return await runCodecConformance(target, { seed, ...(only !== undefined && { only }) });
  } finally {
    await target.close();
  }
}

/** The codec of the Python SDK with one method changed. */
function brokenCodec(name: string, lines: readonly string[]): string {
  const file = join(folder, `${name}.py`);
  const program = `
import secrets
from mcp.server.request_state import AESGCMRequestStateCodec, InvalidRequestState
from sealring_codec import serve

class Codec(AESGCMRequestStateCodec):
${lines.map((line) => `    ${line}\n`).join('')}
A, OTHER = secrets.token_bytes(32), secrets.token_bytes(32)
serve(lambda role: Codec([OTHER if role == "stranger" else A]))
`;
  writeFileSync(file, program);
  return file;
}

test('the README of the Python package shows the example', () => {
  const code = readFileSync(example, 'utf8').split('"""\n').at(-1) ?? '';
  expect(code).toContain('serve(');
  expect(readFileSync(new URL('README.md', kit), 'utf8')).toContain(`\`\`\`python${code}\`\`\``);
});

test('the example runs as packaged: unpacked from its tarball, in an empty folder', async () => {
  const empty = join(folder, 'unpacked');
  mkdirSync(empty);
  execFileSync('tar', ['-xzf', packTarball('conformance', folder), '-C', empty]);
  const program = join(empty, 'package/examples/python/codec.py');
  const { results } = await reportOn(program, 1, ['CODEC-PEER', 'CODEC-ROTATED-OPENS', 'CODEC-STRANGER']);
  expect(results.map(({ status }) => status)).toEqual(['pass', 'pass', 'pass']);
});

test.each([1, 2])(
  'the codec of the Python SDK passes the whole conformance kit through a pipe: seed %i',
  async (seed) => {
    const report = await reportOn(example, seed);
    expectNoFindings(report);
    expect(report.passed).toBe(true);
    expect(report.results.filter(({ status }) => status === 'pass').length).toBeGreaterThan(30);
  },
);

const BROKEN: readonly (readonly [name: string, caughtBy: string, finding: string, lines: readonly string[]])[] = [
  [
    'unseals damaged tokens to no bytes',
    'CODEC-BIT-FLIP',
    'was not refused: unseal returned 0 bytes',
    [
      'def unseal(self, token):',
      '    try:',
      '        return super().unseal(token)',
      '    except InvalidRequestState as error:',
      '        if str(error) == "seal":',
      '            return b""',
      '        raise',
    ],
  ],
  [
    'refuses with another exception',
    'CODEC-REFUSAL-CLASS',
    'was refused by the error "ValueError: bad token"',
    [
      'def unseal(self, token):',
      '    try:',
      '        return super().unseal(token)',
      '    except InvalidRequestState:',
      '        raise ValueError("bad token") from None',
    ],
  ],
  [
    'opens to text',
    'CODEC-ROUNDTRIP-BYTES',
    'threw the error "TypeError: unseal returned str, not bytes"',
    ['def unseal(self, token):', '    return super().unseal(token).decode("latin-1")'],
  ],
  [
    'is asynchronous',
    'CODEC-ROUNDTRIP-BYTES',
    'threw the error "TypeError: seal returned coroutine, not str"',
    ['async def seal(self, payload):', '    return super().seal(payload)'],
  ],
  [
    'ends the process',
    'CODEC-HUGE',
    'the program ended with exit code 1 instead of answering {"id":',
    [
      'def unseal(self, token):',
      '    if len(token) > 100_000:',
      '        raise SystemExit("too much")',
      '    return super().unseal(token)',
    ],
  ],
];

test.each(BROKEN)('a Python codec that %s is caught by %s', async (name, caughtBy, finding, lines) => {
  const file = brokenCodec(name.replaceAll(' ', '-'), lines);
  const { results } = await reportOn(file, 1, [caughtBy, 'CODEC-TOKEN-TEXT']);
  const result = results.find(({ id }) => id === caughtBy);
  expect(result).toMatchObject({ status: 'fail', detail: expect.stringContaining(finding) });
  expect(results.map(({ id }) => id).toSorted()).toEqual([caughtBy, 'CODEC-TOKEN-TEXT'].toSorted());
});

test('a Python codec can print without disturbing its answers', async () => {
  const file = brokenCodec('prints', [
    'def seal(self, payload):',
    '    print("sealing")',
    '    return super().seal(payload)',
  ]);
  const { results } = await reportOn(file, 1, ['CODEC-STRANGER']);
  expect(results).toMatchObject([{ status: 'pass' }]);
});
