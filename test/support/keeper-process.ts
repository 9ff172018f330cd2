import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../packages/cli/dist/main.js', import.meta.url));
const WAIT_MS = 20_000;

interface ReportedEvent {
  readonly event: string;
  /** Of `health`. */
  readonly url?: string;
  readonly [member: string]: unknown;
}

/** The command `sealring keeper --json`, running. */
export class KeeperProcess implements AsyncDisposable {
  readonly ended: Promise<number | null>;
  readonly #child: ChildProcess;
  #stdout = '';
  #stderr = '';

  constructor(cwd: string, args: readonly string[] = []) {
    const env = Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !/^(?:NO_COLOR|FORCE_COLOR|NODE_OPTIONS|SEALRING_.*)$/.test(name)),
    );
    this.#child = spawn(process.execPath, [MAIN, 'keeper', '--json', ...args], { cwd, env });
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout += text;
    });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
    });
    this.ended = new Promise((resolve) => this.#child.on('close', resolve));
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** Its output so far. */
  get events(): readonly ReportedEvent[] {
    const lines = this.#stdout.split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line));
  }

  /** Waits until it has reported an event that `matches`. */
  async reported(name: string, matches: (event: ReportedEvent) => boolean = () => true): Promise<ReportedEvent> {
    const end = performance.now() + WAIT_MS;
    while (performance.now() < end && this.#child.exitCode === null) {
      const found = this.events.find((one) => one.event === name && matches(one));
      if (found !== undefined) return found;
      await pause(20);
    }
    throw new Error(`the keeper reported no ${name}: ${this.#stdout}${this.#stderr}`);
  }

  /** Sends SIGTERM. @returns the exit code. */
  terminate(): Promise<number | null> {
    this.#child.kill('SIGTERM');
    return this.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.ended;
  }
}
