import { setTimeout as pause } from 'node:timers/promises';
import type { Member } from './fleet.ts';

const EVERY_MS = 40;
const STEP_MS = 80;
const USERS = ['ada', 'bob', 'eve'];

// 31 pauses: 0 to 2.4 s.
const PAUSES = 31;
/** Flows in progress at a time: a busy machine gets fewer. */
const MOST = 60;

/** Flows of two rounds, one begun every 40 ms, with pauses of up to 2.4 s between the rounds. */
export class Flows {
  /** Failed flows whose token was valid, with the reason: `B → C: -32602 …`. */
  readonly failures: string[] = [];
  /** Successful flows, by the servers that minted and unsealed: `B → C`. */
  readonly pairs = new Map<string, number>();
  readonly #servers: { next(): Member };
  readonly #validMs: number;
  readonly #running = new Set<Promise<void>>();
  readonly #ended: Promise<void>;
  #isEnding = false;
  #begun = 0;

  /**
   * @param servers - Each round goes to the next one, as behind a balancer without affinity.
   * @param ttlSeconds - The tokens' own. A longer flow, on a machine that paused, does not count.
   */
  constructor(servers: { next(): Member }, ttlSeconds: number) {
    this.#servers = servers;
    // Some wires round down the time when a token is minted to a second.
    this.#validMs = (ttlSeconds - 1) * 1_000;
    this.#ended = this.#begin();
  }

  /** Successful flows. */
  get wentWell(): number {
    return [...this.pairs.values()].reduce((sum, count) => sum + count, 0);
  }

  /** Begins no more flows, and waits until those in progress have ended. */
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
