import { setTimeout as pause } from 'node:timers/promises';
import type { RingStore } from '@sealring/core';
import type { Outcome } from '../trial.ts';
import type { RingStoreTrial } from './trial.ts';

export type SignalledCall = readonly [what: string, call: (signal: AbortSignal) => unknown];

/** Calls to a store that has been used and to a store that has not. */
export function callsOf(
  store: RingStore,
  unused: RingStore,
  document: string,
  expected: string,
): readonly SignalledCall[] {
  return [
    ['a read', (signal) => store.read({ signal })],
    ['a write', (signal) => store.write(document, { expected, signal })],
    ['a first read', (signal) => unused.read({ signal })],
    ['a first write', (signal) => unused.write(document, { expected, signal })],
  ];
}

/**
 * The outcomes of calls to an unreachable backend. The outcome of a call that does not end soon after its deadline is
 * `undefined`.
 */
export function outOfReach(
  trial: RingStoreTrial,
  deadlineMs: number,
  slackMs: number,
  calls: readonly SignalledCall[],
): Promise<readonly (readonly [what: string, outcome: Outcome | undefined])[]> {
  return trial.all(
    calls.map(async ([what, call]) => {
      const ended = trial.promised(() => call(AbortSignal.timeout(deadlineMs)), what);
      const outcome = await Promise.race([ended, pause(deadlineMs + slackMs, undefined, { ref: false })]);
      return [`${what} with an unreachable backend`, outcome] as const;
    }),
  );
}
