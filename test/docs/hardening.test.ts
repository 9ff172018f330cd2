import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { GUIDE, withTables } from '../support/hardening-tables.ts';

test('the tables of the hardening guide are those of what was recorded', () => {
  const guide = readFileSync(GUIDE, 'utf8');
  expect(guide).toBe(withTables(guide));
});
