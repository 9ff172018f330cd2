import { expect, test } from 'vitest';
import * as core from '../src/index.ts';

const errors = [
  new core.CodecClosedError(),
  new core.InvalidRequestState('malformed'),
  new core.KeyWrapperError('denied', { provider: 'local', operation: 'wrap', code: 'AccessDenied' }),
  new core.RingConflictError(),
  new core.RingStoreError('denied', 'no', { serviceCode: 'AccessDenied' }),
  new core.SealUnavailableError('reader'),
  new core.SingleUseStoreError('denied', 'no', { serviceCode: 'AccessDenied' }),
];

test('each error class has a code of its own, which no code of a service replaces', () => {
  const classes = Object.values(core).filter(
    (value) => typeof value === 'function' && value.prototype instanceof Error,
  );
  expect(new Set(errors.map((error) => error.constructor))).toEqual(new Set(classes));
  const codes = [...errors.map(({ code }) => code), optionErrorCode()];
  expect(new Set(codes)).toEqual(new Set(core.CORE_ERROR_CODES));
  expect(codes).toHaveLength(core.CORE_ERROR_CODES.length);
});

function optionErrorCode(): unknown {
  try {
    core.fileRing('');
  } catch (error) {
    return error instanceof Error && 'code' in error ? error.code : undefined;
  }
  throw new Error('an empty path was accepted');
}
