import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Ended, runProgram } from '../support/run-program.ts';
import { brokenLinks, foreignRequests } from './site-links.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const outline = readFileSync(join(root, 'docs/site/outline.ts'), 'utf8');
const listed = [...outline.matchAll(/'([^']+\.md)'/g)].map(([, path = '']) => path);
// The text of docs/README.md is the first page.
const written = globSync(['docs/**/*.md', 'packages/*/README.md'], {
  cwd: root,
  exclude: ['**/node_modules/**'],
}).filter((path) => path !== 'docs/README.md');

describe('the outline of the site', () => {
  test('the outline has every page of the documentation', () => {
    expect(written.length).toBeGreaterThan(50);
    expect(written.filter((path) => !listed.includes(path))).toEqual([]);
  });

  test('the outline lists no page twice', () => {
    expect(listed.filter((path, index) => listed.indexOf(path) !== index)).toEqual([]);
  });
});

describe('the site', () => {
  const site = mkdtempSync(join(tmpdir(), 'sealring-site-'));
  const textOf = (page: string): string => readFileSync(join(site, page), 'utf8');
  const build = (folder: string): Promise<Ended> => {
    // A request to a registry or another host would fail here.
    const env = { ...process.env, http_proxy: 'http://127.0.0.1:1', https_proxy: 'http://127.0.0.1:1' };
    const program = join(root, 'docs/site/build.ts');
    return runProgram(process.execPath, [program, folder], { cwd: root, env, timeoutMs: 110_000 });
  };
  let built: Ended;

  beforeAll(async () => {
    built = await build(site);
  });
  afterAll(() => rmSync(site, { recursive: true, force: true }));

  test('builds', () => {
    expect(built).toMatchObject({ code: 0 });
  });

  test('a build replaces a folder only if an earlier build wrote it', async () => {
    expect(existsSync(join(site, '.sealring-site'))).toBe(true);
    const own = join(site, 'own');
    mkdirSync(own);
    writeFileSync(join(own, 'notes.txt'), 'mine');
    const ended = await build(own);
    expect(ended.code).toBe(2);
    expect(ended.output).toContain('was not written by this command');
    expect(readdirSync(own)).toEqual(['notes.txt']);
  });

  test('the site has a page for each guide, each package and the API', () => {
    for (const path of written) {
      expect(existsSync(join(site, `${path.replace(/^docs\//, '').replace(/\.md$/, '')}.html`)), path).toBe(true);
    }
    expect(textOf('functions/_sealring_core.createKmsCodec.html')).toContain('createKmsCodec');
    expect(textOf('errors.html')).toMatch(/id="keywrappererror-not-found"/);
  });

  test('the site has no broken internal link', () => {
    expect(brokenLinks(site)).toEqual([]);
  });

  test('loads nothing from another host', () => {
    expect(foreignRequests(site)).toEqual([]);
  });

  test('names no folder on the machine that built it (F21)', () => {
    const pages = globSync('**/*.html', { cwd: site });
    expect(pages.length).toBeGreaterThan(100);
    expect(pages.filter((page) => textOf(page).includes(root))).toEqual([]);
  });
});
