import type { ConformanceReport, ConformanceResult, SuiteName } from '../report.ts';
import type { RunRecord } from '../reports/record.ts';
import type { Requirement } from '../requirement.ts';
import { kitVersion } from '../version.ts';
import type { CheckOptions } from './check-options.ts';
import { EXIT_CODE, type ExitCode } from './exit-code.ts';
import { Interruption } from './interruption.ts';
import type { ProgramClaims } from './messages.ts';
import { checkOutputs, writeOutputs } from './outputs.ts';
import { paintFor } from './paint.ts';
import { Progress } from './progress.ts';
import { SUITES } from './suites.ts';
import { summaryOf } from './summary.ts';
import { readSource } from './target-source.ts';
import { Trials } from './trials.ts';
import { UsageError } from './usage-error.ts';

const LARGEST_SEED = 2 ** 31 - 1;

/**
 * Runs a suite on a target and reports it everywhere it was asked for.
 *
 * @throws {UsageError} for what is wrong with the command line or the target.
 */
export async function runCheck(suite: SuiteName, module: string | undefined, options: CheckOptions): Promise<ExitCode> {
  const { exec, json, rounds, writers, timeout, quiet = false } = options;
  if (module === undefined && exec === undefined && typeof json === 'string' && json !== '') {
    throw new UsageError(`a target module is missing: --json took "${json}" for its file; put the target first`);
  }
  const source = readSource(module, exec, claimsOf(options));
  const wanted = wantedOf(suite, options.only);
  checkOutputs(options);

  const seed = options.seed ?? Math.floor(Math.random() * LARGEST_SEED);
  const timeoutMs = timeout === undefined ? SUITES[suite].timeoutMs : timeout * 1_000;
  const trialOptions = {
    seed,
    timeoutMs,
    ...(rounds !== undefined && { rounds }),
    ...(writers !== undefined && { writers }),
  };
  const interruption = new Interruption(() => void trials.kill());
  const trials = new Trials(suite, source, trialOptions, interruption.signal);
  const startedAt = new Date().toISOString();
  let results: readonly ConformanceResult[];
  try {
    results = await tryAll(trials, wanted, quiet);
  } finally {
    const trouble = await trials.close();
    if (trouble !== undefined) process.stderr.write(`note: closing the target: ${trouble}\n`);
    interruption.stop();
  }

  const passed = results.length === wanted.length && results.every(({ status }) => status !== 'fail');
  const target = trials.name === '' ? (module ?? exec ?? '') : trials.name;
  const report: ConformanceReport = { target, suite, passed, results, startedAt, kitVersion, seed };
  const record: RunRecord = { report, wanted, command: commandOf(suite, module, options) };
  const stream = json === true ? process.stderr : process.stdout;
  stream.write(summaryOf(record, paintFor(stream, options.color), quiet));
  writeOutputs(options, record);
  if (interruption.code !== undefined) return interruption.code;
  checkSomethingWasTried(options.only, results);
  return passed ? EXIT_CODE.passed : EXIT_CODE.failed;
}

/** What was said of a program. */
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
    throw new UsageError(`--only "${unknown}" is not a requirement of the ${suite} suite: see list ${suite}`);
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

/** @throws {UsageError} when what was chosen does not apply: nothing was found out. */
function checkSomethingWasTried(only: readonly string[] | undefined, results: readonly ConformanceResult[]): void {
  if (only === undefined || results.some(({ status }) => status !== 'not-applicable')) return;
  throw new UsageError(`--only "${only.join(',')}" tried nothing: it does not apply to this target`);
}

/** The command that was given, as far as it decides what is tried and how. */
function commandOf(suite: SuiteName, module: string | undefined, options: CheckOptions): readonly string[] {
  const { exec, timeout, rounds, writers, maxPayloadBytes, confidentiality, crossInstance, rotation } = options;
  const valued = Object.entries({ exec, timeout, rounds, writers, 'max-payload-bytes': maxPayloadBytes }).flatMap(
    ([name, value]) => (value === undefined ? [] : [`--${name}`, String(value)]),
  );
  const denied = (['confidentiality', 'cross-instance', 'rotation'] as const).filter(
    (name) => ({ confidentiality, 'cross-instance': crossInstance, rotation })[name] === false,
  );
  const flags = denied.map((name) => `--no-${name}`);
  return ['npx', 'sealring-conformance', suite, ...(module === undefined ? [] : [module]), ...valued, ...flags];
}
