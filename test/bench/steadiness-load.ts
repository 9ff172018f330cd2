/**
 * The clients of the server, in their own process. Open loop: a request is sent when it is due, whatever happened
 * to earlier ones, and its latency counts from that time. So a stall of the server counts for all requests that waited.
 */
import { performance } from 'node:perf_hooks';
import { HostileTokens } from '../fleet/hostile.ts';
import { callTool, type ToolAnswer } from '../support/call-tool.ts';
import { carryOut } from './steadiness-program.ts';

/** Requests that ended. */
export interface Counts {
  /** Requests with a token from the server, or without one. */
  readonly valid: number;
  readonly failed: number;
  /** Requests with a forged token. */
  readonly hostile: number;
  /** Forged requests that got the standard refusal. */
  readonly refused: number;
  /** The first few failures. */
  readonly failures: readonly string[];
}

export interface LoadMeasure {
  /** Latencies of valid requests, milliseconds from the intended start to the end of the answer. */
  readonly latencies: readonly number[];
  /** Delays at the clients, milliseconds between due and sent: the clients' own share of the latency. */
  readonly lateness: readonly number[];
  /** Results of all requests that ended since the last report. */
  readonly counts: Counts;
}

/** This many tokens circulate, so that each is a little older when it is sent back. */
const TOKENS = 500;
const FAILURES_TOLD = 5;
const HOSTILE_SEED = 8;

const tokens: string[] = [];
let url = '';
let hostile: HostileTokens | undefined;
let counts = noCounts();

function noCounts() {
  return { valid: 0, failed: 0, hostile: 0, refused: 0, failures: [] as string[] };
}

function takeCounts(): Counts {
  const taken = counts;
  counts = noCounts();
  return taken;
}

function call(requestState: string | undefined): Promise<ToolAnswer> {
  return callTool(url, { name: 'refund', requestState });
}

function failed(text: string): void {
  if (counts.failures.length < FAILURES_TOLD) counts.failures.push(text);
}

const mint = (): Promise<void> => request(undefined);
/** Redeems the oldest token for a new one; mints one if none is left. */
const redeem = (): Promise<void> => request(tokens.shift());

async function request(token: string | undefined): Promise<void> {
  try {
    const { result, error } = await call(token);
    if (result?.requestState?.startsWith('sr1.') === true) {
      tokens.push(result.requestState);
    } else {
      counts.failed += 1;
      failed(JSON.stringify(error ?? result));
    }
  } catch (error) {
    counts.failed += 1;
    failed(String(error));
  }
  counts.valid += 1;
}

async function hostileRequest(token: string): Promise<void> {
  try {
    const { error } = await call(token);
    if (isTheRefusal(error)) counts.refused += 1;
    else failed(`hostile: ${JSON.stringify(error ?? 'served')}`);
  } catch (error) {
    failed(`hostile: ${String(error)}`);
  }
  counts.hostile += 1;
}

function isTheRefusal(error: ToolAnswer['error']): boolean {
  return error?.code === -32602 && error.message === 'Invalid or expired requestState';
}

/** The measurement: the requests of some slots, until the last of them has ended. */
interface Window {
  readonly firstSlot: number;
  readonly slots: number;
  readonly latencies: number[];
  readonly lateness: number[];
  done(): void;
}

/** Interval between requests, milliseconds. */
class OpenLoop {
  readonly #intervalMs: number;
  readonly #startedMs = performance.now();
  readonly #underWay = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #halfSlot = 0;
  #window: Window | undefined;
  isHostile = false;

  constructor(rate: number) {
    this.#intervalMs = 1_000 / rate;
    this.#sendDue();
  }

  measure(seconds: number): Promise<LoadMeasure> {
    return new Promise((resolve) => {
      const latencies: number[] = [];
      const lateness: number[] = [];
      const firstSlot = Math.ceil(this.#halfSlot / 2);
      const slots = Math.max(1, Math.round((seconds * 1_000) / this.#intervalMs));
      const done = (): void => resolve({ latencies, lateness, counts: takeCounts() });
      this.#window = { firstSlot, slots, latencies, lateness, done };
    });
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    await Promise.all(this.#underWay);
  }

  /** Everything that is due, even if this process itself was late. */
  #sendDue(): void {
    for (; this.#dueMs() <= performance.now(); this.#halfSlot++) {
      if (this.#halfSlot % 2 === 0) this.#keep(this.#sendValid(this.#halfSlot / 2, this.#dueMs()));
      // Halfway to the next: an attacker sends as many requests, and the times of the others do not change.
      else if (this.isHostile && hostile !== undefined) this.#keep(hostileRequest(hostile.next()));
    }
    this.#timer = setTimeout(() => this.#sendDue(), Math.max(0, this.#dueMs() - performance.now()));
  }

  #dueMs(): number {
    return this.#startedMs + (this.#halfSlot * this.#intervalMs) / 2;
  }

  async #sendValid(slot: number, dueMs: number): Promise<void> {
    const window = this.#window;
    const isMeasured = window !== undefined && slot >= window.firstSlot && slot < window.firstSlot + window.slots;
    const lateMs = performance.now() - dueMs;
    await redeem();
    if (!isMeasured) return;
    window.latencies.push(performance.now() - dueMs);
    window.lateness.push(lateMs);
    if (window.latencies.length === window.slots) window.done();
  }

  #keep(sent: Promise<void>): void {
    const kept = sent.finally(() => this.#underWay.delete(kept));
    this.#underWay.add(kept);
  }
}

let loop: OpenLoop | undefined;

function looping(): OpenLoop {
  if (loop === undefined) throw new Error('the load was not started');
  return loop;
}

const orders = {
  /** Mints the tokens that circulate from now on. */
  async prepare(given: { readonly url: string }): Promise<void> {
    url = given.url;
    while (tokens.length < TOKENS && counts.failed === 0) await mint();
    const [genuine] = tokens;
    if (genuine === undefined) throw new Error(`no token: ${counts.failures.join('; ')}`);
    hostile = new HostileTokens(genuine, HOSTILE_SEED);
  },

  /** Each client repeats as soon as it has its answer. Returns the requests per second. */
  async closedLoop({ seconds, clients }: { seconds: number; clients: number }): Promise<number> {
    const startedMs = performance.now();
    const endMs = startedMs + seconds * 1_000;
    let ended = 0;
    const client = async (): Promise<void> => {
      while (performance.now() < endMs) {
        await redeem();
        ended += 1;
      }
    };
    await Promise.all(Array.from({ length: clients }, client));
    return (ended * 1_000) / (performance.now() - startedMs);
  },

  /** From now on sends a valid request at this interval, until {@link stop}. */
  start({ rate }: { readonly rate: number }): void {
    loop = new OpenLoop(rate);
  },

  /** Whether an attacker sends as many requests, on top of the valid ones. */
  hostile({ on }: { readonly on: boolean }): void {
    looping().isHostile = on;
  },

  measure: ({ seconds }: { readonly seconds: number }): Promise<LoadMeasure> => looping().measure(seconds),

  /** Returns the results since the last measurement. */
  async stop(): Promise<Counts> {
    await loop?.stop();
    return takeCounts();
  },
};

export type LoadOrders = typeof orders;

carryOut(orders);
