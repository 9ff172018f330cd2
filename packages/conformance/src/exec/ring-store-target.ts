import type { RingStore } from '@sealring/core';
import type { RingStoreInstance, RingStoreTarget } from '../ring-store/target.ts';
import { THROUGH_PIPE } from '../run.ts';
import type { Failure } from './answer.ts';
import { type ExecOptions, Fleet, failed, named, type Run } from './fleet.ts';

/** A target that must be closed. */
export interface ExecRingStoreTarget extends RingStoreTarget {
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
 * import { execRingStoreTarget, runRingStoreConformance } from '@sealring/conformance';
 *
 * const target = await execRingStoreTarget('python my_store.py');
 * const report = await runRingStoreConformance(target).finally(() => target.close());
 * console.log(report.passed);
 * ```
 */
export async function execRingStoreTarget(
  command: string | readonly string[],
  options: ExecOptions = {},
): Promise<ExecRingStoreTarget> {
  const fleet = new Fleet('execRingStoreTarget', command, options, { timeoutMs: 30_000, notifies: true });
  const { name, supports, can } = await fleet.describe('ring-store');
  const target: ExecRingStoreTarget = {
    name: options.name ?? name ?? fleet.commandLine,
    create: (ring) => openOne(fleet, ring),
    ...(can.includes('remove') && { remove: (ring) => fleet.act(fleet.run(), { op: 'remove', ring }) }),
    ...(can.includes('plant') && {
      plant: (ring, document) => fleet.act(fleet.run(), { op: 'plant', ring, document }),
    }),
    ...(can.includes('break') && {
      async breakConnection() {
        await fleet.act(fleet.run(), { op: 'break' });
        return () => fleet.act(fleet.run(), { op: 'mend' });
      },
    }),
    ...(supports !== undefined && { supports }),
    close: () => fleet.close(),
  };
  return Object.assign(target, { [THROUGH_PIPE]: true });
}

async function openOne(fleet: Fleet, ring: string): Promise<RingStoreInstance> {
  const { run, instance, answer } = await fleet.create('store', { ring });
  if (answer.kind !== 'store') throw failed(answer, errorOf);
  const { has, ...facts } = answer.value;
  const store = { ...facts, ...storeOf(fleet, run, instance, has) };
  return { store, close: () => fleet.closeInstance(run, store) };
}

function storeOf(fleet: Fleet, run: Run, instance: string, has: readonly string[]): Omit<RingStore, 'kind'> {
  return {
    async read(options) {
      const answer = await fleet.ask(run, { op: 'read', instance }, ['stored', 'absent', 'failure'], options);
      if (answer.kind === 'stored') return answer.value;
      if (answer.kind === 'absent') return undefined;
      throw failed(answer, errorOf);
    },
    async write(document, { expected, ...options }) {
      const request = { op: 'write', instance, document, expected: expected ?? null };
      const answer = await fleet.ask(run, request, ['revision', 'failure'], options);
      if (answer.kind === 'revision') return { revision: answer.value };
      throw failed(answer, errorOf);
    },
    ...(has.includes('watch') && { watch: (changed) => watch(fleet, run, instance, changed) }),
    ...(has.includes('close') && { close: () => fleet.act(run, { op: 'close', instance }, errorOf) }),
  };
}

/** Subscribes and unsubscribes without waiting for answers, since `watch` is synchronous. A failure ends the run. */
function watch(fleet: Fleet, run: Run, instance: string, changed: () => void): () => void {
  const watcher = fleet.watch(changed);
  const send = (op: string): Promise<void> =>
    fleet.act(run, { op, instance, watcher }, errorOf).catch((error: unknown) => fleet.fail(run, error));
  const begun = send('watch');
  // This waits for the subscription, because a program may handle several requests concurrently.
  return () => void begun.then(() => send('unwatch'));
}

function errorOf({ kind, message, revision }: Failure): Error {
  if (kind === 'conflict') return named('RingConflictError', message);
  return named('RingStoreError', message, { kind, detail: message, revision });
}
