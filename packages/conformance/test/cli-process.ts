import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const MAIN: string = join(import.meta.dirname, '../dist/cli/main.js');

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly nodeArgs?: readonly string[];
  /** Called after the process has started. */
  readonly onStart?: (child: ChildProcess) => Promise<void>;
  /** Called with the whole standard error so far, after each new output. */
  readonly onStderr?: (text: string, child: ChildProcess) => void;
}

/** Runs the built command as a process, in the folder of the fixtures. */
export function runCli(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  const { cwd = join(import.meta.dirname, 'fixtures'), env = {}, nodeArgs = [], onStderr, onStart } = options;
  const child = spawn(process.execPath, [...nodeArgs, MAIN, ...args], { cwd, env: { ...cleanEnvironment(), ...env } });
  const printed = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed.stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    printed.stderr += text;
    onStderr?.(printed.stderr, child);
  });
  return new Promise((resolve, reject) => {
    child.on('close', (code) => resolve({ code, ...printed }));
    onStart?.(child).catch(reject);
  });
}

/** The environment without the colours and options of the test runner. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  const { NO_COLOR: _, FORCE_COLOR: _f, NODE_OPTIONS: _o, ...rest } = process.env;
  return rest;
}

export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A killed process that is not yet reaped counts as ended.
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}
