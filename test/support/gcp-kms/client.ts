import { KeyManagementServiceClient } from '@google-cloud/kms';
import { credentials } from '@grpc/grpc-js';

/** Address of a fake Cloud KMS. */
interface Address {
  readonly host: string;
  readonly port: number;
}

type ClientOptions = NonNullable<ConstructorParameters<typeof KeyManagementServiceClient>[0]>;

/** Constructor options of every version of the SDK, for a fake Cloud KMS. */
export function clientOptions({ host, port }: Address): ClientOptions {
  return {
    apiEndpoint: host,
    port,
    sslCreds: credentials.createInsecure(),
    // Otherwise the SDK would search the environment; with `sslCreds` it uses nothing else of this object.
    auth: { getUniverseDomain: async () => 'googleapis.com' } as unknown as NonNullable<ClientOptions['auth']>,
  };
}

/** The vendor's own client for a fake Cloud KMS. */
export function realClient(address: Address): KeyManagementServiceClient {
  return new KeyManagementServiceClient(clientOptions(address));
}

type Calls = Pick<KeyManagementServiceClient, 'encrypt' | 'decrypt'>;

/** The same client, whose requests carry a bearer token: without TLS the SDK would send none. */
export function clientOf(token: string, client: KeyManagementServiceClient): Calls {
  const signed = (options: object): object => ({
    ...options,
    otherArgs: { headers: { authorization: `Bearer ${token}` } },
  });
  const calls = {
    encrypt: (request: object, options: object) => client.encrypt(request, signed(options)),
    decrypt: (request: object, options: object) => client.decrypt(request, signed(options)),
  };
  return calls;
}
