import { randomUUID } from 'node:crypto';
import type { SealringConfig } from '@sealring/cli';
import { memoryRing } from '@sealring/core';
import { vaultTransitKeyWrapper } from '@sealring/vault-transit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callOpenBao, type OpenBao, startOpenBao } from '../support/openbao.ts';
import { startOrSkip } from '../support/servers.ts';
import { examine, findingOf, found, idsOf } from './findings.ts';

let started: OpenBao | undefined;
await startOrSkip(async () => {
  started = await startOpenBao();
  return started;
});
afterAll(() => started?.close());

describe.skipIf(started === undefined)('the doctor, on Vault’s transit', () => {
  const server = started ?? { address: '', token: '' };
  beforeAll(async () => {
    await callOpenBao(server, 'POST', 'sys/mounts/transit', { type: 'transit' });
    await callOpenBao(server, 'POST', 'transit/keys/payments', { type: 'aes256-gcm96' });
  });

  /** A configuration whose token may do so much and no more. */
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

  test('reports nothing with a member’s token', async () => {
    const config = await configOf(['encrypt', 'decrypt']);
    await found(config);
    expect(idsOf(await examine(config), 'error')).toEqual([]);
  });

  test('reports a missing permission to decrypt', async () => {
    const report = await examine(await configOf(['encrypt']));
    expect(idsOf(report, 'error')).toEqual(['kms-denied']);
    expect(findingOf(report, 'kms-denied')?.remedy).toContain('<mount>/decrypt/<key>');
  });

  test('reports a disallowed older version that the ring needs, after a rotation of the transit key', async () => {
    const config = await configOf(['encrypt', 'decrypt']);
    await found(config);
    await callOpenBao(server, 'POST', 'transit/keys/payments/rotate');
    const report = await examine(config);
    expect(report.healthy).toBe(true);
    expect(findingOf(report, 'kms-version')?.what).toBe(
      'vault-transit wraps with version transit/keys/payments:v2 now, and the newest key of the ring is wrapped by transit/keys/payments:v1',
    );
    await callOpenBao(server, 'POST', 'transit/keys/payments/config', { min_decryption_version: 2 });
    const refused = findingOf(await examine(config), 'kms-version-refused');
    expect(refused?.what).toContain('transit/keys/payments:v1');
    expect(refused?.remedy).toMatch(/min_decryption_version/);
  });
});
