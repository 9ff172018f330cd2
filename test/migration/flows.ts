import { setTimeout as pause } from 'node:timers/promises';
import type { Member } from './fleet.ts';

const EVERY_MS = 40;
const STEP_MS = 80;
const USERS = ['ada', 'bob', 'eve'];

// 31 pauses: 0 to 2.4 s.
const PAUSES = 31;
/** Flows on their way at a time: a machine that is busy gets fewer. */
const MOST = 60;

/** Flows of two rounds, one begun every 40 ms, with pauses of up to 2.4 s between the rounds. */
export class Flows {
  /** Where a flow went wrong while its token was valid, and how: `B → C: -32602 …`. */
  readonly failures: string[] = [];
  /** Flows that went well, by who minted and who opened: `B → C`. */
  readonly pairs = new Map<string, number>();
  readonly #servers: { next(): Member };
  readonly #validMs: number;
  readonly #running = new Set<Promise<void>>();
  readonly #ended: Promise<void>;
  #isEnding = false;
  #begun = 0;

  /**
   * @param servers - Each round goes to the next one, as behind a balancer that knows nothing.
   * @param ttlSeconds - The tokens' own. A flow that took longer, on a machine that stood still, says nothing.
   */
  constructor(servers: { next(): Member }, ttlSeconds: number) {
    this.#servers = servers;
    // Some wires cut the second in which a token is minted.
    this.#validMs = (ttlSeconds - 1) * 1_000;
    this.#ended = this.#begin();
  }

  /** Flows that went well. */
  get wentWell(): number {
    return [...this.pairs.values()].reduce((sum, count) => sum + count, 0);
  }

  /** Begins no more flows, and waits until those on their way have ended. */
  async end(): Promise<void> {
    this.#isEnding = true;
    await this.#ended;
    await Promise.all(this.#running);
  }

  async #begin(): Promise<void> {
    while (!this.#isEnding) {
      const flow = this.#flow(this.#begun++);
      this.#running.add(flow);
      void flow.finally(() => this.#running.delete(flow));
      do await pause(EVERY_MS);
      while (this.#running.size >= MOST);
    }
  }

  async #flow(number: number): Promise<void> {
    const user = USERS[number % USERS.length] ?? '';
    const began = performance.now();
    let where = '';
    try {
      const first = this.#servers.next();
      where = `${first.label} → `;
      const { requestState, ...other } = await first.call(user);
      if (requestState === undefined) throw new Error(`no token but ${JSON.stringify(other)}`);
      // Short and long ones mixed, the same in every run.
      await pause(((number * 11) % PAUSES) * STEP_MS);
      const second = this.#servers.next();
      where += second.label;
      const { text, refusal } = await second.call(user, requestState);
      const [, minted, opened] = /^asked by (.+) by (.+)$/.exec(text ?? '') ?? [];
      if (opened === undefined) throw new Error(refusal ?? text ?? 'asked again');
      const pair = `${minted} → ${opened}`;
      this.pairs.set(pair, (this.pairs.get(pair) ?? 0) + 1);
    } catch (error) {
      if (performance.now() - began < this.#validMs)
        this.failures.push(`${where}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
}
