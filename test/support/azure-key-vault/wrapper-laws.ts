import type { KeyWrapper, WrappedKey } from '@sealring/core';
import { expect, test } from 'vitest';
import { context, entry, samplePlaintext } from './vault-setup.ts';

/** A key wrapper to hold to the contract: on the fake, or on a vault of Azure's. */
export interface LawTarget {
  readonly name: string;
  /** Makes a wrapper; asked anew for every law. */
  readonly create: () => Promise<KeyWrapper> | KeyWrapper;
  /** Whether it signs. */
  readonly signs: boolean;
}

/** What holds for every key wrapper of this package, wherever its vault is. */
export function testWrapperLaws({ create, signs }: LawTarget): void {
  test.each([32, 64])('contract 1 and 6: %i bytes come back in an array of their own', async (length) => {
    const keyWrapper = await create();
    const dataKey = samplePlaintext().subarray(0, length);
    const opened = await keyWrapper.unwrap(await keyWrapper.wrap(dataKey, { context }), { context });
    expect(opened).toEqual(samplePlaintext().subarray(0, length));
    expect(opened.byteLength).toBe(opened.buffer.byteLength);
    expect(dataKey).toEqual(samplePlaintext().subarray(0, length));
  });

  test('contract 2: a changed bit is corrupt', async () => {
    const keyWrapper = await create();
    const made = await keyWrapper.wrap(samplePlaintext(), { context });
    for (const at of [0, made.wrapped.length >> 1, made.wrapped.length - 1]) {
      const wrapped = new Uint8Array(made.wrapped);
      wrapped[at] = (wrapped[at] ?? 0) ^ 1;
      await expect(keyWrapper.unwrap({ ...made, wrapped }, { context })).rejects.toMatchObject({ kind: 'corrupt' });
    }
  });

  test('F11: a wrapped key names the exact version that made it', async () => {
    const keyWrapper = await create();
    const made = await keyWrapper.wrap(samplePlaintext(), { context });
    expect(made).toMatchObject({ provider: 'azure-key-vault' });
    expect(made.keyId.replace(/\/[0-9a-f]{32}$/, '')).toBe(keyWrapper.keyId.replace(/\/[0-9a-f]{32}$/, ''));
    expect(made.keyId).toMatch(/\/keys\/[^/]+\/[0-9a-f]{32}$/);
    expect(keyWrapper.owns?.(made)).toBe(true);
  });

  test('a version that the vault does not have is not found, or corrupt where the vault says so', async () => {
    const keyWrapper = await create();
    const made = await keyWrapper.wrap(samplePlaintext(), { context });
    const moved: WrappedKey = { ...made, keyId: made.keyId.replace(/[0-9a-f]{32}$/, 'f'.repeat(32)) };
    const call = keyWrapper.unwrap(moved, { context });
    await expect(call).rejects.toMatchObject({
      name: 'KeyWrapperError',
      kind: expect.stringMatching(/not-found|corrupt/),
    });
  });

  test('what it claims to support is what it has', async () => {
    const keyWrapper = await create();
    expect(keyWrapper.supports).toEqual({ context: false, authenticated: !signs });
    const methods = ['sign', 'verify', 'generate'].filter((name) => Reflect.has(keyWrapper, name));
    expect(methods).toEqual(signs ? ['sign', 'verify'] : []);
  });

  if (!signs) return;
  test('a signature verifies for its entry only', async () => {
    const keyWrapper = await create();
    const signature = (await keyWrapper.sign?.(entry)) ?? new Uint8Array();
    expect(signature).toHaveLength(64);
    expect(keyWrapper.verify?.(entry, signature)).toBe(true);
    expect(keyWrapper.verify?.(entry.slice(1), signature)).toBe(false);
    const changed = new Uint8Array(signature);
    changed[5] = (changed[5] ?? 0) ^ 1;
    expect(keyWrapper.verify?.(entry, changed)).toBe(false);
    expect(keyWrapper.verify?.(entry, signature.subarray(1))).toBe(false);
    expect(keyWrapper.verify?.(entry, new Uint8Array(64))).toBe(false);
  });
}
