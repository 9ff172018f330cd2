import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const page = readFileSync(join(ROOT, 'docs', 'architecture.md'), 'utf8');

/** The files of the steps in the table under a heading, in order. */
function stepsUnder(heading: string): readonly string[] {
  const [, section = ''] = page.split(`\n## ${heading}\n`);
  const [table = ''] = section.split('\n## ');
  return [...table.matchAll(/^\| \d+ \| \[`[^`]+`\]\(\.\.\/([^)]+)\)/gm)].map(([, file = '']) => file);
}

describe('the page on the architecture', () => {
  test.each([
    ['A token', 8],
    ['A data key', 12],
  ])('walks %s through at most %d existing files', (heading, most) => {
    const files = stepsUnder(heading);
    expect(files.length).toBeGreaterThan(5);
    expect(files.length).toBeLessThanOrEqual(most);
    expect(files.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
  });

  test('describes every folder of core', () => {
    const folders = readdirSync(join(ROOT, 'packages/core/src'), { withFileTypes: true }).filter((entry) =>
      entry.isDirectory(),
    );
    expect(folders.map(({ name }) => name).filter((name) => !page.includes(`\n| \`${name}\` | `))).toEqual([]);
  });
});

describe('the page on the API', () => {
  const review = readFileSync(join(ROOT, 'docs', 'api-review.md'), 'utf8');
  const rows = review.split('\n').filter((line) => line.startsWith('| `'));
  const reviewed = rows.flatMap((row) => [...(row.split(' | ')[0] ?? '').matchAll(/`(\w+)`/g)].map(([, name]) => name));

  test('lists every public name of core, and no other', () => {
    const reports = readdirSync(join(ROOT, 'packages/core')).filter((name) => /^api(\.[\w-]+)?\.md$/.test(name));
    const texts = reports.map((name) => readFileSync(join(ROOT, 'packages/core', name), 'utf8'));
    const names = texts.flatMap((text) =>
      [...text.matchAll(/^(?:export (?:declare )?(?:abstract )?\w+|declare namespace) (\w+)/gm)].map(
        ([, name]) => name,
      ),
    );
    expect(reports.length).toBe(4);
    expect(new Set(reviewed)).toEqual(new Set(names));
  });
});
