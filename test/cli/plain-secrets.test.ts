import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createRequestStateCodec as official, type ServerContext } from '@modelcontextprotocol/server';
import { createKmsCodec, fileRing, localKeyWrapper } from '@sealring/core';
import { createRequestStateCodec } from '@sealring/mcp';
import { createMcpdRequestStateCodec } from '@sealring/mcp/mcpd';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runProgram } from '../support/run-program.ts';

const MAIN = fileURLToPath(new URL('../../packages/cli/dist/main.js', import.meta.url));
const MODULES = fileURLToPath(new URL('../../node_modules', import.meta.url));

const project = mkdtempSync(join(tmpdir(), 'sealring-cli-'));
const textOf = (name: string): string => readFileSync(join(project, name), 'utf8');

async function run(...args: readonly string[]): Promise<void> {
  const { code, output } = await runProgram(process.execPath, [MAIN, ...args], { cwd: project });
  expect({ code, output: code === 0 ? '' : output }).toEqual({ code: 0, output: '' });
}

beforeAll(async () => {
  symlinkSync(MODULES, join(project, 'node_modules'));
  await run('init', '--local');
});
afterAll(() => rmSync(project, { recursive: true, force: true }));

const openRing = () =>
  createKmsCodec({
    ringName: 'local',
    ring: fileRing(join(project, 'sealring.local.ring')),
    keyWrapper: localKeyWrapper({ masterKey: textOf('sealring.local.key').trim() }),
  });

/** The first secret of `export --plain`, which belongs to the key that seals. */
async function secretOf(wire: string): Promise<Uint8Array> {
  await run('export', `${wire}.json`, '--plain', wire, '--they-leave-the-kms');
  const { keys }: { keys: readonly string[] } = JSON.parse(textOf(`${wire}.json`));
  return Buffer.from(keys[0] ?? '', 'base64url');
}

const nobody = { mcpReq: { method: 'tools/call' } } as unknown as ServerContext;

test('the TypeScript SDK with the exported secret and the ring’s codec accept each other’s tokens', async () => {
  await using codec = await openRing();
  const before = createRequestStateCodec<string>({ codec, wire: 'signed' });
  const after = official<string>({ key: await secretOf('typescript') });
  expect(await after.verify(await before.mint('in flight', nobody), nobody)).toBe('in flight');
  expect(await before.verify(await after.mint('new', nobody), nobody)).toBe('new');
});

test('an mcp.d codec with the exported secret and the ring’s codec accept each other’s tokens', async () => {
  await using codec = await openRing();
  const who = { subject: 'ada', target: 'refund' };
  const before = createMcpdRequestStateCodec({ codec });
  const after = createMcpdRequestStateCodec({ key: await secretOf('mcp.d') });
  expect(after.decode(before.encode('in flight', who), who)).toBe('in flight');
  expect(before.decode(after.encode('new', who), who)).toBe('new');
});
