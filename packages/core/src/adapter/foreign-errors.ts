import { types } from 'node:util';
import type { KeyWrapperErrorKind } from '../contracts/key-wrapper.ts';
import type { StoreFailure } from './failures.ts';

/**
 * A property of a foreign object, own or inherited. A getter runs foreign code, and the error it throws can contain a
 * key, so getters count as absent, as does everything in a proxy. Never throws.
 */
export function property(holder: unknown, name: string): unknown {
  if (typeof holder !== 'object' && typeof holder !== 'function') return undefined;
  for (let object: object | null = holder; object !== null; object = Object.getPrototypeOf(object)) {
    if (types.isProxy(object)) return undefined;
    const found = Object.getOwnPropertyDescriptor(object, name);
    if (found !== undefined) return found.value;
  }
  return undefined;
}

/** An HTTP status, 100 to 599; undefined for anything else. */
export function statusOf(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 100 && value <= 599 && value % 1 === 0 ? value : undefined;
}

/**
 * A request id in the form of a UUID; undefined for anything else, because any proxy can set the header. A UUID is too
 * short to contain a key.
 */
export function requestIdOf(value: unknown): string | undefined {
  return typeof value === 'string' && /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(value) ? value : undefined;
}

/** Rows of an error table with one meaning for all codes. */
export function sameRow<const Row>(codes: readonly string[], row: Row): Record<string, Row> {
  return Object.fromEntries(codes.map((code) => [code, row]));
}

/**
 * Looks up a failure in an adapter's error table: the row of the first candidate that is a code in the table.
 *
 * @param candidates - Candidates for the code: any values that {@link property} returned.
 * @param isMeant - Whether the row of a code applies; by default, every row does.
 */
export function findRow<Row>(
  table: Readonly<Record<string, Row>>,
  candidates: readonly unknown[],
  isMeant: (row: Row) => boolean = () => true,
): { readonly code: string; readonly row: Row } | undefined {
  for (const code of candidates) {
    if (typeof code !== 'string' || !Object.hasOwn(table, code)) continue;
    const row = table[code] as Row;
    if (isMeant(row)) return { code, row };
  }
  return undefined;
}

/**
 * The kind of failure that an HTTP status means, for an answer from a KMS whose code is not in any table. 401, 403, 404
 * and 429 have a kind; any other status is `unavailable`.
 */
export function kindOfStatus(status: number | undefined): KeyWrapperErrorKind {
  if (status === 401 || status === 403) return 'denied';
  if (status === 404) return 'not-found';
  if (status === 429) return 'throttled';
  return 'unavailable';
}

/** An unexplained failure of a store: `unavailable`, with its status if that is 300 to 599. */
export function unexplained(status?: unknown): StoreFailure<'unavailable'> {
  const known = statusOf(status);
  return {
    kind: 'unavailable',
    detail: known !== undefined && known >= 300 ? `the call failed (status ${known})` : 'the call failed',
  };
}
