import { randomBytes } from 'node:crypto';
import type { KeyWrapper } from '@sealring/core';
import { afterAll, describe, expect, type Mock, test, vi } from 'vitest';
// @boundaries-ignore code that the tests of all packages share is not a package
import { seedCount } from '../../../test/support/seeds.ts';
import {
  type ConformanceReport,
  describeKeyWrapper,
  KEY_WRAPPER_REQUIREMENTS,
  type KeyWrapperTarget,
  runKeyWrapperConformance,
} from '../src/index.ts';
import { shareKeyStream } from '../src/key-wrapper/records.ts';
import { noting } from './noting.ts';
import { pageOf, readCells, requirementsPage } from './requirements-page.ts';
import { acmeTarget } from './zoo/acme.ts';
import { ACME_BROKEN } from './zoo/acme-broken.ts';
import { ACME_CAUGHT_BY } from './zoo/acme-caught-by.ts';
import { ACME_SOUND } from './zoo/acme-sound.ts';
import { BROKEN_KEY_WRAPPERS } from './zoo/broken-key-wrappers.ts';
import { SOUND_KEY_WRAPPERS } from './zoo/sound-key-wrappers.ts';
import {
  type Make,
  PUBLIC_KEY,
  SOUND,
  type Steps,
  signing,
  soundKeyWrapper,
  zooTarget,
} from './zoo/zoo-key-wrapper.ts';

// One of the broken key wrappers prints.
const printing = vi.spyOn(console, 'debug').mockImplementation(() => undefined);
afterAll(() => printing.mockRestore());

const ids = KEY_WRAPPER_REQUIREMENTS.map(({ id }) => id);
const CELLS = readCells('key-wrapper');

const OPERATIONS = ['wrap', 'unwrap', 'generate', 'sign', 'verify', 'owns', 'close'] as const;

/** The calls that the page lists for a requirement, and the reason for omitting the others. */
function callsOf(id: string): readonly [calls: readonly string[], why: string | undefined] {
  const [calls = '', why] = (CELLS.get(id)?.get('Calls') ?? '').split('. The others are left out: ');
  return [calls.split(', '), why];
}

/** The findings of a run, a MUST as `fail` and a SHOULD as `warn`. */
function found({ results }: ConformanceReport): readonly string[] {
  return results.filter(({ status }) => status === 'fail' || status === 'warn').map(({ id }) => id);
}

test('every requirement has its own id, and a reason if it leaves out operations', () => {
  expect(new Set(ids).size).toBe(ids.length);
  const silent = ids.filter((id) => {
    const [calls, why] = callsOf(id);
    const isKnown = calls.every((name) => OPERATIONS.some((one) => one === name));
    return !isKnown || (calls.length < OPERATIONS.length && why === undefined);
  });
  expect(silent).toEqual([]);
});

test('every requirement makes the calls that its page lists', async () => {
  const signs = signing();
  for (const id of ids) {
    const called = new Set<string>();
    const make = (steps: Partial<Steps>): Make => {
      const sound = soundKeyWrapper(steps);
      return (world) => noting<KeyWrapper>(signs(sound(world), world), OPERATIONS, (name) => called.add(name));
    };
    // One binds the context, the other needs signatures, so that together all requirements apply.
    for (const steps of [{}, PUBLIC_KEY]) {
      await runKeyWrapperConformance(zooTarget('noted', make(steps)), { only: [id], seed: 1 });
    }
    expect({ id, left: callsOf(id)[0].filter((name) => !called.has(name)) }).toEqual({ id, left: [] });
  }
});

test('the page lists the inputs of each requirement', async () => {
  const page = requirementsPage('key-wrapper', KEY_WRAPPER_REQUIREMENTS);
  await expect(page).toMatchFileSnapshot(pageOf('key-wrapper'));
});

test('every requirement catches a broken key wrapper', () => {
  const caught = new Set([...BROKEN_KEY_WRAPPERS.map(({ caughtBy }) => caughtBy), ...Object.values(ACME_CAUGHT_BY)]);
  // This requirement is about the target, not the key wrapper: see below.
  expect(ids.filter((id) => !caught.has(id) && id !== 'WRAP-INSTANCE-CLOSES')).toEqual([]);
});

describe('faulty adapters written only from the contract', () => {
  for (const [name, make] of Object.entries(ACME_BROKEN)) {
    const id = ACME_CAUGHT_BY[name] ?? '';
    // On a busy machine, a run may miss the moment that shows the fault.
    const retry = id === 'WRAP-ABORT' || name === 'reads the version after the wrap' ? 2 : 0;
    test(`a faulty adapter written only from the contract is caught: ${name}`, { retry }, async () => {
      const options = { seed: 1, only: [id], timeoutMs: name.includes('waits forever') ? 500 : 30_000 };
      expect(found(await runKeyWrapperConformance(acmeTarget(name, make), options))).toEqual([id]);
    });
  }
});

describe('broken key wrappers', () => {
  for (const { target, caughtBy, also, hangs } of BROKEN_KEY_WRAPPERS) {
    test(`${caughtBy} catches this broken key wrapper: ${target.name}`, async () => {
      const options = { seed: 1, timeoutMs: hangs === true ? 1_500 : 30_000 };
      // Other findings matter only if they are declared.
      const only = also === undefined ? { only: [caughtBy] } : {};
      const report = await runKeyWrapperConformance(target, { ...options, ...only });
      expect(found(report).toSorted()).toEqual([caughtBy, ...(also ?? [])].toSorted());
    });
  }
});

test('wraps share a key stream if their XOR is that of their data keys, but not if they share only a header', () => {
  const [one, other, stream, header] = [randomBytes(32), randomBytes(32), randomBytes(32), randomBytes(40)];
  const wrapOf = (key: Buffer, by: Buffer): Buffer =>
    Buffer.concat([header, key.map((byte, i) => byte ^ (by[i] ?? 0))]);
  expect(shareKeyStream(wrapOf(one, stream), one, wrapOf(other, stream), other)).toBe(true);
  expect(shareKeyStream(wrapOf(one, stream), one, wrapOf(other, randomBytes(32)), other)).toBe(false);
  expect(shareKeyStream(wrapOf(one, stream), one, wrapOf(one, randomBytes(32)), one)).toBe(false);
  const hex = (key: Buffer): Buffer => Buffer.from(`v1:${wrapOf(key, stream).toString('hex')}`);
  expect(shareKeyStream(hex(one), one, hex(other), other)).toBe(true);
});

/** `SEALRING_SEEDS=20` checks every sound key wrapper with twenty seeds. */
const SEEDS = seedCount(1);

const soundReports = new Map<KeyWrapperTarget, Promise<ConformanceReport>>();

/** The report of a sound key wrapper with the first seed, from one run. */
function soundReport(target: KeyWrapperTarget): Promise<ConformanceReport> {
  const report = soundReports.get(target) ?? runKeyWrapperConformance(target, { seed: 0 });
  soundReports.set(target, report);
  return report;
}

describe('sound key wrappers, with any seed', () => {
  for (const { target } of SOUND_KEY_WRAPPERS) {
    test(`${target.name} passes`, { timeout: 600_000 * SEEDS }, async () => {
      for (let seed = 0; seed < SEEDS; seed++) {
        const report = await (seed === 0 ? soundReport(target) : runKeyWrapperConformance(target, { seed }));
        const { results } = report;
        expect(results.filter(({ id }) => found(report).includes(id))).toEqual([]);
        expect(report).toMatchObject({ suite: 'key-wrapper', passed: true });
      }
    });
  }

  test.each(ACME_SOUND)('an unusual adapter passes: $name', async (target) => {
    const { results } = await runKeyWrapperConformance(target, { seed: 1 });
    expect(results.filter(({ status }) => status === 'fail' || status === 'warn')).toEqual([]);
  });

  test('every requirement applies to at least one sound key wrapper', async () => {
    const reports = await Promise.all(SOUND_KEY_WRAPPERS.map(({ target }) => soundReport(target)));
    const tried = reports.flatMap(({ results }) => results.filter(({ status }) => status === 'pass'));
    expect(ids.filter((id) => !tried.some((result) => result.id === id))).toEqual([]);
  });

  test('a run makes fewer than 2800 calls to a quick service without control, and fewer than 3200 with control', async () => {
    let calls = 0;
    const ask: Steps['ask'] = (world, ...rest) => {
      calls += world.isReachable ? 1 : 0;
      return SOUND.ask(world, ...rest);
    };
    await runKeyWrapperConformance(zooTarget('counted', soundKeyWrapper({ ask }), { control: {} }));
    expect(calls).toBeLessThan(2_800);
    calls = 0;
    await runKeyWrapperConformance(zooTarget('counted', soundKeyWrapper({ ask })));
    expect(calls).toBeLessThan(3_200);
  });

  test('a KMS key that a check disables or denies is enabled or allowed again', async () => {
    const called = (): Mock<() => void> => vi.fn<() => void>();
    const control = { disable: called(), enable: called(), deny: called(), allow: called() };
    await runKeyWrapperConformance(zooTarget('without real control', soundKeyWrapper(), { control }));
    expect(control.disable).toHaveBeenCalled();
    expect(control.enable).toHaveBeenCalledTimes(control.disable.mock.calls.length);
    expect(control.deny).toHaveBeenCalled();
    expect(control.allow).toHaveBeenCalledTimes(control.deny.mock.calls.length);
  });
});

describeKeyWrapper(zooTarget('the suite as tests of a runner:', soundKeyWrapper()), { describe, test });

describe('targets that misbehave', () => {
  const target = zooTarget('odd', soundKeyWrapper());
  const only = ['WRAP-ROUNDTRIP'];

  test('a target that cannot start or is not a key wrapper causes a finding', async () => {
    for (const create of [
      () => Promise.reject(new Error('secret')),
      () => ({}) as never,
      () => ({ keyWrapper: {} as never }),
      () => ({ keyWrapper: { wrap: () => 1, unwrap: () => 1 } as never }),
    ]) {
      const { passed, results } = await runKeyWrapperConformance({ ...target, create }, { only });
      expect(passed).toBe(false);
      expect(results[0]?.detail).not.toContain('secret');
    }
  });

  test('a target that never starts or never answers causes a finding', async () => {
    const never = (): Promise<never> => new Promise(() => undefined);
    const deaf = async () => ({ keyWrapper: { ...(await target.create()).keyWrapper, wrap: never } });
    for (const create of [never, deaf]) {
      const { results } = await runKeyWrapperConformance({ ...target, create }, { only, timeoutMs: 200 });
      expect(results[0]).toMatchObject({
        status: 'fail',
        detail: expect.stringContaining('did not end within 200 ms'),
      });
    }
  });

  test('an instance that fails to close causes a finding', async () => {
    const create = async () => ({
      ...(await target.create()),
      close: () => Promise.reject(new Error('still in use')),
    });
    const { results } = await runKeyWrapperConformance({ ...target, create }, { only });
    expect(results[0]).toMatchObject({ status: 'fail', detail: expect.stringContaining('close of an instance') });
  });

  test('a close that never ends is reported once, under its own requirement', async () => {
    const create = async () => ({ ...(await target.create()), close: () => new Promise<void>(() => undefined) });
    const some = ['WRAP-ROUNDTRIP', 'WRAP-VIEW', 'WRAP-STORED', 'WRAP-INSTANCE-CLOSES'];
    const { results } = await runKeyWrapperConformance({ ...target, create }, { only: some });
    expect(results.filter(({ status }) => status !== 'pass')).toMatchObject([
      {
        id: 'WRAP-INSTANCE-CLOSES',
        detail: expect.stringContaining('closing an instance took longer than 5000 ms'),
      },
    ]);
    // After the first one, the kit no longer waits as long for a close.
    const [first = 0, second = 0] = results.map(({ durationMs }) => durationMs);
    expect(second).toBeLessThan(first / 2);
  });

  test('a finding shows the class and line of an error in the author’s code, but not its text', async () => {
    const create = async () => {
      const { keyWrapper } = await target.create();
      const wrap = (): unknown => JSON.parse('{ secret') as unknown;
      return { keyWrapper: { ...keyWrapper, wrap } as never };
    };
    const { results } = await runKeyWrapperConformance({ ...target, create }, { only });
    expect(results[0]?.detail).toMatch(/SyntaxError at .*key-wrapper\.test\.ts:\d+/);
    expect(results[0]?.detail).not.toContain('secret');
  });

  test('a finding names an unknown error kind, and a call that does not end', async () => {
    const kind = 'timeout';
    const timed = zooTarget(
      'timed',
      soundKeyWrapper({ fail: (_, what) => Object.assign(SOUND.fail('unavailable', what), { kind }) }),
    );
    const late = await runKeyWrapperConformance(timed, { only: ['WRAP-UNREACHABLE'] });
    expect(late.results[0]?.detail).toContain(', kind "timeout"');
    const never = async () => ({
      keyWrapper: { ...(await target.create()).keyWrapper, unwrap: () => new Promise(() => undefined) } as never,
    });
    const { results } = await runKeyWrapperConformance({ ...target, create: never }, { only, timeoutMs: 200 });
    expect(results[0]?.detail).toContain(
      'did not end within 200 ms: waiting for unwrap of a data key of bytes that are not text',
    );
  });

  test('invalid targets and options are rejected with an error that names them', async () => {
    const halfMade = { ...target, createUnreachable: undefined };
    for (const [wrong, words] of [
      [{ ...target, createOtherKey: 1 }, /createOtherKey must be a function/],
      [{ ...target, creat: 1 }, /unknown option "creat"/],
      [halfMade, /createUnreachable is missing/],
      [{ ...target, supports: { remote: false } }, /createUnreachable contradicts supports.remote: false/],
      [{ ...target, control: { disable: () => undefined } }, /control.disable is given without control.enable/],
      [{ ...target, control: { allow: () => undefined } }, /control.allow is given without control.deny/],
      [{ ...target, supports: { context: true } }, /unknown option "supports.context"/],
    ] as const) {
      await expect(runKeyWrapperConformance(wrong as never)).rejects.toThrow(words);
      expect(() => describeKeyWrapper(wrong as never, { describe, test })).toThrow(words);
    }
    await expect(runKeyWrapperConformance(target, { only: ['WRAP-NONE'] })).rejects.toThrow(/WRAP-NONE/);
  });

  test('a finding shows no key', async () => {
    const keys = new Set<string>();
    const create = async () => {
      const { keyWrapper } = await target.create();
      const wrap: typeof keyWrapper.wrap = (dataKey, options) => {
        keys.add(Buffer.from(dataKey).toString('hex'));
        return keyWrapper.wrap(
          dataKey.map((byte) => byte ^ 1),
          options,
        );
      };
      return { keyWrapper: { ...keyWrapper, wrap } };
    };
    const { results, passed } = await runKeyWrapperConformance({ ...target, create });
    expect(passed).toBe(false);
    const told = JSON.stringify(results);
    expect([...keys].filter((key) => told.includes(key.slice(0, 16)))).toEqual([]);
  });
});
