import { createHash } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { channels, hashedKeyId } from '../../src/contracts/events.ts';
import { KeyWrapperError } from '../../src/contracts/key-wrapper.ts';
import { Fleet } from '../support/fleet.ts';

type Event = Readonly<Record<string, unknown>>;

const DAY = 86_400;
const names = Object.keys(channels).map((name) => `sealring:${name}`);
let heard: { readonly channel: string; readonly event: Event }[] = [];
const listen = (event: unknown, channel: string | symbol): void => {
  heard.push({ channel: String(channel).replace('sealring:', ''), event: Object(event) });
};

let fleet: Fleet;
beforeEach(() => {
  fleet = new Fleet();
  heard = [];
  for (const name of names) subscribe(name, listen);
});
afterEach(async () => {
  for (const name of names) unsubscribe(name, listen);
  await fleet.close();
});

function of(channel: string): readonly Event[] {
  return heard.filter((one) => one.channel === channel).map(({ event }) => event);
}

describe('calls to the KMS and the store', () => {
  test('calls to the KMS and the store are reported one by one, including failed attempts', async () => {
    fleet.kms.failNext = 1;
    await fleet.start();
    expect(of('kms-call').map(({ operation, ok, kind }) => [operation, ok, kind])).toEqual([
      ['generate', false, 'unavailable'],
      ['generate', true, undefined],
      ['unwrap', true, undefined],
    ]);
    expect(of('store-call').map(({ store, operation, ok }) => [store, operation, ok])).toContainEqual([
      'memory',
      'write',
      true,
    ]);
    expect(heard.filter(({ event }) => event['ringName'] !== 'default')).toEqual([]);
    for (const { seconds } of [...of('kms-call'), ...of('store-call')]) expect(seconds).toBeGreaterThanOrEqual(0);
  });

  test('calls that hang are reported at their deadline, with the time they took (F29)', async () => {
    const { codec } = await fleet.start();
    fleet.kms.hanging = true;
    fleet.store.hanging = true;
    heard = [];
    await fleet.clock.advance(1_200);
    expect(of('store-call')).toContainEqual({
      ringName: 'default',
      store: 'memory',
      operation: 'read',
      ok: false,
      kind: 'unavailable',
      seconds: 5,
    });
    expect(of('kms-call')).toContainEqual({
      ringName: 'default',
      provider: 'local',
      operation: 'unwrap',
      ok: false,
      kind: 'unavailable',
      seconds: 5,
    });
    expect(of('refresh').find(({ seconds }) => seconds === 10)).toMatchObject({ ok: false });
    expect(codec.health().status).not.toBe('ok');
  });

  test('a write that lost its race is reported as a conflict, not as a failure of another kind', async () => {
    await fleet.start();
    await fleet.start();
    const [one, other] = fleet.members;
    heard = [];
    await Promise.allSettled(
      [one?.codec.rotate({ emergency: true }), other?.codec.rotate({ emergency: true })].map((rotation) =>
        Promise.all([rotation, fleet.clock.advance(30)]),
      ),
    );
    const failed = of('store-call').filter(({ ok }) => ok === false);
    expect(failed).not.toEqual([]);
    expect(failed.every(({ operation, kind }) => operation === 'write' && kind === 'conflict')).toBe(true);
    expect(of('rotation-failed')).toEqual([]);
  });

  test('calls that close ends are not reported, because they show nothing about the service', async () => {
    const { codec } = await fleet.start();
    fleet.kms.hanging = true;
    fleet.store.hanging = true;
    const refresh = codec.refresh().catch(() => undefined);
    await fleet.clock.advance(1);
    heard = [];
    await Promise.all([codec.close(), fleet.clock.advance(1)]);
    await refresh;
    expect([...of('kms-call'), ...of('store-call')]).toEqual([]);
  });
});

describe('a rotation that fails (F7)', () => {
  test('a scheduled rotation that fails is reported', async () => {
    await fleet.start();
    fleet.kms.wrapFailing = 'denied';
    await fleet.clock.advance(DAY);
    expect(of('rotation-failed')).toContainEqual(
      expect.objectContaining({ reason: 'scheduled', source: 'kms', kind: 'denied' }),
    );
    expect(of('rotation').map(({ reason }) => reason)).toEqual(['initial']);
  });

  test('a requested rotation that fails is reported', async () => {
    const { codec } = await fleet.start();
    fleet.kms.wrapFailing = 'disabled';
    await expect(codec.rotate()).rejects.toThrow(KeyWrapperError);
    await expect(codec.rotate({ emergency: true })).rejects.toThrow(KeyWrapperError);
    expect(of('rotation-failed').map(({ reason, source, kind }) => [reason, source, kind])).toEqual([
      ['requested', 'kms', 'disabled'],
      ['emergency', 'kms', 'disabled'],
    ]);
    for (const { seconds } of [...of('rotation'), ...of('rotation-failed')]) expect(seconds).toBeGreaterThanOrEqual(0);
  });
});

test('a revocation that fails in the store is reported as a failed rotation, but a failing KMS prevents no revocation (F7)', async () => {
  const { codec } = await fleet.start();
  fleet.kms.wrapFailing = 'disabled';
  await codec.revoke(codec.health().sealingKey ?? '');
  expect(of('rotation-failed')).toEqual([]);
  fleet.kms.wrapFailing = undefined;
  await codec.refresh();
  fleet.store.down = true;
  const revocation = codec.revokeAllBefore(new Date(fleet.clock.wallMs() + 1_000));
  await Promise.all([expect(revocation).rejects.toMatchObject({ kind: 'unavailable' }), fleet.clock.advance(60)]);
  expect(of('rotation-failed')).toMatchObject([{ reason: 'revocation', source: 'store', kind: 'unavailable' }]);
});

test('each channel has a name that begins with sealring:, and computes an event only for subscribers', () => {
  for (const [name, channel] of Object.entries(channels)) {
    channel.publish(() => ({ ringName: name }) as never);
    expect([channel.isHeard, heard.pop()]).toEqual([true, { channel: name, event: { ringName: name } }]);
    unsubscribe(`sealring:${name}`, listen);
    expect(channel.isHeard).toBe(false);
    channel.publish(() => {
      throw new Error('computed');
    });
  }
});

test('the hash of a key id is the beginning of a SHA-256 in base64url', () => {
  const hash = createHash('sha256').update('sealring/v1/event/key').digest('base64url');
  expect(hashedKeyId('key')).toBe(hash.slice(0, 12));
});

test('the exported hash of a key id equals the hash in the events', async () => {
  const { codec } = await fleet.start();
  const ids = codec.health().keys.map(({ id }) => hashedKeyId(id));
  expect(of('rotation').map(({ keyId }) => keyId)).toEqual(ids);
});
