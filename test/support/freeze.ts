import type { ChildProcess } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';

const LONGEST_MS = 2_000;

/**
 * Suspends a process, and returns when it has stopped: on a busy machine a thread may run for a moment after the
 * signal, and answer one more request.
 */
export function freezeProcess(server: ChildProcess | undefined): void {
  if (server?.pid === undefined) return;
  server.kill('SIGSTOP');
  const until = performance.now() + LONGEST_MS;
  const nap = new Int32Array(new SharedArrayBuffer(4));
  while (!hasStopped(server.pid) && performance.now() < until) Atomics.wait(nap, 0, 0, 1);
}

/** Whether every thread is stopped, according to Linux; always true on other systems, which do not report it. */
export function hasStopped(pid: number): boolean {
  const tasks = `/proc/${pid}/task`;
  if (!existsSync(tasks)) return true;
  // The state is the first letter after the command, which is in parentheses and may hold any character.
  return readdirSync(tasks).every((task) => stateOf(`${tasks}/${task}/stat`).startsWith('T'));
}

function stateOf(path: string): string {
  try {
    const stat = readFileSync(path, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2);
  } catch {
    // A thread that has ended meanwhile answers no request either.
    return 'T';
  }
}
