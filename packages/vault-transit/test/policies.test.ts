import { createKmsCodec, type KeyWrapper, memoryRing, type WrappedKey } from '@sealring/core';
import { beforeAll, describe, expect, test } from 'vitest';
import { context, hasOpenBao, newKey, newToken, operate, sampleKey, wrapperFor } from './fixture.ts';

/** The permissions of the README's roles, one by one. */
const rightTo = (operation: string, name: string): string =>
  `path "transit/${operation}/${name}" { capabilities = ["update"] }`;
const MEMBER = ['encrypt', 'decrypt'];
const READER = ['decrypt'];

let name: string;
let made: WrappedKey;

async function wrapperWith(rights: readonly string[]): Promise<KeyWrapper> {
  return wrapperFor(name, { token: await newToken(rights.join('\n')) });
}

describe.skipIf(!hasOpenBao)('least privilege, as OpenBao enforces it', () => {
  beforeAll(async () => {
    name = await newKey();
    made = await wrapperFor(name).wrap(sampleKey(), { context });
  });

  test('a member creates, reads and rotates a ring with the permissions to encrypt and to decrypt', async () => {
    const keyWrapper = await wrapperWith(MEMBER.map((operation) => rightTo(operation, name)));
    const ring = memoryRing();
    await using codec = await createKmsCodec({ keyWrapper, ring, create: 'now' });
    await codec.rotate();
    expect(codec.health().keys).toHaveLength(2);
  });

  test('a reader unseals with the permission to decrypt, and cannot wrap', async () => {
    const ring = memoryRing();
    await using member = await createKmsCodec({ keyWrapper: wrapperFor(name), ring, create: 'now' });
    const keyWrapper = await wrapperWith(READER.map((operation) => rightTo(operation, name)));
    await using reader = await createKmsCodec({ keyWrapper, ring, role: 'reader' });
    const payload = new TextEncoder().encode('state');
    expect(reader.unseal(member.seal(payload))).toEqual(payload);
    await expect(keyWrapper.wrap(sampleKey(), { context })).rejects.toMatchObject({ kind: 'denied' });
  });

  test.each([
    ['encrypt', 'wrap'],
    ['decrypt', 'unwrap'],
  ])('a caller without the permission to %s is denied %s, and the other call still works', async (taken, call) => {
    const keyWrapper = await wrapperWith(
      MEMBER.filter((right) => right !== taken).map((right) => rightTo(right, name)),
    );
    const kinds = {
      wrap: await kindOf(keyWrapper.wrap(sampleKey(), { context })),
      unwrap: await kindOf(keyWrapper.unwrap(made, { context })),
    };
    expect(kinds).toEqual({ wrap: 'works', unwrap: 'works', [call]: 'denied' });
  });

  test('permissions on another key do not apply to the configured key', async () => {
    const other = await newKey();
    const keyWrapper = await wrapperWith(MEMBER.map((operation) => rightTo(operation, other)));
    await expect(keyWrapper.wrap(sampleKey(), { context })).rejects.toMatchObject({ kind: 'denied' });
    await expect(keyWrapper.unwrap(made, { context })).rejects.toMatchObject({ kind: 'denied' });
  });

  test('a member with a wrong key name is denied, and creates no key by accident', async () => {
    const missing = `missing-${name}`;
    const token = await newToken(MEMBER.map((operation) => rightTo(operation, missing)).join('\n'));
    await expect(wrapperFor(missing, { token }).wrap(sampleKey(), { context })).rejects.toMatchObject({
      kind: 'denied',
    });
    await expect(operate('GET', `transit/keys/${missing}`)).rejects.toThrow('404');
    // The policy must not grant `create`: with it, the same call creates the key.
    const careless = await newToken(`path "transit/encrypt/${missing}" { capabilities = ["create", "update"] }`);
    await wrapperFor(missing, { token: careless }).wrap(sampleKey(), { context });
    await expect(operate('GET', `transit/keys/${missing}`)).resolves.toMatchObject({ latest_version: 1 });
  });

  test('a policy bound to one ring’s context allows wraps and unwraps for that ring only (F25)', async () => {
    const rings = { payments: memoryRing(), refunds: memoryRing() };
    const prefix = ringPrefix('payments');
    const bound = (operation: string, parameter: string): string => `
      path "transit/${operation}/${name}" {
        capabilities = ["update"]
        required_parameters = ["associated_data"]
        allowed_parameters = { "${parameter}" = [] "associated_data" = ["${prefix}*"] }
      }`;
    const keyWrapper = await wrapperWith([bound('encrypt', 'plaintext'), bound('decrypt', 'ciphertext')]);
    await using codec = await createKmsCodec({ keyWrapper, ring: rings.payments, ringName: 'payments', create: 'now' });
    expect(codec.health().status).toBe('ok');
    for (const ringName of ['refunds', 'payments2']) {
      const founding = createKmsCodec({ keyWrapper, ring: memoryRing(), ringName, create: 'now' });
      await expect(founding).rejects.toMatchObject({ kind: 'denied' });
    }
    await using refunds = await createKmsCodec({
      keyWrapper: wrapperFor(name),
      ring: rings.refunds,
      ringName: 'refunds',
      create: 'now',
    });
    expect(refunds.health().status).toBe('ok');
    const spying = createKmsCodec({ keyWrapper, ring: rings.refunds, ringName: 'refunds', role: 'reader' });
    await expect(spying).rejects.toMatchObject({ kind: 'denied' });
  });

  test('rotating the transit key needs one permission, which allows nothing else', async () => {
    const token = await newToken(`path "transit/keys/${name}/rotate" { capabilities = ["update"] }`);
    await operate('POST', `transit/keys/${name}/rotate`, {}, token);
    const keyWrapper = wrapperFor(name, { token });
    await expect(keyWrapper.unwrap(made, { context })).rejects.toMatchObject({ kind: 'denied' });
    expect((await wrapperFor(name).wrap(sampleKey(), { context })).keyId).toBe(`transit/keys/${name}:v2`);
  });
});

/** The same as in the README: the base64 of the start of the context, up to whole groups of three bytes. */
function ringPrefix(ringName: string): string {
  const start = Buffer.from(`{"sealring:purpose":"data-key","sealring:ring":"${ringName}","sealring:times":"`);
  return start.subarray(0, start.length - (start.length % 3)).toString('base64');
}

function kindOf(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => 'works',
    (error: unknown) => Object(error).kind,
  );
}
