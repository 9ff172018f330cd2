import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants, mkdtempSync, rmSync } from 'node:fs';
import {
  access,
  chmod,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, describe, expect, test, vi } from 'vitest';
import {
  MAX_DOCUMENT_BYTES,
  RingConflictError,
  type RingStore,
  type RingStoreError,
  type RingStoreErrorKind,
} from '../../src/contracts/ring-store.ts';
import { tryFileLock } from '../../src/stores/file-lock.ts';
import { fileRing } from '../../src/stores/file-ring.ts';
import { memoryRing } from '../../src/stores/memory-ring.ts';
import { staticRing } from '../../src/stores/static-ring.ts';
import { countOf, documentOf, increment } from './file-ring-writer.ts';

/** Processes that are killed during a write; about ten a second. */
const KILLS = Number(process.env['SEALRING_KILLS'] ?? (process.env['CI'] === undefined ? 40 : 200));

const root = mkdtempSync(join(tmpdir(), 'sealring-ring-stores-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let directories = 0;
async function freshPath(): Promise<string> {
  const directory = join(root, String(++directories));
  await mkdir(directory);
  return join(directory, 'payments.ring');
}

const failed = (kind: RingStoreErrorKind) => ({ name: 'RingStoreError', kind });

async function revisionOf(ring: RingStore): Promise<string | undefined> {
  return (await ring.read())?.revision;
}

async function until(condition: () => boolean): Promise<void> {
  for (let waited = 0; !condition(); waited += 10) {
    if (waited > 10_000) throw new Error(`not within 10 s: ${String(condition)}`);
    await pause(10);
  }
}

/** All write at once, with the same expectation: returns the one winner's document. */
async function race(ring: RingStore, writers: number, expected: string | undefined, name: string): Promise<string> {
  const results = await Promise.allSettled(
    Array.from({ length: writers }, (_, writer) => ring.write(`${name} of ${writer}`, { expected })),
  );
  const winners = results.flatMap((result, writer) => (result.status === 'fulfilled' ? [writer] : []));
  const losses = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
  expect(winners).toHaveLength(1);
  expect(losses.every((loss) => loss instanceof RingConflictError)).toBe(true);
  return `${name} of ${winners[0]}`;
}

function describeRingStore(name: string, makeRing: () => Promise<RingStore>): void {
  describe(`${name} ring`, () => {
    test('a ring that was never created is absent', async () => {
      expect(await (await makeRing()).read()).toBeUndefined();
    });

    test('a written document is read, byte for byte, with its revision', async () => {
      const ring = await makeRing();
      let expected: string | undefined;
      for (const document of ['{"epoch":1}\n{}\n', '\ufeff{}\r\n\0é€😀', 'x']) {
        const { revision } = await ring.write(document, { expected });
        expect(await ring.read()).toEqual({ document, revision });
        expect(revision).not.toBe(expected);
        expected = revision;
      }
    });

    test('exactly one of 20 members that create the ring at once succeeds (F8)', async () => {
      const ring = await makeRing();
      const winner = await race(ring, 20, undefined, 'foundation');
      expect((await ring.read())?.document).toBe(winner);
      await expect(ring.write('late', { expected: undefined })).rejects.toBeInstanceOf(RingConflictError);
    });

    test('exactly one of 20 concurrent writers succeeds, in each of 20 rounds (F32)', async () => {
      const ring = await makeRing();
      await ring.write('start', { expected: undefined });
      for (let round = 0; round < 20; round++) {
        const winner = await race(ring, 20, await revisionOf(ring), `round ${round}`);
        expect((await ring.read())?.document).toBe(winner);
      }
    });

    test('a conflict changes nothing', async () => {
      const ring = await makeRing();
      await expect(ring.write('never', { expected: 'AAAA' })).rejects.toBeInstanceOf(RingConflictError);
      expect(await ring.read()).toBeUndefined();
      const first = await ring.write('first', { expected: undefined });
      const second = await ring.write('second', { expected: first.revision });
      for (const expected of [undefined, first.revision, '', 'AAAA', `${second.revision} `]) {
        await expect(ring.write('never', { expected })).rejects.toBeInstanceOf(RingConflictError);
        expect(await ring.read()).toEqual({ document: 'second', revision: second.revision });
      }
    });

    test('a read during writes returns a whole document, never older than one already read (F32)', async () => {
      const ring = await makeRing();
      await increment(ring);
      const writing = new AbortController();
      const writer = (async () => {
        for (let round = 0; round < 50; round++) {
          await increment(ring);
          await pause(0);
        }
        writing.abort();
      })();
      const seen: number[] = [];
      while (!writing.signal.aborted) {
        seen.push(countOf((await ring.read())?.document ?? ''));
        await pause(0);
      }
      await writer;
      expect(seen.length).toBeGreaterThan(10);
      expect(seen).not.toContain(Number.NaN);
      expect(seen).toEqual(seen.toSorted((a, b) => a - b));
    });

    test('a document of 262 144 bytes is accepted, and a document of one more byte is too large (F23)', async () => {
      const ring = await makeRing();
      const largest = 'é'.repeat(MAX_DOCUMENT_BYTES / 2);
      await expect(ring.write(`${largest}x`, { expected: undefined })).rejects.toMatchObject(failed('too-large'));
      expect(await ring.read()).toBeUndefined();
      const { revision } = await ring.write(largest, { expected: undefined });
      expect((await ring.read())?.document).toBe(largest);
      await expect(ring.write(`${largest}x`, { expected: revision })).rejects.toMatchObject(failed('too-large'));
      expect((await ring.read())?.document).toBe(largest);
    });

    test.each([
      ['no document', [undefined, { expected: undefined }]],
      ['bytes', [Buffer.from('x'), { expected: undefined }]],
      ['an empty document', ['', { expected: undefined }]],
      ['a lone surrogate', ['\ud800', { expected: undefined }]],
      ['no options', ['x']],
      ['an expectation left out', ['x', {}]],
      ['a null expectation', ['x', { expected: null }]],
      ['an unknown option', ['x', { expected: undefined, expect: 'y' }]],
    ])('a write with %s causes a TypeError (F17)', async (_, given) => {
      const ring = await makeRing();
      await expect(Reflect.apply(Reflect.get(ring, 'write'), ring, given)).rejects.toBeInstanceOf(TypeError);
      expect(await ring.read()).toBeUndefined();
    });

    test.each([[{ timeout: 5 }], [null], ['x'], [[]]])(
      'a read with the options %o causes a TypeError (F17)',
      async (options) => {
        const ring = await makeRing();
        await expect(Reflect.apply(Reflect.get(ring, 'read'), ring, [options])).rejects.toBeInstanceOf(TypeError);
      },
    );

    test('an aborted call fails as unavailable and writes nothing', async () => {
      const ring = await makeRing();
      const signal = AbortSignal.abort();
      await expect(ring.read({ signal })).rejects.toMatchObject(failed('unavailable'));
      await expect(ring.write('x', { expected: undefined, signal })).rejects.toMatchObject(failed('unavailable'));
      expect(await ring.read({ signal: new AbortController().signal })).toBeUndefined();
    });

    test('each watcher is called after a write until it unsubscribes', async () => {
      const ring = await makeRing();
      let first = 0;
      let second = 0;
      const endFirst = ring.watch?.(() => first++);
      const endSecond = ring.watch?.(() => second++);
      const { revision } = await ring.write('x', { expected: undefined });
      await until(() => first > 0 && second > 0);
      expect([first > 0, second > 0]).toEqual([true, true]);
      endFirst?.();
      endFirst?.();
      const before = first;
      second = 0;
      await ring.write('y', { expected: revision });
      await until(() => second > 0);
      expect(second).toBeGreaterThan(0);
      expect(first).toBe(before);
      endSecond?.();
      expect(() => Reflect.apply(Object(ring).watch, ring, ['x'])).toThrow(TypeError);
    });

    test('the store cannot be changed from outside', async () => {
      expect(Object.isFrozen(await makeRing())).toBe(true);
    });
  });
}

describeRingStore('memory', async () => memoryRing());
describeRingStore('file', async () => fileRing(await freshPath()));

describe('memory ring', () => {
  test('two stores share nothing', async () => {
    await memoryRing().write('x', { expected: undefined });
    expect(await memoryRing().read()).toBeUndefined();
  });
});

describe('static ring', () => {
  test('an aborted read fails as unavailable, and an unknown option causes a TypeError', async () => {
    const ring = staticRing('x');
    await expect(ring.read({ signal: AbortSignal.abort() })).rejects.toMatchObject(failed('unavailable'));
    await expect(Reflect.apply(Reflect.get(ring, 'read'), ring, [{ fast: true }])).rejects.toBeInstanceOf(TypeError);
  });

  test.each([[undefined], [null], [''], [Buffer.from('x')], ['\udc00'], [{}]])('%o is not a document', (document) => {
    expect(() => Reflect.apply(staticRing, undefined, [document])).toThrow(TypeError);
  });

  test('a document over 262 144 bytes is refused', () => {
    expect(() => staticRing('é'.repeat(MAX_DOCUMENT_BYTES / 2))).not.toThrow();
    expect(() => staticRing(`${'é'.repeat(MAX_DOCUMENT_BYTES / 2)}x`)).toThrow(RangeError);
  });
});

describe('a file ring whose content is not a ring', () => {
  test.each([[undefined], [null], [''], ['a\0b'], [Buffer.from('x')], [new URL('file:///x')]])(
    '%o is not a path',
    (path) => {
      const refusal = {
        name: 'TypeError',
        code: 'ERR_SEALRING_OPTION',
        message: expect.stringMatching(/^fileRing: path /),
      };
      expect(() => Reflect.apply(fileRing, undefined, [path])).toThrow(expect.objectContaining(refusal));
    },
  );

  test('the constructor reads and creates nothing', async () => {
    const path = await freshPath();
    const ring = fileRing(path);
    expect(await readdir(dirname(path))).toEqual([]);
    await ring.read();
    expect(await readdir(dirname(path))).toEqual([]);
  });

  test('a missing directory is reported as unavailable, because it could be an unmounted volume (F9)', async () => {
    const ring = fileRing(join(root, 'not', 'there', 'ring'));
    await expect(ring.read()).rejects.toMatchObject(failed('unavailable'));
    await expect(ring.write('x', { expected: undefined })).rejects.toMatchObject(failed('unavailable'));
    await expect(access(join(root, 'not'))).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test('a file in place of the directory is reported as unavailable (F9)', async () => {
    const path = await freshPath();
    await writeFile(path, 'x');
    await expect(fileRing(join(path, 'ring')).read()).rejects.toMatchObject(failed('unavailable'));
  });

  test('a dangling link is reported as unavailable, a link to a document is read, and neither link is written to (F9)', async () => {
    const path = await freshPath();
    await symlink(`${path}.target`, path);
    const ring = fileRing(path);
    await expect(ring.read()).rejects.toMatchObject(failed('unavailable'));
    await expect(ring.write('x', { expected: undefined })).rejects.toMatchObject(failed('read-only'));
    await writeFile(`${path}.target`, 'linked');
    const stored = await ring.read();
    expect(stored?.document).toBe('linked');
    await expect(ring.write('x', { expected: stored?.revision })).rejects.toMatchObject(failed('read-only'));
    expect(await readFile(`${path}.target`, 'utf8')).toBe('linked');
  });

  test.each([
    ['an empty file', Buffer.alloc(0), 'corrupt'],
    ['a file that is not UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), 'corrupt'],
    ['a file of 262 145 bytes', Buffer.alloc(MAX_DOCUMENT_BYTES + 1, 'x'), 'too-large'],
    ['a file of 64 MiB', Buffer.alloc(2 ** 26, 'x'), 'too-large'],
  ] as const)(
    '%s is refused, and is replaced only by a writer that has read exactly that content (F9, F23, F31)',
    async (_, content, kind) => {
      const path = await freshPath();
      await writeFile(path, content);
      const ring = fileRing(path);
      const error: unknown = await ring.read().catch((reason: unknown) => reason);
      expect(error).toMatchObject(failed(kind));
      await expect(ring.write('x', { expected: undefined })).rejects.toBeInstanceOf(RingConflictError);
      await expect(ring.write('x', { expected: 'another' })).rejects.toBeInstanceOf(RingConflictError);
      expect((await readFile(path)).equals(content)).toBe(true);
      const { revision: before } = error as RingStoreError;
      expect(before).toEqual(expect.any(String));
      await utimes(path, 1, 1);
      await expect(ring.write('x', { expected: before })).rejects.toBeInstanceOf(RingConflictError);
      const { revision } = (await ring.read().catch((reason: unknown) => reason)) as RingStoreError;
      await ring.write('x', { expected: revision });
      expect((await ring.read())?.document).toBe('x');
    },
  );

  test('a directory in place of the file is reported as corrupt (F9)', async () => {
    const path = await freshPath();
    await mkdir(path);
    await expect(fileRing(path).read()).rejects.toMatchObject(failed('corrupt'));
    await expect(fileRing(path).write('x', { expected: undefined })).rejects.toMatchObject(failed('corrupt'));
  });

  test.skipIf(process.platform === 'win32')(
    'a pipe in place of the file is reported as corrupt, and does not block the read (F29)',
    async () => {
      const path = await freshPath();
      await once(spawn('mkfifo', [path]), 'exit');
      try {
        await expect(Promise.race([fileRing(path).read(), pause(1_000)])).rejects.toMatchObject(failed('corrupt'));
      } finally {
        // Releases a read that waits for a writer after all; otherwise this process could not end.
        await (await open(path, constants.O_RDWR | constants.O_NONBLOCK)).close();
      }
    },
  );

  test.skipIf(process.platform === 'win32')('a call without file permissions fails as denied (F9)', async () => {
    const path = await freshPath();
    const names = ['unreadable', 'unwritable', 'closed'];
    const [unreadable = '', unwritable = '', closed = ''] = names.map((name) => join(dirname(path), name, 'ring'));
    for (const file of [unreadable, unwritable, closed]) await mkdir(dirname(file), { mode: 0o755 });
    await writeFile(unreadable, 'x', { mode: 0o000 });
    await chmod(dirname(unwritable), 0o555);
    await chmod(dirname(closed), 0o000);
    // Nothing is denied to root, so the attempts run as the user nobody, which may pass through here.
    await chmod(root, 0o755);
    const source = `
      import { fileRing } from ${JSON.stringify(new URL('../../src/stores/file-ring.ts', import.meta.url).href)};
      if (process.getuid() === 0) process.setuid(65534);
      const kindOf = (attempt) => attempt.then(() => 'done', ({ kind }) => kind);
      const [unreadable, unwritable, closed] = process.argv.slice(1).map(fileRing);
      console.log(JSON.stringify([
        await kindOf(unreadable.read()),
        await kindOf(unwritable.read()),
        await kindOf(unwritable.write('x', { expected: undefined })),
        await kindOf(closed.read()),
      ]));`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', source, unreadable, unwritable, closed], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [output]: unknown[] = await once(child.stdout, 'data');
    expect(JSON.parse(String(output))).toEqual(['denied', 'done', 'denied', 'denied']);
    await chmod(dirname(closed), 0o700);
  });

  test('an error names no path (F21)', async () => {
    const failure: unknown = await fileRing(join(root, 'canary', 'ring'))
      .read()
      .catch((error: unknown) => error);
    expect(String(failure)).toContain('unavailable');
    expect(String(failure)).not.toContain('canary');
  });
});

describe('writes to a file ring', () => {
  test('only the owner of the file can access it, and only the lock directory remains beside it', async () => {
    const path = await freshPath();
    await fileRing(path).write('x', { expected: undefined });
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await readdir(dirname(path))).toSorted()).toEqual([basename(path), `${basename(path)}.lock`]);
    expect(await readdir(`${path}.lock`)).toEqual([]);
  });

  test('two stores on one path share one ring, and equal documents have the same revision', async () => {
    const path = await freshPath();
    const { revision } = await fileRing(path).write('x', { expected: undefined });
    expect(await fileRing(path).read()).toEqual({ document: 'x', revision });
    await fileRing(path).write('y', { expected: revision });
    expect((await fileRing(path).read())?.document).toBe('y');
  });

  test('the next write removes temporary files of a killed process, and no other files (F32)', async () => {
    const path = await freshPath();
    await writeFile(`${path}.tmp-left`, 'half a docu');
    await writeFile(`${path}.backup`, 'mine');
    await fileRing(path).write('x', { expected: undefined });
    expect((await readdir(dirname(path))).toSorted()).toEqual(
      [basename(path), `${basename(path)}.backup`, `${basename(path)}.lock`].toSorted(),
    );
  });

  test('no other process writes while a living process holds the lock, and an abort ends the wait (F32)', async () => {
    const path = await freshPath();
    const ring = fileRing(path);
    const lock = await tryFileLock(`${path}.lock`);
    expect(lock).toBeDefined();
    expect(await tryFileLock(`${path}.lock`)).toBeUndefined();
    const signal = AbortSignal.timeout(150);
    await expect(ring.write('x', { expected: undefined, signal })).rejects.toMatchObject(failed('unavailable'));
    expect(await ring.read()).toBeUndefined();
    await lock?.release();
    await ring.write('x', { expected: undefined });
  });

  test('a write changes nothing if the wall clock shows a suspension while it held the lock (F13, F32)', async () => {
    const path = await freshPath();
    const ring = fileRing(path);
    const { revision } = await ring.write('before', { expected: undefined });
    let nowMs = Date.now();
    // Every read of the clock is 6 s after the one before.
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => (nowMs += 6_000));
    try {
      await expect(ring.write('late', { expected: revision })).rejects.toMatchObject(failed('unavailable'));
    } finally {
      clock.mockRestore();
    }
    expect(await ring.read()).toEqual({ document: 'before', revision });
    expect(await readdir(dirname(path))).toHaveLength(2);
    await ring.write('after', { expected: revision });
  });

  test('a writer that has already lost does not wait for the lock', async () => {
    const path = await freshPath();
    await fileRing(path).write('x', { expected: undefined });
    const lock = await tryFileLock(`${path}.lock`);
    await expect(fileRing(path).write('y', { expected: undefined })).rejects.toBeInstanceOf(RingConflictError);
    await lock?.release();
  });
});

/** Takes the lock, and leaves its file under another name. */
async function leaveContender(path: string, rewrite: (parts: readonly string[]) => readonly string[]): Promise<string> {
  const lock = await tryFileLock(`${path}.lock`);
  expect(lock).toBeDefined();
  const [own = ''] = await readdir(`${path}.lock`);
  const left = join(`${path}.lock`, rewrite(own.split('.')).join('.'));
  await rename(join(`${path}.lock`, own), left);
  return left;
}

describe.skipIf(process.platform !== 'linux')('dead holders of a file lock', () => {
  test('a holder whose process has exited is dead (F32)', async () => {
    const path = await freshPath();
    const child = spawn(process.execPath, ['-e', '']);
    await once(child, 'exit');
    await leaveContender(path, ([machine = '', , ...rest]) => [machine, String(child.pid), ...rest]);
    const lock = await tryFileLock(`${path}.lock`);
    expect(lock).toBeDefined();
    expect(await readdir(`${path}.lock`)).toHaveLength(1);
  });

  test('a holder whose process id was reused is dead (F32)', async () => {
    const path = await freshPath();
    await leaveContender(path, ([machine = '', pid = '', start, ...rest]) => [machine, pid, `${start}1`, ...rest]);
    expect(await tryFileLock(`${path}.lock`)).toBeDefined();
  });

  test('a holder whose process is a zombie is dead (F32)', async () => {
    // The shell starts a child and becomes a program that never waits for children; only then does the child end.
    const child = 'until grep -q sleep /proc/$PPID/comm; do sleep 0.01; done';
    const parent = spawn('sh', ['-c', `sh -c '${child}' & echo $!; exec sleep 30`], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    try {
      const [line]: unknown[] = await once(parent.stdout, 'data');
      const pid = String(line).trim();
      const fields = async () => (await readFile(`/proc/${pid}/stat`, 'latin1')).replace(/^.*\) /, '').split(' ');
      while ((await fields())[0] !== 'Z') await pause(10);
      const start = (await fields())[19] ?? '';
      const path = await freshPath();
      await leaveContender(path, ([machine = '', , , ...rest]) => [machine, pid, start, ...rest]);
      expect(await tryFileLock(`${path}.lock`)).toBeDefined();
    } finally {
      parent.kill('SIGKILL');
    }
  });

  test.each([
    ['a living process of this machine', (parts: readonly string[]) => parts],
    ['another machine', ([, ...rest]: readonly string[]) => ['A'.repeat(16), ...rest]],
    ['another version of this code', () => ['unknown']],
  ])('a contender from %s counts as dead once its file is 10 s old, and not before (F32)', async (_, rewrite) => {
    const path = await freshPath();
    const left = await leaveContender(path, rewrite);
    const seconds = Date.now() / 1000;
    await utimes(left, seconds, seconds - 8);
    expect(await tryFileLock(`${path}.lock`)).toBeUndefined();
    expect(await readdir(`${path}.lock`)).toHaveLength(1);
    await utimes(left, seconds, seconds - 11);
    const lock = await tryFileLock(`${path}.lock`);
    expect(lock).toBeDefined();
    expect(await readdir(`${path}.lock`)).toHaveLength(1);
    await expect(access(left, constants.F_OK)).rejects.toMatchObject({ code: 'ENOENT' });
    await lock?.release();
  });

  test('the age of a lock grows', async () => {
    const lock = await tryFileLock(`${await freshPath()}.lock`);
    const before = lock?.ageMs() ?? Number.NaN;
    await pause(20);
    expect(lock?.ageMs()).toBeGreaterThan(before + 15);
  });
});

// Concurrent: the first only waits.
describe.concurrent('several processes on one file ring', () => {
  const writer = join(import.meta.dirname, 'file-ring-writer.ts');

  function startWriter(path: string, times: number): { child: ChildProcess; acknowledged: () => number[] } {
    const child = spawn(process.execPath, [writer, path, String(times)], { stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.setEncoding('latin1').on('data', (text: string) => (output += text));
    return { child, acknowledged: () => output.split('\n').slice(0, -1).map(Number) };
  }

  test('a write that cannot get the lock gives up after 10 s (F29)', async () => {
    const path = await freshPath();
    const left = await leaveContender(path, (parts) => parts);
    // They hold it in turn.
    const renewing = setInterval(() => void utimes(left, Date.now() / 1_000, Date.now() / 1_000), 1_000);
    const start = performance.now();
    try {
      await expect(fileRing(path).write('x', { expected: undefined })).rejects.toMatchObject(failed('unavailable'));
    } finally {
      clearInterval(renewing);
    }
    expect(performance.now() - start).toBeGreaterThan(9_500);
  });

  test.skipIf(process.platform !== 'linux').for([
    ['before it last checks the time', 'age'],
    ['right before it changes the file', 'rename'],
  ] as const)(
    'a process that is stopped %s no longer blocks the others after 10 s, and changes nothing when it continues (F32)',
    async ([, moment]) => {
      const path = await freshPath();
      const ring = fileRing(path);
      const { revision } = await ring.write('before', { expected: undefined });
      const script = join(import.meta.dirname, 'file-ring-stopped.ts');
      const child = spawn(process.execPath, [script, path, moment], { stdio: ['ignore', 'pipe', 'inherit'] });
      try {
        let output = '';
        child.stdout.setEncoding('latin1').on('data', (text: string) => (output += text));
        const state = async () => (await readFile(`/proc/${child.pid}/stat`, 'latin1')).replace(/^.*\) /, '')[0];
        while ((await state()) !== 'T') await pause(10);
        expect(await readdir(`${path}.lock`)).toHaveLength(1);
        const start = performance.now();
        await ring.write('after', { expected: revision });
        expect(performance.now() - start).toBeGreaterThan(8_000);
        const closed = once(child, 'close');
        child.kill('SIGCONT');
        await closed;
        expect(output).toBe('RingStoreError unavailable');
        expect((await ring.read())?.document).toBe('after');
        expect((await readdir(dirname(path))).toSorted()).toEqual([basename(path), `${basename(path)}.lock`]);
        expect(await readdir(`${path}.lock`)).toEqual([]);
      } finally {
        child.kill('SIGKILL');
      }
    },
  );

  test('eight processes that make 25 increments each lose none (F32)', async () => {
    const path = await freshPath();
    const writers = Array.from({ length: 8 }, () => startWriter(path, 25));
    const exits = await Promise.all(writers.map(({ child }) => once(child, 'close')));
    expect(exits.map(([code]: unknown[]) => code)).toEqual(Array(8).fill(0));
    const values = writers.flatMap(({ acknowledged }) => acknowledged());
    expect(values.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 200 }, (_, index) => index + 1));
    expect((await fileRing(path).read())?.document).toBe(documentOf(200));
    expect(await readdir(`${path}.lock`)).toEqual([]);
  });

  test(`${KILLS} kills at random moments corrupt nothing, undo no write, and block no process (F32)`, async () => {
    const path = await freshPath();
    const ring = fileRing(path);
    let last = 0;
    let interrupted = 0;
    for (let round = 0; round < KILLS; round++) {
      const { child, acknowledged } = startWriter(path, 1_000_000);
      const closed = once(child, 'close');
      await until(() => acknowledged().length > 0);
      await pause(Math.random() * 8);
      child.kill('SIGKILL');
      await closed;
      const values = acknowledged();
      expect(values.length).toBeGreaterThan(0);
      expect(values).toEqual(Array.from(values, (_, index) => last + 1 + index));
      const acknowledgedLast = values.at(-1) ?? Number.NaN;
      const left = await readdir(dirname(path));
      if (left.length > 2 || (await readdir(`${path}.lock`)).length > 0) interrupted++;
      // A write may have happened without its acknowledgement; no other difference is possible.
      const count = countOf((await ring.read())?.document ?? '');
      expect([acknowledgedLast, acknowledgedLast + 1]).toContain(count);
      last = await increment(ring);
      expect(last).toBe(count + 1);
      expect((await readdir(dirname(path))).toSorted()).toEqual([basename(path), `${basename(path)}.lock`]);
    }
    // Otherwise the kills would miss the writes, and this test would show nothing.
    expect(interrupted).toBeGreaterThan(KILLS / 8);
  });
});
