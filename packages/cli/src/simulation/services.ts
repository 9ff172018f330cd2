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
  readonly calls = { kms: 0, store: 0 };
  isKmsAway = false;
  isStoreAway = false;
  readonly keyWrapper: KeyWrapper;
  readonly ring: RingStore;

  constructor() {
    const local = localKeyWrapper({ masterKey: randomBytes(32) });
    const ring = memoryRing();
    const asksKms = <T>(run: () => Promise<T>): Promise<T> => {
      this.calls.kms += 1;
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
      supports: local.supports,
      wrap: (dataKey, options) => asksKms(() => local.wrap(dataKey, options)),
      unwrap: (wrapped, options) => asksKms(() => local.unwrap(wrapped, options)),
    };
    this.ring = {
      kind: 'simulated',
      read: (options) => asksStore(() => ring.read(options)),
      write: (document, options) => asksStore(() => ring.write(document, options)),
    };
  }
}
