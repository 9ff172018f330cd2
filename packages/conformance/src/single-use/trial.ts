import { createHash, randomBytes } from 'node:crypto';
import { Pending } from '../pending.ts';
import { expectThat, Finding, NotApplicable } from '../requirement.ts';
import { kindOf } from '../thrown.ts';
import type { SingleUseInstance, SingleUseStoreLike, SingleUseTarget } from './target.ts';

const DEFAULT_CLOCK_SKEW_SECONDS = 300;

/** What a check of a single-use store works with: fresh ids and stores to claim them with. */
export class SingleUseTrial {
  readonly clockSkewSeconds: number;
  readonly pending: Pending = new Pending();
  readonly #target: SingleUseTarget;
  readonly #open: SingleUseInstance[] = [];
  #mend: (() => Promise<void> | void) | undefined;

  constructor(target: SingleUseTarget) {
    this.#target = target;
    this.clockSkewSeconds = target.clockSkewSeconds ?? DEFAULT_CLOCK_SKEW_SECONDS;
  }

  /** An id such as the boundary makes. */
  freshId(): string {
    return createHash('sha256').update(randomBytes(16)).digest('base64url');
  }

  async open(): Promise<SingleUseStoreLike> {
    const instance = await this.pending.wait('create', () => this.#target.create());
    expectThat(typeof instance?.store?.claim === 'function', 'create returned no { store } with a claim');
    this.#open.push(instance);
    return instance.store;
  }

  /** Claims an id that ends so many seconds from now. */
  async claim(store: SingleUseStoreLike, id: string, seconds: number): Promise<boolean> {
    let promise: unknown;
    try {
      promise = store.claim(id, new Date(Date.now() + seconds * 1_000));
    } catch {
      throw new Finding('a claim threw at once instead of rejecting');
    }
    expectThat(promise instanceof Promise, `a claim returned ${kindOf(promise)}, not a promise`);
    const answer: unknown = await this.pending.wait('claim', () => promise);
    expectThat(typeof answer === 'boolean', `a claim resolved to ${kindOf(answer)}, neither true nor false`);
    return answer;
  }

  /** Until the end of the requirement. @throws {NotApplicable} where the target cannot. */
  async breakConnection(): Promise<void> {
    if (this.#target.breakConnection === undefined) throw new NotApplicable('the target has no breakConnection');
    this.#mend = await this.pending.wait('breakConnection', () => this.#target.breakConnection?.());
  }

  async mend(): Promise<void> {
    const mend = this.#mend;
    this.#mend = undefined;
    await this.pending.wait('what breakConnection returned', () => mend?.());
  }

  async close(): Promise<void> {
    for (const instance of this.#open)
      await (instance.close === undefined ? instance.store.close?.() : instance.close());
  }
}
