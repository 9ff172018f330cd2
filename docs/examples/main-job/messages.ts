/** Messages between the main process and its server processes. */

/**
 * The key that wraps the data keys. The master key is sent over this channel, not in the environment or on a command
 * line.
 */
export type KmsSettings =
  | { readonly kind: 'local'; readonly masterKey: string }
  | { readonly kind: 'aws'; readonly keyId: string }
  | { readonly kind: 'gcp'; readonly keyId: string; readonly endpoint: string | undefined }
  | { readonly kind: 'azure'; readonly keyId: string; readonly signKeyId: string }
  | { readonly kind: 'vault'; readonly address: string; readonly keyId: string };

export type ToServer =
  | {
      readonly type: 'start';
      readonly name: string;
      readonly ringPath: string;
      readonly ringName: string;
      readonly kms: KmsSettings;
    }
  | { readonly type: 'report' }
  | { readonly type: 'rotate' };

/** The state of a server, and its counters. */
export interface Report {
  readonly keys: readonly { readonly id: string; readonly state: string }[];
  /** The key that seals now. */
  readonly sealingKey: string | undefined;
  readonly ready: boolean;
  readonly sealed: number;
  readonly unsealed: number;
  /** Calls of the key wrapper, by operation. */
  readonly kmsCalls: { readonly generate: number; readonly wrap: number; readonly unwrap: number };
}

export type FromServer =
  | { readonly type: 'listening'; readonly port: number }
  | { readonly type: 'failed'; readonly message: string }
  | { readonly type: 'refused'; readonly reason: string }
  | { readonly type: 'report'; readonly report: Report }
  | { readonly type: 'rotated' };
