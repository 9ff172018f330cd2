import { statSync } from 'node:fs';
import { extname } from 'node:path';
import { LARGEST_SEED } from '../options.ts';
import type { RunRecord } from '../reports/record.ts';
import type { ConformanceReport, ConformanceResult, Requirement, SuiteName } from '../requirement.ts';
import { kitVersion } from '../run.ts';
import { EXIT_CODE, type ExitCode, type ProgramClaims, type TargetSource, UsageError } from './messages.ts';
import { checkOutputs, writeOutputs } from './outputs.ts';
import { SUITES } from './suites.ts';
import { Progress, paintFor, summaryOf } from './terminal.ts';
import { Trials } from './trials.ts';

export interface CheckOptions {
  readonly exec?: string;
  readonly report?: string;
  readonly json?: string | true;
  readonly only?: readonly string[];
  readonly seed?: number;
  /** Seconds. */
  readonly timeout?: number;
  readonly rounds?: number;
  readonly writers?: number;
  /** Whether the program of `--exec` claims this capability. The same applies to the next two options. */
  readonly confidentiality?: boolean;
  readonly crossInstance?: boolean;
  readonly rotation?: boolean;
  readonly maxPayloadBytes?: number;
  readonly color: boolean;
  readonly quiet?: boolean;
}

/** Handles SIGINT and SIGTERM during a run: the first signal asks the run to end; the second one ends it at once. */
function catchSignals(atOnce: () => void): { readonly signal: AbortSignal; readonly stop: () => void } {
  const controller = new AbortController();
  const onSignal = (name: NodeJS.Signals): void => {
    if (controller.signal.aborted) atOnce();
    else controller.abort(name === 'SIGINT' ? EXIT_CODE.SIGINT : EXIT_CODE.SIGTERM);
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  return {
    signal: controller.signal,
    stop: () => void process.off('SIGINT', onSignal).off('SIGTERM', onSignal),
  };
}

const PLAIN = ['.js', '.mjs'];
const TYPED = ['.ts', '.mts'];

/** @throws {UsageError} unless exactly one target is named and this version of Node can load it. */
function readSource(module: string | undefined, exec: string | undefined, claims: ProgramClaims): TargetSource {
  if (module !== undefined && exec !== undefined) {
    throw new UsageError(`both a target module "${module}" and --exec "${exec}" are given: give only one of them`);
  }
  if (exec !== undefined) {
    if (exec.trim() === '') throw new UsageError('--exec needs a command, got ""');
    return { exec, claims };
  }
  if (module === undefined) throw new UsageError('a target module is missing');
  if (Object.keys(claims).length > 0) {
    throw new UsageError(
      '--no-confidentiality, --no-cross-instance, --no-rotation and --max-payload-bytes need --exec; a target module declares its own capabilities',
    );
  }
  checkModule(module);
  return { module };
}

function checkModule(module: string): void {
  const extension = extname(module);
  if (![...PLAIN, ...TYPED].includes(extension)) {
    throw new UsageError(`the target module "${module}" must end in one of ${[...PLAIN, ...TYPED].join(', ')}`);
  }
  if (statSync(module, { throwIfNoEntry: false })?.isFile() !== true) {
    throw new UsageError(`the target module "${module}" does not exist`);
  }
  // False if Node does not strip types; undefined before Node 22.10.
  const { typescript } = process.features as { readonly typescript?: unknown };
  if (TYPED.includes(extension) && (typescript === undefined || typescript === false)) {
    throw new UsageError(
      `the target module "${module}" is TypeScript, which needs Node 22.18, 23.6 or later; this is ${process.version}`,
    );
  }
}

/**
 * Runs a suite on a target and writes all requested reports.
 *
 * @throws {UsageError} for an error in the command line or the target.
 */
export async function runCheck(suite: SuiteName, module: string | undefined, options: CheckOptions): Promise<ExitCode> {
  const { exec, json, rounds, writers, timeout, quiet = false } = options;
  if (module === undefined && exec === undefined && typeof json === 'string' && json !== '') {
    throw new UsageError(`a target module is missing: --json used "${json}" as its file; put the target first`);
  }
  const source = readSource(module, exec, claimsOf(options));
  const wanted = wantedOf(suite, options.only);
  checkOutputs(options);

  const seed = options.seed ?? Math.floor(Math.random() * LARGEST_SEED);
  const timeoutMs = timeout === undefined ? SUITES[suite].timeoutMs : Math.round(timeout * 1_000);
  const trialOptions = { seed, timeoutMs, rounds, writers };
  const interruption = catchSignals(() => void trials.kill());
  const trials = new Trials(suite, source, trialOptions, interruption.signal);
  const startedAt = new Date().toISOString();
  let results: readonly ConformanceResult[];
  try {
    results = await tryAll(trials, wanted, quiet);
  } finally {
    const trouble = await trials.close();
    if (trouble !== undefined) process.stderr.write(`note: closing the target failed: ${trouble}\n`);
    interruption.stop();
  }

  const passed = results.length === wanted.length && results.every(({ status }) => status !== 'fail');
  const target = trials.name === '' ? (module ?? exec ?? '') : trials.name;
  const report: ConformanceReport = { target, suite, passed, results, startedAt, kitVersion, seed };
  const record: RunRecord = { report, wanted, command: commandOf(suite, module, options) };
  const stream = json === true ? process.stderr : process.stdout;
  stream.write(summaryOf(record, paintFor(stream, options.color), quiet));
  writeOutputs(options, record);
  if (interruption.signal.aborted) return interruption.signal.reason as ExitCode;
  checkSomethingWasTried(options.only, results);
  return passed ? EXIT_CODE.passed : EXIT_CODE.failed;
}

function claimsOf({ confidentiality, crossInstance, rotation, maxPayloadBytes }: CheckOptions): ProgramClaims {
  const supports = {
    ...(confidentiality === false && { confidentiality }),
    ...(crossInstance === false && { crossInstance }),
    ...(maxPayloadBytes !== undefined && { maxPayloadBytes }),
  };
  return { ...(Object.keys(supports).length > 0 && { supports }), ...(rotation === false && { rotated: false }) };
}

function wantedOf(suite: SuiteName, only: readonly string[] | undefined): readonly Requirement[] {
  const { requirements } = SUITES[suite];
  const unknown = only?.find((id) => requirements.every((requirement) => requirement.id !== id));
  if (unknown !== undefined) {
    throw new UsageError(
      `--only "${unknown}" is not a requirement of the ${suite} suite: run "sealring-conformance list ${suite}"`,
    );
  }
  return requirements.filter(({ id }) => only === undefined || only.includes(id));
}

async function tryAll(
  trials: Trials,
  wanted: readonly Requirement[],
  isQuiet: boolean,
): Promise<readonly ConformanceResult[]> {
  const progress = new Progress(isQuiet ? { write: () => undefined } : process.stderr, wanted.length);
  const results: ConformanceResult[] = [];
  try {
    await trials.start();
    for (const requirement of wanted) {
      progress.show(results.length, requirement.id);
      const result = await trials.try(requirement);
      if (result === undefined) break;
      results.push(result);
    }
  } finally {
    progress.end();
  }
  return results;
}

/** @throws {UsageError} if none of the chosen requirements applies. */
function checkSomethingWasTried(only: readonly string[] | undefined, results: readonly ConformanceResult[]): void {
  if (only === undefined || results.some(({ status }) => status !== 'not-applicable')) return;
  throw new UsageError(`--only "${only.join(',')}" checked nothing: none of these requirements applies to this target`);
}

/** The given command, with only those options that affect the checks. */
function commandOf(suite: SuiteName, module: string | undefined, options: CheckOptions): readonly string[] {
  const { exec, timeout, rounds, writers, maxPayloadBytes, confidentiality, crossInstance, rotation } = options;
  const valued = { exec, timeout, rounds, writers, 'max-payload-bytes': maxPayloadBytes };
  const words = Object.entries(valued).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}`, String(value)],
  );
  const claims = Object.entries({ confidentiality, 'cross-instance': crossInstance, rotation });
  const denied = claims.flatMap(([name, claimed]) => (claimed === false ? [`--no-${name}`] : []));
  return ['npx', 'sealring-conformance', suite, ...(module === undefined ? [] : [module]), ...words, ...denied];
}
