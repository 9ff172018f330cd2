import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { hashedKeyId } from '@sealring/core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Ended, newProject, runCli } from './cli-process.ts';

const project = newProject();
beforeAll(async () => {
  await runCli(['init', '--local'], { cwd: project.cwd });
});
afterAll(() => project.remove());

interface Running {
  readonly url: string;
  readonly port: number;
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
}

const running: Running[] = [];
afterEach(async () => {
  for (const { child, ended } of running.splice(0)) {
    child.kill('SIGINT');
    await ended;
  }
});

/** Starts it and waits until it has said where. */
async function start(args: readonly string[] = []): Promise<Running> {
  let ended: Promise<Ended> | undefined;
  const said = new Promise<{ url: string; child: ChildProcess }>((resolve) => {
    ended = runCli(['dashboard', '--json', '--every', '1', ...args], {
      cwd: project.cwd,
      onStdout: (text, child) => {
        if (text.trimEnd().endsWith('}')) resolve({ url: String(JSON.parse(text).url), child });
      },
    });
  });
  if (ended === undefined) throw new Error('not started');
  const failed = ended.then(({ stderr }) => {
    throw new Error(`it ended: ${stderr}`);
  });
  // It ends in the end, when nobody waits for it any more.
  failed.catch(() => undefined);
  const { url, child } = await Promise.race([said, failed]);
  const one = { url, port: Number(new URL(url).port), child, ended };
  running.push(one);
  return one;
}

interface Answer {
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

/** By hand: fetch would not let a Host header be chosen. */
function ask(
  { port }: Running,
  { method = 'GET', path = '/', host = `127.0.0.1:${port}` }: { method?: string; path?: string; host?: string } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    request({ port, host: '127.0.0.1', method, path, headers: { host } }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => {
        body += text;
      });
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, body }));
    })
      .on('error', reject)
      .end();
  });
}

async function keyIds(): Promise<readonly string[]> {
  const { stdout } = await runCli(['status', '--json'], { cwd: project.cwd });
  return JSON.parse(stdout).keys.map(({ id }: { id: string }) => id);
}

/** Asks until the page shows it. */
async function shows(page: Running, what: RegExp): Promise<string> {
  const until = Date.now() + 20_000;
  for (;;) {
    const { body } = await ask(page);
    if (what.test(body)) return body;
    if (Date.now() > until) throw new Error(`the page never showed ${what}:\n${body}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** A member's exporter of our own making: what it answers is up to the test. */
async function member(answer: (response: ServerResponse) => void): Promise<AsyncDisposable & { url: string }> {
  const server = createServer((_request, response) => answer(response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

describe('the page', () => {
  let page: Running;
  beforeAll(async () => {
    page = await start();
    running.pop();
  });
  afterAll(async () => {
    page.child.kill('SIGINT');
    await page.ended;
  });

  test('F21 shows the ring by hashes, and no key id', async () => {
    const { status, body } = await ask(page);
    expect(status).toBe(200);
    const ids = await keyIds();
    expect(ids.length).toBeGreaterThan(0);
    for (const id of ids) {
      expect(body).toContain(hashedKeyId(id));
      expect(body).not.toContain(id);
    }
    expect(body).toContain('--scrape');
  });

  test('lets nothing run but its own script, under a nonce of its own each time, and nothing be loaded', async () => {
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
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cross-origin-resource-policy': 'same-origin',
      });
    }
    expect(nonces.size).toBe(3);
  });

  test('is given to GET and HEAD alone, and is the only one', async () => {
    expect(await ask(page, { method: 'HEAD' })).toMatchObject({ status: 200, body: '' });
    const main = await ask(page, { path: '/main' });
    expect(main.body).toContain('<main>');
    expect(main.body).not.toMatch(/<script|<style/);
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      expect(await ask(page, { method })).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } });
    }
    for (const path of ['/x', '/?a', '//', '/../etc/passwd']) expect((await ask(page, { path })).status).toBe(404);
  });

  test('is not given under a name of somebody else’s, which he may have pointed here', async () => {
    const { port } = page;
    for (const host of ['evil.example', `evil.example:${port}`, 'localhost.evil.example', '127.0.0.1.evil.example']) {
      const { status, body } = await ask(page, { host });
      expect(status).toBe(421);
      expect(body).not.toContain('Sealring');
    }
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, 'LOCALHOST', `[::1]:${port}`]) {
      expect((await ask(page, { host })).status).toBe(200);
    }
  });

  test('shows a rotation while it is under way', async () => {
    await runCli(['rotate'], { cwd: project.cwd });
    const body = await shows(page, /A rotation is under way/);
    const [id = ''] = (await keyIds()).slice(-1);
    expect(body).toMatch(new RegExp(`class="key propagating" data-key="${hashedKeyId(id)}"`));
  });

  test('says when the ring cannot be read, shows what was read before, and goes on', async () => {
    const path = join(project.cwd, 'sealring.local.ring');
    const before = readFileSync(path);
    writeFileSync(path, 'something else');
    try {
      const body = await shows(page, /The ring could not be read/);
      expect(body).toMatch(/class="key active/);
    } finally {
      writeFileSync(path, before);
    }
    await shows(page, /^(?![^]*The ring could not be read)/);
  });
});

const HEALTH = (status: string): string => `
sealring_codec_status{sealring_ring_name="local",sealring_status="${status}"} 1
sealring_codec_status{sealring_ring_name="other",sealring_status="failing"} 1
sealring_codec_ready{sealring_ring_name="local"} 1
sealring_codec_can_seal{sealring_ring_name="local"} 1
sealring_codec_can_open{sealring_ring_name="local"} 1
sealring_codec_seal_remaining{sealring_ring_name="local"} 3000
sealring_ring_sealing_key_fingerprint{sealring_ring_name="local"} 12345
`;

describe('members', () => {
  test('are shown with health, rates and refusals by reason; what they say is text', async () => {
    let rounds = 0;
    await using one = await member((response) => {
      rounds += 1;
      response.end(`${HEALTH('degraded')}
sealring_boundary_sealed_tokens_total{mcp_method_name="tools/call"} ${rounds * 40}
sealring_boundary_refused_tokens_total{sealring_boundary_direction="inbound",sealring_reject_reason="expired"} ${rounds * 2}
sealring_codec_rejected_tokens_total{sealring_reject_reason="<script>alert(1)</script>"} ${rounds}
`);
    });
    const page = await start(['--scrape', one.url]);
    const body = await shows(page, /data-reason="expired"/);
    expect(body).toContain(new URL(one.url).host);
    expect(body).toMatch(/<td class="degraded">degraded<\/td>/);
    expect(body).toContain('50 min');
    // It seals with a key that this ring does not have.
    expect(body).toContain('another key');
    expect(body).not.toContain('<script>alert');
    expect(body).toContain('&#60;script&#62;alert');
    expect(body).toMatch(/Members ready<\/span><b>1 of 1/);
  });

  test('that are away, or answer with something else, are said so', async () => {
    await using elsewhere = await member((response) => response.end(HEALTH('ok')));
    await using redirects = await member((response) => response.writeHead(302, { location: elsewhere.url }).end());
    await using endless = await member((response) => {
      const more = (): void => {
        while (response.write('x'.repeat(65_536)));
        response.once('drain', more);
      };
      more();
    });
    await using silent = await member(() => undefined);
    await using broken = await member((response) => response.writeHead(500).end());
    await using html = await member((response) => response.end('<html>sealring</html>'));
    const urls = [redirects, endless, silent, broken, html].map(({ url }) => url);
    const page = await start(urls.flatMap((url) => ['--scrape', url]));
    const { body } = await ask(page);
    const told = urls.map((url) => {
      const at = body.indexOf(`<td>${url.slice('http://'.length)}</td>`);
      return /colspan="5">([^<]*)</.exec(body.slice(at))?.[1];
    });
    expect(told).toEqual([
      'no answer',
      'more than a mebibyte',
      'no answer in time',
      'HTTP status 500',
      'publishes nothing of this ring',
    ]);
    expect(body).toContain('a member does not answer');
  });
});

describe('the command line', () => {
  test('beyond this machine only when told so, with a loud warning', async () => {
    const page = await start(['--host', '0.0.0.0']);
    page.child.kill('SIGTERM');
    const { code, stderr } = await page.ended;
    expect(code).toBe(0);
    expect(stderr).toMatch(/^WARNING: the page has no password/m);
  });

  test('without that, it listens on loopback and warns of nothing', async () => {
    const page = await start();
    expect(new URL(page.url).hostname).toBe('127.0.0.1');
    page.child.kill('SIGINT');
    expect(await page.ended).toMatchObject({ code: 0, stderr: '' });
  });

  test('a port that is taken is one line', async () => {
    const page = await start();
    const { code, stderr } = await runCli(['dashboard', '--port', String(page.port)], { cwd: project.cwd });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: cannot listen on 127\.0\.0\.1 port \d+: EADDRINUSE$/m);
  });

  test('F21 an address with a secret in it, or none at all, is refused, and not repeated', async () => {
    const wrong = [
      'http://ada:canary-password@127.0.0.1/metrics',
      'http://127.0.0.1/metrics?token=canary-password',
      'ftp://canary-password/',
      'canary-password',
    ];
    for (const url of wrong) {
      const { code, stdout, stderr } = await runCli(['dashboard', '--scrape', url], { cwd: project.cwd });
      expect([url, code]).toEqual([url, 2]);
      expect(stderr).toMatch(/^error: --scrape must/);
      expect(`${stdout}${stderr}`).not.toContain('canary-password');
    }
    const many = Array.from({ length: 33 }, (_, index) => ['--scrape', `http://127.0.0.1:${index + 1}/`]).flat();
    const { code, stderr } = await runCli(['dashboard', ...many], { cwd: project.cwd });
    expect([code, stderr]).toEqual([2, expect.stringContaining('at most 32 members')]);
  });

  test('the example in its help, and that of the guide, works', async () => {
    const { stdout } = await runCli(['dashboard', '--help'], { cwd: project.cwd });
    const guide = readFileSync(join(import.meta.dirname, '../../../docs/guides/observe.md'), 'utf8');
    const [, ofHelp = ''] = /^ {2}\$ npx sealring (dashboard .*)$/m.exec(stdout) ?? [];
    const [, ofGuide = ''] = /^npx sealring (dashboard .*)$/m.exec(guide) ?? [];
    expect(ofGuide).toBe(ofHelp);
    const page = await start(ofHelp.split(' ').slice(1));
    expect((await ask(page)).body).toContain('127.0.0.1:9464/metrics');
  });

  test('without a ring it fails as the other commands do', async () => {
    const empty = newProject();
    try {
      await runCli(['init', '--local'], { cwd: empty.cwd });
      rmSync(join(empty.cwd, 'sealring.local.ring'));
      const { code, stderr } = await runCli(['dashboard'], { cwd: empty.cwd });
      expect([code, stderr]).toEqual([1, expect.stringContaining('there is no ring in the store')]);
    } finally {
      empty.remove();
    }
  });
});
