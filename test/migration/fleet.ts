import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { until } from '../support/until.ts';
import { type RawAnswer, rawCall } from './raw-call.ts';

const STARTS_WITHIN_MS = 60_000;
/** Requests that every server answers before the next change. */
const SETTLED = 20;
const typescript = fileURLToPath(new URL('member.ts', import.meta.url));
const python = fileURLToPath(new URL('member.py', import.meta.url));

/** The code of a server: a module of the guide, and the label of the tokens that it mints. */
export interface Step {
  readonly label: string;
  readonly module: string;
}

/** How servers are started. */
export interface FleetOptions {
  readonly environment: Readonly<Record<string, string>>;
  /** The interpreter for `.py` modules. */
  readonly python?: string;
}

/** A server process. */
export class Member {
  readonly label: string;
  /** Requests in progress. */
  inFlight = 0;
  /** Requests that were answered. */
  answered = 0;
  readonly #process: ChildProcess;
  #url = '';

  private constructor(label: string, child: ChildProcess) {
    this.label = label;
    this.#process = child;
  }

  static async start({ label, module }: Step, options: FleetOptions): Promise<Member> {
    const [program, script] = module.endsWith('.py') ? [options.python ?? '', python] : [process.execPath, typescript];
    const { NODE_OPTIONS: _, ...inherited } = process.env;
    const child = spawn(program, [script, module, label], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...inherited, PYTHONDONTWRITEBYTECODE: '1', ...options.environment },
    });
    const member = new Member(label, child);
    member.#url = `http://127.0.0.1:${await portOf(child)}/mcp`;
    return member;
  }

  get url(): string {
    return this.#url;
  }

  async call(user: string, requestState?: string): Promise<RawAnswer> {
    this.inFlight += 1;
    try {
      return await rawCall(this.#url, user, requestState);
    } finally {
      this.inFlight -= 1;
      this.answered += 1;
    }
  }

  async stop(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const exited = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await exited;
  }
}

function portOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    let printed = '';
    const late = setTimeout(() => reject(new Error('a server does not listen')), STARTS_WITHIN_MS);
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`a server ended before it listened (${code})`)));
    child.stdout?.on('data', (text: Buffer) => {
      printed += text.toString();
      const port = /^port (\d+)$/m.exec(printed)?.[1];
      if (port === undefined) return;
      clearTimeout(late);
      resolve(Number(port));
    });
  });
}

/** Server processes behind a balancer: each request goes to the next one. */
export class Fleet {
  #options: FleetOptions;
  readonly #started: Member[] = [];
  #serving: readonly Member[] = [];
  #requests = 0;

  constructor(options: FleetOptions) {
    this.#options = options;
  }

  get serving(): readonly Member[] {
    return this.#serving;
  }

  /** Adds to the environment of servers that start from now on. */
  tell(environment: Readonly<Record<string, string>>): void {
    this.#options = { ...this.#options, environment: { ...this.#options.environment, ...environment } };
  }

  next(): Member {
    const member = this.#serving[this.#requests++ % this.#serving.length];
    if (member === undefined) throw new Error('nobody serves');
    return member;
  }

  /** Starts a server, and sends it requests once it listens. */
  async add(step: Step): Promise<Member> {
    const member = await Member.start(step, this.#options);
    this.#started.push(member);
    this.#serving = [...this.#serving, member];
    return member;
  }

  /** Stops sending requests to a server. */
  withdraw(member: Member): void {
    this.#serving = this.#serving.filter((other) => other !== member);
  }

  /** A rolling deploy: replaces each server but `staying` by a new one, after its requests in progress. */
  async roll(step: Step, ...staying: readonly Member[]): Promise<void> {
    for (const old of this.#serving.filter((member) => !staying.includes(member))) {
      await this.add(step);
      await this.settle();
      this.withdraw(old);
      await until(() => old.inFlight === 0);
      await old.stop();
    }
  }

  /** Waits until every server has had its share of the traffic. */
  async settle(): Promise<void> {
    const before = new Map(this.#serving.map((member) => [member, member.answered]));
    await until(() => [...before].every(([member, answered]) => member.answered >= answered + SETTLED));
  }

  async stop(): Promise<void> {
    for (const member of this.#started) await member.stop();
  }
}

/** A fleet for one test, stopped when the test has ended. */
export async function withFleet(options: FleetOptions, run: (fleet: Fleet) => Promise<void>): Promise<void> {
  const fleet = new Fleet(options);
  try {
    await run(fleet);
  } finally {
    await fleet.stop();
  }
}
