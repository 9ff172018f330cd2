import { type Check, expectThat } from '../requirement.ts';
import { documentText, type RingStoreTrial } from './trial.ts';

/** What backends and their languages trip over. */
const DOCUMENTS: readonly string[] = [
  '{"keys":[]}\n{}\n',
  'x',
  ' \t spaces around \n\n',
  '\ufeff{}\r\n\t\u0001é€😀',
  'e\u0301 is not é',
  "'; DROP TABLE ring; --",
  '$1 %s %00 \\n \\ `{{x}}` "',
  '{"b":1,"a":1.0,"a":"\\u00e9",  "c":[ ]}',
  'null',
  '0010',
  '__proto__',
];

const RANDOM_DOCUMENTS = 5;
/** Characters of a ring's name. */
const LONGEST_NAME = 64;

/** Absent, or what was written, whole. */
export const DOCUMENT_CHECKS: readonly Check<RingStoreTrial>[] = [
  {
    id: 'RING-ABSENT',
    async run(trial) {
      for (const store of await trial.openPair()) {
        for (let i = 0; i < 2; i++) await trial.expectAbsent(store, 'a read of a ring that nobody founded');
      }
    },
  },
  {
    id: 'RING-ROUNDTRIP',
    async run(trial) {
      const [store, other] = await trial.openPair();
      const random = Array.from({ length: RANDOM_DOCUMENTS }, () => randomDocument(trial));
      const long = ['one line '.repeat(8_000), 'line\n'.repeat(8_000)].filter((one) => fits(trial, one));
      let revision: string | undefined;
      for (const document of [...DOCUMENTS, ...random, ...long]) {
        revision = await trial.write(store, document, revision, `a write of ${documentText(document)}`);
        for (const reader of [store, other]) {
          const found = await trial.read(reader, `a read of ${documentText(document)}`);
          const seen = found === undefined ? 'nothing' : documentText(found.document);
          expectThat(found?.document === document, `${documentText(document)} was written, ${seen} was read`);
        }
      }
    },
  },
  {
    id: 'RING-NUL',
    async run(trial) {
      for (const document of ['a\0b', 'a\0', '\0']) {
        const [store, other] = await trial.openPair();
        const what = documentText(document);
        const written = await trial.outcome(() => store.write(document, { expected: undefined }), `a write of ${what}`);
        if (written.status === 'rejected') await trial.expectAbsent(other, `a read after ${what} was refused`);
        else {
          const found = await trial.read(other, `a read of ${what}`);
          expectThat(
            found?.document === document,
            `${what} was taken, and ${documentText(found?.document ?? '')} read`,
          );
        }
      }
    },
  },
  {
    id: 'RING-DURABLE',
    async run(trial) {
      const name = trial.freshName();
      const [store, other] = await trial.openPair(name);
      const first = await trial.write(store, 'one', undefined);
      const revision = await trial.write(other, 'two', first);
      for (const one of [store, other]) await trial.closeOne(one);
      const again = await trial.open(name);
      await trial.expectStored(again, 'two', revision, 'a read after every store was closed');
      await trial.write(again, 'three', revision, 'a write after every store was closed');
    },
  },
  {
    id: 'RING-NAMES-SEPARATE',
    async run(trial) {
      const name = trial.freshName();
      // A dash for an underscore: to SQL's LIKE that is the same.
      const alike = [name, `${name}1`, `${name}.a`, `${name}-a`, `${name}_a`, name.slice(1), `x${name}`];
      // The longest, which differ in their last character, or in their first one.
      const [head, tail] = [name.padEnd(LONGEST_NAME - 1, 'x'), name.padStart(LONGEST_NAME - 1, 'x')];
      alike.push(`${head}1`, `${head}2`, `1${tail}`, `2${tail}`);
      const revisions = new Map<string, string>();
      for (const [i, one] of alike.entries()) {
        const store = await trial.open(one);
        await trial.expectAbsent(store, `a read of ${one}, while only others were written,`);
        revisions.set(one, await trial.write(store, `of ${i}`, undefined, `the foundation of ${one}`));
      }
      for (const [i, one] of alike.entries()) {
        await trial.expectStored(await trial.open(one), `of ${i}`, revisions.get(one) ?? '', `a read of ${one}`);
      }
      const changed = await trial.open(name);
      await trial.write(changed, 'changed', revisions.get(name));
      for (const [i, one] of alike.entries()) {
        if (one === name) continue;
        const what = `a read of ${one} after ${name} was written`;
        await trial.expectStored(await trial.open(one), `of ${i}`, revisions.get(one) ?? '', what);
      }
    },
  },
  {
    id: 'RING-CLOSE-OTHERS',
    async run(trial) {
      const name = trial.freshName();
      const [store, other] = await trial.openPair(name);
      const third = await trial.open();
      const revision = await trial.write(store, 'one', undefined);
      const elsewhere = await trial.write(third, 'elsewhere', undefined);
      await trial.closeOne(store);
      await trial.expectStored(other, 'one', revision, 'a read after another store was closed');
      await trial.write(other, 'two', revision, 'a write after another store was closed');
      await trial.expectStored(third, 'elsewhere', elsewhere, 'a read of another ring after a store was closed');
    },
  },
];

function fits(trial: RingStoreTrial, document: string): boolean {
  return Buffer.byteLength(document) <= trial.subject.supports.maxDocumentBytes;
}

/** Characters from all over Unicode, without NUL and surrogates. */
function randomDocument({ random }: RingStoreTrial): string {
  const ranges = [
    [1, 0x7f],
    [0x80, 0x7ff],
    [0x800, 0xd7ff],
    [0x1_0000, 0x1_f9ff],
  ] as const;
  return Array.from({ length: 1 + random.below(200) }, () => {
    const [from, to] = random.pick(ranges);
    return String.fromCodePoint(from + random.below(to - from));
  }).join('');
}
