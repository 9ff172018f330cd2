import { createKmsCodec, type KeyWrapper, KeyWrapperError, memoryRing, type WrappedKey } from '@sealring/core';
import { afterAll, expect, test } from 'vitest';

/** Wrappers of two KMS keys of one service, both allowed to wrap and unwrap. */
export interface WrapperTarget {
  readonly own: KeyWrapper;
  readonly other: KeyWrapper;
}

interface Subject extends WrapperTarget {
  /** What the ring hands over: a data key, and its hash of the context where the service binds none. */
  readonly bytes: Uint8Array;
  /** These bytes, wrapped by `own`. */
  readonly made: WrappedKey;
}

/** The ring's name in every call, for a policy that binds a role to one ring. */
const RING_NAME = 'live-test';
const context = { 'sealring:ring': RING_NAME, 'sealring:purpose': 'data-key' };

// One attempt: a refusal is not tried again. None: it was refused before any call.
const CORRUPT = { kind: 'corrupt', attempts: 1 };
const CORRUPT_WITHOUT_CALL = { kind: 'corrupt', attempts: undefined };

/**
 * What every key wrapper promises (core, `KeyWrapper`), tried with some twenty calls on whatever answers: an emulator
 * or the real service. Nothing in it is of one provider, and nothing about a KMS key is changed.
 */
export function keyWrapperLaws(start: () => Promise<WrapperTarget>): void {
  let started: Promise<Subject> | undefined;
  /** Not in a hook, whose failure would leave the tests out: each is to fail by itself. */
  function subject(): Promise<Subject> {
    started ??= setUp(start);
    return started;
  }
  afterAll(async () => {
    const [target] = await Promise.allSettled([started]);
    if (target.status === 'rejected') return;
    await target.value?.own.close?.();
    await target.value?.other.close?.();
  });

  test('contract 1: a data key comes back as it was, in bytes of the caller’s own', async () => {
    const { own, made, bytes } = await subject();
    const first = await own.unwrap(made, { context });
    const second = await own.unwrap(made, { context });
    first.fill(0);
    expect(second).toEqual(bytes);
  });

  test('contract 1: so does one that the service made, where it makes them', async () => {
    const { own, made, bytes } = await subject();
    const { dataKey, wrapped } = (await own.generate?.({ context })) ?? { dataKey: bytes, wrapped: made };
    expect(dataKey).toHaveLength(bytes.length);
    expect(await own.unwrap(wrapped, { context })).toEqual(dataKey);
  });

  test('F11: a wrapped key names its provider and a KMS key, and is its own wrapper’s only', async () => {
    const { own, other, made } = await subject();
    expect(made).toMatchObject({ provider: own.provider, keyId: expect.stringMatching(/./) });
    expect(own.owns?.(made)).toBe(true);
    expect(other.owns?.(made)).toBe(false);
  });

  test('contract 2, F25: another context is corrupt, where the service binds one', async () => {
    const { own, made, bytes } = await subject();
    const { 'sealring:purpose': _, ...less } = context;
    // Who says that he binds none is held to it: the ring then binds it itself.
    const expected = own.supports.context ? CORRUPT : bytes;
    for (const wrong of [{ ...context, 'sealring:purpose': 'other' }, { ...context, more: '' }, less]) {
      expect(await outcomeOf(own.unwrap(made, { context: wrong }))).toEqual(expected);
    }
  });

  test('contract 2: one flipped bit, a missing byte or one too many is corrupt', async () => {
    const { own, made } = await subject();
    const { wrapped } = made;
    const altered = [0, 0.25, 0.5, 0.75, 1].map((part) => {
      const at = Math.floor(part * (wrapped.length - 1));
      return wrapped.map((byte, i) => (i === at ? byte ^ 1 : byte));
    });
    altered.push(wrapped.slice(0, -1), Uint8Array.of(...wrapped, 0));
    for (const bytes of altered) {
      // Found by the service, in one attempt, or by the wrapper itself, in none.
      const outcome = await outcomeOf(own.unwrap({ ...made, wrapped: bytes }, { context }));
      expect([CORRUPT, { ...CORRUPT, attempts: undefined }]).toContainEqual(outcome);
    }
  });

  test('contract 2: another KMS key’s ciphertext under our key’s name is corrupt', async () => {
    const { own, other, made, bytes } = await subject();
    const { wrapped } = await other.wrap(bytes, { context });
    expect(await outcomeOf(own.unwrap({ ...made, wrapped }, { context }))).toEqual(CORRUPT);
  });

  test('contract 3: another provider’s or another KMS key’s wrap is corrupt, and no call is made', async () => {
    const { own, other, made, bytes } = await subject();
    const others = await other.wrap(bytes, { context });
    for (const wrap of [others, { ...made, provider: 'elsewhere' }]) {
      expect(await outcomeOf(own.unwrap(wrap, { context }))).toEqual(CORRUPT_WITHOUT_CALL);
    }
  });

  test('contract 5: an aborted signal ends a call', async () => {
    const { own, made } = await subject();
    const controller = new AbortController();
    const call = own.unwrap(made, { context, signal: controller.signal });
    controller.abort();
    expect(await outcomeOf(call)).toMatchObject({ kind: 'unavailable' });
  });

  test('a codec founds a ring with it, and another opens what the first sealed', async () => {
    const { own } = await subject();
    const ring = memoryRing();
    await using first = await createKmsCodec({ keyWrapper: own, ring, ringName: RING_NAME });
    await using second = await createKmsCodec({ keyWrapper: own, ring, ringName: RING_NAME });
    const payload = new TextEncoder().encode('state');
    expect(second.unseal(first.seal(payload))).toEqual(payload);
    expect(first.health().status).toBe('ok');
  });
}

async function setUp(start: () => Promise<WrapperTarget>): Promise<Subject> {
  const { own, other } = await start();
  const bytes = Uint8Array.from({ length: own.supports.context ? 32 : 64 }, (_, i) => i + 1);
  return { own, other, bytes, made: await own.wrap(bytes, { context }) };
}

/** What a call gave, or of which kind its refusal was and how many attempts that took. */
async function outcomeOf(
  call: Promise<Uint8Array>,
): Promise<Uint8Array | { readonly kind: string; readonly attempts: number | undefined }> {
  try {
    return await call;
  } catch (error) {
    if (!(error instanceof KeyWrapperError)) throw error;
    return { kind: error.kind, attempts: error.summary.attempts };
  }
}
