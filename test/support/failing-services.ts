import { randomBytes } from 'node:crypto';
import {
  createKmsCodec,
  type KeyWrapper,
  KeyWrapperError,
  type KeyWrapperErrorKind,
  type KmsCodec,
  type KmsCodecOptions,
  localKeyWrapper,
  memoryRing,
  type RingStore,
  RingStoreError,
} from '@sealring/core';

/** A KMS and a store with settings for failures, over real cryptography and a real ring. */
export interface Services {
  readonly keyWrapper: KeyWrapper;
  readonly ring: RingStore;
  /** The answer of the KMS. Undefined: it works. */
  kmsFailing: KeyWrapperErrorKind | undefined;
  storeDown: boolean;
}

export function createServices({ provider = 'local' }: { readonly provider?: string } = {}): Services {
  const inner = localKeyWrapper({ masterKey: randomBytes(32) });
  const store = memoryRing();
  const asked = async <T>(operation: 'wrap' | 'unwrap', run: () => Promise<T>): Promise<T> => {
    if (services.kmsFailing !== undefined) throw new KeyWrapperError(services.kmsFailing, { provider, operation });
    return run();
  };
  const services: Services = {
    kmsFailing: undefined,
    storeDown: false,
    keyWrapper: {
      provider,
      keyId: inner.keyId,
      supports: inner.supports,
      wrap: (dataKey, options) => asked('wrap', async () => ({ ...(await inner.wrap(dataKey, options)), provider })),
      unwrap: (wrapped, options) => asked('unwrap', () => inner.unwrap({ ...wrapped, provider: 'local' }, options)),
    },
    ring: {
      kind: 'memory',
      read: async () => {
        if (services.storeDown) throw new RingStoreError('unavailable', 'down');
        return store.read();
      },
      write: (document, options) => store.write(document, options),
    },
  };
  return services;
}

export function join(services: Services, more: Partial<KmsCodecOptions> = {}): Promise<KmsCodec> {
  return createKmsCodec({ keyWrapper: services.keyWrapper, ring: services.ring, ringName: 'payments', ...more });
}
