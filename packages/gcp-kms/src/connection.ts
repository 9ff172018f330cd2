import { createRequire } from 'node:module';
import type { KeyManagementServiceClient } from '@google-cloud/kms';
import type { GcpKmsClient } from './client.ts';

type ClientOptions = NonNullable<ConstructorParameters<typeof KeyManagementServiceClient>[0]>;

/** The part of `google-gax` that is used. */
interface GoogleGax {
  readonly grpc: { readonly credentials: { createInsecure(): NonNullable<ClientOptions['sslCreds']> } };
}

/** The connection of a key wrapper. */
export interface Connection {
  /** Resolves to a client that has found credentials; rejects with the SDK's error. */
  ready(): Promise<GcpKmsClient>;
  /** Closes what the connection created; a client that is still searching for credentials is closed once it has them. */
  close(): Promise<void>;
}

/** A client that the caller owns and closes. */
export function givenConnection(client: GcpKmsClient): Connection {
  return {
    async ready() {
      await client.initialize?.();
      return client;
    },
    close: async () => undefined,
  };
}

/** The wrapper's own client, created by `make` at the first call. */
export function ownConnection(make: () => Promise<Required<GcpKmsClient>>): Connection {
  let client: Promise<Required<GcpKmsClient>> | undefined;
  let connected: Required<GcpKmsClient> | undefined;

  async function connect(): Promise<Required<GcpKmsClient>> {
    const made = await make();
    await made.initialize();
    return made;
  }

  function start(): Promise<Required<GcpKmsClient>> {
    const started = connect();
    started.then(
      (made) => {
        if (client === started) connected = made;
        else made.close().catch(() => undefined);
      },
      // The SDK remembers permanently that it found no credentials. A new client finds credentials that appear later, for
      // instance because a metadata server starts after this process.
      () => {
        if (client === started) client = undefined;
      },
    );
    return started;
  }

  return {
    ready: () => (client ??= start()),
    async close() {
      const last = connected;
      // A pending search for credentials has no deadline, so it is not awaited.
      client = undefined;
      connected = undefined;
      await last?.close();
    },
  };
}

/**
 * The vendor's client, with Application Default Credentials, or with neither credentials nor TLS if `endpoint` is an
 * `http://` URL. The SDK is loaded only here, because a client that the caller passes may belong to another version.
 */
export async function makeClient(endpoint: URL | undefined): Promise<Required<GcpKmsClient>> {
  const { KeyManagementServiceClient } = await import('@google-cloud/kms');
  if (endpoint === undefined) return new KeyManagementServiceClient();
  const isInsecure = endpoint.protocol === 'http:';
  const address = { apiEndpoint: endpoint.hostname, port: Number(endpoint.port) || (isInsecure ? 80 : 443) };
  if (!isInsecure) return new KeyManagementServiceClient(address);
  return new KeyManagementServiceClient({
    ...address,
    sslCreds: insecureChannel(),
    // Without `auth`, the SDK would search for credentials; with `sslCreds`, it calls no other method of this object.
    auth: { getUniverseDomain: async () => 'googleapis.com' } as unknown as NonNullable<ClientOptions['auth']>,
  });
}

/** The SDK accepts only the channel credentials of its own copy of gRPC, which it does not export. */
function insecureChannel(): NonNullable<ClientOptions['sslCreds']> {
  const requireFromSdk = createRequire(import.meta.resolve('@google-cloud/kms'));
  const { grpc }: GoogleGax = requireFromSdk('google-gax');
  return grpc.credentials.createInsecure();
}
