import type { ChildProcess } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hashedKeyId } from '@sealring/core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
// @boundaries-ignore code that the tests of all packages share is not a package
import { ask, shows } from '../../../test/support/dashboard-page.ts';
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

/** Starts it and waits until it prints its address. */
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
  // It ends later, while no test waits for it.
  failed.catch(() => undefined);
  const { url, child } = await Promise.race([said, failed]);
  const one = { url, port: Number(new URL(url).port), child, ended };
  running.push(one);
  return one;
}

async function keyIds(): Promise<readonly string[]> {
  const { stdout } = await runCli(['status', '--json'], { cwd: project.cwd });
  return JSON.parse(stdout).keys.map(({ id }: { id: string }) => id);
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

  test('shows the keys by name, and a rotation in progress', async () => {
    const ids = await keyIds();
    const { body: before } = await ask(page.url);
    expect(ids.length).toBeGreaterThan(0);
    for (const key of ids) {
      expect(before).toContain(hashedKeyId(key));
      expect(before).not.toContain(key);
    }
    await runCli(['rotate'], { cwd: project.cwd });
    const body = await shows(page.url, /A rotation is in progress/);
    const [id = ''] = (await keyIds()).slice(-1);
    expect(body).toMatch(new RegExp(`class="key propagating" data-key="${hashedKeyId(id)}"`));
  });

  test('shows that the ring cannot be read, and still shows the keys read before', async () => {
    const path = join(project.cwd, 'sealring.local.ring');
    const before = readFileSync(path);
    writeFileSync(path, 'something else');
    try {
      const body = await shows(page.url, /The ring could not be read/);
      expect(body).toMatch(/class="key active/);
    } finally {
      writeFileSync(path, before);
    }
    await shows(page.url, /^(?![^]*The ring could not be read)/);
  });
});

describe('the command line', () => {
  test('dashboard listens beyond this machine only with --host, and prints a warning', async () => {
    const page = await start(['--host', '0.0.0.0']);
    page.child.kill('SIGTERM');
    const { code, stderr } = await page.ended;
    expect(code).toBe(0);
    expect(stderr).toMatch(/^WARNING: everyone who can reach this address can read the page/m);
  });

  test('dashboard listens on loopback by default, without a warning', async () => {
    const page = await start();
    expect(new URL(page.url).hostname).toBe('127.0.0.1');
    page.child.kill('SIGINT');
    expect(await page.ended).toMatchObject({ code: 0, stderr: '' });
  });

  test('dashboard reports a port in use on one line', async () => {
    const page = await start();
    const { code, stderr } = await runCli(['dashboard', '--port', String(page.port)], { cwd: project.cwd });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: cannot listen on 127\.0\.0\.1 port \d+: EADDRINUSE$/m);
  });

  test('dashboard rejects an address that is invalid or has a secret, and does not repeat it (F21)', async () => {
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

  test('the example in the help of dashboard runs, and is the same as in the guide', async () => {
    const { stdout } = await runCli(['dashboard', '--help'], { cwd: project.cwd });
    const guide = readFileSync(join(import.meta.dirname, '../../../docs/guides/observe.md'), 'utf8');
    const [, ofHelp = ''] = /^ {2}\$ npx sealring (dashboard .*)$/m.exec(stdout) ?? [];
    const [, ofGuide = ''] = /^npx sealring (dashboard .*)$/m.exec(guide) ?? [];
    expect(ofGuide).toBe(ofHelp);
    const page = await start(ofHelp.split(' ').slice(1));
    expect((await ask(page.url)).body).toContain('127.0.0.1:9464/metrics');
  });

  test('dashboard fails without a ring, as the other commands do', async () => {
    const empty = newProject();
    try {
      await runCli(['init', '--local'], { cwd: empty.cwd });
      rmSync(join(empty.cwd, 'sealring.local.ring'));
      const { code, stderr } = await runCli(['dashboard'], { cwd: empty.cwd });
      expect([code, stderr]).toEqual([1, expect.stringContaining('the store has no ring')]);
    } finally {
      empty.remove();
    }
  });
});
