import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('reader.py', import.meta.url));

/** How the reader is set up; its ring, format and key wrapper as `reader.py` takes them. */
export interface ReaderOptions {
  readonly keyWrapper: object;
  readonly ring: object;
  readonly ringName: string;
  readonly format?: 'sealring' | 'python';
  /** In snake case. */
  readonly policy?: Readonly<Record<string, number>>;
}

export interface ReaderHealth {
  readonly status: string;
  readonly sealingKey: string | null;
  /** State by key id. */
  readonly keys: Readonly<Record<string, string>>;
  readonly lastError: string | null;
}

/** What the reader raised: the class, and its `kind` or `reason`. */
class ReaderError extends Error {
  override readonly name: string;
  readonly kind: string;
  constructor(name: string, kind: string) {
    super(`${name}: ${kind}`);
    this.name = name;
    this.kind = kind;
  }
}

/** A Python process with one codec, not started yet. */
export class PythonReader {
  readonly #process: ChildProcess;
  readonly #answers: AsyncIterator<string>;

  constructor(python: string, options: ReaderOptions) {
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

  async health(): Promise<ReaderHealth> {
    const health = (await this.#ask({ op: 'health' })) as ReaderHealth;
    return health;
  }

  async close(): Promise<void> {
    const exited = once(this.#process, 'exit');
    this.#process.stdin?.end();
    await exited;
  }

  /** One request at a time. */
  async #ask(request: object): Promise<unknown> {
    this.#process.stdin?.write(`${JSON.stringify(request)}\n`);
    const { value, done } = await this.#answers.next();
    if (done === true) throw new Error('the reader has ended');
    const answer: { value?: unknown; error?: string; kind?: string } = JSON.parse(value);
    if (answer.error !== undefined) throw new ReaderError(answer.error, String(answer.kind));
    return answer.value;
  }
}
