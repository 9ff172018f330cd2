import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createKmsCodec, fileRing, type KmsCodec, localKeyWrapper } from '@sealring/core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startChromium } from '../support/chromium.ts';
import { runProgram } from '../support/run-program.ts';

const root = join(import.meta.dirname, '../..');
const CLI = join(root, 'packages/cli/dist/main.js');
/** `UPDATE_IMAGES=1` saves the pictures for the documentation; otherwise they are checked and discarded. */
const isForDocs = process.env['UPDATE_IMAGES'] === '1';
const IMAGES = isForDocs ? join(root, 'docs/images') : mkdtempSync(join(tmpdir(), 'sealring-images-'));
const HOUR_MS = 3_600_000;
const RING = 'payments';
const DESKTOP = { width: 1_120, height: 1_000 };

const browser: Browser | undefined = await startChromium();
const project = mkdtempSync(join(tmpdir(), 'sealring-dashboard-'));
const ringPath = join(project, 'payments.ring');
const keyPath = join(project, 'payments.key');
const masterKey = randomBytes(32).toString('base64url');
const children: ChildProcess[] = [];

/** The code that runs in the page, as text: the other tests have no browser types. */
const IN_PAGE = {
  states: "[...document.querySelectorAll('.timeline.wide .key')].map((key) => key.classList[1])",
  reasons: "[...document.querySelectorAll('.rejects tr[data-reason]')].map((row) => row.dataset.reason)",
  measure: `(() => {
    const svg = document.querySelector('svg.timeline');
    const box = svg.getBoundingClientRect();
    const of = (selector) => svg.querySelector(selector).getBoundingClientRect().toJSON();
    const parts = [...svg.querySelectorAll('.part')].map((part) => part.getBoundingClientRect());
    const outside = parts.filter((part) =>
      part.left < box.left - 1 || part.right > box.right + 1 || part.bottom > box.bottom + 1 || part.width < 1).length;
    return { now: of('line.now').left, waits: of('.propagating .waits'), seals: of('.active .seals'), outside };
  })()`,
  revoked: `(() => {
    const rightOf = (element) => element.getBoundingClientRect().right;
    const ends = [...document.querySelectorAll('.timeline.wide .revoked .part')].map(rightOf);
    return { ends, now: rightOf(document.querySelector('.timeline.wide line.now')) };
  })()`,
  narrow: `(() => {
    const cut = (element) => {
      const { left, right } = element.getBoundingClientRect();
      return left < 0 || right > window.innerWidth || element.scrollWidth > element.clientWidth + 1;
    };
    const bars = [...document.querySelectorAll('.timeline.narrow .part')].map((part) => part.getBoundingClientRect());
    return {
      isWide: document.documentElement.scrollWidth > window.innerWidth,
      lowest: Math.min(...bars.map(({ height }) => height)),
      outside: bars.filter(({ left, right }) => left < 0 || right > window.innerWidth + 1).length,
      cells: document.querySelectorAll('.members td').length,
      cut: [...document.querySelectorAll('.members td, .cards .panel')].filter(cut).map((element) => element.textContent),
    };
  })()`,
  attack: `async (address) => {
    const refused = () => 'refused';
    const fetched = await fetch(address).then(() => 'fetched', refused);
    const image = await new Promise((resolve) => {
      const element = new Image();
      element.onload = () => resolve('loaded');
      element.onerror = () => resolve('refused');
      element.src = address;
    });
    const attempt = (run) => { try { run(); return 'done'; } catch { return 'refused'; } };
    const marked = attempt(() => { document.body.innerHTML += '<img>'; });
    const inserted = attempt(() => {
      const script = document.createElement('script');
      script.text = 'window.ranInjected = true';
      document.body.append(script);
    });
    return { fetched, image, marked, inserted, ran: window.ranInjected === true };
  }`,
} as const;

interface Side {
  readonly left: number;
  readonly right: number;
}

interface Narrow {
  readonly isWide: boolean;
  /** Height of the lowest bar. Pixels. */
  readonly lowest: number;
  readonly outside: number;
  readonly cells: number;
  readonly cut: readonly string[];
}

interface Measured {
  readonly now: number;
  readonly waits: Side;
  readonly seals: Side;
  readonly outside: number;
}

/** Works on the ring as an operator did this many hours ago. */
async function hoursAgo(hours: number, work: (codec: KmsCodec) => Promise<void>): Promise<void> {
  await using codec = await createKmsCodec({
    ringName: RING,
    ring: fileRing(ringPath),
    keyWrapper: localKeyWrapper({ masterKey }),
    create: 'now',
    clock: { wallMs: () => Date.now() - hours * HOUR_MS, monotonicNs: () => process.hrtime.bigint() },
  });
  await work(codec);
}

/** Starts a program and returns its first line. */
async function firstLine(args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, args, { cwd: project, stdio: ['pipe', 'pipe', 'inherit'] });
  children.push(child);
  const [text] = await once(child.stdout.setEncoding('utf8'), 'data');
  return String(text).trim();
}

describe.skipIf(browser === undefined)('sealring dashboard, in Chromium', () => {
  let url = '';
  let page: Page;
  const asked: string[] = [];
  const complaints: string[] = [];
  const pictureOf = (name: string): Promise<Buffer> =>
    // Another caret would put a style into the page, which the page forbids.
    page.screenshot({ path: join(IMAGES, `dashboard-${name}.png`), fullPage: true, caret: 'initial' });

  beforeAll(async () => {
    symlinkSync(join(root, 'node_modules'), join(project, 'node_modules'));
    writeFileSync(keyPath, masterKey, { mode: 0o600 });
    writeFileSync(
      join(project, 'sealring.config.mjs'),
      `import { readFileSync } from 'node:fs';
import { fileRing, localKeyWrapper } from '@sealring/core';
export default {
  ringName: '${RING}',
  ring: fileRing('payments.ring'),
  keyWrapper: localKeyWrapper({ masterKey: readFileSync('payments.key', 'utf8') }),
};
`,
    );
    await hoursAgo(26, async () => undefined);
    await hoursAgo(8, (codec) => codec.rotate());
    await hoursAgo(2, async (codec) => codec.revoke(codec.health().sealingKey ?? ''));
    const member = [join(import.meta.dirname, 'member.ts'), ringPath, keyPath, RING];
    const members = await Promise.all([firstLine(member), firstLine(member), firstLine(member)]);
    const said = await firstLine([CLI, 'dashboard', '--every', '1', ...members.flatMap((one) => ['--scrape', one])]);
    url = /http:\S+/.exec(said)?.[0] ?? '';
    const context = await browser?.newContext({ viewport: DESKTOP, deviceScaleFactor: 2 });
    if (context === undefined) throw new Error('no browser');
    context.on('request', (request) => asked.push(request.url()));
    page = await context.newPage();
    page.on('console', (message) => complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(error.message));
    await page.goto(url);
  });

  afterAll(async () => {
    await browser?.close();
    for (const child of children) child.kill('SIGTERM');
    rmSync(project, { recursive: true, force: true });
    if (!isForDocs) rmSync(IMAGES, { recursive: true, force: true });
  });

  test('shows the life of every key, and three members at work', async () => {
    expect(await page.title()).toBe(`Sealring: ${RING}`);
    await expect.poll(() => page.locator('.members tbody tr').count()).toBe(3);
    expect(await page.locator('.pill').innerText()).toBe('ok');
    const states = await page.evaluate<string[]>(IN_PAGE.states);
    expect(states.toSorted()).toEqual(['active', 'revoked', 'verify-only']);
    const reasons = (): Promise<string[]> => page.evaluate<string[]>(IN_PAGE.reasons);
    await expect
      .poll(async () => (await reasons()).toSorted())
      .toEqual(['authentication failed', 'malformed', 'request binding']);
    await expect.poll(() => page.locator('.rate.sealed b').innerText()).toMatch(/^[1-9]/);
  });

  test('shows a rotation that is in progress, without a reload', async () => {
    await page.evaluate('window.loadedOnce = true');
    const { code } = await runProgram(process.execPath, [CLI, 'rotate'], { cwd: project });
    expect(code).toBe(0);
    await page.locator('.timeline.wide .key.propagating').waitFor();
    expect(await page.locator('.note').innerText()).toMatch(
      /^A rotation is in progress\. .* becomes active in 1 h 1[45] min/,
    );
    expect(await page.evaluate('window.loadedOnce')).toBe(true);
    // Every bar is inside the picture, and "now" is where the old key seals and the new one waits.
    const { now, waits, seals, outside } = await page.evaluate<Measured>(IN_PAGE.measure);
    expect(outside).toBe(0);
    for (const { left, right } of [waits, seals]) expect(left <= now + 2 && now <= right + 2).toBe(true);
  });

  test('has different backgrounds in light and dark mode, and a screenshot of each', async () => {
    if (isForDocs) await page.waitForTimeout(100_000);
    mkdirSync(IMAGES, { recursive: true });
    const grounds: string[] = [];
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      grounds.push(await page.evaluate<string>('getComputedStyle(document.body).backgroundColor'));
      const picture = await pictureOf(colorScheme);
      expect(picture.subarray(1, 4).toString('latin1')).toBe('PNG');
      // Twice the width of the view, and more detail than one colour compresses to.
      expect(picture.readUInt32BE(16)).toBe(2_240);
      expect(picture.length).toBeGreaterThan(50_000);
    }
    await page.emulateMedia({ colorScheme: 'light' });
    expect(new Set(grounds).size).toBe(2);
  });

  test.each([360, 420])('shows bars and members in full on a phone that is %i pixels wide', async (width) => {
    await page.setViewportSize({ width, height: 900 });
    const { lowest, cells, ...faults } = await page.evaluate<Narrow>(IN_PAGE.narrow);
    expect(faults).toEqual({ isWide: false, outside: 0, cut: [] });
    expect(lowest).toBeGreaterThanOrEqual(12);
    expect(cells).toBe(18);
    if (width === 420) await pictureOf('phone');
    await page.setViewportSize(DESKTOP);
  });

  test('makes requests to its own server only, and blocks injected code that would make others', async () => {
    // The page itself, and then its figures as often as the machine allows.
    await expect.poll(() => asked.length).toBeGreaterThan(3);
    expect(new Set(asked)).toEqual(new Set([url, `${url}main`]));
    expect(complaints).toEqual([]);
    let reached = 0;
    const other = createServer((_request, response) => {
      reached += 1;
      response.setHeader('access-control-allow-origin', '*').end();
    }).listen(0, '127.0.0.1');
    await once(other, 'listening');
    const elsewhere = `http://127.0.0.1:${(other.address() as AddressInfo).port}/`;
    const outcomes = await page.evaluate(`(${IN_PAGE.attack})(${JSON.stringify(elsewhere)})`);
    other.close();
    expect(outcomes).toEqual({
      fetched: 'refused',
      image: 'refused',
      marked: 'refused',
      inserted: 'refused',
      ran: false,
    });
    expect(reached).toBe(0);
  });

  test('the bars of revoked keys end at their revocation', async () => {
    const { code } = await runProgram(process.execPath, [CLI, 'revoke', '--all', '--yes', '--no-wait'], {
      cwd: project,
    });
    expect(code).toBe(0);
    await expect.poll(() => page.locator('.timeline.wide .key.revoked').count()).toBe(4);
    const { now, ends } = await page.evaluate<{ readonly now: number; readonly ends: number[] }>(IN_PAGE.revoked);
    expect(ends.length).toBeGreaterThan(3);
    // A bar has at least two pixels.
    expect(ends.filter((end) => end > now + 4)).toEqual([]);
    await pictureOf('revoked');
  });

  test('reports that the store has lost the ring', async () => {
    const before = await page.evaluate<{ readonly ends: number[] }>(IN_PAGE.revoked);
    const aside = `${ringPath}.aside`;
    renameSync(ringPath, aside);
    mkdirSync(ringPath);
    await page.locator('.trouble:not(.offline)').first().waitFor();
    expect(await page.locator('.trouble:not(.offline)').first().innerText()).toContain(
      'the ring store: corrupt: not a regular file',
    );
    // The times of the revocations are still known, and the axis moves by less than a pixel.
    const after = await page.evaluate<{ readonly ends: number[] }>(IN_PAGE.revoked);
    expect(after.ends.map(Math.round)).toEqual(before.ends.map(Math.round));
    await pictureOf('store-gone');
    rmSync(ringPath, { recursive: true });
    renameSync(aside, ringPath);
  });

  test('reports that its server does not answer', async () => {
    expect(await page.locator('.offline').isVisible()).toBe(false);
    children.at(-1)?.kill('SIGTERM');
    await page.locator('.offline').waitFor({ state: 'visible' });
  });
});
