import { randomBytes } from 'node:crypto';
import { expectThat } from '../requirement.ts';
import { kindOf } from '../thrown.ts';
import { type Outcome, Trial } from '../trial.ts';
import { DEFAULT_CLOCK_SKEW_SECONDS, type SingleUseStoreLike, type SingleUseTarget } from './target.ts';

export const LONGEST_ID = 256;
export const LOOK_AGAIN_MS = 50;
/** Number of concurrent claims. */
export const CLAIMS = 40;

/** The tools of a check: new ids, and stores to claim them with. */
export class SingleUseTrial extends Trial {
  readonly clockSkewSeconds: number;
  readonly #target: SingleUseTarget;

  constructor(target: SingleUseTarget, seed: number) {
    super(seed);
    this.#target = target;
    this.clockSkewSeconds = target.clockSkewSeconds ?? DEFAULT_CLOCK_SKEW_SECONDS;
  }

  freshId(): string {
    return randomBytes(32).toString('base64url');
  }

  open(): Promise<SingleUseStoreLike> {
    return this.start<SingleUseStoreLike>('create', () => this.#target.create(), 'store', ['claim']);
  }

  protected override closeByItself(made: object): unknown {
    return (made as SingleUseStoreLike).close?.();
  }

  /** @param end - A date, or seconds from now. */
  async claim(store: SingleUseStoreLike, id: string, end: number | Date): Promise<boolean> {
    const date = typeof end === 'number' ? new Date(Date.now() + end * 1_000) : end;
    const outcome = await this.promised(() => store.claim(id, date), 'a claim');
    if ('error' in outcome) throw outcome.error;
    const { value } = outcome;
    expectThat(typeof value === 'boolean', `a claim resolved to ${kindOf(value)}, neither true nor false`);
    return value;
  }

  /** The outcome of a claim that must not resolve to true: false or an error. */
  async refused(store: SingleUseStoreLike, id: unknown, expiresAt: unknown, what: string): Promise<Outcome> {
    const call = (): unknown => Reflect.apply(Reflect.get(store, 'claim'), store, [id, expiresAt]);
    const outcome = await this.promised(call, what);
    const isGranted = 'value' in outcome && outcome.value !== false;
    expectThat(!isGranted, `${what} resolved to ${'value' in outcome ? kindOf(outcome.value) : ''}`);
    return outcome;
  }

  /** Breaks the connection until the end of the check. @throws {NotApplicable} if the target cannot. */
  breakConnection(): Promise<void> {
    return this.breakBy(this.#target);
  }
}
/** A date ten minutes from now, at which an id expires. */
export const soon = (): Date => new Date(Date.now() + 600_000);
