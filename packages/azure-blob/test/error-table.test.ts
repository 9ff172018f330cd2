import { expect, test } from 'vitest';
// @boundaries-ignore code that tests share is not a package
import { testErrorTable } from '../../../test/support/error-table.ts';
import { classify, ERROR_TABLE } from '../src/error-table.ts';

testErrorTable(
  ERROR_TABLE,
  (code, statusCode) => [
    classify({ name: 'RestError', code, statusCode, message: 'BlobNotFound' }),
    classify({ name: code, statusCode }),
  ],
  [
    ['absent', 'BlobNotFound', 404],
    ['conflict', 'BlobAlreadyExists', 409],
    ['conflict', 'ConditionNotMet TargetConditionNotMet', 412],
    ['denied', 'AccountIsDisabled AuthorizationFailure AuthorizationPermissionMismatch AuthorizationProtocolMismatch'],
    ['denied', 'AuthorizationResourceTypeMismatch AuthorizationServiceMismatch AuthorizationSourceIPMismatch'],
    ['denied', 'ContainerDisabled InsufficientAccountPermissions KeyBasedAuthenticationNotPermitted'],
    ['denied', 'PublicAccessNotPermitted UnauthorizedBlobOverwrite AuthenticationFailed InvalidAuthenticationInfo'],
    ['denied', 'NoAuthenticationInformation FeatureVersionMismatch InvalidBlobType InvalidHeaderValue InvalidInput'],
    ['denied', 'InvalidQueryParameterValue InvalidResourceName InvalidUri OutOfRangeInput UnsupportedHeader'],
    ['denied', 'UnsupportedHttpVerb KeyVaultAccessTokenCannotBeAcquired KeyVaultEncryptionKeyNotFound'],
    ['denied', 'KeyVaultVaultNotFound'],
    ['read-only', 'BlobImmutableDueToLegalHold BlobImmutableDueToPolicy ConditionHeadersNotSupported'],
    ['too-large', 'RequestBodyTooLarge'],
    ['unavailable', 'ContainerNotFound ContainerBeingDeleted ResourceNotFound BlobArchived BlobBeingRehydrated'],
    ['unavailable', 'LeaseIdMissing LeaseIdMismatchWithBlobOperation LeaseLost AggregateAuthenticationError'],
    ['unavailable', 'AuthenticationError AuthenticationRequiredError ChainedTokenCredentialError'],
    ['unavailable', 'CredentialUnavailableError Crc64Mismatch Md5Mismatch InternalError OperationTimedOut'],
    ['unavailable', 'ServerBusy PARSE_ERROR REQUEST_SEND_ERROR'],
  ],
  { 401: 'denied', 403: 'denied', 412: 'conflict' },
);

test('a call without an answer is reported as unavailable, and the error names the reason', () => {
  const detail = expect.stringMatching(/^Blob Storage cannot be reached: /);
  expect(classify({ code: 'EPIPE' })).toEqual({ kind: 'unavailable', serviceCode: 'EPIPE', detail });
});
