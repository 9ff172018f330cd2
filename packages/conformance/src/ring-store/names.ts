import { labelled } from './sizes.ts';
import type { RingStoreChecks, RingStoreTrial } from './trial.ts';

const LONGEST_NAME = 64;
const NUMBER_FORMS = ['0N', '000N', '-N', 'N.0', 'N.5', 'Ne0', 'N0e-1', '0xN'];

/** Suffixes that programs append to a file name or strip from it, or that they give to the parts of a document. */
const SUFFIXES =
  '.ring .bak .lock .tmp .temp .json .txt .old .new .orig .part .meta .swp .gz .d .git .0 .1 .01 -lock -tmp _bak'
    .concat(' .rev .revision .version .index -0 -1 _0 _1 -rev -version -index -meta')
    .concat(' -2 .2 _2 -00 -01 -001 -part -part-1 -chunk -chunk-1')
    .split(' ');

const ROUNDS = 5;

export const NAME_CHECKS: RingStoreChecks = {
  'RING-NAMES-SEPARATE': async (trial) => {
    for (const isReversed of [false, true]) {
      const name = trial.freshName();
      const alike = alikeNames(name);
      await expectSeparate(trial, name, isReversed ? [...alike, name] : [name, ...alike]);
    }
    // Equal documents of two rings may share storage, but a change to one ring must not remove the document of the
    // other.
    const [one, other] = [await trial.open(), await trial.open()];
    let revision = await trial.write(one, 'the same', undefined);
    const kept = await trial.write(other, 'the same', undefined);
    for (const document of ['changed', 'changed again', 'the same', 'changed']) {
      revision = await trial.write(one, document, revision);
      await trial.expectStored(other, 'the same', kept, 'a read of a ring with a document that another ring once had');
    }
    // A name that is a number, with other forms of the same number and with neighbouring numbers.
    const number = `${Date.now()}${String(process.pid).padStart(7, '0')}`;
    const near = [-1n, 1n].map((by) => String(BigInt(number) + by));
    await expectSeparate(trial, number, [number, ...near, ...NUMBER_FORMS.map((form) => form.replace('N', number))]);
  },
  'RING-NAMES-AT-ONCE': async (trial) => {
    const stores = await Promise.all(Array.from({ length: 8 }, () => trial.open()));
    let revisions: readonly string[] = [];
    for (let round = 0; round <= ROUNDS; round++) {
      const [writing, reading] = ['a write during writes of others', 'a read during reads of others'];
      const documents = stores.map((_, i) => `ring ${i}, ${round}`);
      const writes = stores.map((store, i) => trial.write(store, documents[i] ?? '', revisions[i], writing));
      revisions = await trial.all(writes);
      await trial.all(stores.map((store, i) => trial.expectStored(store, documents[i] ?? '', revisions[i], reading)));
    }
  },
};

/** Names that a store may confuse with `name` or with each other. */
function alikeNames(name: string): readonly string[] {
  // The longest names, which differ in the last or the first character.
  const [head, tail] = [name.padEnd(LONGEST_NAME - 1, 'x'), name.padStart(LONGEST_NAME - 1, 'x')];
  return [
    ...['1', '.a', '-a', '_a', '..a', '--a', '__a', '-', '_', ...SUFFIXES].map((suffix) => name + suffix),
    ...['x', 'x.', 'x-', '.', '-', '_', '..', '--', '00'].map((prefix) => prefix + name),
    name.slice(1),
    name.slice(0, -1),
    `${head}1`,
    `${head}2`,
    `1${tail}`,
    `2${tail}`,
  ];
}

/** Expects that a long document of one ring, and later a short one, leaves rings with similar names as they are. */
async function expectSeparate(trial: RingStoreTrial, changed: string, names: readonly string[]): Promise<void> {
  const rings = await trial.all(names.map(async (name) => ({ name, store: await trial.open(name) })));
  const revisions = new Map<string, string>();
  // A store that splits documents gives names to the parts.
  const long = labelled(trial.supports.maxDocumentBytes);
  const documentOf = (name: string): string => (name === changed ? long : `of ${name}`);
  for (const { name, store } of rings) {
    await trial.expectAbsent(store, `a read of ${name}, while only others exist,`);
    revisions.set(name, await trial.write(store, documentOf(name), undefined, `the write that creates ${name}`));
  }
  const expectOthers = (when: string): Promise<unknown> =>
    trial.all(
      rings
        .filter(({ name }) => name !== changed)
        .map(({ name, store }) =>
          trial.expectStored(store, documentOf(name), revisions.get(name), `a read of ${name} ${when}`),
        ),
    );
  await expectOthers('after every ring was created');
  const store = await trial.open(changed);
  await trial.expectStored(store, long, revisions.get(changed), `a read of ${changed}`);
  const second = await trial.write(store, 'changed', revisions.get(changed));
  await expectOthers(`after a short document replaced the long one of ${changed}`);
  const third = await trial.write(store, long, second);
  await trial.expectConflict(store, second, 'a write with the revision of an earlier version');
  await expectOthers(`after ${changed} was written twice, with a conflict`);
  await trial.expectStored(store, long, third, `a read of ${changed}`);
  // A database allows few connections, so the stores are closed early.
  await trial.all([store, ...rings.map((ring) => ring.store)].map((one) => trial.closeEarly(one)));
}
