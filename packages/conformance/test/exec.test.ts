import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { array, assert as assertProperty, property as forAll, nat, string } from 'fast-check';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { UNSEEN_THROUGH_PIPE } from '../src/codec/suite.ts';
import { Lines } from '../src/exec/lines.ts';
import { shownRequest, shownText } from '../src/exec/shown.ts';
import {
  CODEC_REQUIREMENTS,
  type ConformanceResult,
  type ExecCodecOptions,
  type ExecCodecTarget,
  execCodecTarget,
  runCodecConformance,
} from '../src/index.ts';
import { isRunning } from './cli-process.ts';

const program = fileURLToPath(new URL('exec/program.ts', import.meta.url));
const index = new URL('../src/index.ts', import.meta.url).href;

const cleanUp: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  for (const run of cleanUp.splice(0).toReversed()) await run();
});

function exec(command: string | readonly string[], options?: ExecCodecOptions): ExecCodecTarget {
  const target = execCodecTarget(command, options);
  cleanUp.push(() => target.close());
  return target;
}

/** The test program, sound or with a fault. */
function faulty(fault: string, options?: ExecCodecOptions): ExecCodecTarget {
  return exec([process.execPath, program, fault], { name: fault, ...options });
}

async function resultsOf(target: ExecCodecTarget, only: readonly string[]): Promise<readonly ConformanceResult[]> {
  const { results } = await runCodecConformance(target, { only, seed: 1 });
  expect(results.map(({ id }) => id).toSorted()).toEqual(only.toSorted());
  return only.map((id) => results.find((result) => result.id === id) as ConformanceResult);
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sealring-exec-'));
  cleanUp.push(() => rmSync(folder, { recursive: true }));
  return folder;
}

function thrownBy(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  return undefined;
}

describe('a sound codec in a separate process', () => {
  test('passes completely', async () => {
    const { results, passed } = await runCodecConformance(faulty('sound'));
    expect(results.filter(({ status }) => status === 'fail' || status === 'warn')).toEqual([]);
    expect(passed).toBe(true);
    const unseen = results.filter(({ detail }) => detail?.includes('cannot be observed through a pipe') === true);
    expect(unseen.map(({ id }) => id).toSorted()).toEqual(Object.keys(UNSEEN_THROUGH_PIPE).toSorted());
  });

  test('passes if it writes null for absent values', async () => {
    const [result] = await resultsOf(faulty('answers-nulls'), ['CODEC-ROUNDTRIP-BYTES']);
    expect(result).toMatchObject({ status: 'pass' });
  });

  test('passes if it writes to stderr endlessly', async () => {
    const [result] = await resultsOf(faulty('floods-stderr'), ['CODEC-STRANGER']);
    expect(result).toMatchObject({ status: 'pass' });
  });

  test('a call waits for its own answer, even if the notification of the previous answer arrives late', async () => {
    const wait = vi.spyOn(Atomics, 'wait');
    cleanUp.push(() => wait.mockRestore());
    const { codec } = await faulty('sound').create();
    // The waits end as if the thread had been suspended between posting and notifying.
    for (const [i, payload] of ['a', 'b', 'c'].entries()) {
      wait.mockReturnValueOnce('ok');
      expect(Buffer.from(codec.unseal(codec.seal(Buffer.from(payload)))).toString()).toBe(payload);
      expect(wait.mock.calls.length).toBeGreaterThan(2 * i + 1);
    }
  });

  test('a command given as text runs in a shell, in the given folder and with the given variables', async () => {
    const target = exec(`"$NODE" '${program.slice(program.lastIndexOf('/') + 1)}' && exit`, {
      cwd: fileURLToPath(new URL('exec', import.meta.url)),
      env: { NODE: process.execPath },
    });
    const [result] = await resultsOf(target, ['CODEC-STRANGER']);
    expect(result).toMatchObject({ status: 'pass' });
  });

  test('accepts and returns ten megabytes', async () => {
    const { codec } = await faulty('sound').create();
    const payload = new Uint8Array(10_000_000).fill(7);
    expect(Buffer.compare(codec.unseal(codec.seal(payload)), payload)).toBe(0);
  });

  test('a requirement does not apply if a pipe hides the behaviour that the requirement checks', () => {
    const ids = CODEC_REQUIREMENTS.map(({ id }) => id);
    expect(Object.keys(UNSEEN_THROUGH_PIPE).filter((id) => !ids.includes(id))).toEqual([]);
  });
});

/** The request that a finding must name. */
const asked = (op: string): string => String.raw`\{"id":\d+,"op":"${op}","instance":"i\d+","\w+":".*"\}`;

/** Faults, each with a requirement that catches it, and the finding. */
const FINDINGS: readonly (readonly [
  fault: string,
  requirement: string,
  finding: string,
  options?: ExecCodecOptions,
])[] = [
  ['hangs-at-seal', 'CODEC-STRANGER', `no answer within 3000 ms to ${asked('seal')}`, { timeoutMs: 3_000 }],
  ['crashes-at-seal', 'CODEC-STRANGER', `exit code 1 instead of answering ${asked('seal')}.*the crash of a test`],
  ['exits-silently', 'CODEC-STRANGER', `ended with exit code 0 instead of answering ${asked('unseal')}`],
  ['is-killed', 'CODEC-STRANGER', `was ended by SIGKILL instead of answering ${asked('unseal')}`],
  ['says-half-a-line', 'CODEC-STRANGER', String.raw`exit code 0 .*${asked('seal')}; its last line is cut off: \{"id"`],
  ['says-text', 'CODEC-STRANGER', `the answer to ${asked('seal')} is not JSON: Sealing…`],
  ['says-text-first', 'CODEC-STRANGER', `the answer to ${asked('seal')} is not JSON: DEBUG seal`],
  ['says-text-after', 'CODEC-STRANGER', `after its answer to ${asked('seal')} .* unrequested line: DEBUG sealed`],
  ['says-binary', 'CODEC-STRANGER', `the answer to ${asked('seal')} is not UTF-8`],
  ['answers-twice', 'CODEC-STRANGER', String.raw`after its answer to ${asked('seal')} .* unrequested line: \{"id"`],
  ['answers-null', 'CODEC-STRANGER', `the answer to ${asked('seal')} is not a JSON object: null`],
  ['answers-an-array', 'CODEC-STRANGER', `the answer to ${asked('seal')} is not a JSON object`],
  ['answers-nothing', 'CODEC-STRANGER', `the answer to ${asked('seal')} has neither token nor error`],
  ['answers-another', 'CODEC-STRANGER', `the answer to ${asked('seal')} is for another request`],
  ['answers-no-id', 'CODEC-STRANGER', `the answer to ${asked('seal')} is for another request`],
  ['answers-id-as-text', 'CODEC-STRANGER', `the answer to ${asked('seal')} is for another request`],
  ['answers-both', 'CODEC-STRANGER', `the answer to ${asked('seal')} has both token and payload`],
  ['answers-payload-to-seal', 'CODEC-STRANGER', `the answer to ${asked('seal')} has payload`],
  ['answers-invalid-to-seal', 'CODEC-STRANGER', `the answer to ${asked('seal')} has invalid`],
  ['answers-a-number', 'CODEC-STRANGER', `the answer to ${asked('seal')} has a token that is not a string`],
  ['answers-base64url', 'CODEC-PEER', `the answer to ${asked('unseal')} has a payload that is not base64`],
  ['answers-unpadded', 'CODEC-PEER', `the answer to ${asked('unseal')} has a payload that is not base64`],
  [
    'answers-error-to-create',
    'CODEC-STRANGER',
    String.raw`\{"op":"create".*\} was answered with the error "no keys here"`,
  ],
  ['answers-error-to-unseal', 'CODEC-REFUSAL-CLASS', 'was refused by the error "tag mismatch"'],
  ['repeats-the-token', 'CODEC-REFUSAL-TOKEN', 'repeats it'],
  ['repeats-the-token', 'CODEC-REFUSAL-REASON', 'characters'],
  ['floods-lines', 'CODEC-STRANGER', `(to ${asked('seal')} .* unrequested line|${asked('unseal')} is not JSON): flood`],
  ['floods-one-line', 'CODEC-STRANGER', `the answer to ${asked('seal')} is a line of more than 67108864 bytes`],
  ['one-codec-for-all', 'CODEC-STRANGER', 'a stranger’s token was not refused'],
  ['has-no-rotation', 'CODEC-ROTATED-OPENS', '"role":"rotated".*was answered with the error "unknown role"'],
  ['crashes-when-long', 'CODEC-SIZE-LIMIT', `exit code 3 instead of answering ${asked('seal')}`, limited(99)],
  ['crashes-when-long', 'CODEC-ROUNDTRIP-BYTES', `exit code 3 instead of answering ${asked('seal')}`],
];

function limited(maxPayloadBytes: number): ExecCodecOptions {
  return { supports: { maxPayloadBytes } };
}

describe('findings about programs that fail during a run', () => {
  for (const [fault, requirement, finding, options] of FINDINGS) {
    test(`the fault ${fault} is caught by ${requirement}`, async () => {
      // The second requirement starts the program again.
      const [first, second] = await resultsOf(faulty(fault, options), [requirement, 'CODEC-AFTER-REFUSAL']);
      const level = CODEC_REQUIREMENTS.find(({ id }) => id === requirement)?.level;
      expect(first).toMatchObject({
        status: level === 'MUST' ? 'fail' : 'warn',
        detail: expect.stringMatching(new RegExp(`^(?!unexpected).*${finding}`)),
      });
      expect(second?.detail ?? '').not.toContain('unexpected');
    });
  }

  test.each(['spins-at-huge', 'crashes-at-huge'])('%s: the other requirements pass', async (fault) => {
    const target = faulty(fault, { timeoutMs: 5_000 });
    const [huge, after, between] = await resultsOf(target, ['CODEC-HUGE', 'CODEC-PEER', 'CODEC-STRANGER']);
    expect(huge).toMatchObject({ status: 'fail', detail: expect.stringMatching(asked('unseal')) });
    expect(huge?.detail?.length).toBeLessThan(500);
    expect([after?.status, between?.status]).toEqual(['pass', 'pass']);
  });

  test('a program that refuses an over-long payload with an error passes', async () => {
    const [result] = await resultsOf(faulty('refuses-long', limited(99)), ['CODEC-SIZE-LIMIT']);
    expect(result).toMatchObject({ status: 'pass' });
  });

  test('a rotation requirement does not apply to a program declared without rotation', async () => {
    const [result] = await resultsOf(faulty('has-no-rotation', { rotated: false }), ['CODEC-ROTATED-OPENS']);
    expect(result).toMatchObject({ status: 'not-applicable' });
  });

  test('the error of a refusal has the name that the target declares', async () => {
    const target = faulty('sound', { refusal: 'BadState' });
    const { codec } = await target.create();
    expect(() => codec.unseal('no token')).toThrow(expect.objectContaining({ name: 'BadState', message: 'malformed' }));
    const [result] = await resultsOf(target, ['CODEC-REFUSAL-CLASS']);
    expect(result).toMatchObject({ status: 'pass' });
  });

  test('a codec stays unusable after its program has ended', async () => {
    const target = faulty('exits-silently');
    const [first, other] = [await target.create(), await target.create()];
    const found = thrownBy(() => first.codec.unseal('x'));
    expect(found).toMatchObject({ name: 'Finding', message: expect.stringContaining('exit code 0') });
    expect(thrownBy(() => other.codec.unseal('x'))).toBe(found);
    // The check may have ignored the failure.
    expect(thrownBy(() => other.close?.())).toBe(found);
    const { codec } = await target.create();
    expect(codec.seal(new Uint8Array(1))).toMatch(/^[\w-]+$/);
  });

  test('wrong arguments are rejected with an error that names them', () => {
    expect(() => execCodecTarget('')).toThrow(RangeError);
    expect(() => execCodecTarget([])).toThrow(RangeError);
    expect(() => execCodecTarget(7 as never)).toThrow(TypeError);
    expect(() => execCodecTarget('true', { timeoutMs: 1 })).toThrow(/timeoutMs must be/);
    expect(() => execCodecTarget('true', { time: 1 } as never)).toThrow(/unknown option "options.time"/);
    expect(() => execCodecTarget('true', { env: { A: 1 } } as never)).toThrow(/env\.A must be/);
    expect(() => execCodecTarget('true', { supports: { x: 1 } } as never)).toThrow(/supports\.x/);
  });
});

/** Ways in which a program fails to start, with the findings. */
const NOT_STARTED: readonly (readonly [
  how: string,
  command: string | readonly string[],
  finding: string,
  options?: ExecCodecOptions,
])[] = [
  ['ends before it answers', 'exit 3', `ended with exit code 3 instead of answering ${asked('create')}$`],
  ['is killed', 'kill -9 $$', `was ended by SIGKILL instead of answering ${asked('create')}$`],
  ['does not exist', ['no-such-command'], 'could not be started: ENOENT$'],
  ['is unknown to the shell', 'no-such-command', 'exit code 127 .*; it wrote to stderr: .*no-such-command.*$'],
  ['has a missing folder', 'true', 'could not be started: ENOENT$', { cwd: '/no/such/folder' }],
  ['does not answer', [process.execPath, program, 'never-starts'], `no answer within 300 ms to ${asked('create')}`],
  ['hangs at create', [process.execPath, program, 'hangs-at-create'], `no answer within 300 ms to ${asked('create')}`],
  ['pairs answers', [process.execPath, program, 'answers-in-pairs'], `no answer within 300 ms to ${asked('create')}`],
  [
    'greets instead',
    [process.execPath, program, 'says-hello'],
    `the answer to ${asked('create')} is not JSON: Codec 1.0 ready$`,
    {},
  ],
  [
    'prints the reason in colours',
    String.raw`printf '\033[31mno key\033[0m\007 here\nmore\n' >&2; exit 1`,
    'exit code 1 .*; it wrote to stderr: no key here$',
  ],
  [
    'prints a long text',
    `yes "$(printf '%01000d' 7)" | head -c 100000 >&2; exit 1`,
    'exit code 1 .*; it wrote to stderr: 0{300}…$',
  ],
  [
    'prints a long traceback',
    String.raw`{ printf 'Traceback (most recent call last):\n'; yes '  File "x.py"' | head -n 9999; printf "ModuleNotFoundError: No module named 'x'\n"; } >&2; exit 1`,
    String.raw`exit code 1 .*stderr: Traceback \(most recent call last\): … ModuleNotFoundError: No module named 'x'$`,
  ],
];

describe('programs that do not start', () => {
  for (const [how, command, finding, options = { timeoutMs: 300 }] of NOT_STARTED) {
    test(`a program that ${how} causes one finding`, async () => {
      const { results, passed } = await runCodecConformance(exec(command, options));
      const found = results.find(({ status }) => status !== 'not-applicable');
      expect(found).toBe(results.at(-1));
      expect(found).toMatchObject({
        status: 'fail',
        detail: expect.stringMatching(new RegExp(`^your program did not start: .*${finding}`)),
      });
      // One line without control characters.
      expect(found?.detail).not.toMatch(/\p{Cc}/u);
      expect(found?.detail?.length).toBeLessThan(900);
      expect(passed).toBe(false);
    });
  }

  test('a program that does not start fails even a run of only SHOULD requirements', async () => {
    const { results, passed } = await runCodecConformance(exec('exit 3'), {
      only: ['CODEC-DISTINCT', 'CODEC-TIMING'],
    });
    expect(results).toMatchObject([{ level: 'SHOULD', status: 'fail' }]);
    expect(passed).toBe(false);
  });

  test('a program that answered once and does not restart causes a finding for each affected requirement', async () => {
    const note = join(temporaryFolder(), 'started');
    const command = `test -e '${note}' && exit 4; touch '${note}'; '${process.execPath}' '${program}' crashes-at-seal`;
    const only = ['CODEC-STRANGER', 'CODEC-PEER'];
    const [first, second] = (await runCodecConformance(exec(command), { only })).results;
    expect(first).toMatchObject({ status: 'fail', detail: expect.stringMatching(/^the program ended .*exit code 1 /) });
    expect(second).toMatchObject({
      status: 'fail',
      detail: expect.stringMatching(/^the program ended .*exit code 4 /),
    });
  });
});

describe('leftover processes', () => {
  test('a program that keeps running, and its children, are killed by close', async () => {
    const note = join(temporaryFolder(), 'pids');
    const target = exec([process.execPath, program, 'stays', note]);
    await target.create();
    const pids = readFileSync(note, 'utf8').split(' ').map(Number);
    expect(pids.map(isRunning)).toEqual([true, true]);
    await target.close();
    await expect.poll(() => pids.map(isRunning)).toEqual([false, false]);
    expect(() => target.create()).toThrow(/closed/);
    await target.close();
  });

  test.each(['SIGKILL', 'SIGINT', 'none'] as const)('the program ends if the kit process ends: %s', async (signal) => {
    const note = join(temporaryFolder(), 'pids');
    const command = JSON.stringify([process.execPath, program, 'stays', note]);
    const script = `
    import { execCodecTarget } from ${JSON.stringify(index)};
    await execCodecTarget(${command}).create();
    console.log('ready');
    ${signal === 'none' ? '' : 'setInterval(() => undefined, 1_000);'}
  `;
    const kit = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    cleanUp.push(() => void kit.kill('SIGKILL'));
    const ended = once(kit, 'exit');
    await once(kit.stdout, 'data');
    const pids = readFileSync(note, 'utf8').split(' ').map(Number);
    if (signal !== 'none') kit.kill(signal);
    expect(await ended).toEqual(signal === 'none' ? [0, null] : [null, signal]);
    await expect.poll(() => pids.map(isRunning)).toEqual([false, false]);
  });
});

describe('lines', () => {
  test('lines do not depend on the chunks they arrive in', () => {
    const chunks = array(nat({ max: 8 }), { minLength: 1 });
    assertProperty(
      forAll(array(string({ unit: 'grapheme' })), chunks, (texts, lengths) => {
        const wanted = texts.map((text) => text.replaceAll('\n', ' '));
        const bytes = Buffer.from(wanted.map((text) => `${text}\n`).join(''));
        const lines = new Lines();
        const found: string[] = [];
        for (let at = 0, i = 0; at < bytes.length; i++) {
          const length = 1 + (lengths[i % lengths.length] ?? 0);
          found.push(...lines.add(bytes.subarray(at, at + length)));
          at += length;
        }
        expect(found).toEqual(wanted.map((text) => text.replace(/^\ufeff/, '')));
      }),
    );
  });

  test('a line over the maximum length causes a RangeError', () => {
    const lines = new Lines(10);
    expect([...lines.add(Buffer.from('0123456789\n01234'))]).toEqual(['0123456789']);
    expect(() => [...lines.add(Buffer.from('567890'))]).toThrow(RangeError);
  });
});

test('a request and an output appear in a finding as one short line', () => {
  const request = { id: 1, op: 'unseal', instance: 'i1', token: 'é'.repeat(100_000) };
  expect(shownRequest(request)).toMatch(/^\{"id":1,"op":"unseal","instance":"i1","token":"(\\u00e9){60}…"\}$/);
  expect(shownText('a\n\u001b[31mb\u202e')).toBe('a b');
  expect(shownText('x'.repeat(1_000))).toHaveLength(301);
  expect(shownText(`${'x'.repeat(1_000)}end`, 'both')).toMatch(/^x{150} … x{147}end$/);
});
