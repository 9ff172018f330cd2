import type { KeyObject } from 'node:crypto';
import { formatSecretsOf, type SecretFormat } from '@sealring/core/format-secrets';

/** The keys of a signed wire, as of the moment each is asked for. */
export interface LiveKeys<Key> {
  /** The one for new tokens. */
  readonly seal: Key;
  /** Those that may open, likeliest first. */
  readonly open: readonly Key[];
  /** To be told of a token that none of {@link open} opened. Resolves when it was looked for its key; never rejects. */
  noteUnknownKey(): Promise<void>;
}

/** One key for ever. */
export function fixedKey<Key>(key: Key): LiveKeys<Key> {
  return { seal: key, open: [key], noteUnknownKey: async () => undefined };
}

/**
 * The keys that a ring derives for a format.
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

/** `first` for new tokens; both open. */
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
