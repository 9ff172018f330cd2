import type { KeyWrapperErrorKind } from '@sealring/core';
import { describe, expect, test } from 'vitest';
import { classify, ERROR_TABLE, type ErrorRow } from '../src/error-table.ts';

// Repeated on purpose, because a row that changes its kind changes the behaviour of a fleet.
const EXPECTED: Record<Exclude<KeyWrapperErrorKind, 'corrupt'>, string> = {
  throttled: 'Throttled TooManyRequests',
  disabled: 'KeyDisabled KeyExpired KeyNotYetValid ObjectIsBeingDeleted ObjectIsDeletedButRecoverable',
  denied: `AccessDenied ForbiddenByPolicy ForbiddenByRbac ForbiddenByFirewall ForbiddenByConnection Unauthorized
    KeyOperationForbidden BadParameter`,
  'not-found': 'KeyNotFound',
  unavailable: `InternalServerError ServiceUnavailable AuthenticationError AggregateAuthenticationError
    AuthenticationRequiredError CredentialUnavailableError`,
};
const ROWS = Object.entries(EXPECTED).flatMap(([kind, names]) => names.split(/\s+/).map((name) => ({ name, kind })));
const REQUEST_ID = '0d2ee5c1-56b1-4a5e-9e0c-0f8a3c1f2b7d';
const NOTHING = { status: undefined, requestId: undefined };

/** A `RestError` as the SDK makes it from a JSON body. */
function restError(statusCode: number, code: string, inner?: string): object {
  const innerError = inner === undefined ? undefined : { code: inner };
  return Object.assign(new Error('x'), {
    name: 'RestError',
    code,
    statusCode,
    details: { error: { code, innerError } },
  });
}

describe('adapter rule 2: classification of errors by code and status', () => {
  test.each(ROWS)('an error is $kind if $name is its inner code, outer code, error code or name', ({ name, kind }) => {
    const facts = { kind, code: name };
    expect(classify(restError(418, 'Forbidden', name), 'wrap', NOTHING)).toMatchObject({ ...facts, status: 418 });
    expect(classify(restError(418, name), 'wrap', NOTHING)).toMatchObject({ ...facts, status: 418 });
    expect(classify({ code: name }, 'wrap', NOTHING)).toMatchObject(facts);
    expect(classify({ name }, 'wrap', { status: 418, requestId: REQUEST_ID })).toMatchObject({
      ...facts,
      status: 418,
      requestId: REQUEST_ID,
    });
  });

  test('every row of the table is listed in this test', () => {
    expect(Object.keys(ERROR_TABLE).toSorted()).toEqual(ROWS.map(({ name }) => name).toSorted());
  });

  test('every hint is a sentence', () => {
    for (const { hint = 'a row without a hint' } of Object.values<ErrorRow>(ERROR_TABLE)) expect(hint).toMatch(/ .* /);
  });

  test('the inner code takes precedence over the outer one', () => {
    expect(classify(restError(401, 'Unauthorized', 'KeyDisabled'), 'unwrap', NOTHING).kind).toBe('disabled');
  });

  test('BadParameter means a corrupt wrapped key on unwrap, and a configuration error otherwise', () => {
    const error = restError(400, 'BadParameter');
    expect(classify(error, 'unwrap', NOTHING)).toMatchObject({ kind: 'corrupt', code: 'BadParameter', status: 400 });
    for (const operation of ['wrap', 'sign'] as const) {
      expect(classify(error, operation, NOTHING)).toMatchObject({ kind: 'denied', hint: expect.stringMatching(/RSA/) });
    }
  });

  test.each([
    [401, 'denied'],
    [403, 'denied'],
    [404, 'not-found'],
    [409, 'disabled'],
    [429, 'throttled'],
    [400, 'unavailable'],
    [408, 'unavailable'],
    [500, 'unavailable'],
    [503, 'unavailable'],
  ])('an error with status %i and an unknown code is %s, even if only the response has the status', (status, kind) => {
    expect(classify(restError(status, 'Novelty'), 'unwrap', NOTHING)).toEqual({ kind, status });
    expect(classify(new TypeError('x'), 'unwrap', { status, requestId: undefined })).toEqual({ kind, status });
  });

  test('a 200 that the SDK could not parse is corrupt; one that was cut short is unavailable', () => {
    const seen = { status: 200, requestId: undefined };
    expect(classify(new TypeError('x'), 'unwrap', seen)).toMatchObject({
      kind: 'corrupt',
      hint: expect.stringMatching(/ .* /),
    });
    const cut = Object.assign(new Error('x'), { name: 'RestError', code: 'PARSE_ERROR', statusCode: 200 });
    expect(classify(cut, 'unwrap', seen).kind).toBe('unavailable');
  });

  test.each(['resource', 'origin', 'authorization URI'])(
    'a challenge for another %s is reported with its own code if no request was sent',
    (what) => {
      const message = `The challenge ${what} 'https://evil.example' does not match`;
      const named = {
        kind: 'unavailable',
        code: 'ERR_AZURE_CHALLENGE_RESOURCE',
        hint: expect.stringMatching(/host of keyId.* for an emulator, set/),
      };
      expect(classify(new Error(message), 'wrap', NOTHING)).toEqual(named);
      const reset = { message, code: 'ECONNRESET' };
      expect(classify(reset, 'wrap', NOTHING)).toMatchObject({ kind: 'unavailable', code: 'ECONNRESET' });
      for (const other of [{ message: `x ${message}` }, { message: Object(message) }, { ...reset, statusCode: 418 }]) {
        expect(classify(other, 'wrap', NOTHING)).not.toHaveProperty('code');
      }
    },
  );

  test('a failure of the credential is unavailable, not denied, whatever its status (lifecycle, rule 7)', () => {
    for (const statusCode of [400, 401, 403]) {
      expect(classify({ name: 'AuthenticationError', statusCode }, 'unwrap', NOTHING).kind).toBe('unavailable');
    }
  });

  test.each([
    ['an unknown error', Object.assign(new Error('KeyDisabled'), { name: 'Novelty' })],
    ['a TypeError of the SDK', new TypeError('KeyDisabled')],
    ['a string', 'KeyDisabled'],
    ['undefined', undefined],
    ['null', null],
    ['a number', 403],
    ['a code that is not a string', { code: Object('KeyDisabled') }],
    ['a name of Object.prototype', { name: 'constructor' }],
    ['a status that is not a status', { statusCode: '403' }],
    ['a status out of range', { statusCode: 40_300 }],
    ['details that are not an object', { details: 'KeyDisabled' }],
  ])('%s is classified as unavailable, without a code, status or hint', (_, error) => {
    expect(classify(error, 'unwrap', NOTHING)).toEqual({ kind: 'unavailable' });
  });

  test('an object whose properties throw when they are read is classified as unavailable (F33)', () => {
    const thrower = {
      get name(): string {
        throw new Error('canary');
      },
      get details(): never {
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
    expect(classify(thrower, 'unwrap', NOTHING)).toEqual({ kind: 'unavailable' });
    expect(classify(proxy, 'unwrap', NOTHING)).toEqual({ kind: 'unavailable' });
  });
});
