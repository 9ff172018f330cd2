import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { SealringConfig } from '@sealring/cli';
import { memoryRing } from '@sealring/core';
import { vaultTransitKeyWrapper } from '@sealring/vault-transit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callOpenBao, type OpenBao, startOpenBao } from '../support/openbao.ts';
import { runProgram } from '../support/run-program.ts';
import { startOrSkip } from '../support/servers.ts';
import { createRing, examine, findingOf, idsOf } from './findings.ts';

const MAIN = fileURLToPath(new URL('../../packages/cli/dist/main.js', import.meta.url));
const MODULES = fileURLToPath(new URL('../../node_modules', import.meta.url));

let started: OpenBao | undefined;
await startOrSkip(async () => {
  started = await startOpenBao();
  return started;
});
afterAll(() => started?.close());

describe.skipIf(started === undefined)('the doctor, on the transit engine of Vault', () => {
  const server = started ?? { address: '', token: '' };
  beforeAll(async () => {
    await callOpenBao(server, 'POST', 'sys/mounts/transit', { type: 'transit' });
    await callOpenBao(server, 'POST', 'transit/keys/payments', { type: 'aes256-gcm96' });
  });

  /** A configuration whose token has only these permissions. */
  async function configOf(operations: readonly string[]): Promise<SealringConfig> {
    const rights = operations.map((each) => `path "transit/${each}/payments" { capabilities = ["update"] }`);
    const policy = randomUUID();
    await callOpenBao(server, 'PUT', `sys/policies/acl/${policy}`, { policy: rights.join('\n') });
    const made = await callOpenBao(server, 'POST', 'auth/token/create', {
      policies: [policy],
      no_default_policy: true,
    });
    const token = String(Object(made).auth.client_token);
    const { address } = server;
    const keyWrapper = vaultTransitKeyWrapper({ address, keyId: 'payments', token, dangerouslyAllowHttp: true });
    return { ringName: 'payments', ring: memoryRing(), keyWrapper };
  }

  test('reports no error for the token of a member', async () => {
    const config = await configOf(['encrypt', 'decrypt']);
    await createRing(config);
    expect(idsOf(await examine(config), 'error')).toEqual([]);
  });

  test('reports that the permission to decrypt is missing', async () => {
    const report = await examine(await configOf(['encrypt']));
    expect(idsOf(report, 'error')).toEqual(['kms-denied']);
    expect(findingOf(report, 'kms-denied')?.remedy).toContain('<mount>/decrypt/<key>');
  });

  test.each([
    ['ecdsa-p256', { type: 'ecdsa-p256' }],
    ['derived', { type: 'aes256-gcm96', derived: true }],
  ])('reports an %s transit key as a key of the wrong kind, not as a missing permission', async (_, spec) => {
    const keyId = randomUUID();
    await callOpenBao(server, 'POST', `transit/keys/${keyId}`, spec);
    const { address, token } = server;
    const keyWrapper = vaultTransitKeyWrapper({ address, keyId, token, dangerouslyAllowHttp: true });
    const report = await examine({ ringName: 'payments', ring: memoryRing(), keyWrapper });
    expect(idsOf(report, 'error')).toEqual(['kms-usage']);
    expect(findingOf(report, 'kms-usage')?.remedy).toMatch(/^Use a transit key of type aes256-gcm96/);
  });

  test('SEALRING_VAULT_KEY_ID and the variables of Vault configure the command', async () => {
    const project = mkdtempSync(join(tmpdir(), 'sealring-cli-'));
    symlinkSync(MODULES, join(project, 'node_modules'));
    const env = {
      PATH: process.env['PATH'],
      SEALRING_RING_NAME: 'payments',
      SEALRING_RING_STORE: pathToFileURL(join(project, 'payments.ring')).href,
      SEALRING_VAULT_KEY_ID: 'payments',
      VAULT_ADDR: server.address,
      VAULT_TOKEN: server.token,
    };
    const run = (...args: readonly string[]) => runProgram(process.execPath, [MAIN, ...args], { cwd: project, env });
    try {
      expect(await run('init')).toMatchObject({ code: 0, output: expect.stringContaining('created the ring') });
      const { code, output } = await run('doctor');
      expect(code).toBe(0);
      expect(output).toContain('vault-transit wraps and unwraps a data key');
      expect(output).not.toContain(server.token === 'root' ? 'X-Vault-Token' : server.token);
    } finally {
      rmSync(project, { recursive: true, force: true });
    }
  });

  test('reports a rotated transit key, and a disallowed older version that the ring needs', async () => {
    const config = await configOf(['encrypt', 'decrypt']);
    await createRing(config);
    await callOpenBao(server, 'POST', 'transit/keys/payments/rotate');
    const report = await examine(config);
    expect(report.healthy).toBe(true);
    expect(findingOf(report, 'kms-version')?.what).toBe(
      'vault-transit now wraps with version transit/keys/payments:v2, but the newest key of the ring is wrapped by transit/keys/payments:v1',
    );
    await callOpenBao(server, 'POST', 'transit/keys/payments/config', { min_decryption_version: 2 });
    const refused = findingOf(await examine(config), 'kms-version-refused');
    expect(refused?.what).toContain('transit/keys/payments:v1');
    expect(refused?.remedy).toMatch(/min_decryption_version/);
  });
});
