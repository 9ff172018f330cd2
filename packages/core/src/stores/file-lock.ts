import { createHash, randomBytes } from 'node:crypto';
import { mkdir, open, readdir, readFile, readlink, stat, unlink } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';

/**
 * The age beyond which a contender counts as dead, even if it still exists: a stopped process must not block the
 * others. A contender whose date is further than this in the future was dated by a wrong clock, and is dead, too.
 */
const DEAD_MS = 10_000;

/**
 * The age at which a holder must stop changing the file: half of the time that others wait, so that the change itself
 * has as much time as all the steps before it.
 */
export const LOCK_USABLE_MS = 5_000;

/** A lock that is held. */
export interface FileLock {
  /**
   * How long it has been held, according to whichever clock shows the longer time, because monotonic time stops during
   * a suspension. A wall clock that was set back counts in the same way as one that was set forward: to the others, the
   * lock seems to be from the future.
   */
  ageMs(): number;
  release(): Promise<void>;
}

/** Identifies the machine on which the ids of this process are valid, and the time when the process started. */
interface Self {
  readonly machine: string;
  readonly start: string;
}

interface Contender extends Self {
  readonly pid: number;
}

/**
 * Tries once to become the only holder of the lock, across threads, processes and machines. Returns undefined if
 * another contender holds it or tries at the same moment; in that case, wait for a random time and try again. System
 * errors are passed on unchanged.
 *
 * The lock is a directory with one file per contender. Each makes its own file first and then checks the others, so at
 * least one of any two contenders sees the other and withdraws. A contender counts as dead after 10 s, or, on this
 * machine, as soon as its process has ended. It also counts as dead if it is dated more than 10 s after a file that is
 * created later: its clock was wrong. Names are unique, so removing the file of a dead contender never removes the file
 * of a live one.
 */
export async function tryFileLock(directory: string): Promise<FileLock | undefined> {
  await makeDirectory(directory);
  const self = await whoAmI();
  // Avoids creating the file below while another contender holds the lock. Ages by the file system's clock are not
  // known yet. Only a date that is read here can be from the future: a contender that comes later is dated later.
  const before: Dates = new Map();
  if (await anyAlive(directory, await readdir(directory), self, before)) return undefined;

  const wallMs = Date.now();
  const monotonicNs = process.hrtime.bigint();
  const own = [self.machine, process.pid, self.start, randomBytes(9).toString('base64url')].join('.');
  const release = () => removeIfPresent(join(directory, own));
  // The file system's clock also dates the files of other machines. It can differ from this machine's clock.
  const nowMs = await create(join(directory, own));
  let alone = false;
  try {
    const others = (await readdir(directory)).filter((name) => name !== own);
    alone = !(await anyAlive(directory, others, self, before, nowMs));
  } finally {
    if (!alone) await release();
  }
  if (!alone) return undefined;
  return {
    ageMs: () => Math.max(Number(process.hrtime.bigint() - monotonicNs) / 1e6, Math.abs(Date.now() - wallMs)),
    release,
  };
}

/** Returns the modification time of the new file, in milliseconds. Leaves no file behind if that fails. */
async function create(path: string): Promise<number> {
  const handle = await open(path, 'wx', 0o600);
  try {
    try {
      return (await handle.stat()).mtimeMs;
    } finally {
      await handle.close();
    }
  } catch (error) {
    await removeIfPresent(path);
    throw error;
  }
}

/** Modification times of files by their names, in milliseconds. */
type Dates = Map<string, number>;

/**
 * Whether any contender is alive, and removes the files of dead ones. `nowMs` is the time by the file system's clock,
 * if this contender knows it; until then, the dates of the others are added to `before`.
 */
async function anyAlive(
  directory: string,
  names: readonly string[],
  self: Self,
  before: Dates,
  nowMs?: number,
): Promise<boolean> {
  let alive = false;
  for (const name of names) {
    const path = join(directory, name);
    const contender = contenderOf(name);
    const isHere = contender?.machine === self.machine;
    const isGone = isHere && !(await isRunning(contender));
    const datedMs = isGone ? undefined : await dateOf(path);
    if (nowMs === undefined) {
      if (datedMs !== undefined) before.set(name, datedMs);
      if (isGone) await removeIfPresent(path);
      else if (isHere && datedMs !== undefined && Math.abs(Date.now() - datedMs) <= DEAD_MS) alive = true;
      continue;
    }
    const isFromTheFuture = (before.get(name) ?? nowMs) - nowMs > DEAD_MS;
    if (datedMs === undefined || nowMs - datedMs > DEAD_MS || isFromTheFuture) await removeIfPresent(path);
    else alive = true;
  }
  return alive;
}

/**
 * The contender that a file name describes. Undefined for a name that another version of this code may have written:
 * then only the file's age counts.
 */
function contenderOf(name: string): Contender | undefined {
  const match = /^([\w-]{16})\.(\d{1,10})\.(\d{1,20})\.[\w-]{12}$/.exec(name);
  if (match === null) return undefined;
  const [, machine, pid, start] = match as unknown as readonly [string, string, string, string];
  return { machine, pid: Number(pid), start };
}

/** The modification time of a file, in milliseconds; undefined if it is gone. */
async function dateOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).mtimeMs;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

async function isRunning({ pid, start }: Contender): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: the process is running as another user.
    if (codeOf(error) === 'ESRCH') return false;
  }
  // The entry is unreadable if /proc hides the processes of other users (hidepid). If so, the result of the signal
  // decides.
  const now = await processStat(String(pid));
  return now === undefined || start === UNKNOWN || (now.start === start && !now.ended);
}

const UNKNOWN = '0';

/**
 * The identity of this process. It is determined each time, because a process that was restored from a snapshot has a
 * new identity.
 */
async function whoAmI(): Promise<Self> {
  const [namespace, boot, own] = await Promise.all([
    unlessMissing(readlink('/proc/self/ns/pid')),
    unlessMissing(readFile('/proc/sys/kernel/random/boot_id', 'latin1')),
    processStat('self'),
  ]);
  const machine = createHash('sha256').update(JSON.stringify([hostname(), namespace, boot]));
  return { machine: machine.digest().toString('base64url', 0, 12), start: own?.start ?? UNKNOWN };
}

/**
 * Start time in clock ticks since boot (proc(5): field 22), and whether the process has ended and only its entry is
 * left (state Z or X).
 */
async function processStat(pid: string): Promise<{ readonly start: string; readonly ended: boolean } | undefined> {
  const text = await unlessMissing(readFile(`/proc/${pid}/stat`, 'latin1'));
  // The second field is the program's name in parentheses, which may itself contain spaces and parentheses.
  if (text === undefined) return undefined;
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const start = fields[19];
  return start === undefined ? undefined : { start, ended: fields[0] === 'Z' || fields[0] === 'X' };
}

/** Reads a fact that a platform may lack or hide; without it, the lock decides with fewer facts. */
function unlessMissing(fact: Promise<string>): Promise<string | undefined> {
  return fact.catch(() => undefined);
}

async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
}

/** Removes a file; a file that is already gone is not an error. */
export async function removeIfPresent(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
  }
}

/** The system's code for an error, such as `ENOENT`; undefined for any other error. */
export function codeOf(error: unknown): string | undefined {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && /^E[A-Z0-9]+$/.test(code) ? code : undefined;
}
