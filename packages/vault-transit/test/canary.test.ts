import type { KeyWrapper, WrappedKey } from '@sealring/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
// @boundaries-ignore code that the tests of all packages share is not a package
import { leaksIn as leaksOfKey, rejectionOf, spellingsOf } from '../../../test/support/leaks.ts';
import { vaultTransitKeyWrapper } from '../src/index.ts';
import { context } from './fixture.ts';
import { type SpoilingProxy, startSpoilingProxy } from './spoiling-proxy.ts';

// High bytes only: nothing printable by chance, and hex, base64 and numbers that appear nowhere else.
const CANARY = Uint8Array.from({ length: 32 }, (_, i) => 0xff - ((i * 37) % 64));
const TOKEN = 'hvs.canary-of-the-token';
const KEY_ID = 'transit/keys/payments:v1';
const CIPHERTEXT = `vault:v1:${Buffer.alloc(60, 7).toString('base64')}`;
const MADE: WrappedKey = { provider: 'vault-transit', keyId: KEY_ID, wrapped: new Uint8Array(Buffer.from(CIPHERTEXT)) };

const leaksIn = (value: unknown): string[] => leaksOfKey(value, CANARY, ['canary-of']);

/** An answer that repeats everything the server received: token, data key. */
const LEAKS = [...spellingsOf(CANARY), TOKEN];
const PLAINTEXT = Buffer.from(CANARY).toString('base64');

const CALLS: readonly [string, (keyWrapper: KeyWrapper) => Promise<unknown>][] = [
  ['wrap', (keyWrapper) => keyWrapper.wrap(CANARY, { context })],
  ['unwrap', (keyWrapper) => keyWrapper.unwrap(MADE, { context })],
];

let server: SpoilingProxy;
beforeAll(async () => {
  server = await startSpoilingProxy('');
});
afterAll(() => server.close());

/** The secrets in the error of a call that must fail, and in the key wrapper. */
async function leaksOf(keyWrapper: KeyWrapper, run: (keyWrapper: KeyWrapper) => Promise<unknown>): Promise<string[]> {
  const error = await rejectionOf(run(keyWrapper));
  expect(error).toMatchObject({ name: 'KeyWrapperError' });
  expect(error).not.toHaveProperty('cause');
  return [...leaksIn(error), ...leaksIn(keyWrapper)];
}

function wrapper(options: object = {}): KeyWrapper {
  const limits = { maxAttempts: 2, callTimeoutSeconds: 0.5 };
  return vaultTransitKeyWrapper({ address: server.address, keyId: 'payments', token: TOKEN, ...limits, ...options });
}

describe('the data key and the token in errors (F33)', () => {
  const statuses = [200, 204, 307, 400, 401, 403, 404, 405, 412, 413, 429, 472, 500, 501, 502, 503];
  test.each(CALLS.flatMap(([call, run]) => statuses.map((status) => ({ call, run, status }))))(
    'no error of $call contains the data key or the token after a status $status whose body and headers repeat them',
    async ({ run, status }) => {
      const headers = { 'X-Echo': TOKEN, Location: `${server.address}/${TOKEN}`, Date: TOKEN };
      for (const body of [
        JSON.stringify({ errors: LEAKS, request_id: PLAINTEXT, data: { error: LEAKS }, warnings: LEAKS }),
        JSON.stringify({ errors: LEAKS.map((leak) => `encryption key not found ${leak}`) }),
        `<html>${LEAKS.join()}</html>`,
      ]) {
        server.answer({ status, headers, body });
        expect(await leaksOf(wrapper(), run)).toEqual([]);
      }
    },
  );

  test.each<[string, object]>([
    ['a truncated data key', { plaintext: PLAINTEXT.slice(0, -2), ciphertext: PLAINTEXT, key_version: PLAINTEXT }],
    [
      'a data key that is too long',
      { plaintext: `${PLAINTEXT.slice(0, -1)}AAAA=`, ciphertext: `vault:v1:${PLAINTEXT}` },
    ],
    ['a data key as a list', { plaintext: [...CANARY], ciphertext: [...CANARY] }],
    ['a data key in hex', { plaintext: Buffer.from(CANARY).toString('hex'), key_version: [...CANARY] }],
  ])('no error of any call contains the data key or the token after %s', async (_, data) => {
    for (const [, run] of CALLS) {
      for (const body of [JSON.stringify({ data }), JSON.stringify({ data }).slice(0, -2)]) {
        server.answer({ status: 200, headers: {}, body });
        expect(await leaksOf(wrapper(), run)).toEqual([]);
      }
    }
  });

  test.each(CALLS)(
    'no error of %s contains the data key or the token if the client rejects with its whole request',
    async (_, run) => {
      const rejection = (): Error =>
        Object.assign(new TypeError(LEAKS.join(), { cause: { code: PLAINTEXT, body: CANARY, headers: { TOKEN } } }), {
          name: TOKEN,
          code: PLAINTEXT,
          request: { body: CANARY, token: TOKEN },
        });
      const clients = [
        { fetch: () => Promise.reject(rejection()) },
        {
          fetch: () => {
            throw rejection();
          },
        },
        {
          fetch: async () => ({
            status: 200,
            headers: new Headers(),
            body: {
              [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(rejection()) }),
            },
          }),
        },
        { fetch: async () => ({ status: PLAINTEXT, headers: new Headers(), body: null }) },
        { fetch: async () => Object(LEAKS) },
      ];
      for (const client of clients) expect(await leaksOf(wrapper({ client }), run)).toEqual([]);
    },
  );

  test.each(CALLS)('no error of %s contains the token if the token function throws it', async (_, run) => {
    const token = (): never => {
      throw new Error(TOKEN, { cause: TOKEN });
    };
    expect(await leaksOf(wrapper({ token }), run)).toEqual([]);
    expect(await leaksOf(wrapper({ token: () => `${TOKEN}\n` }), run)).toEqual([]);
  });

  test.each(CALLS)(
    'no error of %s contains the data key or the token if no answer arrives before the deadline',
    async (_, run) => {
      server.hang();
      expect(await leaksOf(wrapper({ callTimeoutSeconds: 0.02 }), run)).toEqual([]);
      server.restore();
    },
  );

  test('no error repeats a wrong argument', async () => {
    const keyWrapper = wrapper();
    const text = Buffer.from(CANARY).toString('hex');
    for (const call of [
      keyWrapper.wrap(Object(text), { context }),
      keyWrapper.wrap(CANARY.subarray(1), { context }),
      keyWrapper.wrap(CANARY, { context: JSON.parse(JSON.stringify(text)) }),
      keyWrapper.unwrap({ ...MADE, provider: text }, { context }),
      keyWrapper.unwrap({ ...MADE, keyId: text }, { context }),
      keyWrapper.unwrap({ ...MADE, wrapped: CANARY }, { context }),
    ]) {
      expect(leaksIn(await rejectionOf(call))).toEqual([]);
    }
  });
});
