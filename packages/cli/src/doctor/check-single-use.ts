import { randomBytes } from 'node:crypto';
import type { SingleUseStore } from '@sealring/core';
import { singleUseFailureOf } from '../foreign-error.ts';
import { error, type Finding, ok } from './finding.ts';

/**
 * How long the claim of the doctor lasts beyond the store's margin, so that a slow second claim is still made in time.
 */
const CLAIM_LIFE_MS = 60_000;

interface SingleUseCheck {
  /** The clock skew in the ring's policy. */
  readonly clockSkewSeconds: number;
  readonly wallMs: number;
  /** Aborted if the store does not answer in time. */
  readonly signal: AbortSignal;
}

/** The findings, and a description of each write. */
export interface SingleUseFindings {
  readonly findings: readonly Finding[];
  readonly wrote: readonly string[];
}

/** Checks the margin of a store of redeemed tokens, and whether it accepts the claim of a random id only once. */
export async function checkSingleUse(store: SingleUseStore, check: SingleUseCheck): Promise<SingleUseFindings> {
  const margin = marginOf(store, check.clockSkewSeconds);
  const id = randomBytes(32).toString('base64url');
  const until = new Date(check.wallMs + CLAIM_LIFE_MS);
  const wrote: string[] = [];
  try {
    for (const expected of [true, false]) {
      const won = await within(check.signal, store.claim(id, until));
      if (won) wrote.push('a claim of a random id, which expires by itself, in the single-use store');
      if (won !== expected) return { findings: [...margin, unusable(won)], wrote: wrote.slice(0, 1) };
    }
  } catch (thrown) {
    return { findings: [...margin, failed(thrown, check.signal)], wrote };
  }
  const usable = ok('single-use', 'the single-use store accepts a claim once, and refuses it the second time');
  return { findings: [...margin, usable], wrote };
}

/** Makes the check that `RequestStateSecurity` makes when the proxy starts: if it fails, the proxy does not start. */
function marginOf({ clockSkewSeconds: margin }: SingleUseStore, clockSkewSeconds: number): readonly Finding[] {
  if (margin === undefined || margin >= clockSkewSeconds) return [];
  return [
    error(
      'single-use-margin',
      `the single-use store remembers a token for ${margin} s after it has expired, less than clockSkewSeconds (${clockSkewSeconds})`,
      `Set clockSkewSeconds of the single-use store to ${clockSkewSeconds}: the proxy does not start with less.`,
    ),
  ];
}

function unusable(won: unknown): Finding {
  const what =
    won === true
      ? 'the single-use store accepted the same claim twice'
      : `the single-use store ${won === false ? 'refused the claim of a new id' : 'did not answer a claim with a boolean'}`;
  const remedy =
    won === true
      ? 'Do not use this store: it lets a token be redeemed twice.'
      : 'Every token would be refused. Compare the clock of this machine with the clock of the store; test your own store with sealring-conformance.';
  return error('single-use-unusable', what, remedy);
}

function failed(thrown: unknown, signal: AbortSignal): Finding {
  const failure = singleUseFailureOf(thrown);
  if (failure === undefined && !signal.aborted) {
    return error(
      'single-use-error',
      `the single-use store threw ${thrown instanceof Error ? thrown.name : typeof thrown} instead of SingleUseStoreError`,
      'Correct the store, and test it with sealring-conformance.',
    );
  }
  const { kind, detail } = failure ?? { kind: 'unavailable', detail: 'no answer in time' };
  const what = `the single-use store is ${kind}: ${detail}; the proxy refuses every token`;
  switch (kind) {
    case 'unavailable':
      return error(
        'single-use-unavailable',
        what,
        'Check that the host or table exists and that the server is the primary, and check the network and the credentials.',
      );
    case 'denied':
      return error(
        'single-use-denied',
        what,
        'Grant the permission under "Least privilege" in the README of the store: it is separate from the permissions on the ring.',
      );
    case 'corrupt':
      return error(
        'single-use-corrupt',
        what,
        'Run the migration of @sealring/postgres, or configure another place for the claims.',
      );
    case 'too-large':
      return error('single-use-too-large', what, 'Give the claims a separate table, without local indexes.');
    case 'read-only':
      return error('single-use-read-only', what, 'Connect to the primary.');
  }
}

/** Waits for a claim until the signal is aborted, because a claim takes no signal. @throws the signal's reason. */
function within<T>(signal: AbortSignal, answer: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    answer.then(resolve, reject);
  });
}
