import { randomBytes } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { pause } from '../../src/base/clock.ts';
import { encodeDocument, parseDocument, type RingEntry } from '../../src/ring/document.ts';
import { FaultKms } from '../support/fault-kms.ts';
import { Fleet, type Member, open, seal } from '../support/fleet.ts';
import { Thief } from '../support/thief.ts';

const HOUR = 3_600;

let fleet: Fleet;
beforeEach(() => {
  fleet = new Fleet();
});
afterEach(() => fleet.close());

const unwatched = () => ({ ring: fleet.store.connectUnwatched() });

/** Runs an operation while virtual time passes: `done`, or what its error says. */
async function during(seconds: number, operation: Promise<unknown>): Promise<string> {
  const outcome = operation.then(
    () => 'done',
    (error: Error) => error.message,
  );
  await fleet.clock.advance(seconds);
  return outcome;
}

const stateOf = ({ codec }: Member, id: string) => codec.health().keys.find((key) => key.id === id)?.state;
const sealingKey = ({ codec }: Member): string => codec.health().sealingKey ?? 'none';
const storedKeys = async () => JSON.parse((await fleet.store.document()) ?? '').keys;

describe('content of the store that no parser expects', () => {
  const replaced: [string, string][] = [
    ['an object with a method of Object.prototype', '{"toString":1}'],
    ['an array', '["2026-11-21T03:00:00Z"]'],
    ['a number', '1'],
    ['deeply nested arrays', `${'['.repeat(60_000)}${']'.repeat(60_000)}`],
  ];
  test.each(replaced)('a ring whose creation time is %s is repaired, and can be rotated', async (_, value) => {
    const member = await fleet.start();
    const good = (await fleet.store.document()) ?? '';
    await fleet.store.put(good.replace(/"created":"[^"]*"/, `"created":${value}`));
    expect(await during(0, member.codec.refresh())).toContain('corrupt');
    await fleet.clock.advance(2 * 660);
    expect(await fleet.store.document()).toBe(good);
    expect(await during(30, member.codec.rotate())).toBe('done');
  });
});

describe('a revocation of keys that this member could not unwrap', () => {
  test('the newest key is revoked although its wraps were replaced', async () => {
    const [a, b] = [await fleet.start(unwatched()), await fleet.start(unwatched())];
    await during(5, a.codec.rotate({ emergency: true }));
    const keys = await storedKeys();
    const newest = keys.at(-1).id;
    const spoilt = (await fleet.store.document()) ?? '';
    const wrapped = keys.at(-1).wraps[0].wrapped;
    await fleet.store.put(spoilt.replace(wrapped, randomBytes(60).toString('base64url')));
    await during(30, b.codec.refresh());
    expect(b.codec.health().keys.find(({ id }) => id === newest)?.held).toBe(false);
    await fleet.clock.advance(60);
    expect(await during(60, b.codec.revokeAllBefore(new Date(fleet.clock.wallMs())))).toBe('done');
    await fleet.clock.advance(660);
    expect([stateOf(a, newest), stateOf(b, newest)]).toEqual(['revoked', 'revoked']);
    expect(sealingKey(a)).not.toBe(newest);
  });

  test('a key with wraps by another cloud only is revoked, and members that hold it learn this', async () => {
    const second = new FaultKms();
    const [first, other] = [fleet.kms.connect('cloud-a'), second.connect('cloud-b')];
    const both = await fleet.start({ keyWrapper: [first, other], wrapQuorum: 1, ...unwatched() });
    const one = await fleet.start({ keyWrapper: fleet.kms.connect('cloud-a'), ...unwatched() });
    first.cut = true;
    await during(30, both.codec.rotate({ emergency: true }));
    first.cut = false;
    const newest = both.codec.health().keys.at(-1)?.id ?? '';
    await during(30, one.codec.refresh());
    expect(one.codec.health().keys.find(({ id }) => id === newest)?.held).toBe(false);
    expect(await during(60, one.codec.revoke(newest))).toBe('done');
    await fleet.clock.advance(660);
    expect(stateOf(both, newest)).toBe('revoked');
  });

  test('a revocation fails if the KMS fails too, and neither a newer key nor a successor can certify it', async () => {
    const [a, b] = [await fleet.start(unwatched()), await fleet.start(unwatched())];
    await during(5, a.codec.rotate({ emergency: true }));
    const newest = (await storedKeys()).at(-1).id;
    fleet.kms.failing = 'unavailable';
    expect(await during(60, b.codec.revoke(newest))).toContain(`key ${newest} could not be unwrapped`);
    fleet.kms.failing = undefined;
    expect(await during(60, b.codec.revoke(newest))).toBe('done');
  });
});

describe('refusals that come slowly', () => {
  test.each([
    ['after 26 s, at a deadline of 30 s', 30, 26, 1, false, 1_100],
    ['after 4.9 s each, from four key wrappers, while the store hangs', 5, 4.9, 4, true, 980],
  ])('sealing stops within the bound if the KMS refuses %s', async (_, deadline, latency, count, hangs, bound) => {
    const keyWrapper = Array.from({ length: count }, (__, i) => fleet.kms.connect(`cloud-${i}`));
    const member = await fleet.start({ keyWrapper, policy: { kmsTimeoutSeconds: deadline }, ...unwatched() });
    await fleet.clock.advance(HOUR);
    fleet.kms.failing = 'denied';
    fleet.kms.latency = () => pause(fleet.clock, latency * 1_000);
    fleet.store.hanging = hangs;
    const token = seal(member);
    await fleet.clock.advance(bound);
    expect(member.codec.health().canSeal).toBe(false);
    await fleet.clock.advance(600);
    expect(open(member, token)).not.toBe('state');
  });

  test('a machine that was suspended after the stop unseals no longer than another one', async () => {
    const member = await fleet.start();
    await fleet.clock.advance(2 * HOUR);
    const token = seal(member);
    fleet.kms.failing = 'disabled';
    for (let i = 0; i < 980 && member.codec.health().canSeal; i++) await fleet.clock.advance(1);
    expect([member.codec.health().canSeal, open(member, token)]).toEqual([false, 'state']);
    fleet.clock.suspend(600);
    expect(open(member, token)).not.toBe('state');
  });

  test('one stray refusal of a new key makes it unusable only until the next pass', async () => {
    const [a, b] = [await fleet.start(unwatched()), await fleet.start(unwatched())];
    await fleet.clock.advance(HOUR);
    // So that b does not read the revocation before the refusal.
    await during(1, b.codec.refresh());
    await during(30, a.codec.revoke(sealingKey(a)));
    const fresh = (await storedKeys()).find(({ id }: { id: string }) => id === sealingKey(a));
    fleet.kms.refused = Buffer.from(fresh.wraps[0].wrapped, 'base64url');
    expect(await during(1, b.codec.refresh())).toContain('denied');
    fleet.kms.refused = undefined;
    await fleet.clock.advance(60);
    expect(open(b, seal(a))).toBe('state');
  });
});

describe('junk in the place of a young ring, by an attacker who cannot call the KMS', () => {
  const DAY = 24 * HOUR;

  /** As many live entries and wraps as fit; the KMS refuses them all as corrupt. They seem older than the ring. */
  async function junk(): Promise<readonly RingEntry[]> {
    const thief = new Thief();
    const now = fleet.clock.wallMs();
    const created = now - 2 * HOUR * 1_000;
    const times = { created, activates: created, sealsUntil: now + DAY * 1_000, opensUntil: now + 2 * DAY * 1_000 };
    const entries = await Promise.all(Array.from({ length: 64 }, () => thief.newEntry(times)));
    return entries.map((entry) => ({ ...entry, wraps: thief.junkWraps(entry.id, 16) }));
  }

  async function put(entries: readonly RingEntry[]): Promise<void> {
    await fleet.store.put(encodeDocument({ ring: 'default', claim: undefined, entries }));
  }

  const answersAfter = (seconds: number): void => {
    fleet.kms.latency = () => pause(fleet.clock, seconds * 1_000);
  };

  test('junk occupies a member for 20 s and one KMS call, after which a revocation goes through', async () => {
    const member = await fleet.start(unwatched());
    const good = await fleet.store.document();
    await put(await junk());
    answersAfter(4.9);
    const { unwrap } = fleet.kms.calls;
    while (fleet.kms.calls.unwrap === unwrap) await fleet.clock.advance(1);
    const progress = { isRevoked: false };
    void member.codec.revoke(sealingKey(member)).then(() => (progress.isRevoked = true));
    // It waits for the read, which makes five calls for the junk, and one for a key that this member holds.
    await fleet.clock.advance(25);
    expect(fleet.kms.calls.unwrap - unwrap).toBeLessThanOrEqual(6);
    await fleet.clock.advance(15);
    expect(progress.isRevoked).toBe(true);
    expect((await storedKeys())[0].id).toBe(parseDocument(good ?? '', 'default').entries[0]?.id);
  });

  test('members that a notification wakes do not all unwrap the junk at once', async () => {
    const members = await fleet.startAll(3);
    await fleet.clock.advance(30);
    const { unwrap } = fleet.kms.calls;
    await put(await junk());
    fleet.store.notify();
    await fleet.clock.advance(0.01);
    expect(fleet.kms.calls.unwrap).toBe(unwrap);
    await fleet.clock.advance(60);
    for (const { codec } of members) expect(codec.health().status).toBe('ok');
  });

  test('sealing stops within the bound if the KMS refuses slowly while the attacker writes new junk again and again', async () => {
    const member = await fleet.start(unwatched());
    await fleet.clock.advance(HOUR);
    fleet.kms.failing = 'denied';
    answersAfter(4.9);
    for (let i = 0; i < 49; i++) {
      await put(await junk());
      await fleet.clock.advance(20);
    }
    expect(member.codec.health().canSeal).toBe(false);
  });

  test('a member switches to an older ring that takes several reads to unwrap, whatever junk is beside it', async () => {
    const before = await fleet.start(unwatched());
    for (let i = 0; i < 40; i++) await during(60, before.codec.rotate());
    const older = parseDocument((await fleet.store.document()) ?? '', 'default').entries;
    await fleet.clock.advance(HOUR);
    await before.codec.close();
    fleet.store.flush();
    const member = await fleet.start(unwatched());
    const young = sealingKey(member);
    await put([...older, ...(await junk()).slice(0, 64 - older.length)]);
    answersAfter(4.5);
    await fleet.clock.advance(2 * HOUR);
    expect(sealingKey(member)).not.toBe(young);
    expect(member.codec.health().keys.filter(({ held }) => held)).toHaveLength(older.length + 1);
  });
});

describe('wraps of a new key that an attacker replaced', () => {
  test('sealing stops within the bound although the KMS refuses each of sixteen replaced wraps slowly', async () => {
    const [a, b] = [await fleet.start(unwatched()), await fleet.start(unwatched())];
    await fleet.clock.advance(HOUR);
    await during(30, a.codec.rotate());
    await a.codec.close();
    const [first, second] = parseDocument((await fleet.store.document()) ?? '', 'default').entries;
    if (first === undefined || second === undefined) throw new Error('the ring has one key');
    const entries = [first, { ...second, wraps: new Thief().junkWraps(second.id, 16) }];
    await fleet.store.put(encodeDocument({ ring: 'default', claim: undefined, entries }));
    fleet.kms.failing = 'denied';
    fleet.kms.latency = () => pause(fleet.clock, 4_900);
    await fleet.clock.advance(980);
    expect(b.codec.health().canSeal).toBe(false);
  });
});

describe('a ring that a member left', () => {
  test('revoking one of its keys takes effect at this member, and says that the others must be restarted', async () => {
    const before = await fleet.start();
    const older = (await fleet.store.document()) ?? '';
    await fleet.clock.advance(HOUR);
    await before.codec.close();
    fleet.store.flush();
    const member = await fleet.start();
    const young = sealingKey(member);
    const token = seal(member);
    await fleet.clock.advance(600);
    await fleet.store.put(older);
    await fleet.clock.advance(700);
    expect([sealingKey(member) === young, open(member, token)]).toEqual([false, 'state']);
    expect(await during(60, member.codec.revoke(young))).toContain('restart the other members');
    expect(open(member, token)).not.toBe('state');
    expect(await during(60, member.codec.revoke(young))).toBe('done');
  });
});

describe('closing', () => {
  test('a rotation that is due does nothing if the codec is closed while it waits behind a read that hangs', async () => {
    const { clock, store } = fleet;
    const timer = { hasFired: false };
    let member: Member | undefined;
    const onTimer = (): void => {
      if (timer.hasFired || member === undefined) return;
      timer.hasFired = true;
      store.hanging = true;
      member.codec.refresh().catch(() => undefined);
    };
    const observed = {
      wallMs: () => clock.wallMs(),
      monotonicNs: () => clock.monotonicNs(),
      uptimeMs: () => clock.uptimeMs(),
      schedule(callback: () => void, delayMs: number) {
        const isRotation = new Error('where').stack?.includes('/member/rotation.ts') === true;
        return clock.schedule(() => {
          if (isRotation) onTimer();
          callback();
        }, delayMs);
      },
    };
    member = await fleet.start({ clock: observed });
    clock.suspend(86_400);
    await member.codec.refresh();
    await member.codec.refresh();
    for (let i = 0; i < 2_000 && !timer.hasFired; i++) await clock.advance(1);
    expect(timer.hasFired).toBe(true);
    const rejections: unknown[] = [];
    const note = (error: unknown): void => void rejections.push(error);
    process.on('unhandledRejection', note);
    await member.codec.close();
    await setImmediate();
    process.off('unhandledRejection', note);
    expect(rejections).toEqual([]);
  });

  test('a watch that cannot be ended does not prevent the codec from closing', async () => {
    const ring = {
      ...fleet.store.connectUnwatched(),
      watch: () => () => {
        throw new Error('the client is closed');
      },
    };
    const member = await fleet.start({ ring });
    await expect(member.codec.close()).rejects.toThrow('the client is closed');
    expect(() => seal(member)).toThrow('closed');
    await expect(member.codec.close()).resolves.toBeUndefined();
  });

  test('a start that a listener of its last event aborts is rejected', async () => {
    const controller = new AbortController();
    const ring = {
      ...fleet.store.connectUnwatched(),
      watch: () => {
        controller.abort(new Error('cancelled'));
        return () => undefined;
      },
    };
    await expect(fleet.start({ ring, signal: controller.signal })).rejects.toThrow('cancelled');
  });
});

describe('a store that hangs while tokens with unknown key ids arrive (F5, F23)', () => {
  test.each([
    [30, 10],
    [5, 1],
  ])('at a deadline of %d s and missRefresh %d s, few reads follow its recovery', async (deadline, missRefresh) => {
    const policy = { kmsTimeoutSeconds: deadline, missRefreshSeconds: missRefresh };
    const member = await fleet.start({ policy, ...unwatched() });
    const token = seal(member);
    fleet.store.hanging = true;
    for (let i = 0; i < 600; i++) {
      open(member, `sr1.${randomBytes(9).toString('base64url')}${token.slice(16)}`);
      await fleet.clock.advance(1);
    }
    fleet.store.hanging = false;
    const before = fleet.store.reads;
    await fleet.clock.advance(deadline);
    expect(fleet.store.reads - before).toBeLessThanOrEqual(2 + deadline / missRefresh);
  });
});

describe('a second KMS that hangs', () => {
  test('adding its missing wraps to many keys does not delay the next read beyond its bound', async () => {
    const second = new FaultKms();
    const other = second.connect('cloud-b');
    other.cut = true;
    const options = { keyWrapper: [fleet.kms.connect('cloud-a'), other], wrapQuorum: 1 };
    const member = await fleet.start({ ...options, ...unwatched() });
    for (let i = 0; i < 20; i++) await during(60, member.codec.rotate({ emergency: true }));
    other.cut = false;
    second.latency = () => new Promise(() => undefined);
    const began = fleet.store.reads;
    const refreshed = during(380, member.codec.refresh());
    await refreshed;
    expect(fleet.store.reads - began).toBeGreaterThanOrEqual(2);
  });
});
