import type { KeyWrapperErrorKind, KeyWrapperErrorSummary, RingStoreError, RingStoreErrorKind } from '@sealring/core';

/**
 * Errors of core as they are told apart: by name and kind, since the project in the working directory may bring a copy
 * of core that is not ours. Only texts that core and its adapters chose are looked at, never a vendor's.
 */

/** What a key wrapper failed with. */
export interface KmsFailure extends Pick<KeyWrapperErrorSummary, 'code' | 'hint'> {
  readonly kind: KeyWrapperErrorKind;
  readonly provider: string;
  readonly operation: string;
}

/** What a ring store failed with. */
export type StoreFailure = Pick<RingStoreError, 'kind' | 'detail' | 'code'>;

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
  denied: true,
  corrupt: true,
  'too-large': true,
  'read-only': true,
};

/** Of several key wrappers that all failed: each of them. Empty for another error. */
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
      hint: textOf(summary, 'hint'),
    },
  ];
}

/** Undefined for another error. */
export function storeFailureOf(error: unknown): StoreFailure | undefined {
  const kind = field(error, 'kind');
  if (!isNamed(error, 'RingStoreError') || !Object.hasOwn(STORE_KINDS, String(kind))) return undefined;
  return { kind: kind as StoreFailure['kind'], detail: textOf(error, 'detail') ?? '', code: textOf(error, 'code') };
}

/** What core or an adapter refuses an option with: it names option and value, and shows no secret. Undefined for another error. */
export function refusedOptionIn(error: unknown): string | undefined {
  return error instanceof Error && field(error, 'code') === 'ERR_SEALRING_OPTION' ? error.message : undefined;
}

export function isConflict(error: unknown): boolean {
  return isNamed(error, 'RingConflictError');
}

/** Where docs/errors.md has a section on it; undefined for what it has none on. */
export function sectionOn(error: unknown): string | undefined {
  const isCores = storeFailureOf(error) !== undefined || kmsFailuresOf(error).length > 0 || isConflict(error);
  return isCores ? textOf(error, 'help') : undefined;
}

/** A failure in one line. An error of another class is named only: its text may hold a secret. */
export function lineOf(error: unknown): string {
  const store = storeFailureOf(error);
  if (store !== undefined) return `the ring store: ${store.kind}: ${store.detail}`;
  const kms = kmsFailuresOf(error);
  if (kms.length > 0) return kms.map(kmsLineOf).join('; ');
  if (isConflict(error)) return 'the ring was changed by somebody else meanwhile: try again';
  return error instanceof Error ? `${error.name} was thrown` : 'something was thrown that is no Error';
}

export function kmsLineOf({ provider, operation, kind, code, hint }: KmsFailure): string {
  return `${provider} ${operation}: ${kind}${code === undefined ? '' : ` (${code})`}${hint === undefined ? '' : `: ${hint}`}`;
}

function isNamed(error: unknown, name: string): boolean {
  return error instanceof Error && error.name === name;
}

function field(holder: unknown, name: string): unknown {
  return typeof holder === 'object' && holder !== null ? Reflect.get(holder, name) : undefined;
}

function textOf(holder: unknown, name: string): string | undefined {
  const value = field(holder, name);
  return typeof value === 'string' ? value : undefined;
}
