import type { Moment } from '../base/clock.ts';
import type { CodecFailure, CodecStatus } from '../contracts/events.ts';
import type { RingKeeper } from '../member/keeper.ts';
import type { RingProblem } from '../member/problems.ts';
import type { KeyState } from '../ring/schedule.ts';

/**
 * The state of a codec. Use it for readiness probes, never for liveness probes: a restart would drop the unwrapped keys.
 */
export interface CodecHealth {
  /** `degraded`: works, but needs attention. `failing`: send it no requests. */
  readonly status: CodecStatus;
  /**
   * For readiness probes: whether the codec can unseal, its ring is up to date, its clock is right and, if it is a
   * member, it can seal.
   */
  readonly ready: boolean;
  /** Whether a key may seal now. If not, `seal` throws a `SealUnavailableError`. */
  readonly canSeal: boolean;
  /** Whether a key unseals tokens now. If not, every token is refused. */
  readonly canUnseal: boolean;
  /** The time up to which sealing continues if neither the KMS nor the store answers again. */
  readonly sealUntil: Date | undefined;
  /** Id of the key that seals now. */
  readonly sealingKey: string | undefined;
  /** All keys of the ring, oldest first. */
  readonly keys: readonly KeyHealth[];
  /** When a refresh last succeeded completely. */
  readonly lastRefresh: Date | undefined;
  /** When an unwrap by the KMS last returned the right bytes. */
  readonly lastKmsCheck: Date | undefined;
  /** The source, kind and time of the last failure; undefined once a refresh has succeeded. */
  readonly lastError: (CodecFailure & { readonly at: Date }) | undefined;
  /** Problems that an operator must solve, each with its remedy. */
  readonly problems: readonly RingProblem[];
}

/** One key of the ring in {@link CodecHealth}. */
export interface KeyHealth {
  /** The key id, as in tokens and in the ring document. */
  readonly id: string;
  /** The state now, by this member's clock. */
  readonly state: KeyState;
  /** Whether this member holds the unwrapped key. */
  readonly held: boolean;
  /** When it was created. */
  readonly created: Date;
  /** The time from which it may seal. */
  readonly activates: Date;
  /** The time from which it no longer seals. */
  readonly sealsUntil: Date;
  /** The time from which it no longer unseals. */
  readonly unsealsUntil: Date;
}

/** The health of a keeper. @throws {CodecClosedError} */
export function healthOf(keeper: RingKeeper): CodecHealth {
  const { view, condition } = keeper;
  const now = view.now();
  const states = view.states(now);
  const { limits } = view;
  const canSeal = view.canSeal(now);
  const problems = condition.problems(now);
  return {
    status: condition.status(now, problems),
    ready: view.isReady(now),
    canSeal,
    canUnseal: view.canUnseal(now),
    sealUntil: sealUntilOf(limits.sealUntilMs, states),
    sealingKey: canSeal ? states.find(({ state }) => state === 'active')?.key.id : undefined,
    keys: states.map(({ key, state }) => ({
      id: key.id,
      state,
      held: key.held !== undefined,
      created: new Date(key.created),
      activates: new Date(key.activates),
      sealsUntil: new Date(key.sealsUntil),
      unsealsUntil: new Date(key.opensUntil),
    })),
    lastRefresh: dateOf(limits.lastComplete),
    lastKmsCheck: dateOf(limits.lastKmsCheck),
    lastError: condition.lastFailure,
    problems,
  };
}

/** The time up to which this member may seal: its limits, or the time when its last key stops sealing, whichever comes first. */
function sealUntilOf(limitMs: number | undefined, states: ReturnType<RingKeeper['view']['states']>): Date | undefined {
  const ends = states.flatMap(({ key, state }) =>
    key.held !== undefined && (state === 'active' || state === 'propagating') ? [key.sealsUntil] : [],
  );
  return limitMs === undefined
    ? undefined
    : new Date(ends.length === 0 ? limitMs : Math.min(limitMs, Math.max(...ends)));
}

function dateOf(moment: Moment | undefined): Date | undefined {
  return moment === undefined ? undefined : new Date(moment.wallMs);
}
