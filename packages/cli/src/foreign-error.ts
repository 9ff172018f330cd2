/**
 * Errors of core as they are told apart: by name and kind, since the project in the working directory may bring a copy
 * of core that is not ours. Only texts that core and its adapters chose are looked at, never a vendor's.
 */

/** What a key wrapper failed with. */
export interface KmsFailure {
  readonly kind: 'throttled' | 'unavailable' | 'denied' | 'disabled' | 'not-found' | 'corrupt';
  readonly provider: string;
  readonly operation: string;
  readonly code: string | undefined;
  readonly hint: string | undefined;
}

/** What a ring store failed with. */
export interface StoreFailure {
  readonly kind: 'unavailable' | 'denied' | 'corrupt' | 'too-large' | 'read-only';
  readonly detail: string;
}

const KMS_KINDS: readonly string[] = ['throttled', 'unavailable', 'denied', 'disabled', 'not-found', 'corrupt'];
const STORE_KINDS: readonly string[] = ['unavailable', 'denied', 'corrupt', 'too-large', 'read-only'];

/** Of several key wrappers that all failed: each of them. Empty for another error. */
export function kmsFailuresOf(error: unknown): readonly KmsFailure[] {
  if (!isNamed(error, 'KeyWrapperError') || !KMS_KINDS.includes(String(field(error, 'kind')))) return [];
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
  if (!isNamed(error, 'RingStoreError') || !STORE_KINDS.includes(String(kind))) return undefined;
  const detail = (error as Error).message.replace(/^ring store [a-z-]+: /, '');
  return { kind: kind as StoreFailure['kind'], detail };
}

export function isConflict(error: unknown): boolean {
  return isNamed(error, 'RingConflictError');
}

/** Where docs/errors.md has a section on it; undefined for what it has none on. */
export function sectionOn(error: unknown): string | undefined {
  const store = storeFailureOf(error);
  if (store !== undefined) return `docs/errors.md#ringstoreerror-${store.kind}`;
  const [kms] = kmsFailuresOf(error);
  if (kms !== undefined) return `docs/errors.md#keywrappererror-${kms.kind}`;
  return isConflict(error) ? 'docs/errors.md#ringconflicterror' : undefined;
}

/** A failure in one line. An error of another class is named only: its text may hold a secret. */
export function lineOf(error: unknown): string {
  const store = storeFailureOf(error);
  if (store !== undefined) return `the ring store: ${store.kind}: ${store.detail}`;
  const kms = kmsFailuresOf(error);
  if (kms.length > 0) return kms.map(kmsLineOf).join('; ');
  if (isConflict(error)) return 'the ring was changed by somebody else meanwhile: try again';
  if (isOurRefusal(error)) return (error as Error).message;
  return error instanceof Error ? `${error.name} was thrown` : 'something was thrown that is no Error';
}

export function kmsLineOf({ provider, operation, kind, code, hint }: KmsFailure): string {
  return `${provider} ${operation}: ${kind}${code === undefined ? '' : ` (${code})`}${hint === undefined ? '' : `: ${hint}`}`;
}

/** A TypeError or RangeError of core: its texts name option and value, and never show what may be secret. */
export function isOurRefusal(error: unknown): boolean {
  return (
    (isNamed(error, 'TypeError') || isNamed(error, 'RangeError')) &&
    /^(?:policy|createKmsCodec|revoke|revokeAllBefore|rotate)\b/.test((error as Error).message)
  );
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
