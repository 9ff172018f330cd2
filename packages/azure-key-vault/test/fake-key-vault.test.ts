import { spawn } from 'node:child_process';
import { createHash, verify } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { request } from 'node:https';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
// @boundaries-ignore code that the tests of all packages share is not a package
import { sdkClients } from '../../../test/support/azure-key-vault/clients.ts';
// @boundaries-ignore code that the tests of all packages share is not a package
import { type FakeKeyVault, FakeKeyVault as Vault } from '../../../test/support/azure-key-vault/fake-key-vault.ts';
// @boundaries-ignore code that the tests of all packages share is not a package
import type { KeyVersion, VaultKey } from '../../../test/support/azure-key-vault/vault-key.ts';
import { azureKeyVaultKeyWrapper, fetchAzureSignPublicKeys } from '../src/index.ts';
import { context, samplePlaintext, useVault } from './vault-setup.ts';

const SERVE = fileURLToPath(new URL('../../../test/support/azure-key-vault/serve.ts', import.meta.url));

const setup = useVault();
const digest = createHash('sha256').update('entry').digest();

type Client = ReturnType<ReturnType<typeof sdkClients>['cryptography']>;

function clientFor(key: VaultKey, version: KeyVersion = key.current, token = setup().token): Client {
  const { vault } = setup();
  const properties = { vaultUrl: vault.url, name: key.name };
  return sdkClients(vault, token).cryptography({ id: vault.idOf(key, version), name: key.name, properties });
}

async function refusalOf(call: Promise<unknown>): Promise<unknown> {
  try {
    await call;
  } catch (error) {
    const { statusCode, code, details } = Object(error);
    return { status: statusCode, code, inner: details?.error?.innerError?.code };
  }
  throw new Error('it was expected to fail');
}

/** Sends a hand-written request that no SDK would send. */
async function send(vault: FakeKeyVault, method: string, path: string, headers = {}): Promise<[number, string]> {
  const sent = request(`${vault.url}${path}`, { method, headers, ca: vault.certificate });
  sent.end();
  return new Promise((resolve, reject) => {
    sent.once('error', reject);
    sent.once('response', (response) => {
      text(response).then((body) => resolve([response.statusCode ?? 0, body]), reject);
    });
  });
}

describe('the fake Key Vault, used by the real SDK', () => {
  test('each client gets the challenge before it sends a body', async () => {
    const { vault, rsa } = setup();
    const before = vault.challenges;
    const client = clientFor(rsa);
    const { result } = await client.wrapKey('RSA-OAEP-256', samplePlaintext());
    await client.unwrapKey('RSA-OAEP-256', result);
    expect(vault.challenges).toBe(before + 1);
    expect(vault.unauthenticatedBytes).toBe(0);
  });

  test.each([
    ['RSA-OAEP-256', 256],
    ['A256KW', 72],
  ] as const)('%s wraps 64 bytes, and unwraps them only with the same version', async (algorithm, length) => {
    const { rsa, hsm, vault } = setup();
    const key = algorithm === 'A256KW' ? hsm : rsa;
    const client = clientFor(key);
    const { result } = await client.wrapKey(algorithm, samplePlaintext());
    expect(result).toHaveLength(length);
    expect(new Uint8Array((await client.unwrapKey(algorithm, result)).result)).toEqual(samplePlaintext());
    const spoilt = new Uint8Array(result);
    spoilt[20] = (spoilt[20] ?? 0) ^ 1;
    const corrupt = { status: 400, code: 'BadParameter', inner: undefined };
    expect(await refusalOf(client.unwrapKey(algorithm, spoilt))).toEqual(corrupt);
    expect(await refusalOf(clientFor(key, key.rotate()).unwrapKey(algorithm, result))).toEqual(corrupt);
    expect(vault.requests.map(({ operation }) => operation)).toEqual([
      'wrapKey',
      'unwrapKey',
      'unwrapKey',
      'unwrapKey',
    ]);
  });

  test('ES256 signs only a digest, and node:crypto verifies the signature of the message', async () => {
    const { signing } = setup();
    const client = clientFor(signing);
    const { publicKey } = signing.current;
    if (publicKey === undefined) throw new Error('an EC key has a public key');
    for (let i = 0; i < 8; i++) {
      const { result } = await client.sign('ES256', digest);
      expect(result).toHaveLength(64);
      expect(verify('sha256', Buffer.from('entry'), { key: publicKey, dsaEncoding: 'ieee-p1363' }, result)).toBe(true);
    }
    expect(await refusalOf(client.sign('ES256', digest.subarray(1)))).toMatchObject({ status: 400 });
  });

  test('a request for a key without a version gets the current version, and each version has its own identifier', async () => {
    const { vault, rsa, token } = setup();
    const old = rsa.current;
    const newer = rsa.rotate();
    const keys = sdkClients(vault, token).keys(vault.url);
    expect(await keys.getKey(rsa.name)).toMatchObject({ id: vault.idOf(rsa, newer), keyType: 'RSA' });
    expect(await keys.getKey(rsa.name, { version: old.id })).toMatchObject({ id: vault.idOf(rsa, old) });
    expect(await refusalOf(keys.getKey(rsa.name, { version: 'f'.repeat(32) }))).toMatchObject({ status: 404 });
    expect(await refusalOf(keys.getKey('no-such-key'))).toMatchObject({ status: 404, code: 'KeyNotFound' });
  });

  test('an algorithm or an operation that the key does not support is refused', async () => {
    const { rsa, hsm, signing } = setup();
    expect(await refusalOf(clientFor(rsa).wrapKey('A256KW', samplePlaintext()))).toMatchObject({ status: 400 });
    expect(await refusalOf(clientFor(hsm).wrapKey('RSA-OAEP-256', samplePlaintext()))).toMatchObject({ status: 400 });
    expect(await refusalOf(clientFor(signing).wrapKey('RSA-OAEP-256', samplePlaintext()))).toMatchObject({
      status: 403,
      inner: 'KeyOperationForbidden',
    });
    rsa.current.operations = ['unwrapKey'];
    expect(await refusalOf(clientFor(rsa).wrapKey('RSA-OAEP-256', samplePlaintext()))).toMatchObject({ status: 403 });
    rsa.current.operations = ['wrapKey', 'unwrapKey'];
  });

  test('a disabled key wraps but neither unwraps nor signs, and one outside its dates only unwraps', async () => {
    const { rsa, signing } = setup();
    const client = clientFor(rsa);
    const { result } = await client.wrapKey('RSA-OAEP-256', samplePlaintext());
    rsa.set({ enabled: false });
    signing.set({ enabled: false });
    const disabled = { status: 403, code: 'Forbidden', inner: 'KeyDisabled' };
    await client.wrapKey('RSA-OAEP-256', samplePlaintext());
    expect(await refusalOf(client.unwrapKey('RSA-OAEP-256', result))).toEqual(disabled);
    expect(await refusalOf(clientFor(signing).sign('ES256', digest))).toEqual(disabled);
    for (const [dates, inner] of [
      [{ expires: Date.now() - 1000 }, 'KeyExpired'],
      [{ notBefore: Date.now() + 60_000, expires: undefined }, 'KeyNotYetValid'],
    ] as const) {
      rsa.set({ enabled: true, ...dates });
      await client.unwrapKey('RSA-OAEP-256', result);
      expect(await refusalOf(client.wrapKey('RSA-OAEP-256', samplePlaintext()))).toMatchObject({ status: 403, inner });
    }
  });

  test('requests are answered with 404 for a deleted key, and with 409 for a key that is being deleted', async () => {
    const { rsa } = setup();
    rsa.state = 'being deleted';
    expect(await refusalOf(clientFor(rsa).wrapKey('RSA-OAEP-256', samplePlaintext()))).toEqual({
      status: 409,
      code: 'Conflict',
      inner: 'ObjectIsBeingDeleted',
    });
    rsa.state = 'deleted';
    expect(await refusalOf(clientFor(rsa).wrapKey('RSA-OAEP-256', samplePlaintext()))).toMatchObject({ status: 404 });
  });

  test('a token has the permissions it was issued with, and an unknown token has none', async () => {
    const { vault, rsa } = setup();
    const token = vault.issueToken(['wrapKey']);
    const { result } = await clientFor(rsa, rsa.current, token).wrapKey('RSA-OAEP-256', samplePlaintext());
    const unwrap = (): Promise<unknown> => clientFor(rsa, rsa.current, token).unwrapKey('RSA-OAEP-256', result);
    expect(await refusalOf(unwrap())).toMatchObject({ status: 403, inner: 'AccessDenied' });
    vault.setRights(token, ['unwrapKey']);
    await unwrap();
    vault.forgetToken(token);
    expect(await refusalOf(unwrap())).toMatchObject({ status: 401, code: 'Unauthorized' });
  });

  test('refusals, throttling, resets and corrupted answers are injected for as many requests as configured', async () => {
    const { vault, rsa } = setup();
    const client = clientFor(rsa);
    const wrap = (): ReturnType<Client['wrapKey']> => client.wrapKey('RSA-OAEP-256', samplePlaintext());
    const { result } = await wrap();
    vault.throttle({ times: 1, only: ['wrapKey'] });
    await client.unwrapKey('RSA-OAEP-256', result);
    expect(await refusalOf(wrap())).toMatchObject({ status: 429 });
    await wrap();
    vault.reset({ times: 1 });
    expect(await refusalOf(wrap())).toMatchObject({ code: 'ECONNRESET' });
    vault.spoilValue((value) => value.subarray(1));
    expect((await client.unwrapKey('RSA-OAEP-256', result)).result).toHaveLength(63);
    vault.heal();
    vault.spoilText((answer) => answer.slice(0, -1));
    expect(await refusalOf(wrap())).toMatchObject({ code: 'PARSE_ERROR' });
    vault.heal();
    vault.fail({ status: 503, body: '' });
    expect(await refusalOf(wrap())).toEqual({ status: undefined, code: undefined, inner: undefined });
    vault.heal();
    await wrap();
  });

  test('a request is counted as hanging until its connection is closed', async () => {
    const { vault, rsa } = setup();
    vault.hang();
    const controller = new AbortController();
    const call = refusalOf(
      clientFor(rsa).wrapKey('RSA-OAEP-256', samplePlaintext(), { abortSignal: controller.signal }),
    );
    await expect.poll(() => vault.hanging).toBe(1);
    controller.abort();
    await call;
    await expect.poll(() => vault.hanging).toBe(0);
  });

  test('refuses requests that no client sends', async () => {
    const { vault, rsa, token } = setup();
    const headers = { authorization: `Bearer ${token}` };
    expect(await send(vault, 'GET', '/keys')).toMatchObject([401, expect.any(String)]);
    for (const [method, path] of [
      ['GET', `/keys/${rsa.name}`],
      ['PUT', `/keys/${rsa.name}?api-version=7.6`],
      ['POST', `/keys/${rsa.name}/${rsa.current.id}/destroy?api-version=7.6`],
      ['POST', `/keys/${rsa.name}/${rsa.current.id}/wrapkey?api-version=7.6`],
    ] as const) {
      expect(await send(vault, method, path, headers)).toMatchObject([400, expect.stringContaining('BadParameter')]);
    }
  });

  test('a client trusts the fake vault only if it was given the vault’s certificate', async () => {
    await using vault = await Vault.start();
    const sent = request(`${vault.url}/keys/x`);
    const error = await new Promise((resolve) => {
      sent.once('error', resolve);
      sent.end();
    });
    expect(error).toMatchObject({ code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
  });
});

describe('the fake Key Vault for other processes', () => {
  test('prints its address and its contents, and ends on a signal', async () => {
    const server = spawn(process.execPath, [SERVE], { stdio: ['ignore', 'pipe', 'inherit'] });
    try {
      const lines: string[] = [];
      for await (const line of createInterface({ input: server.stdout })) if (lines.push(line) === 5) break;
      const said = (word: string): string =>
        lines.find((line) => line.startsWith(`${word} `))?.slice(word.length + 1) ?? '';
      const certificate = readFileSync(said('Certificate'), 'utf8');
      const clients = sdkClients({ certificate }, said('Token'));
      const signKeyId = said('Signing key');
      const signPublicKeys = await fetchAzureSignPublicKeys({ signKeyIds: [signKeyId], clients });
      const keyWrapper = azureKeyVaultKeyWrapper({ keyId: said('Key'), signKeyId, signPublicKeys, clients });
      const made = await keyWrapper.wrap(samplePlaintext(), { context });
      expect(await keyWrapper.unwrap(made, { context })).toEqual(samplePlaintext());
      expect(made.keyId.startsWith(said('Running on'))).toBe(true);
      const ended = once(server, 'exit');
      server.kill('SIGTERM');
      expect(await ended).toEqual([0, null]);
      expect(existsSync(said('Certificate'))).toBe(false);
    } finally {
      server.kill('SIGKILL');
    }
  });
});
