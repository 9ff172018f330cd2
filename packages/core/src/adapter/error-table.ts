import { unreachable } from './connection-failures.ts';
import type { StoreFailure } from './failures.ts';
import { findRow, unexplained } from './foreign-errors.ts';

/**
 * Creates the error table of a store, which maps codes to their meanings.
 *
 * @param rows - Kind, detail, codes separated by spaces and, optionally, the only status with which the codes have this
 * meaning.
 */
export function errorTable<const Kind extends string>(
  rows: readonly (readonly [kind: Kind, detail: string, codes: string, status?: number])[],
): Readonly<Record<string, StoreFailure<Kind>>> {
  const entries = rows.flatMap(([kind, detail, codes, status]) =>
    codes.split(/\s+/).map((code) => [code, { kind, detail, status }] as const),
  );
  return Object.freeze(Object.fromEntries(entries));
}

/**
 * Classifies a failed call to a store: the first of `codes` that is in its table decides, otherwise the status
 * or, without a status, the connection failure. Anything else is `unavailable`. Never throws.
 *
 * @param store - The service's name in messages, its table, and a table of statuses for answers without a known code.
 * @param error - The rejection.
 * @param status - The status of the answer, if there was one.
 * @param codes - Candidates for the code: any values that `property` returned.
 */
export function storeFailure<Kind extends string>(
  store: {
    readonly service: string;
    readonly table: Readonly<Record<string, StoreFailure<Kind> & { readonly status?: number | undefined }>>;
    readonly byStatus?: Readonly<Record<string, StoreFailure<Kind>>>;
  },
  error: unknown,
  status: unknown,
  codes: readonly unknown[],
): StoreFailure<Kind | 'unavailable'> {
  const found = findRow(store.table, codes, (row) => row.status === undefined || row.status === status);
  if (found !== undefined) {
    return { kind: found.row.kind, detail: `${found.row.detail} (${found.code})`, serviceCode: found.code };
  }
  const meant = typeof status === 'number' ? findRow(store.byStatus ?? {}, [`${status}`]) : undefined;
  if (meant !== undefined) return { kind: meant.row.kind, detail: `${meant.row.detail} (status ${meant.code})` };
  return (status === undefined ? unreachable(error, store.service) : undefined) ?? unexplained(status);
}
