import type { Settings } from './options.ts';
import { within } from './pending.ts';
import type { ConformanceReport, ConformanceResult, SuiteName } from './report.ts';
import { type CheckedRequirement, DidNotStart, Finding, NotApplicable, type Requirement } from './requirement.ts';
import { catchStrays } from './strays.ts';
import { describeThrown } from './thrown.ts';
import { kitVersion } from './version.ts';

/** Longest time for the `close` of all instances of one requirement, milliseconds. */
const CLOSE_MS = 5_000;
/** The same, once a target has not kept to it. */
const CLOSE_AGAIN_MS = 50;
/** Targets with a `close` that does not end: it is waited for once. */
const neverClose = new WeakSet<object>();

/** A suite: requirements with their checks, in the order in which they are tried. */
export interface Suite<Context> {
  readonly name: SuiteName;
  readonly requirements: readonly CheckedRequirement<Context>[];
  /** The requirement that instances close, which alone fails where one does not end. Default: whichever comes first. */
  readonly closing?: string;
}

/** What one requirement is tried on. */
export interface Opened<Context> {
  readonly context: Context;
  /** The calls that have not ended, by name. */
  readonly pending: { readonly names: readonly string[] };
  /** Undoes what the check did to the service. First, however the check ended. */
  mend?(): Promise<void>;
  /** Ends every instance that the check has made. */
  close(): Promise<void>;
  /** Removes what the check has stored. Last. */
  cleanUp?(): Promise<void>;
}

/**
 * Tries every requirement, each on a context of its own; none after the first where the program of the target does not
 * start. Never rejects because of the target: what it throws, and what it leaves rejected behind it, is a finding.
 *
 * @param owner - The target as it was given: what is learned of its `close` is remembered for later runs.
 */
export async function runSuite<Context>(
  suite: Suite<Context>,
  target: string,
  settings: Settings,
  open: () => Opened<Context>,
  owner: object,
): Promise<ConformanceReport> {
  const startedAt = new Date().toISOString();
  const wanted = suite.requirements.filter(({ id }) => settings.only === undefined || settings.only.has(id));
  const results: ConformanceResult[] = [];
  for (const requirement of wanted) {
    settings.onProgress(results.length, wanted.length, requirement.id);
    const { result, isLast } = await tryOne(suite, requirement, settings, open(), owner);
    results.push(result);
    if (isLast) break;
  }
  settings.onProgress(results.length, wanted.length, '');
  const passed = results.every(({ status }) => status !== 'fail');
  return { target, suite: suite.name, passed, results, startedAt, kitVersion, seed: settings.seed };
}

async function tryOne<Context>(
  suite: Suite<Context>,
  requirement: CheckedRequirement<Context>,
  { timeoutMs, seed }: Settings,
  opened: Opened<Context>,
  owner: object,
): Promise<{ readonly result: ConformanceResult; readonly isLast: boolean }> {
  const { id, level } = requirement;
  const began = performance.now();
  const stray = catchStrays();
  let error: unknown;
  let seen: string | void = undefined;
  try {
    seen = await inTime(async () => requirement.run(opened.context), opened, timeoutMs);
    // A check that never yields to timers is late all the same.
    const tookMs = Math.round(performance.now() - began);
    if (tookMs > timeoutMs) throw new Finding(`it took ${tookMs} ms, more than ${timeoutMs}`);
    const isTold = suite.closing === undefined ? !neverClose.has(owner) : suite.closing === id;
    await end(opened, owner, isTold, timeoutMs);
    await stray.settle();
    error = stray.first();
  } catch (thrown) {
    error = thrown;
    // The first failure is reported.
    await end(opened, owner, false, timeoutMs).catch(() => undefined);
  } finally {
    stray.stop();
  }
  const durationMs = Math.round(performance.now() - began);
  // Whatever the requirement: without a program there is nothing that could hold, nor fail again.
  if (error instanceof DidNotStart) {
    return { result: { id, level, status: 'fail', detail: error.message, durationMs }, isLast: true };
  }
  return { result: { id, level, ...outcomeOf(error, level, seen, seed), durationMs }, isLast: false };
}

/** @throws {Finding} when it takes longer; what it throws. */
async function inTime<T, Context>(work: () => Promise<T>, { pending }: Opened<Context>, timeoutMs: number): Promise<T> {
  const late = Symbol('late');
  const running = work();
  const result = await within(timeoutMs, running, late);
  if (result !== late) return result;
  running.catch(() => undefined);
  const [first, ...more] = pending.names;
  const others = more.length === 0 ? '' : ` and ${more.length} more`;
  throw new Finding(`no end within ${timeoutMs} ms${first === undefined ? '' : `: waiting for ${first}${others}`}`);
}

/** Whatever of it fails, the rest is done. */
async function end<Context>(opened: Opened<Context>, owner: object, isTold: boolean, timeoutMs: number): Promise<void> {
  try {
    await inTime(async () => opened.mend?.(), opened, timeoutMs);
  } finally {
    try {
      await closeInTime(opened, owner, isTold);
    } finally {
      await opened.cleanUp?.();
    }
  }
}

/** @throws {Finding} when `close` does not end, where it `isTold`; what `close` throws. */
async function closeInTime<Context>(opened: Opened<Context>, owner: object, isTold: boolean): Promise<void> {
  const ms = neverClose.has(owner) && !isTold ? CLOSE_AGAIN_MS : CLOSE_MS;
  const late = Symbol('late');
  const closing = opened.close();
  if ((await within(ms, closing, late)) !== late) return;
  closing.catch(() => undefined);
  neverClose.add(owner);
  if (isTold) throw new Finding(`close of an instance did not end within ${ms} ms`);
}

/** What a check came to, by what it threw, if anything. */
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
