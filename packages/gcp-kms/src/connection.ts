import type { GcpKmsClient } from './client.ts';

/** Where the calls of a key wrapper go. */
export interface Connection {
  /** A client that has found credentials. Rejects with whatever the SDK rejects with. */
  ready(): Promise<GcpKmsClient>;
  /** Closes what the connection made itself. */
  close(): Promise<void>;
}

/** The caller's client, which stays his to close. */
export function givenConnection(client: GcpKmsClient): Connection {
  return {
    async ready() {
      await client.initialize?.();
      return client;
    },
    close: async () => undefined,
  };
}

/** A client of our own, made by `make` at the first call. */
export function ownConnection(make: () => Promise<GcpKmsClient>): Connection {
  let client: Promise<GcpKmsClient> | undefined;

  async function connect(): Promise<GcpKmsClient> {
    const made = await make();
    await made.initialize?.();
    return made;
  }

  return {
    ready() {
      if (client === undefined) {
        const connecting = connect();
        client = connecting;
        // The SDK remembers for ever that it found no credentials. A new client finds those that came later, as where a
        // metadata server starts after us.
        connecting.catch(() => {
          if (client === connecting) client = undefined;
        });
      }
      return client;
    },
    async close() {
      const last = client;
      client = undefined;
      if (last === undefined) return;
      // What failed to connect has nothing to close.
      const connected = await last.catch(() => undefined);
      await connected?.close?.();
    },
  };
}

/** The vendor's client with Application Default Credentials. Loaded here only: one of the caller's may be another version. */
export async function makeClient(): Promise<GcpKmsClient> {
  const { KeyManagementServiceClient } = await import('@google-cloud/kms');
  return new KeyManagementServiceClient();
}
