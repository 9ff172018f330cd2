import type { RequestStateCodec } from '@sealring/core';
import * as v from 'valibot';
import { CODEC_SUPPORT, type CodecInstance, type CodecSupport, type CodecTarget } from '../codec/target.ts';
import { aFlag, aText } from '../options.ts';
import { THROUGH_PIPE } from '../run.ts';
import { type ExecOptions, Fleet, named, programError, type Request, type Run, refused } from './fleet.ts';

/** Options for running a program with a codec. */
export interface ExecCodecOptions extends ExecOptions {
  readonly supports?: CodecSupport;
  /** The name of the error that `unseal` throws for an `invalid` answer. Default `InvalidRequestState`. */
  readonly refusal?: string;
  /** Whether the program supports the role `rotated`. Default true. */
  readonly rotated?: boolean;
}

/** A target that must be closed. */
export interface ExecCodecTarget extends CodecTarget {
  /** Ends the program: closes its input, sends `SIGTERM` if it is still running, and finally kills it. */
  close(): Promise<void>;
}

const KIND = {
  timeoutMs: 10_000,
  options: { supports: v.optional(CODEC_SUPPORT), refusal: v.optional(aText), rotated: v.optional(aFlag) },
};

/**
 * Creates a target from a program in any language that reads requests from standard input and writes answers to
 * standard output, as JSON lines. The first request starts the program. If the program hangs, crashes or gives a wrong
 * answer, the kit reports a finding that shows the request, and starts the program again for later requests. If the
 * program does not answer its very first request, the run ends with that finding.
 *
 * @param command - A command line for the shell, as in an npm script; or a program and its arguments, without a shell.
 * @throws {TypeError | RangeError} for an invalid command or option; the message names it.
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
      // Not every language can represent a lone surrogate.
      const request: Request = { op: 'unseal', instance, token: token.toWellFormed() };
      const answer = fleet.askNow(run, request, ['payload', 'invalid']);
      if (answer.kind === 'payload') return answer.value;
      if (answer.kind === 'invalid') throw named(refusal, answer.value);
      throw programError(answer.value ?? '');
    },
  };
}
