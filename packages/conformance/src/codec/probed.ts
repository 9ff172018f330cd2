import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { expectThat, Finding } from '../requirement.ts';
import { scriptBeside } from '../target-module.ts';
import type { LeftBehind } from './observe.ts';
import type { Probed } from './probe.ts';

/** Longest time for a process to start, load the module and use the codec once. */
const PROBE_MS = 30_000;

/** What a codec left behind in a process of its own, and how many characters it printed there. */
export interface ProbedCodec extends LeftBehind {
  readonly printed: number;
}

/**
 * Uses the codec of a module once, in a process of its own.
 *
 * @throws {Finding} when that process ends before it has reported what it saw, or does not end.
 */
export async function probeModule(module: string): Promise<ProbedCodec> {
  const mark = `\n${randomUUID()}\n`;
  const child = fork(scriptBeside(import.meta.url, 'probe'), [module, mark], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    // Not those of a test runner.
    execArgv: [],
  });
  const printed: [string, string] = ['', ''];
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (printed[0] += text));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (printed[1] += text));
  let probed: Probed | undefined;
  child.on('message', (message) => (probed = message as Probed));
  const timer = setTimeout(() => child.kill('SIGKILL'), PROBE_MS);
  const ended = await new Promise<string>((resolve) => {
    child.on('error', (error) => resolve(error.name));
    child.on('close', (code, signal) => resolve(signal === null ? `code ${code}` : signal));
  });
  clearTimeout(timer);
  if (probed === undefined) throw new Finding(`a process that used the codec once ended with ${ended}`);
  expectThat(
    !('failed' in probed),
    `a process that used the codec once failed: ${'failed' in probed && probed.failed}`,
  );
  return { ...probed, printed: printed.map((text) => (text.split(mark)[1] ?? '').length).reduce((a, b) => a + b) };
}
