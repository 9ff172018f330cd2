import { expect, test } from 'vitest';
// @boundaries-ignore code that tests share is not a package
import { testErrorTable } from '../../../test/support/error-table.ts';
import { classify, ERROR_TABLE, failureOf } from '../src/error-table.ts';

testErrorTable(
  ERROR_TABLE,
  (reason, status) => [failureOf(status, reason)],
  [
    ['not-found', 'notFound', 404],
    ['conflict', 'conditionNotMet', 412],
    ['conflict', 'conflict', 409],
    ['denied', 'forbidden insufficientPermissions accountDisabled countryBlocked orgPolicyConstraintFailed authError'],
    ['denied', 'badRequest invalidArgument invalidParameter methodNotAllowed parseError sslRequired turnedDown'],
    ['denied', 'AuthenticationRequiredRequesterPays UserProjectAccessDenied UserProjectAccountProblem'],
    ['denied', 'userProjectInvalid userProjectMissing cloudKmsBadKey cloudKmsDecryptionKeyNotFound'],
    ['denied', 'cloudKmsDisabledKey cloudKmsEncryptionKeyNotFound cloudKmsKeyLocationNotAllowed'],
    ['denied', 'resourceIsEncryptedWithCustomerEncryptionKey'],
    ['read-only', 'objectUnderActiveHold retentionPolicyNotMet'],
    ['too-large', 'uploadTooLarge'],
    ['unavailable', 'invalid backendError internalError uploadBrokenConnection quotaExceeded rateLimitExceeded'],
    ['unavailable', 'userRateLimitExceeded'],
  ],
  { 401: 'denied', 403: 'denied', 404: 'not-found', 412: 'conflict' },
);

test.each(['ECONNREFUSED', 'CERT_HAS_EXPIRED', 'AbortError'])(
  'a call without an answer is reported as unavailable, and the error names the reason %s',
  (code) => {
    const detail = expect.stringMatching(/^Cloud Storage cannot be reached: /);
    expect(classify({ code })).toEqual({ kind: 'unavailable', serviceCode: code, detail });
  },
);

test.each([
  ['an unknown exception', new Error('forbidden')],
  ['a refusal by the token issuer', Object.assign(new Error('invalid_grant'), { status: 401, code: '401' })],
  ['a reason that only an answer can have', { code: 'notFound', status: 404 }],
  ['undefined', undefined],
])('%s without an answer is reported as unavailable', (_, error) => {
  expect(classify(error)).toEqual({
    kind: 'unavailable',
    detail: 'the call failed: no connection, or no credentials',
  });
});
