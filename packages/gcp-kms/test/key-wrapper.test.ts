import { createHmac } from 'node:crypto';
import { getEventListeners } from 'node:events';
import { canonicalJson, type WrapOptions, type WrappedKey } from '@sealring/core';
import { describe, expect, test } from 'vitest';
import { type GcpKmsClient, gcpKmsKeyWrapper } from '../src/index.ts';
import {
  context,
  crc32cBitwise,
  type KmsAnswer,
  rejectionOf,
  Status,
  sampleKey,
  World,
  type Wrapper,
} from './world.ts';

const world = new World();
const ZEROS = new Uint8Array(32);

/** Every call of a wrapper, for invariants that hold for both. */
const CALLS: readonly [
  string,
  (keyWrapper: Wrapper, made: WrappedKey, options?: Partial<WrapOptions>) => Promise<unknown>,
][] = [
  ['wrap', (keyWrapper, _, options) => keyWrapper.wrap(sampleKey(), { context, ...options })],
  ['unwrap', (keyWrapper, made, options) => keyWrapper.unwrap(made, { context, ...options })],
];

function flipped(bytes: Uint8Array, bit: number): Uint8Array {
  const changed = new Uint8Array(bytes);
  changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
  return changed;
}

describe('requests', () => {
  test('every call names the key without a version, and sends the whole context and all checksums', async () => {
    const { keyId, keyWrapper } = world.setUp();
    const made = await keyWrapper.wrap(sampleKey(), { context });
    await keyWrapper.unwrap(made, { context });
    const additionalAuthenticatedData = Buffer.from('{"sealring:purpose":"data-key","sealring:ring":"test"}');
    expect(additionalAuthenticatedData.toString()).toBe(canonicalJson(context, { sortKeys: true }));
    const shared = {
      name: keyId,
      additionalAuthenticatedData,
      additionalAuthenticatedDataCrc32c: { value: String(crc32cBitwise(additionalAuthenticatedData)) },
    };
    expect(world.kms.requests).toMatchObject([
      { method: 'encrypt', ...shared, plaintextCrc32c: { value: String(crc32cBitwise(sampleKey())) } },
      {
        method: 'decrypt',
        ...shared,
        ciphertextCrc32c: { value: String(crc32cBitwise(made.wrapped.subarray(0, -32))) },
      },
    ]);
  });

  test('contract 1: unwrap returns the data key in a new array, and wrap leaves its argument unchanged', async () => {
    const handedOut: unknown[] = [];
    const client = world.watchedClient((answer) => handedOut.push(answer['plaintext']));
    const { keyWrapper } = world.setUp({ client });
    const dataKey = sampleKey();
    const opened = await keyWrapper.unwrap(await keyWrapper.wrap(dataKey, { context }), { context });
    expect(opened).toEqual(sampleKey());
    expect(dataKey).toEqual(sampleKey());
    expect(opened.byteLength).toBe(opened.buffer.byteLength);
    // Rule 5: the SDK's buffers are overwritten.
    expect(handedOut).toEqual([undefined, Buffer.from(ZEROS)]);
  });

  test('contract 1: a data key that the caller overwrites during a retry is wrapped as it was given', async () => {
    const { keyWrapper } = world.setUp();
    world.kms.throttleNext(1);
    const dataKey = sampleKey();
    const wrapping = keyWrapper.wrap(dataKey, { context });
    dataKey.fill(0);
    expect(await keyWrapper.unwrap(await wrapping, { context })).toEqual(sampleKey());
    expect(world.kms.requests).toHaveLength(3);
  });

  test('adapter rule 5: the wrapper’s copy of a data key is overwritten after the wrap', async () => {
    const sent: Uint8Array[] = [];
    const real = world.client;
    const client: GcpKmsClient = {
      encrypt(request, options) {
        sent.push(request.plaintext);
        return real.encrypt(request, options);
      },
      decrypt: (request, options) => real.decrypt(request, options),
    };
    const { keyWrapper } = world.setUp({ client });
    await keyWrapper.wrap(sampleKey(), { context });
    world.kms.deny();
    await rejectionOf(keyWrapper.wrap(sampleKey(), { context }));
    expect(sent).toEqual([ZEROS, ZEROS]);
  });

  test('contexts that differ only in the order of their keys are equal', async () => {
    const { keyWrapper } = world.setUp();
    const made = await keyWrapper.wrap(sampleKey(), { context: { b: '2', a: '1' } });
    expect(await keyWrapper.unwrap(made, { context: { a: '1', b: '2' } })).toEqual(sampleKey());
  });

  test.each([
    ['a data key of 31 bytes', (w: Wrapper) => w.wrap(sampleKey().subarray(1), { context }), RangeError],
    ['a data key of 64 bytes', (w: Wrapper) => w.wrap(new Uint8Array(64).fill(1, 3), { context }), RangeError],
    ['no options', (w: Wrapper) => w.wrap(sampleKey(), Object(undefined)), TypeError],
    ['a wrapped key that is text', (w: Wrapper) => w.unwrap(Object('blob'), { context }), TypeError],
  ])('contract 4: %s is rejected with a TypeError or RangeError, and no call is made', async (_, run, type) => {
    const { keyWrapper } = world.setUp();
    await expect(run(keyWrapper)).rejects.toThrow(type);
    expect(world.kms.requests).toEqual([]);
  });
});

describe('adapter rule 6: the KMS key of a call', () => {
  const KEY = 'projects/fake-project/locations/europe-west1/keyRings/mcp/cryptoKeys/relabelled';
  test.each([
    ['another provider', { provider: 'aws-kms' }],
    ['a version of another key', { keyId: `${KEY}/cryptoKeyVersions/1` }],
    ['a key in another location', { keyId: `${KEY.replace('europe-west1', 'us-east1')}/cryptoKeyVersions/1` }],
    ['the key itself, without a version', { keyId: KEY }],
    ['an invalid version', { keyId: `${KEY}/cryptoKeyVersions/x` }],
    ['nothing', { keyId: '' }],
  ])('contract 3: a wrapped key that names %s is corrupt, and no call is made', async (_, change) => {
    const { keyWrapper } = world.setUp();
    const made = await keyWrapper.wrap(sampleKey(), { context });
    world.kms.requests.length = 0;
    const moved = { ...made, ...change };
    expect(keyWrapper.owns?.(made)).toBe(true);
    expect(keyWrapper.owns?.(moved)).toBe(false);
    expect(await rejectionOf(keyWrapper.unwrap(moved, { context }))).toMatchObject({ kind: 'corrupt' });
    expect(world.kms.requests).toEqual([]);
  });

  test.each([
    ['another key ring', (name: string) => name.replace('/keyRings/mcp/', '/keyRings/other/')],
    ['another project', (name: string) => name.replace('fake-project', 'other-project')],
    ['a digit added to the key', (name: string) => name.replace('/cryptoKeyVersions', '0/cryptoKeyVersions')],
    ['no version', (name: string) => name.replace(/\/cryptoKeyVersions.*/, '')],
    ['two versions', (name: string) => `${name}/cryptoKeyVersions/1`],
    ['a line feed at the end', (name: string) => `${name}\n`],
  ])('contract 3: a wrapped key whose name has %s is corrupt, and no call is made', async (_, change) => {
    const { keyWrapper } = world.setUp();
    const made = await keyWrapper.wrap(sampleKey(), { context });
    world.kms.requests.length = 0;
    const moved = { ...made, keyId: change(made.keyId) };
    expect(await rejectionOf(keyWrapper.unwrap(moved, { context }))).toMatchObject({ kind: 'corrupt' });
    expect(world.kms.requests).toEqual([]);
  });

  test.each([0, 1, 32, 4097])('a wrapped key of %i bytes is corrupt, and no call is made', async (length) => {
    const { keyId, keyWrapper } = world.setUp();
    const made = {
      provider: 'gcp-kms',
      keyId: `${keyId}/cryptoKeyVersions/1`,
      wrapped: new Uint8Array(length),
    };
    expect(await rejectionOf(keyWrapper.unwrap(made, { context }))).toMatchObject({ kind: 'corrupt' });
    expect(world.kms.requests).toEqual([]);
  });

  test('a wrapped key with the ciphertext of another key is corrupt, because Cloud KMS rejects it (F15)', async () => {
    const other = await world.setUp().keyWrapper.wrap(sampleKey(), { context });
    const { keyWrapper } = world.setUp();
    const made = await keyWrapper.wrap(sampleKey(), { context });
    const moved = { ...made, wrapped: other.wrapped };
    expect(await rejectionOf(keyWrapper.unwrap(moved, { context }))).toMatchObject({
      kind: 'corrupt',
      summary: { code: 'INVALID_ARGUMENT', attempts: 1 },
    });
  });

  test.each(['a version that does not exist', 'a version that exists, after a rotation', 'a version that is disabled'])(
    'a wrapped key relabelled as %s of the same key is corrupt (F15)',
    async (which) => {
      const { keyId, keyWrapper } = world.setUp();
      const made = await keyWrapper.wrap(sampleKey(), { context });
      if (which !== 'a version that does not exist') world.kms.rotate(keyId);
      const moved = { ...made, keyId: `${keyId}/cryptoKeyVersions/2` };
      if (which === 'a version that is disabled') world.kms.disable(moved.keyId);
      const error = await rejectionOf(keyWrapper.unwrap(moved, { context }));
      expect(error).toMatchObject({ kind: 'corrupt', message: expect.stringContaining('a key version other') });
      expect(await keyWrapper.unwrap(made, { context })).toEqual(sampleKey());
    },
  );

  test('the version tag is the documented HMAC, appended to Cloud KMS’s ciphertext', async () => {
    const ciphertexts: Uint8Array[] = [];
    const client = world.watchedClient(({ ciphertext }) => {
      if (ciphertext instanceof Uint8Array) ciphertexts.push(Uint8Array.from(ciphertext));
    });
    const { keyWrapper } = world.setUp({ client });
    const made = await keyWrapper.wrap(sampleKey(), { context });
    const tag = createHmac('sha256', sampleKey()).update(`sealring/gcp-kms/version/1\n${made.keyId}`).digest();
    expect(Buffer.from(made.wrapped)).toEqual(Buffer.concat([...ciphertexts, tag]));
  });

  test('a wrapped key of another ring is reported as corrupt, even under the same KMS key (F25)', async () => {
    const { keyWrapper } = world.setUp();
    const made = await keyWrapper.wrap(sampleKey(), { context });
    const other = { ...context, 'sealring:ring': 'other' };
    expect(await rejectionOf(keyWrapper.unwrap(made, { context: other }))).toMatchObject({ kind: 'corrupt' });
  });

  test('contract 2: a wrapped key with another context or any changed bit is corrupt', async () => {
    const { keyWrapper } = world.setUp();
    const made = await keyWrapper.wrap(sampleKey(), { context });
    for (const other of [{}, { ...context, x: '' }, { 'sealring:ring': 'testdata-key' }]) {
      expect(await rejectionOf(keyWrapper.unwrap(made, { context: other }))).toMatchObject({ kind: 'corrupt' });
    }
    for (let bit = 0; bit < made.wrapped.length * 8; bit += 5) {
      const changed = { ...made, wrapped: flipped(made.wrapped, bit) };
      expect(await rejectionOf(keyWrapper.unwrap(changed, { context }))).toMatchObject({ kind: 'corrupt' });
    }
  });

  test('with alsoUnwrap, a replaced key is used to unwrap, but never to wrap', async () => {
    const retired = world.setUp();
    const old = await retired.keyWrapper.wrap(sampleKey(), { context });
    const { keyId, keyWrapper } = world.setUp({ alsoUnwrap: [retired.keyId] });
    expect(keyWrapper.owns?.(old)).toBe(true);
    expect(await keyWrapper.unwrap(old, { context })).toEqual(sampleKey());
    expect((await keyWrapper.wrap(sampleKey(), { context })).keyId).toBe(`${keyId}/cryptoKeyVersions/1`);
    expect(world.kms.requests.map(({ name }) => name)).toEqual([retired.keyId, keyId]);
  });

  test('when the key is rotated, the next wrap names the new version, and the old one still unwraps (F11)', async () => {
    const { keyId, keyWrapper } = world.setUp();
    const old = await keyWrapper.wrap(sampleKey(), { context });
    expect(old.keyId).toBe(`${keyId}/cryptoKeyVersions/1`);
    const version = world.kms.rotate(keyId);
    const newer = await keyWrapper.wrap(sampleKey(), { context });
    expect(newer.keyId).toBe(version);
    for (const made of [old, newer]) expect(await keyWrapper.unwrap(made, { context })).toEqual(sampleKey());
  });

  test('one version of a rotated key can be disabled without the other (F10)', async () => {
    const { keyId, keyWrapper } = world.setUp();
    const old = await keyWrapper.wrap(sampleKey(), { context });
    world.kms.rotate(keyId);
    const newer = await keyWrapper.wrap(sampleKey(), { context });
    world.kms.disable(old.keyId);
    expect(await rejectionOf(keyWrapper.unwrap(old, { context }))).toMatchObject({ kind: 'disabled' });
    expect(await keyWrapper.unwrap(newer, { context })).toEqual(sampleKey());
  });
});

describe('adapter rule 4: checks of the answer', () => {
  const withPlaintext = (answer: KmsAnswer, plaintext: Uint8Array): KmsAnswer => ({
    ...answer,
    plaintext,
    plaintextCrc32c: { value: crc32cBitwise(plaintext) },
  });
  const withCiphertext = (answer: KmsAnswer, ciphertext: Uint8Array): KmsAnswer => ({
    ...answer,
    ciphertext,
    ciphertextCrc32c: { value: crc32cBitwise(ciphertext) },
  });
  const renamed = (change: (name: string) => string) => (answer: KmsAnswer) => ({
    ...answer,
    name: change(answer.name ?? ''),
  });

  test.each<[string, (answer: KmsAnswer) => KmsAnswer]>([
    ['an empty answer', () => ({})],
    ['a plaintext of 31 bytes', (answer) => withPlaintext(answer, sampleKey().subarray(1))],
    ['a plaintext of 33 bytes', (answer) => withPlaintext(answer, new Uint8Array(33).fill(3, 1))],
    ['an empty plaintext', (answer) => withPlaintext(answer, new Uint8Array())],
    ['a plaintext of one repeated byte', (answer) => withPlaintext(answer, new Uint8Array(32))],
    ['a flipped bit', (answer) => ({ ...answer, plaintext: flipped(answer.plaintext ?? ZEROS, 9) })],
    ['a wrong checksum', (answer) => ({ ...answer, plaintextCrc32c: { value: 7 } })],
    ['a negative checksum', (answer) => ({ ...answer, plaintextCrc32c: { value: -1 } })],
    ['no checksum', (answer) => ({ ...answer, plaintextCrc32c: null })],
  ])('an unwrap answered with %s fails as corrupt without a retry, and the answer is overwritten', async (_, spoil) => {
    const handedOut: Uint8Array[] = [];
    const client = world.watchedClient(({ plaintext }) => {
      if (plaintext instanceof Uint8Array) handedOut.push(plaintext);
    });
    const { keyWrapper } = world.setUp({ client });
    const made = await keyWrapper.wrap(sampleKey(), { context });
    world.kms.requests.length = 0;
    world.kms.spoil(spoil);
    expect(await rejectionOf(keyWrapper.unwrap(made, { context }))).toMatchObject({
      name: 'KeyWrapperError',
      kind: 'corrupt',
      summary: { operation: 'unwrap' },
    });
    expect(world.kms.requests).toHaveLength(1);
    expect(handedOut).toHaveLength(1);
    expect(handedOut.every((bytes) => bytes.every((byte) => byte === 0))).toBe(true);
  });

  test.each<[string, (answer: KmsAnswer) => KmsAnswer]>([
    ['an empty answer', () => ({})],
    ['no name', renamed(() => '')],
    ['the name of another key', renamed((name) => name.replace(/cryptoKeys\/[^/]+/, 'cryptoKeys/other'))],
    ['the name of a key in another location', renamed((name) => name.replace('europe-west1', 'us-east1'))],
    ['a name without a version', renamed((name) => name.replace(/\/cryptoKeyVersions.*/, ''))],
    ['a name of another form', renamed((name) => `//cloudkms.googleapis.com/${name}`)],
    ['a plaintext that was not verified', (answer) => ({ ...answer, verifiedPlaintextCrc32c: false })],
    ['a context that was not verified', (answer) => ({ ...answer, verifiedAdditionalAuthenticatedDataCrc32c: false })],
    ['an empty ciphertext', (answer) => withCiphertext(answer, new Uint8Array())],
    ['a ciphertext that is too long', (answer) => withCiphertext(answer, new Uint8Array(4097))],
    ['a flipped bit', (answer) => ({ ...answer, ciphertext: flipped(answer.ciphertext ?? ZEROS, 9) })],
    ['a wrong checksum', (answer) => ({ ...answer, ciphertextCrc32c: { value: 7 } })],
    ['no checksum', (answer) => ({ ...answer, ciphertextCrc32c: null })],
  ])('a wrap answered with %s fails as corrupt, without a retry', async (_, spoil) => {
    const { keyWrapper } = world.setUp();
    world.kms.spoil(spoil);
    expect(await rejectionOf(keyWrapper.wrap(sampleKey(), { context }))).toMatchObject({
      name: 'KeyWrapperError',
      kind: 'corrupt',
      summary: { operation: 'wrap' },
    });
    expect(world.kms.requests).toHaveLength(1);
  });

  test.each([
    ['nothing', undefined],
    ['text', 'ok'],
    ['an empty array', []],
    ['an array of null', [null]],
    ['the answer itself, not in an array', { plaintext: sampleKey(), plaintextCrc32c: { value: 1 } }],
    ['a plaintext as text', [{ plaintext: 'x'.repeat(32), plaintextCrc32c: { value: 1 } }]],
    ['a plaintext as an array', [{ plaintext: [...sampleKey()], plaintextCrc32c: { value: 1 } }]],
  ])('a call whose client resolves to %s fails as corrupt', async (_, answer) => {
    const made = await world.setUp().keyWrapper.wrap(sampleKey(), { context });
    const client = { encrypt: async () => answer, decrypt: async () => answer };
    const keyWrapper = gcpKmsKeyWrapper({ keyId: made.keyId.replace(/\/cryptoKeyVersions.*/, ''), client });
    for (const [, run] of CALLS) expect(await rejectionOf(run(keyWrapper, made))).toMatchObject({ kind: 'corrupt' });
  });
});

describe('refusals by Cloud KMS', () => {
  test.each(CALLS)(
    '%s: a version that is disabled, scheduled for destruction or destroyed is reported as disabled, without a retry (F10)',
    async (_, run) => {
      const { keyId, keyWrapper } = world.setUp();
      const made = await keyWrapper.wrap(sampleKey(), { context });
      for (const [change, code] of [
        ['disable', 'KEY_DISABLED'],
        ['scheduleDestruction', 'KEY_DESTROY_SCHEDULED'],
        ['destroy', 'KEY_DESTROYED'],
      ] as const) {
        world.kms.requests.length = 0;
        world.kms[change](keyId);
        expect(await rejectionOf(run(keyWrapper, made))).toMatchObject({
          kind: 'disabled',
          summary: { provider: 'gcp-kms', operation: _, code, attempts: 1 },
        });
        expect(world.kms.requests).toHaveLength(1);
      }
    },
  );

  test('a key that is enabled again unwraps what was wrapped earlier (F10)', async () => {
    const { keyId, keyWrapper } = world.setUp();
    const made = await keyWrapper.wrap(sampleKey(), { context });
    world.kms.disable(keyId);
    expect(await rejectionOf(keyWrapper.unwrap(made, { context }))).toMatchObject({ kind: 'disabled' });
    world.kms.enable(keyId);
    expect(await keyWrapper.unwrap(made, { context })).toEqual(sampleKey());
  });

  test.each(CALLS)(
    '%s: a missing permission is reported as denied and named, a missing key as not-found, and neither call is retried',
    async (name, run) => {
      const { keyId, keyWrapper } = world.setUp();
      const made = await keyWrapper.wrap(sampleKey(), { context });
      world.kms.requests.length = 0;
      world.kms.deny();
      expect(await rejectionOf(run(keyWrapper, made))).toMatchObject({
        kind: 'denied',
        summary: {
          attempts: 1,
          hint: `the caller lacks cloudkms.cryptoKeyVersions.${name === 'wrap' ? 'useToEncrypt' : 'useToDecrypt'}, or the key does not exist`,
        },
      });
      world.kms.heal();
      const elsewhere = gcpKmsKeyWrapper({ keyId: `${keyId}x`, client: world.client });
      const moved = { ...made, keyId: `${keyId}x/cryptoKeyVersions/1` };
      expect(await rejectionOf(run(elsewhere, moved))).toMatchObject({ kind: 'not-found', summary: { attempts: 1 } });
      expect(world.kms.requests).toHaveLength(2);
    },
  );

  test.each(CALLS)('%s: a call that is answered after two throttled attempts succeeds', async (_, run) => {
    const { keyWrapper } = world.setUp();
    const made = await keyWrapper.wrap(sampleKey(), { context });
    world.kms.requests.length = 0;
    world.kms.throttleNext(2);
    await run(keyWrapper, made);
    expect(world.kms.requests).toHaveLength(3);
  });

  test.each(CALLS)(
    '%s: a Cloud KMS that throttles every attempt is reported as throttled after maxAttempts attempts (F29)',
    async (_, run) => {
      const { keyWrapper } = world.setUp({ maxAttempts: 2 });
      const made = await keyWrapper.wrap(sampleKey(), { context });
      world.kms.requests.length = 0;
      world.kms.throttleNext(100);
      expect(await rejectionOf(run(keyWrapper, made))).toMatchObject({
        kind: 'throttled',
        summary: { attempts: 2, code: 'RESOURCE_EXHAUSTED' },
      });
      expect(world.kms.requests).toHaveLength(2);
    },
  );

  test.each([Status.UNAVAILABLE, Status.DEADLINE_EXCEEDED, Status.UNKNOWN, Status.ABORTED])(
    'adapter rule 3: status %i is retried by the key wrapper, not by the SDK',
    async (code) => {
      const { keyWrapper } = world.setUp({ maxAttempts: 3 });
      world.kms.failAlways({ code, details: 'as told' });
      expect(await rejectionOf(keyWrapper.wrap(sampleKey(), { context }))).toMatchObject({
        kind: 'unavailable',
        summary: { attempts: 3 },
      });
      expect(world.kms.requests).toHaveLength(3);
    },
  );

  test.each(CALLS)(
    '%s: INTERNAL, which some servers return for another context, is retried only once',
    async (_, run) => {
      const { keyWrapper } = world.setUp({ maxAttempts: 10 });
      const made = await keyWrapper.wrap(sampleKey(), { context });
      world.kms.requests.length = 0;
      world.kms.failAlways({ code: Status.INTERNAL, details: 'as told' });
      expect(await rejectionOf(run(keyWrapper, made))).toMatchObject({
        kind: 'unavailable',
        summary: { attempts: 2, code: 'INTERNAL' },
      });
      expect(world.kms.requests).toHaveLength(2);
    },
  );

  test('a wrap with a key that is not for symmetric encryption is denied, with a hint that names the fix', async () => {
    const { keyWrapper } = world.setUp();
    world.kms.failAlways({ code: Status.INVALID_ARGUMENT, details: 'as told' });
    expect(await rejectionOf(keyWrapper.wrap(sampleKey(), { context }))).toMatchObject({
      kind: 'denied',
      summary: { code: 'INVALID_ARGUMENT', hint: expect.stringMatching(/ENCRYPT_DECRYPT/), attempts: 1 },
    });
  });

  test('a call whose client throws before it returns a promise is reported as unavailable', async () => {
    const throwAtOnce = (): never => {
      throw new TypeError('not a client');
    };
    const { keyWrapper } = world.setUp({ client: { encrypt: throwAtOnce, decrypt: throwAtOnce }, maxAttempts: 1 });
    expect(await rejectionOf(keyWrapper.wrap(sampleKey(), { context }))).toMatchObject({ kind: 'unavailable' });
  });
});

describe('the end of every call (F29)', () => {
  test.each(CALLS)('%s: a Cloud KMS that hangs is unavailable after maxAttempts deadlines', async (_, run) => {
    const { keyWrapper } = world.setUp({ callTimeoutSeconds: 0.5, maxAttempts: 2 });
    const made = await keyWrapper.wrap(sampleKey(), { context });
    world.kms.hang();
    expect(await rejectionOf(run(keyWrapper, made))).toMatchObject({ kind: 'unavailable', summary: { attempts: 2 } });
    expect(world.kms.hanging).toBe(2);
  });

  test.each(CALLS)('contract 5: %s: an abort ends a call immediately, without a retry', async (_, run) => {
    const { keyWrapper } = world.setUp();
    const made = await keyWrapper.wrap(sampleKey(), { context });
    world.kms.hang();
    const controller = new AbortController();
    const call = rejectionOf(run(keyWrapper, made, { signal: controller.signal }));
    await expect.poll(() => world.kms.hanging).toBe(1);
    controller.abort();
    expect(await call).toMatchObject({ kind: 'unavailable', summary: { attempts: 1 } });
    expect(world.kms.requests).toHaveLength(2);
  });

  test.each(CALLS)('contract 5: %s: with a signal that is already aborted, no call is made', async (_, run) => {
    const { keyWrapper } = world.setUp();
    const made = await keyWrapper.wrap(sampleKey(), { context });
    world.kms.requests.length = 0;
    expect(await rejectionOf(run(keyWrapper, made, { signal: AbortSignal.abort() }))).toMatchObject({
      kind: 'unavailable',
    });
    expect(world.kms.requests).toEqual([]);
  });

  test.each(CALLS)('%s: a client that ignores deadlines and signals is abandoned at the deadline', async (_, run) => {
    const { keyId, keyWrapper } = world.setUp();
    const made = await keyWrapper.wrap(sampleKey(), { context });
    const deaf = { encrypt: () => new Promise(() => {}), decrypt: () => new Promise(() => {}) };
    const stuck = gcpKmsKeyWrapper({ keyId, client: deaf, callTimeoutSeconds: 0.02, maxAttempts: 2 });
    expect(await rejectionOf(run(stuck, made))).toMatchObject({ kind: 'unavailable', summary: { attempts: 2 } });
  });

  test.each(CALLS)(
    '%s: a client that never finds credentials is abandoned at the deadline, and no call is made',
    async (_, run) => {
      const made = await world.setUp().keyWrapper.wrap(sampleKey(), { context });
      const client = { ...world.watchedClient(() => {}), initialize: () => new Promise(() => {}) };
      const { keyWrapper } = world.setUp({ client, callTimeoutSeconds: 0.02, maxAttempts: 1 });
      const moved = { ...made, keyId: `${keyWrapper.keyId}/cryptoKeyVersions/1` };
      expect(await rejectionOf(run(keyWrapper, moved))).toMatchObject({ kind: 'unavailable' });
      expect(world.kms.requests).toEqual([]);
    },
  );

  test('an attempt that was abandoned while looking for credentials sends nothing later', async () => {
    let found = (): void => {};
    const looking = new Promise<void>((resolve) => {
      found = resolve;
    });
    let sent = 0;
    const send = async (): Promise<void> => {
      sent++;
    };
    const client = { encrypt: send, decrypt: send, initialize: () => looking };
    const { keyWrapper } = world.setUp({ client, callTimeoutSeconds: 0.02, maxAttempts: 1 });
    expect(await rejectionOf(keyWrapper.wrap(sampleKey(), { context }))).toMatchObject({ kind: 'unavailable' });
    found();
    await new Promise(setImmediate);
    expect(sent).toBe(0);
    await rejectionOf(keyWrapper.wrap(sampleKey(), { context }));
    expect(sent).toBe(1);
  });

  test('the data key of an answer after the deadline is overwritten', async () => {
    const handedOut: unknown[] = [];
    const watched = world.watchedClient(({ plaintext }) => handedOut.push(plaintext));
    const patient: GcpKmsClient = {
      encrypt: (request, options) => watched.encrypt(request, options),
      // The call has neither a deadline nor a signal, so the answer arrives after the caller gave up.
      decrypt: (request, { retry }) =>
        watched.decrypt(request, { retry, timeout: 60_000, signal: new AbortController().signal }),
    };
    const { keyId, keyWrapper: unhurried } = world.setUp({ client: patient });
    const made = await unhurried.wrap(sampleKey(), { context });
    const keyWrapper = gcpKmsKeyWrapper({ keyId, client: patient, callTimeoutSeconds: 0.1, maxAttempts: 1 });
    world.kms.hang();
    expect(await rejectionOf(keyWrapper.unwrap(made, { context }))).toMatchObject({ kind: 'unavailable' });
    await expect.poll(() => world.kms.hanging).toBe(1);
    world.kms.answerLate();
    await expect.poll(() => handedOut).toEqual([undefined, Buffer.from(ZEROS)]);
  });

  test('no listener remains on a signal that many calls share', async () => {
    const { keyWrapper } = world.setUp();
    const { signal } = new AbortController();
    const made = await keyWrapper.wrap(sampleKey(), { context, signal });
    world.kms.throttleNext(1);
    await keyWrapper.unwrap(made, { context, signal });
    world.kms.deny();
    await rejectionOf(keyWrapper.wrap(sampleKey(), { context, signal }));
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  test('close() ends calls in progress, refuses later ones, and does not close the caller’s client', async () => {
    const { keyWrapper } = world.setUp();
    world.kms.hang();
    const call = rejectionOf(keyWrapper.wrap(sampleKey(), { context }));
    await expect.poll(() => world.kms.hanging).toBe(1);
    await keyWrapper.close();
    expect(await call).toMatchObject({ kind: 'unavailable' });
    world.kms.heal();
    expect(await rejectionOf(keyWrapper.wrap(sampleKey(), { context }))).toMatchObject({ kind: 'unavailable' });
    expect(world.kms.requests).toHaveLength(1);
    await world.setUp().keyWrapper.wrap(sampleKey(), { context });
  });
});
