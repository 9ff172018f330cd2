import { describe, expect, test } from 'vitest';
import { classify, ERROR_TABLE, type Failure, failureOf } from '../src/error-table.ts';

const subject = { resource: 'secrets', name: 'payments-ring' };
const status = (reason: string | undefined, details?: object): object => ({ kind: 'Status', reason, details });

// Repeated on purpose, because a row that changes its kind changes the behaviour of a fleet.
const ROWS: readonly (readonly [reason: string, status: number, kind: Failure['kind'], words: string])[] = [
  ['AlreadyExists', 409, 'conflict', 'the object exists'],
  ['Conflict', 409, 'conflict', 'another version'],
  ['Unauthorized', 401, 'denied', 'credentials'],
  ['Forbidden', 403, 'denied', 'permissions'],
  ['BadRequest', 400, 'denied', 'the namespace and the name'],
  ['MethodNotAllowed', 405, 'denied', 'the namespace and the name'],
  ['NotAcceptable', 406, 'denied', 'the namespace and the name'],
  ['UnsupportedMediaType', 415, 'denied', 'the namespace and the name'],
  ['RequestEntityTooLarge', 413, 'too-large', 'larger than Kubernetes allows'],
  ['Gone', 410, 'unavailable', 'at the moment'],
  ['Expired', 410, 'unavailable', 'at the moment'],
  ['TooManyRequests', 429, 'unavailable', 'at the moment'],
  ['InternalError', 500, 'unavailable', 'at the moment'],
  ['ServiceUnavailable', 503, 'unavailable', 'at the moment'],
  ['Timeout', 504, 'unavailable', 'at the moment'],
  ['ServerTimeout', 500, 'unavailable', 'at the moment'],
  ['StoreReadError', 500, 'unavailable', 'at the moment'],
];

describe('the classification of answers by status and reason', () => {
  test.each(ROWS)('%s with status %i is reported as %s', (reason, code, kind, words) => {
    const failure = failureOf(code, status(reason), subject);
    expect(failure).toEqual({
      kind,
      serviceCode: reason,
      detail: expect.stringMatching(new RegExp(`${words}.* \\(${reason}\\)$`)),
    });
  });

  test('every row of the table is listed in this test', () => {
    expect(Object.keys(ERROR_TABLE).toSorted()).toEqual(ROWS.map(([reason]) => reason).toSorted());
  });

  test.each([
    ['Conflict', 500, 'unavailable'],
    ['Conflict', 403, 'denied'],
    ['AlreadyExists', 503, 'unavailable'],
    ['Forbidden', 500, 'unavailable'],
    ['NotFound', 500, 'unavailable'],
    ['RequestEntityTooLarge', 500, 'unavailable'],
    ['Invalid', 400, 'unavailable'],
    ['constructor', 409, 'unavailable'],
  ])('the reason %s is ignored with the status %i, to which it does not belong: %s', (reason, code, kind) => {
    const failure = failureOf(code, status(reason), subject);
    expect(failure.kind).toBe(kind);
    expect(failure.serviceCode).toBeUndefined();
  });

  test.each([
    [302, 'unavailable'],
    [400, 'unavailable'],
    [401, 'denied'],
    [403, 'denied'],
    [404, 'unavailable'],
    [409, 'unavailable'],
    [413, 'too-large'],
    [422, 'unavailable'],
    [500, 'unavailable'],
  ])('a response %i without a Kubernetes Status, as from a proxy, is reported as %s', (code, kind) => {
    for (const body of [undefined, 'text', null, { reason: 'Conflict' }, { kind: 'Error', reason: 'NotFound' }]) {
      expect(failureOf(code, body, subject)).toEqual({
        kind,
        detail: expect.stringMatching(new RegExp(`^.{15,} \\(status ${code}\\)$`)),
      });
    }
  });
});

describe('a 404', () => {
  test.each([
    [{ kind: 'secrets', name: 'payments-ring' }, 'not-found', 'does not exist'],
    [{ kind: 'namespaces', name: 'payments' }, 'denied', 'namespace does not exist'],
    [{ kind: 'secrets', name: 'another' }, 'unavailable', 'no API server'],
    [{ kind: 'configmaps', name: 'payments-ring' }, 'unavailable', 'no API server'],
    [{}, 'unavailable', 'no API server'],
    [undefined, 'unavailable', 'no API server'],
  ])('a 404 about %j is reported as %s', (details, kind, detail) => {
    expect(failureOf(404, status('NotFound', details), subject)).toMatchObject({
      kind,
      detail: expect.stringContaining(detail),
      serviceCode: 'NotFound',
    });
  });
});

describe('an invalid change', () => {
  test.each([
    [[{ reason: 'FieldValueTooLong', field: 'data' }], 'too-large', 'larger than Kubernetes allows (Invalid)'],
    [[{ reason: 'FieldValueForbidden', field: 'data' }], 'read-only', 'immutable'],
    [[{ reason: 'FieldValueInvalid', field: 'metadata.uid' }], 'conflict', 'another object is stored'],
    [[{ reason: 'FieldValueInvalid', field: 'metadata.name' }], 'denied', 'the namespace and the name (Invalid)'],
    [[], 'denied', 'the namespace and the name (Invalid)'],
    ['none', 'denied', 'the namespace and the name (Invalid)'],
    [[null, 'text'], 'denied', 'the namespace and the name (Invalid)'],
  ])('an invalid change with the causes %j is reported as %s', (causes, kind, words) => {
    const detail = expect.stringContaining(words);
    expect(failureOf(422, status('Invalid', { causes }), subject)).toEqual({ kind, detail, serviceCode: 'Invalid' });
  });
});

describe('a call without an answer', () => {
  test('a call without an answer is reported as unavailable, with the network error code and its remedy', () => {
    expect(classify(Object.assign(new Error('hunter2'), { code: 'ECONNREFUSED' }))).toMatchObject({
      kind: 'unavailable',
      serviceCode: 'ECONNREFUSED',
      detail: expect.stringMatching(/^the API server cannot be reached: /),
    });
  });

  test.each([new Error('hunter2'), 'hunter2', undefined, null])(
    'a call without an answer is reported as unavailable after %s, and the error repeats none of its text',
    (thrown) => {
      const failure = classify(thrown);
      expect(failure.kind).toBe('unavailable');
      expect(JSON.stringify(failure)).not.toContain('hunter2');
    },
  );
});
