import { expect, test } from 'vitest';
import { SingleUseStoreError } from '../../src/index.ts';

test('a SingleUseStoreError has its kind, detail and codes, and links to the documentation of its kind', () => {
  const error = new SingleUseStoreError('too-large', 'the table is full', { serviceCode: 'Full' });
  expect(error).toMatchObject({
    name: 'SingleUseStoreError',
    kind: 'too-large',
    detail: 'the table is full',
    code: 'ERR_SINGLE_USE_STORE',
    serviceCode: 'Full',
  });
  expect(error.message).toBe('single-use store too-large: the table is full');
  expect(error.help).toContain('docs/errors.md#singleusestoreerror-too-large');
  expect(new SingleUseStoreError('denied', 'no').serviceCode).toBeUndefined();
});
