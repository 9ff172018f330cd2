import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Clock } from '../../src/base/clock.ts';
import { keeperOf } from '../../src/codec/ring-codec.ts';
import type { DataKey } from '../../src/keys/data-key.ts';
import { parseDocument } from '../../src/ring/document.ts';
import { Fleet, type Member, open, seal } from '../support/fleet.ts';
import { isOverwritten } from '../support/overwritten.ts';

let fleet: Fleet;
beforeEach(() => {
  fleet = new Fleet();
});
afterEach(() => fleet.close());

/** The only key of a member, and its end. */
function onlyKey(member: Member): { readonly held: DataKey; readonly opensUntil: number } {
  const [key] = keeperOf(member.codec)?.view.snapshot.keys ?? [];
  if (key?.held === undefined) throw new Error('the member holds no key');
  return { held: key.held, opensUntil: key.opensUntil };
}

async function storedIds(): Promise<readonly string[]> {
  return parseDocument((await fleet.store.document()) ?? '', 'default').entries.map(({ id }) => id);
}

/** A reader whose ring has no writer: its member is gone. */
async function lastReader(): Promise<Member> {
  const member = await fleet.start();
  const reader = await fleet.start({ role: 'reader' });
  await member.codec.close();
  return reader;
}

describe('the end of data keys (F22)', () => {
  test('data keys are overwritten when they expire, even if no member publishes', async () => {
    const reader = await lastReader();
    const { held, opensUntil } = onlyKey(reader);
    await fleet.clock.advance((opensUntil - fleet.clock.wallMs()) / 1_000 - 1);
    expect(isOverwritten(held)).toBe(false);
    await fleet.clock.advance(2);
    expect(isOverwritten(held)).toBe(true);
    expect(reader.codec.health().keys.filter(({ held: isHeld }) => isHeld)).toEqual([]);
  });

  test('data keys are overwritten within a minute of their expiry, even if store and KMS fail', async () => {
    const reader = await lastReader();
    const { held, opensUntil } = onlyKey(reader);
    reader.ring.cut = true;
    reader.keyWrapper.cut = true;
    await fleet.clock.advance((opensUntil - fleet.clock.wallMs()) / 1_000 + 61);
    expect(isOverwritten(held)).toBe(true);
  });

  test('an expired key stays in the document until it has expired on every clock of the fleet', async () => {
    const a = await fleet.start();
    const { held, opensUntil } = onlyKey(a);
    await fleet.clock.advance((opensUntil - fleet.clock.wallMs()) / 1_000 + 2);
    await a.codec.rotate();
    expect(isOverwritten(held)).toBe(true);
    expect(await storedIds()).toContain(held.id);
    await fleet.clock.advance(600);
    await a.codec.rotate();
    expect(await storedIds()).not.toContain(held.id);
  });
});

test('a rotated key can be used for 33 hours after its creation, and the next rotation removes it', async () => {
  const a = await fleet.start();
  const first = onlyKey(a).held.id;
  const made = async (): Promise<string | undefined> => (await storedIds()).find((id) => id !== first);
  while ((await made()) === undefined) await fleet.clock.advance(60);
  const rotated = (await made()) ?? '';
  const { created } = keeperOf(a.codec)?.view.snapshot.byId.get(rotated) ?? { created: 0 };
  const isHeld = (): boolean => a.codec.health().keys.some(({ id, held }) => id === rotated && held);
  await fleet.clock.advance((created - fleet.clock.wallMs()) / 1_000 + 33 * 3_600 - 301);
  expect(isHeld()).toBe(true);
  await fleet.clock.advance(301);
  expect(isHeld()).toBe(false);
  // No write is made only to remove it: the next rotation removes it.
  expect(await storedIds()).toContain(rotated);
  await fleet.clock.advance(16 * 3_600);
  expect(await storedIds()).not.toContain(rotated);
});

test('a reader whose only key has expired is not ready, and cannot unseal', async () => {
  const member = await fleet.start();
  const reader = await fleet.start({ role: 'reader' });
  const token = seal(member);
  await member.codec.close();
  const { opensUntil } = onlyKey(reader);
  await fleet.clock.advance((opensUntil - fleet.clock.wallMs()) / 1_000 - 1);
  expect(reader.codec.health()).toMatchObject({ canUnseal: true });
  await fleet.clock.advance(1);
  expect(reader.codec.health()).toMatchObject({ status: 'failing', ready: false, canUnseal: false });
  expect(() => reader.codec.unseal(token)).toThrow('unknown key');
});

test('a key that has expired only by a wrong clock unseals again once the clock is right', async () => {
  let aheadMs = 0;
  const clock: Clock = {
    wallMs: () => fleet.clock.wallMs() + aheadMs,
    monotonicNs: () => fleet.clock.monotonicNs(),
    schedule: (callback, delayMs) => fleet.clock.schedule(callback, delayMs),
  };
  // A store whose clock is as wrong as the reader's clock confirms it.
  fleet.store.date = () => new Date(clock.wallMs());
  const member = await fleet.start();
  const reader = await fleet.start({ role: 'reader', clock });
  const token = seal(member);
  const { held, opensUntil } = onlyKey(reader);
  aheadMs = opensUntil - fleet.clock.wallMs() - 500_000;
  await fleet.clock.advance(601);
  expect(open(reader, token)).toBe('InvalidRequestState: unknown key');
  expect(isOverwritten(held)).toBe(true);
  aheadMs = 0;
  await fleet.clock.advance(1_200);
  expect(reader.codec.health()).toMatchObject({ ready: true, canUnseal: true });
  expect(open(reader, token)).toBe('state');
});
