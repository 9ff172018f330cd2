import { randomBytes } from 'node:crypto';
import {
  type KeyWrapper,
  KeyWrapperError,
  localKeyWrapper,
  memoryRing,
  type RingStore,
  RingStoreError,
} from '@sealring/core';

/** A KMS and a store in memory that count calls and can be out of reach. They answer at once. */
export class SimulatedServices {
  /** `looks`: wraps that are to show whether the KMS key has a new version; not among those of `kms`. */
  readonly calls = { kms: 0, store: 0, looks: 0 };
  isKmsAway = false;
  isStoreAway = false;
  readonly keyWrapper: KeyWrapper;
  readonly ring: RingStore;

  constructor() {
    const local = localKeyWrapper({ masterKey: randomBytes(32) });
    const ring = memoryRing();
    const asksKms = <T>(run: () => Promise<T>, { isLook = false } = {}): Promise<T> => {
      this.calls[isLook ? 'looks' : 'kms'] += 1;
      if (!this.isKmsAway) return run();
      return Promise.reject(new KeyWrapperError('unavailable', { provider: 'simulated', operation: 'unwrap' }));
    };
    const asksStore = <T>(run: () => Promise<T>): Promise<T> => {
      this.calls.store += 1;
      return this.isStoreAway ? Promise.reject(new RingStoreError('unavailable', 'an outage')) : run();
    };
    this.keyWrapper = {
      provider: local.provider,
      keyId: local.keyId,
      // There is only one, but members look for another.
      supports: { ...local.supports, keyVersions: true },
      wrap: (dataKey, options) =>
        asksKms(() => local.wrap(dataKey, options), {
          isLook: options.context['sealring:purpose'] === 'key-version',
        }),
      unwrap: (wrapped, options) => asksKms(() => local.unwrap(wrapped, options)),
    };
    this.ring = {
      kind: 'simulated',
      read: (options) => asksStore(() => ring.read(options)),
      write: (document, options) => asksStore(() => ring.write(document, options)),
    };
  }
}
