/**
 * For `@sealring/mcp` only: the secrets for the token formats of other projects, and the code that all formats share.
 *
 * @packageDocumentation
 */

import type { KeyObject } from 'node:crypto';
import { show } from './base/options.ts';
import { keeperOf } from './codec/ring-codec.ts';
import type { SecretFormat } from './keys/data-key.ts';

export { decodeBase64url, MAX_TOKEN_LENGTH } from './formats/token.ts';
export type { SecretFormat } from './keys/data-key.ts';

/** The current secrets for one format, from the keys of a ring. Read them again for each use. */
export interface FormatSecrets {
  /** The secret of the sealing key. @throws {SealUnavailableError} when no key may seal now. */
  readonly seal: KeyObject;
  /** The secrets of all keys that may unseal now, newest first; at most 64. */
  readonly open: readonly KeyObject[];
  /**
   * Call this for a token that none of the secrets in {@link open} can unseal. Reads the ring, at most once per
   * `missRefreshSeconds`, because another member may have published its key since. Resolves when that read has ended,
   * whether it succeeded or not.
   */
  noteUnknownKey(): Promise<void>;
}

/**
 * The current secrets for another project's format, for `@sealring/mcp` only. They unseal that format and no other.
 * @throws {TypeError} unless `codec` was made by `createKmsCodec`.
 */
export function formatSecretsOf(codec: object, format: SecretFormat): FormatSecrets {
  const keeper = keeperOf(codec);
  if (keeper === undefined) throw new TypeError(`formatSecretsOf: codec must be a KmsCodec, got ${show(codec)}`);
  const { view } = keeper;
  return Object.freeze({
    get seal(): KeyObject {
      return view.sealingKey(view.now()).held.formatKey(format);
    },
    get open(): readonly KeyObject[] {
      return view.unsealingKeys(view.now()).map((key) => key.held.formatKey(format));
    },
    noteUnknownKey(): Promise<void> {
      return keeper.causedReads.forToken(view.now(), { foreground: true });
    },
  });
}
