import {
  encodeDocument,
  parseDocument,
  type RingDocument,
  type RingEntry,
  type RingWrap,
} from '../../src/ring/document.ts';
import { unwrappedKey } from '../../src/ring/facts.ts';
import { learn } from '../../src/ring/learn.ts';
import { createSnapshot, type RingKey, type RingSnapshot } from '../../src/ring/snapshot.ts';
import { documentOf } from '../../src/ring/written-document.ts';
import { documentWith, entryBy, judgementOf, RING, type TestKey, testKey } from './certified.ts';

/* Keys of one ring, their entries, and what a member that unwrapped them knows and writes. */

export const [one, two, three, four] = [testKey(1), testKey(2), testKey(3), testKey(4)] as const;
export const newestKey: TestKey = testKey(5);
export const stranger: TestKey = testKey(99);

export const first: RingEntry = entryBy(one, []);
export const second: RingEntry = entryBy(two, [one]);
export const third: RingEntry = entryBy(three, [one, two]);

export const junkMac: Buffer = Buffer.alloc(32, 7);
export const junkWrap = (n: number): RingWrap => ({
  provider: 'local',
  keyId: `junk ${n}`,
  wrapped: Buffer.from([n]),
  mac: junkMac,
});
export const junkId = (n: number): string => Buffer.from(`junk${n}`.padEnd(9)).toString('base64url');

/** Facts about keys that were unwrapped from these entries. */
export function knowing(...keys: readonly (readonly [TestKey, RingEntry])[]): RingSnapshot {
  const held = keys.map(([key, entry]) => unwrappedKey(RING, entry, key.held, entry.wraps[0], 0));
  return learn(createSnapshot(held, []), documentWith(...keys.map(([, entry]) => entry)), judgementOf()).known;
}

/** A key without vouchers, as its publisher or a member that unwrapped it knows it. */
export function ownKey(key: TestKey): RingKey {
  const entry = entryBy(key, []);
  return unwrappedKey(RING, entry, key.held, entry.wraps[0], 0);
}

/** The known key with this id. */
export function keyOf(known: RingSnapshot, { id }: TestKey): RingKey {
  const key = known.byId.get(id);
  if (key === undefined) throw new Error('the key is not known');
  return key;
}

export function written(known: RingSnapshot, read: RingDocument | undefined): RingDocument {
  const document = documentOf(known, read, { ring: RING, past: new Map(), isRemovable: () => false });
  // Written documents can be read.
  return parseDocument(encodeDocument(document), RING);
}
