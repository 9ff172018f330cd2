import { randomBytes, randomUUID } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createKmsCodec } from '../../src/codec/kms-codec.ts';
import type { KmsCodecOptions } from '../../src/codec/kms-codec-options.ts';
import { KeyWrapperError } from '../../src/contracts/key-wrapper.ts';
import { type RingStore, RingStoreError } from '../../src/contracts/ring-store.ts';
import { localKeyWrapper } from '../../src/kms/local-key-wrapper.ts';
import { fileRing } from '../../src/stores/file-ring.ts';
import { Fleet } from '../support/fleet.ts';

const LOCATION = 's3://payments-sealring/payments.ring';
const NO_RING = "no ring yet: run `sealring init`, or set create: 'now'";

let fleet: Fleet;
let warnings: (Error & { readonly code?: string })[];
const note = (warning: Error): void => void warnings.push(warning);

beforeEach(() => {
  fleet = new Fleet();
  warnings = [];
  process.on('warning', note);
});
afterEach(async () => {
  process.off('warning', note);
  await fleet.close();
});

/** A shared store with a location. */
function located(more: Partial<RingStore> = {}): RingStore {
  return { ...fleet.store.connect(), kind: 's3', location: LOCATION, ...more };
}

function failingWith(error: Error): RingStore {
  return located({
    read: async () => {
      throw error;
    },
  });
}

/** The result of a start, after how many seconds, and with which warnings. */
async function start(
  options: Partial<KmsCodecOptions>,
): Promise<{ failure: unknown; seconds: number; warned: string[] }> {
  const began = fleet.clock.wallMs();
  let ended = Number.NaN;
  const noted = { ...options, ring: options.ring ?? located() };
  const [result] = await Promise.allSettled([
    fleet.start(noted).finally(() => {
      ended = fleet.clock.wallMs();
    }),
  ]);
  const failure = result.status === 'rejected' ? result.reason : undefined;
  const warned = warnings.filter(({ code }) => code === 'SEALRING_WAITING').map(({ message }) => message);
  return { failure, seconds: (ended - began) / 1_000, warned };
}

describe('a start that takes longer than two seconds', () => {
  test('warns once, and names the store, its failure and the time until which it tries', async () => {
    const ring = failingWith(new RingStoreError('unavailable', 'S3 cannot serve requests at the moment (SlowDown)'));
    const { warned } = await start({ ring });
    expect(warned).toEqual([
      `waiting for ring store ${LOCATION}: S3 cannot serve requests at the moment (SlowDown), ` +
        'retrying until 2026-11-21T03:02:00.000Z',
    ]);
    expect(warnings.find(({ code }) => code === 'SEALRING_WAITING')?.name).toBe('SealringWarning');
  });

  test('warns about a store that does not answer at all', async () => {
    fleet.store.hanging = true;
    const { warned } = await start({});
    expect(warned).toEqual([expect.stringContaining(`waiting for ring store ${LOCATION}: no answer yet, retrying`)]);
  });

  test('warns with the answer of the KMS while the calls to it are repeated', async () => {
    fleet.kms.failing = 'throttled';
    const { warned } = await start({ create: 'now' });
    expect(warned).toEqual([
      expect.stringMatching(/^waiting for the KMS: local generate: throttled.*, retrying until/),
    ]);
  });

  test('warns about a KMS that does not answer at all', async () => {
    fleet.kms.hanging = true;
    const { warned } = await start({ create: 'now' });
    expect(warned).toHaveLength(1);
    expect(warned[0]).toContain(
      'waiting for the first key of ring default: the KMS (local) or another process that creates it has not answered yet',
    );
  });

  test('warns about the key wrappers of a ring that exists, if none of them answers', async () => {
    const keyWrapper = ['aws-kms', 'gcp-kms'].map((provider) => fleet.kms.connect(provider));
    await fleet.start({ ring: located(), create: 'now', keyWrapper });
    fleet.kms.hanging = true;
    const { warned } = await start({ keyWrapper, policy: { startTimeoutSeconds: 8 } });
    expect(warned).toEqual([
      expect.stringMatching(/^waiting for the KMS \(aws-kms, gcp-kms\): no answer yet, retrying until .*:08\.\d+Z$/),
    ]);
  });

  test('warns with the deadline of the whole start if the only failure that would end it sooner is over', async () => {
    const ring = located();
    const failure = new RingStoreError('unavailable', 'no such host', { serviceCode: 'ENOTFOUND' });
    let isStarting = true;
    fleet.clock.schedule(() => (isStarting = false), 300);
    const read: RingStore['read'] = (options) => (isStarting ? Promise.reject(failure) : ring.read(options));
    const { warned } = await start({ ring: { ...ring, read }, role: 'reader' });
    expect(warned).toEqual([expect.stringContaining(`${NO_RING}; retrying until 2026-11-21T03:02:00.000Z`)]);
  });

  test('warns about an absent ring with the remedy and the time until it is created', async () => {
    const { failure, seconds, warned } = await start({});
    expect(failure).toBeUndefined();
    expect(seconds).toBeGreaterThanOrEqual(360);
    expect(warned).toEqual([
      `waiting for ring default in ring store ${LOCATION}: ${NO_RING}; otherwise this process creates it in 358 s, ` +
        'if the ring is still absent',
    ]);
  });

  test('warns about the absent ring, not about a store failure that has ended', async () => {
    fleet.store.down = true;
    fleet.clock.schedule(() => (fleet.store.down = false), 300);
    const { warned } = await start({});
    expect(warned).toEqual([expect.stringContaining(NO_RING)]);
  });

  test('a start that takes longer than two seconds does not warn about a failure that has ended by then', async () => {
    fleet.store.down = true;
    fleet.clock.schedule(() => (fleet.store.down = false), 300);
    const { failure, warned } = await start({ create: 'now' });
    expect(failure).toBeUndefined();
    expect(warned).toEqual([]);
    await fleet.clock.advance(10);
    expect(warnings.filter(({ code }) => code === 'SEALRING_WAITING')).toEqual([]);
  });
});

describe('a start that finds no ring and must not create one', () => {
  test.each([{ role: 'reader' }, { create: 'never' }] as const)(
    'rejects after startTimeout as absent, with the remedy: %j',
    async (options) => {
      const { failure, seconds, warned } = await start({ ...options, policy: { startTimeoutSeconds: 30 } });
      expect(failure).toMatchObject({
        name: 'RingStoreError',
        kind: 'absent',
        message: `ring store ${LOCATION} absent: ${NO_RING}`,
        location: LOCATION,
      });
      expect(seconds).toBeGreaterThanOrEqual(29.5);
      expect(seconds).toBeLessThan(40);
      expect(warned).toEqual([expect.stringContaining(`${NO_RING}; retrying until 2026-11-21T03:00:30.000Z`)]);
    },
  );

  test('uses the ring that another process creates meanwhile', async () => {
    const waiting = start({ create: 'never' });
    fleet.clock.schedule(() => void fleet.startAll(1, { create: 'now' }), 10_000);
    expect(await waiting).toMatchObject({ failure: undefined });
  });

  test('reports the absent ring, not that the store was down at first', async () => {
    fleet.store.down = true;
    fleet.clock.schedule(() => (fleet.store.down = false), 5_000);
    const { failure } = await start({ role: 'reader' });
    expect(failure).toMatchObject({ kind: 'absent' });
  });
});

describe('a failure that waiting cannot fix', () => {
  test.each([
    ['ENOENT', 'the directory does not exist'],
    ['NoSuchBucket', 'the bucket does not exist (NoSuchBucket)'],
    [
      'RegionMissing',
      "S3 cannot be reached: no AWS Region is set: set AWS_REGION, or the client's region (RegionMissing)",
    ],
    ['42P01', 'the table is missing: run the migration'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'S3 cannot be reached: the certificate of the server is not trusted'],
  ])('fails a start at once and names the store: %s', async (serviceCode, detail) => {
    const ring = failingWith(new RingStoreError('unavailable', detail, { serviceCode }));
    const { failure, seconds, warned } = await start({ ring });
    expect(failure).toMatchObject({ message: `ring store ${LOCATION} unavailable: ${detail}`, serviceCode });
    expect(seconds).toBeLessThan(1);
    expect(warned).toEqual([]);
  });

  test('fails a start on a file in a directory that does not exist, and names the file', async () => {
    const path = join(tmpdir(), randomUUID(), 'payments.ring');
    const keyWrapper = localKeyWrapper({ masterKey: randomBytes(32) });
    await expect(createKmsCodec({ ring: fileRing(path), keyWrapper })).rejects.toMatchObject({
      message: `ring store ${path} unavailable: the directory does not exist`,
      serviceCode: 'ENOENT',
    });
  }, 10_000);

  test('fails a start on a path that leads through a file', async () => {
    const file = join(tmpdir(), randomUUID());
    await writeFile(file, '');
    const keyWrapper = localKeyWrapper({ masterKey: randomBytes(32) });
    await expect(createKmsCodec({ ring: fileRing(join(file, 'payments.ring')), keyWrapper })).rejects.toMatchObject({
      kind: 'unavailable',
      serviceCode: 'ENOTDIR',
    });
    await rm(file);
  }, 10_000);

  test.each(['ENOTFOUND', 'CredentialsProviderError'])('%s fails a start after ten seconds', async (serviceCode) => {
    const ring = failingWith(new RingStoreError('unavailable', 'no', { serviceCode }));
    const { failure, seconds, warned } = await start({ ring });
    expect(failure).toMatchObject({ serviceCode });
    expect(warned).toEqual([expect.stringContaining('retrying until 2026-11-21T03:00:10.000Z')]);
    expect(seconds).toBeGreaterThanOrEqual(9.5);
    expect(seconds).toBeLessThan(11);
  });

  test('fails a start only if it applies to every key wrapper', async () => {
    await start({ create: 'now' });
    const untrusted = { ...fleet.kms.connect('aws-kms'), unwrap: refusing('aws-kms', 'SELF_SIGNED_CERT_IN_CHAIN') };
    const at = await start({ keyWrapper: [untrusted], ring: await withKeyOf('aws-kms') });
    expect(at.failure).toMatchObject({ summary: { code: 'SELF_SIGNED_CERT_IN_CHAIN' } });
    expect(at.seconds).toBeLessThan(10);
  });
});

function refusing(provider: string, code: string): () => Promise<never> {
  return () => Promise.reject(new KeyWrapperError('unavailable', { provider, operation: 'unwrap', code }));
}

/** A store with a ring that was created with one key wrapper of this provider. */
async function withKeyOf(provider: string): Promise<RingStore> {
  const ring = located();
  fleet.store.flush();
  await fleet.start({ ring, create: 'now', keyWrapper: fleet.kms.connect(provider) });
  return ring;
}

describe('a start that gives up on the KMS', () => {
  test.each(['throttled', 'unavailable'] as const)(
    'rejects with the answer of the KMS, and the number of attempts: %s',
    async (kind) => {
      const ring = await withKeyOf('aws-kms');
      fleet.kms.failing = kind;
      const { failure } = await start({ ring, keyWrapper: fleet.kms.connect('aws-kms') });
      expect(failure).toBeInstanceOf(KeyWrapperError);
      const { summary, message } = failure as KeyWrapperError;
      expect(failure).toMatchObject({ kind });
      expect(summary).toMatchObject({ provider: 'aws-kms', operation: 'unwrap', attempts: expect.any(Number) });
      expect(summary.hint).toBeUndefined();
      expect(summary.attempts).toBe(fleet.kms.calls.unwrap - unwrapsOfFounder);
      expect(message).toBe(`aws-kms unwrap: ${kind} (${summary.attempts} attempts)`);
    },
  );

  test('rejects with the last answer before the KMS stopped answering', async () => {
    const ring = await withKeyOf('aws-kms');
    fleet.kms.failing = 'throttled';
    fleet.clock.schedule(() => (fleet.kms.hanging = true), 10_000);
    const policy = { startTimeoutSeconds: 12 };
    const { failure } = await start({ ring, keyWrapper: fleet.kms.connect('aws-kms'), policy });
    expect(failure).toMatchObject({ kind: 'throttled' });
    expect((failure as KeyWrapperError).summary.hint).toBeUndefined();
  });

  test.each(['unwrapped', 'created'])('names each of three key wrappers that hang while a ring is %s', async (how) => {
    const keyWrapper = ['aws-kms', 'gcp-kms', 'azure-key-vault'].map((provider) => fleet.kms.connect(provider));
    if (how === 'unwrapped') await fleet.start({ ring: located(), create: 'now', keyWrapper });
    fleet.kms.hanging = true;
    const policy = { startTimeoutSeconds: 8 };
    const { failure } = await start({ create: 'now', keyWrapper, policy });
    const operations = how === 'created' ? ['generate', 'wrap', 'wrap'] : ['unwrap', 'unwrap', 'unwrap'];
    expect((failure as KeyWrapperError).summary.causes?.map(({ summary }) => summary)).toMatchObject([
      { provider: 'aws-kms', operation: operations[0], hint: 'no answer in time' },
      { provider: 'gcp-kms', operation: operations[1], hint: 'no answer in time' },
      { provider: 'azure-key-vault', operation: operations[2], hint: 'no answer in time' },
    ]);
  });
});

/** The creator checks its own wrap. */
const unwrapsOfFounder = 1;
