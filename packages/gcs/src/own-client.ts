import { createRequire } from 'node:module';
import { Storage, type StorageOptions } from '@google-cloud/storage';
import type { GcsRingClient } from './client.ts';

/** The SDK's client, with Application Default Credentials, or without credentials if `endpoint` is an `http://` URL. */
export function ownClient(endpoint: URL | undefined): GcsRingClient {
  if (endpoint === undefined) return new Storage();
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
