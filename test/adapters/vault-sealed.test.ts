import type { KeyWrapper, WrappedKey } from '@sealring/core';
import { vaultTransitKeyWrapper } from '@sealring/vault-transit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callOpenBao, type OpenBao, startOpenBao } from '../support/openbao.ts';
import { startOrSkip } from '../support/servers.ts';

let started: OpenBao | undefined;
await startOrSkip(async () => {
  started = await startOpenBao();
  return started;
});
afterAll(() => started?.close());

const context = { 'sealring:ring': 'test' };
const dataKey = Uint8Array.from({ length: 32 }, (_, i) => i + 1);

// Skipped only if this machine cannot run it; under CI=true the set-up fails instead.
describe.skipIf(started === undefined)('an OpenBao that is sealed or stopped', () => {
  const own = started as OpenBao;
  beforeAll(async () => {
    await callOpenBao(own, 'POST', 'sys/mounts/transit', { type: 'transit' });
    await callOpenBao(own, 'POST', 'transit/keys/payments');
  });

  function keyWrapper(): KeyWrapper {
    return vaultTransitKeyWrapper({ address: own.address, token: own.token, keyId: 'payments', maxAttempts: 2 });
  }

  test('is reported as unavailable while it is sealed, and unwraps earlier wraps once it is unsealed', async () => {
    const made = await keyWrapper().wrap(dataKey, { context });
    await own.seal();
    for (const call of callsOf(keyWrapper(), made)) {
      await expect(call()).rejects.toMatchObject({
        kind: 'unavailable',
        summary: { status: 503, attempts: 2, hint: expect.stringContaining('sealed') },
      });
    }
    await own.unseal();
    expect(await keyWrapper().unwrap(made, { context })).toEqual(dataKey);
  });

  test('is reported as unavailable while it is stopped, and unwraps earlier wraps after a restart', async () => {
    const made = await keyWrapper().wrap(dataKey, { context });
    await own.stop();
    for (const call of callsOf(keyWrapper(), made)) {
      await expect(call()).rejects.toMatchObject({
        kind: 'unavailable',
        summary: { code: 'ECONNREFUSED', attempts: 2 },
      });
    }
    await own.start();
    expect(await keyWrapper().unwrap(made, { context })).toEqual(dataKey);
  });
});

function callsOf(keyWrapper: KeyWrapper, made: WrappedKey): (() => Promise<unknown>)[] {
  return [() => keyWrapper.wrap(dataKey, { context }), () => keyWrapper.unwrap(made, { context })];
}
