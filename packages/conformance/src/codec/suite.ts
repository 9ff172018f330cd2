import * as v from 'valibot';
import type { ConformanceOptions } from '../options.ts';
import type { ConformanceReport, Requirement } from '../requirement.ts';
import { type Suite, suiteOf, type TestRunner } from '../run.ts';
import { INTEGRITY_CHECKS } from './integrity.ts';
import { ISOLATION_CHECKS, WORKER_CHECKS } from './isolation.ts';
import { PURITY_CHECKS } from './purity.ts';
import { REFUSAL_CHECKS, TIMING_CHECKS } from './refusals.ts';
import { CODEC_TABLE } from './requirements.ts';
import { ROUND_TRIP_CHECKS } from './round-trip.ts';
import { KEY_STREAM_CHECKS, KEYLESS_CHECKS, SECRECY_CHECKS } from './secrecy.ts';
import { type CodecTarget, checkCodecTarget } from './target.ts';
import { type CodecChecks, CodecTrial } from './trial.ts';

/** What cannot be seen of a codec that is asked through a pipe, and why. */
export const UNSEEN_THROUGH_PIPE: Readonly<Record<string, string>> = {
  'CODEC-SYNCHRONOUS': 'an answer that was waited for looks like any other',
  'CODEC-ROUNDTRIP-VIEW': 'the program makes the buffer that it seals itself',
  'CODEC-CALLERS-BUFFER': 'the program makes the buffer that it seals itself',
  'CODEC-OWN-RESULT': 'only a copy of the bytes arrives here',
  // Many languages cannot even pass such a value to a codec, and would fail in reading the request.
  'CODEC-NOT-TEXT': 'the protocol carries tokens as text',
  'CODEC-NOT-TEXT-CLASS': 'the protocol carries tokens as text',
  'CODEC-QUIET': 'what the program prints may not be the codec’s',
  'CODEC-NO-IO': 'it happens in another process',
  'CODEC-NO-TIMERS': 'they are in another process',
  'CODEC-ENDS': 'they are in another process',
  'CODEC-HUGE-QUICK': 'the way through the pipe takes longer than the refusal',
  'CODEC-NO-GLOBALS': 'they are in another process',
  'CODEC-NO-EXIT': 'a program that ends is found by every requirement',
  'CODEC-TIMING': 'the way through the pipe takes longer than the refusal',
};

const CODEC_CHECKS: CodecChecks = {
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
};

/** How the suite of codecs is run. */
export interface CodecConformanceOptions extends ConformanceOptions {
  /**
   * The URL of the module whose default export, or export `target`, is the target or makes it. What a codec does to its
   * process is then looked at in processes and worker threads of their own. Default: in this process, no threads.
   */
  readonly module?: string | URL;
}

export const CODEC_SUITE: Suite<CodecTarget, CodecConformanceOptions> = suiteOf({
  name: 'codec',
  title: 'Codec',
  noun: 'codec',
  requirements: CODEC_TABLE,
  checks: CODEC_CHECKS,
  unseenThroughPipe: UNSEEN_THROUGH_PIPE,
  timeoutMs: 60_000,
  options: {
    module: v.optional(
      v.pipe(
        v.union([v.string(), v.instance(URL)], 'must be a URL'),
        v.check((url) => URL.canParse(String(url)) && new URL(url).protocol === 'file:', 'must be a file: URL'),
      ),
    ),
  },
  check: (owner, target) => checkCodecTarget(owner, target),
  open: (target, { seed }, { module }) => new CodecTrial(target, seed, module),
});

/** What every codec is held to, in the order in which it is tried. */
export const CODEC_REQUIREMENTS: readonly Requirement[] = CODEC_SUITE.requirements;

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
export function runCodecConformance(
  target: CodecTarget,
  options: CodecConformanceOptions = {},
): Promise<ConformanceReport> {
  return CODEC_SUITE.run(target, options);
}

/**
 * The same as tests of any runner, one for each requirement: its functions are passed in.
 *
 * @throws {TypeError | RangeError} for a target or an option that is wrong, naming it.
 */
export function describeCodec(target: CodecTarget, runner: TestRunner, options: CodecConformanceOptions = {}): void {
  CODEC_SUITE.describe(target, runner, options);
}
