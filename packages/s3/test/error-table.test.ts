import { awsErrorRows } from '@sealring/core/adapter';
import { describe, expect, test } from 'vitest';
import { classify, ERROR_TABLE, type Failure } from '../src/error-table.ts';

const MEANINGS = {
  denied: 'denied',
  credentials: 'credentials',
  expired: 'expired',
  clock: 'clock',
  request: 'request',
  throttled: 'throttled',
  busy: 'busy',
};

// Repeated here on purpose, because a row that changes its kind changes the behaviour of a fleet.
const EXPECTED: Record<Failure['kind'], string> = {
  absent: 'NoSuchKey',
  conflict: 'PreconditionFailed ConditionalRequestConflict',
  denied: `AccessDeniedException InvalidClientTokenId ValidationException AllAccessDisabled AccountProblem
    NotSignedUp InvalidAccessKeyId InvalidToken SignatureDoesNotMatch InvalidArgument InvalidBucketName
    InvalidRequest KeyTooLongError MethodNotAllowed KMS.DisabledException KMS.KMSInvalidStateException
    KMS.NotFoundException`,
  'read-only': 'NotImplemented',
  'too-large': 'EntityTooLarge',
  corrupt: '',
  unavailable: `NoSuchBucket InvalidObjectState AuthorizationHeaderMalformed
    IllegalLocationConstraintException PermanentRedirect Redirect TemporaryRedirect ExpiredTokenException
    TokenRefreshRequired RequestExpired BadDigest XAmzContentChecksumMismatch IncompleteBody InternalError
    OperationAborted ServiceUnavailable SlowDown ThrottlingException`,
};
const ROWS = Object.entries(EXPECTED).flatMap(([kind, names]) =>
  names
    .split(/\s+/)
    .filter((name) => name !== '')
    .map((name) => ({ name, kind })),
);

describe('adapter rule 2: errors are classified by name and status', () => {
  test.each(ROWS)('$name is $kind, by its name and by its code', ({ name, kind }) => {
    const metadata = { $metadata: { httpStatusCode: 404 } };
    expect(classify({ name, ...metadata })).toMatchObject({ kind, detail: expect.stringContaining(name) });
    expect(classify({ name: 'Error', code: name, ...metadata })).toMatchObject({ kind });
  });

  test('every row of the table is listed in this test, and each meaning that AWS services share once', () => {
    const named = new Set(ROWS.map(({ name }) => name));
    const shared = awsErrorRows<string>(MEANINGS);
    expect(Object.keys(ERROR_TABLE).filter((name) => !named.has(name) && !Object.hasOwn(shared, name))).toEqual([]);
    expect(new Set([...named].map((name) => shared[name]))).toEqual(new Set([undefined, ...Object.values(MEANINGS)]));
  });

  test.each([undefined, 200, 400, 403, 405, 500, '404'])(
    'NoSuchKey with a status of %s is not absent (F9)',
    (status) => {
      expect(classify({ name: 'NoSuchKey', $metadata: { httpStatusCode: status } }).kind).not.toBe('absent');
    },
  );

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
  ])('a status of %i under an unknown name is %s', (status, kind) => {
    expect(classify({ name: 'Novelty', $metadata: { httpStatusCode: status } }).kind).toBe(kind);
  });

  test.each([
    ['an unknown exception', Object.assign(new Error('AccessDenied'), { name: 'Novelty' })],
    ['a TypeError out of the SDK', new TypeError('NoSuchKey')],
    ['a string', 'NoSuchKey'],
    ['undefined', undefined],
    ['null', null],
    ['a number', 404],
    ['a name that is not a string', { name: Object('NoSuchKey') }],
    ['a name of Object.prototype', { name: 'constructor' }],
    ['a status that is not a status', { $metadata: { httpStatusCode: '403' } }],
    ['a status out of range', { $metadata: { httpStatusCode: 40_300 } }],
  ])('%s is unavailable, without a code, status or hint', (_, error) => {
    expect(classify(error)).toEqual({ kind: 'unavailable', detail: 'the call failed' });
  });

  test('an object that throws when it is read is unavailable (F33)', () => {
    const thrower = {
      get name(): string {
        throw new Error('canary');
      },
    };
    const proxy = new Proxy(
      {},
      {
        getOwnPropertyDescriptor(): never {
          throw new Error('canary');
        },
      },
    );
    expect(classify(thrower).kind).toBe('unavailable');
    expect(classify(proxy).kind).toBe('unavailable');
  });
});
