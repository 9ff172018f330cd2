import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const textOf = (path: string): string => readFileSync(join(root, path), 'utf8');
const page = textOf('docs/guides/threat-model.md');

/** One line of the tables: an id, and the test files that show its defence. */
const rows = [...page.matchAll(/^\| (F\d+) \|.*\| ([^|]+) \|$/gm)].map(([, id = '', shown = '']) => ({
  id,
  files: [...shown.matchAll(/`([^`]+)`/g)].map(([, file = '']) => file),
}));

/** The ids in the titles of a file's tests. */
function idsIn(file: string): Set<string> {
  const titles = [
    ...textOf(file).matchAll(/\b(?:test|describe)\b[^\n]{0,80}?\(\s*(?:'([^'\n]*)'|`([^`]*)`|"([^"\n]*)")/g),
  ];
  return new Set(titles.flatMap(([, ...title]) => title.join(' ').match(/\bF\d+\b/g) ?? []));
}

describe('the threat model', () => {
  test('the threat model has one line for each id in the title of a test, and no other', () => {
    const files = globSync(['packages/*/test/**/*.test.ts', 'test/*/**/*.test.ts'], {
      cwd: root,
      exclude: ['**/node_modules/**', 'test/docs/**'],
    });
    const inTitles = new Set(files.flatMap((file) => [...idsIn(file)]));
    expect(inTitles.size).toBeGreaterThan(30);
    expect(rows.map(({ id }) => id).toSorted()).toEqual([...inTitles].toSorted());
  });

  test.each(rows)('$id is covered by tests whose titles have it', ({ id, files }) => {
    expect(files.length).toBeGreaterThan(0);
    expect(files.filter((file) => !existsSync(join(root, file)) || !idsIn(file).has(id))).toEqual([]);
  });

  test('names only ids that are in its tables', () => {
    const known = new Set(rows.map(({ id }) => id));
    expect((page.match(/\bF\d+\b/g) ?? []).filter((id) => !known.has(id))).toEqual([]);
  });
});
