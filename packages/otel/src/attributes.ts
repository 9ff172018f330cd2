import {
  CODEC_STATUSES,
  INVALID_REASONS,
  KEY_STATES,
  KEY_WRAPPER_ERROR_KINDS,
  KEY_WRAPPER_OPERATIONS,
  RING_PROBLEM_KINDS,
  RING_STORE_ERROR_KINDS,
  RING_STORE_OPERATIONS,
  ROTATION_REASONS,
} from '@sealring/core';

/**
 * Names of attributes. `error.type`, its value `_OTHER`, and `mcp.method.name` come from OpenTelemetry's semantic
 * conventions; the other names are in Sealring's own namespace, as the conventions require.
 */
export const ATTRIBUTE = {
  errorType: 'error.type',
  status: 'sealring.status',
  ring: 'sealring.ring.name',
  rotationReason: 'sealring.rotation.reason',
  kmsProvider: 'sealring.kms.provider',
  kmsOperation: 'sealring.kms.operation',
  storeKind: 'sealring.store.kind',
  storeOperation: 'sealring.store.operation',
  rejectReason: 'sealring.reject.reason',
  direction: 'sealring.boundary.direction',
  method: 'mcp.method.name',
  keyState: 'sealring.key.state',
  keyHash: 'sealring.key.hash',
  problemKind: 'sealring.problem.kind',
} as const;

/** Replaces every unknown value. */
const OTHER = '_OTHER';

const STORE_KINDS = [...RING_STORE_ERROR_KINDS, 'conflict'] as const;

/** All values that an attribute can have. Arbitrary values would let labels use an unlimited amount of memory. */
export const KNOWN: Readonly<Record<KnownValues, readonly string[]>> = {
  status: CODEC_STATUSES,
  failure: [
    ...KEY_WRAPPER_ERROR_KINDS.map((kind) => `kms ${kind}`),
    ...STORE_KINDS.map((kind) => `store ${kind}`),
    'internal error',
  ],
  kmsKind: KEY_WRAPPER_ERROR_KINDS,
  storeKind: STORE_KINDS,
  rotationReason: ROTATION_REASONS,
  kmsOperation: KEY_WRAPPER_OPERATIONS,
  storeOperation: RING_STORE_OPERATIONS,
  codecReason: INVALID_REASONS,
  // The values of REJECT_REASONS and CARRIER_METHODS in @sealring/mcp. This package does not depend on that one, so
  // they are repeated here.
  boundaryReason: [
    'non-string requestState',
    'malformed',
    'unknown key',
    'authentication failed',
    'seal unavailable',
    'codec error',
    'minted in the future',
    'expired',
    'request binding',
    'arguments too large',
    'audience',
    'principal binding error',
    'principal drift',
    'principal',
    'already used',
    'state too large',
    'unsealed requestState',
    'unverified requestState',
  ],
  direction: ['inbound', 'outbound'],
  method: ['tools/call', 'prompts/get', 'resources/read', 'unknown'],
  keyState: KEY_STATES,
  problemKind: RING_PROBLEM_KINDS,
};

type KnownValues =
  | 'status'
  | 'failure'
  | 'kmsKind'
  | 'storeKind'
  | 'rotationReason'
  | 'kmsOperation'
  | 'storeOperation'
  | 'codecReason'
  | 'boundaryReason'
  | 'direction'
  | 'method'
  | 'keyState'
  | 'problemKind';

/** The value of an event member if it is a known value, otherwise {@link OTHER}. */
export function known(event: object, member: string, values: readonly string[]): string {
  const value: unknown = Reflect.get(event, member);
  return values.find((one) => one === value) ?? OTHER;
}

/** Limits the names of providers and stores, which adapters choose freely, to a fixed number of different names. */
export class BoundedNames {
  readonly #seen = new Set<string>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  of(event: object, member: string): string {
    const value: unknown = Reflect.get(event, member);
    if (typeof value !== 'string' || !/^[A-Za-z0-9._-]{1,40}$/.test(value)) return OTHER;
    if (!this.#seen.has(value)) {
      if (this.#seen.size >= this.#most) return OTHER;
      this.#seen.add(value);
    }
    return value;
  }
}

/** The service that failed, and how: `kms denied`, `store unavailable`, … */
export function failureIn(event: object): string {
  const text = `${String(Reflect.get(event, 'source'))} ${String(Reflect.get(event, 'kind'))}`;
  return KNOWN.failure.includes(text) ? text : OTHER;
}

/** A numeric member of an event; 0 if it is not a number. */
export function numberOf(event: object, member: string): number {
  const value: unknown = Reflect.get(event, member);
  return Number.isFinite(value) ? Number(value) : 0;
}

/** The hashed key id of an event; undefined for text of any other form, because that could be a key id. */
export function keyHashOf(event: object): string | undefined {
  const value: unknown = Reflect.get(event, 'keyId');
  return typeof value === 'string' && /^[A-Za-z0-9_-]{12}$/.test(value) ? value : undefined;
}
