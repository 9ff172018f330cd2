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

function unparsed(body: unknown, httpStatusCode?: unknown) {
  return classify({ name: 'SyntaxError', $metadata: { httpStatusCode }, $response: { body } });
}

testErrorTable(
  ERROR_TABLE,
  (code, httpStatusCode) => [
    classify({ name: code, $metadata: { httpStatusCode } }),
    classify({ name: 'Error', code, $metadata: { httpStatusCode } }),
    unparsed(`<Error><Code>${code}</Code></Error>`, httpStatusCode),
    unparsed(`\n<?xml version="1.0"?>\n\n<Error xmlns="x">\n\n<Code>${code}</Code><A/></Error>\n`, httpStatusCode),
  ],
  [
    ...Object.entries(SHARED).map(([name, kind]) => [kind, name] as const),
    ['absent', 'NoSuchKey', 404],
    ['conflict', 'PreconditionFailed ConditionalRequestConflict'],
    ['denied', 'AllAccessDisabled AccountProblem NotSignedUp InvalidAccessKeyId InvalidToken SignatureDoesNotMatch'],
    ['denied', 'InvalidArgument InvalidBucketName InvalidRequest KeyTooLongError MethodNotAllowed'],
    ['denied', 'KMS.DisabledException KMS.KMSInvalidStateException KMS.NotFoundException'],
    ['read-only', 'NotImplemented'],
    ['too-large', 'EntityTooLarge'],
    ['unavailable', 'NoSuchBucket InvalidObjectState AuthorizationHeaderMalformed IllegalLocationConstraintException'],
    ['unavailable', 'PermanentRedirect Redirect TemporaryRedirect TokenRefreshRequired BadDigest'],
    ['unavailable', 'XAmzContentChecksumMismatch IncompleteBody InternalError OperationAborted SlowDown'],
  ],
  { 401: 'denied', 403: 'denied', 412: 'conflict' },
);

test.each([
  '<Error><Code>SlowDown</Code>',
  'x<Error><Code>SlowDown</Code></Error>',
  '<Errors><Code>SlowDown</Code></Error>',
  '<Error>x<Code>SlowDown</Code></Error>',
  '<Error><Code> SlowDown</Code></Error>',
  { body: 'SlowDown' },
])('the code is taken only from a complete S3 error document, not from %j', (body) => {
  expect(unparsed(body)).not.toHaveProperty('serviceCode');
});

test('a call without an answer is reported as unavailable, and the error names the reason', () => {
  const detail = expect.stringMatching(/^S3 cannot be reached: /);
  expect(classify({ code: 'EPIPE' })).toEqual({ kind: 'unavailable', serviceCode: 'EPIPE', detail });
});
