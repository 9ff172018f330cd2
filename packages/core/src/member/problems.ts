import type { Moment } from '../base/clock.ts';
import { MAX_KEYS_TO_ROTATE } from '../ring/policy.ts';
import { isUsable, liveKeys } from '../ring/snapshot.ts';
import { type RingClock, SERVICE_NAMES } from './ring-clock.ts';
import type { RingSync } from './sync.ts';
import type { RingView } from './view.ts';
import type { RingWriter } from './writer.ts';

/**
 * Problems that an operator must solve:
 *
 * - `clock`: this machine's time is not confirmed, so this member publishes nothing.
 * - `service-clock`: the date of the KMS or the store disagrees with the dates of the other service and this machine.
 * - `contested`: something else keeps writing to this ring's place in the store.
 * - `foreign-ring`: the store holds no key that a known key vouches for, and this process has no usable key left.
 * - `unreadable-key`: no key wrapper of this process can unwrap a key of the ring; this process refuses its tokens.
 * - `no-sealing-key`: no key may seal, because each has expired, is revoked or does not seal yet, and no new key could be created.
 * - `nearly-full`: the ring has 48 or more of at most 64 keys, so no rotation can be requested.
 */
export type RingProblemKind = (typeof RING_PROBLEM_KINDS)[number];

/** Every {@link RingProblemKind}. */
export const RING_PROBLEM_KINDS = [
  'clock',
  'service-clock',
  'contested',
  'foreign-ring',
  'unreadable-key',
  'no-sealing-key',
  'nearly-full',
] as const;

/** One problem and its remedy. */
export interface RingProblem {
  readonly kind: RingProblemKind;
  /** The problem, in one sentence that contains no secret. */
  readonly detail: string;
  readonly remedy: string;
}

export function problemsOf(
  ring: {
    readonly role: 'member' | 'reader';
    readonly view: RingView;
    readonly sync: RingSync;
    readonly writer: RingWriter;
    readonly clock: RingClock;
  },
  now: Moment,
): readonly RingProblem[] {
  const { role, view, sync, writer, clock } = ring;
  const problems: RingProblem[] = [];
  const trouble = clock.trouble(now);
  if (trouble !== undefined) {
    problems.push({
      kind: 'clock',
      detail: trouble,
      remedy: 'synchronize the clock of this machine with NTP, then restart this process',
    });
  }
  const disputed = clock.disputedBy(now);
  if (disputed !== undefined) {
    problems.push({
      kind: 'service-clock',
      detail: `the clock of ${SERVICE_NAMES[disputed]} disagrees with the clock of this machine`,
      remedy: `compare the clock of ${SERVICE_NAMES[disputed]} with NTP`,
    });
  }
  if (sync.repairs.isContested(now)) {
    problems.push({
      kind: 'contested',
      detail: "something else keeps writing to this ring's place in the store",
      remedy: 'give each fleet its own place in the store, and check who can write to this one',
    });
  }
  const isUsableNow = liveKeys(view.snapshot, view.wallMs(now)).some(isUsable);
  if (sync.repairs.isForeign && !isUsableNow) {
    problems.push({
      kind: 'foreign-ring',
      detail: 'the store holds keys that no known key vouches for, and this process has no usable key left',
      remedy: 'if that ring is the right one, restart this process; otherwise import a copy of the right one',
    });
  }
  const [unreadable] = view.snapshot.unreadable;
  if (unreadable !== undefined) {
    problems.push({
      kind: 'unreadable-key',
      detail: `no key wrapper of this process can unwrap the key ${unreadable.id} of the ring`,
      remedy:
        'give this process the same key wrappers as the other members; if it already has them, someone wrote a forged key to the store: see the guide on incidents',
    });
  }
  if (role === 'member' && writer.isDead) {
    problems.push({
      kind: 'no-sealing-key',
      detail: 'no key can seal: each has expired, is revoked or does not seal yet',
      remedy: 'a member creates a key as soon as the KMS answers, the clock is right and the ring has room',
    });
  }
  if (writer.keyCount >= MAX_KEYS_TO_ROTATE) {
    problems.push({
      kind: 'nearly-full',
      detail: `the ring has ${writer.keyCount} of 64 keys`,
      remedy: 'request no rotations until the oldest keys have expired; revocation still works',
    });
  }
  return problems;
}
