import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { freezeProcess, hasStopped } from '../support/freeze.ts';
import type { Answer, Calls, OrderName, Orders, Sealed, StartOrder } from './member-process.ts';

interface Waiting {
  resolve(value: unknown): void;
  reject(reason: Error): void;
}

/** A member in its own process. It carries out orders in the order in which it gets them. */
export class Member {
  readonly name: string;
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, Waiting>();
  #orders = 0;

  private constructor(name: string, child: ChildProcess) {
    this.name = name;
    this.#child = child;
    child.on('message', ({ id, value, error }: Answer) => {
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error === undefined) waiting?.resolve(value);
      else waiting?.reject(new Error(`${name}: ${error}`));
    });
    child.on('exit', (code, signal) => {
      for (const waiting of this.#waiting.values()) waiting.reject(new Error(`${name} ended: ${code ?? signal}`));
      this.#waiting.clear();
    });
  }

  /** Resolves once everything is loaded, so that a later start takes no time for loading. */
  static async fork(name: string): Promise<Member> {
    // Without the flags of this process, which is a worker of the test runner.
    const child = fork(join(import.meta.dirname, 'member-process.ts'), { execArgv: [], stdio: 'inherit' });
    const member = new Member(name, child);
    await new Promise((resolve, reject) => member.#waiting.set(0, { resolve, reject }));
    return member;
  }

  tell<Name extends OrderName>(name: Name, given: Orders[Name]['given']): Promise<Orders[Name]['answer']> {
    const id = ++this.#orders;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve: (value) => resolve(value as Orders[Name]['answer']), reject });
      this.#child.send({ id, name, given }, (error) => {
        if (error !== null) reject(error);
      });
    });
  }

  /** Closes the codec and ends the process, as a deployment does. */
  async stop(): Promise<void> {
    const exited = once(this.#child, 'exit');
    await this.tell('close', undefined);
    this.#child.disconnect();
    await exited;
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  /** SIGSTOP: the process does nothing until {@link thaw}; its orders wait. */
  freeze(): void {
    freezeProcess(this.#child);
  }

  get isFrozen(): boolean {
    return this.#child.pid !== undefined && hasStopped(this.#child.pid);
  }

  thaw(): void {
    this.#child.kill('SIGCONT');
  }
}

/** The members that get requests, and the results. */
export class Fleet {
  readonly members: Member[] = [];
  /** All processes ever forked, to be ended after the test. */
  readonly #forked: Member[] = [];
  /** Every failure to unseal a token, at any member. */
  readonly failures: string[] = [];
  /** One token for each member and key. */
  readonly #kept = new Map<string, Sealed>();
  readonly #order: StartOrder;
  sealed = 0;
  opened = 0;
  #names = 0;

  constructor(order: StartOrder) {
    this.#order = order;
  }

  /** Ids of the keys that have sealed. */
  get sealingKeys(): ReadonlySet<string> {
    return new Set(Array.from(this.#kept.values(), ({ token }) => keyIdOf(token)));
  }

  /** Number of tokens kept: one for each key that each member sealed with. */
  get keptTokens(): number {
    return this.#kept.size;
  }

  async fork(count: number): Promise<Member[]> {
    const forking = Array.from({ length: count }, () => Member.fork(`member ${++this.#names}`));
    const members = await Promise.all(forking);
    this.#forked.push(...members);
    return members;
  }

  /** Starts codecs at the same moment and sends them requests from then on. Returns the KMS calls of each. */
  async start(members: readonly Member[], order: StartOrder = this.#order): Promise<Calls[]> {
    const calls = await Promise.all(members.map((member) => member.tell('start', order)));
    this.members.push(...members);
    return calls;
  }

  /** Takes members out of service and ends them. */
  async stop(members: readonly Member[]): Promise<void> {
    for (const member of members) this.members.splice(this.members.indexOf(member), 1);
    await Promise.all(members.map((member) => member.stop()));
  }

  /** Every member seals; every member unseals all these tokens, and some earlier ones. */
  async round(perMember = 1): Promise<void> {
    const fresh = await Promise.all(this.members.map((member) => this.#seal(member, perMember)));
    const earlier = [...this.#kept.values()].filter(() => Math.random() < 0.2);
    await this.#open([...fresh.flat(), ...earlier]);
  }

  /** Every member unseals one token for each key that each member, past or present, sealed with. */
  async openAllKept(): Promise<number> {
    await this.#open([...this.#kept.values()]);
    return this.#kept.size;
  }

  /** Repeats rounds for as long as `run` takes. */
  async underLoad(run: () => Promise<void>): Promise<void> {
    const done = new AbortController();
    const load = (async (): Promise<void> => {
      while (!done.signal.aborted) {
        await this.round();
        await pause(50);
      }
    })();
    try {
      await run();
    } finally {
      done.abort();
      await load;
    }
  }

  async #seal(member: Member, count: number): Promise<readonly Sealed[]> {
    const payloads = Array.from({ length: count }, () => `${member.name}, token ${++this.sealed}`);
    const { sealed, failures } = await member.tell('seal', payloads);
    this.failures.push(...failures);
    for (const each of sealed) this.#kept.set(`${member.name} ${keyIdOf(each.token)}`, each);
    return sealed;
  }

  async #open(sealed: readonly Sealed[]): Promise<void> {
    const opening = this.members.map(async (member) => {
      const failures = await member.tell('open', sealed);
      this.failures.push(...failures.map((failure) => `${member.name}: ${failure}`));
      this.opened += sealed.length;
    });
    await Promise.all(opening);
  }

  end(): void {
    for (const member of this.#forked) member.kill();
  }
}

/** The key id is the first 12 characters after `sr1.`. */
function keyIdOf(token: string): string {
  return token.slice(4, 16);
}
