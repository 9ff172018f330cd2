import { KeyWrapperError, type KeyWrapperErrorKind, type KeyWrapperOperation } from '../contracts/key-wrapper.ts';
import { MAX_DOCUMENT_BYTES, RingStoreError, type RingStoreErrorKind } from '../contracts/ring-store.ts';

/**
 * The description of a failed call to a store, without any of the vendor's text. A store can have further, internal
 * kinds, such as `conflict`.
 */
export interface StoreFailure<Kind extends string = Exclude<RingStoreErrorKind, 'absent'>> {
  readonly kind: Kind;
  readonly detail: string;
  /** The vendor's code, if it is one that the store lists. */
  readonly serviceCode?: string;
}

/** The description of a failed call to a KMS, without any copy of the vendor's text. */
export interface ServiceFailure {
  readonly kind: KeyWrapperErrorKind;
  /** The vendor's code or exception name, if it is one the adapter lists. */
  readonly code?: string | undefined;
  /** HTTP status, 100 to 599. */
  readonly status?: number | undefined;
  /** The service's request id, in a form that is too short to contain a key. */
  readonly requestId?: string | undefined;
  /** The remedy for an operator. */
  readonly hint?: string | undefined;
}

/**
 * The error for a call that failed.
 *
 * @param permission - The service's name for the permission that the operation needs. The hint names it if the service
 * answered `denied` with a code that has no hint.
 */
export function keyWrapperError(
  provider: string,
  operation: KeyWrapperOperation,
  {
    failure,
    attempts,
    permission,
  }: {
    readonly failure: ServiceFailure;
    readonly attempts?: number;
    readonly permission?: string | undefined;
  },
): KeyWrapperError {
  const { kind, ...facts } = failure;
  const lacks = kind === 'denied' && facts.code !== undefined && permission !== undefined;
  const hint = facts.hint ?? (lacks ? `the caller lacks ${permission}` : undefined);
  return new KeyWrapperError(kind, { provider, operation, ...facts, hint, attempts });
}

/** The error for a wrapped key or a service's answer that failed a check. `hint` is fixed text. */
export function corrupt(provider: string, operation: KeyWrapperOperation, hint: string): KeyWrapperError {
  return new KeyWrapperError('corrupt', { provider, operation, hint });
}

/** The failure for a ring document over the limit of 262 144 bytes, whether stored or passed to a write. */
export const TOO_LARGE: StoreFailure<'too-large'> = Object.freeze({
  kind: 'too-large',
  detail: `the ring document is larger than ${MAX_DOCUMENT_BYTES} bytes`,
});

/** The error for {@link TOO_LARGE}; `revision` is the revision of the stored content, if the answer named it. */
export function tooLarge(revision?: string): RingStoreError {
  return new RingStoreError(TOO_LARGE.kind, TOO_LARGE.detail, { revision });
}
