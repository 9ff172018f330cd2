import * as v from 'valibot';
import type { ConformanceOptions } from '../options.ts';
import type { ConformanceReport, Requirement } from '../requirement.ts';
import { type Suite, suiteOf } from '../run.ts';
import type { TestRunner } from '../runner.ts';
import { CANONICAL_CHECKS } from './canonical.ts';
import { CLOCK_CHECKS } from './clock.ts';
import { FORGERY_CHECKS } from './forgeries.ts';
import { INTEGRITY_CHECKS } from './integrity.ts';
import { ISOLATION_CHECKS, WORKER_CHECKS } from './isolation.ts';
import { JUNK_CHECKS } from './junk.ts';
import { KEY_STREAM_CHECKS } from './key-stream.ts';
import { PURITY_CHECKS } from './purity.ts';
import { REFUSAL_CHECKS } from './refusals.ts';
import { CODEC_TABLE } from './requirements.ts';
import { ROUND_TRIP_CHECKS } from './round-trip.ts';
import { KEYLESS_CHECKS, SECRECY_CHECKS } from './secrecy.ts';
import { type CodecTarget, checkCodecTarget } from './target.ts';
import { TIMING_CHECKS } from './timing.ts';
import { type CodecChecks, CodecTrial } from './trial.ts';

/** Requirements that cannot be checked through a pipe, with the reason. */
export const UNSEEN_THROUGH_PIPE: Readonly<Record<string, string>> = {
  'CODEC-SYNCHRONOUS': 'the kit waits for every answer',
  'CODEC-ROUNDTRIP-VIEW': 'the program creates the buffer that it seals',
  'CODEC-ROUNDTRIP-REALM': 'the program creates the buffer that it seals',
  'CODEC-CALLERS-BUFFER': 'the program creates the buffer that it seals',
  'CODEC-OWN-RESULT': 'the kit receives only a copy of the bytes',
  'CODEC-NOT-KEPT': 'the program creates the buffer that it seals',
  // Many languages cannot pass such a value to a codec, and would fail to read the request.
  'CODEC-NOT-TEXT': 'the protocol carries tokens as text',
  'CODEC-NOT-TEXT-CLASS': 'the protocol carries tokens as text',
  'CODEC-QUIET': 'the program may also print',
  'CODEC-NO-IO': 'the calls happen in another process',
  'CODEC-NO-TIMERS': 'the timers are in another process',
  'CODEC-ENDS': 'the timers are in another process',
  'CODEC-HUGE-QUICK': 'the pipe takes longer than the refusal',
  'CODEC-NO-GLOBALS': 'the globals are in another process',
  'CODEC-NO-EXIT': 'every requirement reports a program that ends',
  'CODEC-TIMING': 'the pipe takes longer than the refusal',
  'CODEC-CLOCK-SKEW': 'the program uses the clock of its machine',
  'CODEC-AGE': 'the program uses the clock of its machine',
};

const CODEC_CHECKS: CodecChecks = {
  ...ROUND_TRIP_CHECKS,
  ...INTEGRITY_CHECKS,
  ...FORGERY_CHECKS,
  ...CANONICAL_CHECKS,
  ...JUNK_CHECKS,
  ...REFUSAL_CHECKS,
  ...ISOLATION_CHECKS,
  ...SECRECY_CHECKS,
  ...KEY_STREAM_CHECKS,
  ...KEYLESS_CHECKS,
  ...PURITY_CHECKS,
  ...WORKER_CHECKS,
  ...TIMING_CHECKS,
  ...CLOCK_CHECKS,
};

/** Options of the codec suite. */
export interface CodecConformanceOptions extends ConformanceOptions {
  /**
   * The URL of a module that exports the target, or a function that creates it, as `target` or as its default export.
   * The kit then checks the effects of a codec on its process in separate processes and worker threads. Without this
   * option, the kit checks them in this process, without threads.
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

/** The requirements for codecs, in the order of the checks. */
export const CODEC_REQUIREMENTS: readonly Requirement[] = CODEC_SUITE.requirements;

/**
 * Checks a codec against the contract of `requestState` codecs. Resolves to a report whatever the codec does.
 *
 * @throws {TypeError | RangeError} for an invalid target or option; the message names it.
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
 * Defines one test for each requirement, with the functions of any test runner.
 *
 * @throws {TypeError | RangeError} for an invalid target or option; the message names it.
 */
export function describeCodec(target: CodecTarget, runner: TestRunner, options: CodecConformanceOptions = {}): void {
  CODEC_SUITE.describe(target, runner, options);
}
