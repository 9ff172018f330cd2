import { inspect } from 'node:util';
import { ClientClosedError, ClientOfflineError, ConnectionTimeoutError, SocketClosedUnexpectedlyError } from 'redis';
import { describe, expect, test } from 'vitest';
import { classify, codeOf, ERROR_TABLE } from '../src/error-table.ts';
import { redisRing } from '../src/index.ts';

// Repeated here on purpose, because a row that changes its kind changes the behaviour of a fleet.
const EXPECTED: Readonly<Record<string, readonly [kind: string, hint: RegExp]>> = {
  NOAUTH: ['denied', /user and password/],
  WRONGPASS: ['denied', /user and password/],
  NOPERM: ['denied', /permission/],
  DENIED: ['denied', /protected mode/],
  WRONGTYPE: ['corrupt', /other than a ring/],
  READONLY: ['unavailable', /replica/],
  NOREPLICAS: ['unavailable', /replica/],
  MASTERDOWN: ['unavailable', /replica/],
  UNBLOCKED: ['unavailable', /replica/],
  OOM: ['unavailable', /maxmemory/],
  MISCONF: ['unavailable', /refuses writes/],
  LOADING: ['unavailable', /at the moment/],
  BUSY: ['unavailable', /at the moment/],
  TRYAGAIN: ['unavailable', /at the moment/],
  CLUSTERDOWN: ['unavailable', /cluster/],
  MOVED: ['unavailable', /cluster/],
  ASK: ['unavailable', /cluster/],
};

describe('error replies', () => {
  test.each(Object.entries(EXPECTED))('%s has its kind and a hint', (code, [kind, hint]) => {
    expect(classify(new Error(`${code} text`))).toMatchObject({ kind, detail: expect.stringMatching(hint) });
  });

  test('every row of the table is listed in this test', () => {
    expect(Object.keys(ERROR_TABLE)).toEqual(Object.keys(EXPECTED));
  });

  test.each(Object.keys(ERROR_TABLE))('%s is recognized by its first word alone', (code) => {
    expect(classify(new Error(`${code} canary text`))).toEqual({ ...ERROR_TABLE[code], serviceCode: code });
    expect(classify(new Error(code))).toEqual({ ...ERROR_TABLE[code], serviceCode: code });
    expect(JSON.stringify(classify(new Error(`${code} canary`)))).not.toContain('canary');
  });

  test.each([['ERR unknown command'], ['something NOAUTH'], ['noauth x'], ['NOAUTHX y'], ['__proto__ x'], ['']])(
    '%o is unavailable, never absent',
    (message) => {
      expect(classify(new Error(message)).kind).toBe('unavailable');
    },
  );

  test.each([
    [new ClientClosedError(), 'closed'],
    [new ClientOfflineError(), 'not connected'],
    [new ConnectionTimeoutError(), 'in time'],
    [new SocketClosedUnexpectedlyError(), 'rediss://'],
  ])('%o of the client itself has a hint that names the fix', (error, what) => {
    expect(classify(error)).toMatchObject({ kind: 'unavailable', detail: expect.stringContaining(what) });
  });

  test.each([[undefined], [null], ['NOAUTH x'], [{ message: 'NOAUTH x' }], [7]])('%o has no code', (thrown) => {
    expect(codeOf(thrown)).toBe('');
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
