import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('process.py', import.meta.url));

/** The settings of the process; its ring, format and key wrapper as `process.py` accepts them. */
export interface PythonOptions {
  readonly keyWrapper: object;
  readonly ring: object;
  readonly ringName: string;
  /** Default: a reader. */
  readonly role?: 'member' | 'reader';
  /** Default: `if-absent`. */
  readonly create?: 'now';
  readonly format?: 'sealring' | 'python';
  /** The policy, with names in snake case. */
  readonly policy?: Readonly<Record<string, number>>;
}

export interface PythonHealth {
  readonly status: string;
  readonly sealingKey: string | null;
  /** State by key id. */
  readonly keys: Readonly<Record<string, string>>;
  readonly lastError: string | null;
}

/** The exception of the process: the class, and its `kind` or `reason`. */
class PythonError extends Error {
  override readonly name: string;
  readonly kind: string;
  constructor(name: string, kind: string) {
    super(`${name}: ${kind}`);
    this.name = name;
    this.kind = kind;
  }
}

/** A Python process with one codec, not started yet. */
export class PythonProcess {
  readonly #process: ChildProcess;
  readonly #answers: AsyncIterator<string>;
  #last: Promise<unknown> = Promise.resolve();

  constructor(python: string, options: PythonOptions) {
    this.#process = spawn(python, [program, JSON.stringify(options)], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' },
    });
    if (this.#process.stdout === null) throw new Error('no output');
    this.#answers = createInterface({ input: this.#process.stdout })[Symbol.asyncIterator]();
  }

  async start(): Promise<void> {
    await this.#ask({ op: 'start' });
  }

  async seal(payload: string, purpose?: string): Promise<string> {
    return String(await this.#ask({ op: 'seal', payload: Buffer.from(payload).toString('base64'), purpose }));
  }

  async unseal(token: string, purpose?: string): Promise<string> {
    return Buffer.from(String(await this.#ask({ op: 'unseal', token, purpose })), 'base64').toString();
  }

  async step(seconds: number): Promise<void> {
    await this.#ask({ op: 'step', seconds });
  }

  async refresh(): Promise<void> {
    await this.#ask({ op: 'refresh' });
  }

  async rotate(options: { readonly emergency: boolean }): Promise<void> {
    await this.#ask({ op: 'rotate', ...options });
  }

  async revoke(keyId: string): Promise<void> {
    await this.#ask({ op: 'revoke', keyId });
  }

  async prepare(token: string): Promise<void> {
    await this.#ask({ op: 'prepare', token });
  }

  /** SIGKILL: nothing is closed. Does nothing for a process that has ended. */
  async kill(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const exited = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await exited;
  }

  async health(): Promise<PythonHealth> {
    const health = (await this.#ask({ op: 'health' })) as PythonHealth;
    return health;
  }

  async close(): Promise<void> {
    const exited = once(this.#process, 'exit');
    this.#process.stdin?.end();
    await exited;
  }

  /** One request at a time. */
  #ask(request: object): Promise<unknown> {
    const answer = this.#last.then(() => this.#asked(request));
    this.#last = answer.catch(() => undefined);
    return answer;
  }

  async #asked(request: object): Promise<unknown> {
    this.#process.stdin?.write(`${JSON.stringify(request)}\n`);
    const { value, done } = await this.#answers.next();
    if (done === true) throw new Error('the process has ended');
    const answer: { value?: unknown; error?: string; kind?: string } = JSON.parse(value);
    if (answer.error !== undefined) throw new PythonError(answer.error, String(answer.kind));
    return answer.value;
  }
}
