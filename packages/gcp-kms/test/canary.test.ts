import { inspect } from 'node:util';
import type { WrappedKey } from '@sealring/core';
import { describe, expect, test } from 'vitest';
// @boundaries-ignore code that the tests of all packages share is not a package
import { leaksIn as leaksOf, rejectionOf } from '../../../test/support/leaks.ts';
import { type GcpKmsClient, gcpKmsKeyWrapper } from '../src/index.ts';
import { context, crc32cBitwise, type KmsAnswer, SDK_VERSIONS, Status, World, type Wrapper } from './world.ts';

// High bytes only: nothing printable by chance, and hex, base64 and numbers that appear nowhere else.
const CANARY = Uint8Array.from({ length: 32 }, (_, i) => 0xff - ((i * 37) % 64));
const IN_HEX = Buffer.from(CANARY).toString('hex');
const IN_BASE64 = Buffer.from(CANARY).toString('base64');

const CALLS: readonly [string, (keyWrapper: Wrapper, made: WrappedKey) => Promise<unknown>][] = [
  ['wrap', (keyWrapper) => keyWrapper.wrap(CANARY, { context })],
  ['unwrap', (keyWrapper, made) => keyWrapper.unwrap(made, { context })],
];

const leaksIn = (value: unknown): string[] => leaksOf(value, CANARY, [String(crc32cBitwise(CANARY))]);

test('the search finds a checksum of the data key, which reveals 32 bits of the key (F33)', () => {
  expect(leaksIn(Object.assign(new Error('x'), { plaintextCrc32c: { value: crc32cBitwise(CANARY) } }))).not.toEqual([]);
});

describe.each(SDK_VERSIONS)('data keys in errors of @google-cloud/kms %s (F33)', (version) => {
  const world = new World(version);

  async function setUp(
    client: GcpKmsClient = world.client,
    callTimeoutSeconds = 5,
  ): Promise<{ keyWrapper: Wrapper; made: WrappedKey }> {
    const { keyId, keyWrapper } = world.setUp();
    const made = await keyWrapper.wrap(CANARY, { context });
    return { keyWrapper: gcpKmsKeyWrapper({ keyId, client, maxAttempts: 2, callTimeoutSeconds }), made };
  }

  const cases = CALLS.flatMap(([call, run]) =>
    Object.entries(Status).map(([name, code]) => ({ call, run, name, code })),
  );
  test.each(cases)('no error of $call contains the data key after the status $name', async ({ run, code }) => {
    const errors: unknown[] = [];
    const watch = async (call: Promise<unknown>): Promise<unknown> => {
      errors.push(await rejectionOf(call));
      throw errors.at(-1);
    };
    const { keyWrapper, made } = await setUp({
      encrypt: (request, options) => watch(world.client.encrypt(request, options)),
      decrypt: (request, options) => watch(world.client.decrypt(request, options)),
    });
    world.kms.failAlways({
      code,
      details: `${IN_HEX} ${IN_BASE64}`,
      violations: [IN_HEX, 'KEY_DISABLED'].map((type) => ({ type, subject: IN_BASE64 })),
      reason: IN_BASE64,
      trailers: { 'x-key': IN_HEX },
    });
    const error = await rejectionOf(run(keyWrapper, made));
    // The SDK's error contains it.
    expect(errors.length).toBeGreaterThan(0);
    for (const theirs of errors) expect(inspect(theirs, { depth: 4 })).toContain(IN_HEX);
    expect(error).toMatchObject({ name: 'KeyWrapperError' });
    expect(error).not.toHaveProperty('cause');
    expect(leaksIn(error)).toEqual([]);
    expect(leaksIn(keyWrapper)).toEqual([]);
  });

  test.each(CALLS)('no error of %s contains the data key if no answer arrives before the deadline', async (_, run) => {
    const { keyWrapper, made } = await setUp(world.client, 0.2);
    world.kms.hang();
    const error = await rejectionOf(run(keyWrapper, made));
    expect(error).toMatchObject({ kind: 'unavailable' });
    expect(leaksIn(error)).toEqual([]);
  });

  test.each<[string, (answer: KmsAnswer) => KmsAnswer]>([
    ['an answer for another key', (answer) => ({ ...answer, name: IN_HEX, plaintext: CANARY.subarray(1) })],
    ['a truncated plaintext', (answer) => ({ ...answer, ciphertext: CANARY, plaintext: CANARY.subarray(1) })],
    ['a wrong checksum', (answer) => ({ ...answer, ciphertextCrc32c: { value: 1 }, plaintextCrc32c: { value: 1 } })],
  ])('no error of any call contains the data key after %s', async (_, spoil) => {
    for (const [, run] of CALLS) {
      const { keyWrapper, made } = await setUp();
      world.kms.spoil(spoil);
      const error = await rejectionOf(run(keyWrapper, made));
      expect(error).toMatchObject({ kind: 'corrupt' });
      expect(leaksIn(error)).toEqual([]);
      world.kms.heal();
    }
  });
});

describe('errors of a client other than the SDK’s (F33)', () => {
  const world = new World();
  const shapes: [string, () => unknown][] = [
    ['text', () => IN_HEX],
    [
      'an error with the key in every field',
      () => {
        const error = new Error(IN_HEX, { cause: { request: { plaintext: CANARY } } });
        return Object.assign(error, { name: IN_BASE64, code: IN_HEX, reason: IN_BASE64, statusDetails: [IN_HEX] });
      },
    ],
    [
      'an error with a valid code and invalid details',
      () => ({
        code: Status.FAILED_PRECONDITION,
        statusDetails: [{ violations: [{ type: `EXTERNAL_${IN_HEX}` }] }],
        note: IN_HEX,
      }),
    ],
    [
      'an error that throws when it is read',
      () => ({
        get code(): never {
          throw new Error(IN_HEX);
        },
      }),
    ],
  ];

  test.each(shapes.flatMap(([label, make]) => CALLS.map(([call, run]) => ({ label, make, call, run }))))(
    'no error of $call repeats what a client throws: $label',
    async ({ make, run }) => {
      const reject = (): Promise<never> => Promise.reject(make());
      for (const client of [
        { encrypt: reject, decrypt: reject },
        { ...world.watchedClient(() => {}), initialize: reject },
      ]) {
        const { keyWrapper } = world.setUp({ client, maxAttempts: 1 });
        const made = {
          provider: 'gcp-kms',
          keyId: `${keyWrapper.keyId}/cryptoKeyVersions/1`,
          wrapped: Buffer.concat([CANARY, CANARY]),
        };
        const error = await rejectionOf(run(keyWrapper, made));
        expect(error).toMatchObject({ name: 'KeyWrapperError', kind: 'unavailable' });
        expect(leaksIn(error)).toEqual([]);
      }
    },
  );

  test('no error repeats a wrong argument', async () => {
    const { keyWrapper } = world.setUp();
    const made = await keyWrapper.wrap(CANARY, { context });
    for (const call of [
      keyWrapper.wrap(Object(IN_HEX), { context }),
      keyWrapper.wrap(CANARY.subarray(1), { context }),
      keyWrapper.wrap(CANARY, { context: JSON.parse(JSON.stringify(IN_HEX)) }),
      keyWrapper.unwrap({ ...made, provider: IN_HEX }, { context }),
      keyWrapper.unwrap({ ...made, keyId: IN_HEX }, { context }),
    ]) {
      expect(leaksIn(await rejectionOf(call))).toEqual([]);
    }
  });
});
