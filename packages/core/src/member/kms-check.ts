import { ageMs, type Moment, uniform } from '../base/clock.ts';
import { KeyWrapperError } from '../contracts/key-wrapper.ts';
import type { CallOptions } from '../kms/kms-calls.ts';
import type { RingWrap } from '../ring/document.ts';
import { newest } from '../ring/schedule.ts';
import { isUsable, liveKeys, type UsableKey } from '../ring/snapshot.ts';
import type { MemberParts } from './parts.ts';

type Parts = Pick<MemberParts, 'policy' | 'random' | 'wraps' | 'view'>;

/** The KMS check: from time to time the KMS must unwrap the newest key again, or this member stops sealing. */
export class KmsCheck {
  readonly #o: Parts;
  #jitterOf: Moment | undefined;
  #intervalMs = 0;

  constructor(parts: Parts) {
    this.#o = parts;
  }

  /** Milliseconds until the next check; 0 when it is due. */
  msUntilDue(): number {
    const { policy, random, view } = this.#o;
    const now = view.now();
    const { lastKmsCheck } = view.limits;
    if (this.#keyToCheck() === undefined) return Number.POSITIVE_INFINITY;
    if (lastKmsCheck === undefined || view.limits.isRefused(now)) return 0;
    // The wait is drawn once per check: if it were drawn at every pass, the shortest of many draws would win.
    if (lastKmsCheck !== this.#jitterOf) {
      this.#jitterOf = lastKmsCheck;
      this.#intervalMs = policy.kmsCheckEverySeconds * 1_000 * (1 - 0.2 * uniform(random));
    }
    return Math.max(0, this.#intervalMs - ageMs(lastKmsCheck, now));
  }

  /**
   * Unwraps the newest key once more. Returns the wrap that was unwrapped; undefined if no key can be checked.
   * @throws {KeyWrapperError}
   */
  async run(options: CallOptions): Promise<RingWrap | undefined> {
    const key = this.#keyToCheck();
    if (key === undefined) return undefined;
    const { wraps, view } = this.#o;
    // While refusals are counted, slow key wrappers must not delay the next check.
    const hedged = options.foreground === true || view.limits.isRefused(view.now());
    try {
      const wrap = await wraps.check(key, key.held, { ...options, hedged });
      view.limits.kmsCheckPassed(view.now());
      return wrap;
    } catch (error) {
      if (error instanceof KeyWrapperError) view.limits.failed(error.kind, view.now());
      throw error;
    }
  }

  #keyToCheck(): UsableKey | undefined {
    const { view } = this.#o;
    const keys = liveKeys(view.snapshot, view.wallMs()).filter(isUsable);
    return newest(keys.filter((key) => !key.isLeft)) ?? newest(keys);
  }
}
