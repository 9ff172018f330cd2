import { join } from 'node:path';
import { type Ended, runProgram } from './run-program.ts';

const MAIN = join(import.meta.dirname, '../../docs/examples/main-job/main.ts');

/** Runs the program of `npm start`, after the build. */
export function runMain(args: readonly string[], environment: NodeJS.ProcessEnv = {}): Promise<Ended> {
  return runProgram(process.execPath, [MAIN, ...args], { env: { ...process.env, ...environment }, timeoutMs: 120_000 });
}
