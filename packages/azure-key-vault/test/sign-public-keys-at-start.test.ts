import { KeyWrapperError, memoryRing } from '@sealring/core';
import { describe, expect, test } from 'vitest';
import { createAzureKeyVaultCodec } from '../src/index.ts';
import { useVault } from './vault-setup.ts';

const setup = useVault();

/** Starts a codec that fetches the public key of its signing key. */
async function start(startTimeoutSeconds: number, signal?: AbortSignal): Promise<{ error: unknown; seconds: number }> {
  const { vault, rsa, signing, clients } = setup();
  const startedAt = performance.now();
  let error: unknown;
  try {
    const codec = await createAzureKeyVaultCodec({
      keyId: vault.idOf(rsa),
      signKeyId: vault.idOf(signing, signing.current),
      clients,
      ring: memoryRing(),
      create: 'now',
      policy: { startTimeoutSeconds },
      ...(signal !== undefined && { signal }),
    });
    await codec.close();
  } catch (thrown) {
    error = thrown;
  }
  return { error, seconds: (performance.now() - startedAt) / 1_000 };
}

function summaryOf(error: unknown): KeyWrapperError['summary'] {
  if (error instanceof KeyWrapperError) return error.summary;
  throw new Error(`no KeyWrapperError: ${String(error)}`);
}

describe('a start that fetches signing keys within startTimeoutSeconds', () => {
  test('gives up on a throttling vault when the time is up, and reports its last answer and the number of attempts', async () => {
    setup().vault.throttle();
    const { error, seconds } = await start(1.5);
    expect(error).toMatchObject({ kind: 'throttled' });
    expect(summaryOf(error)).toMatchObject({ status: 429 });
    expect(summaryOf(error).attempts).toBeGreaterThan(2);
    expect(seconds).toBeGreaterThan(1.4);
    expect(seconds).toBeLessThan(4);
  });

  test('gives up on a hanging vault when the time is up', async () => {
    setup().vault.hang();
    const { error, seconds } = await start(0.4);
    expect(error).toMatchObject({ kind: 'unavailable' });
    expect(summaryOf(error).hint).toBe('no answer within startTimeoutSeconds');
    expect(seconds).toBeGreaterThan(0.3);
    expect(seconds).toBeLessThan(4);
  });

  test('reports the last answer of a vault that hangs after it has throttled', async () => {
    const { vault } = setup();
    vault.throttle();
    const started = start(0.8);
    await expect.poll(() => vault.requests.length).toBeGreaterThan(0);
    vault.hang();
    expect((await started).error).toMatchObject({ kind: 'throttled' });
  });

  test('continues as soon as the vault answers again', async () => {
    const { vault } = setup();
    vault.throttle();
    const started = start(30);
    await expect.poll(() => vault.requests.length).toBeGreaterThan(1);
    vault.heal();
    expect((await started).error).toBeUndefined();
  });

  test('gives up at once on a vault that denies access', async () => {
    setup().vault.deny();
    const { error } = await start(60);
    expect(error).toMatchObject({ kind: 'denied' });
    expect(setup().vault.requests).toHaveLength(1);
  });

  test('a start that fetches signing keys ends at once when the caller aborts', async () => {
    const { vault } = setup();
    vault.hang();
    const controller = new AbortController();
    const started = start(60, controller.signal);
    await expect.poll(() => vault.hanging).toBe(1);
    controller.abort();
    const { error } = await started;
    expect(summaryOf(error).hint).toBe('aborted by the caller');
  });
});

test('an invalid policy is rejected before the vault is called', async () => {
  expect((await start(-1)).error).toBeInstanceOf(RangeError);
  expect(setup().vault.requests).toEqual([]);
});
