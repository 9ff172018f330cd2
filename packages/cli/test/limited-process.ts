import { spawn } from 'node:child_process';
import { join } from 'node:path';
import type { Ended } from './cli-process.ts';

const MAIN = join(import.meta.dirname, '../dist/main.js');

/** Whether this machine can limit the size of files, and has a device on which no space is left. */
export const HAS_LIMITS: boolean = process.platform === 'linux';

/** Runs the built command in a shell. `$0` and `$@` are the command and its arguments. */
function runInShell(script: string, args: readonly string[], cwd: string): Promise<Ended> {
  const { PATH } = process.env;
  const child = spawn('sh', ['-c', script, process.execPath, MAIN, ...args], { cwd, env: { PATH } });
  const printed = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed.stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    printed.stderr += text;
  });
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, ...printed })));
}

/** Runs the built command, which can create files but cannot write a byte to them. */
export function runWithoutSpace(args: readonly string[], cwd: string): Promise<Ended> {
  return runInShell('ulimit -f 0; exec "$0" "$@"', args, cwd);
}

/** Runs the built command with a standard output on which no space is left. */
export function runToFullDevice(args: readonly string[], cwd: string): Promise<Ended> {
  return runInShell('exec "$0" "$@" > /dev/full', args, cwd);
}
