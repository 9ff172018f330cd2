import { type ChildProcess, fork } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { FromServer, KmsSettings, Report, ToServer } from './messages.ts';

const SERVER = fileURLToPath(new URL('server.ts', import.meta.url));
const ANSWER_MS = 30_000;

/** The settings that every server of the fleet starts with. */
export interface FleetSettings {
  readonly ringPath: string;
  readonly ringName: string;
  readonly kms: KmsSettings;
  readonly environment: NodeJS.ProcessEnv;
}

/** A server process of the story. */
export class RefundServer {
  readonly name: string;
  readonly #process: ChildProcess;
  readonly #unread: FromServer[] = [];
  readonly #arrivals = new EventEmitter();
  #port = 0;

  private constructor(name: string, environment: NodeJS.ProcessEnv) {
    this.name = name;
    this.#process = fork(SERVER, { env: environment, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    this.#process.on('message', (message: FromServer) => this.#arrive(message));
    this.#process.on('error', (error) => this.#arrive({ type: 'failed', message: error.message }));
    this.#process.on('exit', (code) => this.#arrive({ type: 'failed', message: `ended with exit code ${code}` }));
  }

  /** Starts a process and adds it to `started` at once, so that it is stopped whatever happens. */
  static async start(name: string, settings: FleetSettings, started: RefundServer[]): Promise<RefundServer> {
    const server = new RefundServer(name, settings.environment);
    started.push(server);
    const { ringPath, ringName, kms } = settings;
    server.#tell({ type: 'start', name, ringPath, ringName, kms });
    server.#port = (await server.#next('listening')).port;
    return server;
  }

  get port(): number {
    return this.#port;
  }

  url(path: '/mcp' | '/brief' = '/mcp'): string {
    return `http://127.0.0.1:${this.#port}${path}`;
  }

  async report(): Promise<Report> {
    this.#tell({ type: 'report' });
    return (await this.#next('report')).report;
  }

  async rotate(): Promise<void> {
    this.#tell({ type: 'rotate' });
    await this.#next('rotated');
  }

  /** The reason of the last refusal, which only the server knows. */
  async refusal(): Promise<string> {
    return (await this.#next('refused')).reason;
  }

  async stop(): Promise<void> {
    const { exitCode, signalCode } = this.#process;
    if (exitCode !== null || signalCode !== null || this.#process.pid === undefined) return;
    const ended = once(this.#process, 'exit');
    if (this.#process.connected) this.#process.disconnect();
    const last = setTimeout(() => this.#process.kill('SIGKILL'), 2_000);
    await ended;
    clearTimeout(last);
  }

  #tell(message: ToServer): void {
    if (this.#process.connected) this.#process.send(message);
  }

  #arrive(message: FromServer): void {
    this.#unread.push(message);
    this.#arrivals.emit('message');
  }

  async #next<T extends FromServer['type']>(type: T): Promise<Extract<FromServer, { type: T }>> {
    const signal = AbortSignal.timeout(ANSWER_MS);
    for (;;) {
      const index = this.#unread.findIndex((message) => message.type === type);
      const [found] = index < 0 ? [] : this.#unread.splice(index, 1);
      if (found !== undefined) return found as Extract<FromServer, { type: T }>;
      const failed = this.#unread.find((message) => message.type === 'failed');
      if (failed !== undefined) throw new Error(`server ${this.name}: ${failed.message}`);
      if (signal.aborted) throw new Error(`server ${this.name} did not answer within ${ANSWER_MS / 1_000} s`);
      await once(this.#arrivals, 'message', { signal }).catch(() => undefined);
    }
  }
}
