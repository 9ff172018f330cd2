import { McpServer } from '@modelcontextprotocol/server';
import { describe, expect, test } from 'vitest';
import {
  createProtectedMcpServer,
  memorySingleUse,
  RequestStateSecurity,
  SingleUseStoreFullError,
} from '../../src/index.ts';
import { REFUSED, type RefundCall, registerRefund, serveHttp, textOf, tokenOf } from '../support/served.ts';

const START_MS = 1_795_000_000_000;

/** A clock that a test sets. */
function steppedClock() {
  return {
    nowMs: START_MS,
    wallMs(): number {
      return this.nowMs;
    },
    monotonicNs: () => 0n,
  };
}

const inSeconds = (seconds: number): Date => new Date(START_MS + seconds * 1000);

describe('memorySingleUse', () => {
  test('resolves to true for one caller, and to false for every other caller', async () => {
    const store = memorySingleUse({ clock: steppedClock() });
    const claims = await Promise.all(Array.from({ length: 100 }, () => store.claim('token', inSeconds(600))));
    expect(claims.filter(Boolean)).toHaveLength(1);
    expect(await store.claim('another token', inSeconds(600))).toBe(true);
  });

  test('refuses every claim after the token’s end plus the clock skew, even of a new token (F48)', async () => {
    const clock = steppedClock();
    const store = memorySingleUse({ clock });
    expect(await store.claim('token', inSeconds(10))).toBe(true);
    clock.nowMs += 309_999;
    expect(await store.claim('token', inSeconds(10))).toBe(false);
    clock.nowMs += 1;
    expect(await store.claim('token', inSeconds(10))).toBe(false);
    expect(await store.claim('another', inSeconds(10))).toBe(false);
  });

  test('holds 100 000 tokens by default', async () => {
    const store = memorySingleUse({ clock: steppedClock() });
    const claims = Array.from({ length: 100_000 }, (_, i) => store.claim(`token ${i}`, inSeconds(600)));
    expect((await Promise.all(claims)).every(Boolean)).toBe(true);
    await expect(store.claim('one more', inSeconds(600))).rejects.toMatchObject({
      name: 'SingleUseStoreFullError',
      code: 'ERR_SINGLE_USE_STORE_FULL',
      message: 'memorySingleUse: the store holds 100000 tokens, and none of them has expired',
      help: 'https://github.com/sealring/sealring/blob/main/docs/errors.md#singleusestorefullerror',
    });
  });

  test('rejects claims when it is full, evicts nothing, and accepts claims again once tokens have expired (F23)', async () => {
    const clock = steppedClock();
    const store = memorySingleUse({ maxTokens: 3, clockSkewSeconds: 0, clock });
    for (const [id, seconds] of [
      ['a', 10],
      ['b', 600],
      ['c', 600],
    ] as const) {
      expect(await store.claim(id, inSeconds(seconds))).toBe(true);
    }
    await expect(store.claim('d', inSeconds(600))).rejects.toThrow(SingleUseStoreFullError);
    expect(await store.claim('a', inSeconds(10))).toBe(false);
    clock.nowMs += 10_000;
    expect(await store.claim('d', inSeconds(600))).toBe(true);
    expect(await Promise.all(['b', 'c', 'd'].map((id) => store.claim(id, inSeconds(600))))).toEqual([
      false,
      false,
      false,
    ]);
    await expect(store.claim('e', inSeconds(600))).rejects.toThrow(SingleUseStoreFullError);
  });

  test('sweeps a full store at most once a second', async () => {
    const clock = steppedClock();
    const store = memorySingleUse({ maxTokens: 1, clockSkewSeconds: 0, clock });
    expect(await store.claim('a', inSeconds(0.5))).toBe(true);
    await expect(store.claim('b', inSeconds(600))).rejects.toThrow('the store holds 1 tokens');
    clock.nowMs += 900;
    await expect(store.claim('b', inSeconds(600))).rejects.toThrow('the store holds 1 tokens');
    clock.nowMs += 100;
    expect(await store.claim('b', inSeconds(600))).toBe(true);
  });

  test('accepts many more tokens over time than it holds at once', async () => {
    const clock = steppedClock();
    const store = memorySingleUse({ clock });
    for (let index = 0; index < 300_000; index++) {
      clock.nowMs += 100;
      await store.claim(`token ${index}`, new Date(clock.nowMs + 60_000));
    }
    // 3 600 of them are remembered: a store that kept all would have been full long ago.
    expect(await store.claim('one more', new Date(clock.nowMs + 60_000))).toBe(true);
  });

  test.each([
    [{ maxTokens: 0 }, RangeError, 'maxTokens'],
    [{ maxTokens: 10_000_001 }, RangeError, 'maxTokens'],
    [{ maxTokens: '5' }, TypeError, 'maxTokens'],
    [{ maxEntries: 5 }, TypeError, '"maxEntries"'],
    [{ clockSkewSeconds: 86_401 }, RangeError, 'clockSkewSeconds'],
    [{ clockSkewSeconds: '5' }, TypeError, 'clockSkewSeconds'],
    [{ clock: () => 0 }, TypeError, 'clock'],
  ])('rejects %j with an error that names the option', (options, type, named) => {
    const construct = (): unknown => Reflect.apply(memorySingleUse, undefined, [options]);
    expect(construct).toThrow(type);
    expect(construct).toThrow(named);
  });

  test('rejects a claim without a string and a date', async () => {
    const store = memorySingleUse();
    await expect(Reflect.apply(Reflect.get(store, 'claim'), store, [7, new Date()])).rejects.toThrow(TypeError);
    await expect(store.claim('token', new Date(Number.NaN))).rejects.toThrow(RangeError);
  });

  test('exactly one of 1 000 concurrent redemptions of a token succeeds', async () => {
    const info = { name: 'refund-desk', version: '1.0.0' };
    const calls: RefundCall[] = [];
    const security = new RequestStateSecurity({
      keys: [crypto.getRandomValues(new Uint8Array(32))],
      singleUse: memorySingleUse(),
    });
    await using http = await serveHttp(() => {
      const server = createProtectedMcpServer({ McpServer, serverInfo: info, security });
      registerRefund(server, calls);
      return server;
    });
    const request = { name: 'refund', arguments: { order: 'A1' } };
    const requestState = tokenOf(await http.call('tools/call', request));
    const redeem = () => http.call('tools/call', { ...request, requestState });
    const answers = await Promise.all(Array.from({ length: 1_000 }, redeem));
    expect(answers.filter((answer) => textOf(answer) === 'asked:A1')).toHaveLength(1);
    expect(answers.filter((answer) => answer.error !== undefined).map(({ error }) => error)).toEqual(
      Array.from({ length: 999 }, () => REFUSED),
    );
    expect(calls).toHaveLength(2);
  });

  test('makes room for a burst of tokens by removing those that expired within the last second', async () => {
    const clock = steppedClock();
    const store = memorySingleUse({ maxTokens: 3_000, clockSkewSeconds: 0, clock });
    const claimMany = async (name: string, count: number, seconds: number) => {
      const claims = Array.from({ length: count }, (_, n) => store.claim(`${name}-${n}`, inSeconds(seconds)));
      return (await Promise.all(claims)).filter(Boolean).length;
    };
    expect(await claimMany('short', 1_025, 0.4)).toBe(1_025);
    clock.nowMs += 500;
    expect(await claimMany('long', 2_500, 600)).toBe(2_500);
  });
});
