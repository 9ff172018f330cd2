import { getEventListeners } from 'node:events';
import { KeyWrapperError } from '@sealring/core';
import { describe, expect, test } from 'vitest';
// @boundaries-ignore code that the tests of all packages share is not a package
import { sdkClients } from '../../../test/support/azure-key-vault/clients.ts';
import type { AzureKeyVaultClients } from '../src/index.ts';
import { CALLS, context, entry, samplePlaintext, useVault } from './vault-setup.ts';

const setup = useVault();

describe('refusals of the vault', () => {
  test('a disabled key is reported as disabled for unwrap and sign, is not retried, and works again once enabled', async () => {
    const { rsa, signing } = setup();
    const { keyWrapper, made } = await setup().pinned();
    for (const key of [rsa, signing]) key.set({ enabled: false });
    for (const run of [() => keyWrapper.unwrap(made, { context }), async () => keyWrapper.sign?.(entry)]) {
      setup().vault.requests.length = 0;
      await expect(run()).rejects.toMatchObject({
        kind: 'disabled',
        summary: { provider: 'azure-key-vault', code: 'KeyDisabled', status: 403, attempts: 1 },
      });
      expect(setup().vault.requests).toHaveLength(1);
    }
    // The live service still wraps: only an unwrap shows that the key may be used.
    await keyWrapper.wrap(samplePlaintext(), { context });
    rsa.set({ enabled: true });
    await keyWrapper.unwrap(made, { context });
  });

  test('an expired key and one that is not valid yet unwrap but do not wrap', async () => {
    const { rsa } = setup();
    const { keyWrapper, made } = await setup().pinned();
    for (const dates of [{ expires: Date.now() - 1000 }, { expires: undefined, notBefore: Date.now() + 60_000 }]) {
      rsa.set(dates);
      await expect(keyWrapper.wrap(samplePlaintext(), { context })).rejects.toMatchObject({ kind: 'disabled' });
      await keyWrapper.unwrap(made, { context });
    }
  });

  test('a deleted key is reported as not-found, and one that is being deleted as disabled', async () => {
    const { rsa } = setup();
    const { keyWrapper, made } = await setup().pinned();
    rsa.state = 'being deleted';
    await expect(keyWrapper.unwrap(made, { context })).rejects.toMatchObject({ kind: 'disabled' });
    rsa.state = 'deleted';
    await expect(keyWrapper.unwrap(made, { context })).rejects.toMatchObject({ kind: 'not-found' });
  });

  test('a key of another type is a configuration error with a hint', async () => {
    const { vault, signing, wrapper } = setup();
    const keyWrapper = wrapper({ keyId: vault.idOf(signing) });
    await expect(keyWrapper.wrap(samplePlaintext(), { context })).rejects.toMatchObject({
      kind: 'denied',
      summary: { hint: expect.stringContaining('wrapKey') },
    });
  });

  test.each(CALLS)('%s: a denied call is not retried, and its error names the permission', async (operation, run) => {
    const { keyWrapper, made } = await setup().pinned();
    setup().vault.deny();
    const lacks = {
      wrap: 'keys/wrap/action and keys/read',
      unwrap: 'keys/unwrap/action',
      sign: 'keys/sign/action and keys/read',
    };
    const summary = {
      operation,
      code: 'AccessDenied',
      status: 403,
      attempts: 1,
      hint: `the caller lacks ${Reflect.get(lacks, operation)}`,
    };
    await expect(run(keyWrapper, made)).rejects.toMatchObject({ kind: 'denied', summary });
  });

  test('the date of an answer is reported, even if the answer is a refusal', async () => {
    const { keyWrapper, made } = await setup().pinned();
    setup().vault.now = () => Date.now() + 3_600_000;
    const dates: Date[] = [];
    const options = { context, onServiceDate: (date: Date) => dates.push(date) };
    await keyWrapper.unwrap(made, options);
    setup().vault.deny();
    await expect(keyWrapper.unwrap(made, options)).rejects.toMatchObject({ kind: 'denied' });
    expect(dates).toHaveLength(2);
    for (const date of dates) expect(Math.abs(date.getTime() - Date.now() - 3_600_000)).toBeLessThan(60_000);
    setup().vault.now = () => Number.NaN;
    await expect(keyWrapper.unwrap(made, options)).rejects.toMatchObject({ kind: 'denied' });
    expect(dates).toHaveLength(2);
  });

  test('an unknown token is denied', async () => {
    const { vault, wrapper } = setup();
    const keyWrapper = wrapper({ clients: sdkClients(vault, 'nobody') });
    await expect(keyWrapper.wrap(samplePlaintext(), { context })).rejects.toMatchObject({
      kind: 'denied',
      summary: { status: 401 },
    });
  });

  test('a call whose credential gives no token is reported as unavailable, and makes no request', async () => {
    const { vault, rsa, wrapper } = setup();
    const credential = {
      getToken: () => Promise.reject(Object.assign(new Error('canary'), { name: 'CredentialUnavailableError' })),
    };
    const keyWrapper = wrapper({ clients: sdkClients(setup().vault, credential), maxAttempts: 1 });
    await expect(keyWrapper.wrap(samplePlaintext(), { context })).rejects.toMatchObject({
      kind: 'unavailable',
      summary: { code: 'CredentialUnavailableError', hint: expect.stringContaining('credential') },
    });
    expect(vault.requests).toEqual([]);
    expect(rsa.state).toBe('present');
  });

  test.each([
    [403, '', 'denied'],
    [403, '<html>no</html>', 'denied'],
    [401, '', 'denied'],
    [404, '', 'not-found'],
    [409, '', 'disabled'],
    [429, '', 'throttled'],
    [503, '', 'unavailable'],
    [502, '<html>bad gateway</html>', 'unavailable'],
    [400, '', 'unavailable'],
  ])('a status of %i with the body %j, which the SDK turns into its own error, is %s', async (status, body, kind) => {
    const { keyWrapper, made } = await setup().pinned({ maxAttempts: 1 });
    setup().vault.fail({ status, body });
    for (const [, run] of CALLS) {
      await expect(run(keyWrapper, made)).rejects.toMatchObject({ kind, summary: { status } });
    }
  });

  test.each(CALLS)('%s: a call that is answered after two throttled attempts succeeds', async (_, run) => {
    const { keyWrapper, made } = await setup().pinned();
    setup().vault.throttle({ times: 2 });
    await run(keyWrapper, made);
    expect(setup().vault.requests).toHaveLength(3);
  });

  test.each(CALLS)(
    '%s: a vault that throttles every attempt is reported as throttled after maxAttempts requests (F29)',
    async (_, run) => {
      const { keyWrapper, made } = await setup().pinned({ maxAttempts: 2 });
      setup().vault.throttle();
      await expect(run(keyWrapper, made)).rejects.toMatchObject({
        kind: 'throttled',
        summary: { attempts: 2, code: 'Throttled', status: 429, requestId: expect.stringMatching(/^[0-9a-f-]{36}$/) },
      });
      expect(setup().vault.requests).toHaveLength(2);
    },
  );

  test.each(CALLS)('%s: a cut connection makes a call unavailable after a retry', async (_, run) => {
    const { keyWrapper, made } = await setup().pinned({ maxAttempts: 2 });
    setup().vault.reset();
    await expect(run(keyWrapper, made)).rejects.toMatchObject({
      kind: 'unavailable',
      summary: { attempts: 2, code: 'ECONNRESET' },
    });
    expect(setup().vault.requests).toHaveLength(2);
  });
});

test('the key id that a client reports is checked if the client shows no HTTP answers', async () => {
  const { clients, wrapper } = setup();
  const silent = (spoil: (answer: object) => object): AzureKeyVaultClients => ({
    keys: (vaultUrl) => clients.keys(vaultUrl),
    cryptography: (key) => ({
      wrapKey: async (algorithm, bytes, { abortSignal }) => {
        const call = { abortSignal, onResponse: () => undefined };
        return spoil(Object(await clients.cryptography(key).wrapKey(algorithm, bytes, call)));
      },
      unwrapKey: (algorithm, bytes, { abortSignal }) =>
        clients.cryptography(key).unwrapKey(algorithm, bytes, { abortSignal, onResponse: () => undefined }),
      sign: (algorithm, bytes, call) => clients.cryptography(key).sign(algorithm, bytes, call),
    }),
  });
  const keyWrapper = wrapper({ clients: silent((answer) => answer) });
  const made = await keyWrapper.wrap(samplePlaintext(), { context });
  expect(await keyWrapper.unwrap(made, { context })).toEqual(samplePlaintext());
  const other = wrapper({ clients: silent((answer) => ({ ...answer, keyID: made.keyId.slice(0, -1) })) });
  await expect(other.wrap(samplePlaintext(), { context })).rejects.toMatchObject({ kind: 'corrupt' });
});

describe('the end of every call (F29)', () => {
  test.each(CALLS)(
    '%s: a vault that hangs is unavailable after maxAttempts deadlines, and its connection is closed',
    async (_, run) => {
      const { keyWrapper, made } = await setup().pinned({ callTimeoutSeconds: 0.1, maxAttempts: 2 });
      setup().vault.hang();
      await expect(run(keyWrapper, made)).rejects.toMatchObject({ kind: 'unavailable', summary: { attempts: 2 } });
      await expect.poll(() => setup().vault.hanging).toBe(0);
    },
  );

  test.each(CALLS)('contract 5: %s: an abort ends a call immediately, without a retry', async (_, run) => {
    const { keyWrapper, made } = await setup().pinned();
    setup().vault.hang();
    const controller = new AbortController();
    const call = run(keyWrapper, made, { signal: controller.signal });
    call.catch(() => undefined);
    await expect.poll(() => setup().vault.hanging).toBe(1);
    controller.abort();
    await expect(call).rejects.toMatchObject({ kind: 'unavailable', summary: { hint: 'aborted by the caller' } });
    await expect.poll(() => setup().vault.hanging).toBe(0);
    expect(setup().vault.requests).toHaveLength(1);
  });

  test.each(CALLS)('contract 5: %s: with a signal that is already aborted, no request is made', async (_, run) => {
    const { keyWrapper, made } = await setup().pinned();
    await expect(run(keyWrapper, made, { signal: AbortSignal.abort() })).rejects.toMatchObject({ kind: 'unavailable' });
    expect(setup().vault.requests).toEqual([]);
  });

  test('a call whose credential hangs ends at the deadline', async () => {
    const { wrapper } = setup();
    const credential = { getToken: () => new Promise<never>(() => undefined) };
    const keyWrapper = wrapper({
      clients: sdkClients(setup().vault, credential),
      callTimeoutSeconds: 0.1,
      maxAttempts: 1,
    });
    await expect(keyWrapper.wrap(samplePlaintext(), { context })).rejects.toMatchObject({ kind: 'unavailable' });
  });

  test('a data key that is unwrapped after the deadline is overwritten', async () => {
    const { clients, wrapper } = setup();
    const made = await wrapper().wrap(samplePlaintext(), { context });
    const result = samplePlaintext();
    let answer = (): void => undefined;
    const late: AzureKeyVaultClients = {
      keys: (vaultUrl) => clients.keys(vaultUrl),
      cryptography: (key) => ({
        wrapKey: (algorithm, bytes, call) => clients.cryptography(key).wrapKey(algorithm, bytes, call),
        sign: (algorithm, bytes, call) => clients.cryptography(key).sign(algorithm, bytes, call),
        unwrapKey: () => new Promise((resolve) => (answer = () => resolve({ result, keyID: made.keyId }))),
      }),
    };
    const keyWrapper = wrapper({ clients: late, callTimeoutSeconds: 0.02, maxAttempts: 1 });
    await expect(keyWrapper.unwrap(made, { context })).rejects.toMatchObject({ kind: 'unavailable' });
    answer();
    await new Promise(setImmediate);
    expect(result).toEqual(new Uint8Array(64));
  });

  test('no listener remains on a signal that many calls share', async () => {
    const { keyWrapper, made } = await setup().pinned();
    const { signal } = new AbortController();
    setup().vault.throttle({ times: 1 });
    for (const [, run] of CALLS) await run(keyWrapper, made, { signal });
    setup().vault.deny();
    for (const [, run] of CALLS)
      await expect(run(keyWrapper, made, { signal })).rejects.toBeInstanceOf(KeyWrapperError);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  test('close() ends calls in progress and refuses later ones', async () => {
    const { keyWrapper, made } = await setup().pinned({ maxAttempts: 1 });
    setup().vault.hang();
    const call = keyWrapper.unwrap(made, { context });
    call.catch(() => undefined);
    await expect.poll(() => setup().vault.hanging).toBe(1);
    await keyWrapper.close?.();
    const closed = { kind: 'unavailable', summary: { hint: expect.stringContaining('closed') } };
    await expect(call).rejects.toMatchObject(closed);
    setup().vault.heal();
    for (const [, run] of CALLS) await expect(run(keyWrapper, made)).rejects.toMatchObject(closed);
    expect(setup().vault.requests).toHaveLength(1);
  });
});
