import type { KeyWrapperErrorKind } from '@sealring/core';

/** One member of a trace: its set-up, and its clocks. */
export interface Scene {
  readonly name: string;
  readonly policy: Readonly<Record<string, number>>;
  readonly create: 'if-absent' | 'now' | 'never';
  readonly providers: readonly string[];
  readonly wrapQuorum: number | null;
  readonly keyVersions: boolean;
  readonly acceptKeysCreatedAfterMs: number | null;
  /** Milliseconds of both clocks at the beginning; whole. */
  readonly wallMs: number;
  readonly steadyMs: number;
  /** The true time minus the monotonic clock; a suspension adds to it. */
  trueAheadMs: number;
}

/** The events of one step. A missing value stays as it was; null ends a fault. */
export interface Step {
  /** The random number of this step: 32 bits, drawn repeatedly. */
  readonly word: number;
  readonly op:
    | 'start'
    | 'advance'
    | 'refresh'
    | 'rotate'
    | 'revoke'
    | 'revoke-before'
    | 'prepare'
    | 'seal'
    | 'unseal'
    | 'push';
  /** Of `advance`, milliseconds; of `revoke`, a key id; of `revoke-before`, a time; of `unseal` and `prepare`, a token. */
  readonly argument?: string | number;
  readonly clock?: { readonly stepMs?: number; readonly sleptMs?: number };
  readonly store?: {
    /** Null if the store is empty. */
    readonly document?: string | null;
    readonly failing?: 'unavailable' | 'denied' | null;
    readonly race?: string;
    readonly losesAnswer?: boolean;
    /** Null if answers carry no date. */
    readonly dateAheadMs?: number | null;
  };
  /** By provider. */
  readonly kms?: Readonly<
    Record<
      string,
      {
        readonly failing?: KeyWrapperErrorKind | null;
        readonly wrapFailing?: KeyWrapperErrorKind | null;
        readonly keyId?: string;
        readonly dateAheadMs?: number | null;
      }
    >
  >;
}

/** A member's result of a step: the same in every language. */
export interface Expected {
  /** `ok`, the requested value, or class and kind of the error. */
  readonly result: string;
  /** The monotonic clock afterwards. */
  readonly atMs: number;
  readonly reads: number;
  readonly generated: number;
  readonly writes: readonly { readonly document: string; readonly outcome: string }[];
  readonly health: {
    readonly status: string;
    readonly ready: boolean;
    readonly canSeal: boolean;
    readonly canUnseal: boolean;
    readonly sealUntil: number | null;
    readonly sealingKey: string | null;
    readonly lastRefresh: number | null;
    readonly lastKmsCheck: number | null;
    readonly lastError: string | null;
    readonly problems: readonly string[];
    /** Id, state, whether it is held, and the four times. */
    readonly keys: readonly (readonly [string, string, boolean, number, number, number, number])[];
  } | null;
}
