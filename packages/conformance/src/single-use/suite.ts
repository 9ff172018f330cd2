import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import * as v from 'valibot';
import { aFunction, anObject, aText, type ConformanceOptions, checkArgument } from '../options.ts';
import {
  type Checks,
  type ConformanceReport,
  expectThat,
  type Requirement,
  type RequirementTable,
  requiredBy,
} from '../requirement.ts';
import { expectDiscreet } from '../ring-store/answers.ts';
import { type Suite, suiteOf, type TestRunner } from '../run.ts';
import { describeThrown, kindOf } from '../thrown.ts';
import { CLOSE_MS, type Outcome, Trial, within } from '../trial.ts';

/** A `SingleUseStore` of `@sealring/mcp`. */
export interface SingleUseStoreLike {
  /** Its margin, if the store reports it; it must equal that of the target. */
  readonly clockSkewSeconds?: number;
  claim(id: string, expiresAt: Date): Promise<boolean>;
  close?(): Promise<void> | void;
}

/** A store and its close function. */
export interface SingleUseInstance {
  readonly store: SingleUseStoreLike;
  /** Default: the store's own `close`, if it has one. */
  close?(): Promise<void> | void;
}

/** The single-use store under test. The kit claims ids that no earlier run used. */
export interface SingleUseTarget {
  readonly name: string;
  /** Creates a store on its own connections; all stores share their claims. */
  create(): Promise<SingleUseInstance> | SingleUseInstance;
  /** Makes the backend unreachable, for existing and future stores; resolves to a function that restores it. */
  breakConnection?(): Promise<() => Promise<void> | void>;
  /** The margin of the store, as `policy.clockSkewSeconds` of the ring. Seconds, 0 to 86 400. Default 300. */
  readonly clockSkewSeconds?: number;
}

const BOUNDS = 'must be a number from 0 to 86400';

const TARGET = anObject({
  name: aText,
  create: aFunction,
  breakConnection: v.optional(aFunction),
  clockSkewSeconds: v.optional(v.pipe(v.number(BOUNDS), v.minValue(0, BOUNDS), v.maxValue(86_400, BOUNDS))),
});

const DEFAULT_CLOCK_SKEW_SECONDS = 300;

/** The tools of a check: new ids, and stores to claim them with. */
class SingleUseTrial extends Trial {
  readonly clockSkewSeconds: number;
  readonly #target: SingleUseTarget;

  constructor(target: SingleUseTarget, seed: number) {
    super(seed);
    this.#target = target;
    this.clockSkewSeconds = target.clockSkewSeconds ?? DEFAULT_CLOCK_SKEW_SECONDS;
  }

  freshId(): string {
    return randomBytes(32).toString('base64url');
  }

  open(): Promise<SingleUseStoreLike> {
    return this.start<SingleUseStoreLike>('create', () => this.#target.create(), 'store', ['claim']);
  }

  protected override closeByItself(made: object): unknown {
    return (made as SingleUseStoreLike).close?.();
  }

  /** @param end - A date, or seconds from now. */
  async claim(store: SingleUseStoreLike, id: string, end: number | Date): Promise<boolean> {
    const date = typeof end === 'number' ? new Date(Date.now() + end * 1_000) : end;
    const outcome = await this.promised(() => store.claim(id, date), 'a claim');
    if ('error' in outcome) throw outcome.error;
    const { value } = outcome;
    expectThat(typeof value === 'boolean', `a claim resolved to ${kindOf(value)}, neither true nor false`);
    return value;
  }

  /** The outcome of a claim that must not resolve to true: false or an error. */
  async refused(store: SingleUseStoreLike, id: unknown, expiresAt: unknown, what: string): Promise<Outcome> {
    const call = (): unknown => Reflect.apply(Reflect.get(store, 'claim'), store, [id, expiresAt]);
    const outcome = await this.promised(call, what);
    const isGranted = 'value' in outcome && outcome.value !== false;
    expectThat(!isGranted, `${what} resolved to ${'value' in outcome ? kindOf(outcome.value) : ''}`);
    return outcome;
  }

  /** Breaks the connection until the end of the check. @throws {NotApplicable} if the target cannot. */
  breakConnection(): Promise<void> {
    return this.breakBy(this.#target);
  }
}

const CONTRACT = 'SingleUseStore of @sealring/mcp (single-use.ts)';
const CLAIMS = 40;
const LONGEST_ID = 256;
/** Longer than 2^31 milliseconds, and than 2^31 seconds since 1970: a month, and 30 years. */
const FAR_SECONDS: readonly number[] = [31 * 86_400, 30 * 365 * 86_400];
const PATIENCE_MS = 20_000;
const LOOK_AGAIN_MS = 50;
const STORES = 4;
const ROUNDS = 10;
/** Part of a margin that calls and the clock of a service may use up, seconds. */
const SLACK_SECONDS = 5;
/** Number of ids that a store must hold. It may refuse more, but must not forget any. */
const LEAST_ROOM = 1_000;
const MANY = 12_000;
const MANY_MS = 3_000;
const KINDS: readonly unknown[] = ['unavailable', 'denied', 'corrupt', 'too-large', 'read-only'];

/** An end in ten minutes. */
const soon = (): Date => new Date(Date.now() + 600_000);

const { must, should } = requiredBy(CONTRACT);

/** The requirements for single-use stores, in the order of the checks. */
const SINGLE_USE_TABLE: RequirementTable = {
  'USE-ANSWER': must('claim returns a promise of true or false.'),
  'USE-ONE-WINNER': must('Of many concurrent claims of an id over several stores, exactly one resolves to true.'),
  'USE-ONCE': must('A claimed id is refused on every store, whatever end the later claim gives.'),
  'USE-MANY': must('A thousand ids are granted, and no later claim makes a store forget one.'),
  'USE-SEPARATE': must('Ids that differ are claimed independently, however similar they are.'),
  'USE-CLOCK-SKEW': must(
    'A claim is remembered past its end for as long as two clocks may differ.',
    `${CONTRACT}: the margin; F48`,
  ),
  'USE-PAST-END': must('After the end and the margin, no claim resolves to true.', `${CONTRACT}; F48`),
  'USE-ARGUMENTS': must(
    'An id that is not a text of 1 to 256 characters, or an invalid date, rejects with a TypeError or RangeError.',
  ),
  'USE-CALLERS-DATE': should('claim does not modify its date or read it after returning.'),
  'USE-CLOSED': must('After a store is closed, all stores still refuse the ids that it claimed.'),
  'USE-INSTANCE-CLOSES': must('Closing a store completes, through the target’s close or else its own.'),
  // Last, since a backend may not recover.
  'USE-UNREACHABLE': must(
    'While the backend is unreachable, no claim resolves to true.',
    `${CONTRACT}: a store that cannot determine whether; F9`,
  ),
  'USE-RECOVERS': must('After an outage, the store works again and still has its claims.', `${CONTRACT}; F31`),
  'USE-ERROR': must(
    'A claim with an unknown outcome resolves to false, or rejects with SingleUseStoreError in fixed words.',
  ),
};

const SINGLE_USE_CHECKS: Checks<SingleUseTrial> = {
  'USE-ANSWER': async (trial) => {
    const store = await trial.open();
    const id = trial.freshId();
    expectThat(await trial.claim(store, id, 600), 'the first claim of an id resolved to false');
    await trial.claim(store, id, 600);
    await trial.claim(store, trial.freshId(), -86_400 - trial.clockSkewSeconds);
  },
  'USE-ONE-WINNER': async (trial) => {
    const stores = await Promise.all(Array.from({ length: STORES }, () => trial.open()));
    for (let round = 0; round < ROUNDS; round++) {
      const id = trial.freshId();
      const claims = Array.from({ length: CLAIMS / STORES }, () => stores.map((store) => trial.claim(store, id, 600)));
      const won = (await Promise.all(claims.flat())).filter(Boolean).length;
      expectThat(won === 1, `of ${CLAIMS} concurrent claims, ${won} resolved to true`);
    }
  },
  'USE-ONCE': async (trial) => {
    const [store, other] = [await trial.open(), await trial.open()];
    const id = trial.freshId();
    expectThat(await trial.claim(store, id, 600), 'the first claim of an id resolved to false');
    for (const seconds of [600, 60, 6_000]) {
      for (const again of [store, other]) {
        const won = await trial.claim(again, id, seconds);
        expectThat(!won, `an id that ends in 600 s was claimed again, as one that ends in ${seconds} s`);
      }
    }
    for (const seconds of FAR_SECONDS) {
      const far = trial.freshId();
      expectThat(await trial.claim(store, far, seconds), `an id that ends in ${seconds} s was refused`);
      expectThat(!(await trial.claim(other, far, seconds)), `an id that ends in ${seconds} s was claimed again`);
    }
    const [kept, date] = [trial.freshId(), soon()];
    await trial.promised(() => store.claim(kept, date), 'a claim');
    date.setTime(0);
    for (const again of [store, other]) {
      expectThat(!(await trial.claim(again, kept, 600)), 'an id was claimed again after its date had been changed');
    }
  },
  'USE-MANY': async (trial) => {
    const stores = [await trial.open(), await trial.open()];
    const claimed: string[] = [];
    const until = performance.now() + MANY_MS;
    let isFull = false;
    while (claimed.length < MANY && performance.now() < until && !isFull) {
      const ids = Array.from({ length: 2 * CLAIMS }, () => trial.freshId());
      const hasRoom = claimed.length >= LEAST_ROOM;
      const claims = ids.map(async (id, i) => {
        const claim = trial.claim(stores[i % 2] as SingleUseStoreLike, id, 600);
        // A full store may resolve to false or reject.
        return hasRoom ? claim.catch(() => false) : claim;
      });
      const won = await trial.all(claims);
      isFull = won.includes(false);
      expectThat(!isFull || hasRoom, `an unclaimed id was refused after ${claimed.length} others`);
      claimed.push(...ids.filter((_, i) => won[i]));
    }
    const step = Math.ceil(claimed.length / (5 * CLAIMS));
    for (const ids of batches(claimed.filter((_, i) => i % step === 0 || i < CLAIMS))) {
      const again = ids.map((id, i) => trial.claim(stores[i % 2] as SingleUseStoreLike, id, 600).catch(() => false));
      const won = (await trial.all(again)).filter(Boolean).length;
      expectThat(won === 0, `of ${claimed.length} ids, ${won} of ${ids.length} were claimed again`);
    }
    return `${claimed.length} ids were claimed`;
  },
  'USE-SEPARATE': async (trial) => {
    const store = await trial.open();
    const id = `Aa${trial.freshId().slice(2)}`;
    const number = `7${trial.random.below(2 ** 31)}`;
    const long = id.padEnd(LONGEST_ID, 'x');
    const half = Math.floor(id.length / 2);
    const alike = [
      id,
      `aA${id.slice(2)}`,
      `${id.slice(0, -1)}${id.endsWith('-') ? '_' : '-'}`,
      id.slice(0, -1),
      id.slice(1),
      `${id.slice(0, half)}${id.charAt(half) === 'x' ? 'y' : 'x'}${id.slice(half + 1)}`,
      ...ALIKE.flatMap((more) => [id + more, more + id, id.slice(0, half) + more + id.slice(half)]),
      Array.from(id).toReversed().join(''),
      number,
      ...['0', '+', '0x'].map((sign) => sign + number),
      ...['.0', 'e0'].map((end) => number + end),
      ...['1', '2', '\u4e2d', '\u6587'].map((end) => long.slice(0, -1) + end),
      id + '\u4e2d'.repeat(LONGEST_ID - id.length),
    ];
    for (const some of batches(alike)) {
      const won = await trial.all(some.map((one) => trial.claim(store, one, 600)));
      const refused = some[won.indexOf(false)] ?? '';
      expectThat(!won.includes(false), `${JSON.stringify(refused)} was refused because of similar ids`);
    }
    // Some services cannot store these: an error is allowed, but not confusion with another id.
    for (const more of ['\0', '\0x', '\ud800', '\udc00', '\ufffd']) {
      const outcome = await trial.promised(() => store.claim(id + more, soon()), 'a claim');
      const isTaken = 'value' in outcome && outcome.value !== true;
      expectThat(!isTaken, `an id that ends in ${JSON.stringify(more)} was confused with the id without it`);
    }
    await namesOfMembers(trial, store);
  },
  'USE-CLOCK-SKEW': async (trial) => {
    const { clockSkewSeconds } = trial;
    const [ahead, behind] = [await trial.open(), await trial.open()];
    const told: unknown = ahead.clockSkewSeconds;
    // A boundary relies on this value.
    expectThat(
      told === undefined || told === clockSkewSeconds,
      `the store reports a clockSkewSeconds other than its configured ${clockSkewSeconds}`,
    );
    // A server with a fast clock redeems a token, and one with a slow clock receives it again.
    const claimAgain = async (seconds: number, waitMs: number): Promise<boolean> => {
      const id = trial.freshId();
      const when = seconds < 0 ? `ended ${-seconds} s ago` : `ends in ${seconds} s`;
      expectThat(await trial.claim(ahead, id, seconds), `the first claim of an id that ${when} resolved to false`);
      await pause(waitMs);
      // Claims may remove expired ids.
      await trial.claim(behind, trial.freshId(), clockSkewSeconds);
      return trial.claim(behind, id, clockSkewSeconds);
    };
    if (clockSkewSeconds > SLACK_SECONDS) {
      const most = clockSkewSeconds - SLACK_SECONDS;
      expectThat(!(await claimAgain(-most, 0)), `an id was claimed again ${most} s after its end`);
    }
    // The last moment of some ids: a store that counts in seconds forgets them almost a second early.
    const lastMs = (Math.floor(Date.now() / 1_000) + 3) * 1_000 - 50;
    const short = new Date(lastMs - clockSkewSeconds * 1_000);
    const toTheLast = async (): Promise<void> => {
      const id = trial.freshId();
      await trial.promised(() => ahead.claim(id, short), 'a claim');
      for (; Date.now() < lastMs; await pause(LOOK_AGAIN_MS)) {
        const outcome = await trial.promised(() => behind.claim(id, short), 'a claim');
        // A claim in progress at the end may arrive after it.
        const leftMs = lastMs - Date.now();
        const isWon = 'value' in outcome && outcome.value === true && leftMs > 0;
        expectThat(!isWon, `an id was claimed again ${leftMs} ms before its end plus the margin`);
      }
    };
    // The expiry of a claim must not remove an id that was claimed again with that end, or any other id.
    const alone = async (): Promise<void> => {
      const [id, other] = [trial.freshId(), trial.freshId()];
      for (const one of [id, other]) await trial.claim(ahead, one, 600);
      for (const one of [id, trial.freshId()]) await trial.promised(() => behind.claim(one, short), 'a claim');
      await pause(Math.max(0, lastMs - Date.now()) + LOOK_AGAIN_MS);
      await trial.claim(ahead, trial.freshId(), 600);
      expectThat(
        !(await trial.claim(ahead, id, 600)),
        'an id was claimed again after a claim of it with an earlier end',
      );
      expectThat(!(await trial.claim(ahead, other, 600)), 'an id was claimed again after the end of another');
    };
    const afterEnd = async (): Promise<void> => {
      if (clockSkewSeconds <= 2) return;
      expectThat(!(await claimAgain(1, 2_100)), 'an id was claimed again 1 s after its end');
    };
    await trial.all([toTheLast(), alone(), afterEnd()]);
  },
  'USE-PAST-END': async (trial) => {
    const store = await trial.open();
    const past = -trial.clockSkewSeconds - SLACK_SECONDS;
    const id = trial.freshId();
    await trial.claim(store, id, 600);
    for (const seconds of [past, past - 86_400, new Date(0), new Date(-1)]) {
      const when = typeof seconds === 'number' ? `${-seconds} s ago` : 'in 1970 or before';
      expectThat(!(await trial.claim(store, trial.freshId(), seconds)), `an id that ended ${when} was claimed`);
    }
    expectThat(!(await trial.claim(store, id, 600)), 'an id was claimed again after one that had ended');
  },
  'USE-UNREACHABLE': async (trial) => {
    const [store, unused] = [await trial.open(), await trial.open()];
    const claimed = trial.freshId();
    await trial.claim(store, claimed, 600);
    await trial.breakConnection();
    // A store that counts failures may change its answer after some.
    for (const ones of [[store], [store, unused]]) {
      const claims = ones.flatMap((one) =>
        [claimed, ...Array.from({ length: 7 }, () => trial.freshId())].map((id) =>
          trial.refused(one, id, soon(), 'a claim while the backend is unreachable'),
        ),
      );
      await trial.all(claims);
    }
  },
  'USE-RECOVERS': async (trial) => {
    const [store, other] = [await trial.open(), await trial.open()];
    const ids = Array.from({ length: 10 }, () => trial.freshId());
    await trial.claim(store, ids[0] ?? '', 600);
    const end = soon();
    const underWay = ids.slice(1).map((id) => trial.promised(() => store.claim(id, end), 'a claim'));
    await trial.breakConnection();
    const outcomes = await trial.all(underWay);
    await trial.refused(store, trial.freshId(), end, 'a claim during an outage');
    await trial.mend();
    const won = ids.filter((_, i) => i === 0 || outcomes.some((one, j) => j === i - 1 && 'value' in one && one.value));
    for (const one of [store, other]) {
      const deadline = performance.now() + PATIENCE_MS;
      const claimed = async (): Promise<boolean> => trial.claim(one, trial.freshId(), 600).catch(() => false);
      while (!(await claimed())) {
        expectThat(
          performance.now() < deadline,
          `nothing could be claimed within ${PATIENCE_MS / 1_000} s of an outage`,
        );
        await pause(LOOK_AGAIN_MS);
      }
      for (const id of won) {
        expectThat(!(await trial.claim(one, id, 600)), 'an id was claimed again after an outage');
      }
    }
  },
  'USE-ERROR': async (trial) => {
    const [store, closed] = [await trial.open(), await trial.open()];
    for (const one of [store, closed]) await trial.claim(one, trial.freshId(), 600);
    await trial.closeEarly(closed);
    await expectStoreError(trial, closed, 'a claim after close');
    await trial.breakConnection();
    await expectStoreError(trial, store, 'a claim while the backend is unreachable');
  },
  'USE-ARGUMENTS': async (trial) => {
    const store = await trial.open();
    const [id, date] = [trial.freshId(), soon()];
    const ids: Readonly<Record<string, unknown>> = {
      'an empty id': '',
      'an id of 257 characters': 'x'.repeat(LONGEST_ID + 1),
      'an id of 100 000 characters': id.repeat(3_000),
      'a number for an id': 1,
      'bytes for an id': Buffer.from(id),
      'an array for an id': [id],
      'an object for an id': { id },
      'no id': undefined,
    };
    const dates: Readonly<Record<string, unknown>> = {
      'an invalid date': new Date(Number.NaN),
      'a number for a date': date.getTime(),
      'a text for a date': date.toISOString(),
      'an object for a date': {},
      'no date': undefined,
    };
    const wrong = [
      ...Object.entries(ids).map(([what, one]) => [what, one, date] as const),
      ...Object.entries(dates).map(([what, one]) => [what, id, one] as const),
      ...Object.entries(ids).map(([what, one]) => [`${what} and a date that has passed`, one, new Date(1)] as const),
    ];
    for (const [what, one, end] of wrong) {
      const outcome = await trial.refused(store, one, end, `a claim with ${what}`);
      const error = 'error' in outcome ? outcome.error : undefined;
      const isRight = error instanceof Error && ['TypeError', 'RangeError'].includes(error.name);
      expectThat(isRight, `a claim with ${what} did not reject with a TypeError or RangeError`);
    }
    expectThat(await trial.claim(store, id, 600), 'an id was refused after a claim of it with a wrong date');
    // An earlier run may have claimed the id of one character.
    await trial.claim(store, trial.random.pick(Array.from('abcdefghijklmnopqrstuvwxyz')), 1);
    for (const length of [16, 32, 64, 100, 255, LONGEST_ID]) {
      const one = id.repeat(6).slice(-length);
      expectThat(await trial.claim(store, one, 600), `an id of ${length} characters was refused`);
    }
  },
  'USE-CALLERS-DATE': async (trial) => {
    const store = await trial.open();
    const id = trial.freshId();
    const endMs = Date.now() + 600_000;
    const [date, early] = [new Date(endMs), new Date(endMs)];
    await trial.promised(() => store.claim(trial.freshId(), date), 'a claim');
    expectThat(date.getTime() === endMs, 'claim modified its date');
    const claim = store.claim(id, early);
    early.setTime(0);
    const isKept = (await claim) && !(await trial.claim(store, id, 600));
    expectThat(isKept, 'claim read the date after it had returned its promise');
  },
  'USE-CLOSED': async (trial) => {
    const [store, other] = [await trial.open(), await trial.open()];
    const [id, fresh] = [trial.freshId(), trial.freshId()];
    const end = soon();
    await trial.claim(store, id, 600);
    const pending = Array.from({ length: CLAIMS }, () => trial.freshId());
    const calls = pending.map((one) => trial.promised(() => store.claim(one, end), 'a claim in progress at close'));
    const claimed = trial.refused(store, id, end, 'a claim of a claimed id, in progress at close,');
    await trial.closeEarly(store);
    const what = 'a claim of a claimed id after the close of its store';
    const all = [...calls, claimed, trial.promised(() => store.claim(fresh, end), what)];
    const again = trial.refused(store, id, end, what);
    const late = Symbol('late');
    const outcomes = await within(CLOSE_MS, trial.all([...all, again]), late);
    expectThat(outcomes !== late, `claims at and after close had not ended after ${CLOSE_MS} ms`);
    const won = [...pending, '', fresh].filter((_, i) => Object(outcomes[i]).value === true);
    for (const one of [id, ...won]) {
      const isAgain = await trial.claim(other, one, 600);
      expectThat(!isAgain, 'an id was claimed again after the store that claimed it was closed');
    }
  },
  'USE-INSTANCE-CLOSES': async (trial) => {
    await trial.claim(await trial.open(), trial.freshId(), 600);
    await trial.expectCloses();
  },
};

/** Characters that a database, URL, path, pattern or collation drops, truncates at or confuses. */
const ALIKE: readonly string[] = [
  ...'- _ . : / \\ + % * ? # & = , ; | ~ A a 0 \' " ` ( [ { < @ ! $ ^'.split(' '),
  '%41',
  ...Array.from(' \t\n\u00a0\u200b\u00ad\ufeff'),
  ...'e é e\u0301 E\u0301 ss ß ﬁ fi Ａ А i ı １ 1 Ā Ă 中 文 🙂 🙃'.split(' '),
  // Collisions of 32-bit hashes: String.hashCode of Java, and CRC-32.
  ...'Aa BB Ab BA plumless buckeroo'.split(' '),
];

function batches(ids: readonly string[]): readonly (readonly string[])[] {
  return Array.from({ length: Math.ceil(ids.length / CLAIMS) }, (_, i) => ids.slice(i * CLAIMS, (i + 1) * CLAIMS));
}

/**
 * Names of members of every object must be unclaimed. An earlier run may have claimed them, so other fixed ids are
 * claimed first, with a later end: a run that is granted all of those must be granted these.
 */
async function namesOfMembers(trial: SingleUseTrial, store: SingleUseStoreLike): Promise<void> {
  for (const name of ['constructors', 'to-string', 'conformance']) {
    if (!(await trial.claim(store, name, 60))) return;
  }
  for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty', 'then']) {
    expectThat(await trial.claim(store, name, 30), `the id ${name} was refused although it was unclaimed`);
  }
}

/** @throws {Finding} if a claim with an unknown outcome rejects with other words than those of the contract. */
async function expectStoreError(trial: SingleUseTrial, store: SingleUseStoreLike, what: string): Promise<void> {
  const id = trial.freshId();
  const outcome = await trial.promised(() => store.claim(id, soon()), what);
  if ('value' in outcome) return;
  const { error } = outcome;
  const isOurs = error instanceof Error && error.name === 'SingleUseStoreError';
  expectThat(isOurs, `${what} rejected with ${describeThrown(error)}, not SingleUseStoreError`);
  const kind: unknown = Reflect.get(error, 'kind');
  expectThat(
    KINDS.includes(kind),
    `${what} rejected with ${describeThrown(error)}: its kind is not one of ${KINDS.length}`,
  );
  expectDiscreet(error, id, what);
}

export const SINGLE_USE_SUITE: Suite<SingleUseTarget, ConformanceOptions> = suiteOf({
  name: 'single-use',
  title: 'SingleUse',
  noun: 'single-use store',
  requirements: SINGLE_USE_TABLE,
  checks: SINGLE_USE_CHECKS,
  timeoutMs: 60_000,
  check: (owner, target) => checkArgument(owner, TARGET, target),
  open: (target, { seed }) => new SingleUseTrial(target, seed),
});

/** The requirements for single-use stores, in the order of the checks. */
export const SINGLE_USE_REQUIREMENTS: readonly Requirement[] = SINGLE_USE_SUITE.requirements;

/**
 * Checks a single-use store against the contract of `SingleUseStore` in `@sealring/mcp`. Always resolves to a report,
 * whatever the store does. Needs a real backend, where it claims about ten thousand ids that expire.
 *
 * @throws {TypeError | RangeError} for an invalid target or option; the message names it.
 *
 * @example
 * ```ts
 * import { runSingleUseConformance } from '@sealring/conformance';
 *
 * const report = await runSingleUseConformance({ name: 'my store', create: () => ({ store: mySingleUse() }) });
 * console.log(report.passed);
 * ```
 */
export function runSingleUseConformance(
  target: SingleUseTarget,
  options?: ConformanceOptions,
): Promise<ConformanceReport> {
  return SINGLE_USE_SUITE.run(target, options);
}

/**
 * Defines one test for each requirement, with the functions of any test runner.
 *
 * @throws {TypeError | RangeError} for an invalid target or option; the message names it.
 */
export function describeSingleUse(target: SingleUseTarget, runner: TestRunner, options: ConformanceOptions = {}): void {
  SINGLE_USE_SUITE.describe(target, runner, options);
}
