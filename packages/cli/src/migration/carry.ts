import { type KeyWrapper, memoryRing, type RingStore, staticRing } from '@sealring/core';
import type { RingEntry } from '@sealring/core/ring';
import { Failure } from '../failure.ts';
import { readDocument, unexpiredKeysOf, unusedKeysOf } from '../ring/document.ts';
import { keyName } from '../ring/key-name.ts';
import { attempt, openWith } from '../ring/open.ts';
import { codecOptionsOf, keyWrappersOf, nowOf, type SealringConfig } from '../settings/settings.ts';

/** The ring document in the store. @throws {Failure} if the store has none, or `config` cannot unwrap its keys. */
export async function documentOf(config: SealringConfig): Promise<string> {
  const stored = await attempt('reading the ring', () => config.ring.read());
  if (stored === undefined) throw new Failure('ring-absent', 'the store has no ring');
  await checkDocument(config, stored.document);
  return stored.document;
}

/**
 * Checks a document as a reader does at startup: its name and its authenticity. A reader starts if it can unwrap one live
 * key; this check requires all of them. @throws {Failure}
 */
export async function checkDocument(config: SealringConfig, document: string): Promise<void> {
  const ring = staticRing(document);
  const codec = await openWith('unwrapping the ring', {
    ...codecOptionsOf(config),
    ring,
    role: 'reader',
    create: 'never',
  });
  const { keys } = codec.health();
  await codec.close();
  const entries = readDocument(document)?.entries ?? [];
  const unused = unusedKeysOf({ entries }, keys, nowOf(config), config.acceptKeysCreatedAfter);
  if (unused.length > 0) throw new Failure('not-unwrapped', notUnwrapped(namesOf(unused)));
}

function notUnwrapped(names: string): string {
  return (
    `this configuration cannot unwrap every live key of the ring, or no key of the ring vouches for it: ${names}. Use a ` +
    'configuration with all key wrappers of the servers. "sealring doctor" shows more'
  );
}

function namesOf(keys: readonly { readonly id: string }[]): string {
  return keys.map(({ id }) => keyName(id)).join(', ');
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
  const carried = await written(copy);
  checkSameKeys(document, carried, nowOf(target));
  return carried;
}

/**
 * A member may have published a successor that was due, which servers at the old place would not know, or left out a key
 * that it could not authenticate. @throws {Failure}
 */
function checkSameKeys(before: string, after: string, nowMs: number): void {
  const [old, carried] = [unexpiredIn(before, nowMs), unexpiredIn(after, nowMs)];
  if (without(carried, old).length > 0) throw new Failure('keys-changed', DUE);
  const lost = without(old, carried);
  if (lost.length > 0) throw new Failure('keys-changed', `the copy of the ring would lack keys: ${namesOf(lost)}`);
}

function unexpiredIn(text: string, nowMs: number): readonly RingEntry[] {
  return unexpiredKeysOf({ entries: readDocument(text)?.entries ?? [] }, nowMs);
}

function without(keys: readonly RingEntry[], others: readonly RingEntry[]): readonly RingEntry[] {
  return keys.filter(({ id }) => !others.some((other) => other.id === id));
}

const DUE =
  'the ring needs a new key, so a copy of it would have a key that the old place does not have: nothing was written. Run ' +
  '"sealring rotate" with the old configuration, and import again';

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
