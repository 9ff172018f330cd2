import { setTimeout as pause } from 'node:timers/promises';
import { types } from 'node:util';
import { expectThat, Finding, NotApplicable } from '../requirement.ts';
import { contentsOf, type Readable, shows } from '../secrets.ts';
import { describeThrown, isInstance, isObject, kindOf } from '../thrown.ts';
import type { Outcome } from '../trial.ts';
import { callsOf, outOfReach } from './reach.ts';
import { expectOneOf, isConflict, isFailure } from './stored-ring.ts';
import { MAX_DOCUMENT_BYTES } from './target.ts';
import type { RingStoreChecks, RingStoreTrial } from './trial.ts';

/** The caller's deadline for an unreachable backend, in milliseconds. A store may have a shorter one. */
const LONGEST_OUTAGE_MS = 8_000;
const SLACK_MS = 1_000;

export const ANSWER_CHECKS: RingStoreChecks = {
  'RING-SHAPE': async (trial) => {
    const store = await trial.open();
    expectThat(typeof store.kind === 'string' && store.kind !== '', `kind is ${kindOf(store.kind)}, not a name`);
    const { location } = store;
    const isText = location === undefined || typeof location === 'string';
    expectThat(isText, `location is ${kindOf(location)}, not a string`);
    const canary = canaryOf(trial);
    await trial.write(store, canary, undefined);
    await trial.read(store);
    for (const [what, text] of Object.entries({ kind: store.kind, location: store.location ?? '' })) {
      expectThat(!isTelling(text), `${what} contains text that looks like a password or a signature`);
      expectThat(!text.includes(canary), `${what} shows the document`);
    }
    for (const name of ['watch', 'close'] as const) {
      const member: unknown = store[name];
      expectThat(member === undefined || typeof member === 'function', `${name} is ${kindOf(member)}, not a function`);
    }
  },
  'RING-ASYNCHRONOUS': async (trial) => {
    const store = await trial.open();
    const signal = AbortSignal.abort();
    const tooLarge = 'x'.repeat(MAX_DOCUMENT_BYTES + 1);
    await trial.promised(() => store.read(), 'a read');
    await trial.promised(() => store.read({ signal }), 'an aborted read');
    await trial.promised(() => store.write('x', { expected: undefined }), 'a write');
    await trial.promised(() => store.write('x', { expected: undefined }), 'a write that conflicts');
    await trial.promised(() => store.write('x', { expected: undefined, signal }), 'an aborted write');
    await trial.promised(() => store.write(tooLarge, { expected: undefined }), 'a write that is too large');
  },
  'RING-RESULT': async (trial) => {
    const store = await trial.open();
    const { signal } = new AbortController();
    let revision: string | undefined;
    for (const [how, options] of Object.entries({
      '': {},
      ' with frozen options': Object.freeze({}),
      ' with all options, frozen,': Object.freeze({ signal, onServiceDate: () => undefined }),
    })) {
      await trial.read(store, `a read${how}`, options);
      revision = await trial.write(store, `one${how}`, revision, `a write${how}`, options);
      await trial.read(store, `a read after a write${how}`);
    }
  },
  'RING-OWN-RESULT': async (trial) => {
    const store = await trial.open();
    let expected: string | undefined;
    for (const document of ['one', 'two']) {
      const options = { expected };
      const written: unknown = await store.write(document, options);
      const isSame = Object.keys(options).length === 1 && options.expected === expected;
      expectThat(isSame, 'a write modified its options');
      expected = isObject(written) ? String(written['revision']) : '';
      spoil(written);
      await trial.expectStored(store, document, expected, 'a read after the result of a write was changed');
      spoil(await store.read());
      await trial.expectStored(store, document, expected, 'a read after the result of another read was changed');
    }
  },
  'RING-ERROR-SECRET': async (trial) => {
    const canary = canaryOf(trial);
    for (const [what, error] of await errorsAbout(trial, canary)) {
      const texts = ['message', 'detail', 'serviceCode', 'location'].map((name) =>
        isObject(error) ? error[name] : error,
      );
      expectSilent({ texts: texts.filter((text) => typeof text === 'string'), bytes: [] }, canary, error, what);
    }
  },
  'RING-ERROR-TEXT': async (trial) => {
    const canary = canaryOf(trial);
    for (const [what, error] of await errorsAbout(trial, canary)) expectDiscreet(error, canary, what);
  },
  'RING-ERROR-INSTANCE': async (trial) => {
    for (const [what, error] of await errorsAbout(trial, canaryOf(trial))) {
      const code = isConflict(error) ? 'ERR_RING_CONFLICT' : isFailure(error) ? 'ERR_RING_STORE' : undefined;
      const isOther = code !== undefined && !isInstance(error as Error, code);
      expectThat(
        !isOther,
        `the error of ${what} is named ${(error as Error).name}, but is not an instance of that class`,
      );
    }
  },
  'RING-WRITE-ARGUMENTS': async (trial) => {
    for (const isThere of [false, true]) {
      const [store, other] = await trial.openPair();
      const ring = isThere ? { document: 'one', revision: await trial.write(store, 'one', undefined) } : undefined;
      for (const [name, given] of isThere ? [...NO_DOCUMENTS, ...NO_EXPECTATIONS] : NO_DOCUMENTS) {
        const what = `a write with ${name}`;
        const call = () => Reflect.apply(Reflect.get(store, 'write'), store, given(ring?.revision));
        const outcome = await trial.promised(call, what);
        if ('value' in outcome) throw new Finding(`${what} resolved to ${kindOf(outcome.value)}`);
        await trial.expectFound(other, ring, `a read after ${what}`);
      }
    }
  },
  'RING-READ-ARGUMENTS': async (trial) => {
    const store = await trial.open();
    const ring = { document: 'one', revision: await trial.write(store, 'one', undefined) };
    for (const given of [null, 'x', 1]) {
      const what = `a read with ${kindOf(given)} as options`;
      const outcome = await trial.promised(() => Reflect.apply(Reflect.get(store, 'read'), store, [given]), what);
      if ('value' in outcome) expectOneOf(outcome.value, [ring], what);
    }
  },
  'RING-SERVICE-DATE': async (trial) => {
    const declared = trial.supports.serviceDate;
    if (declared === undefined) throw new NotApplicable('supports.serviceDate is not declared');
    for (const { what, dates } of await reportedDates(trial, [0])) {
      if (!declared) expectThat(dates.length === 0, `supports.serviceDate is false, but ${what} reported a date`);
      else if (what.startsWith('a read')) expectThat(dates.length > 0, `${what} resolved without a date`);
    }
  },
  'RING-SERVICE-DATE-VALID': async (trial) => {
    const reported = await reportedDates(trial, [0, A_SECOND_MS]);
    for (const { what, dates, at, before } of reported) {
      for (const date of dates) {
        expectThat(types.isDate(date), `${what} reported ${kindOf(date)}, not a Date`);
        // Detects seconds used as milliseconds, local time used as UTC, and invalid dates.
        const isNear = Math.abs(date.getTime() - at) < FURTHEST_MS;
        const shown = Number.isNaN(date.getTime()) ? 'an invalid date' : date.toISOString();
        expectThat(isNear, `${what} reported ${shown} when this clock showed ${new Date(at).toISOString()}`);
        // A constant date does not come from the response, but from the document, the connection or a cache.
        const isLater = !before.some((one) => types.isDate(one) && one.getTime() >= date.getTime());
        expectThat(isLater, `${what} reported ${shown} again, ${A_SECOND_MS} ms later`);
      }
    }
    expectOfAnswer(reported);
    if (reported.every(({ dates }) => dates.length === 0)) throw new NotApplicable('the store reported no date');
    if (trial.target.breakConnection !== undefined) await expectNoDates(trial);
  },
};

function canaryOf({ random }: RingStoreTrial): string {
  return Buffer.from(random.bytes(12)).toString('hex');
}

/** The errors of all kinds of failing calls, while a document with the canary is stored or being written. */
async function errorsAbout(trial: RingStoreTrial, canary: string): Promise<readonly (readonly [string, unknown])[]> {
  const store = await trial.open();
  const most = trial.supports.maxDocumentBytes;
  const revision = await trial.write(store, `${canary} one`, undefined);
  const long = canary.repeat(Math.ceil((most + 1) / canary.length));
  const calls: Record<string, () => unknown> = {
    'a conflict': () => store.write(`${canary} two`, { expected: undefined }),
    'a write that is too large': () => store.write(long, { expected: revision }),
    'an aborted write': () => store.write(`${canary} two`, { expected: revision, signal: AbortSignal.abort() }),
    'an aborted read': () => store.read({ signal: AbortSignal.abort() }),
  };
  if (trial.target.plant !== undefined && most === MAX_DOCUMENT_BYTES) {
    const name = trial.freshName();
    await trial.plant(name, long);
    const planted = await trial.open(name);
    calls['a read that is too large'] = () => planted.read();
  }
  const outcomes: (readonly [string, Outcome | undefined])[] = [];
  for (const [what, call] of Object.entries(calls)) outcomes.push([what, await trial.promised(call, what)]);
  if (trial.target.breakConnection !== undefined) {
    const unused = await trial.open();
    await trial.breakConnection();
    const deadlineMs = Math.min(LONGEST_OUTAGE_MS, trial.patienceMs);
    const lost = callsOf(store, unused, `${canary} three`, revision);
    outcomes.push(...(await outOfReach(trial, deadlineMs, SLACK_MS, lost)));
  }
  // Other requirements check that these calls end and fail.
  return outcomes.flatMap(([what, one]) => (one !== undefined && 'error' in one ? [[what, one.error] as const] : []));
}

function spoil(result: unknown): void {
  if (isObject(result)) for (const name of ['document', 'revision']) Reflect.set(result, name, 'changed');
}

/** Names of errors that may be attached to an error, because they must meet the same requirements. */
const OURS = ['RingStoreError', 'RingConflictError'];

/** Patterns of the credentials that errors of drivers show. */
const CREDENTIALS: readonly RegExp[] = [
  /:\/\/[^\s/@]*:[^\s/@]+@/,
  /\b(?:password|passwd|pwd|accountkey|sharedaccesssignature|sig|x-amz-signature|api[-_]?key)=[^\s;&]/i,
  /\bauthorization["']?\s*[:=]/i,
];

function isTelling(text: string): boolean {
  return CREDENTIALS.some((form) => form.test(text));
}

function expectSilent(contents: Readable, canary: string, error: unknown, what: string): void {
  const whose = `the error of ${what}, ${describeThrown(error)},`;
  expectThat(!shows(contents, Buffer.from(canary)), `${whose} shows the document`);
  expectThat(!contents.texts.some(isTelling), `${whose} shows text that looks like a password or a signature`);
}

/** Expects that an error shows neither the document nor a credential, and that no foreign error is attached to it. */
export function expectDiscreet(error: unknown, canary: string, what: string): void {
  const name = describeThrown(error);
  expectSilent(contentsOf(error), canary, error, what);
  if (!isObject(error)) return;
  const { cause } = error;
  expectThat(cause === undefined, `the error of ${what}, ${name}, has a cause, ${kindOf(cause)}`);
  const attached = Reflect.ownKeys(error)
    .flatMap((member) => Reflect.get(error, member))
    .find((value) => types.isNativeError(value) && !OURS.includes(value.name));
  const words = `the error of ${what}, ${name}, contains another error: ${describeThrown(attached)}`;
  expectThat(attached === undefined, words);
}

type WrongWrite = readonly [name: string, given: (expected: string | undefined) => readonly unknown[]];

const NO_DOCUMENTS: readonly WrongWrite[] = [
  ['no document', (expected) => [undefined, { expected }]],
  ['a number', (expected) => [1, { expected }]],
  ['an object', (expected) => [{ keys: [] }, { expected }]],
];

const NO_EXPECTATIONS: readonly WrongWrite[] = [
  ['no options', () => ['x']],
  ['options without expected', () => ['x', {}]],
  ['null as expected', () => ['x', { expected: null }]],
  ['a number as expected', () => ['x', { expected: 1 }]],
];

/** Expects calls to an unreachable backend not to report a date. */
async function expectNoDates(trial: RingStoreTrial): Promise<void> {
  const [store, unused] = await trial.openPair();
  const expected = await trial.write(store, 'one', undefined);
  await trial.breakConnection();
  let count = 0;
  const onServiceDate = (): void => void count++;
  await outOfReach(trial, A_SECOND_MS, SLACK_MS, [
    ['a read', (signal) => store.read({ signal, onServiceDate })],
    ['a write', (signal) => store.write('two', { expected, signal, onServiceDate })],
    ['a first read', (signal) => unused.read({ signal, onServiceDate })],
  ]);
  expectThat(count === 0, 'a call to an unreachable backend reported a date');
}

/**
 * The largest accepted deviation of a date, in milliseconds. It is less than 15 minutes, the smallest difference
 * between time zones.
 */
const FURTHEST_MS = 10 * 60 * 1_000;
/** Milliseconds to wait so that two HTTP dates, which are in whole seconds, differ. */
const A_SECOND_MS = 1_200;

interface Reported {
  readonly what: string;
  readonly dates: readonly unknown[];
  /** When the call began and when it had ended (`at`), by the local clock. */
  readonly began: number;
  readonly at: number;
  /** The dates that the same read reported earlier. */
  readonly before: readonly unknown[];
}

/** How much earlier than its response a date in whole seconds can be, in milliseconds. */
const ROUNDING_MS = 1_050;

/**
 * @throws {Finding} if a date belongs to an earlier response: if it is before the start of its call, by the clock that
 * gave the other dates.
 */
function expectOfAnswer(reported: readonly Reported[]): void {
  const all = reported.flatMap(({ dates, ...rest }) => dates.map((date) => ({ ...rest, ms: Number(date) })));
  const ahead = Math.max(...all.map(({ ms, at }) => ms - at));
  for (const { what, ms, began } of all) {
    const lateMs = began + ahead - ms;
    expectThat(lateMs < ROUNDING_MS, `${what} reported a date ${Math.round(lateMs)} ms before it began`);
  }
}

/** The dates that reads and writes report; after each of the waits, the same reads are repeated. */
async function reportedDates(trial: RingStoreTrial, waitsMs: readonly number[]): Promise<readonly Reported[]> {
  const rings = { 'a read of an absent ring': await trial.openPair(), 'a read': await trial.openPair() };
  const reported: Reported[] = [];
  const live: unknown[][] = [];
  const noting = async (
    what: string,
    call: (onServiceDate: (date: Date) => void) => Promise<unknown>,
    before: readonly unknown[] = [],
  ): Promise<readonly unknown[]> => {
    const dates: unknown[] = [];
    const began = Date.now();
    await call((date) => void dates.push(date));
    reported.push({ what, dates: [...dates], began, at: Date.now(), before });
    live.push(dates);
    return [...dates];
  };
  const { signal } = new AbortController();
  const look = async (before: readonly (readonly unknown[])[] = []): Promise<readonly (readonly unknown[])[]> => {
    const seen: (readonly unknown[])[] = [];
    for (const [what, stores] of Object.entries(rings)) {
      const reads = [...stores, ...stores].map((store, i) =>
        noting(
          what,
          (onServiceDate) => trial.read(store, what, { onServiceDate, ...(i % 2 === 1 && { signal }) }),
          before[seen.length + i],
        ),
      );
      seen.push(...(await trial.all(reads)));
    }
    return seen;
  };
  await look();
  let revision: string | undefined;
  for (const what of ['a write that creates a ring', 'a write']) {
    await noting(what, async (onServiceDate) => {
      revision = await trial.write(rings['a read'][0], what, revision, what, { onServiceDate });
    });
  }
  let before: readonly (readonly unknown[])[] = [];
  for (const waitMs of waitsMs) {
    // Without earlier dates there is nothing to compare, so no wait is needed.
    await pause(live.some(({ length }) => length > 0) ? waitMs : 0);
    before = await look(before);
  }
  for (const store of Object.values(rings).flat()) await trial.read(store);
  const isOver = live.every(({ length }, i) => length === reported[i]?.dates.length);
  expectThat(isOver, 'a call reported a date after it had ended, or the date of another call');
  return reported;
}
