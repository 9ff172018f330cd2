import { fork } from 'node:child_process';
import { Finding } from '../requirement.ts';
import { scriptBeside } from '../target-module.ts';
import { readFirstTokens } from './first-tokens.ts';
import type { SealedInProcess } from './sealing.ts';
import type { Sealed } from './shared-stream.ts';

/** Longest time for a process to start, load the module and seal, milliseconds. */
const SEALING_MS = 30_000;

/** The first tokens of a codec in a fresh process, and whether it unsealed a given one. */
export interface FirstSeals {
  readonly sealed: readonly Sealed[];
  readonly opened: boolean;
}

/**
 * Seals in a process of its own, which has loaded nothing but the module.
 *
 * @param seed - Of the payloads.
 * @param token - To be unsealed there.
 * @throws {Finding} when that process ends before it has sealed, or does not end.
 */
export async function firstSeals(module: string, seed: number, token = ''): Promise<FirstSeals> {
  const child = fork(scriptBeside(import.meta.url, 'sealing'), [module, String(seed), token], {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    // Not those of a test runner.
    execArgv: [],
  });
  let answer: SealedInProcess | undefined;
  child.on('message', (message) => (answer = message as SealedInProcess));
  const timer = setTimeout(() => child.kill('SIGKILL'), SEALING_MS);
  const ended = await new Promise<string>((resolve) => {
    child.on('error', (error) => resolve(error.name));
    child.on('close', (code, signal) => resolve(signal === null ? `code ${code}` : signal));
  });
  clearTimeout(timer);
  if (answer === undefined) throw new Finding(`a process that sealed ended with ${ended}`);
  if ('failed' in answer) throw new Finding(`a process that sealed failed: ${answer.failed}`);
  return { sealed: readFirstTokens(answer.tokens), opened: answer.opened };
}
