import type { KeyWrapper } from '@sealring/core';
import { keyWrapping } from '@sealring/core/adapter';
import { decrypt, encrypt, kindOf } from './service.ts';

const PROVIDER = 'my-kms';
/** Maximum length of a ciphertext of the service, bytes. */
const MAX_BYTES = 1_024;

/** Wraps data keys with one KMS key of your service. */
export function myKeyWrapper(name: string): KeyWrapper {
  const supports = { context: true, authenticated: true, keyVersions: true };
  // Every call has a deadline, retries once after temporary failures, and ends at once when its signal aborts.
  const calls = keyWrapping.calls({ timeoutMs: 5_000, maxAttempts: 2 }, (error) => ({ kind: kindOf(error) }));
  const owns = (keyId: string): boolean => keyId.startsWith(`${name}#`);
  return {
    provider: PROVIDER,
    keyId: name,
    supports,
    owns: ({ provider, keyId }) => provider === PROVIDER && owns(keyId),

    async wrap(dataKey, options) {
      const copy = keyWrapping.copyDataKey(PROVIDER, dataKey, supports);
      try {
        const { context, signal } = keyWrapping.readWrapOptions(PROVIDER, options);
        const outcome = await calls.run(signal, async (abortSignal) => ({
          answer: await encrypt(name, copy, textOf(context), abortSignal),
        }));
        if ('failure' in outcome) throw keyWrapping.errorOf(PROVIDER, 'wrap', outcome);
        const { ciphertext, version } = outcome.answer;
        const wrapped = keyWrapping.copyWrapped(PROVIDER, 'wrap', ciphertext, MAX_BYTES);
        return { provider: PROVIDER, keyId: `${name}#${version}`, wrapped };
      } finally {
        keyWrapping.overwrite(copy);
      }
    },

    async unwrap(wrappedKey, options) {
      const { context, signal } = keyWrapping.readWrapOptions(PROVIDER, options);
      // Checked before any call, since the ring document must not choose the KMS key.
      const { keyId, wrapped } = keyWrapping.readWrappedKey(PROVIDER, wrappedKey, { maxBytes: MAX_BYTES, owns });
      const encrypted = { ciphertext: wrapped, version: keyId.slice(name.length + 1) };
      const outcome = await calls.run(
        signal,
        async (abortSignal) => ({ answer: await decrypt(name, encrypted, textOf(context), abortSignal) }),
        (late) => keyWrapping.overwrite(late),
      );
      if ('failure' in outcome) throw keyWrapping.errorOf(PROVIDER, 'unwrap', outcome);
      return keyWrapping.takeDataKey(PROVIDER, 'unwrap', outcome.answer, supports);
    },

    async close() {
      calls.close();
    },
  };
}

/** One text for each context, independent of the order of its members. */
function textOf(context: Readonly<Record<string, string>>): string {
  return JSON.stringify(Object.entries(context).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
