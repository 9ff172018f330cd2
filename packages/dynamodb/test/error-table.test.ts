import { vendorError } from '@sealring/core/adapter';
import { expect, test } from 'vitest';
// @boundaries-ignore code that tests share is not a package
import { testErrorTable } from '../../../test/support/error-table.ts';
import { classify, ERROR_TABLE } from '../src/error-table.ts';

const SHARED = vendorError.awsErrorRows({
  denied: 'denied',
  credentials: 'denied',
  expired: 'unavailable',
  clock: 'unavailable',
  request: 'denied',
  throttled: 'unavailable',
  busy: 'unavailable',
});

testErrorTable(
  ERROR_TABLE,
  (code, httpStatusCode) => [
    classify({ name: code, $metadata: { httpStatusCode } }),
    classify({ name: 'Error', code, $metadata: { httpStatusCode } }),
  ],
  [
    ...Object.entries(SHARED).map(([name, kind]) => [kind, name] as const),
    ['conflict', 'ConditionalCheckFailedException'],
    ['contended', 'ReplicatedWriteConflictException TransactionConflictException'],
    ['denied', 'SerializationException'],
    ['too-large', 'ItemCollectionSizeLimitExceededException'],
    ['unavailable', 'ResourceNotFoundException ResourceInUseException InvalidEndpointException'],
    ['unavailable', 'ProvisionedThroughputExceededException'],
  ],
  { 401: 'denied', 403: 'denied' },
);

test('a call without an answer is reported as unavailable, and the error names the reason', () => {
  const detail = expect.stringMatching(/^DynamoDB cannot be reached: /);
  expect(classify({ code: 'EPIPE' })).toEqual({ kind: 'unavailable', serviceCode: 'EPIPE', detail });
});
