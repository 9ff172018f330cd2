import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { callTool, type ToolAnswer } from '../support/call-tool.ts';
import { until } from '../support/until.ts';
import { engines } from './engines.ts';
import type { ServerSettings } from './server.ts';

const PROGRAM = fileURLToPath(new URL('server.ts', import.meta.url));
const PROCESSES = 4;
const REDEMPTIONS = 1_000;
/** How long a token is valid by the fast clock. */
const LIFE_SECONDS = 4;
const REFUSED = {
  code: -32602,
  message: 'Invalid or expired requestState',
  data: { reason: 'invalid_request_state' },
};

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** A server process and its address. */
async function serve(settings: ServerSettings): Promise<string> {
  const child: ChildProcess = spawn(process.execPath, [PROGRAM, JSON.stringify(settings)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  closing.push(() => child.kill('SIGKILL'));
  if (child.stdout === null) throw new Error('no output');
  const [port] = await once(createInterface({ input: child.stdout }), 'line');
  return `http://127.0.0.1:${String(port)}`;
}

const call = (url: string | undefined, requestState?: string): Promise<ToolAnswer> =>
  callTool(`${url}/mcp`, { name: 'refund', requestState });

async function mint(url: string | undefined): Promise<string> {
  const { result } = await call(url);
  expect(result?.requestState).toMatch(/^v1\./);
  return result?.requestState ?? '';
}

/**
 * Redeems one token everywhere at once; every answer is the tool's answer or the standard refusal. Returns how many
 * succeed.
 */
async function redeemEverywhere(urls: readonly string[], token: string): Promise<number> {
  const calls = Array.from({ length: REDEMPTIONS }, (_, index) => call(urls[index % PROCESSES], token));
  const answers = await Promise.all(calls);
  const refused = answers.filter(({ error }) => error !== undefined);
  for (const { error } of refused) expect(error).toEqual(REFUSED);
  const served = answers.filter(({ result }) => result?.content?.[0]?.text === 'refunded');
  expect(refused.length + served.length).toBe(REDEMPTIONS);
  return served.length;
}

async function redeemedOn(urls: readonly string[]): Promise<number> {
  const counts = await Promise.all(urls.map(async (url) => Number(await (await fetch(`${url}/redeemed`)).text())));
  return counts.reduce((sum, count) => sum + count, 0);
}

test.each(['redis', 'postgres', 'dynamodb'] as const)(
  `one of ${REDEMPTIONS} concurrent redemptions of a token over ${PROCESSES} processes on %s succeeds, and none with the store down`,
  async (store) => {
    const engine = await engines[store](closing);
    const settings = { key: randomBytes(32).toString('base64'), store, address: engine.address };
    const urls = await Promise.all(Array.from({ length: PROCESSES }, () => serve(settings)));

    for (let round = 1; round <= 3; round++) {
      const token = await mint(urls[round]);
      expect(await redeemEverywhere(urls, token)).toBe(1);
      expect(await redeemedOn(urls)).toBe(round);
    }

    const token = await mint(urls[0]);
    await engine.kill();
    expect(await redeemEverywhere(urls, token)).toBe(0);
    expect(await redeemedOn(urls)).toBe(3);

    if (engine.start === undefined) return;
    await engine.start();
    expect(await redeemEverywhere(urls, await mint(urls[0]))).toBe(1);
    expect(await redeemedOn(urls)).toBe(4);
  },
);

test.each(
  (['redis', 'postgres', 'dynamodb'] as const).flatMap((store) => [90, 290].map((apart) => [store, apart] as const)),
)('two servers whose clocks differ by %i s redeem a token once on %s (F48)', async (store, apart) => {
  const { address } = await engines[store](closing);
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
  expect(await redeemedOn([behind, ahead])).toBe(2);
});
