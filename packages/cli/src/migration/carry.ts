import { type KeyWrapper, memoryRing, type RingStore, staticRing } from '@sealring/core';
import { Failure } from '../failure.ts';
import { attempt, openWith } from '../ring/open.ts';
import { codecOptionsOf, keyWrappersOf, type SealringConfig } from '../settings/settings.ts';

/** The document that a store holds, and that its configuration opens. @throws {Failure} unless it does. */
export async function documentOf(config: SealringConfig): Promise<string> {
  const stored = await attempt('reading the ring', () => config.ring.read());
  if (stored === undefined) throw new Failure('there is no ring in the store');
  await proveThatItOpens(config, stored.document);
  return stored.document;
}

/** Opens a document as a starting reader does: name, authenticity, and every live key. @throws {Failure} */
export async function proveThatItOpens(config: SealringConfig, document: string): Promise<void> {
  const ring = staticRing(document);
  const codec = await openWith('opening the ring', {
    ...codecOptionsOf(config),
    ring,
    role: 'reader',
    create: 'never',
  });
  await codec.close();
}

/**
 * The same ring with wraps by the key wrappers of `target` added, for a KMS key that never saw it. A member does it on a
 * copy in memory, as members of a running fleet do when a key wrapper is added: no data key leaves the member.
 *
 * @throws {Failure}
 */
export async function withWrapsOf(target: SealringConfig, source: SealringConfig, document: string): Promise<string> {
  const copy = memoryRing();
  await copy.write(document, { expected: undefined });
  const keyWrapper = union(keyWrappersOf(target), keyWrappersOf(source));
  const codec = await openWith('wrapping the data keys', {
    ...codecOptionsOf(target),
    keyWrapper,
    wrapQuorum: keyWrapper.length,
    ring: copy,
    role: 'member',
    create: 'never',
  });
  try {
    await attempt('wrapping the data keys', () => codec.refresh());
  } finally {
    await codec.close();
  }
  return written(copy);
}

/** The same KMS key in both configurations is one key wrapper. */
function union(first: readonly KeyWrapper[], second: readonly KeyWrapper[]): readonly KeyWrapper[] {
  const isIn = ({ provider, keyId }: KeyWrapper): boolean =>
    first.some((other) => other.provider === provider && other.keyId === keyId);
  return [...first, ...second.filter((wrapper) => !isIn(wrapper))];
}

async function written(ring: RingStore): Promise<string> {
  const stored = await ring.read();
  if (stored === undefined) throw new Error('the copy of the ring is gone');
  return stored.document;
}
