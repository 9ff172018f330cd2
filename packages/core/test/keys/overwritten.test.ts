import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { keeperOf } from '../../src/codec/ring-codec.ts';
import type { KeyWrapper } from '../../src/contracts/key-wrapper.ts';
import type { DataKey } from '../../src/keys/data-key.ts';
import { EnvelopeKeyCache } from '../../src/keys/envelope-key-cache.ts';
import { localKeyWrapper } from '../../src/kms/local-key-wrapper.ts';
import { parseDocument } from '../../src/ring/document.ts';
import { Fleet, type Member, open, seal } from '../support/fleet.ts';
import { isOverwritten } from '../support/overwritten.ts';

let fleet: Fleet;
let witness: Witness;
beforeEach(() => {
  fleet = new Fleet();
  witness = new Witness();
});
afterEach(() => fleet.close());

/** Keeps every array with a data key that a codec and a key wrapper pass to each other. */
class Witness {
  readonly #seen: { readonly what: string; readonly bytes: Uint8Array; readonly copy: Buffer }[] = [];

  see<T extends Uint8Array>(what: string, bytes: T): T {
    this.#seen.push({ what, bytes, copy: Buffer.from(bytes) });
    return bytes;
  }

  /** How many arrays were passed, by purpose. */
  get counts(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { what } of this.#seen) counts[what] = (counts[what] ?? 0) + 1;
    return counts;
  }

  /** Arrays that still hold any of its bytes. */
  get left(): string[] {
    return this.#seen.flatMap(({ what, bytes }) => (bytes.every((byte) => byte === 0) ? [] : [what]));
  }

  watch(inner: KeyWrapper): KeyWrapper {
    const generate = inner.generate?.bind(inner);
    return {
      ...inner,
      wrap: (dataKey, options) => inner.wrap(this.see('wrap', dataKey), options),
      unwrap: async (wrapped, options) => this.see('unwrap', await inner.unwrap(wrapped, options)),
      ...(generate === undefined
        ? {}
        : {
            generate: async (options) => {
              const made = await generate(options);
              this.see('generate', made.dataKey);
              return made;
            },
          }),
    };
  }
}

/** A service that binds no context, like some clouds: the ring passes it 64 bytes. Real cryptography. */
function withoutContext(provider: string): KeyWrapper {
  const key = randomBytes(32);
  return {
    provider,
    keyId: 'one',
    supports: { context: false, authenticated: true },
    async wrap(plaintext) {
      const nonce = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', key, nonce);
      const wrapped = Buffer.concat([nonce, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
      return { provider, keyId: 'one', wrapped };
    },
    async unwrap({ wrapped }) {
      const decipher = createDecipheriv('aes-256-gcm', key, wrapped.subarray(0, 12));
      decipher.setAuthTag(wrapped.subarray(-16));
      const plaintext = decipher.update(wrapped.subarray(12, -16));
      decipher.final();
      return plaintext;
    },
  };
}

function heldBy(member: Member): DataKey[] {
  return keeperOf(member.codec)?.view.snapshot.keys.flatMap(({ held }) => held ?? []) ?? [];
}

describe('bytes that pass between a codec and the KMS (F22)', () => {
  test('the data keys that a service generated, unwrapped and checked are overwritten', async () => {
    const a = await fleet.start({ keyWrapper: witness.watch(fleet.kms.connect()) });
    const b = await fleet.start({ keyWrapper: witness.watch(fleet.kms.connect()) });
    await a.codec.rotate();
    await b.codec.refresh();
    // Advance beyond the next KMS check of both members.
    await fleet.clock.advance(1_000);
    expect(open(b, seal(a))).toBe('state');
    expect(witness.counts).toEqual({ generate: 2, unwrap: 6 });
    expect(witness.left).toEqual([]);
  });

  test('the locally made data keys that a service wraps, checks, or wraps again are overwritten', async () => {
    const wrapsOnly: KeyWrapper = { ...localKeyWrapper({ masterKey: randomBytes(32) }) };
    delete wrapsOnly.generate;
    const second = localKeyWrapper({ masterKey: randomBytes(32) });
    await fleet.start({ keyWrapper: witness.watch(wrapsOnly) });
    const both = await fleet.start({ keyWrapper: [witness.watch(wrapsOnly), witness.watch(second)] });
    await both.codec.refresh();
    const { entries } = parseDocument((await fleet.store.document()) ?? '', 'default');
    expect(entries[0]?.wraps).toHaveLength(2);
    expect(witness.counts).toEqual({ wrap: 2, unwrap: 3 });
    expect(witness.left).toEqual([]);
  });

  test('the 64 bytes for a service that binds no context, which begin with the data key, are overwritten', async () => {
    const keyWrapper = witness.watch(withoutContext('plain'));
    const a = await fleet.start({ keyWrapper });
    const b = await fleet.start({ keyWrapper });
    expect(open(b, seal(a))).toBe('state');
    expect(witness.counts).toEqual({ wrap: 1, unwrap: 2 });
    expect(witness.left).toEqual([]);
  });

  test('a data key that does not belong to the ring is overwritten', async () => {
    await fleet.start();
    const strange = new Uint8Array(randomBytes(32));
    const inner = fleet.kms.connect();
    const keyWrapper = witness.watch({ ...inner, unwrap: async () => strange });
    await expect(fleet.start({ keyWrapper })).rejects.toMatchObject({ name: 'KeyWrapperError', kind: 'corrupt' });
    expect(witness.counts).toEqual({ unwrap: 1 });
    expect(witness.left).toEqual([]);
  });

  test('the data key of a wrap for another context is overwritten if the service binds no context', async () => {
    const keyWrapper = withoutContext('plain');
    await fleet.start({ keyWrapper });
    const honest = await keyWrapper.wrap(Buffer.concat([randomBytes(32), randomBytes(32)]), { context: {} });
    const swapped = witness.watch({ ...keyWrapper, unwrap: (_, options) => keyWrapper.unwrap(honest, options) });
    await expect(fleet.start({ keyWrapper: swapped })).rejects.toMatchObject({ kind: 'corrupt' });
    expect(witness.counts).toEqual({ unwrap: 1 });
    expect(witness.left).toEqual([]);
  });
});

describe('the data keys in memory (F22)', () => {
  test('data keys are overwritten when they expire: after ten days of rotations, only the live ones remain', async () => {
    const a = await fleet.start();
    const all = new Set<DataKey>();
    for (let hour = 0; hour < 10 * 24; hour++) {
      await fleet.clock.advance(3_600);
      for (const held of heldBy(a)) all.add(held);
    }
    const live = heldBy(a);
    expect(all.size).toBeGreaterThanOrEqual(10);
    expect(live.length).toBeLessThanOrEqual(4);
    expect(Array.from(all).filter((held) => !isOverwritten(held))).toEqual(live);
  });

  test('data keys are overwritten on the member that revokes them, and on others after a refresh, but their successor is not', async () => {
    const a = await fleet.start();
    const b = await fleet.start();
    const revoked = [a, b].flatMap(heldBy);
    await a.codec.revokeAllBefore(new Date(fleet.clock.wallMs() + 1_000));
    await b.codec.refresh();
    expect(revoked).toHaveLength(2);
    expect(revoked.every(isOverwritten)).toBe(true);
    expect([a, b].flatMap(heldBy).map(isOverwritten)).toEqual([false, false]);
  });

  test('data keys are overwritten on close, including the one that was being unwrapped', async () => {
    const take = vi.spyOn(EnvelopeKeyCache.prototype, 'take');
    const a = await fleet.start();
    const ring = fleet.store.connectUnwatched();
    const b = await fleet.start({ ring });
    await a.codec.rotate();
    // Called after the KMS has answered, and before the key is remembered.
    let closed: Promise<void> | undefined;
    const close = (): void => void (closed ??= b.codec.close());
    subscribe('sealring:unwrap', close);
    take.mockClear();
    await expect(b.codec.refresh()).rejects.toMatchObject({ name: 'CodecClosedError' });
    await closed;
    unsubscribe('sealring:unwrap', close);
    expect(take.mock.results.map(({ value }) => isOverwritten(value as DataKey))).toEqual([true]);
    take.mockRestore();
  });

  test('data keys are overwritten on close, including the authenticators of the ring', async () => {
    const a = await fleet.start();
    await a.codec.rotate();
    await a.codec.revoke(a.codec.health().sealingKey ?? '');
    const view = keeperOf(a.codec)?.view;
    const held = heldBy(a);
    const authenticators = Array.from(view?.signers.values() ?? [], ({ authenticator }) => authenticator);
    // Of three keys one is revoked: only its authenticator is left.
    expect([held.length, authenticators.length]).toEqual([2, 3]);
    for (const authenticator of authenticators) expect(authenticator.mac('a fact')).toHaveLength(32);
    await a.codec.close();
    expect(held.map(isOverwritten)).toEqual([true, true]);
    for (const authenticator of authenticators) expect(() => authenticator.mac('a fact')).toThrow(/was overwritten/);
    expect(view?.signers.size).toBe(0);
  });
});
