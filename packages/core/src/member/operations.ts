import { type Deadline, hasPassed, later, pause, uniform } from '../base/clock.ts';
import { type Backoff, backoffMs, retry } from '../base/retry.ts';
import type { RotationReason } from '../contracts/events.ts';
import { RingConflictError, RingStoreError } from '../contracts/ring-store.ts';
import { revocable } from '../ring/facts.ts';
import { timesOfNewKey } from '../ring/schedule.ts';
import { type RingKey, withKeys } from '../ring/snapshot.ts';
import { emitFailedRotation } from './failures.ts';
import type { MemberParts } from './parts.ts';
import type { Turns } from './turns.ts';

const MS = 1_000;
/** Wait between lost races. */
const CONFLICTS: Backoff = { firstMs: 10, capMs: MS };
/** The number of lost races after which a writer gives up. */
const MAX_CONFLICTS = 64;
/** How long a revocation keeps calling a store that does not answer, as a multiple of the deadline of one call. */
const CALLS_OF_A_REVOCATION = 4;

/** An operator's requests to a member: rotations and revocations. Each takes its turn before background work. */
export class Operations {
  readonly #o: MemberParts;
  readonly #turns: Turns;

  constructor(parts: MemberParts, turns: Turns) {
    this.#o = parts;
    this.#turns = turns;
  }

  /** Publishes a successor. After a lost race, tries again only if the winner's key does not satisfy the request. */
  async rotate(reason: 'requested' | 'emergency'): Promise<void> {
    const { policy, sync, view, writer } = this.#o;
    const wished = timesOfNewKey(reason, view.wallMs(), policy).activates + policy.clockSkewSeconds * MS;
    let known: ReadonlySet<string> | undefined;
    await this.#publishing(reason, async () => {
      await sync.readToWrite({ foreground: true });
      const { keys } = view.snapshot;
      const before = known;
      const fulfilled = keys.some((key) => before?.has(key.id) === false && !key.revoked && key.activates <= wished);
      if (fulfilled) return;
      known = new Set(keys.map((key) => key.id));
      await writer.publish(reason);
    });
  }

  /**
   * Revokes the keys that `isMeant` selects from the ring as it is read now; keys that appear in the meantime and are
   * active at once are treated as successors from the same request, and are kept. Neither a failing KMS nor a wrong
   * clock prevents a revocation.
   * @throws {RangeError} when `mustExist` names a key that the ring does not have.
   */
  async revoke(isMeant: (key: RingKey) => boolean, mustExist?: string): Promise<void> {
    const { policy, view, writer } = this.#o;
    let before: ReadonlySet<string> | undefined;
    const patience = later(view.now(), CALLS_OF_A_REVOCATION * policy.kmsTimeoutSeconds * MS);
    const attempt = async (): Promise<void> => {
      await this.#readToRevoke();
      const { byId, carried, unreadable } = view.snapshot;
      const isKnown = ({ id }: { readonly id: string }): boolean => id === mustExist;
      if (mustExist !== undefined && !byId.has(mustExist) && ![...carried, ...unreadable].some(isKnown)) {
        throw new RangeError(`revoke: the ring has no key ${JSON.stringify(mustExist.slice(0, 80))}`);
      }
      const keys = revocable(view.snapshot);
      const known = (before ??= new Set(keys.map(({ id }) => id)));
      const isSuccessor = (key: RingKey): boolean => !known.has(key.id) && key.activates <= key.created;
      const meant = keys.filter((key) => isMeant(key) && !isSuccessor(key));
      if (meant.length > 0) await writer.revoke(meant);
    };
    await this.#publishing('revocation', attempt, patience);
    this.#revokeLeft(isMeant);
  }

  /**
   * Revokes keys of a ring that this member left. The current ring cannot hold their revocations.
   * @throws {RingStoreError} if there are such keys, because other members may still unseal their tokens.
   */
  #revokeLeft(isMeant: (key: RingKey) => boolean): void {
    const { view } = this.#o;
    const left = view.snapshot.keys.filter((key) => key.isLeft && !key.revoked && isMeant(key));
    const [one] = left;
    if (one === undefined) return;
    view.install(
      withKeys(
        view.snapshot,
        left.map((key) => ({ ...key, revoked: true, held: undefined })),
      ),
    );
    throw new RingStoreError(
      'unavailable',
      `key ${one.id} belongs to a ring that this member has left: it was revoked only here, so restart the other members`,
    );
  }

  /** Reads the ring. A revocation can be written even if the ring is absent, invalid, or not entirely unwrapped. */
  async #readToRevoke(): Promise<void> {
    const { sync } = this.#o;
    try {
      await sync.read({ foreground: true });
    } catch (error) {
      if (!sync.wasAnswered || error instanceof RingConflictError) throw error;
    }
  }

  /**
   * Runs a publication when its turn comes, and emits an event if it fails. Repeats it after a lost race and, until
   * `patience` has passed, when the store did not answer.
   */
  async #publishing(reason: RotationReason, attempt: () => Promise<void>, patience?: Deadline): Promise<void> {
    const { clock, closing, random, view } = this.#o;
    const began = view.now();
    const run = (): Promise<void> =>
      retry(attempt, {
        waitMs: (error, failures) => {
          const isSilent = error instanceof RingStoreError && error.kind === 'unavailable';
          const isPatient = isSilent && patience !== undefined && !hasPassed(patience, view.now());
          const isFinal = !(error instanceof RingConflictError || isPatient) || failures > MAX_CONFLICTS;
          return isFinal ? undefined : backoffMs(CONFLICTS, failures, uniform(random));
        },
        pause: (delayMs) => pause(clock, delayMs, closing),
      });
    try {
      await this.#turns.asked(run);
    } catch (error) {
      if (!view.isClosed) emitFailedRotation(this.#o, reason, error, began);
      throw error;
    }
  }
}
