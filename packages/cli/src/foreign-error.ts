import {
  InvalidRequestState,
  KeyWrapperError,
  type KeyWrapperErrorKind,
  type KeyWrapperErrorSummary,
  RingConflictError,
  RingStoreError,
  SingleUseStoreError,
} from '@sealring/core';
import { Failure, type FailureCode } from './failure.ts';

/**
 * Classifies errors of core and its adapters, including those of another copy of core that the project in the working
 * directory may load. The message of a vendor's error is never read, because it can contain a secret.
 */

/** Why a call to a key wrapper failed. */
export interface KmsFailure extends Pick<KeyWrapperErrorSummary, 'code' | 'status' | 'hint'> {
  readonly kind: KeyWrapperErrorKind;
  readonly provider: string;
  readonly operation: string;
}

/** Why a call to a ring store failed. */
export type StoreFailure = Pick<RingStoreError, 'kind' | 'detail' | 'serviceCode'>;

/** The failure of each key wrapper that failed. Empty for any other error. */
export function kmsFailuresOf(error: unknown): readonly KmsFailure[] {
  if (!(error instanceof KeyWrapperError)) return [];
  const { kind, summary } = error;
  const { causes = [], provider, operation, code, status, hint } = summary;
  return causes.length > 0 ? causes.flatMap(kmsFailuresOf) : [{ kind, provider, operation, code, status, hint }];
}

/** The failure of the ring store; undefined for any other error. */
export function storeFailureOf(error: unknown): StoreFailure | undefined {
  return error instanceof RingStoreError ? error : undefined;
}

/** The failure of a single-use store; undefined for any other error. */
export function singleUseFailureOf(error: unknown): Pick<SingleUseStoreError, 'kind' | 'detail'> | undefined {
  return error instanceof SingleUseStoreError ? error : undefined;
}

/**
 * The message with which core or an adapter rejects an option; undefined for any other error. It names the option and its
 * value, and contains no secret.
 */
export function rejectedOptionIn(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && error.code === 'ERR_SEALRING_OPTION' ? error.message : undefined;
}

/** Whether another writer changed the ring first. */
export function isConflict(error: unknown): boolean {
  return error instanceof RingConflictError;
}

/** Whether the error means that a token is invalid: for example, that it has none of the ring's formats. */
export function isInvalidToken(error: unknown): boolean {
  return error instanceof InvalidRequestState;
}

/** The section of docs/errors.md about an error; undefined if there is none. */
export function sectionOn(error: unknown): string | undefined {
  const isOfCore =
    error instanceof RingStoreError || error instanceof KeyWrapperError || error instanceof RingConflictError;
  return isOfCore ? error.help : undefined;
}

/** The error in one line. For an unknown class, it is only the name of the error: the message can contain a secret. */
export function lineOf(error: unknown): string {
  const store = storeFailureOf(error);
  if (store !== undefined) return `the ring store: ${store.kind}: ${store.detail}`;
  const kms = kmsFailuresOf(error);
  if (kms.length > 0) return kms.map(kmsLineOf).join('; ');
  if (isConflict(error)) return 'another process changed the ring at the same time; try again';
  return error instanceof Error ? `${error.name} was thrown` : 'a value that is not an Error was thrown';
}

/** The failure of one key wrapper in one line. */
export function kmsLineOf({ provider, operation, kind, code, hint }: KmsFailure): string {
  return `${provider} ${operation}: ${kind}${code === undefined ? '' : ` (${code})`}${hint === undefined ? '' : `: ${hint}`}`;
}

/** The code of an error, for scripts; `unexpected` if its class is unknown. */
export function failureCodeOf(error: unknown): FailureCode {
  if (error instanceof Failure) return error.code;
  const store = storeFailureOf(error);
  if (store !== undefined) return store.kind === 'absent' ? 'ring-absent' : `store-${store.kind}`;
  const [kms] = kmsFailuresOf(error);
  if (kms !== undefined) return `kms-${kms.kind}`;
  return isConflict(error) ? 'conflict' : 'unexpected';
}
