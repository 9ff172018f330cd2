import { awsKmsKeyWrapper } from '@sealring/aws-kms';
import { type KeyWrapper, localKeyWrapper } from '@sealring/core';
import type { KmsSettings } from './messages.ts';

/** The one line that differs between a laptop and production. */
export function keyWrapperFor(kms: KmsSettings): KeyWrapper {
  if (kms.kind === 'local') return localKeyWrapper({ masterKey: Buffer.from(kms.masterKey, 'base64url') });
  return awsKmsKeyWrapper({ keyId: kms.keyId, maxAttempts: 1 });
}

/** The same key wrapper, counting its calls. */
export function counted(keyWrapper: KeyWrapper): {
  readonly keyWrapper: KeyWrapper;
  readonly calls: { generate: number; wrap: number; unwrap: number };
} {
  const calls = { generate: 0, wrap: 0, unwrap: 0 };
  const { provider, keyId, supports } = keyWrapper;
  return {
    calls,
    keyWrapper: {
      provider,
      keyId,
      supports,
      async wrap(dataKey, options) {
        calls.wrap += 1;
        return keyWrapper.wrap(dataKey, options);
      },
      async unwrap(wrapped, options) {
        calls.unwrap += 1;
        return keyWrapper.unwrap(wrapped, options);
      },
      async generate(options) {
        calls.generate += 1;
        if (keyWrapper.generate === undefined) throw new Error(`${provider} makes no data keys`);
        return keyWrapper.generate(options);
      },
      close: async () => keyWrapper.close?.(),
    },
  };
}

/** The AWS SDK reads the endpoint of an emulator, and credentials for it, from the environment. */
export function environmentFor(endpoint: string | undefined): NodeJS.ProcessEnv {
  if (endpoint === undefined) return process.env;
  return {
    AWS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: 'emulator',
    AWS_SECRET_ACCESS_KEY: 'emulator',
    ...process.env,
    AWS_ENDPOINT_URL_KMS: endpoint,
  };
}
