import { inspect } from 'node:util';
import { ClientClosedError, ClientOfflineError, ConnectionTimeoutError, SocketClosedUnexpectedlyError } from 'redis';
import { describe, expect, test } from 'vitest';
import { classify, codeOf, ERROR_TABLE } from '../src/error-table.ts';
import { redisRing } from '../src/index.ts';

// Repeated on purpose, because a row that changes its kind changes the behaviour of a fleet.
const EXPECTED = [
  ['denied', /user and password/, 'NOAUTH WRONGPASS'],
  ['denied', /permission/, 'NOPERM'],
  ['denied', /protected mode/, 'DENIED'],
  ['corrupt', /other than a ring/, 'WRONGTYPE'],
  ['unavailable', /replica/, 'READONLY NOREPLICAS MASTERDOWN UNBLOCKED'],
  ['unavailable', /maxmemory/, 'OOM'],
  ['unavailable', /refuses writes/, 'MISCONF'],
  ['unavailable', /at the moment/, 'LOADING BUSY TRYAGAIN'],
  ['unavailable', /cluster/, 'CLUSTERDOWN MOVED ASK'],
] as const;
const ROWS = EXPECTED.flatMap(([kind, hint, codes]) => codes.split(' ').map((code) => ({ code, kind, hint })));

describe('error replies', () => {
  test.each(ROWS)(
    'an error that begins with $code is classified as $kind, with a hint, whatever follows',
    ({ code, kind, hint }) => {
      for (const message of [`${code} canary text`, code]) {
        const failure = classify(new Error(message));
        expect(failure).toEqual({ kind, serviceCode: code, detail: expect.stringMatching(hint) });
        expect(failure.detail).not.toContain('canary');
      }
    },
  );

  test('every row of the table is listed in this test', () => {
    expect(Object.keys(ERROR_TABLE)).toEqual(ROWS.map(({ code }) => code));
  });

  test.each([['ERR unknown command'], ['something NOAUTH'], ['noauth x'], ['NOAUTHX y'], ['__proto__ x'], ['']])(
    'the error %o is classified as unavailable',
    (message) => {
      expect(classify(new Error(message))).toEqual({ kind: 'unavailable', detail: 'the call failed' });
    },
  );

  test('a call without an answer is reported as unavailable, and the error names the reason', () => {
    const detail = expect.stringMatching(/^the server cannot be reached: /);
    expect(classify({ code: 'EPIPE' })).toEqual({ kind: 'unavailable', serviceCode: 'EPIPE', detail });
  });

  test.each([
    [new ClientClosedError(), 'closed'],
    [new ClientOfflineError(), 'not connected'],
    [new ConnectionTimeoutError(), 'in time'],
    [new SocketClosedUnexpectedlyError(), 'rediss://'],
  ])('%o from the client itself has a hint that names the fix', (error, what) => {
    expect(classify(error)).toMatchObject({ kind: 'unavailable', detail: expect.stringContaining(what) });
  });

  test.each([[undefined], [null], ['NOAUTH x'], [{ message: 'NOAUTH x' }], [7]])('%o has no code', (thrown) => {
    expect(codeOf(thrown)).toBeUndefined();
    expect(classify(thrown).kind).toBe('unavailable');
  });

  test('no text, cause or property of the client’s error is in the store’s error (F33)', async () => {
    const vendor = Object.assign(new Error('NOPERM canary'), { command: 'canary', cause: new Error('canary') });
    const ring = redisRing({ client: { sendCommand: () => Promise.reject(vendor) } });
    const error: unknown = await ring.read().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'RingStoreError', kind: 'denied' });
    expect(inspect(error, { depth: null, showHidden: true })).not.toContain('canary');
  });
});
