import { type KeyWrapper, memoryRing, type RingStore, staticRing } from '@sealring/core';
import { Failure } from '../failure.ts';
import { attempt, openWith } from '../ring/open.ts';
import { codecOptionsOf, keyWrappersOf, type SealringConfig } from '../settings/settings.ts';

/** The ring document in the store. @throws {Failure} if the store has none, or `config` cannot unwrap its keys. */
export async function documentOf(config: SealringConfig): Promise<string> {
  const stored = await attempt('reading the ring', () => config.ring.read());
  if (stored === undefined) throw new Failure('ring-absent', 'the store has no ring');
  await checkDocument(config, stored.document);
  return stored.document;
}

/** Checks a document as a reader does at startup: name, authenticity, and every live key. @throws {Failure} */
export async function checkDocument(config: SealringConfig, document: string): Promise<void> {
  const ring = staticRing(document);
  const codec = await openWith('unwrapping the ring', {
    ...codecOptionsOf(config),
    ring,
    role: 'reader',
    create: 'never',
  });
  await codec.close();
}

/**
 * The same document with wraps by the key wrappers of `target`. A member adds them to a copy in memory, as the members
 * of a fleet do after a key wrapper has been added: no data key leaves this process.
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

/** The key wrappers of both lists, except those of `second` that `first` already has. */
function union(first: readonly KeyWrapper[], second: readonly KeyWrapper[]): readonly KeyWrapper[] {
  const isIn = ({ provider, keyId }: KeyWrapper): boolean =>
    first.some((other) => other.provider === provider && other.keyId === keyId);
  return [...first, ...second.filter((wrapper) => !isIn(wrapper))];
}

async function written(ring: RingStore): Promise<string> {
  const stored = await ring.read();
  if (stored === undefined) throw new Error('the copy in memory has no ring');
  return stored.document;
}
