import { readFileSync } from 'node:fs';
import type * as v from 'valibot';
import { type ConformanceOptions, readOptions, type Settings } from './options.ts';
import {
  type CheckedRequirement,
  type Checks,
  type ConformanceReport,
  type ConformanceResult,
  DidNotStart,
  Finding,
  NotApplicable,
  type Requirement,
  type RequirementTable,
  type SuiteName,
  withChecks,
} from './requirement.ts';
import { describeOne, type TestRunner } from './runner.ts';
import { catchStrays } from './strays.ts';
import { describeThrown } from './thrown.ts';
import { CLOSE_MS, type Trial, within } from './trial.ts';

const manifest: { readonly version: string } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
);

export const kitVersion: string = manifest.version;

/**
 * Marks a target that runs behind a pipe, where the kit cannot observe its process. This is a symbol, so that a copy of
 * a target keeps the mark.
 */
export const THROUGH_PIPE: unique symbol = Symbol('through a pipe');

/** The definition of a suite: the requirements of a contract, and their checks. */
export interface SuiteDefinition<Target, Options, Tried extends Trial> {
  readonly name: SuiteName;
  /** The part of the function names that differs between suites: `KeyWrapper` in `runKeyWrapperConformance`. */
  readonly title: string;
  readonly noun: string;
  readonly requirements: RequirementTable;
  readonly checks: Checks<Tried>;
  /** Requirements that cannot be checked through a pipe, with the reason. */
  readonly unseenThroughPipe?: Readonly<Record<string, string>>;
  /** Default time limit for one requirement, in milliseconds. */
  readonly timeoutMs: number;
  /** The options of the suite in addition to the common ones. */
  readonly options?: v.ObjectEntries;
  /** @throws {TypeError | RangeError} for an invalid target; the message names the error. */
  check(owner: string, target: Target): void;
  /** Creates the trial in which one requirement is checked. */
  open(target: Target, settings: Settings, options: Options): Tried;
}

export interface Suite<Target, Options> {
  readonly requirements: readonly Requirement[];
  readonly timeoutMs: number;
  run(target: Target, options?: Options): Promise<ConformanceReport>;
  describe(target: Target, runner: TestRunner, options?: Options): void;
}

/** Extra time for a test, beyond the time limit for its requirement, to create and close instances, in milliseconds. */
const SLACK_MS = 10_000;
/** Time limit for closing all instances of a target if an earlier close did not end, in milliseconds. */
const CLOSE_AGAIN_MS = 50;
/** Targets with a `close` that does not end. The kit waits for the full time limit only once. */
const neverClose = new WeakSet<object>();
/** Number of requirements of a target that did not end in time. */
const lateness = new WeakMap<object, number>();
/** After this number of late requirements, each remaining requirement gets less time. */
const MOST_LATE = 3;
const SHORT_MS = 5_000;

/** A requirement, or one of its calls, that did not end in time. */
class Late extends Finding {}

export function suiteOf<
  Target extends { readonly name: string },
  Options extends ConformanceOptions,
  Tried extends Trial,
>(definition: SuiteDefinition<Target, Options, Tried>): Suite<Target, Options> {
  const { title, noun, timeoutMs } = definition;
  const checks = withChecks(definition.requirements, definition.checks);
  const checksThroughPipe = withChecks(definition.requirements, {
    ...definition.checks,
    ...Object.fromEntries(Object.entries(definition.unseenThroughPipe ?? {}).map(([id, why]) => [id, unseen(why)])),
  });
  const requirements = checks.map(({ id, level, text, source }) => ({ id, level, text, source }));
  const ids = requirements.map(({ id }) => id);
  const read = (owner: string, target: Target, options: Options | undefined): Settings => {
    definition.check(owner, target);
    return readOptions(owner, options, ids, timeoutMs, definition.options);
  };
  const run: Suite<Target, Options>['run'] = async (target, options) => {
    const settings = read(`run${title}Conformance`, target, options);
    const tried = THROUGH_PIPE in target ? checksThroughPipe : checks;
    return runSuite({ name: definition.name, checks: tried }, target, settings, () =>
      definition.open(target, settings, options ?? ({} as Options)),
    );
  };
  return {
    requirements,
    timeoutMs,
    run,
    describe(target, runner, options) {
      const settings = read(`describe${title}`, target, options);
      runner.describe(`${target.name} ${noun}`, () => {
        for (const requirement of requirements) {
          const only = { ...(options as Options), only: [requirement.id] };
          describeOne(requirement, runner, settings.timeoutMs + SLACK_MS, () => run(target, only));
        }
      });
    },
  };
}

function unseen(why: string): () => never {
  return () => {
    throw new NotApplicable(`cannot be observed through a pipe: ${why}`);
  };
}

/**
 * Checks every requirement on fresh instances. Stops after the first one if the program of the target does not start.
 * Never rejects because of the target: its errors and unhandled rejections become findings.
 */
async function runSuite<Tried extends Trial>(
  { name, checks }: { readonly name: SuiteName; readonly checks: readonly CheckedRequirement<Tried>[] },
  target: { readonly name: string },
  settings: Settings,
  open: () => Tried,
): Promise<ConformanceReport> {
  const startedAt = new Date().toISOString();
  const { only, seed, onProgress } = settings;
  const wanted = checks.filter(({ id }) => only === undefined || only.has(id));
  const results: ConformanceResult[] = [];
  for (const requirement of wanted) {
    onProgress(results.length, wanted.length, requirement.id);
    const { result, isLast } = await tryOne(requirement, settings, open(), target);
    results.push(result);
    if (isLast) break;
  }
  onProgress(results.length, wanted.length, '');
  const passed = results.every(({ status }) => status !== 'fail');
  return { target: target.name, suite: name, passed, results, startedAt, kitVersion, seed };
}

async function tryOne<Tried extends Trial>(
  requirement: CheckedRequirement<Tried>,
  settings: Settings,
  trial: Tried,
  target: object,
): Promise<{ readonly result: ConformanceResult; readonly isLast: boolean }> {
  const { id, level } = requirement;
  const { seed } = settings;
  const wasLate = lateness.get(target) ?? 0;
  const timeoutMs = wasLate < MOST_LATE ? settings.timeoutMs : Math.min(settings.timeoutMs, SHORT_MS);
  const began = performance.now();
  const stray = catchStrays();
  let error: unknown;
  let seen: string | void = undefined;
  try {
    seen = await inTime(async () => requirement.run(trial), trial, timeoutMs);
    // The timer cannot interrupt a check that never yields to the event loop.
    const tookMs = Math.round(performance.now() - began);
    if (tookMs > timeoutMs) throw new Finding(`took ${tookMs} ms, more than the limit of ${timeoutMs}`);
    await end(trial, target, timeoutMs);
    await stray.settle();
    error = stray.first();
  } catch (thrown) {
    error = thrown;
    // Only the first failure is reported, so errors at the end of the trial are ignored here.
    await end(trial, target, timeoutMs).catch(() => undefined);
  } finally {
    stray.stop();
  }
  const durationMs = Math.round(performance.now() - began);
  if (error instanceof Late || durationMs >= timeoutMs) lateness.set(target, wasLate + 1);
  // Without a program, no other requirement can be checked, so this one fails even if it is a SHOULD.
  if (error instanceof DidNotStart) {
    return { result: { id, level, status: 'fail', detail: error.message, durationMs }, isLast: true };
  }
  return { result: { id, level, ...outcomeOf(error, level, seen, seed), durationMs }, isLast: false };
}

async function inTime<T>(work: () => Promise<T>, trial: Trial, timeoutMs: number): Promise<T> {
  const late = Symbol('late');
  const running = work();
  const began = performance.now();
  const callMs = Math.min(timeoutMs, trial.callMs);
  for (
    let leftMs = timeoutMs;
    leftMs > 0 && trial.pendingMs < callMs;
    leftMs = timeoutMs - (performance.now() - began)
  ) {
    // Checks the pending calls several times within their limit, because calls begin at different times.
    const result = await within(Math.min(leftMs, callMs / 4), running, late);
    if (result !== late) return result;
  }
  running.catch(() => undefined);
  const [first, ...more] = trial.pending;
  const others = more.length === 0 ? '' : ` and ${more.length} more`;
  const limitMs = trial.pendingMs < callMs ? timeoutMs : callMs;
  throw new Late(`did not end within ${limitMs} ms${first === undefined ? '' : `: waiting for ${first}${others}`}`);
}

/** Ends a trial; each step is taken even if an earlier one failed. Another requirement reports a close that hangs. */
async function end(trial: Trial, target: object, timeoutMs: number): Promise<void> {
  try {
    await inTime(() => trial.mend(), trial, timeoutMs);
  } finally {
    try {
      if (!(await trial.closesWithin(neverClose.has(target) ? CLOSE_AGAIN_MS : CLOSE_MS))) neverClose.add(target);
    } finally {
      await trial.cleanUp();
    }
  }
}

function outcomeOf(
  error: unknown,
  level: Requirement['level'],
  seen: string | void,
  seed: number,
): Pick<ConformanceResult, 'status' | 'detail'> {
  if (error === undefined) return { status: 'pass', ...(seen && { detail: seen }) };
  if (error instanceof NotApplicable) return { status: 'not-applicable', detail: error.message };
  const detail = error instanceof Finding ? error.message : `unexpected: ${describeThrown(error)}`;
  const status = level === 'MUST' ? 'fail' : 'warn';
  return { status, detail: `${detail} (seed ${seed})` };
}
