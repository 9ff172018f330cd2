import type { RequestStateCodec } from '@sealring/core';
import * as v from 'valibot';
import { CODEC_SUPPORT, type CodecInstance, type CodecSupport, type CodecTarget } from '../codec/target.ts';
import { aFlag, aText } from '../options.ts';
import { THROUGH_PIPE } from '../run.ts';
import { type ExecOptions, Fleet, named, programError, type Request, type Run, refused } from './fleet.ts';

/** How a program with a codec is run. */
export interface ExecCodecOptions extends ExecOptions {
  readonly supports?: CodecSupport;
  /** The name of the error that an `invalid` answer becomes. Default `InvalidRequestState`. */
  readonly refusal?: string;
  /** Whether it knows the role `rotated`. Default true. */
  readonly rotated?: boolean;
}

/** A target that has to be closed. */
export interface ExecCodecTarget extends CodecTarget {
  /** Ends the program: first its input ends, then it is asked to exit, then it is killed. */
  close(): Promise<void>;
}

const KIND = {
  timeoutMs: 10_000,
  options: { supports: v.optional(CODEC_SUPPORT), refusal: v.optional(aText), rotated: v.optional(aFlag) },
};

/**
 * A codec in any language: a program that reads requests from its standard input and writes answers to its standard
 * output, JSON in lines. It is started by the first request, and again after it hung, crashed or answered wrongly, each
 * of which is a finding that shows the request. Where it does not answer the first request the run ends with that
 * finding.
 *
 * @param command - A command line for the shell, as in an npm script; or a program and its arguments, for none.
 * @throws {TypeError | RangeError} for a command or an option that is wrong, naming it.
 *
 * @example
 * ```ts no-run
 * import { execCodecTarget, runCodecConformance } from '@sealring/conformance';
 *
 * const target = execCodecTarget('python my_codec.py');
 * const report = await runCodecConformance(target).finally(() => target.close());
 * console.log(report.passed);
 * ```
 */
export function execCodecTarget(command: string | readonly string[], options: ExecCodecOptions = {}): ExecCodecTarget {
  const fleet = new Fleet('execCodecTarget', command, options, KIND);
  const { name = fleet.commandLine, supports, refusal = 'InvalidRequestState', rotated = true } = options;
  let instances = 0;
  const open = (role: string): CodecInstance => {
    const run = fleet.run();
    const instance = `i${++instances}`;
    const request = { op: 'create', instance, role };
    const answer = fleet.askNow(run, request, []);
    if (answer.kind === 'error') throw refused(request, answer.value);
    return { codec: codecOf(fleet, run, instance, refusal), close: () => fleet.look(run) };
  };
  const target: ExecCodecTarget = {
    name,
    create: () => open('self'),
    createPeer: () => open('peer'),
    createStranger: () => open('stranger'),
    ...(rotated && { createRotated: () => open('rotated') }),
    ...(supports !== undefined && { supports }),
    refusal,
    close: () => fleet.close(),
  };
  return Object.assign(target, { [THROUGH_PIPE]: true });
}

function codecOf(fleet: Fleet, run: Run, instance: string, refusal: string): RequestStateCodec {
  return {
    seal(payload) {
      const request: Request = { op: 'seal', instance, payload: Buffer.from(payload).toString('base64') };
      const answer = fleet.askNow(run, request, ['token']);
      if (answer.kind === 'token') return answer.value;
      throw programError(answer.value ?? '');
    },
    unseal(token) {
      // Half a surrogate pair is no text that every language can hold.
      const request: Request = { op: 'unseal', instance, token: token.toWellFormed() };
      const answer = fleet.askNow(run, request, ['payload', 'invalid']);
      if (answer.kind === 'payload') return answer.value;
      if (answer.kind === 'invalid') throw named(refusal, answer.value);
      throw programError(answer.value ?? '');
    },
  };
}
