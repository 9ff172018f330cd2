import { randomUUID } from 'node:crypto';
import { canonicalJson } from '@sealring/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  CALLS,
  ciphertextOf,
  context,
  hasOpenBao,
  newKey,
  newToken,
  openbao,
  operate,
  rotateKey,
  sampleKey,
  withCiphertext,
  wrapperFor,
} from './fixture.ts';
import { type SpoilingProxy, startSpoilingProxy } from './spoiling-proxy.ts';

let proxy: SpoilingProxy;
beforeAll(async () => {
  proxy = await startSpoilingProxy(openbao.address);
});
afterAll(() => proxy.close());

describe.skipIf(!hasOpenBao)('the transit engine of a real OpenBao', () => {
  test.each(['aes256-gcm96', 'aes128-gcm96', 'chacha20-poly1305', 'xchacha20-poly1305'])(
    'contract 1: with a key of type %s, unwrap returns the wrapped data key, and the key path and version are recorded',
    async (type) => {
      const name = await newKey({ type });
      const keyWrapper = wrapperFor(name);
      const dataKey = sampleKey();
      const made = await keyWrapper.wrap(dataKey, { context });
      expect(made).toMatchObject({ provider: 'vault-transit', keyId: `transit/keys/${name}:v1` });
      expect(ciphertextOf(made)).toMatch(/^vault:v1:/);
      const opened = await keyWrapper.unwrap(made, { context });
      expect(opened).toEqual(sampleKey());
      expect(dataKey).toEqual(sampleKey());
      expect(opened.byteLength).toBe(opened.buffer.byteLength);
    },
  );

  test('the canonical context is the associated data, the ciphertext is Vault’s own, and `datakey` is not called', async () => {
    const name = await newKey();
    const keyWrapper = wrapperFor(name);
    const made = await keyWrapper.wrap(sampleKey(), { context });
    const associated_data = Buffer.from(canonicalJson(context, { sortKeys: true })).toString('base64');
    const ciphertext = ciphertextOf(made);
    const opened = await operate('POST', `transit/decrypt/${name}`, { ciphertext, associated_data });
    expect(opened).toEqual({ plaintext: Buffer.from(sampleKey()).toString('base64') });
    const theirs = await operate(
      'POST',
      `transit/encrypt/${name}`,
      Object(opened) && { ...Object(opened), associated_data },
    );
    expect(await keyWrapper.unwrap(withCiphertext(made, Object(theirs).ciphertext), { context })).toEqual(sampleKey());
    expect(keyWrapper).not.toHaveProperty('generate');
  });

  test('contract 2: a wrap is corrupt with any other context, and an empty context is valid (F25)', async () => {
    const keyWrapper = wrapperFor(await newKey());
    const made = await keyWrapper.wrap(sampleKey(), { context });
    for (const other of [{}, { ...context, 'sealring:ring': 'other' }, { ...context, more: '' }]) {
      await expect(keyWrapper.unwrap(made, { context: other })).rejects.toMatchObject({ kind: 'corrupt' });
    }
    const bare = await keyWrapper.wrap(sampleKey(), { context: {} });
    expect(await keyWrapper.unwrap(bare, { context: {} })).toEqual(sampleKey());
    await expect(keyWrapper.unwrap(bare, { context })).rejects.toMatchObject({ kind: 'corrupt' });
    const reordered = Object.fromEntries(Object.entries(context).toReversed());
    expect(await keyWrapper.unwrap(made, { context: reordered })).toEqual(sampleKey());
  });

  test('contract 2: a flipped bit, a missing character or an extra one is corrupt', async () => {
    const keyWrapper = wrapperFor(await newKey());
    const made = await keyWrapper.wrap(sampleKey(), { context });
    for (let at = 0; at < made.wrapped.length; at++) {
      const wrapped = made.wrapped.map((byte, i) => (i === at ? byte ^ (1 << (at % 8)) : byte));
      await expect(keyWrapper.unwrap({ ...made, wrapped }, { context })).rejects.toMatchObject({ kind: 'corrupt' });
    }
    for (const wrapped of [made.wrapped.slice(0, -1), made.wrapped.slice(0, -4), Uint8Array.of(...made.wrapped, 65)]) {
      await expect(keyWrapper.unwrap({ ...made, wrapped }, { context })).rejects.toMatchObject({ kind: 'corrupt' });
    }
  });

  test('contract 2: another key’s ciphertext under the configured key’s name is corrupt', async () => {
    const keyWrapper = wrapperFor(await newKey());
    const { wrapped } = await wrapperFor(await newKey()).wrap(sampleKey(), { context });
    const forged = { ...(await keyWrapper.wrap(sampleKey(), { context })), wrapped };
    await expect(keyWrapper.unwrap(forged, { context })).rejects.toMatchObject({
      kind: 'corrupt',
      summary: { status: 400 },
    });
  });

  test('after a rotation the next wrap names the new version, and old wraps still unwrap (F11)', async () => {
    const name = await newKey();
    const keyWrapper = wrapperFor(name);
    const wraps = [await keyWrapper.wrap(sampleKey(), { context })];
    for (const version of [2, 3]) {
      await rotateKey(name);
      const made = await keyWrapper.wrap(sampleKey(), { context });
      expect(made.keyId).toBe(`transit/keys/${name}:v${version}`);
      wraps.push(made);
    }
    for (const made of wraps) expect(await keyWrapper.unwrap(made, { context })).toEqual(sampleKey());
  });

  test('a wrap relabelled with another version, in its keyId and its ciphertext, is rejected by Vault', async () => {
    const name = await newKey();
    const keyWrapper = wrapperFor(name);
    const made = await keyWrapper.wrap(sampleKey(), { context });
    const relabelled = {
      ...withCiphertext(made, ciphertextOf(made).replace(':v1:', ':v2:')),
      keyId: `transit/keys/${name}:v2`,
    };
    // Unavailable, because a node that lags behind returns the same for a version that it will have soon.
    await expect(keyWrapper.unwrap(relabelled, { context })).rejects.toMatchObject({ kind: 'unavailable' });
    await rotateKey(name);
    await expect(keyWrapper.unwrap(relabelled, { context })).rejects.toMatchObject({ kind: 'corrupt' });
    expect(await keyWrapper.unwrap(made, { context })).toEqual(sampleKey());
  });

  test('a version that is below min_decryption_version or trimmed is reported as disabled, and later ones still unwrap (F10)', async () => {
    const name = await newKey();
    const keyWrapper = wrapperFor(name);
    const old = await keyWrapper.wrap(sampleKey(), { context });
    await rotateKey(name);
    await operate('POST', `transit/keys/${name}/config`, { min_decryption_version: 2, min_encryption_version: 2 });
    await expect(keyWrapper.unwrap(old, { context })).rejects.toMatchObject({
      kind: 'disabled',
      summary: { provider: 'vault-transit', operation: 'unwrap', status: 400, attempts: 1 },
    });
    await operate('POST', `transit/keys/${name}/config`, { min_decryption_version: 1 });
    expect(await keyWrapper.unwrap(old, { context })).toEqual(sampleKey());
    await operate('POST', `transit/keys/${name}/config`, { min_decryption_version: 2 });
    await operate('POST', `transit/keys/${name}/trim`, { min_available_version: 2 });
    await expect(keyWrapper.unwrap(old, { context })).rejects.toMatchObject({ kind: 'disabled' });
    const made = await keyWrapper.wrap(sampleKey(), { context });
    expect(await keyWrapper.unwrap(made, { context })).toEqual(sampleKey());
  });

  test('a soft-deleted key is reported as disabled, a deleted one as not-found, and a new one under the same name as corrupt (F10)', async () => {
    const name = await newKey();
    const keyWrapper = wrapperFor(name);
    const made = await keyWrapper.wrap(sampleKey(), { context });
    await operate('DELETE', `transit/keys/${name}/soft-delete`);
    for (const [, run] of CALLS) await expect(run(keyWrapper, made)).rejects.toMatchObject({ kind: 'disabled' });
    await operate('POST', `transit/keys/${name}/soft-delete-restore`);
    expect(await keyWrapper.unwrap(made, { context })).toEqual(sampleKey());
    await operate('POST', `transit/keys/${name}/config`, { deletion_allowed: true });
    await operate('DELETE', `transit/keys/${name}`);
    await expect(keyWrapper.unwrap(made, { context })).rejects.toMatchObject({ kind: 'not-found' });
    await operate('POST', `transit/keys/${name}`);
    await expect(keyWrapper.unwrap(made, { context })).rejects.toMatchObject({ kind: 'corrupt' });
  });

  test.each(['rsa-2048', 'ed25519', 'ecdsa-p256'])(
    'a key of type %s is reported as denied, and the hint names the right types',
    async (type) => {
      const made = await wrapperFor(await newKey()).wrap(sampleKey(), { context });
      const name = await newKey({ type });
      for (const [, run] of CALLS) {
        const own = { ...made, keyId: `transit/keys/${name}:v1` };
        await expect(run(wrapperFor(name), own)).rejects.toMatchObject({
          kind: 'denied',
          summary: { hint: expect.stringContaining('aes256-gcm96'), attempts: 1 },
        });
      }
    },
  );

  test.each([{ derived: true }, { derived: true, convergent_encryption: true }])(
    'a key created with %o is reported as denied, and the hint names the setting',
    async (options) => {
      const made = await wrapperFor(await newKey()).wrap(sampleKey(), { context });
      const name = await newKey(options);
      for (const [, run] of CALLS) {
        const own = { ...made, keyId: `transit/keys/${name}:v1` };
        await expect(run(wrapperFor(name), own)).rejects.toMatchObject({
          kind: 'denied',
          summary: { hint: expect.stringContaining('not derived') },
        });
      }
    },
  );

  test('a mount or a namespace that does not exist is reported as not-found', async () => {
    for (const options of [{ mount: 'nothing' }, { namespace: 'nowhere' }]) {
      await expect(wrapperFor('any', options).wrap(sampleKey(), { context })).rejects.toMatchObject({
        kind: 'not-found',
        summary: { status: 404 },
      });
    }
  });

  test('a call to the kv engine, which stores every request, is reported as corrupt, with a hint', async () => {
    const mount = `kv-${randomUUID()}`;
    await operate('POST', `sys/mounts/${mount}`, { type: 'kv' });
    await expect(wrapperFor('any', { mount }).wrap(sampleKey(), { context })).rejects.toMatchObject({
      kind: 'corrupt',
      summary: { hint: expect.stringContaining('transit') },
    });
  });

  test('a call over the quota is throttled, and is retried within maxAttempts', async () => {
    const mount = `limited-${randomUUID()}`;
    await operate('POST', `sys/mounts/${mount}`, { type: 'transit' });
    const name = await newKey({}, mount);
    await operate('POST', `sys/quotas/rate-limit/${mount}`, { path: mount, rate: 1, interval: '1h' });
    const keyWrapper = wrapperFor(name, { mount, address: proxy.address, maxAttempts: 2 });
    await keyWrapper.wrap(sampleKey(), { context });
    const before = proxy.requests.length;
    await expect(keyWrapper.wrap(sampleKey(), { context })).rejects.toMatchObject({
      kind: 'throttled',
      summary: { status: 429, attempts: 2 },
    });
    expect(proxy.requests).toHaveLength(before + 2);
  });

  test('a data key wrapped at one address of Vault is unwrapped at another', async () => {
    const name = await newKey();
    const made = await wrapperFor(name, { address: proxy.address }).wrap(sampleKey(), { context });
    expect(await wrapperFor(name).unwrap(made, { context })).toEqual(sampleKey());
    expect(wrapperFor(name).keyId).toBe(wrapperFor(name, { address: proxy.address }).keyId);
  });

  test('a wrap by a mount in a nested namespace names that namespace, and no other namespace unwraps the wrap', async () => {
    const team = `team-${randomUUID().slice(0, 8)}`;
    await operate('POST', `sys/namespaces/${team}`);
    await operate('POST', `${team}/sys/namespaces/sub`);
    const namespace = `${team}/sub`;
    await operate('POST', `${namespace}/sys/mounts/deep/transit`, { type: 'transit' });
    await operate('POST', `${namespace}/deep/transit/keys/payments`);
    const policy = 'path "deep/transit/*" { capabilities = ["update"] }';
    const token = await newToken(policy, { namespace });
    const keyWrapper = wrapperFor('payments', { namespace, mount: 'deep/transit', token });
    expect(keyWrapper.keyId).toBe(`${namespace}/deep/transit/keys/payments`);
    const made = await keyWrapper.wrap(sampleKey(), { context });
    expect(made.keyId).toBe(`${keyWrapper.keyId}:v1`);
    expect(await keyWrapper.unwrap(made, { context })).toEqual(sampleKey());
    const elsewhere = wrapperFor('payments', { mount: 'deep/transit', token });
    await expect(elsewhere.unwrap(made, { context })).rejects.toMatchObject({ kind: 'corrupt' });
    await expect(elsewhere.wrap(sampleKey(), { context })).rejects.toMatchObject({ kind: 'denied' });
    const retired = wrapperFor(await newKey(), { alsoUnwrap: [keyWrapper.keyId] });
    expect(await retired.unwrap(made, { context })).toEqual(sampleKey());
  });

  test('with alsoUnwrap, a replaced key is used to unwrap, but never to wrap', async () => {
    const [first, second] = [await newKey(), await newKey()];
    const old = await wrapperFor(first).wrap(sampleKey(), { context });
    const keyWrapper = wrapperFor(second, { alsoUnwrap: [`transit/keys/${first}`] });
    expect(keyWrapper.owns?.(old)).toBe(true);
    expect(await keyWrapper.unwrap(old, { context })).toEqual(sampleKey());
    expect((await keyWrapper.wrap(sampleKey(), { context })).keyId).toBe(`transit/keys/${second}:v1`);
  });

  test('a server that ignores associated_data is rejected, because it would wrap without the context', async () => {
    const name = await newKey();
    const made = await wrapperFor(name).wrap(sampleKey(), { context });
    const keyWrapper = wrapperFor(name, { address: proxy.address });
    // OpenBao does not know this parameter, as HashiCorp Vault before 1.13 does not know associated_data.
    proxy.spoilRequests((body) => body.replace('"associated_data"', '"not_yet_associated_data"'));
    try {
      await expect(keyWrapper.wrap(sampleKey(), { context })).rejects.toMatchObject({
        kind: 'denied',
        summary: { hint: expect.stringContaining('1.13') },
      });
      await expect(keyWrapper.unwrap(made, { context })).rejects.toMatchObject({ kind: 'corrupt' });
    } finally {
      proxy.restore();
    }
  });

  test('the token function is called for every request, and its last result is sent', async () => {
    const policy = 'path "transit/*" { capabilities = ["update"] }';
    const name = await newKey();
    const tokens = [await newToken(policy), await newToken(policy), 'no-such-token'];
    let asked = 0;
    const token = async (): Promise<string> => tokens[asked++] ?? '';
    const keyWrapper = wrapperFor(name, { address: proxy.address, token });
    const before = proxy.requests.length;
    const made = await keyWrapper.wrap(sampleKey(), { context });
    await keyWrapper.unwrap(made, { context });
    await expect(keyWrapper.unwrap(made, { context })).rejects.toMatchObject({
      kind: 'denied',
      summary: { status: 403 },
    });
    expect(proxy.requests.slice(before).map(({ headers }) => headers['x-vault-token'])).toEqual(tokens);
  });

  test('an expired or revoked token is denied', async () => {
    const name = await newKey();
    const policy = 'path "transit/*" { capabilities = ["update"] }';
    const made = await wrapperFor(name).wrap(sampleKey(), { context });
    const revoked = await newToken(policy);
    await operate('POST', 'auth/token/revoke', { token: revoked });
    await expect(wrapperFor(name, { token: revoked }).unwrap(made, { context })).rejects.toMatchObject({
      kind: 'denied',
    });
    const short = wrapperFor(name, { token: await newToken(policy, { ttlSeconds: 1 }) });
    await expect
      .poll(() => short.unwrap(made, { context }).catch((error: unknown) => Object(error).kind))
      .toBe('denied');
  });

  test('the time of the service is reported', async () => {
    const dates: Date[] = [];
    const keyWrapper = wrapperFor(await newKey());
    const options = { context, onServiceDate: (date: Date) => void dates.push(date) };
    await keyWrapper.unwrap(await keyWrapper.wrap(sampleKey(), options), options);
    expect(dates).toHaveLength(2);
    for (const date of dates) expect(Math.abs(date.getTime() - Date.now())).toBeLessThan(60_000);
  });
});
