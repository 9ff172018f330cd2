import type { WrappedKey } from '@sealring/core';
import { describe, expect, test } from 'vitest';
// @boundaries-ignore code that the tests of all packages share is not a package
import { leaksIn as leaksOf, rejectionOf } from '../../../test/support/leaks.ts';
import { awsKmsKeyWrapper } from '../src/index.ts';
import { FakeKms } from './fake-kms.ts';

const ID = '1234abcd-12ab-34cd-56ef-1234567890ab';
const context = { 'sealring:ring': 'test' };
// High bytes only: nothing printable by chance, and hex, base64 and numbers that appear nowhere else.
const CANARY = Uint8Array.from({ length: 32 }, (_, i) => 0xff - ((i * 37) % 64));

const leaksIn = (value: unknown): string[] => leaksOf(value, CANARY);

type Wrapper = ReturnType<typeof awsKmsKeyWrapper>;

const ERRORS = [
  { name: 'ThrottlingException', status: 400 },
  { name: 'DisabledException', status: 400 },
  { name: 'AccessDeniedException', status: 400 },
  { name: 'NotFoundException', status: 400 },
  { name: 'InvalidCiphertextException', status: 400 },
  { name: 'ValidationException', status: 400 },
  { name: 'KMSInternalException', status: 500 },
  { name: 'SyntaxError', status: 403 },
  { name: 'TimeoutError' },
  { name: 'Error', code: 'ECONNREFUSED' },
  { name: Buffer.from(CANARY).toString('base64'), status: 500, code: Buffer.from(CANARY).toString('hex') },
];

const CALLS: readonly [string, (keyWrapper: Wrapper, made: WrappedKey) => Promise<unknown>][] = [
  ['generate', (keyWrapper) => keyWrapper.generate({ context })],
  ['wrap', (keyWrapper) => keyWrapper.wrap(CANARY, { context })],
  ['unwrap', (keyWrapper, made) => keyWrapper.unwrap(made, { context })],
];

async function setUp(): Promise<{ kms: FakeKms; keyWrapper: Wrapper; made: WrappedKey }> {
  const kms = new FakeKms({ canary: CANARY });
  const keyWrapper = awsKmsKeyWrapper({
    keyId: kms.createKey(ID),
    client: kms,
    maxAttempts: 2,
    callTimeoutSeconds: 0.02,
  });
  return { kms, keyWrapper, made: await keyWrapper.wrap(CANARY, { context }) };
}

describe('data keys in errors of the SDK (F33)', () => {
  test('the search finds a key in a message, a cause, a hidden field and a truncated text', () => {
    const key = Buffer.from(CANARY);
    const hidden = Object.defineProperty(new Error('x'), 'response', { value: { body: key }, enumerable: false });
    for (const error of [
      new Error(key.toString('hex')),
      new Error('x', { cause: { a: { b: [...key] } } }),
      hidden,
      new Error(key.subarray(0, 16).toString('hex')),
      new Error(`"value":"${key.toString('base64url').slice(0, 30)}`),
    ]) {
      expect(leaksIn(error)).not.toEqual([]);
    }
    expect(leaksIn(new Error('nothing'))).toEqual([]);
  });

  test.each(
    CALLS.flatMap(([call, run]) => ERRORS.map((shape) => ({ call, run, shape, label: shape.code ?? shape.name }))),
  )('no error of $call contains the data key after $label', async ({ run, shape }) => {
    const { kms, keyWrapper, made } = await setUp();
    kms.failAlways(shape);
    const error = await rejectionOf(run(keyWrapper, made));
    expect(error).toMatchObject({ name: 'KeyWrapperError' });
    expect(error).not.toHaveProperty('cause');
    expect(leaksIn(error)).toEqual([]);
    expect(leaksIn(keyWrapper)).toEqual([]);
  });

  test.each(CALLS)('no error of %s contains the data key if no answer arrives before the deadline', async (_, run) => {
    const { kms, keyWrapper, made } = await setUp();
    kms.hang();
    expect(leaksIn(await rejectionOf(run(keyWrapper, made)))).toEqual([]);
  });

  test.each([
    ['an answer for another key', { KeyId: Buffer.from(CANARY).toString('hex') }],
    ['a truncated plaintext', { Plaintext: CANARY.slice(1), CiphertextBlob: CANARY.slice(0, 0) }],
    ['a plaintext as text', { Plaintext: Buffer.from(CANARY).toString('base64'), CiphertextBlob: 'x' }],
  ])('no error of any call contains the data key after %s', async (_, change) => {
    for (const [, run] of CALLS) {
      const { kms, keyWrapper, made } = await setUp();
      kms.spoil((answer) => ({ ...answer, ...change }));
      const error = await rejectionOf(run(keyWrapper, made));
      expect(error).toMatchObject({ kind: 'corrupt' });
      expect(leaksIn(error)).toEqual([]);
    }
  });

  test('no error repeats a wrong argument', async () => {
    const { keyWrapper, made } = await setUp();
    const text = Buffer.from(CANARY).toString('hex');
    for (const call of [
      keyWrapper.wrap(Object(text), { context }),
      keyWrapper.wrap(CANARY.subarray(1), { context }),
      keyWrapper.wrap(CANARY, { context: JSON.parse(JSON.stringify(text)) }),
      keyWrapper.unwrap({ ...made, provider: text }, { context }),
      keyWrapper.unwrap({ ...made, keyId: text }, { context }),
    ]) {
      expect(leaksIn(await rejectionOf(call))).toEqual([]);
    }
  });
});
