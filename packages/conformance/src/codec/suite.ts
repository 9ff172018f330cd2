import * as v from 'valibot';
import { anObject, checkArgument } from '../arguments.ts';
import { describeSuite, type TestRunner } from '../describe.ts';
import { type ConformanceOptions, readOptions } from '../options.ts';
import type { ConformanceReport } from '../report.ts';
import { type CheckedRequirement, type Requirement, textsOf } from '../requirement.ts';
import { runSuite, type Suite } from '../run.ts';
import { INTEGRITY_CHECKS } from './integrity.ts';
import { ISOLATION_CHECKS } from './isolation.ts';
import { KEY_STREAM_CHECKS } from './key-stream.ts';
import { KEYLESS_CHECKS } from './keyless.ts';
import { PURITY_CHECKS } from './purity.ts';
import { REFUSAL_CHECKS } from './refusals.ts';
import { ROUND_TRIP_CHECKS } from './round-trip.ts';
import { SECRECY_CHECKS } from './secrecy.ts';
import { type CodecTarget, readCodecTarget } from './target.ts';
import { TIMING_CHECKS } from './timing.ts';
import { CodecTrial } from './trial.ts';
import { unlessUnseen } from './unseen.ts';
import { WORKER_CHECKS } from './workers.ts';

const CODEC_CHECKS: readonly CheckedRequirement<CodecTrial>[] = [
  ...ROUND_TRIP_CHECKS,
  ...INTEGRITY_CHECKS,
  ...REFUSAL_CHECKS,
  ...ISOLATION_CHECKS,
  ...SECRECY_CHECKS,
  ...KEY_STREAM_CHECKS,
  ...KEYLESS_CHECKS,
  ...PURITY_CHECKS,
  ...WORKER_CHECKS,
  ...TIMING_CHECKS,
].map(unlessUnseen);

/** What every codec is held to, in the order in which it is tried. */
export const CODEC_REQUIREMENTS: readonly Requirement[] = textsOf(CODEC_CHECKS);

/** The suite of codecs. */
const CODEC_SUITE: Suite<CodecTrial> = { name: 'codec', requirements: CODEC_CHECKS, closing: 'CODEC-CLOSES' };

/** How the suite of codecs is run. */
export interface CodecConformanceOptions extends ConformanceOptions {
  /**
   * The URL of the module whose default export, or export `target`, is the target or makes it. What a codec does to its
   * process is then looked at in processes and worker threads of their own. Default: in this process, no threads.
   */
  readonly module?: string | URL;
}

const MODULE = anObject({
  module: v.optional(
    v.pipe(
      v.union([v.string(), v.instance(URL)], 'must be a URL'),
      v.check((url) => URL.canParse(String(url)) && new URL(url).protocol === 'file:', 'must be a file: URL'),
    ),
  ),
});

const IDS = CODEC_REQUIREMENTS.map(({ id }) => id);
const OWNER = 'runCodecConformance';

/**
 * Holds a codec to the contract of `requestState` codecs. Resolves to a report whatever the codec does.
 *
 * @throws {TypeError | RangeError} for a target or an option that is wrong, naming it.
 *
 * @example
 * ```ts
 * import { AesGcmRequestStateCodec } from '@sealring/core';
 * import { runCodecConformance } from '@sealring/conformance';
 *
 * const [a, b] = [randomBytes(32), randomBytes(32)];
 * const codec = (...keys: Uint8Array[]) => ({ codec: new AesGcmRequestStateCodec(keys) });
 * const report = await runCodecConformance({
 *   name: 'my codec',
 *   create: () => codec(a),
 *   createPeer: () => codec(a),
 *   createStranger: () => codec(b),
 *   createRotated: () => codec(b, a),
 * });
 * console.log(report.passed);
 * ```
 */
export async function runCodecConformance(
  target: CodecTarget,
  options: CodecConformanceOptions = {},
): Promise<ConformanceReport> {
  const { module, ...others } = options;
  checkArgument(OWNER, MODULE, { module });
  const subject = { ...readCodecTarget(OWNER, target), ...(module !== undefined && { module: String(module) }) };
  const settings = readOptions(OWNER, others, IDS);
  const open = () => {
    const context = new CodecTrial(subject, settings.seed);
    return { context, pending: context.pending, close: () => context.close() };
  };
  return runSuite(CODEC_SUITE, subject.name, settings, open, target);
}

/**
 * The same as tests of any runner, one for each requirement: its functions are passed in.
 *
 * @throws {TypeError | RangeError} for a target or an option that is wrong, naming it.
 */
export function describeCodec(target: CodecTarget, runner: TestRunner, options: CodecConformanceOptions = {}): void {
  const { name } = readCodecTarget('describeCodec', target);
  const { module, ...others } = options;
  checkArgument('describeCodec', MODULE, { module });
  const { timeoutMs } = readOptions('describeCodec', others, IDS);
  describeSuite(`${name} codec`, CODEC_REQUIREMENTS, runner, others, timeoutMs, (only) =>
    runCodecConformance(target, module === undefined ? only : { ...only, module }),
  );
}
