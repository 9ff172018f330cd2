import { setTimeout as pause } from 'node:timers/promises';
import { types } from 'node:util';
import type { RingStore } from '@sealring/core';
import { expectThat, must, should } from '../requirement.ts';
import { contentsOf, shows } from '../secrets.ts';
import { describeThrown, isObject, kindOf } from '../thrown.ts';
import { CONTRACT, ERRORS, KIT, type RingStoreRequirement } from './requirement.ts';
import { MAX_DOCUMENT_BYTES } from './target.ts';
import { type RingStoreTrial } from './trial.ts';

/** The caller's deadline for a backend that is out of reach, milliseconds; a store may have a shorter one of its own. */
const LONGEST_OUTAGE_MS = 8_000;
const SLACK_MS = 1_000;

/** What a store is made of, and what its calls answer with. */
export const ANSWER_REQUIREMENTS: readonly RingStoreRequirement[] = [
  must(
    'RING-SHAPE',
    'A store has a kind, read and write; watch and close, where present, are functions.',
    CONTRACT,
    async (trial) => {
      const store = await trial.open();
      expectThat(typeof store.kind === 'string' && store.kind !== '', `kind is ${kindOf(store.kind)}, not a name`);
      for (const name of ['watch', 'close'] as const) {
        const member: unknown = store[name];
        expectThat(
          member === undefined || typeof member === 'function',
          `${name} is ${kindOf(member)}, not a function`,
        );
      }
    },
  ),
  must(
    'RING-ASYNCHRONOUS',
    'read and write return promises: they reject and never throw synchronously.',
    CONTRACT,
    async (trial) => {
      const store = await trial.open();
      const signal = AbortSignal.abort();
      await trial.outcome(() => store.read(), 'a read');
      await trial.outcome(() => store.read({ signal }), 'an aborted read');
      await trial.outcome(() => store.write('x', { expected: undefined }), 'a write');
      await trial.outcome(() => store.write('x', { expected: undefined }), 'a write that conflicts');
      await trial.outcome(() => store.write('x', { expected: undefined, signal }), 'an aborted write');
      await trial.outcome(
        () => store.write('x'.repeat(MAX_DOCUMENT_BYTES + 1), { expected: undefined }),
        'a write that is too large',
      );
    },
  ),
  must(
    'RING-RESULT',
    'read resolves to undefined or { document, revision }, write to { revision }; all are strings.',
    CONTRACT,
    async (trial) => {
      const store = await trial.open();
      await trial.read(store, 'a read of an absent ring');
      const revision = await trial.write(store, 'one', undefined, 'a write that creates a ring');
      await trial.read(store, 'a read');
      await trial.write(store, 'two', revision, 'a write');
    },
  ),
  should(
    'RING-OWN-RESULT',
    'Changing the result of a read or a write changes nothing in the store.',
    KIT,
    async (trial) => {
      const store = await trial.open();
      let expected: string | undefined;
      for (const document of ['one', 'two']) {
        const written: unknown = await store.write(document, { expected });
        expected = isObject(written) ? String(written['revision']) : '';
        spoil(written);
        await trial.expectStored(store, document, expected, 'a read after the result of a write was changed');
        spoil(await store.read());
        await trial.expectStored(store, document, expected, 'a read after the result of another read was changed');
      }
    },
  ),
  should(
    'RING-ERROR-TEXT',
    'An error shows neither the document, nor a credential, nor a vendor’s error.',
    `${ERRORS}; F33`,
    async (trial) => {
      const store = await trial.open();
      const canary = Buffer.from(trial.random.bytes(12)).toString('hex');
      const most = trial.subject.supports.maxDocumentBytes;
      const revision = await trial.write(store, `${canary} one`, undefined);
      const calls = {
        'a conflict': () => store.write(`${canary} two`, { expected: undefined }),
        'a write that is too large': () =>
          store.write(canary.repeat(Math.ceil((most + 1) / canary.length)), { expected: revision }),
        'an aborted write': () => store.write(`${canary} two`, { expected: revision, signal: AbortSignal.abort() }),
        'an aborted read': () => store.read({ signal: AbortSignal.abort() }),
      };
      for (const [what, call] of Object.entries(calls)) {
        const outcome = await trial.outcome(call, what);
        if (outcome.status === 'rejected') expectDiscreet(outcome.error, canary, what);
      }
      if (trial.subject.breakConnection === undefined) return;
      const failures = await failuresOutOfReach(trial, store, `${canary} three`, revision);
      for (const [what, error] of failures) expectDiscreet(error, canary, what);
    },
  ),
];

/** Changes what can be changed. */
function spoil(result: unknown): void {
  if (isObject(result)) for (const name of ['document', 'revision']) Reflect.set(result, name, 'changed');
}

/** Errors that may be attached: they are held to the same. */
const OURS = ['RingStoreError', 'RingConflictError'];

/** What a driver has to know, in the forms in which it says so. */
const CREDENTIALS: readonly RegExp[] = [
  /:\/\/[^\s/@]*:[^\s/@]+@/,
  /\b(?:password|passwd|pwd|accountkey|sharedaccesssignature|sig|x-amz-signature|api[-_]?key)=[^\s;&]/i,
  /\bauthorization["']?\s*[:=]/i,
];

/** The errors of a store that has been used, and of one that has not, while nobody answers. */
async function failuresOutOfReach(
  trial: RingStoreTrial,
  store: RingStore,
  document: string,
  expected: string,
): Promise<readonly (readonly [string, unknown])[]> {
  const unused = await trial.open();
  await trial.breakConnection();
  const deadlineMs = Math.min(LONGEST_OUTAGE_MS, trial.patienceMs);
  const calls: readonly (readonly [string, (signal: AbortSignal) => unknown])[] = [
    ['a read', (signal) => store.read({ signal })],
    ['a write', (signal) => store.write(document, { expected, signal })],
    ['a first read', (signal) => unused.read({ signal })],
    ['a first write', (signal) => unused.write(document, { expected: undefined, signal })],
  ];
  const ended = await Promise.all(
    calls.map(async ([what, call]) => {
      const outcome = await Promise.race([
        trial.outcome(() => call(AbortSignal.timeout(deadlineMs)), what),
        // Whether it ends is for other requirements to say.
        pause(deadlineMs + SLACK_MS, undefined, { ref: false }),
      ]);
      return outcome?.status === 'rejected' ? [[`${what} out of reach of the backend`, outcome.error] as const] : [];
    }),
  );
  return ended.flat();
}

function expectDiscreet(error: unknown, canary: string, what: string): void {
  const name = describeThrown(error);
  const contents = contentsOf(error);
  expectThat(!shows(contents, Buffer.from(canary)), `the error of ${what}, ${name}, shows the document`);
  const isTelling = contents.texts.some((text) => CREDENTIALS.some((form) => form.test(text)));
  expectThat(!isTelling, `the error of ${what}, ${name}, shows what looks like a password or a signature`);
  if (!isObject(error)) return;
  const { cause } = error;
  expectThat(cause === undefined, `the error of ${what}, ${name}, has a cause: ${kindOf(cause)}`);
  const attached = Reflect.ownKeys(error)
    .flatMap((member) => Reflect.get(error, member))
    .find((value) => types.isNativeError(value) && !OURS.includes(value.name));
  expectThat(attached === undefined, `the error of ${what}, ${name}, holds another one: ${describeThrown(attached)}`);
}
