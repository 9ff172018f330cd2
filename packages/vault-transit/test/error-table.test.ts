import type { KeyWrapperErrorKind } from '@sealring/core';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { classify, classifyAnswer, REFUSALS, STATUSES } from '../src/error-table.ts';

function errors(...texts: unknown[]): string {
  return JSON.stringify({ errors: texts });
}

// Repeated on purpose, because a row that changes its kind changes the behaviour of a fleet.
const TEXTS: readonly [KeyWrapperErrorKind, string][] = [
  ['corrupt', 'cipher: message authentication failed'],
  ['corrupt', 'chacha20poly1305: message authentication failed'],
  ['corrupt', 'invalid ciphertext length'],
  ['corrupt', 'invalid ciphertext: no prefix'],
  ['corrupt', 'invalid ciphertext: wrong number of fields'],
  ['corrupt', 'invalid ciphertext: could not decode base64'],
  ['corrupt', 'invalid ciphertext: version number could not be decoded'],
  ['corrupt', 'invalid ciphertext: unable to decrypt'],
  ['unavailable', 'invalid ciphertext: version is too new'],
  ['disabled', 'ciphertext or signature version is disallowed by policy (too old)'],
  ['disabled', 'refusing to use soft-deleted key'],
  ['not-found', 'encryption key not found'],
  ['denied', "'[0].associated_data' provided for non-AEAD cipher suite rsa-2048"],
  [
    'denied',
    "missing 'context' for key derivation; the key was created using a derived key, which means additional, per-request information must be included in order to perform operations with the key",
  ],
  ['denied', 'message encryption not supported for key type ed25519'],
  ['denied', 'message decryption not supported for key type hmac'],
];

describe('classification of a 400 from Vault by its text', () => {
  test.each(TEXTS)('a 400 is classified as %s by the text: %s', (kind, text) => {
    expect(classifyAnswer(400, errors(text))).toMatchObject({ kind, status: 400 });
    expect(classifyAnswer(400, errors(7, null, 'something else', text))).toMatchObject({ kind });
  });

  test('this test covers every row of the list', () => {
    expect(REFUSALS.filter(({ text }) => !TEXTS.some(([, given]) => text.test(given)))).toEqual([]);
  });

  test('every hint is a sentence', () => {
    for (const { hint = 'a row without a hint' } of [...REFUSALS, ...Object.values(STATUSES)])
      expect(hint).toMatch(/ .* /);
  });

  test.each(TEXTS)('a text means %s only at the start of an error message of a 400: %s', (_, text) => {
    const unknown = { kind: 'unavailable', hint: expect.stringContaining('does not recognize') };
    expect(classifyAnswer(400, errors(`x ${text}`))).toMatchObject(unknown);
    expect(classifyAnswer(400, errors({ text }, [text]))).toMatchObject(unknown);
    expect(classifyAnswer(400, JSON.stringify({ errors: text }))).toMatchObject(unknown);
    expect(classifyAnswer(400, JSON.stringify(text))).toMatchObject(unknown);
    expect(classifyAnswer(500, errors(text)).kind).toBe('unavailable');
    expect(classifyAnswer(403, errors(text)).kind).toBe('denied');
  });

  test.each(TEXTS.filter(([, text]) => !/^(?:missing|message) /.test(text)))(
    'a text means %s only if nothing follows it in the message: %s',
    (_, text) => {
      expect(classifyAnswer(400, errors(`${text} x`)).hint).toContain('does not recognize');
    },
  );

  test('any other text is classified as unavailable, and is not copied into the error', () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string()), (body) => {
        const failure = classifyAnswer(400, body);
        expect(failure).toEqual({ ...STATUSES[400], status: 400 });
      }),
    );
  });
});

describe('adapter rule 2: classification of any other failure by its status', () => {
  test.each([
    [401, 'denied'],
    [403, 'denied'],
    [404, 'not-found'],
    [405, 'denied'],
    [408, 'unavailable'],
    [412, 'unavailable'],
    [413, 'unavailable'],
    [429, 'throttled'],
    [301, 'unavailable'],
    [302, 'unavailable'],
    [307, 'unavailable'],
    [308, 'unavailable'],
    [472, 'unavailable'],
    [473, 'unavailable'],
    [500, 'unavailable'],
    [501, 'unavailable'],
    [502, 'unavailable'],
    [503, 'unavailable'],
    [504, 'unavailable'],
  ])('an answer with status %i and an HTML page as its body is classified as %s', (status, kind) => {
    expect(classifyAnswer(status, '<html>')).toMatchObject({ kind, status });
  });

  test.each([
    [300, /redirect/],
    [307, /redirect/],
    [399, /redirect/],
    [403, /policy.*token/],
    [404, /mount or namespace/],
    [405, /transit engine/],
    [501, /not initialized/],
    [503, /sealed/],
  ])('status %i has a hint about its likely cause', (status, hint) => {
    expect(classifyAnswer(status, '').hint).toMatch(hint);
  });

  test('a status below 300 is not a redirect', () => {
    expect(classifyAnswer(299, '').hint).toBeUndefined();
  });

  test.each([0, 99, 600, 1000, Number.NaN, '403', undefined, null])(
    'a status of %j is classified as unavailable, and is not shown',
    (status) => {
      expect(classifyAnswer(status, '')).toEqual({ kind: 'unavailable', status: undefined });
    },
  );
});

describe('requests without an answer', () => {
  test.each(['ECONNREFUSED', 'UND_ERR_SOCKET', 'DEPTH_ZERO_SELF_SIGNED_CERT'])(
    '%s is reported as the code, whether the error or its cause has it',
    (code) => {
      const named = { kind: 'unavailable', code, hint: expect.any(String) };
      expect(classify(Object.assign(new Error('x'), { code }))).toEqual(named);
      const cause = Object.assign(new Error('y'), { code });
      expect(classify(new TypeError('fetch failed', { cause }))).toEqual(named);
    },
  );

  const thrower = {
    get code(): string {
      throw new Error('mine');
    },
  };
  const proxy = new Proxy(
    {},
    {
      getOwnPropertyDescriptor: () => {
        throw new Error('mine');
      },
    },
  );
  test.each<[string, unknown]>([
    ['undefined', undefined],
    ['null', null],
    ['a number', 7],
    ['a string', 'ECONNREFUSED'],
    ['an error', new Error('x')],
    ['an unknown code', { code: 'ENOTHING' }],
    ['the name of a member of every object as the code', { code: 'constructor' }],
    ['__proto__ as the code', { code: '__proto__' }],
    ['a getter that throws', thrower],
    ['a proxy that throws', proxy],
  ])('%s is classified as unavailable, without a code', (_, error) => {
    expect(classify(error)).toEqual({ kind: 'unavailable' });
  });
});
