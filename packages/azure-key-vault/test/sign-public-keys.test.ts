import { describe, expect, onTestFinished, test, vi } from 'vitest';
// @boundaries-ignore code that the tests of all packages share is not a package
import { sdkClients } from '../../../test/support/azure-key-vault/clients.ts';
import { type AzureKeyVaultClients, fetchAzureSignPublicKeys } from '../src/index.ts';
import { useVault } from './vault-setup.ts';

const setup = useVault();

describe('fetchAzureSignPublicKeys', () => {
  test('gets the public keys of the given versions, in the given order', async () => {
    const { vault, signing, clients, publicKey } = setup();
    const old = { id: vault.idOf(signing, signing.current), jwk: publicKey() };
    signing.rotate();
    const newer = { id: vault.idOf(signing, signing.current), jwk: publicKey() };
    const keys = await fetchAzureSignPublicKeys({ signKeyIds: [newer.id, old.id], clients });
    expect(keys).toEqual([newer.jwk, old.jwk]);
    expect(vault.requests.map(({ operation }) => operation)).toEqual(['get', 'get']);
  });

  test('needs no permission other than get', async () => {
    const { vault, signing } = setup();
    const signKeyIds = [vault.idOf(signing, signing.current)];
    const fetchWith = (token: string): Promise<unknown> =>
      fetchAzureSignPublicKeys({ signKeyIds, clients: sdkClients(vault, token) });
    expect(await fetchWith(vault.issueToken(['get']))).toHaveLength(1);
    await expect(fetchWith(vault.issueToken(['sign', 'unwrapKey']))).rejects.toMatchObject({ kind: 'denied' });
  });

  test.each([
    ['of another key', () => setup().vault.spoilKid((kid) => kid.replace('/signing/', '/other/'))],
    ['of another version', () => setup().vault.spoilKid((kid) => kid.replace(/[0-9a-f]{32}$/, 'f'.repeat(32)))],
    ['of another vault', () => setup().vault.spoilKid((kid) => kid.replace('127.0.0.1', 'evil.example'))],
    ['of another curve', () => spoilKey({ crv: 'P-384' })],
    ['that is not a point of the curve', () => spoilKey({ x: Buffer.alloc(32, 1).toString('base64url') })],
    ['without a coordinate', () => spoilKey({ y: undefined })],
    ['that is empty', () => setup().vault.spoilText(() => '')],
  ])('an answer %s is corrupt', async (_, spoil) => {
    const { vault, signing, clients } = setup();
    spoil();
    const signKeyIds = [vault.idOf(signing, signing.current)];
    await expect(fetchAzureSignPublicKeys({ signKeyIds, clients })).rejects.toMatchObject({
      kind: 'corrupt',
      summary: { operation: 'sign' },
    });
  });

  test('rejects an RSA key, which cannot sign ring entries', async () => {
    const { vault, rsa, clients } = setup();
    const signKeyIds = [vault.idOf(rsa, rsa.current)];
    await expect(fetchAzureSignPublicKeys({ signKeyIds, clients })).rejects.toMatchObject({ kind: 'corrupt' });
  });

  test('the first failure ends the calls for the other keys', async () => {
    const { vault, signing, clients } = setup();
    const others: AbortSignal[] = [];
    const keys: AzureKeyVaultClients['keys'] = (vaultUrl) => ({
      getKey(name, call) {
        if (name === 'signing') return clients.keys(vaultUrl).getKey(name, call);
        others.push(call.abortSignal);
        return new Promise(() => undefined);
      },
    });
    const signingId = vault.idOf(signing, signing.current);
    const signKeyIds = [signingId.replace('/signing/', '/other/'), signingId];
    vault.deny();
    const fetched = fetchAzureSignPublicKeys({ signKeyIds, clients: { ...clients, keys } });
    await expect(fetched).rejects.toMatchObject({ kind: 'denied' });
    expect(others.map(({ aborted }) => aborted)).toEqual([true]);
  });

  test('retries while a vault throttles', async () => {
    const { vault, signing, clients } = setup();
    vault.throttle({ times: 3 });
    const signKeyIds = [vault.idOf(signing, signing.current)];
    expect(await fetchAzureSignPublicKeys({ signKeyIds, clients })).toHaveLength(1);
    expect(vault.requests).toHaveLength(4);
  });

  test.each([
    [undefined, 2, 9],
    [3, 3, 3],
  ])(
    'signing keys are requested for at most 15 seconds, or maxAttempts times if that is given: %s',
    async (maxAttempts, least, most) => {
      let nowMs = 100_000;
      const clock = vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
      onTestFinished(() => clock.mockRestore());
      const { vault, signing, clients } = setup();
      vault.throttle();
      const signKeyIds = [vault.idOf(signing, signing.current)];
      const call = fetchAzureSignPublicKeys({ signKeyIds, clients, maxAttempts });
      call.catch(() => undefined);
      nowMs = 114_999;
      await expect.poll(() => vault.requests.length).toBeGreaterThan(1);
      nowMs = 115_000;
      await expect(call).rejects.toMatchObject({ kind: 'throttled', summary: { operation: 'sign' } });
      expect(vault.requests.length).toBeGreaterThanOrEqual(least);
      expect(vault.requests.length).toBeLessThanOrEqual(most);
    },
  );

  test('a pending fetch of signing keys rejects when the caller aborts (F29)', async () => {
    const { vault, signing, clients } = setup();
    vault.hang();
    const controller = new AbortController();
    const signKeyIds = [vault.idOf(signing, signing.current)];
    const call = fetchAzureSignPublicKeys({ signKeyIds, clients, signal: controller.signal, maxAttempts: 1 });
    call.catch(() => undefined);
    await expect.poll(() => vault.hanging).toBe(1);
    controller.abort();
    await expect(call).rejects.toMatchObject({ kind: 'unavailable', summary: { hint: 'aborted by the caller' } });
  });
});

function spoilKey(change: object): void {
  setup().vault.spoilAnswer((answer) => ({ ...answer, key: { ...Object(answer['key']), ...change } }));
}
