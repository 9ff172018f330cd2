import { describe, expect, test } from 'vitest';
import { context, rejectionOf, SDK_VERSIONS, Status, sampleKey, World } from './world.ts';

describe.each(SDK_VERSIONS)('@google-cloud/kms %s over gRPC', (version) => {
  const world = new World(version);

  test('every status is reported unchanged, after one request', async () => {
    const { keyWrapper } = world.setUp({ maxAttempts: 1 });
    const made = await keyWrapper.wrap(sampleKey(), { context });
    for (const [name, code] of Object.entries(Status)) {
      world.kms.requests.length = 0;
      world.kms.failAlways({ code, details: 'as told' });
      expect(await rejectionOf(keyWrapper.unwrap(made, { context }))).toMatchObject({ summary: { code: name } });
      expect(world.kms.requests).toHaveLength(1);
    }
  });

  test('the violations and reasons of a failure are reported', async () => {
    const { keyId, keyWrapper } = world.setUp();
    const made = await keyWrapper.wrap(sampleKey(), { context });
    world.kms.disable(keyId);
    expect(await rejectionOf(keyWrapper.unwrap(made, { context }))).toMatchObject({
      kind: 'disabled',
      summary: { code: 'KEY_DISABLED' },
    });
    const details = 'as told';
    const violations = ['KEY_ENABLED', 'EXTERNAL_REQUEST_FAILED'].map((type) => ({ type, subject: keyId }));
    world.kms.failAlways({ code: Status.FAILED_PRECONDITION, details, violations });
    expect(await rejectionOf(keyWrapper.wrap(sampleKey(), { context }))).toMatchObject({ kind: 'unavailable' });
    world.kms.failAlways({ code: Status.UNAUTHENTICATED, details, reason: 'ACCESS_TOKEN_EXPIRED' });
    expect(await rejectionOf(keyWrapper.wrap(sampleKey(), { context }))).toMatchObject({
      kind: 'unavailable',
      summary: { code: 'ACCESS_TOKEN_EXPIRED' },
    });
  });

  test('the SDK ends a call at once on an abort, or at the deadline if the call has no signal (F29)', async () => {
    const { keyWrapper } = world.setUp({ callTimeoutSeconds: version === '6.3' ? 60 : 1 });
    const made = await keyWrapper.wrap(sampleKey(), { context });
    const before = world.kms.cancelled;
    world.kms.hang();
    const controller = new AbortController();
    const call = rejectionOf(keyWrapper.unwrap(made, { context, signal: controller.signal }));
    await expect.poll(() => world.kms.hanging).toBe(1);
    controller.abort();
    expect(await call).toMatchObject({ kind: 'unavailable' });
    await expect.poll(() => world.kms.cancelled).toBe(before + 1);
  });

  test('an attempt whose connection is reset fails as unavailable, and the next attempt uses a new connection (F29)', async () => {
    const { keyWrapper } = world.setUp();
    const made = await keyWrapper.wrap(sampleKey(), { context });
    world.kms.hang();
    const { accepted } = world.server;
    const opening = keyWrapper.unwrap(made, { context });
    await expect.poll(() => world.kms.hanging).toBe(1);
    world.server.resetConnections();
    world.kms.heal();
    expect(await opening).toEqual(sampleKey());
    expect(world.server.accepted).toBe(accepted + 1);
  });

  test('concurrent calls run in parallel', async () => {
    const { keyWrapper } = world.setUp();
    world.kms.hang();
    const calls = Promise.all(Array.from({ length: 20 }, () => keyWrapper.wrap(sampleKey(), { context })));
    await expect.poll(() => world.kms.hanging).toBe(20);
    world.kms.heal();
    const wraps = await calls;
    expect(new Set(wraps.map(({ wrapped }) => Buffer.from(wrapped).toString('hex'))).size).toBe(20);
  });
});
