import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const textOf = (path: string): string => readFileSync(join(root, path), 'utf8');
const listed = [...textOf('docs/failure-modes.md').matchAll(/^\| (F\d+) \|/gm)].map(([, id = '']) => id);

/** Where failure modes are cited: not in tests of pages with invented ids. */
const citing = globSync(
  ['*.md', 'docs/**/*.md', 'packages/*/README.md', 'packages/*/src/**/*.ts', '{packages/*,test}/**/*.test.ts'],
  {
    cwd: root,
    exclude: ['**/node_modules/**', '**/dist/**', 'test/docs/**'],
  },
);

describe('the page on failure modes', () => {
  test('lists every id from F1 to the last exactly once', () => {
    const numbers = listed.map((id) => Number(id.slice(1))).toSorted((a, b) => a - b);
    expect(numbers.length).toBeGreaterThan(50);
    expect(numbers).toEqual(numbers.map((_, index) => index + 1));
  });

  test('lists every id that a document, a source or a title of a test cites', () => {
    const cited = citing.flatMap((path) =>
      [...textOf(path).matchAll(/(?<=[ ('"`|])F\d{1,2}(?=[ ,:;.)'"`|])/g)].map(([id]) => ({ id, path })),
    );
    expect(cited.length).toBeGreaterThan(100);
    expect(cited.filter(({ id }) => !listed.includes(id))).toEqual([]);
  });
});

describe('the page on numbered rules', () => {
  const [lifecycle = [], adapter = [], contract = []] = textOf('docs/rules.md')
    .split(/^## /m)
    .slice(1)
    .map((section) => [...section.matchAll(/^(\d+)\. /gm)].map(([, number = '']) => number));

  test('numbers the rules of each list without a gap', () => {
    expect([lifecycle.length, adapter.length, contract.length]).toEqual([15, 7, 6]);
    for (const list of [lifecycle, adapter, contract]) expect(list).toEqual(list.map((_, index) => String(index + 1)));
  });

  test.each([
    ['(?<!adapter )rule', lifecycle],
    ['adapter rule', adapter],
    ['contract', contract],
  ])('lists every number that a title or a decision cites as %s', (word, list) => {
    const cited = citing
      .filter((path) => path !== 'docs/rules.md')
      .flatMap((path) =>
        [...textOf(path).matchAll(new RegExp(String.raw`\b${word} (\d+)\b`, 'gi'))].map(([, number = '']) => ({
          number,
          path,
        })),
      );
    expect(cited.length).toBeGreaterThan(2);
    expect(cited.filter(({ number }) => !list.includes(number))).toEqual([]);
  });
});
