import { setTimeout as pause } from 'node:timers/promises';
import { types } from 'node:util';
import { expectThat, Finding, NotApplicable } from '../requirement.ts';
import { contentsOf, shows } from '../secrets.ts';
import { describeThrown, isObject, kindOf } from '../thrown.ts';
import { callsOf, outOfReach } from './outages.ts';
import { MAX_DOCUMENT_BYTES } from './target.ts';
import { isFailure, type RingStoreChecks, type RingStoreTrial } from './trial.ts';

/** The caller's deadline for a backend that is out of reach, milliseconds; a store may have a shorter one of its own. */
const LONGEST_OUTAGE_MS = 8_000;
const SLACK_MS = 1_000;

export const ANSWER_CHECKS: RingStoreChecks = {
  'RING-SHAPE': async (trial) => {
    const store = await trial.open();
    expectThat(typeof store.kind === 'string' && store.kind !== '', `kind is ${kindOf(store.kind)}, not a name`);
    const { location } = store;
    const isText = location === undefined || typeof location === 'string';
    expectThat(isText, `location is ${kindOf(location)}, not a text`);
    expectThat(!isTelling(location ?? ''), 'location has what looks like a password or a signature');
    for (const name of ['watch', 'close'] as const) {
      const member: unknown = store[name];
      expectThat(member === undefined || typeof member === 'function', `${name} is ${kindOf(member)}, not a function`);
    }
  },
  'RING-ASYNCHRONOUS': async (trial) => {
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
  'RING-RESULT': async (trial) => {
    const store = await trial.open();
    await trial.read(store, 'a read of an absent ring');
    const revision = await trial.write(store, 'one', undefined, 'a write that creates a ring');
    await trial.read(store, 'a read');
    await trial.write(store, 'two', revision, 'a write');
  },
  'RING-OWN-RESULT': async (trial) => {
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
  'RING-ERROR-TEXT': async (trial) => {
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
    if (trial.target.plant !== undefined && most === MAX_DOCUMENT_BYTES) {
      const name = trial.freshName();
      await trial.plant(name, canary.repeat(Math.ceil((most + 1) / canary.length)));
      const [planted, what] = [await trial.open(name), 'a read that is too large'];
      const outcome = await trial.promised(() => planted.read(), what);
      if ('error' in outcome) expectDiscreet(outcome.error, canary, what);
    }
    if (trial.target.breakConnection === undefined) return;
    const unused = await trial.open();
    await trial.breakConnection();
    const deadlineMs = Math.min(LONGEST_OUTAGE_MS, trial.patienceMs);
    const lost = callsOf(store, unused, `${canary} three`, revision);
    for (const [what, outcome] of await outOfReach(trial, deadlineMs, SLACK_MS, lost)) {
      // Whether it ends is for other requirements to say.
      if (outcome !== undefined && 'error' in outcome) expectDiscreet(outcome.error, canary, what);
    }
  },
};

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

function isTelling(text: string): boolean {
  return CREDENTIALS.some((form) => form.test(text));
}

/** Neither what was to be kept, nor what a driver knows. */
export function expectDiscreet(error: unknown, canary: string, what: string): void {
  const name = describeThrown(error);
  const contents = contentsOf(error);
  expectThat(!shows(contents, Buffer.from(canary)), `the error of ${what}, ${name}, shows the document`);
  expectThat(
    !contents.texts.some(isTelling),
    `the error of ${what}, ${name}, shows what looks like a password or a signature`,
  );
  if (!isObject(error)) return;
  const { cause } = error;
  expectThat(cause === undefined, `the error of ${what}, ${name}, has a cause: ${kindOf(cause)}`);
  const attached = Reflect.ownKeys(error)
    .flatMap((member) => Reflect.get(error, member))
    .find((value) => types.isNativeError(value) && !OURS.includes(value.name));
  expectThat(attached === undefined, `the error of ${what}, ${name}, holds another one: ${describeThrown(attached)}`);
}

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

export const ARGUMENT_CHECKS: RingStoreChecks = {
  'RING-WRITE-ARGUMENTS': async (trial) => {
    const [store, other] = await trial.openPair();
    for (const [name, given] of WRITES) {
      const what = `a write with ${name}`;
      const call = () => Reflect.apply(Reflect.get(store, 'write'), store, given);
      await expectTypeError(trial, call, what, NO_DOCUMENTS.includes(name));
      await trial.expectAbsent(other, `a read after ${what}`);
    }
  },
  'RING-READ-ARGUMENTS': async (trial) => {
    const store = await trial.open();
    for (const given of [null, 'x', 1]) {
      const call = () => Reflect.apply(Reflect.get(store, 'read'), store, [given]);
      await expectTypeError(trial, call, `a read with ${kindOf(given)} for options`);
    }
  },
};

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

export const SERVICE_DATE_CHECKS: RingStoreChecks = {
  'RING-SERVICE-DATE': async (trial) => {
    const declared = trial.supports.serviceDate;
    if (declared === undefined) throw new NotApplicable('supports.serviceDate is not declared');
    for (const { what, dates } of await reportedDates(trial)) {
      if (!declared) expectThat(dates.length === 0, `supports.serviceDate is false, and ${what} reported a date`);
      else if (what.startsWith('a read')) expectThat(dates.length > 0, `${what} resolved without a date`);
    }
  },
  'RING-SERVICE-DATE-VALID': async (trial) => {
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
};

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
