import { createRequire } from 'node:module';
import { Storage, type StorageOptions } from '@google-cloud/storage';
import { option } from '@sealring/core/adapter';
import type { GcsRingClient } from './client.ts';
import { OWNER, type Settings } from './options.ts';

/**
 * The SDK's client, with Application Default Credentials, or without credentials if its endpoint is an `http://` URL.
 *
 * @param endpoint - The endpoint. Default: the one that `STORAGE_EMULATOR_HOST` sets, or the SDK's.
 * @throws {RangeError} if `STORAGE_EMULATOR_HOST` is not a valid endpoint. The SDK itself sends no credentials there, but
 * the store authenticates every request.
 */
export function ownClient({ endpoint, mayBeHttp }: Pick<Settings, 'endpoint' | 'mayBeHttp'>): GcsRingClient {
  if (endpoint !== undefined) return clientAt(endpoint);
  const client = new Storage();
  if (!client.customEndpoint) return client;
  return clientAt(option.endpointUrl(OWNER, 'STORAGE_EMULATOR_HOST', client.apiEndpoint, mayBeHttp));
}

function clientAt(endpoint: URL): GcsRingClient {
  const access = { apiEndpoint: endpoint.href, useAuthWithCustomEndpoint: true };
  return new Storage(endpoint.protocol === 'https:' ? access : { ...access, authClient: withoutCredentials() });
}

type AuthClient = NonNullable<StorageOptions['authClient']>;

/** The SDK accepts only an object of its own copy of the auth library, which it does not export. */
function withoutCredentials(): AuthClient {
  const requireFromSdk = createRequire(import.meta.resolve('@google-cloud/storage'));
  const { PassThroughClient }: { readonly PassThroughClient: new () => AuthClient } =
    requireFromSdk('google-auth-library');
  return new PassThroughClient();
}
