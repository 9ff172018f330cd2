import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Target } from './round-robin.ts';
import type { ServerSettings } from './settings.ts';

export type Language = 'typescript' | 'python';

const programs = { typescript: 'server.ts', python: 'server.py' } as const;
const pathOf = (file: string): string => fileURLToPath(new URL(file, import.meta.url));

/** A server process that listens. */
export interface ServerProcess extends Target {
  readonly language: Language;
  readonly url: string;
  /** Ends it as a deployment does: after the requests in progress. Throws if it failed. */
  stop(): Promise<void>;
  /** Ends it at once. */
  kill(): void;
}

export async function startServer(
  python: string,
  language: Language,
  settings: ServerSettings,
): Promise<ServerProcess> {
  const command = language === 'python' ? python : process.execPath;
  const child = spawn(command, [pathOf(programs[language]), JSON.stringify(settings)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' },
  });
  const ended = once(child, 'exit');
  const { value, done } = await lines(child).next();
  if (done === true) throw new Error(`${settings.name} ended before it listened`);
  const { port }: { port: number } = JSON.parse(value);
  return {
    name: settings.name,
    language,
    port,
    url: `http://127.0.0.1:${port}/mcp`,
    async stop() {
      child.kill('SIGTERM');
      const [code, signal] = await ended;
      // uvicorn ends by the signal that it received, after its shutdown.
      if (code !== 0 && signal !== 'SIGTERM') throw new Error(`${settings.name} ended with ${code ?? signal}`);
    },
    kill: () => child.kill('SIGKILL'),
  };
}

/** Flows of the Python client, one answer a line, until the stop order. */
export class PythonClient {
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown[]>;
  readonly answers: readonly string[];

  constructor(python: string, url: string, user: string, atATime: number, atLeast: number) {
    const args = [pathOf('client.py'), url, user, String(atATime), String(atLeast)];
    this.#child = spawn(python, args, {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' },
    });
    this.#ended = once(this.#child, 'close');
    const answers: string[] = [];
    this.answers = answers;
    if (this.#child.stdout === null) throw new Error('no output');
    createInterface({ input: this.#child.stdout }).on('line', (line) => answers.push(line));
  }

  /** Resolves when the flows in progress, and the least number in total, are over. */
  async stop(): Promise<void> {
    this.#child.stdin?.end('stop\n');
    const [code] = await this.#ended;
    if (code !== 0) throw new Error(`the Python client ended with ${String(code)}`);
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }
}

function lines(child: ChildProcess): AsyncIterator<string> {
  if (child.stdout === null) throw new Error('no output');
  return createInterface({ input: child.stdout })[Symbol.asyncIterator]();
}
