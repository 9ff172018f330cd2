import { globSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { TIER_LINES, tierOf } from '../../scripts/tiers.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const files = globSync(['packages/*/test/**/*.test.ts', 'test/**/*.test.ts'], {
  cwd: root,
  exclude: (name) => name.includes('node_modules'),
});

test('each line of the tiers names test files that exist', () => {
  expect(TIER_LINES.filter((line) => !files.some((file) => file.startsWith(line)))).toEqual([]);
});

test('a test file that no line names is quick, and the three commands share all files between them', () => {
  expect(tierOf('packages/core/test/new.test.ts')).toBe('quick');
  expect(tierOf('test/stores/s3.test.ts')).toBe('services');
  expect(tierOf('test/conformance/newcomer.test.ts')).toBe('long');
  expect(new Set(files.map(tierOf))).toEqual(new Set(['quick', 'services', 'long']));
});
