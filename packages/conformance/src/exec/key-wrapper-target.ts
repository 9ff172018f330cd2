import { isUint8Array } from 'node:util/types';
import type { KeyWrapper, WrappedKey } from '@sealring/core';
import type { KeyWrapperInstance, KeyWrapperTarget } from '../key-wrapper/target.ts';
import { THROUGH_PIPE } from '../run.ts';
import type { Answer, Failure, ResultKind, Results } from './answer.ts';
import { type CallOptions, type ExecOptions, Fleet, failed, named, type Run } from './fleet.ts';

/** A target that must be closed. */
export interface ExecKeyWrapperTarget extends KeyWrapperTarget {
  /** Ends the program: closes its input, then sends `SIGTERM`, then kills it. */
  close(): Promise<void>;
}

/**
 * Creates a target from a program in any language that reads and writes JSON lines, as for {@link execCodecTarget}.
 * Starts the program at once and asks what it supports.
 *
 * @param command - A command line for the shell, as in an npm script; or a program and its arguments, without a shell.
 * @throws {TypeError | RangeError} for an invalid command or option; the message names it. {@link Error} for a program
 * that does not start, with the message `your program did not start: …`.
 *
 * @example
 * ```ts no-run
 * import { execKeyWrapperTarget, runKeyWrapperConformance } from '@sealring/conformance';
 *
 * const target = await execKeyWrapperTarget('python my_key_wrapper.py');
 * const report = await runKeyWrapperConformance(target).finally(() => target.close());
 * console.log(report.passed);
 * ```
 */
export async function execKeyWrapperTarget(
  command: string | readonly string[],
  options: ExecOptions = {},
): Promise<ExecKeyWrapperTarget> {
  const fleet = new Fleet('execKeyWrapperTarget', command, options, { timeoutMs: 30_000 });
  const { name, supports, can } = await fleet.describe('key-wrapper');
  const open = (role: string) => (): Promise<KeyWrapperInstance> => openOne(fleet, role);
  const target: ExecKeyWrapperTarget = {
    name: options.name ?? name ?? fleet.commandLine,
    create: open('self'),
    createOtherKey: open('other'),
    ...(supports?.['remote'] !== false && { createUnreachable: open('unreachable') }),
    control: fleet.able(can, 'disable', 'enable', 'deny', 'allow', 'rotate'),
    ...(supports !== undefined && { supports }),
    close: () => fleet.close(),
  };
  return Object.assign(target, { [THROUGH_PIPE]: true });
}

async function openOne(fleet: Fleet, role: string): Promise<KeyWrapperInstance> {
  const { run, instance, answer } = await fleet.create('keyWrapper', { role });
  if (answer.kind !== 'keyWrapper') throw failed(answer, errorOf);
  const { has, ...facts } = answer.value;
  const keyWrapper = keyWrapperOf(fleet, run, instance, facts, has);
  return { keyWrapper, close: () => fleet.closeInstance(run, keyWrapper) };
}

function keyWrapperOf(
  fleet: Fleet,
  run: Run,
  instance: string,
  facts: Pick<KeyWrapper, 'provider' | 'keyId' | 'supports'>,
  has: readonly string[],
): KeyWrapper {
  type Arguments = Readonly<Record<string, unknown>>;
  const ask = async <Kind extends ResultKind>(kind: Kind, op: string, args: Arguments, options?: CallOptions) =>
    resultOf(await fleet.ask<ResultKind>(run, { op, instance, ...args }, [kind, 'failure'], options), kind);
  const askNow = <Kind extends ResultKind>(kind: Kind, op: string, args: Arguments) =>
    resultOf(fleet.askNow<ResultKind>(run, { op, instance, ...args }, [kind, 'failure']), kind);
  const all: Required<Omit<KeyWrapper, keyof typeof facts>> = {
    async wrap(dataKey, { context, ...options }) {
      return ask('wrapped', 'wrap', { dataKey: base64(dataKey), context }, options);
    },
    async unwrap(wrapped, { context, ...options }) {
      return ask('dataKey', 'unwrap', { wrapped: recordOf(wrapped), context }, options);
    },
    async generate({ context, ...options }) {
      return ask('generated', 'generate', { context }, options);
    },
    async sign(entry, options) {
      return ask('signature', 'sign', { entry: base64(entry) }, options);
    },
    verify: (entry, signature) => askNow('verified', 'verify', { entry: base64(entry), signature: base64(signature) }),
    owns: (wrapped) => askNow('owned', 'owns', { wrapped: recordOf(wrapped) }),
    close: () => fleet.act(run, { op: 'close', instance }, errorOf),
  };
  const given = Object.entries(all).filter(([name]) => name === 'wrap' || name === 'unwrap' || has.includes(name));
  return { ...facts, ...(Object.fromEntries(given) as Pick<KeyWrapper, 'wrap' | 'unwrap'>) };
}

function resultOf<Kind extends ResultKind>(answer: Answer<ResultKind>, kind: Kind): Results[Kind] {
  if (answer.kind !== kind) throw failed(answer, errorOf);
  return answer.value as Results[Kind];
}

function errorOf({ kind, message, provider, operation }: Failure): Error {
  return named('KeyWrapperError', message, { kind, summary: { provider, operation } });
}

/** @throws {TypeError} for a value that is not bytes, since the protocol cannot carry it. */
function base64(bytes: unknown): string {
  if (isUint8Array(bytes)) return Buffer.from(bytes).toString('base64');
  throw new TypeError('the protocol carries only bytes here');
}

function recordOf({ provider, keyId, wrapped, signature }: WrappedKey): object {
  return {
    provider,
    keyId,
    wrapped: base64(wrapped),
    ...(signature !== undefined && { signature: base64(signature) }),
  };
}
