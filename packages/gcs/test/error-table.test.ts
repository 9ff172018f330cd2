import { describe, expect, test } from 'vitest';
import { classify, ERROR_TABLE, type Failure, failureOf } from '../src/error-table.ts';

// Repeated here on purpose, because a row that changes its kind changes the behaviour of a fleet.
const EXPECTED: Record<Failure['kind'], string> = {
  'not-found': 'notFound',
  conflict: 'conditionNotMet conflict',
  denied: `forbidden insufficientPermissions accountDisabled countryBlocked orgPolicyConstraintFailed authError badRequest
    invalidArgument invalidParameter methodNotAllowed parseError sslRequired turnedDown
    AuthenticationRequiredRequesterPays UserProjectAccessDenied UserProjectAccountProblem userProjectInvalid
    userProjectMissing cloudKmsBadKey cloudKmsDecryptionKeyNotFound cloudKmsDisabledKey cloudKmsEncryptionKeyNotFound
    cloudKmsKeyLocationNotAllowed resourceIsEncryptedWithCustomerEncryptionKey`,
  'read-only': 'objectUnderActiveHold retentionPolicyNotMet',
  'too-large': 'uploadTooLarge',
  corrupt: '',
  unavailable: `invalid backendError internalError uploadBrokenConnection quotaExceeded rateLimitExceeded
    userRateLimitExceeded`,
};
const STATUS_OF: Readonly<Record<string, number>> = { notFound: 404, conditionNotMet: 412, conflict: 409 };
const ROWS = Object.entries(EXPECTED).flatMap(([kind, reasons]) =>
  reasons
    .split(/\s+/)
    .filter((reason) => reason !== '')
    .map((reason) => ({ reason, kind })),
);

describe('adapter rule 2: answers are classified by status and reason', () => {
  test.each(ROWS)('$reason is $kind', ({ reason, kind }) => {
    const failure = failureOf(STATUS_OF[reason] ?? 400, reason);
    expect(failure).toEqual({ kind, serviceCode: reason, detail: expect.stringContaining(`(${reason})`) });
  });

  test('every row of the table is listed in this test', () => {
    expect(Object.keys(ERROR_TABLE).toSorted()).toEqual(ROWS.map(({ reason }) => reason).toSorted());
  });

  test.each([
    ['conditionNotMet', 400, 'unavailable'],
    ['conditionNotMet', 403, 'denied'],
    ['conflict', 400, 'unavailable'],
    ['notFound', 400, 'unavailable'],
    ['notFound', 503, 'unavailable'],
    ['orgPolicyConstraintFailed', 412, 'denied'],
    ['rateLimitExceeded', 403, 'unavailable'],
    ['rateLimitExceeded', 429, 'unavailable'],
  ])('%s under a status of %i is %s', (reason, status, kind) => {
    expect(failureOf(status, reason).kind).toBe(kind);
  });

  test.each([
    [0, 'unavailable'],
    [200, 'unavailable'],
    [204, 'unavailable'],
    [301, 'unavailable'],
    [400, 'unavailable'],
    [401, 'denied'],
    [403, 'denied'],
    [404, 'not-found'],
    [408, 'unavailable'],
    [409, 'unavailable'],
    [412, 'conflict'],
    [429, 'unavailable'],
    [500, 'unavailable'],
    [503, 'unavailable'],
  ])('a status of %i under an unknown reason is %s', (status, kind) => {
    for (const reason of ['novelty', undefined, null, 7, {}, 'constructor', '__proto__']) {
      expect(failureOf(status, reason).kind).toBe(kind);
    }
  });
});

describe('anything but an answer of Cloud Storage is unavailable', () => {
  test.each(['ECONNREFUSED', 'CERT_HAS_EXPIRED', 'AbortError'])('%s', (code) => {
    const detail = expect.stringMatching(new RegExp(`^Cloud Storage cannot be reached: .+ \\(${code}\\)$`));
    expect(classify({ code })).toEqual({ kind: 'unavailable', serviceCode: code, detail });
  });

  const unknown = { kind: 'unavailable', detail: 'the call failed: no connection, or no credentials' };

  test.each([
    ['an unknown exception', new Error('forbidden')],
    ['a refusal by the token issuer', Object.assign(new Error('invalid_grant'), { status: 401, code: '401' })],
    ['a reason that only an answer can have', { code: 'notFound', status: 404 }],
    ['a TypeError out of the SDK', new TypeError('notFound')],
    ['a string', 'notFound'],
    ['undefined', undefined],
    ['null', null],
    ['a number', 404],
    ['a name of Object.prototype', { code: 'constructor' }],
  ])('%s', (_, error) => {
    expect(classify(error)).toEqual(unknown);
  });

  test('an object that throws when it is read (F33)', () => {
    const thrower = {
      get code(): string {
        throw new Error('canary');
      },
    };
    const fail = (): never => {
      throw new Error('canary');
    };
    expect(classify(thrower)).toEqual(unknown);
    expect(classify(new Proxy({}, { getOwnPropertyDescriptor: fail, get: fail, getPrototypeOf: fail }))).toEqual(
      unknown,
    );
  });
});
