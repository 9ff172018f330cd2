import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { inspect } from 'node:util';
import type { RingStoreErrorKind } from '@sealring/core';
import { RingConflictError } from '@sealring/core';
import { afterEach, describe, expect, test } from 'vitest';
// @boundaries-ignore the servers that the tests share are not a package
import { type Answerer, type HttpStub, type SeenRequest, startHttpStub } from '../../../test/support/http-stub.ts';
import { type AzureBlobRingOptions, azureBlobRing } from '../src/index.ts';
import { clientOf, kindOf, sendBlob, sendCreated, sendError } from './blob-stub.ts';

const NO_REQUEST = { url: '', headers: {}, body: Buffer.alloc(0) } as SeenRequest;
const failed = (kind: RingStoreErrorKind) => ({ name: 'RingStoreError', kind });

describe('the Blob Storage SDK against a local server', () => {
  const closing: (() => Promise<void> | void)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close();
  });

  async function stubbed(answer: Answerer, callTimeoutSeconds = 5) {
    const stub = await startHttpStub(answer);
    closing.push(() => stub.close());
    return { stub, ring: ringAt(stub, callTimeoutSeconds) };
  }

  function ringAt({ endpoint }: HttpStub, callTimeoutSeconds = 5) {
    return azureBlobRing({ container: clientOf(endpoint), blob: 'a/é +%', callTimeoutSeconds });
  }

  const asked = (stub: HttpStub): string[] => stub.requests.map(kindOf);

  test('a write sends one request with the condition, the document and its checksum', async () => {
    const { stub, ring } = await stubbed((_, response) => sendCreated(response));
    expect(await ring.write('€', { expected: '"0x1"' })).toEqual({ revision: '"0x2"' });
    await ring.write('€', { expected: undefined });
    expect(asked(stub)).toEqual(['PUT "0x1"', 'PUT *']);
    const [{ url, headers, body } = NO_REQUEST] = stub.requests;
    expect(url).toBe('/account/ring/a/%C3%A9%20%2B%25');
    expect(body).toEqual(Buffer.from('€'));
    expect(headers).toMatchObject({
      'content-md5': createHash('md5').update(body).digest('base64'),
      'x-ms-blob-type': 'BlockBlob',
      'x-ms-blob-content-type': 'text/plain; charset=utf-8',
      'x-ms-blob-cache-control': 'no-store',
    });
  });

  test.each([
    [409, 'BlobAlreadyExists'],
    [412, 'ConditionNotMet'],
    [404, 'BlobNotFound'],
    [412, 'Novelty'],
  ])('%i %s in answer to a write is a conflict, and the write is not retried', async (status, code) => {
    const { stub, ring } = await stubbed((_, response) => sendError(response, status, code));
    for (const expected of [undefined, '"0x1"']) {
      await expect(ring.write('x', { expected })).rejects.toBeInstanceOf(RingConflictError);
    }
    expect(asked(stub)).toEqual(['PUT *', 'PUT "0x1"']);
  });

  test.each(['', '*', '"*"', '""', '0x1', '"0x1" ', '="0x1"', 'W/"0x1"', '"0x1", "0x2"', 'absent'])(
    'a write with the revision %j, which no read returns, conflicts without a request, because it could match any version',
    async (expected) => {
      const { stub, ring } = await stubbed((_, response) => sendCreated(response));
      await expect(ring.write('x', { expected })).rejects.toBeInstanceOf(RingConflictError);
      expect(asked(stub)).toEqual([]);
    },
  );

  test.each([
    ['a container that does not exist', 404, 'ContainerNotFound', 'unavailable'],
    ['a container that is being deleted', 409, 'ContainerBeingDeleted', 'unavailable'],
    ['a 404 of another code', 404, 'ResourceNotFound', 'unavailable'],
    ['BlobNotFound under another status', 400, 'BlobNotFound', 'unavailable'],
    ['403 AuthorizationPermissionMismatch', 403, 'AuthorizationPermissionMismatch', 'denied'],
    ['403 AuthenticationFailed', 403, 'AuthenticationFailed', 'denied'],
    ['an unknown refusal', 403, 'Novelty', 'denied'],
    ['503 ServerBusy', 503, 'ServerBusy', 'unavailable'],
    ['500 OperationTimedOut', 500, 'OperationTimedOut', 'unavailable'],
    ['412 to a read', 412, 'ConditionNotMet', 'unavailable'],
    ['an archived blob', 409, 'BlobArchived', 'unavailable'],
  ] as const)('%s is never taken for an absent ring, and is not retried (F9)', async (_, status, code, kind) => {
    const { stub, ring } = await stubbed((__, response) => sendError(response, status, code));
    await expect(ring.read()).rejects.toMatchObject(failed(kind));
    expect(asked(stub)).toEqual(['GET']);
  });

  test.each([
    ['an empty 404', 404, ''],
    ['a 404 with a page', 404, '<html>BlobNotFound</html>'],
    ['a 404 with JSON', 404, '{"Code":"NotFound"}'],
    ['a 200 with an empty body and no ETag', 200, ''],
    ['a 200 with a page and no ETag', 200, '<html>welcome</html>'],
    ['a 204', 204, ''],
  ])('%s from a proxy is never taken for an absent ring (F9)', async (_, status, body) => {
    const { ring } = await stubbed((__, response) => response.writeHead(status).end(body));
    await expect(ring.read()).rejects.toMatchObject({ name: 'RingStoreError' });
  });

  test('404 BlobNotFound means that the ring is absent', async () => {
    const { ring } = await stubbed((_, response) => sendError(response, 404, 'BlobNotFound'));
    expect(await ring.read()).toBeUndefined();
  });

  test.each([
    ['a lease of another client', 412, 'LeaseIdMissing', 'unavailable'],
    ['an immutability policy', 409, 'BlobImmutableDueToPolicy', 'read-only'],
    ['a document that was damaged in transit', 400, 'Md5Mismatch', 'unavailable'],
    ['a container that does not exist', 404, 'ContainerNotFound', 'unavailable'],
    ['a conflict for another reason than the condition', 409, 'Novelty', 'unavailable'],
  ] as const)('%s is not reported as a conflict', async (_, status, code, kind) => {
    const { ring } = await stubbed((__, response) => sendError(response, status, code));
    await expect(ring.write('x', { expected: '"0x1"' })).rejects.toMatchObject(failed(kind));
  });

  test('a redirect to another server is not followed', async () => {
    const elsewhere = await startHttpStub((_, response) => sendBlob(response, 'theirs'));
    closing.push(() => elsewhere.close());
    const { ring } = await stubbed((_, response) =>
      response.writeHead(307, { location: `${elsewhere.endpoint}/account/ring/k` }).end(),
    );
    await expect(ring.read()).rejects.toMatchObject(failed('unavailable'));
    await expect(ring.write('x', { expected: undefined })).rejects.toMatchObject(failed('unavailable'));
    expect(elsewhere.requests).toEqual([]);
  });

  test('a body that ends early is reported as unavailable, and the request is not repeated', async () => {
    const { stub, ring } = await stubbed((_, response) => {
      response.writeHead(200, { etag: '"0x1"', 'content-length': '100' });
      response.write('half');
      setTimeout(() => response.destroy(), 20);
    });
    await expect(ring.read()).rejects.toMatchObject(failed('unavailable'));
    expect(asked(stub)).toEqual(['GET']);
  });

  test.each([
    ['with a length', { 'content-length': `${2 ** 30}` }, { ...failed('too-large'), revision: '"0x1"' }],
    // The SDK requires a length.
    ['without a length', {}, { ...failed('unavailable'), revision: undefined }],
  ] as const)(
    'a body over the limit, %s, is rejected, and the connection is closed (F23)',
    async (_, headers, refusal) => {
      let sent = 0;
      const { stub, ring } = await stubbed((__, response) => {
        response.writeHead(200, { etag: '"0x1"', ...headers });
        flood(response, (bytes) => (sent += bytes));
      });
      await expect(ring.read()).rejects.toMatchObject(refusal);
      await stub.allClosed();
      // The buffers of both sockets, far less than a gigabyte.
      expect(sent).toBeLessThan(64 * 2 ** 20);
    },
  );

  test.each([
    ['before the answer', () => undefined],
    [
      'in the middle of the body',
      (_: SeenRequest, response: ServerResponse) => {
        response.writeHead(200, { etag: '"0x1"', 'content-length': '100' });
        response.write('half');
      },
    ],
    [
      'in the middle of an error',
      (_: SeenRequest, response: ServerResponse) => {
        response.writeHead(500, { 'content-length': '100' });
        response.write('half');
      },
    ],
  ])('a server that hangs %s is reported as unavailable, and the connection is closed (F29)', async (_, answer) => {
    const { stub, ring } = await stubbed(answer, 0.3);
    await expect(ring.read()).rejects.toMatchObject(failed('unavailable'));
    await expect(ring.write('x', { expected: '"0x1"' })).rejects.toMatchObject(failed('unavailable'));
    await stub.allClosed();
    const signal = AbortSignal.timeout(50);
    const slow = ringAt(stub, 60);
    await expect(slow.read({ signal })).rejects.toMatchObject(failed('unavailable'));
    await expect(slow.write('x', { expected: undefined, signal })).rejects.toMatchObject(failed('unavailable'));
    const waiting = slow.read();
    await slow.close();
    await expect(waiting).rejects.toMatchObject(failed('unavailable'));
    await expect(slow.read()).rejects.toMatchObject(failed('unavailable'));
    await stub.allClosed();
  });

  test('a client that the store creates does not retry', async () => {
    const { stub } = await stubbed((_, response) => sendError(response, 503, 'ServerBusy'));
    const ring = azureBlobRing({ container: `${stub.endpoint}/account/ring`, blob: 'k' });
    await expect(ring.read()).rejects.toMatchObject(failed('unavailable'));
    await expect(ring.write('x', { expected: undefined })).rejects.toMatchObject(failed('unavailable'));
    expect(asked(stub)).toEqual(['GET', 'PUT *']);
  });

  test('no error contains text from the service or data of the client (F33)', async () => {
    const canary = 'canary-6c1f';
    const key = Buffer.from(canary).toString('base64');
    const stub = await startHttpStub((_, response) => sendError(response, 500, canary, canary));
    closing.push(() => stub.close());
    const containers: AzureBlobRingOptions['container'][] = [stub.endpoint, 'http://127.0.0.1:1'].flatMap(
      (endpoint) => [clientOf(endpoint, key), `${endpoint}/account/${canary}?sv=2026-02-06&sig=${canary}`],
    );
    for (const container of containers) {
      const ring = azureBlobRing({ container, blob: canary });
      for (const call of [
        () => ring.read(),
        () => ring.write(canary, { expected: undefined }),
        () => ring.write(canary, { expected: `"${canary}"` }),
      ]) {
        const error: unknown = await call().catch((thrown: unknown) => thrown);
        expect(error).toMatchObject(failed('unavailable'));
        expect(error).not.toHaveProperty('cause');
        const shown = inspect(error, { depth: Infinity, showHidden: true, getters: true });
        const all = shown + String(Object(error).stack) + JSON.stringify(error);
        expect(all).not.toContain(canary);
        expect(all).not.toContain(key);
      }
      expect(inspect(ring, { depth: Infinity, showHidden: true })).not.toMatch(new RegExp(`${canary}|${key}`));
    }
    // The errors could have contained them.
    expect(stub.requests.some(({ headers }) => headers.authorization?.startsWith('SharedKey account:'))).toBe(true);
    expect(stub.requests.some(({ url }) => url.includes(`sig=${canary}`))).toBe(true);
  });
});

/** Sends until the other side closes. */
function flood(response: ServerResponse, onSent: (bytes: number) => void): void {
  const more = (): void => {
    while (!response.destroyed && response.write(Buffer.alloc(16_384, 'x'))) onSent(16_384);
    if (!response.destroyed) response.once('drain', more);
  };
  more();
}
