import { describe, expect, test } from 'vitest';
import { describeSingleUse, runSingleUseConformance, SINGLE_USE_REQUIREMENTS } from '../src/index.ts';
import { BROKEN_SINGLE_USE, zooSingleUse } from './zoo/single-use-stores.ts';

const ids = SINGLE_USE_REQUIREMENTS.map(({ id }) => id);

test('every requirement has a broken store that it must catch', () => {
  expect(new Set(BROKEN_SINGLE_USE.map(({ caughtBy }) => caughtBy))).toEqual(new Set(ids));
});

describe('broken single-use stores (F48)', () => {
  for (const { target, caughtBy } of BROKEN_SINGLE_USE) {
    test(`${caughtBy} catches this broken single-use store: ${target.name}`, async () => {
      const { results, passed } = await runSingleUseConformance(target, { only: [caughtBy] });
      const isWarned = caughtBy === 'USE-CALLERS-DATE';
      expect(results).toMatchObject([{ id: caughtBy, status: isWarned ? 'warn' : 'fail' }]);
      expect(results[0]?.detail).not.toMatch(/^unexpected/);
      expect(passed).toBe(isWarned);
    });
  }
});

describeSingleUse(zooSingleUse('a sound one of the zoo:'), { describe, test });

test('requirements for absent features do not apply, and errors name invalid targets and options', async () => {
  const sound = zooSingleUse('sound');
  const create = () => sound.create();
  const { results } = await runSingleUseConformance({ name: 'plain', create }, { only: ['USE-UNREACHABLE'] });
  expect(results).toMatchObject([{ status: 'not-applicable', detail: 'the target has no breakConnection' }]);
  const wrong = (change: object, options: object = {}): Promise<unknown> =>
    runSingleUseConformance({ name: 'plain', create, ...change }, options);
  await expect(wrong({ create: 1 })).rejects.toThrow(/create must be a function/);
  await expect(wrong({ clockSkewSeconds: -1 })).rejects.toThrow(RangeError);
  await expect(wrong({ margin: 1 })).rejects.toThrow(/unknown option "margin"/);
  await expect(wrong({}, { only: ['USE-NONE'] })).rejects.toThrow(/USE-NONE/);
});
