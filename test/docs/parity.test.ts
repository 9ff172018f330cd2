import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const page = readFileSync(join(ROOT, 'docs/guides/python-parity.md'), 'utf8');
const rows = page.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| **'));

/** Every test file that the page may name, by its name. */
const sources = new Map(
  ['packages/mcp/test', 'packages/core/test', 'test/peers'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.test.ts'))
      .map((path) => [basename(path), readFileSync(join(ROOT, folder, path), 'utf8')] as const),
  ),
);

interface Named {
  readonly file: string;
  readonly title: string;
}

const named: readonly Named[] = [
  ...page.matchAll(/`([\w-]+\.test\.ts)`(?:: | [^“`|]*\()((?:“[^”]+”(?:, )?)+)/g),
].flatMap(([, file = '', titles = '']) =>
  [...titles.matchAll(/“([^”]+)”/g)].map(([, title = '']) => ({ file, title })),
);
const classesOnPage = new Set(
  [...page.matchAll(/vectors: ([\w-]+(?:, [\w-]+)*)/g)].flatMap(([, list = '']) => list.split(', ')),
);

describe('the page on parity with Python', () => {
  test('every row of the page on parity with Python has a test', () => {
    const bodies = rows.filter((row) => !row.includes('shown by') && !row.startsWith('| `{'));
    expect(bodies.length).toBeGreaterThan(35);
    expect(
      bodies.filter((row) => !/`[\w-]+\.test\.ts`: “|vectors: /.test(row) && !row.includes('arguments as sent')),
    ).toEqual([]);
    expect(named.length).toBeGreaterThan(35);
  });

  test.each(named)('names only tests that exist: “$title” in $file', ({ file, title }) => {
    expect(sources.get(file) ?? '').toContain(`'${title}'`);
  });

  test('names every class of the recorded vectors, and no other', () => {
    const { vectors }: { vectors: readonly { class: string }[] } = JSON.parse(
      readFileSync(join(ROOT, 'vectors/python-boundary.json'), 'utf8'),
    );
    const recorded = new Set(vectors.map((vector) => vector.class));
    // Generated tokens, not echoes of the input.
    recorded.add('mint');
    expect([...classesOnPage].toSorted()).toEqual([...recorded].toSorted());
  });
});
