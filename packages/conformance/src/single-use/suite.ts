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
import { type Suite, suiteOf, type TestRunner } from '../run.ts';
import { kindOf } from '../thrown.ts';
import { Trial } from '../trial.ts';

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

  /** Until the end of the requirement. @throws {NotApplicable} where the target cannot. */
  breakConnection(): Promise<void> {
    return this.breakBy(this.#target);
  }
}

const CONTRACT = 'SingleUseStore of @sealring/mcp (single-use.ts)';
const CLAIMS = 40;
const STORES = 4;
const ROUNDS = 10;
/** What calls and a service's clock may take of a margin. Seconds. */
const SLACK_SECONDS = 5;

const { must } = requiredBy(CONTRACT);

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
  'USE-INSTANCE-CLOSES': must('The close of a store ends: the target’s, or else its own.'),
  // Last: a backend may not come back.
  'USE-UNREACHABLE': must(
    'While the backend is out of reach, no claim resolves to true.',
    `${CONTRACT}: a store that cannot determine whether; F9`,
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
  },
  'USE-SEPARATE': async (trial) => {
    const store = await trial.open();
    const id = `Aa${trial.freshId().slice(2)}`;
    const alike = [id, `aA${id.slice(2)}`, `${id.slice(0, -1)}${id.endsWith('-') ? '_' : '-'}`, id.slice(0, -1)];
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
    expectThat(!(await trial.claim(store, trial.freshId(), past)), `an id that ended ${-past} s ago was claimed`);
  },
  'USE-UNREACHABLE': async (trial) => {
    const store = await trial.open();
    await trial.claim(store, trial.freshId(), 600);
    await trial.breakConnection();
    const won: unknown = await store.claim(trial.freshId(), new Date(Date.now() + 600_000)).catch(() => false);
    expectThat(won !== true, 'a claim resolved to true while the backend was out of reach');
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
