import { EventEmitter } from 'node:events';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { codeOf, removeIfPresent, tryFileLock } from '../../src/stores/file-lock.ts';
import { fileRing } from '../../src/stores/file-ring.ts';

/** The real system; every call can be made to fail, and waits take no time. */
const system = vi.hoisted(() => ({
  /** Called before each call: it may throw, or answer in place of the system. */
  before: undefined as ((call: string, path: string) => unknown) | undefined,
  calls: [] as { readonly call: string; readonly path: string }[],
  openHandles: 0,
  /** Requested waits, milliseconds. */
  waits: [] as number[],
  watch: undefined as ((directory: string, options: unknown, changed: unknown) => unknown) | undefined,
}));

vi.mock('node:fs/promises', async (importOriginal) => {
  const real = await importOriginal<typeof import('node:fs/promises')>();
  const told = async (call: string, path: string, run: () => unknown): Promise<unknown> => {
    system.calls.push({ call, path });
    const answer: unknown = await system.before?.(call, path);
    return answer === undefined ? run() : answer;
  };
  const wrapped = Object.fromEntries(
    (['lstat', 'mkdir', 'readdir', 'readFile', 'readlink', 'rename', 'stat', 'unlink'] as const).map((name) => [
      name,
      (path: string, ...rest: unknown[]) => told(name, path, () => Reflect.apply(real[name], real, [path, ...rest])),
    ]),
  );
  const open = async (path: string, ...rest: [string | number, number?]): Promise<unknown> => {
    const handle = (await told('open', path, () => real.open(path, ...rest))) as object;
    system.openHandles += 1;
    const methods = ['close', 'read', 'stat', 'sync', 'writeFile'].map((name) => [
      name,
      async (...given: unknown[]) => {
        const run = (): unknown => Reflect.apply(Reflect.get(handle, name), handle, given);
        if (name === 'close') {
          // The handle counts as closed whatever the system answers.
          system.openHandles -= 1;
          await run();
        }
        return told(`handle.${name}`, path, name === 'close' ? () => undefined : run);
      },
    ]);
    return Object.fromEntries(methods);
  };
  return { ...real, ...wrapped, open };
});

vi.mock('node:fs', async (importOriginal) => {
  const real = await importOriginal<typeof import('node:fs')>();
  const watch = (...given: Parameters<typeof real.watch>): unknown =>
    system.watch === undefined ? Reflect.apply(real.watch, real, given) : Reflect.apply(system.watch, undefined, given);
  return { ...real, watch };
});

vi.mock('node:timers/promises', async (importOriginal) => {
  const real = await importOriginal<typeof import('node:timers/promises')>();
  const setTimeout = async (delayMs: number): Promise<void> => {
    // About eighty waits fit into 10 s.
    if (system.waits.push(delayMs) > 500) throw new Error('this waits without an end');
  };
  return { ...real, setTimeout };
});

const root = mkdtempSync(join(tmpdir(), 'sealring-file-faults-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let path: string;
let paths = 0;
beforeEach(() => {
  path = join(root, String(++paths), 'payments.ring');
  mkdirSync(dirname(path));
  works();
});
afterEach(() => {
  vi.restoreAllMocks();
  works();
});

/** From here on no call fails; earlier calls are forgotten. */
function works(): void {
  Object.assign(system, { before: undefined, calls: [], openHandles: 0, waits: [], watch: undefined });
}

function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: something about ${path}`), { code });
}

/** The calls that match fail with this error of the system. */
function fail(code: string, isMeant: (call: string, path: string) => boolean): void {
  system.before = (call, of) => {
    if (isMeant(call, of)) throw systemError(code);
  };
}

const failed = (kind: string) => ({ name: 'RingStoreError', kind });

async function write(document: string, expected: string | undefined): Promise<string> {
  return (await fileRing(path).write(document, { expected })).revision;
}

describe('a write to the file ring in which one step fails (F32)', () => {
  test('changes nothing before the rename, leaves nothing behind, and does not block the next write', async () => {
    let revision: string | undefined = await write('document 0', undefined);
    works();
    revision = await write('document 1', revision);
    const { calls } = system;
    expect(calls.length).toBeGreaterThan(15);
    const renamed = calls.findIndex(({ call }) => call === 'rename');
    for (const [at, { call, path: of }] of calls.entries()) {
      const step = `${call} of ${of.replace(dirname(path), '')}, step ${at}`;
      const before = readFileSync(path, 'utf8');
      works();
      fail('EIO', () => system.calls.length === at + 1);
      const outcome = await fileRing(path)
        .write(`document ${at + 2}`, { expected: revision })
        .then(
          () => 'done',
          ({ name, kind }: { readonly name: string; readonly kind?: string }) => `${name} ${kind}`,
        );
      // Facts that the system may hide: the lock then decides with fewer.
      const isHidden = of.startsWith('/proc/');
      expect(outcome, step).toBe(isHidden ? 'done' : 'RingStoreError unavailable');
      const now = isHidden || at > renamed ? `document ${at + 2}` : before;
      expect(readFileSync(path, 'utf8'), step).toBe(now);
      expect(system.openHandles, step).toBe(0);
      expect(readdirSync(dirname(path)).toSorted(), step).toEqual([basename(path), `${basename(path)}.lock`]);
      // The lock's own file remains if it could not be removed; nothing else does.
      const left = readdirSync(`${path}.lock`);
      const mayStay = of.startsWith(`${path}.lock/`) && call === 'unlink';
      expect(mayStay ? [] : left, step).toEqual([]);
      for (const name of left) rmSync(join(`${path}.lock`, name));
      works();
      revision = (await fileRing(path).read())?.revision;
    }
    await write('after all', revision);
  });

  test('a write is on the disk before it replaces the old document, and the rename is on the disk before the write resolves', async () => {
    await write('x', undefined);
    const temporary = system.calls.find(({ call }) => call === 'handle.sync')?.path ?? '';
    expect(basename(temporary)).toMatch(/^payments\.ring\.tmp-[\w-]{12}$/);
    const steps = system.calls.filter(({ call }) => /^(?:rename|handle\.(?:writeFile|sync))$/.test(call));
    expect(steps).toEqual([
      { call: 'handle.writeFile', path: temporary },
      { call: 'handle.sync', path: temporary },
      { call: 'rename', path: temporary },
      { call: 'handle.sync', path: dirname(path) },
    ]);
  });

  test('a write does not sync the directory on Windows, where that is impossible', async () => {
    const { platform } = process;
    fail('EISDIR', (call, of) => call === 'open' && of === dirname(path));
    await expect(write('x', undefined)).rejects.toMatchObject(failed('unavailable'));
    Object.defineProperty(process, 'platform', { value: 'win32' });
    try {
      await write('y', (await fileRing(path).read())?.revision);
    } finally {
      Object.defineProperty(process, 'platform', { value: platform });
    }
    expect(readFileSync(path, 'utf8')).toBe('y');
  });

  test.each([
    ['EACCES', 'denied'],
    ['EPERM', 'denied'],
    ['EROFS', 'read-only'],
    ['EIO', 'unavailable'],
    ['ENOSPC', 'unavailable'],
  ])('the error %s of a failed step has the kind %s and names no path (F21)', async (code, kind) => {
    const revision = await write('x', undefined);
    fail(code, (call, of) => call === 'open' && of.includes('.tmp-'));
    const failure: unknown = await write('y', revision).catch((error: unknown) => error);
    expect(failure).toMatchObject(failed(kind));
    expect(String(failure)).not.toContain('payments');
    fail(code, (call) => call === 'open');
    await expect(fileRing(path).read()).rejects.toMatchObject(failed(kind));
  });

  test('an error that hides whether the ring exists is never mistaken for absence (F9)', async () => {
    for (const [code, kind] of [
      ['EACCES', 'denied'],
      ['EIO', 'unavailable'],
    ] as const) {
      for (const hidden of ['lstat', 'stat']) {
        fail(code, (call) => call === hidden);
        await expect(fileRing(path).read()).rejects.toMatchObject(failed(kind));
      }
    }
  });

  test('changes nothing if the write is aborted at its last step', async () => {
    const revision = await write('x', undefined);
    const aborting = new AbortController();
    system.before = (call) => (call === 'handle.sync' ? aborting.abort() : undefined);
    const written = fileRing(path).write('y', { expected: revision, signal: aborting.signal });
    await expect(written).rejects.toMatchObject(failed('unavailable'));
    expect(readFileSync(path, 'utf8')).toBe('x');
  });

  test.each([
    [4_999, 'y'],
    [5_000, 'x'],
    // The clock was set back, so to the others the lock seems to be from the future.
    [-4_999, 'y'],
    [-5_000, 'x'],
  ])('a write that held the lock for %d ms by the wall clock leaves the document %s', async (heldMs, stands) => {
    const revision = await write('x', undefined);
    let nowMs = Date.now();
    vi.spyOn(Date, 'now').mockImplementation(() => nowMs);
    system.before = (call) => void (call === 'handle.writeFile' && (nowMs += heldMs));
    await write('y', revision).catch(() => undefined);
    expect(readFileSync(path, 'utf8')).toBe(stands);
  });
});

describe('a write that waits for the lock (F29)', () => {
  test('doubles its wait each time, up to a quarter of a second, and gives up after 10 s', async () => {
    const lock = await tryFileLock(`${path}.lock`);
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
    const startNs = process.hrtime.bigint();
    const waited = () => system.waits.reduce((sum, ms) => sum + ms, 0);
    vi.spyOn(process.hrtime, 'bigint').mockImplementation(() => startNs + BigInt(Math.round(waited() * 1e6)));
    await expect(write('x', undefined)).rejects.toMatchObject(failed('unavailable'));
    expect(system.waits.slice(0, 8)).toEqual([2, 4, 8, 16, 32, 64, 125, 125]);
    expect(Math.max(...system.waits)).toBe(125);
    expect(waited()).toBeCloseTo(10_000, 3);
    await lock?.release();
  });

  test('leaves no trace on the disk while it waits', async () => {
    const lock = await tryFileLock(`${path}.lock`);
    utimesSync(`${path}.lock`, 1, 1);
    expect(await tryFileLock(`${path}.lock`)).toBeUndefined();
    expect(statSync(`${path}.lock`).mtimeMs).toBe(1_000);
    await lock?.release();
  });
});

/** The lock's own file, as a process leaves it that is killed under the lock. */
async function leave(rename: (name: string) => string = (name) => name): Promise<string> {
  expect(await tryFileLock(`${path}.lock`)).toBeDefined();
  const [own = ''] = readdirSync(`${path}.lock`);
  const left = join(`${path}.lock`, rename(own));
  rmSync(join(`${path}.lock`, own));
  writeFileSync(left, '');
  return left;
}

/** The system's report on a process: its start and its state, in a program with a misleading name. */
function statOf({ start, state = 'S' }: { readonly start: string; readonly state?: string }): string {
  return `1 (a) S 9 (b) ${state} ${Array.from({ length: 18 }, () => '7').join(' ')} ${start} 0 0\n`;
}

describe.skipIf(process.platform !== 'linux')('the holder of the lock of the file ring (F32)', () => {
  const LONG_AGO = Date.now() / 1_000 - 3_600;
  const isFree = async (): Promise<boolean> => (await tryFileLock(`${path}.lock`)) !== undefined;
  const answer = (of: RegExp, what: unknown): void => {
    system.before = (_, asked) => {
      if (!of.test(asked)) return undefined;
      if (what instanceof Error) throw what;
      return what;
    };
  };

  test('a lock file’s name contains the start time of its process, and only the owner can enter the directory', async () => {
    const left = await leave();
    const start = readFileSync('/proc/self/stat', 'latin1')
      .replace(/^.*\) /, '')
      .split(' ')[19];
    expect(basename(left).split('.').slice(1, 3)).toEqual([String(process.pid), start]);
    expect(statSync(`${path}.lock`).mode & 0o777).toBe(0o700);
  });

  test.each([
    ['another PID namespace', /^\/proc\/self\/ns\/pid$/, 'pid:[1]'],
    ['before the last boot of the machine', /^\/proc\/sys\/kernel\/random\/boot_id$/, 'another boot\n'],
  ])(
    'the process id of a lock holder from %s is ignored, and the holder is dead once its file is old',
    async (_, of, what) => {
      answer(of, what);
      const left = await leave();
      system.before = undefined;
      expect(await isFree()).toBe(false);
      utimesSync(left, LONG_AGO, LONG_AGO);
      expect(await isFree()).toBe(true);
    },
  );

  test.each([
    ['whose facts are hidden (hidepid)', systemError('EACCES')],
    ['whose facts have an unknown form', 'nothing'],
  ])('a lock holder %s counts as alive if a signal can reach it', async (_, what) => {
    await leave();
    answer(/^\/proc\/\d+\/stat$/, what);
    expect(await isFree()).toBe(false);
    vi.spyOn(process, 'kill').mockImplementation(() => {
      throw systemError('ESRCH');
    });
    expect(await isFree()).toBe(true);
  });

  test('a lock holder counts as alive if its process belongs to another user and refuses signals', async () => {
    await leave();
    vi.spyOn(process, 'kill').mockImplementation(() => {
      throw systemError('EPERM');
    });
    expect(await isFree()).toBe(false);
  });

  test('a lock holder that did not know its start time counts as alive while its process id is in use', async () => {
    answer(/^\/proc\/self\/stat$/, systemError('EACCES'));
    await leave();
    system.before = undefined;
    expect(await isFree()).toBe(false);
    vi.spyOn(process, 'kill').mockImplementation(() => {
      throw systemError('ESRCH');
    });
    expect(await isFree()).toBe(true);
  });

  test.each([
    ['S', false],
    ['Z', true],
    ['X', true],
  ])('with a lock holder in process state %s, the lock is free: %s', async (state, free) => {
    const left = await leave();
    const [, pid = '', start = ''] = basename(left).split('.');
    answer(new RegExp(`^/proc/${pid}/stat$`), statOf({ start, state }));
    expect(await isFree()).toBe(free);
  });

  test('a lock holder’s start time distinguishes it from a process of any name that has reused its id', async () => {
    const left = await leave();
    const [, pid = ''] = basename(left).split('.');
    answer(new RegExp(`^/proc/${pid}/stat$`), statOf({ start: '7' }));
    expect(await isFree()).toBe(true);
  });

  test.each([
    ['longer at its beginning', (name: string) => `x${name}`],
    ['longer at its end', (name: string) => `${name}.x`],
  ])('a lock file whose name is %s belongs to another version, so only its age decides', async (_, rename) => {
    const left = await leave(rename);
    vi.spyOn(process, 'kill').mockImplementation(() => {
      throw systemError('ESRCH');
    });
    expect(await isFree()).toBe(false);
    utimesSync(left, LONG_AGO, LONG_AGO);
    expect(await isFree()).toBe(true);
  });

  test.each([
    [10_000, false],
    [10_001, true],
  ])('a lock with a foreign file %d ms older than the contender’s own file is free: %s', async (olderMs, free) => {
    const left = await leave(() => 'foreign');
    utimesSync(left, 1_000, 1_000);
    system.before = (call) => (call === 'handle.stat' ? { mtimeMs: 1_000_000 + olderMs } : undefined);
    expect(await isFree()).toBe(free);
  });

  test.each([
    [10_000, false],
    [10_001, true],
  ])('a lock with a foreign file %d ms newer than the contender’s own file is free: %s', async (newerMs, free) => {
    const left = await leave(() => 'foreign');
    utimesSync(left, 1_000, 1_000);
    system.before = (call) => (call === 'handle.stat' ? { mtimeMs: 1_000_000 - newerMs } : undefined);
    expect(await isFree()).toBe(free);
  });

  test('a lock file that a machine with a wrong clock left, dated a year ahead, does not delay a write', async () => {
    const nextYear = Date.now() / 1_000 + 366 * 86_400;
    const foreign = ['a'.repeat(16), 1, 1, 'b'.repeat(12)].join('.');
    const left = await leave(() => 'foreign');
    for (const file of [left, join(`${path}.lock`, foreign)]) {
      writeFileSync(file, '');
      utimesSync(file, nextYear, nextYear);
    }
    await expect(write('x', undefined)).resolves.toEqual(expect.any(String));
    expect([system.waits, readdirSync(`${path}.lock`)]).toEqual([[], []]);
  });

  test('a running process that holds the lock since before the clock was set back does not delay a write', async () => {
    const nextYear = Date.now() / 1_000 + 366 * 86_400;
    utimesSync(await leave(), nextYear, nextYear);
    await expect(write('x', undefined)).resolves.toEqual(expect.any(String));
    expect(system.waits).toEqual([]);
  });

  test('a lock file that appears after this contender’s own is never taken for one from the future', async () => {
    let left = '';
    let lists = 0;
    system.before = (call) => {
      // This process was stopped before it looked at the others, and another one came meanwhile.
      if (call !== 'readdir' || ++lists < 2) return;
      left = join(`${path}.lock`, 'foreign');
      writeFileSync(left, '');
      utimesSync(left, Date.now() / 1_000 + 3_600, Date.now() / 1_000 + 3_600);
    };
    expect(await isFree()).toBe(false);
    expect(readdirSync(`${path}.lock`)).toEqual([basename(left)]);
  });

  test('a foreign file that disappears during its check frees the lock; a failed check stops the write', async () => {
    const left = await leave(() => 'foreign');
    fail('ENOENT', (call, of) => call === 'stat' && of === left);
    expect(await isFree()).toBe(true);
    rmSync(`${path}.lock`, { recursive: true });
    await leave(() => 'foreign');
    fail('EACCES', (call, of) => call === 'stat' && of === left);
    await expect(write('x', undefined)).rejects.toMatchObject(failed('denied'));
    expect(readdirSync(`${path}.lock`)).toEqual(['foreign']);
  });
});

describe('a watch on a file ring', () => {
  test('a watch does not keep the process alive, and reports only changes to the ring', async () => {
    let heard = 0;
    let others = 0;
    const alive = process.getActiveResourcesInfo().length;
    const end = fileRing(path).watch?.(() => heard++);
    expect(process.getActiveResourcesInfo()).toHaveLength(alive);
    const { watch } = await vi.importActual<typeof import('node:fs')>('node:fs');
    // Both get the same event in sequence, this one last.
    const witness = watch(dirname(path), () => others++);
    writeFileSync(`${path}.backup`, 'x');
    await expect.poll(() => others).toBeGreaterThan(0);
    expect(heard).toBe(0);
    writeFileSync(path, 'x');
    await expect.poll(() => heard).toBeGreaterThan(0);
    witness.close();
    end?.();
  });

  test('a watch ends silently if the directory is missing or the platform cannot watch it', () => {
    const end = fileRing(join(root, 'not', 'there', 'ring')).watch?.(() => undefined);
    expect(end?.()).toBeUndefined();
    system.watch = () => {
      throw systemError('ENOSPC');
    };
    expect(fileRing(path).watch?.(() => undefined)()).toBeUndefined();
    system.watch = () => {
      throw new RangeError('no answer of the system');
    };
    expect(() => fileRing(path).watch?.(() => undefined)).toThrow(RangeError);
  });

  test('an event without a file name counts as a change to the ring, and a watch that fails is closed', () => {
    let heard = 0;
    let closed = 0;
    const watcher = Object.assign(new EventEmitter(), { close: () => closed++ });
    let tell: (event: string, name: string | null) => void = () => undefined;
    system.watch = (_, __, changed) => {
      tell = changed as typeof tell;
      return watcher;
    };
    fileRing(path).watch?.(() => heard++);
    tell('rename', null);
    expect(heard).toBe(1);
    tell('rename', basename(path));
    expect(heard).toBe(2);
    tell('rename', `${basename(path)}.lock`);
    expect(heard).toBe(2);
    watcher.emit('error', systemError('EIO'));
    expect(closed).toBe(1);
  });

  test('the store has the kind file, because only this machine creates rings in it', () => {
    expect(fileRing(path).kind).toBe('file');
  });
});

describe('the codes of system errors', () => {
  test.each<[unknown, string | undefined]>([
    [systemError('ENOENT'), 'ENOENT'],
    [systemError('E2BIG'), 'E2BIG'],
    [systemError('ERR_INVALID_ARG_TYPE'), undefined],
    [systemError('ENOENT?'), undefined],
    [systemError('not ENOENT'), undefined],
    [Object.assign(new Error('x'), { code: { toString: () => 'EIO' } }), undefined],
    [{ code: 'ENOENT' }, undefined],
    [new Error('x'), undefined],
    ['ENOENT', undefined],
    [undefined, undefined],
  ])('the code of the error %o is %s', (error, code) => {
    expect(codeOf(error)).toBe(code);
  });

  test('a file that another process removed first counts as removed, but a failed removal is an error', async () => {
    await expect(removeIfPresent(path)).resolves.toBeUndefined();
    fail('EACCES', (call) => call === 'unlink');
    await expect(removeIfPresent(path)).rejects.toMatchObject({ code: 'EACCES' });
  });
});
