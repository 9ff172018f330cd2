import { getEventListeners } from 'node:events';
import type { KeyWrapper, WrapOptions, WrappedKey } from '@sealring/core';
import { describe, expect, test } from 'vitest';
import { type AwsKmsClient, type AwsKmsKeyWrapperOptions, awsKmsKeyWrapper } from '../src/index.ts';
import { FakeKms } from './fake-kms.ts';

const ID = '1234abcd-12ab-34cd-56ef-1234567890ab';
const OTHER_ID = '99999999-12ab-34cd-56ef-1234567890ab';
const MRK = `mrk-${'0f'.repeat(16)}`;
const context = { 'sealring:ring': 'test', 'sealring:purpose': 'data-key' };

type Extra = Partial<AwsKmsKeyWrapperOptions>;

function setUp(extra: Extra = {}): { kms: FakeKms; keyId: string; keyWrapper: ReturnType<typeof awsKmsKeyWrapper> } {
  const kms = new FakeKms();
  const keyId = kms.createKey(ID);
  return { kms, keyId, keyWrapper: awsKmsKeyWrapper({ keyId, client: kms, ...extra }) };
}

function sampleKey(): Uint8Array {
  return Uint8Array.from({ length: 32 }, (_, i) => i + 1);
}

function throwAtOnce(): never {
  throw new TypeError('not a client');
}

/** Every call of a wrapper, for invariants that hold for all of them. */
const CALLS: readonly [
  string,
  (keyWrapper: ReturnType<typeof awsKmsKeyWrapper>, made: WrappedKey, options: WrapOptions) => Promise<unknown>,
][] = [
  ['generate', (keyWrapper, _, options) => keyWrapper.generate(options)],
  ['wrap', (keyWrapper, _, options) => keyWrapper.wrap(sampleKey(), options)],
  ['unwrap', (keyWrapper, made, options) => keyWrapper.unwrap(made, options)],
];
const PERMISSION: Readonly<Record<string, string>> = {
  generate: 'kms:GenerateDataKey',
  wrap: 'kms:Encrypt',
  unwrap: 'kms:Decrypt',
};

describe('requests', () => {
  test('every call names the configured key and sends the whole context', async () => {
    const { kms, keyId, keyWrapper } = setUp();
    const made = await keyWrapper.wrap(sampleKey(), { context });
    await keyWrapper.unwrap(made, { context });
    await keyWrapper.generate({ context });
    expect(kms.requests).toEqual([
      { operation: 'wrap', keyId, context },
      { operation: 'unwrap', keyId, context },
      { operation: 'generate', keyId, context },
    ]);
  });

  test('contract 1: unwrap returns the data key in a new array, and wrap leaves its argument unchanged', async () => {
    const { kms, keyWrapper } = setUp();
    const dataKey = sampleKey();
    const opened = await keyWrapper.unwrap(await keyWrapper.wrap(dataKey, { context }), { context });
    expect(opened).toEqual(sampleKey());
    expect(dataKey).toEqual(sampleKey());
    expect(opened.byteLength).toBe(opened.buffer.byteLength);
    expect(kms.handedOut.some((buffer) => buffer.buffer === opened.buffer)).toBe(false);
  });

  test('contract 1: a data key that the caller overwrites during a retry is wrapped as it was given', async () => {
    const { kms, keyWrapper } = setUp();
    kms.throttleNext(1);
    const dataKey = sampleKey();
    const wrapping = keyWrapper.wrap(dataKey, { context });
    dataKey.fill(0);
    expect(await keyWrapper.unwrap(await wrapping, { context })).toEqual(sampleKey());
  });

  test('adapter rule 5: the copy of a data key that was sent is overwritten', async () => {
    const { kms, keyId } = setUp();
    const sent: unknown[] = [];
    const client: AwsKmsClient = {
      send(command, options) {
        sent.push(Object(command.input).Plaintext);
        return kms.send(command, options);
      },
    };
    await awsKmsKeyWrapper({ keyId, client }).wrap(sampleKey(), { context });
    expect(sent).toEqual([new Uint8Array(32)]);
  });

  test('owns() is true for wrapped keys of its provider and its key', async () => {
    const { keyWrapper } = setUp();
    const made = await keyWrapper.wrap(sampleKey(), { context });
    expect(keyWrapper.owns?.(made)).toBe(true);
    expect(keyWrapper.owns?.({ ...made, provider: 'gcp-kms' })).toBe(false);
    expect(keyWrapper.owns?.({ ...made, keyId: made.keyId.replace(ID, OTHER_ID) })).toBe(false);
  });

  test('adapter rule 5: the buffers that the SDK returned are overwritten', async () => {
    const { kms, keyWrapper } = setUp();
    const { dataKey, wrapped } = await keyWrapper.generate({ context });
    expect(await keyWrapper.unwrap(wrapped, { context })).toEqual(dataKey);
    expect(kms.handedOut.map((buffer) => new Uint8Array(buffer))).toEqual([new Uint8Array(32), new Uint8Array(32)]);
    expect(dataKey).not.toEqual(new Uint8Array(32));
  });

  test.each([
    ['a data key of 31 bytes', (w: KeyWrapper) => w.wrap(new Uint8Array(31).fill(1, 3), { context }), RangeError],
    ['no options', (w: KeyWrapper) => w.wrap(sampleKey(), Object(undefined)), TypeError],
    ['a wrapped key that is text', (w: KeyWrapper) => w.unwrap(Object('blob'), { context }), TypeError],
  ])('contract 4: %s is rejected with a TypeError or RangeError, and no call is made', async (_, run, type) => {
    const { kms, keyWrapper } = setUp();
    await expect(run(keyWrapper)).rejects.toThrow(type);
    expect(kms.requests).toEqual([]);
  });
});

describe('adapter rule 6: the KMS key of a call', () => {
  test.each([
    ['another provider', { provider: 'gcp-kms' }],
    ['another key', { keyId: `arn:aws:kms:eu-west-1:111122223333:key/${OTHER_ID}` }],
    ['its key in another region', { keyId: `arn:aws:kms:us-east-1:111122223333:key/${ID}` }],
    ['its key in another account', { keyId: `arn:aws:kms:eu-west-1:999922223333:key/${ID}` }],
    ['a bare key id', { keyId: ID }],
    ['an alias', { keyId: 'alias/sealring' }],
    ['nothing', { keyId: '' }],
  ])('contract 3: a wrapped key that names %s is corrupt, and no call is made', async (_, change) => {
    const { kms, keyWrapper } = setUp();
    const made = await keyWrapper.wrap(sampleKey(), { context });
    kms.requests.length = 0;
    await expect(keyWrapper.unwrap({ ...made, ...change }, { context })).rejects.toMatchObject({ kind: 'corrupt' });
    expect(kms.requests).toEqual([]);
  });

  test.each([0, 6145])(
    'a wrapped key of %i bytes, a length that KMS does not accept, is corrupt, and no call is made',
    async (length) => {
      const { kms, keyId, keyWrapper } = setUp();
      const made = { provider: 'aws-kms', keyId, wrapped: new Uint8Array(length) };
      await expect(keyWrapper.unwrap(made, { context })).rejects.toMatchObject({ kind: 'corrupt' });
      expect(kms.requests).toEqual([]);
    },
  );

  test('with a bare key id, calls name that id, and an answer for an ARN other than the recorded one is corrupt', async () => {
    const { kms, keyId, keyWrapper } = setUp({ keyId: ID });
    const made = await keyWrapper.wrap(sampleKey(), { context });
    expect(made.keyId).toBe(keyId);
    expect(await keyWrapper.unwrap(made, { context })).toEqual(sampleKey());
    const moved = { ...made, keyId: keyId.replace('111122223333', '999922223333') };
    await expect(keyWrapper.unwrap(moved, { context })).rejects.toMatchObject({ kind: 'corrupt' });
    expect(new Set(kms.requests.map((request) => request.keyId))).toEqual(new Set([ID]));
  });

  test.each(['alias/sealring', 'arn:aws:kms:eu-west-1:111122223333:alias/sealring'])(
    'with %s, calls name the alias, and wraps record the ARN of its key',
    async (alias) => {
      const { kms, keyId, keyWrapper } = setUp({ keyId: alias });
      kms.pointAlias('alias/sealring', ID);
      const made = await keyWrapper.wrap(sampleKey(), { context });
      expect(made.keyId).toBe(keyId);
      expect(await keyWrapper.unwrap(made, { context })).toEqual(sampleKey());
      expect(kms.requests.map((request) => request.keyId)).toEqual([alias, alias]);
    },
  );

  test('after an alias moves to a new key, wraps record the new key, and the old one needs alsoUnwrap (F11)', async () => {
    const { kms, keyId, keyWrapper } = setUp({ keyId: 'alias/sealring' });
    kms.pointAlias('alias/sealring', ID);
    const old = await keyWrapper.wrap(sampleKey(), { context });
    kms.pointAlias('alias/sealring', OTHER_ID);
    const newer = kms.createKey(OTHER_ID);
    expect((await keyWrapper.wrap(sampleKey(), { context })).keyId).toBe(newer);
    await expect(keyWrapper.unwrap(old, { context })).rejects.toMatchObject({ kind: 'corrupt' });
    const moved = awsKmsKeyWrapper({ keyId: 'alias/sealring', client: kms, alsoUnwrap: [keyId] });
    expect(await moved.unwrap(old, { context })).toEqual(sampleKey());
    expect(kms.requests.at(-1)?.keyId).toBe(keyId);
  });

  test('with an alias, an answer for a key other than the recorded one is corrupt, and its data key is overwritten', async () => {
    const { kms, keyWrapper } = setUp({ keyId: 'alias/sealring' });
    kms.pointAlias('alias/sealring', ID);
    const made = await keyWrapper.wrap(sampleKey(), { context });
    const forged = { ...made, keyId: kms.arn(OTHER_ID) };
    await expect(keyWrapper.unwrap(forged, { context })).rejects.toMatchObject({ kind: 'corrupt' });
    expect(new Uint8Array(kms.handedOut[0] ?? [])).toEqual(new Uint8Array(32));
  });

  test('a wrapped key from outside the region of the alias ARN is rejected before any call', async () => {
    const { kms, keyWrapper } = setUp({ keyId: 'arn:aws:kms:eu-west-1:111122223333:alias/sealring' });
    const made = { provider: 'aws-kms', keyId: `arn:aws:kms:us-east-1:111122223333:key/${ID}`, wrapped: sampleKey() };
    await expect(keyWrapper.unwrap(made, { context })).rejects.toMatchObject({ kind: 'corrupt' });
    expect(kms.requests).toEqual([]);
  });

  test('with alsoUnwrap, a replaced key is used to unwrap, but never to wrap', async () => {
    const { kms, keyId } = setUp();
    const newer = kms.createKey(OTHER_ID);
    const old = await awsKmsKeyWrapper({ keyId, client: kms }).wrap(sampleKey(), { context });
    const keyWrapper = awsKmsKeyWrapper({ keyId: newer, client: kms, alsoUnwrap: [keyId] });
    expect(await keyWrapper.unwrap(old, { context })).toEqual(sampleKey());
    expect(kms.requests.at(-1)?.keyId).toBe(keyId);
    expect((await keyWrapper.wrap(sampleKey(), { context })).keyId).toBe(newer);
  });

  test.each([
    ['an ARN', (kms: FakeKms) => kms.arn(MRK)],
    ['a key id', () => MRK],
    ['an alias', () => 'alias/sealring'],
  ])(
    'with %s, wraps of another replica are unwrapped by the wrapper’s own replica, but only with multiRegion',
    async (_, name) => {
      const ireland = new FakeKms({ region: 'eu-west-1' });
      const frankfurt = new FakeKms({ region: 'eu-central-1', replicaOf: ireland });
      const made = await awsKmsKeyWrapper({ keyId: ireland.createKey(MRK), client: ireland }).wrap(sampleKey(), {
        context,
      });
      frankfurt.pointAlias('alias/sealring', MRK);
      const keyId = name(frankfurt);
      const own = awsKmsKeyWrapper({ keyId, client: frankfurt, multiRegion: true });
      expect(await own.unwrap(made, { context })).toEqual(sampleKey());
      expect(frankfurt.requests.map((request) => request.keyId)).toEqual([keyId]);
      expect((await own.wrap(sampleKey(), { context })).keyId).toBe(frankfurt.arn(MRK));
      const strict = awsKmsKeyWrapper({ keyId, client: frankfurt });
      await expect(strict.unwrap(made, { context })).rejects.toMatchObject({ kind: 'corrupt' });
    },
  );

  test.each(CALLS)('with multiRegion, an answer to %s from another replica is corrupt', async (_, run) => {
    const kms = new FakeKms();
    const keyWrapper = awsKmsKeyWrapper({ keyId: kms.createKey(MRK), client: kms, multiRegion: true });
    const made = await keyWrapper.wrap(sampleKey(), { context });
    const other = { ...made, keyId: made.keyId.replace('eu-west-1', 'us-east-1') };
    kms.spoil((answer) => ({ ...answer, KeyId: other.keyId }));
    await expect(run(keyWrapper, other, { context })).rejects.toMatchObject({ kind: 'corrupt' });
  });

  test.each([
    ['an ARN', (kms: FakeKms) => kms.arn(MRK)],
    ['a key id', () => MRK],
  ])('with %s, a replica in alsoUnwrap is called in the wrapper’s own region, not by its ARN', async (_, name) => {
    const ireland = new FakeKms({ region: 'eu-west-1' });
    const frankfurt = new FakeKms({ region: 'eu-central-1', replicaOf: ireland });
    const made = await awsKmsKeyWrapper({ keyId: ireland.createKey(MRK), client: ireland }).wrap(sampleKey(), {
      context,
    });
    const keyId = name(frankfurt);
    const own = awsKmsKeyWrapper({ keyId, client: frankfurt, multiRegion: true, alsoUnwrap: [ireland.arn(MRK)] });
    expect(await own.unwrap(made, { context })).toEqual(sampleKey());
    expect(frankfurt.requests.map((request) => request.keyId)).toEqual([keyId]);
  });

  test('with multiRegion, wraps of another multi-Region key are not unwrapped', async () => {
    const kms = new FakeKms();
    const made = await awsKmsKeyWrapper({ keyId: kms.createKey(MRK.replace('0f', '0e')), client: kms }).wrap(
      sampleKey(),
      { context },
    );
    const keyWrapper = awsKmsKeyWrapper({ keyId: kms.createKey(MRK), client: kms, multiRegion: true });
    kms.requests.length = 0;
    await expect(keyWrapper.unwrap(made, { context })).rejects.toMatchObject({ kind: 'corrupt' });
    expect(kms.requests).toEqual([]);
  });
});

describe('adapter rule 4: checks of the answer', () => {
  const plaintexts: [string, (answer: Record<string, unknown>) => unknown][] = [
    ['a truncated plaintext', (answer) => ({ ...answer, Plaintext: sampleKey().subarray(1) })],
    ['a longer plaintext', (answer) => ({ ...answer, Plaintext: new Uint8Array(33).fill(3, 1) })],
    ['a plaintext of one repeated byte', (answer) => ({ ...answer, Plaintext: new Uint8Array(32) })],
    ['a plaintext as text', (answer) => ({ ...answer, Plaintext: 'x'.repeat(32) })],
    ['a plaintext as an array', (answer) => ({ ...answer, Plaintext: [...sampleKey()] })],
    ['no plaintext', (answer) => ({ ...answer, Plaintext: undefined })],
  ];
  const blobs: [string, (answer: Record<string, unknown>) => unknown][] = [
    ['an empty CiphertextBlob', (answer) => ({ ...answer, CiphertextBlob: new Uint8Array() })],
    ['no CiphertextBlob', (answer) => ({ ...answer, CiphertextBlob: undefined })],
    [
      'a CiphertextBlob that Decrypt would not accept',
      (answer) => ({ ...answer, CiphertextBlob: new Uint8Array(6145) }),
    ],
  ];
  const all: [string, (answer: Record<string, unknown>) => unknown][] = [
    ['an empty 200', () => ({})],
    ['no answer at all', () => undefined],
    ['text', () => 'ok'],
    ['another KeyId', (answer) => ({ ...answer, KeyId: `arn:aws:kms:eu-west-1:111122223333:key/${OTHER_ID}` })],
    ['a KeyId in another region', (answer) => ({ ...answer, KeyId: `arn:aws:kms:us-east-1:111122223333:key/${ID}` })],
    ['a KeyId that is not an ARN', (answer) => ({ ...answer, KeyId: ID })],
    ['a KeyId that is an object', (answer) => ({ ...answer, KeyId: Object(answer['KeyId']) })],
    ['no KeyId', (answer) => ({ ...answer, KeyId: undefined })],
  ];
  const spoilt = [
    ...all.flatMap(([what, spoil]) => CALLS.map(([call, run]) => ({ what, call, spoil, run }))),
    ...plaintexts.flatMap(([what, spoil]) =>
      CALLS.filter(([call]) => call !== 'wrap').map(([call, run]) => ({ what, call, spoil, run })),
    ),
    ...blobs.flatMap(([what, spoil]) =>
      CALLS.filter(([call]) => call !== 'unwrap').map(([call, run]) => ({ what, call, spoil, run })),
    ),
  ];
  test.each(spoilt)('$what in answer to $call is corrupt, and no retry follows', async ({ spoil, call, run }) => {
    const { kms, keyWrapper } = setUp();
    const made = await keyWrapper.wrap(sampleKey(), { context });
    kms.requests.length = 0;
    kms.spoil((answer) => spoil({ ...answer }));
    await expect(run(keyWrapper, made, { context })).rejects.toMatchObject({
      name: 'KeyWrapperError',
      kind: 'corrupt',
      summary: { operation: call },
    });
    expect(kms.requests).toHaveLength(1);
    expect(kms.handedOut.every((buffer) => buffer.every((byte) => byte === 0))).toBe(true);
  });
});

describe('refusals by KMS', () => {
  test.each(CALLS)(
    '%s: a disabled key is reported as disabled, a denied call with the missing permission, and neither is retried',
    async (name, run) => {
      const { kms, keyWrapper } = setUp();
      const made = await keyWrapper.wrap(sampleKey(), { context });
      for (const kind of ['disabled', 'denied'] as const) {
        kms.requests.length = 0;
        if (kind === 'disabled') kms.disable();
        else kms.deny();
        await expect(run(keyWrapper, made, { context })).rejects.toMatchObject({
          kind,
          summary: {
            provider: 'aws-kms',
            operation: name,
            attempts: 1,
            ...(kind === 'denied' && { hint: `the caller lacks ${PERMISSION[name]}` }),
          },
        });
        expect(kms.requests).toHaveLength(1);
      }
    },
  );

  test.each(CALLS)('%s: a call that is answered after two throttled attempts succeeds', async (_, run) => {
    const { kms, keyWrapper } = setUp();
    const made = await keyWrapper.wrap(sampleKey(), { context });
    kms.requests.length = 0;
    kms.throttleNext(2);
    await run(keyWrapper, made, { context });
    expect(kms.requests).toHaveLength(3);
  });

  test.each(CALLS)(
    '%s: a KMS that throttles every attempt is reported as throttled after maxAttempts attempts (F29)',
    async (_, run) => {
      const { kms, keyWrapper } = setUp({ maxAttempts: 2 });
      const made = await keyWrapper.wrap(sampleKey(), { context });
      kms.requests.length = 0;
      kms.throttleNext(100);
      await expect(run(keyWrapper, made, { context })).rejects.toMatchObject({
        kind: 'throttled',
        summary: { attempts: 2, code: 'ThrottlingException', status: 400 },
      });
      expect(kms.requests).toHaveLength(2);
    },
  );

  test('contract 2: a wrapped key with another context or any changed bit is corrupt', async () => {
    const { keyWrapper } = setUp();
    const made = await keyWrapper.wrap(sampleKey(), { context });
    await expect(keyWrapper.unwrap(made, { context: { ...context, x: '' } })).rejects.toMatchObject({
      kind: 'corrupt',
    });
    for (let i = 0; i < made.wrapped.length * 8; i += 5) {
      const wrapped = new Uint8Array(made.wrapped);
      wrapped[i >> 3] = (wrapped[i >> 3] ?? 0) ^ (1 << (i & 7));
      await expect(keyWrapper.unwrap({ ...made, wrapped }, { context })).rejects.toMatchObject({ kind: 'corrupt' });
    }
  });

  test('a call whose client throws before it returns a promise is reported as unavailable', async () => {
    const keyWrapper = awsKmsKeyWrapper({ keyId: ID, client: { send: throwAtOnce }, maxAttempts: 1 });
    await expect(keyWrapper.generate({ context })).rejects.toMatchObject({ kind: 'unavailable' });
  });
});

describe('the end of every call (F29)', () => {
  test.each(CALLS)(
    '%s: a KMS that hangs and ignores the signal is unavailable after maxAttempts deadlines',
    async (_, run) => {
      const { kms, keyWrapper } = setUp({ callTimeoutSeconds: 0.02, maxAttempts: 2 });
      const made = await keyWrapper.wrap(sampleKey(), { context });
      kms.hang('ignoring');
      await expect(run(keyWrapper, made, { context })).rejects.toMatchObject({
        kind: 'unavailable',
        summary: { attempts: 2 },
      });
      expect(kms.hanging.map((signal) => signal.aborted)).toEqual([true, true]);
    },
  );

  test.each(CALLS)('contract 5: %s: an abort ends a call immediately, without a retry', async (_, run) => {
    const { kms, keyWrapper } = setUp();
    const made = await keyWrapper.wrap(sampleKey(), { context });
    kms.requests.length = 0;
    kms.hang('ignoring');
    const controller = new AbortController();
    const call = run(keyWrapper, made, { context, signal: controller.signal });
    setImmediate(() => controller.abort());
    await expect(call).rejects.toMatchObject({ kind: 'unavailable' });
    expect(kms.requests).toHaveLength(1);
    expect(kms.hanging.map((signal) => signal.aborted)).toEqual([true]);
  });

  test.each(CALLS)('contract 5: %s: with a signal that is already aborted, no call is made', async (_, run) => {
    const { kms, keyWrapper } = setUp();
    const made = await keyWrapper.wrap(sampleKey(), { context });
    kms.requests.length = 0;
    await expect(run(keyWrapper, made, { context, signal: AbortSignal.abort() })).rejects.toMatchObject({
      kind: 'unavailable',
    });
    expect(kms.requests).toEqual([]);
  });

  test.each(CALLS.filter(([name]) => name !== 'wrap'))(
    '%s: the data key in an answer that arrives after the deadline is overwritten (F22)',
    async (_, run) => {
      const { kms, keyWrapper } = setUp({ callTimeoutSeconds: 0.02, maxAttempts: 2 });
      const made = await keyWrapper.wrap(sampleKey(), { context });
      kms.hang('ignoring');
      await expect(run(keyWrapper, made, { context })).rejects.toMatchObject({ kind: 'unavailable' });
      kms.answerLate();
      await new Promise(setImmediate);
      expect(kms.handedOut.map((buffer) => new Uint8Array(buffer))).toEqual([new Uint8Array(32), new Uint8Array(32)]);
    },
  );

  test('no listener remains on a signal that many calls share', async () => {
    const { kms, keyWrapper } = setUp();
    const { signal } = new AbortController();
    const made = await keyWrapper.wrap(sampleKey(), { context, signal });
    kms.throttleNext(1);
    await keyWrapper.unwrap(made, { context, signal });
    kms.deny();
    await expect(keyWrapper.generate({ context, signal })).rejects.toMatchObject({ kind: 'denied' });
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  test('close() ends calls in progress, refuses later ones, and does not close the caller’s client', async () => {
    const { kms, keyWrapper } = setUp();
    kms.hang('ignoring');
    const call = keyWrapper.generate({ context });
    await keyWrapper.close();
    await expect(call).rejects.toMatchObject({ kind: 'unavailable' });
    kms.heal();
    await expect(keyWrapper.generate({ context })).rejects.toMatchObject({ kind: 'unavailable' });
    expect(kms.requests).toHaveLength(1);
    expect(kms.destroyed).toBe(0);
  });
});
