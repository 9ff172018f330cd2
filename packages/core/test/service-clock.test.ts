import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { parseDocument } from '../src/ring/document.ts';
import { Fleet, open, seal } from './support/fleet.ts';

const HOUR = 3_600;

let fleet: Fleet;
/** Seconds that the services are ahead of the members. */
let aheadSeconds: number;

beforeEach(() => {
  fleet = new Fleet();
  aheadSeconds = 0;
  fleet.store.date = () => new Date(fleet.clock.wallMs() + aheadSeconds * 1_000);
});

afterEach(() => fleet.close());

async function keyCount(): Promise<number> {
  return parseDocument((await fleet.store.document()) ?? '', 'default').entries.length;
}

describe('a member whose clock is too far from that of a service (F13)', () => {
  for (const [service, ahead] of [
    ['store', 400],
    ['store', -400],
    ['kms', 400],
    ['kms', -400],
  ] as const) {
    test(`${service} ${ahead} s: failing, publishes nothing, seals and opens on, and recovers`, async () => {
      if (service === 'kms') [fleet.kms.date, fleet.store.date] = [fleet.store.date, undefined];
      const member = await fleet.start();
      aheadSeconds = ahead;
      await fleet.clock.advance(28 * HOUR);
      expect(member.codec.health()).toMatchObject({ status: 'failing', ready: false, lastError: { kind: 'clock' } });
      expect(await keyCount()).toBe(1);
      await expect(member.codec.rotate()).rejects.toMatchObject({
        name: 'RingStoreError',
        message: expect.stringContaining(
          `this machine's clock is 400 s ${ahead < 0 ? 'ahead of' : 'behind'} that of the ${service}`,
        ),
      });
      expect(open(member, seal(member))).toBe('state');
      aheadSeconds = 0;
      await fleet.clock.advance(2 * HOUR);
      expect(member.codec.health()).toMatchObject({ status: 'ok', ready: true, lastError: undefined });
      expect(await keyCount()).toBe(2);
    });
  }

  test('within the skew, the age of an answer and its cut-off second nothing is wrong', async () => {
    const member = await fleet.start();
    for (const seconds of [300, -300, 305, -305]) {
      aheadSeconds = seconds;
      await member.codec.refresh();
      expect(member.codec.health().status).toBe('ok');
    }
    aheadSeconds = 306.5;
    await member.codec.refresh();
    expect(member.codec.health().status).toBe('failing');
  });

  test('it founds no ring', async () => {
    aheadSeconds = 3 * HOUR;
    await expect(fleet.start()).rejects.toMatchObject({ name: 'RingStoreError', kind: 'unavailable' });
    expect(await fleet.store.document()).toBeUndefined();
  });

  test('starting with a clock hours behind, it gives a ring whose keys all seem to be propagating none that seals at once', async () => {
    await fleet.start();
    const before = await fleet.store.document();
    fleet.store.date = () => new Date('2026-11-21T03:00:00Z');
    fleet.clock.step(-6 * HOUR);
    const starting = fleet.start();
    await expect(starting).rejects.toMatchObject({ name: 'RingStoreError', kind: 'unavailable' });
    expect(await fleet.store.document()).toBe(before);
  });

  test('what is no date says nothing', async () => {
    const member = await fleet.start();
    fleet.store.date = () => new Date(Number.NaN);
    await member.codec.refresh();
    expect(member.codec.health().status).toBe('ok');
  });
});
