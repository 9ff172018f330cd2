import { createHash } from 'node:crypto';
import { channel } from 'node:diagnostics_channel';
import type { InvalidReason } from './codec.ts';
import type { KeyWrapperErrorKind, KeyWrapperOperation } from './key-wrapper.ts';
import type { RingStoreErrorKind, RingStoreOperation } from './ring-store.ts';

/** The values of `status` in `health()`. */
export const CODEC_STATUSES = ['ok', 'degraded', 'failing'] as const;

/** One of {@link CODEC_STATUSES}. */
export type CodecStatus = (typeof CODEC_STATUSES)[number];

/** Every {@link RotationReason}. */
export const ROTATION_REASONS = [
  'scheduled',
  'key-version',
  'requested',
  'initial',
  'emergency',
  'revocation',
] as const;

/**
 * Why a key is created, which also determines when it starts to seal. `initial` and `revocation`: immediately, even on
 * a server whose clock is behind, because no other key can seal. `emergency`: as soon as every member that reads the
 * ring can have it. `scheduled`, `requested` and `key-version` (the KMS key has a new version): after propagation.
 */
export type RotationReason = (typeof ROTATION_REASONS)[number];

/**
 * A failure in the background. `conflict`: another writer wrote first. `internal`: a key wrapper or a store threw
 * an error that its contract does not define, or Sealring has a bug.
 */
export type CodecFailure =
  | { readonly source: 'kms'; readonly kind: KeyWrapperErrorKind }
  | { readonly source: 'store'; readonly kind: RingStoreErrorKind | 'conflict' }
  | { readonly source: 'clock'; readonly kind: 'unconfirmed' }
  | { readonly source: 'internal'; readonly kind: 'error' };

/** Whether a call succeeded and, if not, how it failed. */
export type CallOutcome<Kind> = { readonly ok: true } | { readonly ok: false; readonly kind: Kind };

/**
 * The payload of each event, by the channel of `node:diagnostics_channel` that emits it. No payload contains a
 * secret; key ids are hashed with {@link hashedKeyId} first. `ringName` is the ring name of the codec, `seconds` the
 * duration, and `kind` the kind of the error.
 */
export interface CodecEvents {
  /** An attempt to read and check the ring has ended; `ok` is false if the store or the KMS failed. */
  'sealring:refresh': {
    readonly ringName: string;
    readonly seconds: number;
  } & ({ readonly ok: true } | ({ readonly ok: false } & CodecFailure));
  /** This member published a new key. */
  'sealring:rotation': {
    readonly ringName: string;
    readonly keyId: string;
    readonly reason: RotationReason;
    readonly seconds: number;
  };
  /** This member could not publish a key. */
  'sealring:rotation-failed': {
    readonly ringName: string;
    readonly reason: RotationReason;
    readonly seconds: number;
  } & CodecFailure;
  /**
   * The KMS key has a new version, which has wrapped no key of the ring yet; `version` names it. A rotation follows.
   */
  'sealring:key-version': { readonly ringName: string; readonly provider: string; readonly version: string };
  /** One attempt of a call to the KMS; `seconds` includes the wait for a free slot. */
  'sealring:kms-call': {
    readonly ringName: string;
    readonly provider: string;
    readonly operation: KeyWrapperOperation;
    readonly seconds: number;
  } & CallOutcome<KeyWrapperErrorKind>;
  /** One call to the ring store. */
  'sealring:store-call': {
    readonly ringName: string;
    readonly store: string;
    readonly operation: RingStoreOperation;
    readonly seconds: number;
  } & CallOutcome<RingStoreErrorKind | 'conflict'>;
  /** A data key was wrapped. */
  'sealring:wrap': { readonly ringName: string; readonly provider: string; readonly keyId: string };
  /** A data key was unwrapped. */
  'sealring:unwrap': { readonly ringName: string; readonly provider: string; readonly keyId: string };
  /** Another member wrote first; `keys` is the number of keys in the document that this member tried to write. */
  'sealring:conflict': { readonly ringName: string; readonly keys: number };
  /** This member restored data that the store had lost; `keys` is the number of keys that this member knows. */
  'sealring:healed': { readonly ringName: string; readonly keys: number };
  /** A token was unsealed with a key that no longer seals. */
  'sealring:stale': { readonly ringName: string; readonly keyId: string };
  /** A token was refused. */
  'sealring:rejected': { readonly ringName: string; readonly reason: InvalidReason };
  /** The `status` in `health()` changed; `status` is the new value. */
  'sealring:state': { readonly ringName: string; readonly status: CodecStatus };
}

/** Publishes on a channel of `node:diagnostics_channel`. Nothing is computed without a subscriber. */
class EventChannel<Name extends keyof CodecEvents> {
  readonly #channel;

  constructor(name: Name) {
    this.#channel = channel(name);
  }

  get isHeard(): boolean {
    return this.#channel.hasSubscribers;
  }

  publish(event: () => CodecEvents[Name]): void {
    if (!this.#channel.hasSubscribers) return;
    const data = event();
    this.#channel.publish('keyId' in data ? { ...data, keyId: hashedKeyId(data.keyId) } : data);
  }
}

export const channels: { readonly [Key in ChannelKey]: EventChannel<`sealring:${Key}`> } = Object.freeze({
  refresh: new EventChannel('sealring:refresh'),
  rotation: new EventChannel('sealring:rotation'),
  'rotation-failed': new EventChannel('sealring:rotation-failed'),
  'key-version': new EventChannel('sealring:key-version'),
  'kms-call': new EventChannel('sealring:kms-call'),
  'store-call': new EventChannel('sealring:store-call'),
  wrap: new EventChannel('sealring:wrap'),
  unwrap: new EventChannel('sealring:unwrap'),
  conflict: new EventChannel('sealring:conflict'),
  healed: new EventChannel('sealring:healed'),
  stale: new EventChannel('sealring:stale'),
  rejected: new EventChannel('sealring:rejected'),
  state: new EventChannel('sealring:state'),
});

type ChannelKey = keyof CodecEvents extends `sealring:${infer Key}` ? Key : never;

/**
 * A label for a key id: 12 characters of its hash. Events contain these labels instead of key ids, so that no one can
 * match a metric to a token.
 */
export function hashedKeyId(id: string): string {
  return createHash('sha256').update(`sealring/v1/event/${id}`).digest('base64url').slice(0, 12);
}
