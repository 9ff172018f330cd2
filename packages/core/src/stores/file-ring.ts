import { isUtf8 } from 'node:buffer';
import { createHash, randomBytes } from 'node:crypto';
import { constants, watch as watchPath } from 'node:fs';
import { type FileHandle, lstat, open, readdir, rename, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { tooLarge } from '../adapter/failures.ts';
import { checkRead, checkWatcher, checkWrite, refuseAborted } from '../adapter/ring-store-arguments.ts';
import { optionTypeError, show } from '../base/options.ts';
import { type Backoff, backoffMs } from '../base/retry.ts';
import {
  MAX_DOCUMENT_BYTES,
  RingConflictError,
  type RingStore,
  RingStoreError,
  type StoredRing,
} from '../contracts/ring-store.ts';
import { codeOf, type FileLock, LOCK_USABLE_MS, removeIfPresent, tryFileLock } from './file-lock.ts';

const OWNER = 'fileRing';
const WRITE_DEADLINE_MS = 10_000;
/** The wait between attempts to get the lock. */
const LOCK_BACKOFF: Backoff = { firstMs: 4, capMs: 250 };

/**
 * A ring store in one file, for the processes of one machine, or of several machines that share a file system with
 * atomic rename, exclusive create and directory listings that are never out of date. If the machines date their files
 * themselves, their clocks must agree within 5 s. The file is replaced as a whole, so a reader never sees half a
 * document. Once a write has resolved, the document is on the disk.
 *
 * Next to the file are a directory `<path>.lock`, which is never removed, and, during a write, a temporary file. All of
 * them must be writable by this process, and otherwise only by users who may create a ring. A write that cannot get the
 * lock within 10 s, or that needs more than 5 s while it holds the lock, changes nothing and ends as `unavailable`. The
 * lock of a process that has ended is taken over at once; any other lock, such as that of a stopped process, a
 * terminated worker thread or a dead machine, is taken over after 10 s, or at once if a wrong clock has dated it more
 * than 10 s ahead.
 *
 * The directory must exist: a volume that is not mounted must not look like a ring that does not exist yet. For the
 * same reason, an empty file is `corrupt`, and a symbolic link to nothing is `unavailable`. Writing through a symbolic
 * link is refused as `read-only`, because the rename would replace the link.
 *
 * The revision is the SHA-256 of the document. `watch` watches the directory. It ends silently when the platform cannot
 * watch or the directory goes away, because it only makes changes visible sooner.
 *
 * @param path - The path of the file, resolved against the working directory when this function is called. The file
 *   is not accessed at that time.
 * @throws {TypeError} for a path that is not a string, is empty, or contains a NUL.
 *
 * @example
 * ```ts
 * const ring = fileRing('/var/lib/sealring/payments.ring');
 * ```
 */
export function fileRing(path: string): RingStore {
  if (typeof path !== 'string') throw optionTypeError(`${OWNER}: path must be a string, got ${show(path)}`);
  if (path === '' || path.includes('\0')) throw optionTypeError(`${OWNER}: path must not be empty or contain a NUL`);
  const file = resolve(path);

  return Object.freeze<RingStore>({
    kind: 'file',
    location: file,

    async read(options) {
      checkRead(OWNER, options);
      return readFile(file).catch(translate);
    },

    async write(document, options) {
      checkWrite(OWNER, document, options);
      return write(file, document, options.expected, options.signal).catch(translate);
    },

    watch(changed) {
      checkWatcher(OWNER, changed);
      return watch(file, changed);
    },
  });
}

async function readFile(file: string): Promise<StoredRing | undefined> {
  let handle: FileHandle;
  try {
    // Without O_NONBLOCK (which Windows lacks), `open` of a pipe waits until it has a writer.
    handle = await open(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    await assertPresent(dirname(file));
    if (await isLink(file)) throw new RingStoreError('unavailable', 'the symbolic link points to nothing');
    return undefined;
  }
  try {
    const facts = await handle.stat();
    if (!facts.isFile()) throw new RingStoreError('corrupt', 'not a regular file');
    const bytes = await readBounded(handle);
    const revision = revisionOf(Buffer.from([facts.ino, facts.size, facts.mtimeMs].join('/')));
    if (bytes === undefined) throw tooLarge(revision);
    if (bytes.length === 0) throw new RingStoreError('corrupt', 'the file is empty', { revision });
    if (!isUtf8(bytes)) throw new RingStoreError('corrupt', 'not UTF-8', { revision });
    return { document: bytes.toString(), revision: revisionOf(bytes) };
  } finally {
    await handle.close();
  }
}

/** Returns the content, or undefined if it is larger than a document may be. */
async function readBounded(handle: FileHandle): Promise<Buffer | undefined> {
  const bytes = Buffer.alloc(MAX_DOCUMENT_BYTES + 1);
  let length = 0;
  while (length < bytes.length) {
    const { bytesRead } = await handle.read(bytes, length, bytes.length - length);
    if (bytesRead === 0) return bytes.subarray(0, length);
    length += bytesRead;
  }
  return undefined;
}

async function assertPresent(directory: string): Promise<void> {
  try {
    await stat(directory);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    throw new RingStoreError('unavailable', 'the directory does not exist', { serviceCode: 'ENOENT' });
  }
}

async function isLink(file: string): Promise<boolean> {
  try {
    return (await lstat(file)).isSymbolicLink();
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw error;
  }
}

async function write(
  file: string,
  document: string,
  expected: string | undefined,
  signal: AbortSignal | undefined,
): Promise<{ readonly revision: string }> {
  const deadlineNs = process.hrtime.bigint() + BigInt(WRITE_DEADLINE_MS) * 1_000_000n;
  if (await isLink(file)) throw new RingStoreError('read-only', 'the path is a symbolic link: name the file itself');
  for (let attempt = 1; ; attempt++) {
    // The revision is also checked before the lock, so that a writer that has already lost does not wait for the lock.
    await expectRevision(file, expected);
    const lock = await tryFileLock(`${file}.lock`);
    if (lock !== undefined) {
      try {
        return await replace(file, document, expected, lock, signal);
      } finally {
        await lock.release();
      }
    }
    const leftMs = Number(deadlineNs - process.hrtime.bigint()) / 1e6;
    if (leftMs <= 0) throw new RingStoreError('unavailable', `other writers held the lock for ${WRITE_DEADLINE_MS} ms`);
    // The timer is not unref'ed, because a process must not end while it waits for a write.
    await pause(Math.min(leftMs, backoffMs(LOCK_BACKOFF, attempt, Math.random())), undefined, { signal });
  }
}

/**
 * Performs the steps that require the lock. Before the rename, nothing has changed; after it, nothing can be undone.
 */
async function replace(
  file: string,
  document: string,
  expected: string | undefined,
  lock: FileLock,
  signal: AbortSignal | undefined,
): Promise<{ readonly revision: string }> {
  const directory = dirname(file);
  const temporaryPrefix = `${basename(file)}.tmp-`;
  // A killed process left this file behind. If the process was only suspended, its rename will fail, as it must.
  for (const name of await readdir(directory)) {
    if (name.startsWith(temporaryPrefix)) await removeIfPresent(join(directory, name));
  }
  await expectRevision(file, expected);
  const bytes = Buffer.from(document);
  const temporary = join(directory, temporaryPrefix + randomBytes(9).toString('base64url'));
  try {
    await writeDurably(temporary, bytes);
    refuseAborted(signal);
    if (lock.ageMs() >= LOCK_USABLE_MS) throw new RingStoreError('unavailable', 'the file system is too slow');
    await rename(temporary, file);
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
  await syncDirectory(directory);
  return { revision: revisionOf(bytes) };
}

async function expectRevision(file: string, expected: string | undefined): Promise<void> {
  const revision = await readFile(file).then(
    (stored) => stored?.revision,
    (error: unknown) => {
      // Content that is not a document can be replaced by a writer that has read exactly this content.
      if (error instanceof RingStoreError && error.revision !== undefined) return error.revision;
      throw error;
    },
  );
  if (revision !== expected) throw new RingConflictError();
}

async function writeDurably(path: string, bytes: Uint8Array): Promise<void> {
  const handle = await open(path, 'wx', 0o600);
  try {
    await handle.writeFile(bytes);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Makes the rename durable (fsync(2)). Windows cannot open a directory and needs no such call. */
async function syncDirectory(directory: string): Promise<void> {
  if (process.platform === 'win32') return;
  const handle = await open(directory, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function watch(file: string, changed: () => void): () => void {
  const name = basename(file);
  try {
    // Watches the directory, because a watcher of the file would stay with the old file after a rename.
    const watcher = watchPath(dirname(file), { persistent: false }, (_, changedName) => {
      if (changedName === null || changedName === name) changed();
    });
    watcher.on('error', () => watcher.close());
    return () => watcher.close();
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    return () => undefined;
  }
}

function revisionOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('base64url');
}

/** Keeps the code of a system error, but not its text, which names paths. Throws any other error unchanged. */
function translate(error: unknown): never {
  if (error instanceof Error && error.name === 'AbortError') {
    throw new RingStoreError('unavailable', 'aborted by the caller');
  }
  const code = codeOf(error);
  if (code === undefined) throw error;
  if (code === 'EACCES' || code === 'EPERM')
    throw new RingStoreError('denied', `the file system denied access (${code})`);
  if (code === 'ENOTDIR') {
    throw new RingStoreError('unavailable', 'a part of the path is a file, not a directory (ENOTDIR)', {
      serviceCode: code,
    });
  }
  if (code === 'EROFS') throw new RingStoreError('read-only', 'the file system is mounted read-only');
  throw new RingStoreError('unavailable', `the file system failed (${code})`);
}
