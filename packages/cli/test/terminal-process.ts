import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';

const MAIN = join(import.meta.dirname, '../dist/main.js');

/** Whether this machine has `script` of util-linux, which runs a command in a terminal. */
export const HAS_TERMINAL: boolean =
  process.platform === 'linux' && spawnSync('script', ['-qec', 'true', '/dev/null']).status === 0;

/** The output of a command in a terminal, with its control sequences. */
export interface TerminalEnded {
  readonly code: number | null;
  readonly output: string;
}

/** Runs the built command in a terminal. `onOutput` gets the whole output so far after each addition. */
export function runInTerminal(
  args: readonly string[],
  {
    cwd,
    columns = 80,
    onOutput,
  }: {
    readonly cwd: string;
    readonly columns?: number;
    readonly onOutput?: (text: string, child: ChildProcess) => void;
  },
): Promise<TerminalEnded> {
  const command = [process.execPath, MAIN, ...args].map((arg) => `'${arg}'`).join(' ');
  const child = spawn('script', ['-qfec', `stty cols ${columns} rows 24; exec ${command}`, '/dev/null'], {
    cwd,
    env: { PATH: process.env['PATH'], TERM: 'xterm' },
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
    onOutput?.(output, child);
  });
  child.stdin.on('error', () => undefined);
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, output })));
}

/** Types into the terminal of a command, once. */
export function typist(pattern: RegExp, keys: string): (text: string, child: ChildProcess) => void {
  let isDone = false;
  return (text, child) => {
    if (isDone || !pattern.test(text)) return;
    isDone = true;
    child.stdin?.write(keys);
  };
}
