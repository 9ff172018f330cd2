import { describe, expect, test } from 'vitest';
import { Turns } from '../../src/member/turns.ts';

/** A run that ends on request. */
function held(log: string[], name: string): { readonly run: () => Promise<string>; readonly end: () => void } {
  let end = (): void => undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const run = async (): Promise<string> => {
    log.push(`${name} began`);
    await ended;
    log.push(`${name} ended`);
    return name;
  };
  return { run, end };
}

const named = (log: string[], name: string) => async (): Promise<string> => {
  log.push(name);
  return name;
};

describe('tasks that are run in turn', () => {
  test('tasks run one at a time', async () => {
    const turns = new Turns();
    const log: string[] = [];
    const one = held(log, 'one');
    const two = held(log, 'two');
    const both = [turns.background(one.run), turns.background(two.run)];
    two.end();
    await new Promise((resolve) => setImmediate(resolve));
    expect(log).toEqual(['one began']);
    one.end();
    expect(await Promise.all(both)).toEqual(['one', 'two']);
    expect(log).toEqual(['one began', 'one ended', 'two began', 'two ended']);
  });

  test('a task begins only after the call that requested it has returned', async () => {
    const turns = new Turns();
    const log: string[] = [];
    const run = turns.asked(named(log, 'run'));
    log.push('returned');
    await run;
    expect(log).toEqual(['returned', 'run']);
  });

  test('tasks run in the order of their requests, with requested tasks before background ones', async () => {
    const turns = new Turns();
    const log: string[] = [];
    await Promise.all([
      turns.background(named(log, 'background 1')),
      turns.asked(named(log, 'asked 1')),
      turns.background(named(log, 'background 2')),
      turns.asked(named(log, 'asked 2')),
    ]);
    expect(log).toEqual(['asked 1', 'asked 2', 'background 1', 'background 2']);
  });

  test('a task waits for the running task to end, whatever the kinds of the two tasks', async () => {
    const turns = new Turns();
    const log: string[] = [];
    const long = held(log, 'background');
    const background = turns.background(long.run);
    await Promise.resolve();
    await Promise.resolve();
    const asked = turns.asked(named(log, 'asked'));
    long.end();
    await Promise.all([background, asked]);
    expect(log).toEqual(['background began', 'background ended', 'asked']);
  });

  test('a failed task rejects only for its own caller, and the next task runs', async () => {
    const turns = new Turns();
    const failed = turns.asked(() => Promise.reject(new Error('failed')));
    const next = turns.asked(() => Promise.resolve('next'));
    await expect(failed).rejects.toThrow('failed');
    expect(await next).toBe('next');
  });

  test('the turns are idle once every task has ended, including tasks requested meanwhile', async () => {
    const turns = new Turns();
    const log: string[] = [];
    await turns.idle;
    void turns.background(async () => {
      void turns.background(named(log, 'later'));
      log.push('first');
    });
    await turns.idle;
    expect(log).toEqual(['first', 'later']);
    expect(await turns.asked(named(log, 'again'))).toBe('again');
  });

  test('a task that throws instead of rejecting does not stop the others', async () => {
    const turns = new Turns();
    const thrown = turns.asked((): Promise<never> => {
      throw new Error('thrown');
    });
    const next = turns.asked(() => Promise.resolve('next'));
    await expect(thrown).rejects.toThrow('thrown');
    expect(await next).toBe('next');
  });
});
