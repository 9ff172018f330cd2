import { execFile } from 'node:child_process';

/** The end of a program, and its output. */
export interface Ended {
  /** The exit code, or the cause of its end in words. */
  readonly code: number | string;
  readonly output: string;
}

export interface RunOptions {
  readonly cwd?: string;
  /** The whole environment. Default: this process's. */
  readonly env?: NodeJS.ProcessEnv;
  /** Time limit, after which it is killed. Default 300 s. */
  readonly timeoutMs?: number;
}

/** Runs a program to its end. */
export function runProgram(
  command: string,
  args: readonly string[],
  { cwd, env, timeoutMs = 300_000 }: RunOptions = {},
): Promise<Ended> {
  const options = { cwd, env, timeout: timeoutMs, killSignal: 'SIGKILL', maxBuffer: 2 ** 24 } as const;
  return new Promise((resolve) => {
    execFile(command, args, options, (error, stdout, stderr) => {
      const code =
        error === null ? 0 : (error.code ?? `ended by ${error.signal}, after ${timeoutMs / 1_000} s at most`);
      resolve({ code, output: `${stdout}${stderr}` });
    });
  });
}
