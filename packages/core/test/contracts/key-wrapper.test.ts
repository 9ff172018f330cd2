import { expect, test } from 'vitest';
import { KeyWrapperError, type KeyWrapperErrorSummary } from '../../src/contracts/key-wrapper.ts';

const WHAT = { provider: 'aws-kms', operation: 'wrap' } as const;

test.each<readonly [Partial<KeyWrapperErrorSummary>, string]>([
  [{}, 'aws-kms wrap: denied'],
  [{ attempts: 1 }, 'aws-kms wrap: denied'],
  [{ attempts: 4 }, 'aws-kms wrap: denied (4 attempts)'],
  [{ status: 400 }, 'aws-kms wrap: denied (HTTP 400)'],
  [
    { hint: 'ask', code: 'AccessDenied', requestId: 'id', status: 400 },
    'aws-kms wrap: denied (AccessDenied, HTTP 400, request id, ask)',
  ],
  [
    { causes: [new KeyWrapperError('throttled', WHAT), new KeyWrapperError('denied', { ...WHAT, provider: 'kms' })] },
    'aws-kms wrap: throttled; kms wrap: denied',
  ],
])('the error of a key wrapper with %j names the answer of the service', (facts, message) => {
  const error = new KeyWrapperError('denied', { ...WHAT, ...facts });
  expect(error.message).toBe(message);
  expect(error.summary).toEqual({ ...WHAT, ...facts });
  expect(error.help).toMatch(/errors\.md#keywrappererror-denied$/);
});
