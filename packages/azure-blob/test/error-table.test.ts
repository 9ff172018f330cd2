import { describe, expect, test } from 'vitest';
import { classify, ERROR_TABLE, type Failure } from '../src/error-table.ts';

// Repeated here on purpose, because a row that changes its kind changes the behaviour of a fleet.
const EXPECTED: Record<Failure['kind'], string> = {
  absent: 'BlobNotFound',
  conflict: 'BlobAlreadyExists ConditionNotMet TargetConditionNotMet',
  denied: `AccountIsDisabled AuthorizationFailure AuthorizationPermissionMismatch AuthorizationProtocolMismatch
    AuthorizationResourceTypeMismatch AuthorizationServiceMismatch AuthorizationSourceIPMismatch ContainerDisabled
    InsufficientAccountPermissions KeyBasedAuthenticationNotPermitted PublicAccessNotPermitted UnauthorizedBlobOverwrite
    AuthenticationFailed InvalidAuthenticationInfo NoAuthenticationInformation FeatureVersionMismatch InvalidBlobType
    InvalidHeaderValue InvalidInput InvalidQueryParameterValue InvalidResourceName InvalidUri OutOfRangeInput
    UnsupportedHeader UnsupportedHttpVerb KeyVaultAccessTokenCannotBeAcquired KeyVaultEncryptionKeyNotFound
    KeyVaultVaultNotFound`,
  'read-only': 'BlobImmutableDueToLegalHold BlobImmutableDueToPolicy ConditionHeadersNotSupported',
  'too-large': 'RequestBodyTooLarge',
  corrupt: '',
  unavailable: `ContainerNotFound ContainerBeingDeleted ResourceNotFound BlobArchived BlobBeingRehydrated LeaseIdMissing
    LeaseIdMismatchWithBlobOperation LeaseLost AggregateAuthenticationError AuthenticationError
    AuthenticationRequiredError ChainedTokenCredentialError CredentialUnavailableError Crc64Mismatch Md5Mismatch
    InternalError OperationTimedOut ServerBusy PARSE_ERROR REQUEST_SEND_ERROR`,
};
const STATUS_OF: Readonly<Record<string, number>> = {
  BlobNotFound: 404,
  BlobAlreadyExists: 409,
  ConditionNotMet: 412,
  TargetConditionNotMet: 412,
};
const ROWS = Object.entries(EXPECTED).flatMap(([kind, codes]) =>
  codes
    .split(/\s+/)
    .filter((code) => code !== '')
    .map((code) => ({ code, kind })),
);

describe('adapter rule 2: errors are classified by code and status', () => {
  test.each(ROWS)('$code is $kind, as a code and as a name, whatever the message', ({ code, kind }) => {
    const statusCode = STATUS_OF[code] ?? 403;
    const expected = { kind, serviceCode: code, detail: expect.stringContaining(`(${code})`) };
    expect(classify({ name: 'RestError', code, statusCode, message: 'BlobNotFound' })).toEqual(expected);
    expect(classify({ name: code, statusCode })).toEqual(expected);
  });

  test('every row of the table is listed in this test', () => {
    expect(Object.keys(ERROR_TABLE).toSorted()).toEqual(ROWS.map(({ code }) => code).toSorted());
  });

  test.each([undefined, 200, 304, 400, 403, 409, 500, '404'])(
    'BlobNotFound with a status of %s is not absent (F9)',
    (statusCode) => {
      expect(classify({ name: 'RestError', code: 'BlobNotFound', statusCode }).kind).not.toBe('absent');
    },
  );

  test.each([
    ['BlobAlreadyExists', 400, 'unavailable'],
    ['ConditionNotMet', 304, 'unavailable'],
    ['ConditionNotMet', 403, 'denied'],
  ])('%s with a status of %i is %s', (code, statusCode, kind) => {
    expect(classify({ code, statusCode }).kind).toBe(kind);
  });

  test.each([
    [401, 'denied'],
    [403, 'denied'],
    [412, 'conflict'],
    [200, 'unavailable'],
    [301, 'unavailable'],
    [400, 'unavailable'],
    [404, 'unavailable'],
    [409, 'unavailable'],
    [429, 'unavailable'],
    [500, 'unavailable'],
    [503, 'unavailable'],
  ])('a status of %i under an unknown code is %s', (statusCode, kind) => {
    expect(classify({ name: 'RestError', code: 'Novelty', statusCode }).kind).toBe(kind);
  });

  test.each([
    ['an unknown exception', Object.assign(new Error('BlobNotFound'), { name: 'Novelty' })],
    ['a TypeError out of the SDK', new TypeError('BlobNotFound')],
    ['a string', 'BlobNotFound'],
    ['undefined', undefined],
    ['null', null],
    ['a number', 404],
    ['a code that is not a string', { code: Object('BlobNotFound') }],
    ['a code of Object.prototype', { code: 'constructor' }],
    ['a status that is not a status', { statusCode: '403' }],
    ['a status out of range', { statusCode: 40_300 }],
  ])('%s is unavailable, without a code, status or hint', (_, error) => {
    expect(classify(error)).toEqual({ kind: 'unavailable', detail: 'the call failed' });
  });

  test('an object that throws when it is read is unavailable (F33)', () => {
    const thrower = {
      get code(): string {
        throw new Error('canary');
      },
    };
    const fail = (): never => {
      throw new Error('canary');
    };
    expect(classify(thrower).kind).toBe('unavailable');
    expect(classify(new Proxy({}, { getOwnPropertyDescriptor: fail, get: fail, getPrototypeOf: fail })).kind).toBe(
      'unavailable',
    );
  });
});
