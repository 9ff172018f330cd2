import type { KeyWrapperErrorKind } from '@sealring/core';
import { describe, expect, test } from 'vitest';
import { classify, ERROR_TABLE, type ErrorRow, STATUS_NAMES } from '../src/error-table.ts';
import { Status } from './world.ts';

// Repeated on purpose, because a row that changes its kind changes the behaviour of a fleet.
const EXPECTED: Record<KeyWrapperErrorKind, string> = {
  throttled: 'RESOURCE_EXHAUSTED',
  disabled: 'FAILED_PRECONDITION KEY_DISABLED KEY_DESTROY_SCHEDULED KEY_DESTROYED KEY_PENDING_GENERATION',
  denied: `PERMISSION_DENIED UNAUTHENTICATED EXTERNAL_PERMISSION_DENIED CREDENTIALS_MISSING
    ACCESS_TOKEN_SCOPE_INSUFFICIENT IAM_PERMISSION_DENIED SECURITY_POLICY_VIOLATED SERVICE_DISABLED BILLING_DISABLED
    CONSUMER_SUSPENDED`,
  'not-found': 'NOT_FOUND EXTERNAL_NOT_FOUND',
  corrupt: 'INVALID_ARGUMENT',
  unavailable: `ACCESS_TOKEN_EXPIRED CANCELLED UNKNOWN DEADLINE_EXCEEDED ALREADY_EXISTS ABORTED OUT_OF_RANGE
    UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS`,
};
const ROWS = Object.entries(EXPECTED).flatMap(([kind, names]) => names.split(/\s+/).map((name) => ({ name, kind })));
const STATUSES = ROWS.filter(({ name }) => STATUS_NAMES.includes(name));

function withViolations(...types: unknown[]): object {
  return { code: Status.FAILED_PRECONDITION, statusDetails: [{ violations: types.map((type) => ({ type })) }] };
}

describe('adapter rule 2: classification of errors by status and details', () => {
  test.each(STATUSES)('a call that fails with status $name is reported as $kind', ({ name, kind }) => {
    expect(classify({ code: STATUS_NAMES.indexOf(name) }, 'unwrap')).toMatchObject({ kind, code: name });
  });

  test('the statuses have gRPC’s numbers, and all of them but OK have a row', () => {
    for (const [name, code] of Object.entries(Status)) expect(STATUS_NAMES[code]).toBe(name);
    expect(STATUSES.map(({ name }) => name).toSorted()).toEqual(Object.keys(Status).toSorted());
    expect(classify({ code: 0 }, 'unwrap')).toEqual({ kind: 'unavailable', code: 'OK' });
  });

  test('every row of the table is listed in this test', () => {
    expect(Object.keys(ERROR_TABLE).toSorted()).toEqual(ROWS.map(({ name }) => name).toSorted());
  });

  test('every hint is a sentence', () => {
    for (const { hint = 'a row without a hint' } of Object.values<ErrorRow>(ERROR_TABLE)) expect(hint).toMatch(/ .* /);
  });

  test.each(ROWS.filter(({ name }) => !STATUS_NAMES.includes(name) && !/^(?:KEY|EXTERNAL)_/.test(name)))(
    'the reason $name is reported as $kind',
    ({ name, kind }) => {
      expect(classify({ code: Status.UNKNOWN, reason: name }, 'unwrap')).toMatchObject({ kind, code: name });
    },
  );

  test('INVALID_ARGUMENT for a wrap is a configuration error: it is denied, with a hint that names the fix', () => {
    expect(classify({ code: Status.INVALID_ARGUMENT }, 'wrap')).toMatchObject({
      kind: 'denied',
      code: 'INVALID_ARGUMENT',
      hint: expect.stringMatching(/keyId/),
    });
  });

  test.each(ROWS.filter(({ name }) => name.startsWith('KEY_') || name.startsWith('EXTERNAL_')))(
    'a FAILED_PRECONDITION for $name is reported as $kind',
    ({ name, kind }) => {
      expect(classify(withViolations(name), 'unwrap')).toMatchObject({ kind, code: name });
      expect(classify(withViolations('KEY_STATE_OF_TOMORROW', name), 'unwrap')).toMatchObject({ kind, code: name });
    },
  );

  test('a disabled key is reported as disabled, even if an external key manager reported another failure', () => {
    expect(classify(withViolations('KEY_DISABLED', 'EXTERNAL_NOT_FOUND'), 'unwrap').kind).toBe('disabled');
  });

  test('an external key manager that failed without disabling the key is unavailable', () => {
    expect(classify(withViolations('KEY_ENABLED', 'EXTERNAL_REQUEST_FAILED'), 'unwrap')).toMatchObject({
      kind: 'unavailable',
      code: 'FAILED_PRECONDITION',
      hint: 'the external key manager failed',
    });
  });

  test('a FAILED_PRECONDITION without details, or with unknown ones, is reported as disabled', () => {
    expect(classify({ code: Status.FAILED_PRECONDITION }, 'unwrap').kind).toBe('disabled');
    expect(classify(withViolations('KEY_STATE_OF_TOMORROW', 7, undefined), 'unwrap').kind).toBe('disabled');
  });

  test.each([
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'self-signed certificate'],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'self-signed certificate in certificate chain'],
    ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'unable to get local issuer certificate'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'unable to verify the first certificate'],
    ['CERT_HAS_EXPIRED', 'certificate has expired'],
    ['CERT_NOT_YET_VALID', 'certificate is not yet valid'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', "does not match certificate's altnames"],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'SSL routines:ssl3_get_record:wrong version number:ssl.c:1'],
    ['ERR_SSL_PACKET_LENGTH_TOO_LONG', 'SSL routines:ssl3_get_record:packet length too long:ssl.c:1'],
    ['ECONNREFUSED', 'connect ECONNREFUSED 127.0.0.1:1'],
    ['ECONNRESET', 'read ECONNRESET'],
    ['ECONNRESET', 'Client network socket disconnected before secure TLS connection was established'],
    ['EHOSTUNREACH', 'connect EHOSTUNREACH'],
    ['ENETUNREACH', 'connect ENETUNREACH'],
    ['ETIMEDOUT', 'connect ETIMEDOUT'],
    ['ENOTFOUND', 'Name resolution failed for target dns:kms'],
    ['UNAVAILABLE', 'no Name resolution failed'],
    ['UNAVAILABLE', Object('connect ECONNREFUSED')],
  ])('UNAVAILABLE has the code %s from its details, “%s”, but another status does not', (code, details) => {
    expect(classify({ code: Status.UNAVAILABLE, details }, 'unwrap')).toMatchObject({ kind: 'unavailable', code });
    expect(classify({ code: Status.UNKNOWN, details }, 'unwrap')).toEqual({ kind: 'unavailable', code: 'UNKNOWN' });
  });

  test('violations are read only from a FAILED_PRECONDITION', () => {
    expect(classify({ ...withViolations('KEY_DISABLED'), code: Status.UNAVAILABLE }, 'unwrap').kind).toBe(
      'unavailable',
    );
  });

  test('an expired token is unavailable, not denied (lifecycle, rule 7), but a missing token is denied', () => {
    const code = Status.UNAUTHENTICATED;
    expect(classify({ code, reason: 'ACCESS_TOKEN_EXPIRED' }, 'unwrap').kind).toBe('unavailable');
    expect(classify({ code, reason: 'CREDENTIALS_MISSING' }, 'unwrap').kind).toBe('denied');
    expect(classify({ code }, 'unwrap').kind).toBe('denied');
  });

  test.each([
    ['no code, as where credentials are missing', new Error('no code, as with missing credentials')],
    ['a code that is text', { code: 'ECONNREFUSED' }],
    ['the status of a token source', { code: 403 }],
    ['a code past the last', { code: 17 }],
    ['a negative code', { code: -1 }],
    ['a fraction', { code: 7.5 }],
    ['a string', '7 PERMISSION_DENIED'],
    ['undefined', undefined],
    ['null', null],
    ['a number', 7],
    ['a reason without a status', { reason: 'IAM_PERMISSION_DENIED' }],
    ['violations without a status', { ...withViolations('KEY_DISABLED'), code: undefined }],
  ])('%s is classified as unavailable, without a code, status or hint', (_, error) => {
    expect(classify(error, 'unwrap')).toEqual({ kind: 'unavailable' });
    expect(classify(error, 'wrap')).toEqual({ kind: 'unavailable' });
  });

  test('a reason that is not in the table does not affect the classification', () => {
    for (const reason of ['constructor', 'REASON_OF_TOMORROW', 7, {}]) {
      expect(classify({ code: Status.PERMISSION_DENIED, reason }, 'unwrap').kind).toBe('denied');
    }
  });

  test('an object that throws when it is read is reported as unavailable, and details that throw are skipped (F33)', () => {
    const throwing = (name: string): object =>
      Object.defineProperty({}, name, {
        get(): never {
          throw new Error('canary');
        },
      });
    const proxy = new Proxy([], {
      get(): never {
        throw new Error('canary');
      },
      getOwnPropertyDescriptor(): never {
        throw new Error('canary');
      },
    });
    expect(classify(throwing('code'), 'unwrap')).toEqual({ kind: 'unavailable' });
    expect(classify(proxy, 'unwrap')).toEqual({ kind: 'unavailable' });
    for (const statusDetails of [
      proxy,
      [proxy],
      [throwing('violations')],
      [{ violations: proxy }],
      'x',
      { length: 1 },
    ]) {
      expect(classify({ code: Status.FAILED_PRECONDITION, statusDetails }, 'unwrap').kind).toBe('disabled');
    }
  });

  test('only the first eight of a long list of details are read', () => {
    const types = Array.from({ length: 1000 }, (_, i) => (i < 8 ? 'KEY_STATE_OF_TOMORROW' : 'EXTERNAL_NOT_FOUND'));
    expect(classify(withViolations(...types), 'unwrap').kind).toBe('disabled');
  });
});
