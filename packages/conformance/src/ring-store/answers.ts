import { setTimeout as pause } from 'node:timers/promises';
import { types } from 'node:util';
import type { RingStore } from '@sealring/core';
import { expectThat, Finding, must, NotApplicable, should } from '../requirement.ts';
import { contentsOf, shows } from '../secrets.ts';
import { describeThrown, isObject, kindOf } from '../thrown.ts';
import { MAX_DOCUMENT_BYTES } from './target.ts';
import { CONTRACT, DATE, ERRORS, isFailure, KIT, type RingStoreRequirement, type RingStoreTrial } from './trial.ts';

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
      await trial.promised(() => store.read(), 'a read');
      await trial.promised(() => store.read({ signal }), 'an aborted read');
      await trial.promised(() => store.write('x', { expected: undefined }), 'a write');
      await trial.promised(() => store.write('x', { expected: undefined }), 'a write that conflicts');
      await trial.promised(() => store.write('x', { expected: undefined, signal }), 'an aborted write');
      await trial.promised(
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
      const most = trial.supports.maxDocumentBytes;
      const revision = await trial.write(store, `${canary} one`, undefined);
      const calls = {
        'a conflict': () => store.write(`${canary} two`, { expected: undefined }),
        'a write that is too large': () =>
          store.write(canary.repeat(Math.ceil((most + 1) / canary.length)), { expected: revision }),
        'an aborted write': () => store.write(`${canary} two`, { expected: revision, signal: AbortSignal.abort() }),
        'an aborted read': () => store.read({ signal: AbortSignal.abort() }),
      };
      for (const [what, call] of Object.entries(calls)) {
        const outcome = await trial.promised(call, what);
        if ('error' in outcome) expectDiscreet(outcome.error, canary, what);
      }
      if (trial.target.breakConnection === undefined) return;
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
        trial.promised(() => call(AbortSignal.timeout(deadlineMs)), what),
        // Whether it ends is for other requirements to say.
        pause(deadlineMs + SLACK_MS, undefined, { ref: false }),
      ]);
      return outcome !== undefined && 'error' in outcome
        ? [[`${what} out of reach of the backend`, outcome.error] as const]
        : [];
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
  const outcome = await trial.promised(call, what);
  if ('value' in outcome) throw new Finding(`${what} resolved to ${kindOf(outcome.value)}`);
  const { error } = outcome;
  const isRight =
    (error instanceof Error && error.name === 'TypeError') || (mayBeCorrupt && isFailure(error, 'corrupt'));
  expectThat(isRight, `${what} rejected with ${describeThrown(error)}, not a TypeError`);
}

/** Less than a quarter of an hour, by which the nearest time zones differ. */
const FURTHEST_MS = 10 * 60 * 1_000;
/** Dates of HTTP are whole seconds: after this one has passed, milliseconds. */
const A_SECOND_MS = 1_200;

/** The date that the service puts on its answers. */
export const SERVICE_DATE_REQUIREMENTS: readonly RingStoreRequirement[] = [
  must(
    'RING-SERVICE-DATE',
    'Every read calls onServiceDate before it resolves, or none does, as the target says.',
    `${DATE}; F13`,
    async (trial) => {
      const declared = trial.supports.serviceDate;
      if (declared === undefined) throw new NotApplicable('supports.serviceDate is not declared');
      for (const { what, dates } of await reportedDates(trial)) {
        if (!declared) expectThat(dates.length === 0, `supports.serviceDate is false, and ${what} reported a date`);
        else if (what.startsWith('a read')) expectThat(dates.length > 0, `${what} resolved without a date`);
      }
    },
  ),
  must(
    'RING-SERVICE-DATE-VALID',
    'A reported date is a Date, of the answer, at most ten minutes from this clock.',
    `${DATE}; F13`,
    async (trial) => {
      const reported = await reportedDates(trial);
      for (const { what, dates } of reported) {
        for (const date of dates) {
          expectThat(types.isDate(date), `${what} reported ${kindOf(date)}, not a Date`);
          // For seconds taken as milliseconds, for a local time taken as UTC, and for invalid dates.
          const isNear = Math.abs(date.getTime() - Date.now()) < FURTHEST_MS;
          const shown = Number.isNaN(date.getTime()) ? 'an invalid date' : date.toISOString();
          expectThat(isNear, `${what} reported ${shown}, at ${new Date().toISOString()} of this clock`);
        }
      }
      if (reported.every(({ dates }) => dates.length === 0)) throw new NotApplicable('the store reported no date');
      await expectProgress(trial);
    },
  ),
];

/** A date that stands still is not that of the answer: of the document, of the connection, or of a cache. */
async function expectProgress(trial: RingStoreTrial): Promise<void> {
  const [absent, present] = [await trial.open(), await trial.open()];
  await trial.write(present, 'one', undefined);
  const looks = { 'a read of an absent ring': absent, 'a read of a ring': present };
  const first = new Map<string, unknown>();
  for (const waitMs of [0, A_SECOND_MS]) {
    await pause(waitMs);
    for (const [what, store] of Object.entries(looks)) {
      let last: unknown;
      await trial.read(store, what, { onServiceDate: (date) => void (last = date) });
      if (waitMs === 0) first.set(what, last);
      const before = first.get(what);
      if (waitMs === 0 || !types.isDate(last) || !types.isDate(before)) continue;
      const isLater = last.getTime() > before.getTime();
      expectThat(isLater, `${what} reported ${last.toISOString()} again, ${A_SECOND_MS} ms later`);
    }
  }
}

/** What each call had reported when it resolved. */
async function reportedDates(
  trial: RingStoreTrial,
): Promise<readonly { readonly what: string; readonly dates: readonly unknown[] }[]> {
  const stores = await trial.openPair();
  const reported: { readonly what: string; readonly dates: readonly unknown[] }[] = [];
  const noting = async (what: string, call: (onServiceDate: (date: Date) => void) => Promise<unknown>) => {
    const dates: unknown[] = [];
    await call((date) => void dates.push(date));
    reported.push({ what, dates: [...dates] });
  };
  const read = async (what: string): Promise<void> => {
    for (const store of [...stores, ...stores]) {
      await noting(what, (onServiceDate) => trial.read(store, what, { onServiceDate }));
    }
  };
  await read('a read of an absent ring');
  let revision: string | undefined;
  for (const what of ['a write that creates a ring', 'a write']) {
    await noting(what, async (onServiceDate) => {
      revision = await trial.write(stores[0], what, revision, what, { onServiceDate });
    });
  }
  await read('a read');
  return reported;
}
