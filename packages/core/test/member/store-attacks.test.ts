import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { CodecHealth } from '../../src/codec/codec-health.ts';
import { encodeDocument, parseDocument, type RingEntry, wrapContext } from '../../src/ring/document.ts';
import { Fleet, type Member, open, seal } from '../support/fleet.ts';
import { Thief } from '../support/thief.ts';

let fleet: Fleet;
let thief: Thief;
beforeEach(() => {
  fleet = new Fleet();
  thief = new Thief();
});
afterEach(() => fleet.close());

/** A member whose KMS leaks every data key to the thief. */
function robbed(): Promise<Member> {
  return fleet.start({ keyWrapper: thief.spy(fleet.kms.connect()) });
}

async function stored(ring = 'default') {
  return parseDocument((await fleet.store.document()) ?? '', ring);
}

/** Writes arbitrary entries, each with vouchers and certificates of every leaked key. */
async function writeAsThief(entries: readonly RingEntry[]): Promise<void> {
  const certified = entries.map((entry) => thief.certified(entry, thief.stolen));
  await fleet.store.put(encodeDocument({ ...(await stored()), entries: certified }));
}

/**
 * The effect of a document: whether a member starts from it, and which keys running members then hold with other times
 * or under another name. The genuine document works again once it is back.
 */
async function outcomeOf(
  running: Member,
  honest: string,
  token: string,
): Promise<{ starts: boolean; taken: string[] }> {
  const before = new Map(running.codec.health().keys.map((key) => [key.id, JSON.stringify(timesOf(key))]));
  const starts = await fleet.start().then(
    () => true,
    () => false,
  );
  await running.codec.refresh().catch(() => undefined);
  await fleet.clock.advance(30);
  const held = running.codec.health().keys.filter((key) => key.held);
  const taken = held.filter((key) => before.get(key.id) !== JSON.stringify(timesOf(key))).map(({ id }) => id);
  await fleet.store.put(honest);
  await running.codec.refresh();
  await fleet.clock.advance(30);
  expect([open(running, token), open(running, seal(running))]).toEqual(['state', 'state']);
  return { starts, taken };
}

function timesOf({ created, activates, sealsUntil, unsealsUntil }: CodecHealth['keys'][number]): Date[] {
  return [created, activates, sealsUntil, unsealsUntil];
}

const REFUSED = { starts: false, taken: [] };

describe('an attacker who can write to the store and has stolen the data keys of the ring (F26)', () => {
  const HOUR = 3_600_000;
  const edits: Record<string, Partial<Pick<RingEntry, 'created' | 'activates' | 'sealsUntil' | 'opensUntil'>>> = {
    'created later than a pin': { created: 7 * 24 * HOUR },
    'that is active later': { activates: HOUR },
    'that seals for longer': { sealsUntil: HOUR },
    'that unseals for longer': { opensUntil: 365 * 24 * HOUR },
  };

  for (const [title, edit] of Object.entries(edits)) {
    test(`a thief cannot turn a key into one ${title}, because its times are bound into its wraps`, async () => {
      const a = await robbed();
      const token = seal(a);
      const honest = (await fleet.store.document()) ?? '';
      const [entry] = (await stored()).entries;
      if (entry === undefined) throw new Error('the ring has a key');
      const [[name, by]] = Object.entries(edit) as [[keyof typeof edit, number]];
      await writeAsThief([{ ...entry, [name]: entry[name] + by }]);
      expect(await outcomeOf(a, honest, token)).toEqual(REFUSED);
    });
  }

  test('a thief cannot give the ciphertext of one key to another', async () => {
    const a = await robbed();
    await a.codec.rotate({ emergency: true });
    const token = seal(a);
    const honest = (await fleet.store.document()) ?? '';
    const [first, second] = (await stored()).entries;
    if (first === undefined || second === undefined) throw new Error('the ring has two keys');
    await writeAsThief([
      { ...first, wraps: second.wraps },
      { ...second, wraps: first.wraps },
    ]);
    expect(await outcomeOf(a, honest, token)).toEqual(REFUSED);
  });

  test('a thief cannot give a key another id, because the id is computed from the key', async () => {
    const a = await robbed();
    const token = seal(a);
    const honest = (await fleet.store.document()) ?? '';
    const [entry] = (await stored()).entries;
    if (entry === undefined) throw new Error('the ring has a key');
    const id = randomBytes(9).toString('base64url');
    await writeAsThief([{ ...entry, id }]);
    expect(await outcomeOf(a, honest, token)).toEqual(REFUSED);
  });
});

describe('rings that share a KMS key (F25)', () => {
  test('rings that share a KMS key do not unwrap each other’s keys, because the name of the ring is bound into every wrap', async () => {
    const keyWrapper = fleet.kms.connect();
    await fleet.start({ keyWrapper, ringName: 'payments' });
    const [entry] = (await stored('payments')).entries;
    const [wrap] = entry?.wraps ?? [];
    if (entry === undefined || wrap === undefined) throw new Error('the ring has a wrapped key');
    const unwrapAs = (ring: string) => keyWrapper.unwrap(wrap, { context: wrapContext(ring, entry) });
    expect(await unwrapAs('payments')).toHaveLength(32);
    for (const ring of ['default', 'Payments', 'payment', 'payments.', 'orders']) {
      await expect(unwrapAs(ring)).rejects.toMatchObject({ name: 'KeyWrapperError', kind: 'corrupt' });
    }
  });

  test('a ring does not accept a renamed document of another ring, even from an attacker who has the keys', async () => {
    const a = await robbed();
    const before = await stored();
    const other = new Thief('orders');
    for (const id of thief.stolen) other.steal(thief.key(id).copyBytes());
    const entries = before.entries.map((entry) => other.certified({ ...entry, vouchers: new Map() }, other.stolen));
    await fleet.store.put(encodeDocument({ ...before, ring: 'orders', entries }));
    await expect(fleet.start({ ringName: 'orders' })).rejects.toMatchObject({
      name: 'KeyWrapperError',
      kind: 'corrupt',
    });
    expect(open(a, seal(a))).toBe('state');
  });
});
