import { afterEach, describe, expect, test, vi } from 'vitest';
import type { AzureKeyVaultClients } from '../src/index.ts';
import { CALLS, context, samplePlaintext, useVault } from './vault-setup.ts';

const setup = useVault();

describe('the version that a wrapped key records (F34)', () => {
  afterEach(() => vi.useRealTimers());

  test('wraps from before and after a rotation record their own versions, and can still be unwrapped', async () => {
    const { vault, rsa, wrapper } = setup();
    const first = rsa.current;
    const before = await wrapper().wrap(samplePlaintext(), { context });
    const second = rsa.rotate();
    const keyWrapper = wrapper();
    const after = await keyWrapper.wrap(samplePlaintext(), { context });
    expect([before.keyId, after.keyId]).toEqual([vault.idOf(rsa, first), vault.idOf(rsa, second)]);
    rsa.rotate();
    for (const made of [before, after]) expect(await keyWrapper.unwrap(made, { context })).toEqual(samplePlaintext());
  });

  test('a client without a version reports an id with which an unwrap fails after a rotation', async () => {
    const { vault, rsa, clients } = setup();
    const unversioned = { id: vault.idOf(rsa), name: rsa.name, properties: { vaultUrl: vault.url, name: rsa.name } };
    const client = clients.cryptography(unversioned);
    const call = { abortSignal: new AbortController().signal, onResponse: () => undefined };
    const made = Object(await client.wrapKey('RSA-OAEP-256', samplePlaintext(), call));
    expect(made.keyID).toBe(vault.idOf(rsa));
    rsa.rotate();
    await expect(client.unwrapKey('RSA-OAEP-256', made.result, call)).rejects.toMatchObject({ statusCode: 400 });
  });

  test('the current version is remembered for 300 seconds', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const { rsa, wrapper } = setup();
    const keyWrapper = wrapper();
    const old = rsa.current.id;
    await keyWrapper.wrap(samplePlaintext(), { context });
    const newer = rsa.rotate().id;
    vi.advanceTimersByTime(299_999);
    await keyWrapper.wrap(samplePlaintext(), { context });
    vi.advanceTimersByTime(1);
    await keyWrapper.wrap(samplePlaintext(), { context });
    expect(setup().asked()).toEqual([
      'get current',
      `wrapKey ${old}`,
      `wrapKey ${old}`,
      'get current',
      `wrapKey ${newer}`,
    ]);
  });

  test.each([
    ['another version', (kid: string) => kid.replace(/[0-9a-f]{32}$/, 'e'.repeat(32))],
    ['another key', (kid: string) => kid.replace('/keys/', '/keys/x')],
    ['another vault', (kid: string) => kid.replace('127.0.0.1', 'evil.example')],
    ['no version', (kid: string) => kid.replace(/\/[0-9a-f]{32}$/, '')],
    ['nothing', () => undefined],
    ['a number', () => 7],
  ])('an answer that names %s is corrupt for every call, and the request is not repeated', async (_, change) => {
    const { keyWrapper, made } = await setup().pinned();
    setup().vault.spoilKid(change);
    for (const [operation, run] of CALLS) {
      setup().vault.requests.length = 0;
      const refusal = { name: 'KeyWrapperError', kind: 'corrupt', summary: { operation } };
      await expect(run(keyWrapper, made)).rejects.toMatchObject(refusal);
      expect(setup().vault.requests).toHaveLength(1);
    }
  });

  test.each([
    ['another key', (kid: string) => kid.replace('/keys/', '/keys/x')],
    ['a replaced key', (kid: string) => kid.replace('/wrapping/', '/retired/')],
    ['another vault', (kid: string) => kid.replace('127.0.0.1', 'evil.example')],
    ['no version', (kid: string) => kid.replace(/\/[0-9a-f]{32}$/, '')],
  ])('a current version that names %s is corrupt, and no data key is sent', async (_, change) => {
    const { vault, wrapper } = setup();
    const keyWrapper = wrapper({ alsoUnwrap: [`${vault.url}/keys/retired`] });
    vault.spoilKid(change);
    await expect(keyWrapper.wrap(samplePlaintext(), { context })).rejects.toMatchObject({ kind: 'corrupt' });
    expect(setup().asked()).toEqual(['get current']);
  });
});

describe('adapter rule 4: checks of the answer', () => {
  const plaintexts: [string, (value: Buffer) => Uint8Array][] = [
    ['63 bytes', (value) => value.subarray(1)],
    ['65 bytes', (value) => Buffer.concat([value, Buffer.alloc(1)])],
    ['31 bytes', (value) => value.subarray(33)],
    ['no bytes', () => new Uint8Array()],
    ['64 times the same byte', () => new Uint8Array(64)],
  ];
  test.each(plaintexts)('an unwrapped key of %s is corrupt, and the request is not repeated', async (_, change) => {
    const { keyWrapper, made } = await setup().pinned();
    setup().vault.spoilValue(change);
    await expect(keyWrapper.unwrap(made, { context })).rejects.toMatchObject({ kind: 'corrupt' });
    expect(setup().vault.requests).toHaveLength(1);
  });

  test.each([
    ['an empty body', () => setup().vault.spoilText(() => '')],
    ['null', () => setup().vault.spoilAnswer(() => null)],
    ['{}', () => setup().vault.spoilAnswer(() => ({}))],
    ['a list', () => setup().vault.spoilAnswer(() => [])],
    ['text', () => setup().vault.spoilAnswer(() => 'ok')],
    ['a value that is a number', () => setup().vault.spoilAnswer((answer) => ({ ...answer, value: 7 }))],
    ['no value', () => setup().vault.spoilAnswer((answer) => ({ ...answer, value: undefined }))],
    ['an empty value', () => setup().vault.spoilValue(() => new Uint8Array())],
    ['a value of 1000 bytes', () => setup().vault.spoilValue(() => new Uint8Array(1000).fill(1, 1))],
  ])('a 200 with %s is corrupt for every call, and the request is not repeated', async (_, spoil) => {
    const { keyWrapper, made } = await setup().pinned();
    spoil();
    for (const [, run] of CALLS) {
      setup().vault.requests.length = 0;
      await expect(run(keyWrapper, made)).rejects.toMatchObject({ name: 'KeyWrapperError', kind: 'corrupt' });
      expect(setup().vault.requests).toHaveLength(1);
    }
  });

  test.each([
    ['an empty body', () => setup().vault.spoilText(() => '')],
    ['{}', () => setup().vault.spoilAnswer(() => ({}))],
  ])('an answer of %s to the request for the current version is corrupt', async (_, spoil) => {
    spoil();
    await expect(setup().wrapper().wrap(samplePlaintext(), { context })).rejects.toMatchObject({ kind: 'corrupt' });
    expect(setup().asked()).toEqual(['get current']);
  });

  test('an answer that was cut short is reported as unavailable, and the request is repeated', async () => {
    const { keyWrapper, made } = await setup().pinned({ maxAttempts: 2 });
    setup().vault.spoilText((answer) => answer.slice(0, -1));
    for (const [, run] of CALLS) {
      setup().vault.requests.length = 0;
      await expect(run(keyWrapper, made)).rejects.toMatchObject({ kind: 'unavailable' });
      expect(setup().vault.requests).toHaveLength(2);
    }
  });

  test('adapter rule 5: the buffer of the SDK is overwritten, whether or not its key is accepted', async () => {
    const { clients, wrapper } = setup();
    const handedOut: Uint8Array[] = [];
    const watched: AzureKeyVaultClients = {
      keys: (vaultUrl) => clients.keys(vaultUrl),
      cryptography: (key) => {
        const client = clients.cryptography(key);
        return {
          wrapKey: (algorithm, bytes, call) => client.wrapKey(algorithm, bytes, call),
          sign: (algorithm, bytes, call) => client.sign(algorithm, bytes, call),
          unwrapKey: async (algorithm, bytes, call) => {
            const answer = Object(await client.unwrapKey(algorithm, bytes, call));
            handedOut.push(answer.result);
            return answer;
          },
        };
      },
    };
    const keyWrapper = wrapper({ clients: watched });
    const made = await keyWrapper.wrap(samplePlaintext(), { context });
    const opened = await keyWrapper.unwrap(made, { context });
    setup().vault.spoilValue((value) => value.subarray(1));
    await expect(keyWrapper.unwrap(made, { context })).rejects.toMatchObject({ kind: 'corrupt' });
    setup().vault.heal();
    setup().vault.spoilKid(() => 'another');
    await expect(keyWrapper.unwrap(made, { context })).rejects.toMatchObject({ kind: 'corrupt' });
    expect(handedOut.map((bytes) => [bytes.length, bytes.every((byte) => byte === 0)])).toEqual([
      [64, true],
      [63, true],
      [64, true],
    ]);
    expect(opened).toEqual(samplePlaintext());
  });
});
