import { spawn } from 'node:child_process';
import { once } from 'node:events';

const COMMAND = ['node_modules/@sealring/cli/dist/main.js', 'keeper', '--once', '--json'];

/** Runs the keeper once. Its lines go to the log of the function. A failed run is an error of the invocation. */
export async function handler() {
  const child = spawn(process.execPath, COMMAND, { stdio: ['ignore', 'inherit', 'inherit'] });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`sealring keeper ended with exit code ${code}`);
}
