import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import type { KeyWrapper, WrapOptions } from '@sealring/core';
import { expectThat, Finding } from '../requirement.ts';
import { THROUGH_PIPE } from '../run.ts';
import { describeThrown } from '../thrown.ts';
import { type Outcome, within } from '../trial.ts';
import { expectKind } from './errors.ts';
import {
  type Call,
  copyOf,
  type KeyWrapperChecks,
  type KeyWrapperTrial,
  type Made,
  NOWHERE,
  OPTIONS,
  promptly,
} from './trial.ts';

/**
 * When to abort, in turns of the event loop; one entry for each reason. At 0, no response from a service can have
 * arrived.
 */
const TURNS = [0, 1, 3, 0, 0, 1];
/** Later moments with an unreachable service, in milliseconds: during retries and the pauses between them. */
const LATER_MS = [20, 60, 150, 400, 1_000];
/** Later moments with a reachable service, as fractions of the duration of a call, if it is long enough. */
const PARTS = [0.3, 0.7];
const LONG_MS = 5;

export const ABORT_CHECKS: KeyWrapperChecks = {
  'WRAP-ABORT': async (trial) => {
    const [keyWrapper, unasked] = [await trial.create(), await trial.createUnasked()];
    const made = await trial.make(keyWrapper);
    const reasons = await reasonsOf(trial, keyWrapper, made);
    for (const [asked, where] of [
      [keyWrapper, ''],
      [unasked, `, ${NOWHERE}`],
    ] as const) {
      for (const call of trial.calls(asked, made)) {
        for (const [i, turns] of TURNS.entries()) {
          const what = `${call.name}, aborted in progress${where}`;
          // A key wrapper may build different options for its service if the caller wants the date.
          const onServiceDate = i % 2 === 0 ? undefined : () => undefined;
          await expectAborted(trial, call, what, { turns, reason: reasons[i], onServiceDate });
        }
        const beside = `${call.name}, aborted alongside other calls${where}`;
        await expectAtOnce(trial, () => call, beside, { afterMs: 0, reason: undefined, others: MANY });
      }
    }
    for (const call of trial.calls(keyWrapper, made)) await expectAtOnceWithin(trial, call);
    if (trial.target.createUnreachable !== undefined) await expectAtOnceLater(trial, made, reasons);
  },
  'WRAP-ABORT-ALONE': async (trial) => {
    const { keyWrapper, ...made } = await trial.createOpened();
    const names = trial.calls(keyWrapper, made).map(({ name }) => name);
    // On a new instance, the first two calls may share a connection or a login.
    for (const isNew of [false, true]) {
      for (const [name, isFirst] of names.flatMap((one) => [true, false].map((first) => [one, first] as const))) {
        const asked = isNew ? await trial.create() : keyWrapper;
        const { start } = trial.calls(asked, made).find((call) => call.name === name) as Call;
        const controller = new AbortController();
        const other = new AbortController();
        const signals = isFirst ? [controller, other] : [other, controller];
        const calls = signals.map(({ signal }) => trial.settle(() => start(signal), name));
        controller.abort();
        const kept = (await Promise.all(calls))[isFirst ? 1 : 0] as Outcome;
        const failed = 'error' in kept ? describeThrown(kept.error) : '';
        expectThat(failed === '', `a ${name} that was not aborted failed when a concurrent one was aborted: ${failed}`);
      }
    }
  },
  'WRAP-ABORTED': async (trial) => {
    const { keyWrapper, ...made } = await trial.createOpened();
    const reasons = await reasonsOf(trial, keyWrapper, made);
    for (const asked of [keyWrapper, await trial.createUnasked()]) {
      for (const { name, start } of trial.calls(asked, made)) {
        for (const reason of reasons) {
          const what = `${name} with a signal that has aborted`;
          await trial.expectUnavailable(() => start(AbortSignal.abort(reason)), what);
        }
      }
    }
  },
};

/**
 * Abort reasons, including null, the reason of `AbortSignal.timeout`, and an error of the key wrapper’s own class. For
 * each of them, the call must fail as `unavailable`.
 */
async function reasonsOf(
  trial: KeyWrapperTrial,
  keyWrapper: KeyWrapper,
  { wrapped }: Made,
): Promise<readonly unknown[]> {
  const foreign = { ...copyOf(wrapped), provider: 'conformance-elsewhere' };
  const own = await trial.settle(() => keyWrapper.unwrap(foreign, OPTIONS), 'unwrap of another provider’s wrapped key');
  const late = new DOMException('the caller’s deadline has passed', 'TimeoutError');
  return [undefined, 'error' in own ? own.error : undefined, 'text', null, late, new Error('the caller’s own error')];
}

/** When and how a call is aborted. */
interface Abort {
  readonly turns: number;
  readonly reason: unknown;
  readonly onServiceDate?: WrapOptions['onServiceDate'];
}

/** Expects a call that is aborted after some turns of the event loop to end as unavailable, unless it ended first. */
async function expectAborted(
  trial: KeyWrapperTrial,
  call: Call,
  what: string,
  { turns, reason, onServiceDate }: Abort,
): Promise<void> {
  const isPipe = THROUGH_PIPE in trial.target;
  // A program may have answered before it reads the abort, so the call is tried several times.
  for (let tries = isPipe ? 5 : 1; tries > 0; tries--) {
    const outcome = await promptly(abortedUnderWay(trial, call, { turns, reason, onServiceDate }), what);
    if (outcome === undefined) return;
    if ('error' in outcome) {
      expectKind(outcome.error, 'unavailable', what);
      return;
    }
    // An answer may arrive before the abort, as it always does for a wrapper within the process.
    if (turns > 0 || !trial.supports.remote || (isPipe && outcome.afterMs <= 20)) return;
  }
  throw new Finding(`${what}, succeeded nevertheless`);
}

/** The outcome, and the time since the abort; undefined for a call that ended before the abort. */
async function abortedUnderWay(
  trial: KeyWrapperTrial,
  { name, start }: Call,
  { turns, reason, onServiceDate }: Abort,
): Promise<(Outcome & { readonly afterMs: number }) | undefined> {
  const controller = new AbortController();
  let hasEnded = false;
  const call = trial
    .settle(() => start(controller.signal, onServiceDate), name)
    .finally(() => {
      hasEnded = true;
    });
  // Waits only for microtasks: no response from a service arrives without a turn of the event loop.
  for (let i = 0; i < 20; i++) await Promise.resolve();
  if (hasEnded) return undefined;
  for (let i = 0; i < turns; i++) await nextTurn();
  const abortedAt = performance.now();
  controller.abort(reason);
  return { ...(await call), afterMs: performance.now() - abortedAt };
}

/** Number of times that a check is tried. */
const TRIES = 3;
/** Number of calls before the aborted one: more than most wrappers make at a time. */
const MANY = 20;
/** Number of turns of the event loop within which a call counts as ending at once. */
const AT_ONCE_TURNS = 200;
/** How many of the kit’s timers must fire before a call counts as late. A busy machine delays the timers, too. */
const TIMERS = { here: { count: 12, ms: 5 }, throughPipe: { count: 40, ms: 25 } };

/** Aborts a call to a reachable service midway, if it takes long enough. */
async function expectAtOnceWithin(trial: KeyWrapperTrial, call: Call): Promise<void> {
  const began = performance.now();
  await trial.settle(call.start, call.name);
  const tookMs = performance.now() - began;
  if (tookMs < LONG_MS) return;
  for (const part of PARTS) {
    const what = `${call.name}, aborted after ${part} of its duration,`;
    await expectAtOnce(trial, () => call, what, { afterMs: tookMs * part, reason: undefined });
  }
}

/** Aborts calls during retries, each on its own instance, since some instances stop retrying after failures. */
async function expectAtOnceLater(trial: KeyWrapperTrial, made: Made, reasons: readonly unknown[]): Promise<void> {
  const all = trial.calls(await trial.createUnasked(), made);
  const running = LATER_MS.flatMap((afterMs, moment) =>
    all.map(async ({ name }, i) => {
      const renew = async (): Promise<Call> => trial.calls(await trial.createUnasked(), made)[i] as Call;
      const reason = reasons[moment % reasons.length];
      await expectAtOnce(trial, renew, `${name}, aborted after ${afterMs} ms ${NOWHERE}`, { afterMs, reason });
    }),
  );
  await trial.all(running);
}

/**
 * Expects aborted calls to end at once, and before earlier calls that wait for their service. Checks nothing if any
 * call ends before the abort.
 */
async function expectAtOnce(
  trial: KeyWrapperTrial,
  renew: () => Call | Promise<Call>,
  what: string,
  { afterMs, reason, others = 1 }: { readonly afterMs: number; readonly reason: unknown; readonly others?: number },
): Promise<void> {
  let finding = '';
  for (let tries = 0; tries < TRIES; tries++) {
    const { name, start } = await renew();
    const [aborted, other] = [new AbortController(), new AbortController()];
    const ended: string[] = [];
    const begin = ({ signal }: AbortController): Promise<Outcome> => trial.settle(() => start(signal), name);
    const before = Array.from({ length: others }, () => begin(other).finally(() => ended.push('other')));
    // Two calls share one signal: neither may replace the other's listener.
    const both = Promise.all([begin(aborted), begin(aborted)]).finally(() => ended.push('aborted'));
    if (afterMs > 0) await within(afterMs, Promise.race([...before, both]), undefined);
    const isOver = ended.length > 0;
    aborted.abort(reason);
    finding = isOver ? '' : await lateness(trial, ended);
    other.abort();
    if (finding !== '') continue;
    await Promise.all(before);
    for (const outcome of await both) {
      if (!isOver && 'error' in outcome) expectKind(outcome.error, 'unavailable', what);
    }
    return;
  }
  throw new Finding(`${what} ${finding}`);
}

/** Why the aborted calls have not ended at once; empty if they have. */
async function lateness({ target }: KeyWrapperTrial, ended: readonly string[]): Promise<string> {
  const isPipe = THROUGH_PIPE in target;
  for (let turn = 0; turn < AT_ONCE_TURNS && !ended.includes('aborted'); turn++) await nextTurn();
  if (ended.includes('aborted')) return '';
  const { count, ms } = isPipe ? TIMERS.throughPipe : TIMERS.here;
  for (let timer = 0; timer < count && !ended.includes('aborted'); timer++) await pause(ms);
  if (!ended.includes('aborted')) return `had not ended ${count * ms} ms later`;
  return ended[0] === 'aborted' || isPipe ? '' : 'ended after the other call';
}
