import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as kit from '@sealring/conformance';
import { describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const ID = /\b(?:CODEC|WRAP|RING)-[A-Z0-9]+(?:-[A-Z0-9]+)*\b/g;
const README = join('packages', 'conformance', 'README.md');

/** The suites whose requirements the kit's README lists. */
const LISTED = {
  CODEC: kit.CODEC_REQUIREMENTS,
  WRAP: kit.KEY_WRAPPER_REQUIREMENTS,
  RING: kit.RING_STORE_REQUIREMENTS,
};
const known = new Set(
  [kit.CODEC_REQUIREMENTS, kit.KEY_WRAPPER_REQUIREMENTS, kit.RING_STORE_REQUIREMENTS].flat().map(({ id }) => id),
);

function documents(): string[] {
  const below = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' }).map((name) =>
    join('docs', name),
  );
  const readmes = readdirSync(join(root, 'packages')).map((name) => join('packages', name, 'README.md'));
  const pages = below.filter((name) => name.endsWith('.md') && !name.includes('node_modules'));
  return ['README.md', ...readmes.filter((name) => existsSync(join(root, name))), ...pages];
}

const textOf = (document: string): string => readFileSync(join(root, document), 'utf8');

describe('the requirements of the conformance kit in the documentation', () => {
  test.each(documents())('%s names only ids that exist', (document) => {
    expect([...new Set(textOf(document).match(ID))].filter((id) => !known.has(id))).toEqual([]);
  });

  test.each(Object.entries(LISTED))('the README lists %s: every id, level and sentence', (prefix, requirements) => {
    const rows = textOf(README).match(new RegExp(`^\\| \`${prefix}-.*$`, 'gm'));
    expect(rows).toEqual(requirements.map(({ id, level, text }) => `| \`${id}\` | ${level} | ${text} |`));
  });
});
