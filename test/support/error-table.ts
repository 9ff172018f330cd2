import { expect, test } from 'vitest';

interface Failure {
  readonly kind: string;
  readonly detail: string;
  readonly serviceCode?: string;
}

const STATUSES = [200, 204, 301, 304, 400, 401, 403, 404, 408, 409, 412, 429, 500, 503];
/** Values that are not a status, for an answer without a known code. */
const NO_STATUS = [undefined, '403', 40_300];

/**
 * Tests the error table of a store. Each row is repeated on purpose, because a row that changes its kind changes the
 * behaviour of a fleet.
 *
 * @param classify - Classifies failures with this code and status, in every form that they have.
 * @param rows - Kind, codes separated by spaces, and the only status under which it applies, if any.
 * @param statuses - Kinds of statuses; of any other it is `unavailable`.
 */
export function testErrorTable(
  table: object,
  classify: (code: string, status: unknown) => readonly Failure[],
  rows: readonly (readonly [kind: string, codes: string, status?: number])[],
  statuses: Readonly<Record<number, string>>,
): void {
  const listed = rows.flatMap(([kind, codes, status]) => codes.split(/\s+/).map((code) => ({ code, kind, status })));

  test.each(listed)(
    '$code is classified as $kind, with our own message, and only with its listed status if it has one (F9)',
    (row) => {
      const { code, kind, status } = row;
      const detail = expect.stringMatching(new RegExp(`^\\w.{9,} \\(${code}\\)$`));
      for (const failure of classify(code, status ?? 403)) expect(failure).toEqual({ kind, serviceCode: code, detail });
      if (status === undefined) return;
      for (const other of [...STATUSES, ...NO_STATUS, String(status)].filter((each) => each !== status)) {
        for (const failure of classify(code, other)) expect(failure).not.toHaveProperty('serviceCode');
      }
    },
  );

  test('every row of the table is listed in this test', () => {
    expect(listed.map(({ code }) => code).toSorted()).toEqual(Object.keys(table).toSorted());
  });

  test.each(STATUSES)('the status %i determines the kind of an unknown code', (status) => {
    const detail = expect.stringMatching(status < 300 ? /^the call failed$/ : `^\\w.{9,} \\(status ${status}\\)$`);
    for (const code of ['Novelty', 'constructor', '__proto__', '403'])
      for (const failure of classify(code, status))
        expect(failure).toEqual({ kind: statuses[status] ?? 'unavailable', detail });
  });

  test.each(NO_STATUS)('an unknown code with the status %o is classified as unavailable', (status) => {
    for (const failure of classify('Novelty', status))
      expect(failure).toEqual({ kind: 'unavailable', detail: 'the call failed' });
  });
}
