import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const folder = join(import.meta.dirname, '..');
const readme = readFileSync(join(folder, 'README.md'), 'utf8');

test('the README lists every finding that is a warning or an error, and no other', () => {
  const doctor = join(folder, 'src/doctor');
  const source = readdirSync(doctor).map((file) => readFileSync(join(doctor, file), 'utf8'));
  const made = source.flatMap((text) => [...text.matchAll(/\b(?:warning|error)\(\s*'([a-z-]+)'/g)]);
  const ids = new Set(made.map(({ 1: id = '' }) => id));
  const table = /\| finding \| severity \| when \|\n([^]*?)\n\n/.exec(readme)?.[1] ?? '';
  const rows = table.split('\n').map((row) => row.split('|')[1] ?? '');
  const documented = new Set(rows.flatMap((cell) => [...cell.matchAll(/`([a-z-]+)`/g)]).map(({ 1: id = '' }) => id));
  expect([...documented].toSorted()).toEqual([...ids].toSorted());
});
