import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runProgram } from '../support/run-program.ts';
import { until } from '../support/until.ts';
import { MAIN } from './probed-server.ts';

/** A project with a development ring, and the packages of this repository. */
export async function projectWithRing(): Promise<{ readonly cwd: string; remove(): void }> {
  const project = emptyProject();
  const { code, output } = await runProgram(process.execPath, [MAIN, 'init', '--local'], { cwd: project.cwd });
  if (code !== 0) throw new Error(output);
  return project;
}

/** A project with the packages of this repository. */
export function emptyProject(): { readonly cwd: string; remove(): void } {
  const cwd = mkdtempSync(join(tmpdir(), 'sealring-proxy-'));
  symlinkSync(fileURLToPath(new URL('../../node_modules', import.meta.url)), join(cwd, 'node_modules'));
  return { cwd, remove: () => rmSync(cwd, { recursive: true, force: true }) };
}

interface ProxyEvent {
  readonly event: string;
  readonly url?: string;
  readonly message?: string;
}

/** The command `sealring proxy`, running. */
export class ProxyProcess {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  #stdout = '';
  #stderr = '';

  constructor(cwd: string, args: readonly string[], variables: Readonly<Record<string, string>> = {}) {
    const env = Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !/^(?:NO_COLOR|FORCE_COLOR|NODE_OPTIONS|SEALRING_.*)$/.test(name)),
    );
    const command = [MAIN, 'proxy', '--json', ...args];
    this.child = spawn(process.execPath, command, { cwd, env: { ...env, ...variables } });
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout += text;
    });
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
    });
    this.ended = new Promise((resolve) => this.child.on('close', resolve));
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** Its output so far. */
  get events(): readonly ProxyEvent[] {
    const lines = this.#stdout.split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line));
  }

  get failures(): readonly string[] {
    return this.events.flatMap(({ event, message }) => (event === 'failure' ? [message ?? ''] : []));
  }

  /** Waits until it has reported the event. */
  async reported(event: string): Promise<ProxyEvent> {
    await until(() => this.events.some((one) => one.event === event) || this.child.exitCode !== null, 30);
    const found = this.events.find((one) => one.event === event);
    if (found === undefined) throw new Error(`the proxy ended: ${this.#stdout}${this.#stderr}`);
    return found;
  }

  /** The address that it listens on. */
  async origin(): Promise<string> {
    return String((await this.reported('listening')).url);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.kill('SIGKILL');
    await this.ended;
  }
}
