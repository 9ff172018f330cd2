import type { KeyHealth } from '@sealring/core';
import { longTime } from '../terminal/long-time.ts';
import { keyName } from './key-name.ts';

/** The keys of a ring that were not there before. */
export function publishedKeys(
  before: readonly { readonly id: string }[],
  after: readonly KeyHealth[],
): readonly KeyHealth[] {
  const known = new Set(before.map(({ id }) => id));
  return after.filter(({ id, state }) => !known.has(id) && state !== 'revoked');
}

/** The published key, in one line. */
export function publishedText(keys: readonly KeyHealth[]): string {
  if (keys.length === 0) return 'published no key';
  return keys
    .map(({ id, state, activates }) => {
      const from = state === 'propagating' ? `seals from ${longTime(activates)}` : 'seals now';
      return `published key ${keyName(id)}, which ${from}`;
    })
    .join('; ');
}
