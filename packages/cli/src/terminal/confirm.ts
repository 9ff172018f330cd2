import { createInterface } from 'node:readline/promises';

/** Whether a user can be asked: both standard input and standard error are terminals. */
export function canAsk(): boolean {
  return process.stdin.isTTY && process.stderr.isTTY;
}

/** Asks a question on standard error. @returns true only for `yes`. */
export async function confirm(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await new Promise<string>((resolve, reject) => {
      // Ctrl-C and the end of the input count as no.
      terminal.once('SIGINT', () => resolve(''));
      terminal.once('close', () => resolve(''));
      terminal.question(question).then(resolve, reject);
    });
    return answer.trim().toLowerCase() === 'yes';
  } finally {
    terminal.close();
  }
}
