import { randomBytes } from 'node:crypto';
import { afterEach, expect, test } from 'vitest';
import { until } from '../support/until.ts';
import { engines } from './engines.ts';
import type { ServerSettings } from './server.ts';
import { call, LIFE_SECONDS, mint, REFUSED, serveTypeScript } from './servers.ts';

const PROCESSES = 4;
const REDEMPTIONS = 1_000;
/** With the store down, and up again. */
const FEW = 100;

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

const serve = (settings: ServerSettings): Promise<string> => serveTypeScript(settings, closing);

/**
 * Redeems one token everywhere at once; every answer is the tool's answer or the standard refusal. Returns how many
 * succeed.
 */
async function redeemEverywhere(urls: readonly string[], token: string, times = REDEMPTIONS): Promise<number> {
  const calls = Array.from({ length: times }, (_, index) => call(urls[index % PROCESSES], token));
  const answers = await Promise.all(calls);
  const refused = answers.filter(({ error }) => error !== undefined);
  for (const { error } of refused) expect(error).toEqual(REFUSED);
  const served = answers.filter(({ result }) => result?.content?.[0]?.text === 'refunded');
  expect(refused.length + served.length).toBe(times);
  return served.length;
}

async function redeemedOn(urls: readonly string[]): Promise<number> {
  const counts = await Promise.all(urls.map(async (url) => Number(await (await fetch(`${url}/redeemed`)).text())));
  return counts.reduce((sum, count) => sum + count, 0);
}

test.each(['redis', 'postgres', 'dynamodb'] as const)(
  `exactly one of ${REDEMPTIONS} concurrent redemptions of a token over ${PROCESSES} processes on %s succeeds, and none while the store is down`,
  async (store) => {
    const engine = await engines[store](closing);
    const settings = { key: randomBytes(32).toString('base64'), store, address: engine.address };
    const urls = await Promise.all(Array.from({ length: PROCESSES }, () => serve(settings)));

    expect(await redeemEverywhere(urls, await mint(urls[1]))).toBe(1);
    expect(await redeemedOn(urls)).toBe(1);

    const token = await mint(urls[0]);
    await engine.kill();
    expect(await redeemEverywhere(urls, token, FEW)).toBe(0);
    expect(await redeemedOn(urls)).toBe(1);

    if (engine.start === undefined) return;
    await engine.start();
    expect(await redeemEverywhere(urls, await mint(urls[0]), FEW)).toBe(1);
    expect(await redeemedOn(urls)).toBe(2);
  },
);

test.each(['redis', 'postgres', 'dynamodb'] as const)(
  'two servers whose clocks differ by 90 or 290 s redeem a token once on %s (F48)',
  async (store) => {
    const { address } = await engines[store](closing);
    expect(await Promise.all([90, 290].map((apart) => redeemedApart(store, address, apart)))).toEqual([2, 2]);
  },
);

/** Redeems two tokens at servers so far apart, one of them also after the fast clock's end. Returns how many succeed. */
async function redeemedApart(store: ServerSettings['store'], address: string, apart: number): Promise<number> {
  const settings = { key: randomBytes(32).toString('base64'), store, address, futureSkewSeconds: 0 };
  const behind = await serve({ ...settings, ttlSeconds: apart + LIFE_SECONDS });
  const ahead = await serve({ ...settings, ttlSeconds: apart + LIFE_SECONDS, aheadSeconds: apart });
  const [token, another] = [await mint(behind), await mint(behind)];
  const minted = Date.now();
  expect((await call(ahead, token)).error).toBeUndefined();
  // By the fast clock it has expired; by the other it is still valid for a long time. Claims also remove expired ones.
  await until(() => Date.now() > minted + (LIFE_SECONDS + 1) * 1_000);
  expect((await call(behind, another)).error).toBeUndefined();
  expect((await call(behind, token)).error).toEqual(REFUSED);
  return redeemedOn([behind, ahead]);
}
