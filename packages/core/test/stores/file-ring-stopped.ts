/**
 * Writes a file ring in its own process, which stops itself while it holds the lock, as a debugger or a paused
 * container would stop it: `node file-ring-stopped.ts <path> age|rename`. Prints the result of the write.
 */
import { readdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileRing } from '../../src/stores/file-ring.ts';

const [, , path = '', moment] = process.argv;

function stopHere(): void {
  process.kill(process.pid, 'SIGSTOP');
}

const ring = fileRing(path);
const stored = await ring.read();
const { signal } = new AbortController();
// Also called under the lock, when the document is on the disk beside the file: a read of the clock and the rename
// follow.
Object.defineProperty(signal, 'aborted', {
  get() {
    if (!readdirSync(dirname(path)).some((name) => name.includes('.tmp-'))) return false;
    if (moment === 'age') stopHere();
    else stopAfterNextLook();
    return false;
  },
});

/** Stops this process after its next read of the clock, which returns the time from before the stop. */
function stopAfterNextLook(): void {
  const { now } = Date;
  Date.now = () => {
    const wallMs = now();
    stopHere();
    Date.now = now;
    return wallMs;
  };
}

const outcome = await ring.write('of the stopped one', { expected: stored?.revision, signal }).then(
  () => 'written',
  (error: unknown) =>
    error instanceof Error && 'kind' in error ? `${error.name} ${String(error.kind)}` : 'something else',
);
process.stdout.write(outcome);
