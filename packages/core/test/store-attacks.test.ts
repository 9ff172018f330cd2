import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { CodecHealth } from '../src/codec-health.ts';
import { HeldKey } from '../src/key-cache.ts';
import type { KeyWrapper } from '../src/key-wrapper.ts';
import { localKeyWrapper } from '../src/local-key-wrapper.ts';
import { authenticate } from '../src/ring/authentication.ts';
import { encodeBody, encodeDocument, parseDocument, type RingEntry, wrapContext } from '../src/ring/document.ts';
import { Fleet, type Member, open, seal } from './support/fleet.ts';

let fleet: Fleet;
/** Data keys that have leaked, by id: whoever has them can sign documents. */
let leaked: Map<string, Uint8Array>;
beforeEach(() => {
  fleet = new Fleet();
  leaked = new Map();
});
afterEach(() => fleet.close());

/** A service whose every plaintext answer leaks. */
function leaking(inner: KeyWrapper): KeyWrapper {
  return {
    ...inner,
    async unwrap(wrapped, options) {
      const dataKey = await inner.unwrap(wrapped, options);
      leaked.set(new HeldKey(dataKey, 'default').id, Uint8Array.from(dataKey));
      return dataKey;
    },
  };
}

async function stored(ring = 'default') {
  return parseDocument((await fleet.store.document()) ?? '', ring);
}

/** Writes entries of one's own choice under the next epoch, signed with every key that has leaked. */
async function writeAsThief(
  entries: readonly RingEntry[],
  signedFor: (id: string) => string = (id) => id,
): Promise<void> {
  const before = await stored();
  const body = encodeBody({ ...before, epoch: before.epoch + 1, entries });
  const keys = Array.from(leaked, ([, dataKey]) => new HeldKey(dataKey, 'default'));
  const macs = new Map(Array.from(authenticate(body, keys), ([id, mac]) => [signedFor(id), mac]));
  await fleet.store.put(encodeDocument(body, macs));
}

/**
 * What becomes of a document: whether somebody starts from it, and which keys whoever runs holds with other times or
 * under another name than before. What the true document held works again once that is back.
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

function timesOf({ created, activates, sealsUntil, opensUntil }: CodecHealth['keys'][number]): Date[] {
  return [created, activates, sealsUntil, opensUntil];
}

const REFUSED = { starts: false, taken: [] };

describe('F26: whoever can write the store, and has stolen the ring’s data keys,', () => {
  const HOUR = 3_600_000;
  const edits: Record<string, Partial<Pick<RingEntry, 'created' | 'activates' | 'sealsUntil' | 'opensUntil'>>> = {
    'made later than a pin': { created: 7 * 24 * HOUR },
    'active later': { activates: HOUR },
    'sealed with for longer': { sealsUntil: HOUR },
    'opened with for longer': { opensUntil: 365 * 24 * HOUR },
  };

  for (const [title, edit] of Object.entries(edits)) {
    test(`cannot have a key ${title}: its times are bound into its wraps`, async () => {
      const a = await fleet.start({ keyWrapper: leaking(fleet.kms.connect()) });
      const token = seal(a);
      const honest = (await fleet.store.document()) ?? '';
      const [entry] = (await stored()).entries;
      if (entry === undefined) throw new Error('the ring has a key');
      const [[name, by]] = Object.entries(edit) as [[keyof typeof edit, number]];
      await writeAsThief([{ ...entry, [name]: entry[name] + by }]);
      expect(await outcomeOf(a, honest, token)).toEqual(REFUSED);
    });
  }

  test('cannot give the blob of one key to another', async () => {
    const a = await fleet.start({ keyWrapper: leaking(fleet.kms.connect()) });
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

  test('cannot give a key another name: it is computed from the key', async () => {
    const a = await fleet.start({ keyWrapper: leaking(fleet.kms.connect()) });
    const token = seal(a);
    const honest = (await fleet.store.document()) ?? '';
    const [entry] = (await stored()).entries;
    if (entry === undefined) throw new Error('the ring has a key');
    const id = randomBytes(9).toString('base64url');
    await writeAsThief([{ ...entry, id }], () => id);
    expect(await outcomeOf(a, honest, token)).toEqual(REFUSED);
  });

  test('cannot make a running member take back what is newer: the epoch only grows', async () => {
    const [one, other] = [
      localKeyWrapper({ masterKey: randomBytes(32) }),
      localKeyWrapper({ masterKey: randomBytes(32) }),
    ];
    const a = await fleet.start({ keyWrapper: one });
    const old = (await fleet.store.document()) ?? '';
    const b = await fleet.start({ keyWrapper: [one, other] });
    // The same keys, one wrap more.
    await b.codec.refresh();
    await a.codec.refresh();
    b.ring.cut = true;
    await fleet.store.put(old);
    const refreshed = a.codec.refresh();
    await fleet.clock.advance(10);
    await refreshed;
    const healed = await stored();
    expect(healed.entries[0]?.wraps).toHaveLength(2);
    expect(healed.epoch).toBeGreaterThan(2);
  });
});

describe('F25: rings that share a KMS key', () => {
  test('do not unwrap each other’s keys: the name is bound into every wrap', async () => {
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

  test('do not take a document that was renamed, not even from somebody who has the keys', async () => {
    const a = await fleet.start({ keyWrapper: leaking(fleet.kms.connect()) });
    const before = await stored();
    const body = encodeBody({ ...before, ring: 'orders' });
    const keys = Array.from(leaked, ([, dataKey]) => new HeldKey(dataKey, 'orders'));
    await fleet.store.put(encodeDocument(body, authenticate(body, keys)));
    await expect(fleet.start({ ringName: 'orders' })).rejects.toMatchObject({
      name: 'KeyWrapperError',
      kind: 'corrupt',
    });
    expect(open(a, seal(a))).toBe('state');
  });
});
