import { KeyManagementServiceClient } from '@google-cloud/kms';
import { KeyManagementServiceClient as KeyManagementServiceClient5 } from 'google-cloud-kms-5';
import { afterAll, afterEach, beforeAll } from 'vitest';
// @boundaries-ignore code that the tests of all packages share is not a package
import {
  clientOptions,
  type FakeGcpKms,
  type RunningGcpKms,
  startGcpKms,
} from '../../../test/support/gcp-kms/index.ts';
import { type GcpKmsClient, type GcpKmsKeyWrapperOptions, gcpKmsKeyWrapper } from '../src/index.ts';

// @boundaries-ignore as above
export * from '../../../test/support/gcp-kms/index.ts';
// @boundaries-ignore as above
export { rejectionOf } from '../../../test/support/leaks.ts';

export type Wrapper = ReturnType<typeof gcpKmsKeyWrapper>;

/** The two supported major versions of the vendor's client. */
export const SDK_VERSIONS = ['6.3', '5.7'] as const;
export type SdkVersion = (typeof SDK_VERSIONS)[number];

export const context = { 'sealring:ring': 'test', 'sealring:purpose': 'data-key' };

/** The vendor's own client, of one version. */
export function sdkClient(
  version: SdkVersion,
  address: { readonly host: string; readonly port: number },
): GcpKmsClient & { close(): Promise<void> } {
  const options = clientOptions(address);
  if (version === '6.3') return new KeyManagementServiceClient(options);
  // Each major version has its own copy of these types.
  return new KeyManagementServiceClient5(
    options as unknown as ConstructorParameters<typeof KeyManagementServiceClient5>[0],
  );
}

export function sampleKey(): Uint8Array {
  return Uint8Array.from({ length: 32 }, (_, i) => i + 1);
}

/** A fake Cloud KMS for the tests of a file, and the vendor's client for it; each test has its own key. */
export class World {
  #server: RunningGcpKms | undefined;
  #client: ReturnType<typeof sdkClient> | undefined;
  #keys = 0;

  constructor(version: SdkVersion = '6.3') {
    beforeAll(async () => {
      this.#server = await startGcpKms();
      this.#client = sdkClient(version, this.#server);
    });
    afterEach(() => this.kms.heal());
    afterAll(async () => {
      await this.client.close();
      await this.server.stop();
    });
  }

  get server(): RunningGcpKms {
    if (this.#server === undefined) throw new Error('not started');
    return this.#server;
  }

  get kms(): FakeGcpKms {
    return this.server.kms;
  }

  get client(): ReturnType<typeof sdkClient> {
    if (this.#client === undefined) throw new Error('not started');
    return this.#client;
  }

  /** A new key and a wrapper for it; forgets earlier requests. */
  setUp(extra: Partial<GcpKmsKeyWrapperOptions> = {}): { keyId: string; keyWrapper: Wrapper } {
    const keyId = this.kms.createKey(`key-${++this.#keys}`);
    this.kms.requests.length = 0;
    return { keyId, keyWrapper: gcpKmsKeyWrapper({ keyId, client: this.client, ...extra }) };
  }

  /** The real client; each answer passes through a callback first. */
  watchedClient(seen: (answer: Record<string, unknown>) => void): GcpKmsClient {
    const { client } = this;
    const watch = async (call: Promise<unknown>): Promise<unknown> => {
      const answer = await call;
      if (Array.isArray(answer)) seen(answer[0]);
      return answer;
    };
    return {
      encrypt: (request, options) => watch(client.encrypt(request, options)),
      decrypt: (request, options) => watch(client.decrypt(request, options)),
    };
  }
}
