import type { KeyWrapperErrorKind } from '@sealring/core';
import { vendorError } from '@sealring/core/adapter';
import { describe, expect, test } from 'vitest';
import { classify, ERROR_TABLE, type ErrorRow } from '../src/error-table.ts';

const MEANINGS = {
  denied: 'denied',
  credentials: 'credentials',
  expired: 'expired',
  clock: 'clock',
  request: 'request',
  throttled: 'throttled',
  busy: 'busy',
};

// Repeated on purpose, because a row that changes its kind changes the behaviour of a fleet.
const EXPECTED: Record<KeyWrapperErrorKind, string> = {
  throttled: 'ThrottlingException',
  disabled: 'DisabledException',
  denied: `AccessDeniedException InvalidGrantTokenException InvalidClientTokenId InvalidKeyUsageException
    UnsupportedOperationException ValidationException InvalidArnException`,
  'not-found': 'NotFoundException',
  corrupt: 'InvalidCiphertextException IncorrectKeyException',
  unavailable: `KeyUnavailableException KMSInternalException DependencyTimeoutException KMSInvalidStateException
    ServiceUnavailable ExpiredTokenException RequestExpired`,
};
const ROWS = Object.entries(EXPECTED).flatMap(([kind, names]) => names.split(/\s+/).map((name) => ({ name, kind })));
const ARN = 'arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab';
const REQUEST_ID = '0d2ee5c1-56b1-4a5e-9e0c-0f8a3c1f2b7d';

describe('adapter rule 2: classification of errors by name and status', () => {
  test.each(ROWS)('an error is $kind if its name or its code is $name', ({ name, kind }) => {
    const metadata = { $metadata: { httpStatusCode: 400, requestId: REQUEST_ID } };
    const facts = { kind, code: name, status: 400, requestId: REQUEST_ID };
    expect(classify({ name, ...metadata })).toMatchObject(facts);
    expect(classify({ name: 'Error', code: name, ...metadata })).toMatchObject(facts);
  });

  test('this test lists every row of the table, and one name for each meaning that AWS services share', () => {
    const named = new Set(ROWS.map(({ name }) => name));
    const shared = vendorError.awsErrorRows<string>(MEANINGS);
    expect(Object.keys(ERROR_TABLE).filter((name) => !named.has(name) && !Object.hasOwn(shared, name))).toEqual([]);
    expect(new Set([...named].map((name) => shared[name]))).toEqual(new Set([undefined, ...Object.values(MEANINGS)]));
  });

  test('every hint is a sentence', () => {
    for (const { hint = 'a row without a hint' } of Object.values<ErrorRow>(ERROR_TABLE)) expect(hint).toMatch(/ .* /);
  });

  test.each([
    [`${ARN} is pending deletion.`, 'disabled'],
    [`${ARN} is pending replica deletion.`, 'disabled'],
    [`${ARN} is pending import.`, 'disabled'],
    [`${ARN} is unavailable.`, 'unavailable'],
    [`${ARN} is creating.`, 'unavailable'],
    [`${ARN} is pending deletions`, 'unavailable'],
    ['AWS KMS cannot communicate with your external key store proxy.', 'unavailable'],
    ['', 'unavailable'],
    [undefined, 'unavailable'],
    [Object(`${ARN} is pending deletion.`), 'unavailable'],
  ])('a KMSInvalidStateException with the message %j is %s', (message, kind) => {
    const failure = classify({ name: 'KMSInvalidStateException', message, $metadata: { httpStatusCode: 400 } });
    expect(failure).toMatchObject({ kind, code: 'KMSInvalidStateException', hint: expect.stringMatching(/ .* /) });
    expect(JSON.stringify(failure)).not.toContain(ARN);
  });

  test('only a KMSInvalidStateException is disabled because of its message', () => {
    const message = `${ARN} is pending deletion.`;
    expect(classify({ name: 'KMSInternalException', message }).kind).toBe('unavailable');
    expect(classify({ name: 'Novelty', message }).kind).toBe('unavailable');
  });

  test.each(['InvalidKeyUsageException', 'ValidationException'])(
    '%s is a configuration error with a hint that names the fix',
    (name) => {
      expect(classify({ name })).toMatchObject({ kind: 'denied', hint: expect.stringMatching(/key/) });
    },
  );

  test('a 403 with an XML body, which the SDK turns into a SyntaxError, is denied', () => {
    const error = Object.assign(new SyntaxError('Unexpected token < in JSON'), { $metadata: { httpStatusCode: 403 } });
    expect(classify(error)).toEqual({ kind: 'denied', status: 403 });
    const reset = { code: 'ECONNRESET' };
    expect(classify({ ...reset, $metadata: { httpStatusCode: 403 } })).toEqual({ kind: 'denied', status: 403 });
    expect(classify(reset)).toMatchObject({ kind: 'unavailable', ...reset });
  });

  test.each([
    [401, 'denied'],
    [403, 'denied'],
    [404, 'not-found'],
    [429, 'throttled'],
    [200, 'unavailable'],
    [400, 'unavailable'],
    [408, 'unavailable'],
    [500, 'unavailable'],
    [503, 'unavailable'],
  ])('an error with status %i and an unknown name is %s', (status, kind) => {
    expect(classify({ name: 'Novelty', $metadata: { httpStatusCode: status } })).toEqual({ kind, status });
  });

  test.each([
    ['an unknown exception', Object.assign(new Error('AccessDeniedException'), { name: 'Novelty' })],
    ['a TypeError of the SDK', new TypeError('x is not a function')],
    ['a parse failure', new SyntaxError('DisabledException')],
    ['a string', 'DisabledException'],
    ['undefined', undefined],
    ['null', null],
    ['a number', 403],
    ['a name that is not a string', { name: Object('DisabledException') }],
    ['a name of Object.prototype', { name: 'constructor' }],
    ['a status that is not a status', { $metadata: { httpStatusCode: '403' } }],
    ['a status out of range', { $metadata: { httpStatusCode: 40_300 } }],
  ])('%s is classified as unavailable, without a code, status or hint', (_, error) => {
    expect(classify(error)).toEqual({ kind: 'unavailable' });
  });

  test('an error about expired credentials is unavailable, not denied, whatever its status (lifecycle, rule 7)', () => {
    for (const httpStatusCode of [400, 403]) {
      expect(classify({ name: 'ExpiredTokenException', $metadata: { httpStatusCode } }).kind).toBe('unavailable');
    }
  });

  test('an object whose properties throw when they are read is classified as unavailable (F33)', () => {
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
    expect(classify(thrower)).toEqual({ kind: 'unavailable' });
    expect(classify(proxy)).toEqual({ kind: 'unavailable' });
  });

  test('a request id that is not a UUID is dropped, because it could contain a key (F33)', () => {
    for (const requestId of ['ab'.repeat(32), `${REQUEST_ID}\n`, 7]) {
      expect(classify({ $metadata: { requestId } })).toEqual({ kind: 'unavailable' });
    }
  });
});
