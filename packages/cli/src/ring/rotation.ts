import { type KeyTimes, type ResolvedPolicy, rotateAt } from '@sealring/core/ring';

/** Whether the successor of the newest key is late, and when it is or was due. */
export interface Rotation {
  /**
   * `late`: members should have published it by now. `overdue`: the key has sealed for too long. `stopped`: nothing may
   * seal.
   */
  readonly state: 'due-later' | 'late' | 'overdue' | 'stopped';
  readonly due: Date;
  /** A description in one sentence. */
  readonly detail: string;
}

export const ROTATION_REMEDY =
  'Make sure that at least one running member can use the KMS key and write to the store. Or run: sealring rotate.';

/** Whether the newest live key of a ring is due for rotation. */
export function rotationOf(newest: KeyTimes, times: ResolvedPolicy, nowMs: number): Rotation {
  const dueMs = rotateAt(newest, times);
  const due = new Date(dueMs);
  const lateMs = nowMs - dueMs;
  if (nowMs >= newest.sealsUntil) {
    const detail = `no key may seal: the newest key stopped sealing at ${new Date(newest.sealsUntil).toISOString()}`;
    return { state: 'stopped', due, detail };
  }
  if (lateMs > times.propagationSeconds * 1_000) {
    return {
      state: 'overdue',
      due,
      detail: `a rotation was due at ${due.toISOString()}: the newest key has sealed for too long`,
    };
  }
  // Members wait up to refreshEverySeconds, and again after a failed attempt.
  if (lateMs > 2 * times.refreshEverySeconds * 1_000) {
    return { state: 'late', due, detail: `a rotation was due at ${due.toISOString()}, but no member has rotated yet` };
  }
  return { state: 'due-later', due, detail: `the next rotation is due at ${due.toISOString()}` };
}
