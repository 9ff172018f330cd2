import type { KeyObject } from 'node:crypto';
import { formatSecretsOf, type SecretFormat } from '@sealring/core/format-secrets';

/** The current keys of a signed token format. */
export interface LiveKeys<Key> {
  /** The key for new tokens. */
  readonly seal: Key;
  /** The keys that tokens are verified with, the most likely one first. */
  readonly open: readonly Key[];
  /**
   * Requests a read of the ring, for a token that no key in {@link open} verifies. Resolves when the read ends; never
   * rejects.
   */
  noteUnknownKey(): Promise<void>;
}

/** A single fixed key. */
export function fixedKey<Key>(key: Key): LiveKeys<Key> {
  return { seal: key, open: [key], noteUnknownKey: async () => undefined };
}

/**
 * The keys that are derived from the data keys of a ring, for one token format.
 * @throws {TypeError} unless `codec` was made by `createKmsCodec`.
 */
export function ringKeys<Key>(codec: object, format: SecretFormat, derive: (secret: KeyObject) => Key): LiveKeys<Key> {
  const secrets = formatSecretsOf(codec, format);
  return {
    get seal(): Key {
      return derive(secrets.seal);
    },
    get open(): readonly Key[] {
      return secrets.open.map(derive);
    },
    noteUnknownKey: () => secrets.noteUnknownKey(),
  };
}

/** Combines keys: tokens are sealed with `first`, and verified with both. */
export function joinedKeys<Key>(first: LiveKeys<Key>, second: LiveKeys<Key> | undefined): LiveKeys<Key> {
  if (second === undefined) return first;
  return {
    get seal(): Key {
      return first.seal;
    },
    get open(): readonly Key[] {
      return [...first.open, ...second.open];
    },
    async noteUnknownKey() {
      await Promise.all([first.noteUnknownKey(), second.noteUnknownKey()]);
    },
  };
}
