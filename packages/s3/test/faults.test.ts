import type { ServerResponse } from 'node:http';
import { inspect } from 'node:util';
import type { RingStoreErrorKind } from '@sealring/core';
import { RingConflictError } from '@sealring/core';
import { afterEach, describe, expect, test } from 'vitest';
// @boundaries-ignore the servers that the tests share are not a package
import type { SeenRequest } from '../../../test/support/http-stub.ts';
import { s3Ring } from '../src/index.ts';
import { clientOf, type Stub, sendError, sendObject, startStub } from './s3-stub.ts';

const failed = (kind: RingStoreErrorKind) => ({ name: 'RingStoreError', kind });

describe('the S3 SDK against a local server', () => {
  const closing: (() => Promise<void> | void)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close();
  });

  async function stubbed(answer: Parameters<typeof startStub>[0], callTimeoutSeconds = 5) {
    const stub: Stub = await startStub(answer);
    closing.push(() => stub.close());
    return { stub, ring: ringAt(stub.endpoint, callTimeoutSeconds) };
  }

  function ringAt(endpoint: string, callTimeoutSeconds = 5) {
    const client = clientOf(endpoint);
    closing.push(() => client.destroy());
    return s3Ring({ bucket: 'ring', key: 'k', client, callTimeoutSeconds });
  }

  test('409 ConditionalRequestConflict in answer to a write is a conflict, and the write is not retried', async () => {
    const { stub, ring } = await stubbed((_, response) => sendError(response, 409, 'ConditionalRequestConflict'));
    await expect(ring.write('x', { expected: undefined })).rejects.toBeInstanceOf(RingConflictError);
    expect(stub.requests).toEqual(['PUT *']);
  });

  test.each([
    [409, 'ConditionalRequestConflict'],
    [412, 'PreconditionFailed'],
    [404, 'NoSuchKey'],
  ])(
    '%i %s in answer to a replacing write is a conflict, and the condition is sent after a read',
    async (status, code) => {
      const { stub, ring } = await stubbed((request, response) =>
        request.method === 'GET' ? sendObject(response, 'x') : sendError(response, status, code),
      );
      const expected = (await ring.read())?.revision;
      await expect(ring.write('y', { expected })).rejects.toBeInstanceOf(RingConflictError);
      expect(stub.requests).toEqual(['GET', 'GET', 'PUT "e"']);
    },
  );

  test('a write whose revision is already outdated is not sent', async () => {
    const { stub, ring } = await stubbed((_, response) => sendObject(response, 'x'));
    await expect(ring.write('y', { expected: '"e"' })).rejects.toBeInstanceOf(RingConflictError);
    expect(stub.requests).toEqual(['GET']);
  });

  test.each([
    ['403 AccessDenied, also for a missing object', 403, 'AccessDenied', 'denied'],
    ['a bucket that does not exist', 404, 'NoSuchBucket', 'unavailable'],
    ['a 404 of another name', 404, 'NoSuchWebsiteConfiguration', 'unavailable'],
    ['NoSuchKey under another status', 400, 'NoSuchKey', 'unavailable'],
    ['503 SlowDown', 503, 'SlowDown', 'unavailable'],
    ['500 InternalError', 500, 'InternalError', 'unavailable'],
    ['409 OperationAborted', 409, 'OperationAborted', 'unavailable'],
    ['412 to a read', 412, 'PreconditionFailed', 'unavailable'],
    ['expired credentials', 400, 'ExpiredToken', 'unavailable'],
    ['a clock that is off', 403, 'RequestTimeTooSkewed', 'unavailable'],
    ['the wrong region', 301, 'PermanentRedirect', 'unavailable'],
    ['an unknown refusal', 403, 'Novelty', 'denied'],
  ] as const)('%s is never taken for an absent ring (F9)', async (_, status, code, kind) => {
    const { stub, ring } = await stubbed((__, response) => sendError(response, status, code));
    await expect(ring.read()).rejects.toMatchObject(failed(kind));
    expect(stub.requests).toEqual(['GET']);
  });

  test.each([
    ['an empty 404', 404, ''],
    ['a 404 with a page', 404, '<html>NoSuchKey</html>'],
    ['a 404 with JSON', 404, '{"Code":"NoSuchKey"}'],
    ['a 200 with an empty body and no ETag', 200, ''],
    ['a 200 with a page and no ETag', 200, '<html>welcome</html>'],
    ['a 204', 204, ''],
  ])('%s from a proxy is never taken for an absent ring (F9)', async (_, status, body) => {
    const { ring } = await stubbed((__, response) => response.writeHead(status).end(body));
    await expect(ring.read()).rejects.toMatchObject({ name: 'RingStoreError' });
  });

  test('404 NoSuchKey means that the ring is absent, and the date of every answer is reported, even that of an error (F13)', async () => {
    const date = new Date('2026-11-21T10:00:00Z');
    const { ring } = await stubbed(({ method }, response) => {
      response.setHeader('date', date.toUTCString());
      if (method === 'GET') sendError(response, 404, 'NoSuchKey');
      else response.writeHead(200, { etag: '"e"' }).end();
    });
    const dates: Date[] = [];
    const onServiceDate = (each: Date): void => void dates.push(each);
    expect(await ring.read({ onServiceDate })).toBeUndefined();
    await ring.write('x', { expected: undefined, onServiceDate });
    expect(dates).toEqual([date, date]);
  });

  test('501 NotImplemented from a service without conditional writes is reported as read-only', async () => {
    const { ring } = await stubbed((_, response) => sendError(response, 501, 'NotImplemented'));
    await expect(ring.write('x', { expected: undefined })).rejects.toMatchObject(failed('read-only'));
  });

  test.each([
    ['with', {}],
    ['without', { checksum: false }],
  ])(
    'a body %s a checksum is reported as unavailable if it ends early',
    async (_, { checksum = true }: { checksum?: boolean }) => {
      const { ring } = await stubbed((__, response) => {
        const headers = {
          etag: '"e"',
          'content-length': '100',
          ...(checksum && { 'x-amz-checksum-crc32': 'AAAAAA==' }),
        };
        response.writeHead(200, headers);
        response.write('half');
        setTimeout(() => response.destroy(), 20);
      });
      await expect(ring.read()).rejects.toMatchObject(failed('unavailable'));
    },
  );

  test('checksums are sent and checked, even by a client that does neither by default, as before version 3.729', async () => {
    let sent: unknown;
    const stub = await startStub(({ method, headers }, response) => {
      if (method === 'PUT') sent = headers['x-amz-checksum-crc32'];
      sendObject(response, 'x', { 'x-amz-checksum-crc32': 'AAAAAA==' });
    });
    closing.push(() => stub.close());
    const client = clientOf(stub.endpoint, 'test', 'test', {
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
    });
    closing.push(() => client.destroy());
    const ring = s3Ring({ bucket: 'ring', key: 'k', client });
    await ring.write('x', { expected: undefined });
    expect(sent).toBe('jNwWgw==');
    await expect(ring.read()).rejects.toMatchObject(failed('unavailable'));
  });

  test('a body whose checksum does not match is reported as unavailable', async () => {
    const { ring } = await stubbed((_, response) => sendObject(response, 'x', { 'x-amz-checksum-crc32': 'AAAAAA==' }));
    await expect(ring.read()).rejects.toMatchObject(failed('unavailable'));
  });

  test.each([
    ['with a length', { 'content-length': String(2 ** 30) }],
    ['with a length and a checksum', { 'content-length': String(2 ** 30), 'x-amz-checksum-crc32': 'AAAAAA==' }],
    ['without a length', {}],
    ['with a checksum but without a length', { 'x-amz-checksum-crc32': 'AAAAAA==' }],
  ])('a body over the limit %s is reported as too large, and the connection is closed (F23)', async (_, headers) => {
    let sent = 0;
    const { stub, ring } = await stubbed((__, response) => {
      response.writeHead(200, { etag: '"e"', ...headers });
      const more = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(16_384, 'x'))) sent += 16_384;
        if (!response.destroyed) response.once('drain', more);
      };
      more();
    });
    await expect(ring.read()).rejects.toMatchObject({ ...failed('too-large'), revision: '["","","\\"e\\""]' });
    await stub.allClosed();
    // The buffers of both sockets, far less than a gigabyte.
    expect(sent).toBeLessThan(64 * 2 ** 20);
  });

  test.each([
    ['before the answer', () => undefined],
    [
      'in the middle of the body',
      (_: SeenRequest, response: ServerResponse) => {
        response.writeHead(200, { etag: '"e"', 'content-length': '100' });
        response.write('half');
      },
    ],
    [
      'in the middle of the body, with a checksum',
      (_: SeenRequest, response: ServerResponse) => {
        response.writeHead(200, { etag: '"e"', 'content-length': '100', 'x-amz-checksum-crc32': 'AAAAAA==' });
        response.write('half');
      },
    ],
  ])('a server that hangs %s is reported as unavailable, and the connection is closed (F29)', async (_, answer) => {
    const { stub, ring } = await stubbed(answer, 0.3);
    await expect(ring.read()).rejects.toMatchObject(failed('unavailable'));
    await stub.allClosed();
    const signal = AbortSignal.timeout(50);
    const slow = ringAt(stub.endpoint, 60);
    await expect(slow.read({ signal })).rejects.toMatchObject(failed('unavailable'));
    await expect(slow.write('x', { expected: 'x', signal })).rejects.toMatchObject(failed('unavailable'));
    const waiting = slow.read();
    await slow.close();
    await expect(waiting).rejects.toMatchObject(failed('unavailable'));
    await expect(slow.read()).rejects.toMatchObject(failed('unavailable'));
    await stub.allClosed();
  });

  test('no error contains text from the service or data of the client (F33)', async () => {
    const canary = 'CANARY-6c1f';
    const stub = await startStub((_, response) => sendError(response, 500, canary, canary));
    closing.push(() => stub.close());
    const client = clientOf(stub.endpoint, canary, canary);
    const ring = s3Ring({ bucket: 'ring', key: canary, client });
    for (const call of [
      () => ring.read(),
      () => ring.write(canary, { expected: undefined }),
      () => ring.write(canary, { expected: 'x' }),
    ]) {
      const error: unknown = await call().catch((thrown: unknown) => thrown);
      expect(error).toMatchObject(failed('unavailable'));
      expect(error).not.toHaveProperty('cause');
      const shown = inspect(error, { depth: Infinity, showHidden: true, getters: true });
      expect(shown + String(Object(error).stack) + JSON.stringify(error)).not.toContain(canary);
    }
    expect(inspect(ring, { depth: Infinity, showHidden: true })).not.toContain(canary);
    client.destroy();
  });
});
