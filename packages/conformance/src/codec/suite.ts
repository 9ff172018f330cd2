import { describeSuite, type TestRunner } from '../describe.ts';
import { type ConformanceOptions, readOptions } from '../options.ts';
import type { ConformanceReport } from '../report.ts';
import { runSuite, type Suite } from '../run.ts';
import { INTEGRITY_CHECKS } from './integrity.ts';
import { ISOLATION_CHECKS } from './isolation.ts';
import { PURITY_CHECKS } from './purity.ts';
import { REFUSAL_CHECKS } from './refusals.ts';
import { CODEC_REQUIREMENTS } from './requirements.ts';
import { ROUND_TRIP_CHECKS } from './round-trip.ts';
import { SECRECY_CHECKS } from './secrecy.ts';
import { type CodecTarget, readCodecTarget } from './target.ts';
import { CodecTrial } from './trial.ts';

/** The suite of codecs. */
export const CODEC_SUITE: Suite<CodecTrial> = {
  name: 'codec',
  requirements: CODEC_REQUIREMENTS,
  checks: [
    ...ROUND_TRIP_CHECKS,
    ...INTEGRITY_CHECKS,
    ...REFUSAL_CHECKS,
    ...ISOLATION_CHECKS,
    ...SECRECY_CHECKS,
    ...PURITY_CHECKS,
  ],
};

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
  options?: ConformanceOptions,
): Promise<ConformanceReport> {
  const subject = readCodecTarget(OWNER, target);
  const settings = readOptions(OWNER, options, IDS);
  return runSuite(CODEC_SUITE, subject.name, settings, () => {
    const context = new CodecTrial(subject, settings.seed);
    return { context, close: () => context.close() };
  });
}

/**
 * The same as tests of any runner, one for each requirement: its functions are passed in.
 *
 * @throws {TypeError | RangeError} for a target or an option that is wrong, naming it.
 */
export function describeCodec(target: CodecTarget, runner: TestRunner, options: ConformanceOptions = {}): void {
  const { name } = readCodecTarget('describeCodec', target);
  const { timeoutMs } = readOptions('describeCodec', options, IDS);
  describeSuite(`${name} codec`, CODEC_REQUIREMENTS, runner, options, timeoutMs, (only) =>
    runCodecConformance(target, only),
  );
}
