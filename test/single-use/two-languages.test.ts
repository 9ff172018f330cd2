import { randomBytes } from 'node:crypto';
import { describeSingleUse } from '@sealring/conformance';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { pythonWithPackage } from '../python/python-package.ts';
import type { ToolAnswer } from '../support/call-tool.ts';
import { until } from '../support/until.ts';
import { type Engine, engines, wayTo } from './engines.ts';
import { PythonStores } from './python-store.ts';
import type { ServerSettings } from './server.ts';
import { call, LIFE_SECONDS, mint, REFUSED, servePython, serveTypeScript } from './servers.ts';

const REDEMPTIONS = 200;
const STORES = ['redis', 'postgres', 'dynamodb'] as const;
type Language = 'Python' | 'TypeScript';

let python = '';
beforeAll(async () => {
  python = await pythonWithPackage();
});

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

const serve = (language: Language, settings: ServerSettings, stopping = closing): Promise<string> =>
  language === 'Python' ? servePython(python, settings, stopping) : serveTypeScript(settings, stopping);

const isServed = ({ result }: ToolAnswer): boolean => result?.content?.[0]?.text === 'refunded';

describe.each(STORES)('on %s', (store) => {
  const stopping: (() => unknown)[] = [];
  let engine: Engine;
  let settings: ServerSettings;
  /** Two servers of each language. */
  let urls: readonly string[] = [];
  beforeAll(async () => {
    engine = await engines[store](stopping);
    settings = { key: randomBytes(32).toString('base64'), store, address: engine.address };
    const languages = ['TypeScript', 'Python', 'TypeScript', 'Python'] as const;
    urls = await Promise.all(languages.map((language) => serve(language, settings, stopping)));
  });
  afterAll(async () => {
    for (const stop of stopping.toReversed()) await stop();
  });

  test(`only one of ${REDEMPTIONS} concurrent redemptions over two processes of each language succeeds`, async () => {
    for (const url of urls) {
      const token = await mint(url);
      const calls = Array.from({ length: REDEMPTIONS }, (_, at) => call(urls[at % urls.length] ?? '', token));
      const answers = await Promise.all(calls);
      expect(answers.filter(isServed)).toHaveLength(1);
      const refused = answers.filter(({ error }) => error !== undefined);
      expect(refused).toHaveLength(REDEMPTIONS - 1);
      for (const { error } of refused) expect(error).toEqual(REFUSED);
    }
  });

  test('a server in one language whose clock is 290 s behind refuses a token redeemed in the other language (F48)', async () => {
    const redeemed = async (slow: Language, fast: Language): Promise<void> => {
      const timed = { ...settings, ttlSeconds: 290 + LIFE_SECONDS };
      const behind = await serve(slow, timed);
      const ahead = await serve(fast, { ...timed, aheadSeconds: 290 });
      const [token, another] = [await mint(behind), await mint(behind)];
      const minted = Date.now();
      expect(isServed(await call(ahead, token))).toBe(true);
      await until(() => Date.now() > minted + (LIFE_SECONDS + 1) * 1_000);
      expect(isServed(await call(behind, another))).toBe(true);
      expect((await call(behind, token)).error).toEqual(REFUSED);
    };
    await Promise.all([redeemed('Python', 'TypeScript'), redeemed('TypeScript', 'Python')]);
  });

  // The last one: it kills the engine.
  test('a token redeemed by a server of one language is refused by the server of the other, whichever sealed it', async () => {
    const [ours = '', theirs = ''] = urls;
    for (const sealedBy of [ours, theirs]) {
      for (const redeemedBy of [ours, theirs]) {
        const token = await mint(sealedBy);
        expect(isServed(await call(redeemedBy, token))).toBe(true);
        for (const replayedAt of [ours, theirs]) expect((await call(replayedAt, token)).error).toEqual(REFUSED);
      }
    }
    const [token, another] = [await mint(ours), await mint(theirs)];
    await engine.kill();
    expect((await call(theirs, token)).error).toEqual(REFUSED);
    expect((await call(ours, another)).error).toEqual(REFUSED);
  });
});

describe.each(['memory', ...STORES] as const)('the single-use store of the Python package: %s', (name) => {
  const stopping: (() => unknown)[] = [];
  let way: Awaited<ReturnType<typeof wayTo>> | undefined;
  let stores: PythonStores;
  beforeAll(async () => {
    way = name === 'memory' ? undefined : await wayTo(await engines[name](stopping), stopping);
    stores = new PythonStores(python, name, way?.address ?? '');
  });
  afterAll(async () => {
    await stores?.close();
    for (const stop of stopping.toReversed()) await stop();
  });
  const breakConnection = async () => (await way?.breakConnection()) ?? (() => undefined);
  describeSingleUse(
    {
      name: `${name} (Python)`,
      create: () => ({ store: stores.open() }),
      ...(name === 'memory' ? {} : { breakConnection }),
    },
    { describe, test },
  );
});
