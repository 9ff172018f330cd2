import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { KeyWrapper } from '../../src/contracts/key-wrapper.ts';
import { EventLog } from '../support/event-log.ts';
import { Fleet, type Member, open, seal } from '../support/fleet.ts';

const HOUR = 3_600;
const DAY = 24 * HOUR;
/** Keys with a life so long that no rotation by age is due in these tests. */
const policy = { rotateEverySeconds: 30 * DAY };

let fleet: Fleet;
const events = new EventLog();
beforeEach(() => {
  fleet = new Fleet();
  fleet.kms.version = 1;
  events.listen();
});
afterEach(async () => {
  events.end();
  events.clear();
  await fleet.close();
});

/** The versions that wrapped the newest key of a member. */
async function versions(): Promise<string[]> {
  const { keys } = JSON.parse((await fleet.store.document()) ?? '') as { keys: { wraps: { keyId: string }[] }[] };
  return keys.map(({ wraps }) => wraps.map(({ keyId }) => keyId.split('/')[1]).join(' ')).toSorted();
}

describe('a new version of a KMS key', () => {
  test('a new KMS key version is noticed within an hour, and leads to one rotation of the whole fleet', async () => {
    const members = await fleet.startAll(5, { policy });
    await fleet.clock.advance(3 * HOUR);
    expect(await versions()).toEqual(['1']);
    const token = seal(members[0] as Member);
    fleet.kms.version = 2;
    await fleet.clock.advance(1.5 * HOUR);
    expect(await versions()).toEqual(['1', '2']);
    expect(events.of('rotation').map(({ reason }) => reason)).toEqual(['initial', 'key-version']);
    expect(events.of('key-version').length).toBeGreaterThan(0);
    expect(events.of('key-version')[0]).toEqual({ provider: 'local', version: expect.stringMatching(/\/2$/) });
    await fleet.clock.advance(2 * DAY);
    expect(await versions()).toEqual(['1', '2']);
    for (const member of members) {
      expect(open(member, token)).toBe('state');
      expect(member.codec.health()).toMatchObject({ status: 'ok', sealingKey: members[0]?.codec.health().sealingKey });
    }
  });

  test('a KMS that returns the old key version for a while causes no second rotation', async () => {
    await fleet.startAll(3, { policy });
    await fleet.clock.advance(HOUR);
    for (let hour = 0; hour < 12; hour++) {
      fleet.kms.version = 1 + (hour % 2);
      await fleet.clock.advance(HOUR);
    }
    expect(events.of('rotation').filter(({ reason }) => reason === 'key-version')).toHaveLength(1);
  });

  test('a KMS that names a new key version but still wraps with the old one causes at most one rotation in an hour', async () => {
    const connect = (): KeyWrapper => {
      const inner = fleet.kms.connect();
      const byOld = <T>(run: () => Promise<T>): Promise<T> => {
        fleet.kms.version = 1;
        return run();
      };
      return {
        ...inner,
        wrap: (dataKey, options) => {
          const isLook = options.context['sealring:purpose'] === 'key-version';
          fleet.kms.version = isLook ? 2 : 1;
          return inner.wrap(dataKey, options);
        },
        generate: (options) => byOld(() => inner.generate?.(options) ?? Promise.reject(new Error('no generate'))),
      };
    };
    for (let i = 0; i < 5; i++) await fleet.start({ policy, keyWrapper: connect() });
    await fleet.clock.advance(12 * HOUR);
    const made = events.of('rotation').filter(({ reason }) => reason === 'key-version');
    expect(made.length).toBeGreaterThan(3);
    expect(made.length).toBeLessThanOrEqual(12);
  });

  test('the KMS key version is not checked by a reader, under a policy that disables the check, or for keys without versions', async () => {
    await fleet.startAll(2, { policy: { ...policy, keyVersionEverySeconds: 0 } });
    await fleet.start({ policy, role: 'reader' });
    fleet.kms.version = undefined;
    await fleet.start({ policy });
    const { wrap } = fleet.kms.calls;
    fleet.kms.version = 2;
    await fleet.clock.advance(DAY);
    expect(fleet.kms.calls.wrap).toBe(wrap);
    expect(await versions()).toEqual(['1']);
  });

  test('the KMS key version is checked with about one wrap an hour, but not while the KMS fails', async () => {
    const a = await fleet.start({ policy });
    const { wrap } = fleet.kms.calls;
    await fleet.clock.advance(DAY);
    expect(fleet.kms.calls.wrap - wrap).toBeGreaterThanOrEqual(22);
    expect(fleet.kms.calls.wrap - wrap).toBeLessThanOrEqual(30);
    fleet.kms.failing = 'unavailable';
    const before = fleet.kms.calls.wrap;
    await fleet.clock.advance(HOUR / 2);
    expect(fleet.kms.calls.wrap).toBe(before);
    expect(a.codec.health().canSeal).toBe(true);
  });

  test('a member without permission to wrap is not degraded by a new KMS key version', async () => {
    const a = await fleet.start({ policy });
    fleet.kms.wrapFailing = 'denied';
    await fleet.clock.advance(3 * HOUR);
    expect(a.codec.health().status).toBe('ok');
  });
});
