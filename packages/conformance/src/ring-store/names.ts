import { must } from '../requirement.ts';
import { type RingStoreRequirement } from './requirement.ts';
import type { RingStoreTrial } from './trial.ts';

const SOURCE = 'F25: rings of different names share nothing';

/** Characters of a ring's name. */
const LONGEST_NAME = 64;

/** What programs put beside a file, or take off its name. */
const SUFFIXES =
  '.bak .lock .tmp .temp .json .txt .old .new .orig .part .meta .swp .gz .d .git .0 .1 -lock -tmp _bak'.split(' ');

const ROUNDS = 5;

/** Rings of different names. */
export const NAME_REQUIREMENTS: readonly RingStoreRequirement[] = [
  must(
    'RING-NAMES-SEPARATE',
    'Rings of different names share nothing, however similar the names are.',
    SOURCE,
    async (trial) => {
      for (const isReversed of [false, true]) {
        const name = trial.freshName();
        const alike = alikeNames(name);
        await expectSeparate(trial, name, isReversed ? [...alike, name] : [name, ...alike]);
      }
    },
  ),
  must(
    'RING-NAMES-AT-ONCE',
    'Calls for rings of different names do not disturb each other when made at once.',
    SOURCE,
    async (trial) => {
      const rings = await Promise.all(
        Array.from({ length: 8 }, async (_, i) => ({
          i,
          store: await trial.open(),
          revision: undefined as string | undefined,
        })),
      );
      for (let round = 0; round <= ROUNDS; round++) {
        await trial.all(
          rings.map(async (ring) => {
            const what = 'a write while other rings were written';
            ring.revision = await trial.write(ring.store, `ring ${ring.i}, ${round}`, ring.revision, what);
          }),
        );
        await trial.all(
          rings.map(({ i, store, revision }) =>
            trial.expectStored(store, `ring ${i}, ${round}`, revision, 'a read while other rings were read'),
          ),
        );
      }
    },
  ),
];

/** Names that a store may take for this one, or for each other. */
function alikeNames(name: string): readonly string[] {
  // The longest, which differ in their last character, or in their first one.
  const [head, tail] = [name.padEnd(LONGEST_NAME - 1, 'x'), name.padStart(LONGEST_NAME - 1, 'x')];
  return [
    ...['1', '.a', '-a', '_a', '..a', '--a', '__a', '-', '_', ...SUFFIXES].map((suffix) => name + suffix),
    ...['x', '.', '-', '_'].map((prefix) => prefix + name),
    name.slice(1),
    name.slice(0, -1),
    `${head}1`,
    `${head}2`,
    `1${tail}`,
    `2${tail}`,
  ];
}

async function expectSeparate(trial: RingStoreTrial, changed: string, names: readonly string[]): Promise<void> {
  const rings = await trial.all(names.map(async (name) => ({ name, store: await trial.open(name) })));
  const revisions = new Map<string, string>();
  for (const { name, store } of rings) {
    await trial.expectAbsent(store, `a read of ${name}, while only others exist,`);
    revisions.set(name, await trial.write(store, `of ${name}`, undefined, `the write that creates ${name}`));
  }
  const expectOthers = (when: string): Promise<unknown> =>
    trial.all(
      rings
        .filter(({ name }) => name !== changed)
        .map(({ name, store }) =>
          trial.expectStored(store, `of ${name}`, revisions.get(name), `a read of ${name} ${when}`),
        ),
    );
  await expectOthers('after every ring was created');
  const store = await trial.open(changed);
  await trial.expectStored(store, `of ${changed}`, revisions.get(changed), `a read of ${changed}`);
  const second = await trial.write(store, 'changed', revisions.get(changed));
  await expectOthers(`after ${changed} was written`);
  await trial.write(store, 'changed again', second);
  await trial.expectConflict(store, second, 'a write with the revision of an earlier version');
  await expectOthers(`after ${changed} was written twice, with a conflict`);
}
