import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { GUIDE, recordedScores, withScores, withTables } from '../support/hardening-tables.ts';

const ROOT = new URL('../../', import.meta.url);
const guide = readFileSync(GUIDE, 'utf8');

test('the tables of the hardening guide match the recorded results', () => {
  expect(guide).toBe(withTables(guide));
});

test('every file with a mutation score exists, and its mutants were killed or survived', () => {
  const scores = Object.entries(recordedScores());
  expect(scores.map(([file]) => file).filter((file) => !existsSync(new URL(file, ROOT)))).toEqual([]);
  const wrong = scores.filter(([, { mutants, killed, survivors }]) => killed + survivors.length !== mutants);
  expect(wrong).toEqual([]);
});

test('the hardening guide names the packages without a mutation score', () => {
  expect(withScores(guide, {})).toMatch(
    /^Not measured: `packages\/aws-kms`, .*`packages\/core`, .*`packages\/vault-transit`\.$/m,
  );
  const survivors = ['1:1 ""'];
  const scores = {
    'packages/core/src/formats/token.ts': { mutants: 4, killed: 3, date: '2026-11-22', survivors },
    'packages/core/src/tokens/token-sealer.ts': { mutants: 1_000, killed: 1_000, date: '2026-11-20', survivors: [] },
  };
  const page = withScores(guide, scores);
  expect(page).toContain(`| folder | date | files | tried | mutants | killed | score |
|---|---|---|---|---|---|---|
| \`packages/core/src/formats\` | 2026-11-22 | 1 | all | 4 | 3 | 75.0 % |
| \`packages/core/src/tokens\` | 2026-11-20 | 1 | all | 1 000 | 1 000 | 100.0 % |
| **core** | 2026-11-20 | 2 | all | 1 004 | 1 003 | 99.9 % |
`);
  expect(page).toMatch(/^Not measured: .*`packages\/core\/src\/ring`.*`packages\/redis`.*$/m);
  expect(page).not.toMatch(/^Not measured: .*`packages\/core`/m);
});
