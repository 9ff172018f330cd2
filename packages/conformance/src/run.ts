import { types } from 'node:util';
import type { Settings } from './options.ts';
import type { ConformanceReport, ConformanceResult, SuiteName } from './report.ts';
import { type Check, DidNotStart, Finding, NotApplicable, type Requirement } from './requirement.ts';
import { kitVersion } from './version.ts';

/** A suite: requirements, and a check for each, in the order in which they are tried. */
export interface Suite<Context> {
  readonly name: SuiteName;
  readonly requirements: readonly Requirement[];
  readonly checks: readonly Check<Context>[];
}

/**
 * Tries every requirement, each on a context of its own; none after the first where the program of the target does not
 * start. Never rejects because of the target: what it throws, and what it leaves rejected behind it, is a finding.
 */
export async function runSuite<Context>(
  suite: Suite<Context>,
  target: string,
  settings: Settings,
  open: () => { readonly context: Context; close(): Promise<void> },
): Promise<ConformanceReport> {
  const startedAt = new Date().toISOString();
  const wanted = suite.requirements.filter(({ id }) => settings.only === undefined || settings.only.has(id));
  const results: ConformanceResult[] = [];
  for (const requirement of wanted) {
    settings.onProgress(results.length, wanted.length, requirement.id);
    const check = suite.checks.find(({ id }) => id === requirement.id);
    if (check === undefined) throw new Error(`no check for ${requirement.id}`);
    const { result, isLast } = await tryOne(requirement, check, settings, open);
    results.push(result);
    if (isLast) break;
  }
  settings.onProgress(results.length, wanted.length, '');
  const passed = results.every(({ status }) => status !== 'fail');
  return { target, suite: suite.name, passed, results, startedAt, kitVersion, seed: settings.seed };
}

async function tryOne<Context>(
  { id, level }: Requirement,
  check: Check<Context>,
  { timeoutMs, seed }: Settings,
  open: () => { readonly context: Context; close(): Promise<void> },
): Promise<{ readonly result: ConformanceResult; readonly isLast: boolean }> {
  const began = performance.now();
  const stray = catchStrays();
  const opened = open();
  let error: unknown;
  let seen: string | void = undefined;
  try {
    seen = await withinTime(timeoutMs, async () => check.run(opened.context));
    // What does not give way to timers is late all the same.
    const tookMs = Math.round(performance.now() - began);
    if (tookMs > timeoutMs) throw new Finding(`it took ${tookMs} ms, more than ${timeoutMs}`);
    await opened.close();
    await stray.settle();
    error = stray.first();
  } catch (thrown) {
    error = thrown;
    // The first thing that went wrong is what is told.
    await opened.close().catch(() => undefined);
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

/** What a check came to, by what it threw, if anything. */
function outcomeOf(
  error: unknown,
  level: Requirement['level'],
  seen: string | void,
  seed: number,
): Pick<ConformanceResult, 'status' | 'detail'> {
  if (error === undefined) return { status: 'pass', ...(seen && { detail: seen }) };
  if (error instanceof NotApplicable) return { status: 'not-applicable', detail: error.message };
  const detail = error instanceof Finding ? error.message : `unexpected: ${describe(error)}`;
  const status = level === 'MUST' ? 'fail' : 'warn';
  return { status, detail: `${detail} (seed ${seed})` };
}

/** The name of what a target threw; its text may hold a secret. */
function describe(error: unknown): string {
  if (types.isNativeError(error)) return error.name;
  return typeof error === 'object' ? 'an object that is no Error' : `a ${typeof error}`;
}

async function withinTime<T>(timeoutMs: number, run: () => Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Finding(`no end within ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    return await Promise.race([run(), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Where strays are told: one list for each requirement that is being tried just now. */
const listeners = new Set<string[]>();
let stopListening: (() => void) | undefined;

/**
 * What a target does besides answering: rejections that nobody handles (an asynchronous codec makes them by the
 * thousand), errors thrown out of timers, and attempts to end the process. Each would be the end of the kit.
 */
function catchStrays(): { settle(): Promise<void>; first(): unknown; stop(): void } {
  const seen: string[] = [];
  listeners.add(seen);
  stopListening ??= listen();
  return {
    settle: () => new Promise((resolve) => setImmediate(resolve)),
    first: () => (seen[0] === undefined ? undefined : new Finding(seen[0])),
    stop() {
      listeners.delete(seen);
      if (listeners.size > 0) return;
      stopListening?.();
      stopListening = undefined;
    },
  };
}

function tell(what: string): void {
  for (const seen of listeners) seen.push(what);
}

const rejected = (): void => tell('a promise was rejected and nobody handled it');
const thrown = (): void => tell('an error was thrown that nobody could catch');

function refuseToEnd(): never {
  tell('process.exit was called');
  throw new Finding('process.exit was called');
}

function listen(): () => void {
  const exit = Object.getOwnPropertyDescriptor(process, 'exit') ?? {};
  process.on('unhandledRejection', rejected);
  process.on('uncaughtException', thrown);
  Object.defineProperty(process, 'exit', { ...exit, value: refuseToEnd });
  return () => {
    process.off('unhandledRejection', rejected);
    process.off('uncaughtException', thrown);
    Object.defineProperty(process, 'exit', exit);
  };
}
