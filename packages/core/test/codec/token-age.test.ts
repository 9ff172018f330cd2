import { afterEach, beforeEach, expect, test } from 'vitest';
import { keeperOf } from '../../src/codec/ring-codec.ts';
import { Fleet, type Member, open, seal } from '../support/fleet.ts';

let fleet: Fleet;
beforeEach(() => {
  fleet = new Fleet();
});
afterEach(() => fleet.close());

/** The times of the active key. */
function sealingKey({ codec }: Member) {
  const { sealingKey: id = '' } = codec.health();
  const key = keeperOf(codec)?.view.snapshot.byId.get(id);
  if (key === undefined) throw new Error('no key seals');
  return key;
}

const until = (ms: number): Promise<void> => fleet.clock.advance((ms - fleet.clock.wallMs()) / 1_000);

test('the codec unseals a token until its key expires, and the first token of a key for 31 h 40 min', async () => {
  const a = await fleet.start();
  const { id: first } = sealingKey(a);
  while (sealingKey(a).id === first) await fleet.clock.advance(10);
  const { activates, opensUntil } = sealingKey(a);
  expect(opensUntil - activates).toBe(114_000_000);
  const token = seal(a);
  expect(fleet.clock.wallMs() - activates).toBeLessThanOrEqual(10_000);
  await until(opensUntil - 1_000);
  expect(open(a, token)).toBe('state');
  await until(opensUntil);
  expect(open(a, token)).toBe('InvalidRequestState: unknown key');
});

test('the last token that a key seals can be unsealed for tokenLifetimeSeconds plus twice the clock skew', async () => {
  const a = await fleet.start();
  const b = await fleet.start({ role: 'reader' });
  const { sealsUntil } = sealingKey(a);
  // No member can make a successor: the key seals until `sealsUntil`.
  fleet.kms.wrapFailing = 'unavailable';
  await until(sealsUntil - 1_000);
  const token = seal(a);
  await fleet.clock.advance(4_200);
  expect(open(b, token)).toBe('state');
  await fleet.clock.advance(2);
  expect(open(b, token)).toBe('InvalidRequestState: unknown key');
});

test('a key unseals for another seven and a half hours after its successor starts to seal', async () => {
  const a = await fleet.start();
  const { id: first, opensUntil } = sealingKey(a);
  while (sealingKey(a).id === first) await fleet.clock.advance(10);
  // grace + life + 2 S, minus the delay of the successor: two refreshEvery at most.
  const { activates } = sealingKey(a);
  expect(opensUntil - activates).toBeLessThanOrEqual(27_600_000);
  expect(opensUntil - activates).toBeGreaterThanOrEqual(27_000_000 - 1_000);
  expect(fleet.clock.wallMs() - activates).toBeLessThanOrEqual(10_000);
});

test('a key seals for at most 32 hours after its publication, and unseals for another 1 h 10 min', async () => {
  const a = await fleet.start();
  const { id: first } = sealingKey(a);
  while (sealingKey(a).id === first) await fleet.clock.advance(10);
  const { id, created, sealsUntil, opensUntil } = sealingKey(a);
  // 31 h 45 min, to the second.
  expect(Math.abs(sealsUntil - created - (31 * 3_600 + 45 * 60) * 1_000)).toBeLessThanOrEqual(1_000);
  expect(opensUntil - sealsUntil).toBe((3_600 + 10 * 60) * 1_000);
  // No member can make a successor: the key seals until `sealsUntil`.
  fleet.kms.wrapFailing = 'denied';
  await until(sealsUntil - 1_000);
  expect(sealingKey(a).id).toBe(id);
  await until(sealsUntil);
  expect(() => seal(a)).toThrow('no active key');
});

test('if no member can wrap, sealing continues for propagation and grace, 27 900 s, after a successor was due', async () => {
  const a = await fleet.start();
  const { activates } = sealingKey(a);
  const due = activates + (86_400 - 4_500) * 1_000;
  fleet.kms.wrapFailing = 'denied';
  await until(due + 27_900_000 - 1_000);
  expect(open(a, seal(a))).toBe('state');
  await until(due + 27_900_000);
  expect(() => seal(a)).toThrow('no active key');
});
