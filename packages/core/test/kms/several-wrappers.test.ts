import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { KeyWrapperError, type KeyWrapperErrorKind } from '../../src/contracts/key-wrapper.ts';
import { allOf, firstOf } from '../../src/kms/several-wrappers.ts';

/** Each failure may pass, or be fixed, before the next one. */
const MILDEST_FIRST: readonly KeyWrapperErrorKind[] = [
  'throttled',
  'unavailable',
  'denied',
  'disabled',
  'not-found',
  'corrupt',
];

function failure(kind: KeyWrapperErrorKind, provider: string): KeyWrapperError {
  return new KeyWrapperError(kind, { provider, operation: 'wrap' });
}

describe('the failures of several key wrappers', () => {
  test('failures of several key wrappers count as a refusal only when all refuse, and include the error of each of them (F10)', () => {
    for (const [i, milder] of MILDEST_FIRST.entries()) {
      for (const worse of MILDEST_FIRST.slice(i)) {
        for (const kinds of [
          [milder, worse],
          [worse, milder],
          [worse, milder, worse],
        ]) {
          const failures = kinds.map((kind, place) => failure(kind, `kms-${place}`));
          const said = allOf(failures);
          expect(said).toMatchObject({ name: 'KeyWrapperError', kind: milder });
          expect(said).toHaveProperty('summary.provider', failures.map(({ summary }) => summary.provider).join(', '));
          expect(said).toHaveProperty('summary.operation', 'wrap');
          expect(said).toHaveProperty('summary.causes', failures);
          for (const { message } of failures) expect(String(said)).toContain(message);
        }
      }
    }
  });

  test('a single failure is reported unchanged', () => {
    for (const only of [failure('denied', 'kms'), new TypeError('wrong argument')]) expect(allOf([only])).toBe(only);
  });

  test('the first failure that did not come from a KMS is reported instead of the others', () => {
    const [known, unknown] = [failure('denied', 'kms'), new RangeError('wrong argument')];
    expect(allOf([unknown, known])).toBe(unknown);
    expect(allOf([known, unknown])).toBe(known);
  });
});

describe('the first good answer', () => {
  const answer = (): { readonly dataKey: Uint8Array } => ({ dataKey: new Uint8Array(randomBytes(32)) });
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  test('the first good answer is returned, and the data keys of all others are overwritten, including late ones (F22)', async () => {
    const [first, second, late] = [answer(), answer(), answer()];
    const before = Uint8Array.from(first.dataKey);
    let come: (answer: { readonly dataKey: Uint8Array }) => void = () => undefined;
    const waiting = new Promise<{ readonly dataKey: Uint8Array }>((resolve) => {
      come = resolve;
    });
    const asked = [
      Promise.reject(failure('unavailable', 'kms')),
      Promise.resolve(first),
      Promise.resolve(second),
      waiting,
    ];
    expect(await firstOf(asked)).toBe(first);
    await settle();
    expect(second.dataKey).toEqual(new Uint8Array(32));
    come(late);
    await settle();
    expect(late.dataKey).toEqual(new Uint8Array(32));
    expect(first.dataKey).toEqual(before);
  });

  test('a call to several key wrappers rejects with one error for all failures when every wrapper fails', async () => {
    const only = failure('denied', 'kms');
    await expect(firstOf([Promise.reject(only)])).rejects.toBe(only);
    const both = firstOf([Promise.reject(failure('disabled', 'a')), Promise.reject(failure('denied', 'b'))]);
    await expect(both).rejects.toMatchObject({ kind: 'denied', summary: { provider: 'a, b' } });
  });
});
