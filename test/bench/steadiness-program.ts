import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** The orders of a program, by name. */
export type Orders = Readonly<Record<string, (given: never) => unknown>>;

interface Order {
  readonly id: number;
  readonly name: string;
  readonly given: unknown;
}

interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}

interface Waiting {
  resolve(value: unknown): void;
  reject(reason: Error): void;
}

/** A program of this folder in its own process, which carries out orders. */
export class Program<Known extends Orders> {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, Waiting>();
  #orders = 0;

  private constructor(file: string, child: ChildProcess) {
    this.#child = child;
    child.on('message', ({ id, value, error }: Answer) => {
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error === undefined) waiting?.resolve(value);
      else waiting?.reject(new Error(`${file}: ${error}`));
    });
    child.on('exit', (code, signal) => {
      for (const waiting of this.#waiting.values()) waiting.reject(new Error(`${file} ended: ${code ?? signal}`));
      this.#waiting.clear();
    });
  }

  /** Resolves once everything is loaded. */
  static async fork<Known extends Orders>(file: string): Promise<Program<Known>> {
    // Without the flags of this process, which may be a worker of the test runner.
    const child = fork(join(import.meta.dirname, file), { execArgv: [], stdio: 'inherit', serialization: 'advanced' });
    const program = new Program<Known>(file, child);
    await new Promise((resolve, reject) => program.#waiting.set(0, { resolve, reject }));
    return program;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  ask<Name extends keyof Known & string>(
    name: Name,
    ...[given]: Parameters<Known[Name]>
  ): Promise<Awaited<ReturnType<Known[Name]>>> {
    const id = ++this.#orders;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve: (value) => resolve(value as Awaited<ReturnType<Known[Name]>>), reject });
      const order: { id: number; name: string; given: unknown } = { id, name, given };
      this.#child.send(order, (error) => {
        if (error !== null) reject(error);
      });
    });
  }

  async stop(): Promise<void> {
    if (!this.#child.connected) return;
    const exited = once(this.#child, 'exit');
    this.#child.disconnect();
    await exited;
  }
}

/** The other end, in the program itself. It carries out slow orders concurrently. */
export function carryOut(orders: Orders): void {
  const send = (answer: Answer): unknown => process.send?.(answer);
  const obey = async ({ name, given }: Order): Promise<unknown> => orders[name]?.(given as never);
  process.on('message', (order: Order) => {
    obey(order).then(
      (value) => send({ id: order.id, value }),
      (error: unknown) => send({ id: order.id, error: String(error) }),
    );
  });
  // The parent process is gone, or has disconnected.
  process.on('disconnect', () => process.exit(0));
  send({ id: 0 });
}
