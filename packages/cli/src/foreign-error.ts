import type {
  KeyWrapperErrorKind,
  KeyWrapperErrorSummary,
  RingStoreError,
  RingStoreErrorKind,
  SingleUseStoreError,
} from '@sealring/core';
import { Failure, type FailureCode } from './failure.ts';

/**
 * Classifies errors of core and its adapters. The project in the working directory may load another copy of core, so
 * `instanceof` does not work here: errors are recognized by their name and their closed sets of kinds and codes. The
 * message of a vendor's error is never read, because it can contain a secret.
 */

/** Why a call of a key wrapper failed. */
export interface KmsFailure extends Pick<KeyWrapperErrorSummary, 'code' | 'status' | 'hint'> {
  readonly kind: KeyWrapperErrorKind;
  readonly provider: string;
  readonly operation: string;
}

/** Why a call of a ring store failed. */
export type StoreFailure = Pick<RingStoreError, 'kind' | 'detail' | 'serviceCode'>;

const KMS_KINDS: Readonly<Record<KeyWrapperErrorKind, true>> = {
  throttled: true,
  unavailable: true,
  denied: true,
  disabled: true,
  'not-found': true,
  corrupt: true,
};
const STORE_KINDS: Readonly<Record<RingStoreErrorKind, true>> = {
  unavailable: true,
  absent: true,
  denied: true,
  corrupt: true,
  'too-large': true,
  'read-only': true,
};

/** The failure of each key wrapper that failed. Empty for any other error. */
export function kmsFailuresOf(error: unknown): readonly KmsFailure[] {
  if (!isNamed(error, 'KeyWrapperError') || !Object.hasOwn(KMS_KINDS, String(field(error, 'kind')))) return [];
  const summary = field(error, 'summary');
  const causes = field(summary, 'causes');
  if (Array.isArray(causes) && causes.length > 0) return causes.flatMap(kmsFailuresOf);
  return [
    {
      kind: field(error, 'kind') as KmsFailure['kind'],
      provider: textOf(summary, 'provider') ?? '',
      operation: textOf(summary, 'operation') ?? '',
      code: textOf(summary, 'code'),
      status: numberOf(summary, 'status'),
      hint: textOf(summary, 'hint'),
    },
  ];
}

/** The failure of the ring store; undefined for any other error. */
export function storeFailureOf(error: unknown): StoreFailure | undefined {
  const kind = field(error, 'kind');
  if (!isNamed(error, 'RingStoreError') || !Object.hasOwn(STORE_KINDS, String(kind))) return undefined;
  return {
    kind: kind as StoreFailure['kind'],
    detail: textOf(error, 'detail') ?? '',
    serviceCode: textOf(error, 'serviceCode'),
  };
}

/** The failure of a single-use store; undefined for any other error. */
export function singleUseFailureOf(error: unknown): Pick<SingleUseStoreError, 'kind' | 'detail'> | undefined {
  const kind = field(error, 'kind');
  if (!isNamed(error, 'SingleUseStoreError') || kind === 'absent' || !Object.hasOwn(STORE_KINDS, String(kind))) {
    return undefined;
  }
  return { kind: kind as SingleUseStoreError['kind'], detail: textOf(error, 'detail') ?? '' };
}

/**
 * The message with which core or an adapter rejects an option; undefined for any other error. It names the option and its
 * value, and contains no secret.
 */
export function rejectedOptionIn(error: unknown): string | undefined {
  return error instanceof Error && field(error, 'code') === 'ERR_SEALRING_OPTION' ? error.message : undefined;
}

/** Whether another writer changed the ring first. */
export function isConflict(error: unknown): boolean {
  return isNamed(error, 'RingConflictError');
}

/** Whether a token has none of the formats of the ring. */
export function isInvalidToken(error: unknown): boolean {
  return isNamed(error, 'InvalidRequestState');
}

/** The section of docs/errors.md about an error; undefined if there is none. */
export function sectionOn(error: unknown): string | undefined {
  const isOfCore = storeFailureOf(error) !== undefined || kmsFailuresOf(error).length > 0 || isConflict(error);
  return isOfCore ? textOf(error, 'help') : undefined;
}

/** The error in one line. Of an unknown class it shows only the name: the message can contain a secret. */
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

/** The code for scripts of an error of core. */
export function failureCodeOf(error: unknown): FailureCode {
  if (error instanceof Failure) return error.code;
  const store = storeFailureOf(error);
  if (store !== undefined) return store.kind === 'absent' ? 'ring-absent' : `store-${store.kind}`;
  const [kms] = kmsFailuresOf(error);
  if (kms !== undefined) return `kms-${kms.kind}`;
  return isConflict(error) ? 'conflict' : 'unexpected';
}

function isNamed(error: unknown, name: string): boolean {
  return error instanceof Error && error.name === name;
}

function field(holder: unknown, name: string): unknown {
  return typeof holder === 'object' && holder !== null ? Reflect.get(holder, name) : undefined;
}

function numberOf(holder: unknown, name: string): number | undefined {
  const value = field(holder, name);
  return typeof value === 'number' ? value : undefined;
}

function textOf(holder: unknown, name: string): string | undefined {
  const value = field(holder, name);
  return typeof value === 'string' ? value : undefined;
}
