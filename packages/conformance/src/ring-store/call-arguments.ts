import { expectThat, should } from '../requirement.ts';
import { describeThrown, kindOf } from '../thrown.ts';
import { KIT, type RingStoreRequirement } from './requirement.ts';
import { type RingStoreTrial } from './trial.ts';

/** Calls that TypeScript rejects. */
const WRITES: readonly (readonly [string, readonly unknown[]])[] = [
  ['no document', [undefined, { expected: undefined }]],
  ['a number', [1, { expected: undefined }]],
  ['bytes', [Buffer.from('x'), { expected: undefined }]],
  ['an object', [{ keys: [] }, { expected: undefined }]],
  ['an empty document', ['', { expected: undefined }]],
  ['a lone surrogate', ['\ud800', { expected: undefined }]],
  ['no options', ['x']],
  ['an expectation left out', ['x', {}]],
  ['a null expectation', ['x', { expected: null }]],
  ['a number for an expectation', ['x', { expected: 1 }]],
];

/** No document at all: as wrong as an argument as it is corrupt as a document. */
const NO_DOCUMENTS = ['an empty document', 'a lone surrogate'];

/** The caller's mistakes. */
export const ARGUMENT_REQUIREMENTS: readonly RingStoreRequirement[] = [
  should(
    'RING-WRITE-ARGUMENTS',
    'A write without a document, or without expected, rejects with a TypeError.',
    `${KIT}; F17`,
    async (trial) => {
      const [store, other] = await trial.openPair();
      for (const [name, given] of WRITES) {
        const what = `a write with ${name}`;
        const call = () => Reflect.apply(Reflect.get(store, 'write'), store, given);
        await expectTypeError(trial, call, what, NO_DOCUMENTS.includes(name));
        await trial.expectAbsent(other, `a read after ${what}`);
      }
    },
  ),
  should(
    'RING-READ-ARGUMENTS',
    'A read with options that are not an object rejects with a TypeError.',
    `${KIT}; F17`,
    async (trial) => {
      const store = await trial.open();
      for (const given of [null, 'x', 1]) {
        const call = () => Reflect.apply(Reflect.get(store, 'read'), store, [given]);
        await expectTypeError(trial, call, `a read with ${kindOf(given)} for options`);
      }
    },
  ),
];

async function expectTypeError(
  trial: RingStoreTrial,
  call: () => unknown,
  what: string,
  mayBeCorrupt = false,
): Promise<void> {
  const outcome = await trial.outcome(call, what);
  if (outcome.status === 'resolved') expectThat(false, `${what} resolved to ${kindOf(outcome.value)}`);
  else
    expectThat(
      isTypeError(outcome.error) || (mayBeCorrupt && isCorrupt(outcome.error)),
      `${what} rejected with ${describeThrown(outcome.error)}, not a TypeError`,
    );
}

function isCorrupt(error: unknown): boolean {
  return error instanceof Error && error.name === 'RingStoreError' && Reflect.get(error, 'kind') === 'corrupt';
}

function isTypeError(error: unknown): boolean {
  return error instanceof Error && error.name === 'TypeError';
}
