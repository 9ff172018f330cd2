/** The settings of a server of either language, as JSON in its first argument. */
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

/** The tool's report at the end of a flow: which server sealed the state, and which unsealed it. */
export interface Told {
  readonly order: string;
  readonly sealedBy: string;
  readonly openedBy: string;
}
