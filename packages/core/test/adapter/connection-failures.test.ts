import { describe, expect, test } from 'vitest';
import { connectionFailure, unreachable } from '../../src/adapter/connection-failures.ts';

function errorWith(facts: object, options: ErrorOptions = {}): Error {
  return Object.assign(new Error('canary', options), facts);
}

describe('connectionFailure', () => {
  test.each([
    ['ECONNREFUSED', /refused/],
    ['ECONNRESET', /closed before an answer/],
    ['ENOTFOUND', /host name does not exist/],
    ['EAI_AGAIN', /DNS/],
    ['ENETUNREACH', /routes and firewalls/],
    ['ETIMEDOUT', /no answer in time/],
    ['SELF_SIGNED_CERT_IN_CHAIN', /not trusted.*NODE_EXTRA_CA_CERTS/],
    ['CERT_HAS_EXPIRED', /expired.*clock/],
    ['ERR_TLS_CERT_ALTNAME_INVALID', /a different host name/],
    ['ERR_SSL_WRONG_VERSION_NUMBER', /does not use TLS/],
    ['EPROTO', /TLS handshake/],
    ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', /client certificate/],
    ['HPE_INVALID_CONSTANT', /not HTTP/],
    ['AbortError', /aborted/],
  ])('the failure %s has a hint that explains it', (code, hint) => {
    expect(connectionFailure(errorWith({ code }))).toEqual({ code, hint: expect.stringMatching(hint) });
  });

  test('explains the plain Error of an AWS client without a Region', () => {
    expect(connectionFailure(new Error('Region is missing'))).toEqual({
      code: 'RegionMissing',
      hint: "no AWS Region is set: set AWS_REGION, or the client's region",
    });
    expect(connectionFailure(new Error('Region is missing: canary'))).toBeUndefined();
  });

  test('finds the code of a cause, and the code of the first of several errors', () => {
    const refused = errorWith({ code: 'ECONNREFUSED' });
    expect(connectionFailure(new TypeError('fetch failed', { cause: refused }))?.code).toBe('ECONNREFUSED');
    expect(connectionFailure(new AggregateError([refused, errorWith({})]))?.code).toBe('ECONNREFUSED');
    const twice = errorWith({ code: 'OUTER' }, { cause: errorWith({}, { cause: refused }) });
    expect(connectionFailure(twice)?.code).toBe('ECONNREFUSED');
  });

  test('prefers a code to a name: a reset that an SDK names TimeoutError is not a timeout', () => {
    expect(connectionFailure(errorWith({ name: 'TimeoutError', code: 'ECONNRESET' }))?.code).toBe('ECONNRESET');
    expect(connectionFailure(errorWith({ name: 'TimeoutError' }))?.code).toBe('TimeoutError');
  });

  test.each([
    ['an unknown code', errorWith({ code: 'ENOTHING' })],
    ['a code in the message', new Error('ECONNREFUSED')],
    ['a code that is not a string', errorWith({ code: Object('ECONNREFUSED') })],
    ['a name of Object.prototype', errorWith({ code: 'constructor' })],
    ['a string', 'ECONNREFUSED'],
    ['undefined', undefined],
    ['null', null],
  ])('finds nothing in %s', (_, error) => {
    expect(connectionFailure(error)).toBeUndefined();
    expect(unreachable(error, 'S3')).toBeUndefined();
  });

  test('stops at an error that is its own cause, and at one that throws when it is read', () => {
    const loop = new Error('x');
    loop.cause = loop;
    expect(connectionFailure(loop)).toBeUndefined();
    const thrower = {
      get cause(): never {
        throw new Error('canary');
      },
    };
    expect(connectionFailure(thrower)).toBeUndefined();
  });

  test('creates the failure of a store, with the name of the service', () => {
    expect(unreachable(errorWith({ code: 'ECONNREFUSED' }), 'S3')).toEqual({
      kind: 'unavailable',
      serviceCode: 'ECONNREFUSED',
      detail: 'S3 cannot be reached: the connection was refused: check the host and the port (ECONNREFUSED)',
    });
  });
});
