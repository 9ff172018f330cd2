import { createHash } from 'node:crypto';
import { channel } from 'node:diagnostics_channel';

/**
 * What happened, by the channel of `node:diagnostics_channel` that emits it. Never holds a secret; key ids are hashed by
 * {@link hashedKeyId} before they get here. `seconds` is how long it took; `kind` is that of the error.
 */
export interface CodecEvents {
  /** The ring was read and judged; `ok` is false when the store or the KMS failed it. */
  'sealring:refresh': {
    readonly ok: boolean;
    readonly kind?: string;
    readonly seconds: number;
  };
  /** A new key was published by this member. */
  'sealring:rotation': { readonly keyId: string; readonly reason: string; readonly seconds: number };
  /** A key was to be published, and was not. */
  'sealring:rotation-failed': { readonly reason: string; readonly kind: string; readonly seconds: number };
  /** The KMS key has a version that no key of the ring was wrapped by; `version` names it. A rotation follows. */
  'sealring:key-version': { readonly provider: string; readonly version: string };
  /** One call to the KMS, each attempt by itself; `seconds` has the wait for a free slot in it. */
  'sealring:kms-call': {
    readonly provider: string;
    readonly operation: string;
    readonly ok: boolean;
    readonly kind?: string;
    readonly seconds: number;
  };
  /** One call to the ring store; `kind` may also be `conflict`. */
  'sealring:store-call': {
    readonly store: string;
    readonly operation: string;
    readonly ok: boolean;
    readonly kind?: string;
    readonly seconds: number;
  };
  /** A data key was wrapped. */
  'sealring:wrap': { readonly provider: string; readonly keyId: string };
  /** A data key was unwrapped. */
  'sealring:unwrap': { readonly provider: string; readonly keyId: string };
  /** Another member wrote first; `keys` are those of the document that was not written. */
  'sealring:conflict': { readonly keys: number };
  /** This member wrote back what the store had lost; `keys` are those it knows. */
  'sealring:healed': { readonly keys: number };
  /** A token was unsealed with a key that no longer seals. */
  'sealring:stale': { readonly keyId: string };
  /** A token was refused, for this {@link InvalidReason}. */
  'sealring:rejected': { readonly reason: string };
  /** `status` of the health became this. */
  'sealring:state': { readonly status: string };
}

/** Publishes on a channel of `node:diagnostics_channel`. Nothing is built, and nothing paid, when nobody listens. */
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

/** A label for a key id that leads nobody from a metric to a token: 12 characters of a hash. Events hold these. */
export function hashedKeyId(id: string): string {
  return createHash('sha256').update(`sealring/v1/event/${id}`).digest('base64url').slice(0, 12);
}
