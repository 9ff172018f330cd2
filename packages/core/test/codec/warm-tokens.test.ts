import { randomBytes, randomFillSync } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Closing } from '../../src/base/closing.ts';
import { keeperOf } from '../../src/codec/ring-codec.ts';
import { EnvelopeKeyCache } from '../../src/keys/envelope-key-cache.ts';
import { KmsCalls } from '../../src/kms/kms-calls.ts';
import { localKeyWrapper } from '../../src/kms/local-key-wrapper.ts';
import { KeyWraps } from '../../src/kms/wraps.ts';
import { parseDocument, type RingEntry } from '../../src/ring/document.ts';
import { Fleet, type Member, open, seal } from '../support/fleet.ts';

const UNKNOWN = 'InvalidRequestState: unknown key';

let fleet: Fleet;
beforeEach(() => {
  fleet = new Fleet();
});
afterEach(() => fleet.close());

/** Tokens of one member that another has unsealed and remembers. */
function warmTokens(from: Member, at: Member): string[] {
  const tokens = Array.from({ length: 3 }, (_, i) => {
    // Each has its own salt.
    fleet.clock.step(i === 0 ? 0 : 2);
    return seal(from);
  });
  for (const token of tokens) expect([open(at, token), open(at, token)]).toEqual(['state', 'state']);
  const held = keeperOf(at.codec)?.view.snapshot.keys.flatMap((key) => key.held ?? []) ?? [];
  expect(held.reduce((sum, key) => sum + key.tokenKeyCount, 0)).toBeGreaterThanOrEqual(tokens.length);
  return tokens;
}

describe('a member that remembers a token key (F15)', () => {
  test('refuses a token from the moment its key expires, before any refresh has dropped the key', async () => {
    const a = await fleet.start();
    const b = await fleet.start();
    const tokens = warmTokens(a, b);
    const [key] = b.codec.health().keys;
    await fleet.clock.advance(((key?.unsealsUntil.getTime() ?? Number.NaN) - fleet.clock.wallMs()) / 1_000 - 1);
    expect(tokens.map((token) => open(b, token))).toEqual(Array(3).fill('state'));
    for (const { ring } of [a, b]) ring.cut = true;
    await fleet.clock.advance(2);
    expect(tokens.map((token) => open(b, token))).toEqual(Array(3).fill(UNKNOWN));
    // Nothing else is wrong.
    expect(open(b, seal(a))).toBe('state');
  });

  test('refuses a token when the KMS refuses the key, or the last KMS check is too old', async () => {
    for (const kind of ['disabled', 'unavailable'] as const) {
      const one = new Fleet();
      const a = await one.start();
      const token = seal(a);
      expect([open(a, token), open(a, token)]).toEqual(['state', 'state']);
      one.kms.failing = kind;
      await one.clock.advance(7_800 + 1_000);
      expect(open(a, token)).toBe(UNKNOWN);
      await one.close();
    }
  });

  test('refuses a token when its key was revoked, whether by this member or by another', async () => {
    const a = await fleet.start();
    const b = await fleet.start();
    const reader = await fleet.start({ role: 'reader' });
    const tokens = [...warmTokens(a, b), ...warmTokens(a, reader), ...warmTokens(b, a)];
    await a.codec.revokeAllBefore(new Date(fleet.clock.wallMs() + 1_000));
    for (const { codec } of [b, reader]) await codec.refresh();
    for (const member of [a, b, reader]) {
      expect(tokens.map((token) => open(member, token))).toEqual(Array(tokens.length).fill(UNKNOWN));
    }
  });

  test('refuses a token of another purpose, or of none', async () => {
    const a = await fleet.start();
    const [plain, cursor] = [seal(a), a.codec.for('cursor').seal(Buffer.from('state'))];
    expect(open(a, plain)).toBe('state');
    expect(Buffer.from(a.codec.for('cursor').unseal(cursor)).toString()).toBe('state');
    expect(open(a, cursor)).toBe('InvalidRequestState: authentication failed');
    expect(() => a.codec.for('cursor').unseal(plain)).toThrow('authentication failed');
  });
});

describe('the id and context of an unwrapped key (F15, F26)', () => {
  async function wrapped() {
    const keyWrapper = localKeyWrapper({ masterKey: randomBytes(32) });
    const calls = { unwrap: 0 };
    const counted = {
      ...keyWrapper,
      unwrap: (...given: Parameters<typeof keyWrapper.unwrap>) => {
        calls.unwrap += 1;
        return keyWrapper.unwrap(...given);
      },
    };
    await fleet.start({ keyWrapper });
    const [entry] = parseDocument((await fleet.store.document()) ?? '', 'default').entries;
    if (entry === undefined) throw new Error('the ring has a key');
    const random = (fill: Uint8Array): void => void randomFillSync(fill);
    const { clock } = fleet;
    const closing = new Closing();
    const wraps = new KeyWraps({
      ring: 'default',
      wrappers: [counted],
      quorum: 1,
      trustStore: false,
      calls: new KmsCalls({ ring: 'r', clock, random, timeoutSeconds: 5, closing, onServiceDate: () => undefined }),
      cache: new EnvelopeKeyCache('default'),
      random,
      clock,
    });
    return { entry, wraps, calls };
  }

  test('the same ciphertext under another key id is unwrapped again, and refused', async () => {
    const { entry, wraps, calls } = await wrapped();
    const { held } = await wraps.unwrap(entry, { foreground: false });
    const renamed: RingEntry = { ...entry, id: randomBytes(9).toString('base64url') };
    await expect(wraps.unwrap(renamed, { foreground: false })).rejects.toMatchObject({ kind: 'corrupt' });
    expect(calls.unwrap).toBe(2);
    expect((await wraps.unwrap(entry, { foreground: false })).held).toBe(held);
  });

  test('the same ciphertext with other times, or under another version of the KMS key, is unwrapped again, and refused', async () => {
    const { entry, wraps, calls } = await wrapped();
    await wraps.unwrap(entry, { foreground: false });
    const changes: Partial<RingEntry>[] = [
      { created: entry.created + 1_000 },
      { activates: entry.activates + 1_000 },
      { sealsUntil: entry.sealsUntil + 1_000 },
      { opensUntil: entry.opensUntil + 1_000 },
      { wraps: entry.wraps.map((wrap) => ({ ...wrap, keyId: 'local:another' })) },
    ];
    for (const change of changes) {
      const changed = { ...entry, ...change };
      await expect(wraps.unwrap(changed, { foreground: false })).rejects.toMatchObject({ kind: 'corrupt' });
    }
    // Another version does not belong to this wrapper: it is not even called.
    expect(calls.unwrap).toBe(1 + changes.length - 1);
  });
});
