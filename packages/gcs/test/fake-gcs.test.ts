import type { RingStore, RingStoreErrorKind } from '@sealring/core';
import { RingConflictError } from '@sealring/core';
import { beforeAll, describe, expect, inject, test } from 'vitest';
import { gcsRing } from '../src/index.ts';
import { clientOf } from './gcs-stub.ts';

const address = inject('fakeGcs');
const failed = (kind: RingStoreErrorKind) => ({ name: 'RingStoreError', kind });
let names = 0;
const freshName = (): string => `gcs-${process.pid}-${++names}`;

/** The revision of a value that is not a ring, from its error. */
async function revisionOf(ring: RingStore): Promise<string> {
  const error: unknown = await ring.read().catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ name: 'RingStoreError', revision: expect.any(String) });
  return String(Object(error).revision);
}

// Skipped only if this machine lacks Go; under CI=true the set-up fails instead.
describe.skipIf(address === '')('@google-cloud/storage against fake-gcs-server', () => {
  const client = clientOf(address);
  const buckets = { plain: freshName(), versioned: freshName() };
  beforeAll(async () => {
    await client.createBucket(buckets.plain);
    await client.createBucket(buckets.versioned, { versioning: { enabled: true } });
  });

  function newRing(versions = false) {
    const bucket = versions ? buckets.versioned : buckets.plain;
    const object = `rings/${freshName()} é +%?#&.ring`;
    return { bucket, object, ring: gcsRing({ bucket, object, client }), theirs: client.bucket(bucket).file(object) };
  }

  test('the object is the document, byte for byte, so other tools can read it', async () => {
    const { ring, theirs } = newRing();
    const document = '{"format":"sealring/ring/1"}\r\n{"macs":{}}\r\n--\r\n';
    await ring.write(document, { expected: undefined });
    expect((await theirs.download())[0].toString()).toBe(document);
    const [metadata] = await theirs.getMetadata();
    expect(metadata).toMatchObject({ contentType: 'text/plain; charset=utf-8', cacheControl: 'no-store' });
  });

  test('a document that another tool wrote is read and replaced', async () => {
    const { ring, theirs } = newRing();
    await theirs.save('theirs', { resumable: false });
    const stored = await ring.read();
    expect(stored?.document).toBe('theirs');
    await ring.write('ours', { expected: stored?.revision });
    expect((await ring.read())?.document).toBe('ours');
  });

  test('an object whose name only begins with the name of the ring is not the ring', async () => {
    const { bucket, object, ring } = newRing();
    await client.bucket(bucket).file(`${object}.old`).save('theirs', { resumable: false });
    expect(await ring.read()).toBeUndefined();
    await ring.write('ours', { expected: undefined });
    expect((await ring.read())?.document).toBe('ours');
  });

  describe.each([[false], [true]])('versions %s', (versions) => {
    test('a deleted object is absent, cannot be replaced, and can be created again', async () => {
      const { ring, theirs } = newRing(versions);
      const first = await ring.write('a', { expected: undefined });
      await theirs.delete();
      expect(await ring.read()).toBeUndefined();
      await expect(ring.write('b', { expected: first.revision })).rejects.toBeInstanceOf(RingConflictError);
      const again = await ring.write('a', { expected: undefined });
      expect(again.revision).not.toBe(first.revision);
      await expect(ring.write('b', { expected: first.revision })).rejects.toBeInstanceOf(RingConflictError);
      expect(await ring.read()).toEqual({ document: 'a', ...again });
    });
  });

  test('a missing bucket is reported by every call as unavailable, never as absent or a conflict (F9)', async () => {
    const ring = gcsRing({ bucket: freshName(), object: 'k', client });
    await expect(ring.read()).rejects.toMatchObject(failed('unavailable'));
    await expect(ring.write('x', { expected: undefined })).rejects.toMatchObject(failed('unavailable'));
    await expect(ring.write('x', { expected: '1' })).rejects.toMatchObject(failed('unavailable'));
  });

  test.each([
    ['not UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), 'corrupt'],
    ['empty', Buffer.alloc(0), 'corrupt'],
    ['262 145 bytes', Buffer.alloc(262_145, 'x'), 'too-large'],
    ['8 MiB', Buffer.alloc(2 ** 23, 'x'), 'too-large'],
  ] as const)(
    'an object that is %s is reported as corrupt or too large, and creating the ring does not overwrite it (F9, F31)',
    async (_, body, kind) => {
      const { ring, theirs } = newRing();
      await theirs.save(body, { resumable: false });
      const [{ generation }] = await theirs.getMetadata();
      await expect(ring.read()).rejects.toMatchObject(failed(kind));
      await expect(ring.write('x', { expected: undefined })).rejects.toBeInstanceOf(RingConflictError);
      await expect(ring.write('x', { expected: '1' })).rejects.toBeInstanceOf(RingConflictError);
      expect((await theirs.getMetadata())[0]).toMatchObject({ generation, size: `${body.length}` });
    },
  );

  test.each([
    ['not UTF-8', Buffer.from([0x7b, 0xff, 0x7d])],
    ['empty', Buffer.alloc(0)],
    ['262 145 bytes', Buffer.alloc(262_145, 'x')],
  ])(
    'content that is %s is overwritten by exactly one of the servers that read it, and by no other server',
    async (_, body) => {
      const { ring, theirs } = newRing();
      const put = (bytes: Buffer) => theirs.save(bytes, { resumable: false });
      await put(body);
      const seen = await revisionOf(ring);
      await expect(revisionOf(ring)).resolves.toBe(seen);
      await put(Buffer.concat([body, Buffer.from([0xff])]));
      await expect(ring.write('late', { expected: seen })).rejects.toBeInstanceOf(RingConflictError);
      const expected = await revisionOf(ring);
      const writes = Array.from({ length: 8 }, (__, i) => ring.write(`${i}`, { expected }));
      const results = await Promise.allSettled(writes);
      expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      expect((await ring.read())?.document).toMatch(/^[0-7]$/);
    },
  );
});
