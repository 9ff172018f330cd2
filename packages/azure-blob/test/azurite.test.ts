import { randomBytes } from 'node:crypto';
import {
  BlobSASPermissions,
  ContainerClient,
  generateBlobSASQueryParameters,
  StorageSharedKeyCredential,
} from '@azure/storage-blob';
import type { RingStore, RingStoreErrorKind } from '@sealring/core';
import { RingConflictError } from '@sealring/core';
import { beforeAll, describe, expect, inject, test } from 'vitest';
import { azureBlobRing } from '../src/index.ts';

const { address, name: accountName, key: accountKey } = inject('azurite');
const containerName = `azurite-${process.pid}`;
const failed = (kind: RingStoreErrorKind) => ({ name: 'RingStoreError', kind });
let names = 0;
const freshName = (): string => `blob-${process.pid}-${++names}`;

/** The revision of a value that is not a ring, from its error. */
async function revisionOf(ring: RingStore): Promise<string> {
  const error: unknown = await ring.read().catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ name: 'RingStoreError', revision: expect.any(String) });
  return String(Object(error).revision);
}

// Skipped only if this machine lacks npm; under CI=true the set-up fails instead.
describe.skipIf(address === '')('@azure/storage-blob against Azurite', () => {
  const container = containerClient(containerName);
  beforeAll(async () => void (await container.create()));

  function containerClient(name: string, key = accountKey): ContainerClient {
    const credential = new StorageSharedKeyCredential(accountName, key);
    return new ContainerClient(`${address}/${accountName}/${name}`, credential, { retryOptions: { maxTries: 1 } });
  }

  function newRing() {
    const blob = `rings/${freshName()} é +%?#&.ring`;
    return { blob, ring: azureBlobRing({ container, blob }), theirs: container.getBlockBlobClient(blob) };
  }

  test('the blob is the document, byte for byte, so other tools can read it', async () => {
    const { ring, theirs } = newRing();
    const document = '{"format":"sealring/ring/1"}\r\n{"macs":{}}\n';
    await ring.write(document, { expected: undefined });
    expect((await theirs.downloadToBuffer()).toString()).toBe(document);
    const { contentType, cacheControl } = await theirs.getProperties();
    expect([contentType, cacheControl]).toEqual(['text/plain; charset=utf-8', 'no-store']);
  });

  test('a document that another tool wrote is read and replaced', async () => {
    const { ring, theirs } = newRing();
    await theirs.upload('theirs', 6);
    const stored = await ring.read();
    expect(stored?.document).toBe('theirs');
    await ring.write('ours', { expected: stored?.revision });
    expect((await ring.read())?.document).toBe('ours');
  });

  test('the same bytes written again, by the store or another tool, get another revision', async () => {
    const { ring, theirs } = newRing();
    const first = await ring.write('a', { expected: undefined });
    const second = await ring.write('a', { expected: first.revision });
    await theirs.upload('a', 1);
    const third = await ring.read();
    expect(new Set([first.revision, second.revision, third?.revision]).size).toBe(3);
    for (const { revision } of [first, second]) {
      await expect(ring.write('b', { expected: revision })).rejects.toBeInstanceOf(RingConflictError);
    }
    expect(await ring.read()).toEqual(third);
  });

  test('a missing container is reported by every call as unavailable, never as absent or a conflict (F9)', async () => {
    const ring = azureBlobRing({ container: containerClient(freshName()), blob: 'k' });
    await expect(ring.read()).rejects.toMatchObject(failed('unavailable'));
    await expect(ring.write('x', { expected: undefined })).rejects.toMatchObject(failed('unavailable'));
    await expect(ring.write('x', { expected: '"0x1"' })).rejects.toMatchObject(failed('unavailable'));
  });

  test.each([
    ['not UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), 'corrupt'],
    ['empty', Buffer.alloc(0), 'corrupt'],
    ['262 145 bytes', Buffer.alloc(262_145, 'x'), 'too-large'],
    ['8 MiB', Buffer.alloc(2 ** 23, 'x'), 'too-large'],
  ] as const)(
    'a blob that is %s is corrupt or too large, and creating the ring does not overwrite it (F9, F31)',
    async (_, body, kind) => {
      const { ring, theirs } = newRing();
      await theirs.upload(body, body.length);
      await expect(ring.read()).rejects.toMatchObject(failed(kind));
      await expect(ring.write('x', { expected: undefined })).rejects.toBeInstanceOf(RingConflictError);
      await expect(ring.write('x', { expected: '"0x1"' })).rejects.toBeInstanceOf(RingConflictError);
      expect((await theirs.downloadToBuffer()).equals(body)).toBe(true);
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
      const put = (bytes: Buffer) => theirs.upload(bytes, bytes.length);
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

  test('a write to a leased blob is reported as unavailable, not as a conflict, because reading again does not help', async () => {
    const { ring, theirs } = newRing();
    const { revision } = await ring.write('a', { expected: undefined });
    const lease = theirs.getBlobLeaseClient();
    await lease.acquireLease(60);
    const stored = await ring.read();
    await expect(ring.write('b', { expected: stored?.revision })).rejects.toMatchObject(failed('unavailable'));
    await lease.releaseLease();
    await expect(ring.write('b', { expected: revision })).resolves.toHaveProperty('revision');
  });

  describe('permissions', () => {
    const credential = new StorageSharedKeyCredential(accountName, accountKey);

    /** A ring whose URL is signed for this one blob. */
    function signed(blob: string, permissions: string, expiresInSeconds = 600) {
      const sas = generateBlobSASQueryParameters(
        {
          containerName,
          blobName: blob,
          permissions: BlobSASPermissions.parse(permissions),
          expiresOn: new Date(Date.now() + expiresInSeconds * 1000),
        },
        credential,
      );
      return azureBlobRing({ container: `${container.url}?${sas.toString()}`, blob });
    }

    test('the permissions in the README are enough for a member and a reader, and a reader cannot write', async () => {
      const { blob } = newRing();
      const [member, reader] = [signed(blob, 'rw'), signed(blob, 'r')];
      expect(await member.read()).toBeUndefined();
      expect(await reader.read()).toBeUndefined();
      const first = await member.write('x', { expected: undefined });
      await member.write('y', { expected: first.revision });
      const stored = await reader.read();
      expect(stored?.document).toBe('y');
      await expect(reader.write('z', { expected: stored?.revision })).rejects.toMatchObject(failed('denied'));
      await expect(reader.write('z', { expected: undefined })).rejects.toMatchObject(failed('denied'));
      expect(await member.read()).toEqual(stored);
    });

    test('a server without permission to read is denied, whether or not there is a ring (F9)', async () => {
      const { blob, ring } = newRing();
      for (let founded = 0; founded < 2; founded++) {
        await expect(signed(blob, 'w').read()).rejects.toMatchObject(failed('denied'));
        await expect(signed(`${blob}.other`, 'r').read()).resolves.toBeUndefined();
        if (founded === 0) await ring.write('x', { expected: undefined });
      }
    });

    test('an expired signature and a wrong account key are denied', async () => {
      const { blob } = newRing();
      await expect(signed(blob, 'rw', -60).read()).rejects.toMatchObject(failed('denied'));
      const other = containerClient(containerName, randomBytes(64).toString('base64'));
      const ring = azureBlobRing({ container: other, blob });
      await expect(ring.read()).rejects.toMatchObject(failed('denied'));
      await expect(ring.write('x', { expected: undefined })).rejects.toMatchObject(failed('denied'));
    });
  });
});
