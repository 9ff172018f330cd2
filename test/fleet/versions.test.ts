import { createKmsCodec, type KmsCodec, localKeyWrapper, memoryRing, type RingStore } from '@sealring/core';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { HandClock } from './hostile.ts';

const payload = new TextEncoder().encode('{"order":"A1"}');
const clock = new HandClock();
const codecs: KmsCodec[] = [];
let store: RingStore;

beforeEach(() => {
  store = memoryRing();
});
afterEach(async () => {
  await Promise.all(codecs.splice(0).map((codec) => codec.close()));
});

async function member(ring: RingStore = store): Promise<KmsCodec> {
  const keyWrapper = localKeyWrapper({ masterKey: Buffer.alloc(32, 'ÿ a fixed key') });
  const codec = await createKmsCodec({ keyWrapper, ring, clock, policy: { startTimeoutSeconds: 1 } });
  codecs.push(codec);
  return codec;
}

interface Entry {
  readonly wraps: readonly object[];
}

interface Body {
  readonly keys: readonly Entry[];
}

async function stored(): Promise<string> {
  return (await store.read())?.document ?? '';
}

/** Writes the document as another version would write it. */
async function rewrite(change: (body: Body) => object): Promise<string> {
  const { document = '', revision } = (await store.read()) ?? {};
  const changed = JSON.stringify(change(JSON.parse(document) as Body));
  await store.write(changed, { expected: revision });
  return changed;
}

const changes: readonly (readonly [string, (body: Body) => object])[] = [
  ['another format', (body) => ({ ...body, format: 'sealring/ring/2' })],
  ['an additional member', (body) => ({ ...body, contacts: { next: [1, 2] } })],
  ['a new member in a key', (body) => ({ ...body, keys: body.keys.map((key) => ({ ...key, labels: ['next'] })) })],
  [
    'a new member in a wrap',
    (body) => ({
      ...body,
      keys: body.keys.map((key) => ({ ...key, wraps: key.wraps.map((wrap) => ({ ...wrap, attestation: 'next' })) })),
    }),
  ],
];

describe.for(changes)('another version of the format that writes %s, in place of this one (F27)', ([, change]) => {
  test('a ring in another version of the format is refused by a starting member, and not overwritten', async () => {
    await (await member()).close();
    const next = await rewrite(change);
    await expect(member()).rejects.toMatchObject({ name: 'RingStoreError', kind: 'corrupt' });
    expect(await stored()).toBe(next);
  });

  test('a ring in another version of the format is ignored by a running member, which unseals as before and overwrites that ring', async () => {
    const [a, b] = [await member(), await member()];
    const before = await stored();
    const token = a.seal(payload);
    const next = await rewrite(change);
    for (const codec of [a, b]) await expect(codec.refresh()).rejects.toMatchObject({ kind: 'corrupt' });
    expect(await stored()).toBe(next);
    expect(b.unseal(token)).toEqual(payload);
    clock.advance(11);
    await a.refresh();
    expect(await stored()).toBe(before);
    await b.refresh();
    for (const codec of [a, b]) {
      expect(codec.unseal(token)).toEqual(payload);
      expect(codec.health()).toMatchObject({ status: 'ok', lastError: undefined });
    }
  });
});

test('the next version of the format has its own place, and neither version reads the other (F27)', async () => {
  const next = memoryRing();
  const [ours, theirs] = [await member(), await member(next)];
  expect(theirs.unseal(theirs.seal(payload))).toEqual(payload);
  expect(() => theirs.unseal(ours.seal(payload))).toThrow('unknown key');
  expect(await stored()).not.toBe((await next.read())?.document);
});
