import { createHash, randomBytes } from 'node:crypto';
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
  /** Its margin, if the store reports it: that of the target. */
  readonly clockSkewSeconds?: number;
  claim(id: string, expiresAt: Date): Promise<boolean>;
  close?(): Promise<void> | void;
}

/** A store, and what ends it. */
export interface SingleUseInstance {
  readonly store: SingleUseStoreLike;
  /** Default: the store's own `close`, where it has one. */
  close?(): Promise<void> | void;
}

/** The single-use store under test. The kit claims ids of its own, which no earlier run used. */
export interface SingleUseTarget {
  readonly name: string;
  /** A store on connections of its own; all of them share what was claimed. */
  create(): Promise<SingleUseInstance> | SingleUseInstance;
  /** Makes the backend unreachable, for existing and future stores; resolves to a function that restores it. */
  breakConnection?(): Promise<() => Promise<void> | void>;
  /** The margin that the store was given, as `policy.clockSkewSeconds` of the ring. Seconds, 0 to 86 400. Default 300. */
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

/** What a check of a single-use store works with: fresh ids and stores to claim them with. */
class SingleUseTrial extends Trial {
  readonly clockSkewSeconds: number;
  readonly #target: SingleUseTarget;

  constructor(target: SingleUseTarget, seed: number) {
    super(seed);
    this.#target = target;
    this.clockSkewSeconds = target.clockSkewSeconds ?? DEFAULT_CLOCK_SKEW_SECONDS;
  }

  freshId(): string {
    return createHash('sha256').update(randomBytes(16)).digest('base64url');
  }

  open(): Promise<SingleUseStoreLike> {
    return this.start<SingleUseStoreLike>('create', () => this.#target.create(), 'store', ['claim']);
  }

  protected override closeByItself(made: object): unknown {
    return (made as SingleUseStoreLike).close?.();
  }

  async claim(store: SingleUseStoreLike, id: string, seconds: number): Promise<boolean> {
    const claim = (): unknown => store.claim(id, new Date(Date.now() + seconds * 1_000));
    const outcome = await this.promised(claim, 'a claim');
    if ('error' in outcome) throw outcome.error;
    const { value } = outcome;
    expectThat(typeof value === 'boolean', `a claim resolved to ${kindOf(value)}, neither true nor false`);
    return value;
  }

  /** How a claim ends that must not resolve to true: false, or an error. */
  async refused(store: SingleUseStoreLike, id: unknown, expiresAt: unknown, what: string): Promise<Outcome> {
    const call = (): unknown => Reflect.apply(Reflect.get(store, 'claim'), store, [id, expiresAt]);
    const outcome = await this.promised(call, what);
    const isGranted = 'value' in outcome && outcome.value !== false;
    expectThat(!isGranted, `${what} resolved to ${'value' in outcome ? kindOf(outcome.value) : ''}`);
    return outcome;
  }

  /** Until the end of the requirement. @throws {NotApplicable} where the target cannot. */
  breakConnection(): Promise<void> {
    return this.breakBy(this.#target);
  }
}

const CONTRACT = 'SingleUseStore of @sealring/mcp (single-use.ts)';
const CLAIMS = 40;
/** Ids that are claimed before one is claimed again. */
const OTHERS = 5 * CLAIMS;
const LONGEST_ID = 256;
/** Longer than 2^31 milliseconds, and than 2^31 seconds since 1970: a month, and 30 years. */
const FAR_SECONDS: readonly number[] = [31 * 86_400, 30 * 365 * 86_400];
const PATIENCE_MS = 20_000;
const LOOK_AGAIN_MS = 50;
const STORES = 4;
const ROUNDS = 10;
/** What calls and a service's clock may take of a margin. Seconds. */
const SLACK_SECONDS = 5;

const { must, should } = requiredBy(CONTRACT);

/** What every single-use store is held to, in the order in which it is tried. */
const SINGLE_USE_TABLE: RequirementTable = {
  'USE-ANSWER': must('claim returns a promise of true or false.'),
  'USE-ONE-WINNER': must('Of many claims of an id at once, over several stores, one returns true.'),
  'USE-ONCE': must('A claimed id is refused on every store, whatever end the later claim names.'),
  'USE-SEPARATE': must('Ids that differ are claimed apart, however alike they are.'),
  'USE-CLOCK-SKEW': must(
    'A claim is remembered beyond its end for as long as two clocks may differ.',
    `${CONTRACT}: the margin; F48`,
  ),
  'USE-PAST-END': must('After the end and the margin no claim returns true.', `${CONTRACT}; F48`),
  'USE-ARGUMENTS': must(
    'An id that is not a text of 1 to 256 characters, or an invalid date, rejects with a TypeError or RangeError.',
  ),
  'USE-CLOSED': must(
    'After the close of a store, what it claimed is refused: by the others, and by itself if it answers.',
  ),
  'USE-INSTANCE-CLOSES': must('The close of a store ends: the target’s, or else its own.'),
  // Last: a backend may not come back.
  'USE-UNREACHABLE': must(
    'While the backend is out of reach, no claim resolves to true.',
    `${CONTRACT}: a store that cannot determine whether; F9`,
  ),
  'USE-RECOVERS': must('A backend that comes back is used again, and holds what was claimed.', `${CONTRACT}; F31`),
  'USE-ERROR': should(
    'A claim that the store cannot determine resolves to false, or rejects with SingleUseStoreError.',
  ),
};

const SINGLE_USE_CHECKS: Checks<SingleUseTrial> = {
  'USE-ANSWER': async (trial) => {
    const store = await trial.open();
    expectThat(await trial.claim(store, trial.freshId(), 600), 'the first claim of an id resolved to false');
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
    // The date stays the caller’s.
    const [kept, date] = [trial.freshId(), new Date(Date.now() + 600_000)];
    await trial.promised(() => store.claim(kept, date), 'a claim');
    date.setTime(0);
    for (let i = 0; i < OTHERS; i += CLAIMS) {
      const fresh = Array.from({ length: CLAIMS }, () => trial.claim(store, trial.freshId(), 600));
      const won = (await trial.all(fresh)).filter(Boolean).length;
      expectThat(won === CLAIMS, `of ${CLAIMS} ids that nobody had claimed, ${won} were granted`);
    }
    for (const again of [store, other]) {
      expectThat(!(await trial.claim(again, kept, 600)), 'an id was claimed again after its date had been changed');
      expectThat(!(await trial.claim(again, id, 600)), `an id was claimed again after ${OTHERS} others`);
    }
  },
  'USE-SEPARATE': async (trial) => {
    const store = await trial.open();
    const id = `Aa${trial.freshId().slice(2)}`;
    const half = Math.floor(id.length / 2);
    const long = id.padEnd(LONGEST_ID, 'x');
    const alike = [
      id,
      `aA${id.slice(2)}`,
      `${id.slice(0, -1)}${id.endsWith('-') ? '_' : '-'}`,
      id.slice(0, -1),
      id.slice(1),
      `${id.slice(0, half)}${id.charAt(half) === 'x' ? 'y' : 'x'}${id.slice(half + 1)}`,
      ...['-', '_', '.', ':', '/', '+', '%41', 'A', '=', ' '].map((end) => id + end),
      Array.from(id).toReversed().join(''),
      ...['1', '2'].map((end) => long.slice(0, -1) + end),
    ];
    for (const [index, one] of alike.entries()) {
      expectThat(await trial.claim(store, one, 600), `an id was refused for ${index} others that are only alike`);
    }
  },
  'USE-CLOCK-SKEW': async (trial) => {
    const { clockSkewSeconds } = trial;
    const [ahead, behind] = [await trial.open(), await trial.open()];
    const told: unknown = ahead.clockSkewSeconds;
    // A boundary trusts it.
    expectThat(
      told === undefined || told === clockSkewSeconds,
      `the store reports another clockSkewSeconds than the ${clockSkewSeconds} it was given`,
    );
    // As a server whose clock is ahead redeems a token, and one whose clock is behind is sent it again.
    const claimAgain = async (seconds: number, waitMs: number): Promise<boolean> => {
      const id = trial.freshId();
      const when = seconds < 0 ? `ended ${-seconds} s ago` : `ends in ${seconds} s`;
      expectThat(await trial.claim(ahead, id, seconds), `the first claim of an id that ${when} resolved to false`);
      await pause(waitMs);
      // Claims may remove what has expired.
      await trial.claim(behind, trial.freshId(), clockSkewSeconds);
      return trial.claim(behind, id, clockSkewSeconds);
    };
    if (clockSkewSeconds > 2) {
      expectThat(!(await claimAgain(1, 2_100)), 'an id was claimed again 1 s after its end');
    }
    if (clockSkewSeconds > SLACK_SECONDS) {
      const most = clockSkewSeconds - SLACK_SECONDS;
      expectThat(!(await claimAgain(-most, 0)), `an id was claimed again ${most} s after its end`);
    }
  },
  'USE-PAST-END': async (trial) => {
    const store = await trial.open();
    const past = -trial.clockSkewSeconds - SLACK_SECONDS;
    const id = trial.freshId();
    await trial.claim(store, id, 600);
    expectThat(!(await trial.claim(store, trial.freshId(), past)), `an id that ended ${-past} s ago was claimed`);
    expectThat(!(await trial.claim(store, id, 600)), 'an id was claimed again after one that had ended');
  },
  'USE-UNREACHABLE': async (trial) => {
    const store = await trial.open();
    await trial.claim(store, trial.freshId(), 600);
    await trial.breakConnection();
    const won: unknown = await store.claim(trial.freshId(), new Date(Date.now() + 600_000)).catch(() => false);
    expectThat(won !== true, 'a claim resolved to true while the backend was out of reach');
  },
  'USE-RECOVERS': async (trial) => {
    const [store, other] = [await trial.open(), await trial.open()];
    const id = trial.freshId();
    await trial.claim(store, id, 600);
    await trial.breakConnection();
    await trial.refused(store, trial.freshId(), new Date(Date.now() + 600_000), 'a claim during an outage');
    await trial.mend();
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
      expectThat(!(await trial.claim(one, id, 600)), 'an id was claimed again after an outage');
    }
  },
  'USE-ERROR': async (trial) => {
    const store = await trial.open();
    const id = trial.freshId();
    await trial.claim(store, trial.freshId(), 600);
    await trial.breakConnection();
    const what = 'a claim out of reach of the backend';
    const outcome = await trial.refused(store, id, new Date(Date.now() + 600_000), what);
    if ('value' in outcome) return;
    const { error } = outcome;
    const isOurs = error instanceof Error && error.name === 'SingleUseStoreError';
    expectThat(isOurs, `${what} rejected with ${describeThrown(error)}, not SingleUseStoreError`);
    expectDiscreet(error, id, what);
  },
  'USE-ARGUMENTS': async (trial) => {
    const store = await trial.open();
    const [id, date] = [trial.freshId(), new Date(Date.now() + 600_000)];
    for (const [what, ...given] of [
      ['an empty id', '', date],
      ['an id of 257 characters', 'x'.repeat(LONGEST_ID + 1), date],
      ['a number for an id', 1, date],
      ['no id', undefined, date],
      ['an invalid date', id, new Date(Number.NaN)],
      ['a number for a date', id, date.getTime()],
      ['no date', id, undefined],
    ] as const) {
      const outcome = await trial.refused(store, given[0], given[1], `a claim with ${what}`);
      const error = 'error' in outcome ? outcome.error : undefined;
      const isRight = error instanceof Error && ['TypeError', 'RangeError'].includes(error.name);
      expectThat(isRight, `a claim with ${what} did not reject with a TypeError or RangeError`);
    }
    expectThat(await trial.claim(store, id, 600), 'an id was refused after a claim of it with a wrong date');
  },
  'USE-CLOSED': async (trial) => {
    const [store, other] = [await trial.open(), await trial.open()];
    const id = trial.freshId();
    await trial.claim(store, id, 600);
    await trial.closeEarly(store);
    const what = 'a claim of a claimed id after the close of its store';
    const again = trial.refused(store, id, new Date(Date.now() + 600_000), what);
    const late = Symbol('late');
    expectThat((await within(CLOSE_MS, again, late)) !== late, `${what} had not ended after ${CLOSE_MS} ms`);
    expectThat(
      !(await trial.claim(other, id, 600)),
      'an id was claimed again after the store that claimed it was closed',
    );
  },
  'USE-INSTANCE-CLOSES': async (trial) => {
    await trial.claim(await trial.open(), trial.freshId(), 600);
    await trial.expectCloses();
  },
};

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

/** What every single-use store is held to, in the order in which it is tried. */
export const SINGLE_USE_REQUIREMENTS: readonly Requirement[] = SINGLE_USE_SUITE.requirements;

/**
 * Holds a single-use store to the contract of `SingleUseStore` of `@sealring/mcp`. Resolves to a report whatever the
 * store does. Needs a real backend: it claims some hundred ids of its own, which end by themselves.
 *
 * @throws {TypeError | RangeError} for a target or an option that is wrong, naming it.
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
 * The same as tests of any runner, one for each requirement: its functions are passed in.
 *
 * @throws {TypeError | RangeError} for a target or an option that is wrong, naming it.
 */
export function describeSingleUse(target: SingleUseTarget, runner: TestRunner, options: ConformanceOptions = {}): void {
  SINGLE_USE_SUITE.describe(target, runner, options);
}
