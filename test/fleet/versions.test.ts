import { createHash, createHmac } from 'node:crypto';
import {
  createKmsCodec,
  type KeyWrapper,
  type KmsCodec,
  localKeyWrapper,
  memoryRing,
  type RingStore,
} from '@sealring/core';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { HandClock } from './hostile.ts';

const RING = 'default';
const payload = new TextEncoder().encode('{"order":"A1"}');
const clock = new HandClock();
const codecs: KmsCodec[] = [];
/** What a member of any version holds: the data keys of the ring, by id. */
const dataKeys = new Map<string, Buffer>();
let store: RingStore;

beforeEach(() => {
  store = memoryRing();
  dataKeys.clear();
});
afterEach(async () => {
  await Promise.all(codecs.splice(0).map((codec) => codec.close()));
});

/** Keeps a copy of every data key that passes: the next version's code, below, signs with them. */
function overheard(inner: KeyWrapper): KeyWrapper {
  return {
    provider: inner.provider,
    keyId: inner.keyId,
    supports: inner.supports,
    wrap: (dataKey, options) => inner.wrap(dataKey, options),
    async unwrap(wrapped, options) {
      const dataKey = await inner.unwrap(wrapped, options);
      dataKeys.set(idOf(dataKey), Buffer.from(dataKey));
      return dataKey;
    },
  };
}

async function member(): Promise<KmsCodec> {
  const keyWrapper = overheard(localKeyWrapper({ masterKey: 'a master key of more than thirty-two bytes' }));
  const codec = await createKmsCodec({ keyWrapper, ring: store, clock });
  codecs.push(codec);
  return codec;
}

interface Entry {
  readonly id: string;
  readonly wraps: readonly object[];
}

interface Body {
  readonly epoch: number;
  readonly keys: readonly Entry[];
}

async function stored(): Promise<{ body: Body; revision: string }> {
  const { document, revision } = (await store.read()) ?? { document: '', revision: '' };
  return { body: JSON.parse(document.split('\n')[0] ?? '') as Body, revision };
}

/** The documented id of a data key, computed by nobody's code but this; so is the MAC. */
function idOf(dataKey: Uint8Array): string {
  return createHash('sha256').update('sealring/v1/key-id').update(dataKey).digest().toString('base64url', 0, 9);
}

function macOf(body: string, dataKey: Uint8Array): string {
  const length = String.fromCharCode(0, RING.length);
  const sub = createHmac('sha512', dataKey).update(`sealring/v1/ring-mac\0${length}${RING}`, 'latin1').digest();
  return createHmac('sha256', sub.subarray(0, 32)).update(body, 'ascii').digest('base64url');
}

/** What the next version writes: members that this one does not know, at every level. */
async function writeAsNextVersion(keyFor = (dataKey: Buffer): Buffer => dataKey): Promise<void> {
  const { body, revision } = await stored();
  const keys = body.keys.map((entry) => ({
    ...entry,
    wraps: entry.wraps.map((wrap) => ({ ...wrap, attestation: { by: 'next' } })),
    labels: ['next'],
  }));
  const text = JSON.stringify({ ...body, epoch: body.epoch + 1, keys, contacts: { next: [1, 2] } });
  const macs = Object.fromEntries(Array.from(dataKeys, ([id, dataKey]) => [id, macOf(text, keyFor(dataKey))]));
  await store.write(`${text}\n${JSON.stringify({ macs })}`, { expected: revision });
}

test('F27: N, N+1, N: what the next version adds at every level is adopted, kept through rotations, and loses no token', async () => {
  const [a, b] = [await member(), await member()];
  const tokens = [a.seal(payload), b.seal(payload)];
  await writeAsNextVersion();
  await a.refresh();
  await a.rotate();
  await b.refresh();
  await b.rotate();
  // A member of this version that starts into what the next one wrote: a rollback.
  const c = await member();
  tokens.push(c.seal(payload));
  for (const codec of [a, b, c]) {
    await codec.refresh();
    for (const token of tokens) expect(codec.unseal(token)).toEqual(payload);
    expect(codec.health()).toMatchObject({ status: 'ok', lastError: undefined });
  }
  const { body } = await stored();
  expect(body).toMatchObject({ epoch: 4, contacts: { next: [1, 2] } });
  expect(body.keys).toHaveLength(3);
  const old = body.keys[0];
  expect(old).toMatchObject({ labels: ['next'], wraps: [{ attestation: { by: 'next' } }] });
});

test('F26, F27: the same document under another MAC key is refused', async () => {
  const a = await member();
  await writeAsNextVersion(() => Buffer.alloc(32, 1));
  await expect(a.refresh()).rejects.toMatchObject({ name: 'RingStoreError', kind: 'corrupt' });
  await expect(member()).rejects.toMatchObject({ name: 'RingStoreError', kind: 'corrupt' });
});
