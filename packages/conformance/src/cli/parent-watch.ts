/*
 * Runs in a thread of the target's process, because the main thread of that process may hang. When the
 * process of the command line has ended, this thread ends the target's process and everything that it started.
 */
import { workerData } from 'node:worker_threads';

const LOOK_MS = 500;
const { parent, ownGroup } = workerData as { readonly parent: number; readonly ownGroup: boolean };

setInterval(() => {
  if (isThere()) return;
  if (ownGroup) kill(-process.pid);
  kill(process.pid);
}, LOOK_MS);

/** Whether the parent is still running. On Windows, `process.ppid` keeps the id of a parent that has ended. */
function isThere(): boolean {
  if (process.platform !== 'win32') return process.ppid === parent;
  try {
    return process.kill(parent, 0);
  } catch {
    return false;
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // The process group does not exist.
  }
}
