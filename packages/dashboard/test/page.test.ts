import { randomBytes } from 'node:crypto';
import { getEventListeners } from 'node:events';
import { createKmsCodec, hashedKeyId, type KmsCodec, localKeyWrapper, memoryRing } from '@sealring/core';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
// @boundaries-ignore code that the tests of all packages share is not a package
import { ask, shows } from '../../../test/support/dashboard-page.ts';
import { type RingReport, serveDashboard } from '../src/index.ts';
import { answering } from './answering.ts';

/** The headers of every answer without a page. */
const REFUSED = { 'content-type': 'text/plain; charset=utf-8', 'content-security-policy': "default-src 'none'" };

afterEach(() => vi.restoreAllMocks());

let codec: KmsCodec;
beforeAll(async () => {
  const keyWrapper = localKeyWrapper({ masterKey: randomBytes(32) });
  codec = await createKmsCodec({ keyWrapper, ring: memoryRing(), ringName: 'local' });
});
afterAll(() => codec.close());

let trouble: string | undefined;
async function look(): Promise<RingReport> {
  const { keys, sealingKey, problems } = codec.health();
  return {
    ring: 'local',
    store: 'memory',
    at: new Date(),
    keys,
    sealingKey,
    nextRotation: undefined,
    trouble,
    problems,
  };
}

/** A dashboard that reads the ring every second. */
async function start(...members: readonly string[]): Promise<AsyncDisposable & { readonly url: string }> {
  const dashboard = await serveDashboard({ look, members: members.map((url) => new URL(url)), everySeconds: 1 });
  const stop = new AbortController();
  const running = dashboard.run(stop.signal);
  return {
    url: dashboard.url,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
      await dashboard.close();
    },
  };
}

describe('the page of the dashboard', () => {
  let running: Awaited<ReturnType<typeof start>>;
  let page = '';
  beforeAll(async () => {
    running = await start();
    page = running.url;
  });
  afterAll(() => running[Symbol.asyncDispose]());

  test('shows the keys of the ring by their hashes, without key ids (F21)', async () => {
    const { status, body } = await ask(page);
    expect(status).toBe(200);
    const ids = codec.health().keys.map(({ id }) => id);
    expect(ids.length).toBeGreaterThan(0);
    for (const id of ids) {
      expect(body).toContain(hashedKeyId(id));
      expect(body).not.toContain(id);
    }
    expect(body).toContain('--scrape');
  });

  test('runs only its own script, with a new nonce in each answer, and loads nothing from other hosts', async () => {
    const nonces = new Set<string>();
    for (let i = 0; i < 3; i++) {
      const { headers, body } = await ask(page);
      const policy = String(headers['content-security-policy']).split('; ');
      const nonce = /^script-src 'nonce-(.{24})'$/m.exec(policy.join('\n'))?.[1] ?? '';
      nonces.add(nonce);
      expect(policy).toEqual([
        "default-src 'none'",
        `script-src 'nonce-${nonce}'`,
        `style-src 'nonce-${nonce}'`,
        "connect-src 'self'",
        'img-src data:',
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
      ]);
      expect([...body.matchAll(/<(?:script|style)\b[^>]*>/g)].map(([tag]) => tag)).toEqual([
        `<style nonce="${nonce}">`,
        `<script nonce="${nonce}">`,
      ]);
      expect(body).not.toMatch(/ style=| on[a-z]+=|(?:src|href)="(?!data:)/);
      expect(headers).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        'content-length': String(Buffer.byteLength(body)),
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'cross-origin-opener-policy': 'same-origin',
        'referrer-policy': 'no-referrer',
        'cross-origin-resource-policy': 'same-origin',
      });
    }
    expect(nonces.size).toBe(3);
  });

  test('the dashboard has one page, which is served for GET and HEAD only', async () => {
    expect(await ask(page, { method: 'HEAD' })).toMatchObject({ status: 200, body: '' });
    const main = await ask(page, { path: '/main' });
    expect(main.body).toContain('<main>');
    expect(main.body).not.toMatch(/<script|<style/);
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      const headers = { ...REFUSED, allow: 'GET, HEAD' };
      expect(await ask(page, { method })).toMatchObject({
        status: 405,
        headers,
        body: 'only GET and HEAD are allowed\n',
      });
    }
    for (const path of ['/x', '/?a', '//', '/../etc/passwd']) {
      const body = 'not found; the only page is /\n';
      expect(await ask(page, { path })).toMatchObject({ status: 404, headers: REFUSED, body });
    }
  });

  test('the page is refused for a Host header that names another host', async () => {
    const { port } = new URL(page);
    for (const host of [
      'evil.example',
      `evil.example:${port}`,
      'localhost.evil.example',
      '127.0.0.1.evil.example',
      'evil.example:127.0.0.1',
      '127.0.0.1:80.evil.example',
      'a:b:c',
    ]) {
      const body = 'the host name of the request is not allowed\n';
      expect(await ask(page, { host })).toMatchObject({ status: 421, headers: REFUSED, body });
    }
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, 'LOCALHOST', `[::1]:${port}`]) {
      expect((await ask(page, { host })).status).toBe(200);
    }
  });

  test('shows a rotation that is in progress', async () => {
    await codec.rotate();
    const body = await shows(page, /A rotation is in progress/);
    const id = codec.health().keys.at(-1)?.id ?? '';
    expect(body).toMatch(new RegExp(`class="key propagating" data-key="${hashedKeyId(id)}"`));
  });

  test('reports why the ring cannot be read, and continues to show the last data', async () => {
    trouble = 'the ring store: <unavailable>';
    try {
      const body = await shows(page, /The ring could not be read/);
      expect(body).toContain('the ring store: &#60;unavailable&#62;');
      expect(body).toMatch(/class="key active/);
    } finally {
      trouble = undefined;
    }
    await shows(page, /^(?![^]*The ring could not be read)/);
  });
});

const HEALTH = (status: string): string => `
sealring_codec_status{sealring_ring_name="local",sealring_status="${status}"} 1
sealring_codec_status{sealring_ring_name="other",sealring_status="failing"} 1
sealring_codec_ready{sealring_ring_name="local"} 1
sealring_codec_can_seal{sealring_ring_name="local"} 1
sealring_codec_can_unseal{sealring_ring_name="local"} 1
sealring_codec_seal_remaining{sealring_ring_name="local"} 3000
sealring_ring_sealing_key_fingerprint{sealring_ring_name="local"} 12345
`;

describe('the members on the page', () => {
  test('the members on the page have health, rates and refusals by reason, and their texts are escaped', async () => {
    let rounds = 0;
    await using one = await answering((_, response) => {
      rounds += 1;
      response.end(`${HEALTH('degraded')}
sealring_boundary_sealed_tokens_total{mcp_method_name="tools/call"} ${rounds * 40}
sealring_boundary_refused_tokens_total{sealring_boundary_direction="inbound",sealring_reject_reason="expired"} ${rounds * 2}
sealring_codec_rejected_tokens_total{sealring_ring_name="local",sealring_reject_reason="<script>alert(1)</script>"} ${rounds}
sealring_codec_rejected_tokens_total{sealring_ring_name="other",sealring_reject_reason="of another ring"} ${rounds}
`);
    });
    await using page = await start(one.url);
    const body = await shows(page.url, /data-reason="expired"/);
    expect(body).toContain(new URL(one.url).host);
    expect(body).not.toContain('of another ring');
    expect(body).toMatch(/<td class="degraded" data-label="status">degraded<\/td>/);
    expect(body).toContain('50 min');
    // It seals with a key that this ring does not have.
    expect(body).toContain('another key');
    expect(body).not.toContain('<script>alert');
    expect(body).toContain('&#60;script&#62;alert');
    expect(body).toMatch(/Members ready<\/span><b>1 of 1/);
  });

  test('a member that does not answer, or answers with anything but its metrics, is shown as failed', async () => {
    await using elsewhere = await answering((_, response) => response.end(HEALTH('ok')));
    await using redirects = await answering((_, response) =>
      response.writeHead(302, { location: elsewhere.url }).end(),
    );
    await using endless = await answering((_, response) => {
      const more = (): void => {
        while (response.write('x'.repeat(65_536)));
        response.once('drain', more);
      };
      more();
    });
    await using silent = await answering(() => undefined);
    await using broken = await answering((_, response) => response.writeHead(500).end());
    await using html = await answering((_, response) => response.end('<html>sealring</html>'));
    const urls = [redirects, endless, silent, broken, html].map(({ url }) => url);
    await using page = await start(...urls);
    const { body } = await ask(page.url);
    const told = urls.map((url) => {
      const at = body.indexOf(`<td>${url.slice('http://'.length)}</td>`);
      return /colspan="5">([^<]*)</.exec(body.slice(at))?.[1];
    });
    expect(told).toEqual([
      'no answer',
      'longer than 1 MiB',
      'timed out',
      'HTTP status 500',
      'exports no metrics of this ring',
    ]);
    expect(body).toContain('a member does not answer');
  });
});

describe('serveDashboard', () => {
  test('rejects invalid members and intervals, without repeating an address', async () => {
    const refusal = (members: readonly string[], everySeconds = 1): Promise<unknown> =>
      serveDashboard({ look, members: members.map((url) => new URL(url)), everySeconds }).catch(
        (error: unknown) => error,
      );
    for (const url of ['http://ada:canary@127.0.0.1/', 'http://127.0.0.1/?canary', 'ftp://canary/']) {
      const error = await refusal(['http://127.0.0.1:1/', url]);
      expect(error).toBeInstanceOf(RangeError);
      expect(String(error)).toContain('members[1] must');
      expect(String(error)).not.toContain('canary');
    }
    expect(await refusal(Array.from({ length: 33 }, () => 'http://127.0.0.1:1/'))).toEqual(
      new RangeError('serveDashboard: members must have at most 32 addresses, got 33'),
    );
    for (const seconds of [0, 86_401, Number.NaN]) {
      expect(await refusal([], seconds)).toEqual(
        new RangeError(`serveDashboard: everySeconds must be from 1 to 86400, got ${seconds}`),
      );
    }
  });

  test('rejects an empty host, with which it would listen on every address', async () => {
    await expect(serveDashboard({ look, host: '' })).rejects.toEqual(
      new RangeError('serveDashboard: host must be an address or a name, got ""'),
    );
  });

  test('the rounds end when the signal is aborted, without another read of the ring', async () => {
    let looks = 0;
    const looking = (): Promise<RingReport> => {
      looks += 1;
      return look();
    };
    const members = Array.from({ length: 32 }, () => new URL('http://127.0.0.1:1/'));
    await using dashboard = await serveDashboard({ look: looking, members, everySeconds: 86_400 });
    expect(dashboard.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/);
    await dashboard.run(AbortSignal.abort());
    const leaving = new AbortController();
    const [set, clear] = [vi.spyOn(globalThis, 'setTimeout'), vi.spyOn(globalThis, 'clearTimeout')];
    const running = dashboard.run(leaving.signal);
    const waits = set.mock.results[set.mock.calls.findIndex(([, ms]) => ms === 86_400_000)]?.value;
    leaving.abort();
    await running;
    expect(looks).toBe(1);
    expect(waits).toBeDefined();
    expect(clear).toHaveBeenCalledWith(waits);
    expect(getEventListeners(leaving.signal, 'abort')).toEqual([]);
    const { body } = await ask(dashboard.url);
    expect(body).toContain('<html lang="en" data-every="86400">');
    expect(body).toContain('<td>127.0.0.1:1</td>');
  });

  test.each(['close', 'asyncDispose'] as const)('the page is served until %s is called', async (how) => {
    const dashboard = await serveDashboard({ look });
    expect((await ask(dashboard.url)).body).toContain('none configured');
    expect((await ask(dashboard.url, { path: '/main' })).body).toMatch(/<main>[^]*none configured/);
    await (how === 'close' ? dashboard.close() : dashboard[Symbol.asyncDispose]());
    await expect(ask(dashboard.url)).rejects.toThrow(/socket hang up|ECONNREFUSED/);
  });

  test('the rounds end when look rejects, and the page is served until the dashboard is closed', async () => {
    let rounds = 0;
    const failure = new Error('no more');
    await using dashboard = await serveDashboard({
      look: () => (rounds++ === 0 ? look() : Promise.reject(failure)),
      everySeconds: 1,
    });
    await expect(dashboard.run(new AbortController().signal)).rejects.toBe(failure);
    expect((await ask(dashboard.url)).status).toBe(200);
    await dashboard.close();
    await expect(ask(dashboard.url)).rejects.toThrow(/socket hang up|ECONNREFUSED/);
  });
});
