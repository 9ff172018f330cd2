import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Push, type PushListener } from '../../src/adapter/push.ts';

beforeEach(() => {
  vi.useFakeTimers();
  vi.spyOn(Math, 'random').mockReturnValue(0.5);
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const nothing = (): void => undefined;

/** A push whose listener logs its calls, and fails at the one that `failing` names. */
function setUp(options: { readonly heartbeatMs?: number } = {}) {
  const began = Date.now();
  const log: string[] = [];
  const failing = new Set<string>();
  let [changed, lost, started, checked] = [nothing, nothing, Promise.resolve(), Promise.resolve()];
  const did = (what: string): void => {
    log.push(`${what} ${Date.now() - began}`);
    if (failing.has(what)) throw new Error('canary');
  };
  const listener: PushListener = {
    async start(...given) {
      did('start');
      [changed, lost] = given;
      await started;
    },
    async check() {
      did('check');
      await checked;
    },
    end: () => did('end'),
  };
  const connect = (): PushListener | undefined => {
    did('connect');
    return failing.has('make') ? undefined : { ...listener };
  };
  const push = new Push({ connect, timeoutMs: 1_000, ...options });
  const later = (start: Promise<void>): void => void (started = start);
  const slow = (check: Promise<void>): void => void (checked = check);
  return { push, log, failing, later, slow, change: () => changed(), lose: () => lost(), lost: () => lost };
}

test('watchers share one connection, are called at its start and on changes, and the last one to leave closes it', async () => {
  const { push, log, change } = setUp();
  const [one, two] = [vi.fn<() => void>(), vi.fn<() => void>()];
  const leave = [one, one, two].map((watcher) => push.add(watcher));
  await vi.advanceTimersByTimeAsync(0);
  expect([one.mock.calls.length, two.mock.calls.length]).toEqual([2, 1]);
  leave[0]?.();
  leave[0]?.();
  change();
  expect([one.mock.calls.length, two.mock.calls.length]).toEqual([3, 2]);
  leave[1]?.();
  leave[2]?.();
  leave[2]?.();
  change();
  await vi.advanceTimersByTimeAsync(60_000);
  expect([one.mock.calls.length, two.mock.calls.length]).toEqual([3, 2]);
  expect(log).toEqual(['connect 0', 'start 0', 'end 0']);
  push.add(one);
  expect(log.slice(3)).toEqual(['connect 60000', 'start 60000']);
});

test.each(['connect', 'make', 'start'])(
  'a failure to %s is followed by another attempt, after a longer wait each time, up to 30 s',
  async (what) => {
    const { push, log, failing } = setUp();
    failing.add(what);
    push.add(nothing);
    await vi.advanceTimersByTimeAsync(45_000);
    const times = log.filter((line) => line.startsWith('connect')).map((line) => Number(line.split(' ')[1]));
    const waits = times.slice(1).map((time, i) => time - (times[i] ?? 0));
    expect(waits).toEqual([50, 100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 15_000]);
    failing.clear();
    await vi.advanceTimersByTimeAsync(15_000);
    push.close();
    expect(vi.getTimerCount()).toBe(0);
  },
);

test('a connection is checked every 15 s, and replaced at once if it has ended or does not answer', async () => {
  const { push, log, failing, lose } = setUp();
  push.add(nothing);
  await vi.advanceTimersByTimeAsync(30_000);
  lose();
  await vi.advanceTimersByTimeAsync(50);
  failing.add('check');
  await vi.advanceTimersByTimeAsync(15_050);
  expect(log.join()).toBe(
    'connect 0,start 0,check 15000,check 30000,end 30000,' +
      'connect 30050,start 30050,check 45050,end 45050,connect 45100,start 45100',
  );
});

test('a connection that is closed while it is made or checked stays closed', async () => {
  const { push, log, later } = setUp({ heartbeatMs: 100 });
  let connected = nothing;
  later(new Promise((resolve) => void (connected = resolve)));
  const watcher = vi.fn<() => void>();
  push.add(watcher);
  push.close();
  connected();
  await vi.advanceTimersByTimeAsync(1_000);
  // Some clients must be closed again once they have connected.
  expect(log).toEqual(['connect 0', 'start 0', 'end 0', 'end 0']);
  expect(watcher).not.toHaveBeenCalled();
  push.add(watcher);
  await vi.advanceTimersByTimeAsync(50);
  expect(log.slice(4)).toEqual(['connect 1000', 'start 1000']);
});

test('a connection that was replaced or closed is ignored, whatever it reports', async () => {
  const { push, log, lost, slow } = setUp();
  push.add(nothing);
  await vi.advanceTimersByTimeAsync(0);
  const old = lost();
  old();
  await vi.advanceTimersByTimeAsync(50);
  old();
  let fail = nothing;
  slow(new Promise((_, reject) => void (fail = () => reject(new Error('canary')))));
  await vi.advanceTimersByTimeAsync(15_000);
  push.close();
  fail();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(log.join()).toBe('connect 0,start 0,end 0,connect 50,start 50,check 15050,end 15050');
});
