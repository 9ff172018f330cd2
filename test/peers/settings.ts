/** What a server of either language is started with, as JSON in its first argument. */
export interface ServerSettings {
  readonly name: string;
  readonly audience: string;
  readonly issuer: string;
  readonly ttlSeconds: number;
  readonly ringName: string;
  /** `redis://…`, and the key of the ring document. */
  readonly redis: string;
  readonly redisKey: string;
  readonly kms: { readonly endpoint: string; readonly keyId: string };
  readonly policy: Readonly<Record<string, number>>;
  /** The same, as Python spells it. */
  readonly pythonPolicy: Readonly<Record<string, number>>;
}

/** What the tool tells at the end of a flow: who sealed the state, and who opened it. */
export interface Told {
  readonly order: string;
  readonly sealedBy: string;
  readonly openedBy: string;
}
