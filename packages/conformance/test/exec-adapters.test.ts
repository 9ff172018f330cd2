import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import {
  type ConformanceResult,
  type ExecOptions,
  execKeyWrapperTarget,
  execRingStoreTarget,
  KEY_WRAPPER_REQUIREMENTS,
  RING_STORE_REQUIREMENTS,
  runKeyWrapperConformance,
  runRingStoreConformance,
} from '../src/index.ts';
import { UNSEEN_THROUGH_PIPE as UNSEEN_KEY_WRAPPERS } from '../src/key-wrapper/suite.ts';
import { UNSEEN_THROUGH_PIPE as UNSEEN_RING_STORES } from '../src/ring-store/suite.ts';

type Contract = 'key-wrapper' | 'ring-store';

const program = fileURLToPath(new URL('exec/adapter.ts', import.meta.url));
const REQUIREMENTS = { 'key-wrapper': KEY_WRAPPER_REQUIREMENTS, 'ring-store': RING_STORE_REQUIREMENTS };
const UNSEEN = { 'key-wrapper': UNSEEN_KEY_WRAPPERS, 'ring-store': UNSEEN_RING_STORES };
/** A MUST with the requests that most faults affect. */
const PLAIN = { 'key-wrapper': 'WRAP-PEER', 'ring-store': 'RING-ROUNDTRIP' };

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function run(
  contract: Contract,
  command: string | readonly string[],
  only: readonly string[] | undefined,
  options: ExecOptions = {},
): Promise<readonly ConformanceResult[]> {
  const settings = { seed: 1, timeoutMs: 60_000, ...(only !== undefined && { only }) };
  if (contract === 'key-wrapper') {
    const target = await execKeyWrapperTarget(command, options);
    closing.push(() => target.close());
    return (await runKeyWrapperConformance(target, settings)).results;
  }
  const target = await execRingStoreTarget(command, options);
  closing.push(() => target.close());
  return (await runRingStoreConformance(target, { ...settings, rounds: 10 })).results;
}

const faulty = (contract: Contract, fault: string): readonly string[] => [process.execPath, program, contract, fault];

describe.each(['key-wrapper', 'ring-store'] as const)('a sound %s in a separate process', (contract) => {
  test('passes completely, even if it answers out of order', async () => {
    const results = await run(contract, faulty(contract, 'sound'), undefined);
    expect(results.filter(({ status }) => status === 'fail' || status === 'warn')).toEqual([]);
    expect(results).toHaveLength(REQUIREMENTS[contract].length);
    const unseen = results.filter(({ detail }) => detail?.includes('cannot be observed through a pipe') === true);
    expect(unseen.map(({ id }) => id).toSorted()).toEqual(Object.keys(UNSEEN[contract]).toSorted());
    expect(results.filter(({ status }) => status === 'pass').length).toBeGreaterThan(25);
  });

  test('names itself in the report, unless an option gives its name', async () => {
    const make = contract === 'key-wrapper' ? execKeyWrapperTarget : execRingStoreTarget;
    for (const [options, name] of [
      [{}, `a ${contract.replace('-', ' ')}`],
      [{ name: 'mine' }, 'mine'],
    ] as const) {
      const target = await make(faulty(contract, 'sound'), options);
      closing.push(() => target.close());
      expect(target.name).toBe(name);
    }
  });
});

describe('aborted signals', () => {
  const unavailable = { message: 'it is unavailable', kind: 'unavailable' };

  test('an abort before or during a call is forwarded to a key wrapper, and to no other call', async () => {
    const target = await execKeyWrapperTarget(faulty('key-wrapper', 'waits-for-aborts'));
    closing.push(() => target.close());
    const { keyWrapper } = await target.create();
    const wrap = (signal: AbortSignal): Promise<unknown> => keyWrapper.wrap(randomBytes(32), { context: {}, signal });
    await expect(wrap(AbortSignal.abort())).rejects.toMatchObject({ name: 'KeyWrapperError', ...unavailable });
    const [first, other] = [new AbortController(), new AbortController()];
    const calls = [wrap(first.signal), wrap(other.signal)].map(async (call) => call.catch((error: unknown) => error));
    first.abort();
    expect(await Promise.race(calls)).toMatchObject({ summary: { provider: 'acme', operation: 'wrap' } });
    expect(await Promise.race([calls[1], Promise.resolve('still waiting')])).toBe('still waiting');
    other.abort();
    expect(await calls[1]).toMatchObject(unavailable);
  });

  test.each([
    ['answers-at-once', 'pass', undefined],
    ['ends-late', 'fail', 'wrap, aborted in progress, succeeded nevertheless'],
  ] as const)('the result of a program that %s for WRAP-ABORT is: %s', async (fault, status, detail) => {
    const [result] = await run('key-wrapper', faulty('key-wrapper', fault), ['WRAP-ABORT']);
    expect([result?.status, result?.detail?.replace(/ \(seed.*/, '')]).toEqual([status, detail]);
  });

  test('an abort before or during a call is forwarded to a ring store', async () => {
    const target = await execRingStoreTarget(faulty('ring-store', 'waits-for-aborts'));
    closing.push(() => target.close());
    const { store } = await target.create('any');
    for (const signal of [AbortSignal.abort(), AbortSignal.timeout(50)]) {
      await expect(store.read({ signal })).rejects.toMatchObject({ name: 'RingStoreError', ...unavailable });
    }
  });
});

/** The request that a finding must name. */
const asked = (op: string): string => String.raw`\{"id":\d+,"op":"${op}",.*\}`;
const CALL = { 'key-wrapper': asked('wrap'), 'ring-store': asked('read') };

/** Faults of either program, with their findings. */
const FINDINGS: readonly (readonly [fault: string, finding: (call: string) => string])[] = [
  ['hangs', (call) => `no answer within 2000 ms to ${call}, and the program was killed`],
  ['crashes', (call) => `exit code 1 instead of answering ${call}.*the crash of a test`],
  ['exits-silently', (call) => `ended with exit code 0 instead of answering ${call}`],
  ['says-text', (call) => `the answer to ${call}.* is not JSON: Calling…`],
  ['says-text-after', () => 'DEBUG called'],
  ['answers-twice', (call) => `(unrequested line|the answer to ${call}.* is for another request): \\{"id"`],
  ['answers-null', (call) => `the answer to ${call}.* is not a JSON object: null`],
  ['answers-nothing', (call) => `the answer to ${call} has neither`],
  ['answers-another', (call) => `the answer to ${call}.* is for another request`],
  ['answers-both', (call) => `the answer to ${call} has both`],
  ['answers-token', (call) => `the answer to ${call} has token`],
  ['answers-a-number', (call) => `the answer to ${call} has a \\w+ that is missing or not an object`],
  ['answers-error', () => '(wrap|a read).* (failed:|rejected with) the error "no such key"'],
];

/** Faults of one of them, with the requirement that catches each. */
const OTHERS: readonly (readonly [contract: Contract, fault: string, requirement: string, finding: string])[] = [
  ['key-wrapper', 'answers-base64url', 'WRAP-PEER', `${asked('wrap')} has a wrapped.wrapped that is not base64`],
  ['key-wrapper', 'answers-unknown-kind', 'WRAP-ERROR-CLASS', 'got KeyWrapperError.*kind "broken"'],
  ['key-wrapper', 'answers-error-to-refusal', 'WRAP-BIT-FLIP', 'expected kind "corrupt", got the error "tag mismatch"'],
  ['key-wrapper', 'answers-the-one-before', 'WRAP-CONCURRENT', 'unwrap of one of \\d+ wrapped keys, .* failed'],
  ['key-wrapper', 'tells-text-for-dates', 'WRAP-OPTIONS', 'has dates that are not an array of numbers'],
  ['key-wrapper', 'tells-seconds', 'WRAP-OPTIONS', 'onServiceDate received 1970-'],
  ['key-wrapper', 'ignores-aborts', 'WRAP-ABORTED', 'was not refused'],
  ['key-wrapper', 'hangs-at-close', 'WRAP-CLOSE', `no answer within 2000 ms to ${asked('close')}`],
  ['key-wrapper', 'fails-to-create', 'WRAP-PEER', 'create failed: KeyWrapperError.*kind "denied"'],
  ['ring-store', 'answers-unknown-kind', 'RING-CONFLICT-ERROR', 'RingStoreError.*kind "broken"'],
  ['ring-store', 'answers-error-to-refusal', 'RING-TOO-LARGE', 'the error "tag mismatch"'],
  ['ring-store', 'reads-failure-as-absent', 'RING-TOO-LARGE-THERE', 'resolved to undefined, not too-large'],
  ['ring-store', 'tells-text-for-dates', 'RING-SERVICE-DATE', 'has dates that are not an array of numbers'],
  ['ring-store', 'tells-seconds', 'RING-SERVICE-DATE-VALID', 'reported 1970-'],
  ['ring-store', 'ignores-aborts', 'RING-ABORTED', 'resolved'],
  ['ring-store', 'hangs-at-close', 'RING-INSTANCE-CLOSES', `no answer within 2000 ms to ${asked('close')}`],
  ['ring-store', 'fails-to-create', 'RING-ROUNDTRIP', 'create failed: RingStoreError.*kind "denied"'],
  ['ring-store', 'fails-to-watch', 'RING-WATCH-HEARS', 'the error "no push today"'],
  ['ring-store', 'notifies-strangers', 'RING-ROUNDTRIP', 'notified the unknown watcher "w999"'],
  ['ring-store', 'notifies-after-the-end', 'RING-WATCH-ENDS', 'an ended watcher was called'],
];

const ALL = [
  ...FINDINGS.flatMap(([fault, finding]) =>
    (['key-wrapper', 'ring-store'] as const).map(
      (contract) => [contract, fault, PLAIN[contract], finding(CALL[contract])] as const,
    ),
  ),
  ...OTHERS,
];

describe('findings about programs that fail during a run', () => {
  test.each(ALL)('%s: the fault %s is caught by %s', async (contract, fault, requirement, finding) => {
    const after = contract === 'key-wrapper' ? 'WRAP-FACTS' : 'RING-SHAPE';
    // The second requirement starts the program again. A program that does not hang may be slow.
    const timeoutMs = fault.startsWith('hangs') ? 2_000 : 15_000;
    const results = await run(contract, faulty(contract, fault), [requirement, after], { timeoutMs });
    const found = results.find(({ id }) => id === requirement);
    expect(found).toMatchObject({
      status: 'fail',
      detail: expect.stringMatching(new RegExp(`^(?!unexpected).*${finding}`)),
    });
    expect(results).toHaveLength(2);
    expect(results.map(({ detail = '' }) => detail).join()).not.toContain('unexpected');
  });

  test('a finding shows no data key', async () => {
    const [found] = await run('key-wrapper', faulty('key-wrapper', 'exits-silently'), ['WRAP-PEER']);
    expect(found?.detail).toContain('"dataKey":"…"');
  });

  test('an invalid declaration by a program is rejected with an error that names it', async () => {
    const command = faulty('key-wrapper', 'has-wrong-supports');
    await expect(run('key-wrapper', command, undefined)).rejects.toThrow(/unknown option "supports.remotely"/);
  });
});

/** Ways in which a program fails to start, with the findings. */
const NOT_STARTED: readonly (readonly [
  how: string,
  command: (contract: Contract) => string | readonly string[],
  finding: string,
])[] = [
  ['ends before it answers', () => 'exit 3', `ended with exit code 3 instead of answering ${asked('describe')}$`],
  ['does not exist', () => ['no-such-command'], 'could not be started: ENOENT$'],
  ['says why', () => `printf 'no key here\\nmore\\n' >&2; exit 1`, 'exit code 1 .*; it wrote to stderr: no key here$'],
  ['hangs', (contract) => faulty(contract, 'hangs-at-describe'), `no answer within 2000 ms to ${asked('describe')}`],
  ['greets instead', (contract) => faulty(contract, 'says-hello'), 'is not JSON: Adapter 1.0 ready$'],
  [
    'speaks another protocol',
    (contract) => faulty(contract, 'answers-error-to-describe'),
    `${asked('describe').replace(String.raw`"id":\d+,`, '')} was answered with the error "unknown op"$`,
  ],
];

describe.each(['key-wrapper', 'ring-store'] as const)(
  'the report about the program of a %s that does not start',
  (contract) => {
    test.each(NOT_STARTED)('a program that fails to start is reported: %s', async (what, command, finding) => {
      const make = contract === 'key-wrapper' ? execKeyWrapperTarget : execRingStoreTarget;
      // Only the hanging one must exceed the limit.
      const timeoutMs = what === 'hangs' ? 2_000 : 20_000;
      await expect(make(command(contract), { timeoutMs })).rejects.toMatchObject({
        message: expect.stringMatching(new RegExp(`^your program did not start: .*${finding}`)),
      });
    });

    test('wrong arguments are rejected with an error that names them', async () => {
      const make = contract === 'key-wrapper' ? execKeyWrapperTarget : execRingStoreTarget;
      await expect(make('')).rejects.toThrow(RangeError);
      await expect(make('true', { timeoutMs: 1 })).rejects.toThrow(/timeoutMs must be/);
      await expect(make('true', { rotated: true } as never)).rejects.toThrow(/unknown option "options.rotated"/);
    });
  },
);
