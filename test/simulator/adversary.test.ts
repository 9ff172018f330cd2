import { readFileSync } from 'node:fs';
import { describe, expect, test, vi } from 'vitest';
import { runPlay } from './adversary/episode.ts';
import { PLAYS } from './adversary/plays.ts';
import { readRecord } from './mutant-search.ts';
import { MUTANTS } from './mutants.ts';
import { ADVERSARY_SEARCHES, STANDING_SEARCHES } from './searches.ts';

// A matter of computing alone, on machines that may have much else to do.
vi.setConfig({ testTimeout: 900_000 });

const CORE = new URL('../../packages/core/src/', import.meta.url);

// A fixed budget; the rest is `npm run simulate -- --adversary all --seeds 1-200`.
describe('a fleet keeps its promises against', () => {
  for (const { name, seed, report } of ADVERSARY_SEARCHES) {
    test(`${name}, seed ${seed} (F36–F40, F43, F45, F46)`, async () => {
      const { violations, deliveries } = await report();
      const repeat = `npm run simulate -- --adversary ${name} --seeds ${seed}-${seed} --members 8 --trace`;
      expect(violations, repeat).toEqual([]);
      expect(deliveries, repeat).toBeGreaterThan(0);
    });
  }
});

describe('a fleet keeps its promises during', () => {
  for (const name of Object.keys(PLAYS)) {
    test(`${name} (F36–F38, F43)`, async () => {
      const { violations, deliveries } = await runPlay(name, 1);
      expect(violations).toEqual([]);
      expect(deliveries).toBeGreaterThan(0);
    });
  }
});

describe('the oracle is tested by mutants', () => {
  test.each(MUTANTS)('$name can be applied: its text is in core once', ({ edits }) => {
    for (const { file, from, to } of edits) {
      expect(readFileSync(new URL(file, CORE), 'utf8').split(from), file).toHaveLength(2);
      expect(to).not.toBe(from);
    }
  });

  const record = readRecord();
  const searches = STANDING_SEARCHES.map(({ name, seed }) => `${name} ${seed}`);

  // Whoever adds a mutant tries it: `npm run simulate -- --mutants NAME`.
  test.each(MUTANTS)('$name is caught by a standing search, as recorded', ({ name }) => {
    const caught = record[name];
    expect(searches).toContain(`${caught?.search ?? 'nothing'} ${caught?.seed ?? 0}`);
  });

  test('the record has the mutants of the list, in its order', () => {
    expect(Object.keys(record)).toEqual(MUTANTS.map(({ name }) => name));
  });
});
