import type { ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { inspect } from 'node:util';
import { gzipSync } from 'node:zlib';
import type { RingStoreErrorKind } from '@sealring/core';
import { RingConflictError } from '@sealring/core';
import { afterEach, describe, expect, test } from 'vitest';
// @boundaries-ignore the servers that the tests share are not a package
import { type Answerer, type HttpStub, type SeenRequest, startHttpStub } from '../../../test/support/http-stub.ts';
import { gcsRing } from '../src/index.ts';
import { checksum, clientOf, kindOf, sendEmptyListing, sendError, sendJson, sendObject } from './gcs-stub.ts';

const NO_REQUEST = { url: '', headers: {}, body: Buffer.alloc(0) } as SeenRequest;
const failed = (kind: RingStoreErrorKind) => ({ name: 'RingStoreError', kind });
const newline = Buffer.from('\r\n');

describe('the Cloud Storage SDK against a local server', () => {
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
    return gcsRing({ bucket: 'ring', object: 'a/é +%', client: clientOf(endpoint), callTimeoutSeconds });
  }

  const asked = (stub: HttpStub): string[] => stub.requests.map(kindOf);

  test('a write sends one request with the condition, the document and its checksum', async () => {
    const { stub, ring } = await stubbed((_, response) => sendJson(response, 200, { generation: '7' }));
    const document = '{"epoch":1}\n{"€":"\r\n--\r\n"}\n';
    expect(await ring.write(document, { expected: '1234567890123456789' })).toEqual({ revision: '7' });
    const [{ url, headers, body } = NO_REQUEST] = stub.requests;
    expect(asked(stub)).toEqual(['upload 1234567890123456789']);
    expect(new URL(url, 'http://stub').searchParams.get('name')).toBe('a/é +%');
    const boundary = /^multipart\/related; boundary=([0-9a-f-]{36})$/.exec(headers['content-type'] ?? '')?.[1];
    const bytes = Buffer.from(document);
    const end = Buffer.concat([newline, newline, bytes, newline, Buffer.from(`--${boundary}--`)]);
    expect(body.subarray(-end.length)).toEqual(end);
    const metadata: unknown = JSON.parse(/^\{.*\}$/m.exec(body.toString())?.[0] ?? '');
    expect(metadata).toEqual({
      contentType: 'text/plain; charset=utf-8',
      cacheControl: 'no-store',
      crc32c: checksum(bytes),
    });
  });

  test('a write aborted before its request starts fails as unavailable, and causes no uncaught exception (F29)', async () => {
    const { ring } = await stubbed((_, response) => sendJson(response, 200, { generation: '7' }));
    const uncaught: unknown[] = [];
    const note = (error: unknown): void => void uncaught.push(error);
    process.on('uncaughtException', note);
    closing.push(() => void process.off('uncaughtException', note));
    for (let i = 0; i < 5; i++) {
      const controller = new AbortController();
      const call = ring.write('x', { expected: '1', signal: controller.signal });
      controller.abort();
      await expect(call).rejects.toMatchObject(failed('unavailable'));
      await pause(20);
    }
    expect(uncaught).toEqual([]);
  });

  test.each([
    [412, 'conditionNotMet'],
    [409, 'conflict'],
    [412, 'novelty'],
  ])('%i %s in answer to a write is a conflict, and the write is not retried', async (status, reason) => {
    const { stub, ring } = await stubbed((_, response) => sendError(response, status, reason));
    for (const expected of [undefined, '1']) {
      await expect(ring.write('x', { expected })).rejects.toBeInstanceOf(RingConflictError);
    }
    expect(asked(stub)).toEqual(['upload 0', 'upload 1']);
  });

  test.each(['', '0', '01', '-1', '1&ifGenerationMatch=', '1 ', '1e3', '12345678901234567890', '*', 'absent'])(
    'the revision %j, which no read returns, causes a conflict without any request',
    async (expected) => {
      const { stub, ring } = await stubbed((_, response) => sendJson(response, 200, { generation: '7' }));
      await expect(ring.write('x', { expected })).rejects.toBeInstanceOf(RingConflictError);
      expect(asked(stub)).toEqual([]);
    },
  );

  test.each([
    ['403 forbidden, also for a missing object', 403, 'forbidden', 'denied'],
    ['401 authError', 401, 'authError', 'denied'],
    ['429 rateLimitExceeded', 429, 'rateLimitExceeded', 'unavailable'],
    ['403 rateLimitExceeded', 403, 'rateLimitExceeded', 'unavailable'],
    ['503 backendError', 503, 'backendError', 'unavailable'],
    ['500 internalError', 500, 'internalError', 'unavailable'],
    ['412 conditionNotMet', 412, 'conditionNotMet', 'unavailable'],
    ['409 conflict', 409, 'conflict', 'unavailable'],
    ['notFound under another status', 400, 'notFound', 'unavailable'],
    ['an unknown refusal', 403, 'novelty', 'denied'],
  ] as const)('%s never means that the ring is absent, and is not retried (F9)', async (_, status, reason, kind) => {
    const { stub, ring } = await stubbed((__, response) => sendError(response, status, reason));
    await expect(ring.read()).rejects.toMatchObject(failed(kind));
    expect(asked(stub)).toEqual(['media']);
  });

  test.each([
    ['a 404 of the bucket', (response: ServerResponse) => sendError(response, 404, 'notFound'), 'unavailable'],
    ['a refusal to list', (response: ServerResponse) => sendError(response, 403, 'forbidden'), 'denied'],
    ['a server in trouble', (response: ServerResponse) => sendError(response, 503, 'backendError'), 'unavailable'],
    ['a page of a proxy', (response: ServerResponse) => response.writeHead(200).end('<html>'), 'unavailable'],
    ['an empty body', (response: ServerResponse) => response.writeHead(200).end(), 'unavailable'],
    ['no content', (response: ServerResponse) => response.writeHead(204).end(), 'unavailable'],
    ['a listing that says there is more', endlessListing, 'unavailable'],
  ] as const)('a 404 never means that the ring is absent when the listing is %s (F9)', async (_, list, kind) => {
    const { stub, ring } = await stubbed((request, response) =>
      kindOf(request) === 'media' ? response.writeHead(404).end('No such object') : list(response),
    );
    await expect(ring.read()).rejects.toMatchObject(failed(kind));
    expect(asked(stub)).toEqual(['media', 'list']);
  });

  test.each(['', '<html>not found</html>', '{"error":{"errors":[{"reason":"notFound"}]}}', 'No such object: ring/k'])(
    'a 404 with the body %j means that the ring is absent once a listing shows that the bucket has no such object',
    async (body) => {
      const { stub, ring } = await stubbed((request, response) => {
        if (kindOf(request) === 'media') response.writeHead(404).end(body);
        else sendEmptyListing(response);
      });
      expect(await ring.read()).toBeUndefined();
      expect(asked(stub)).toEqual(['media', 'list']);
      const { searchParams } = new URL(stub.requests[1]?.url ?? '', 'http://stub');
      expect([searchParams.get('prefix'), searchParams.get('maxResults')]).toEqual(['a/é +%', '1']);
    },
  );

  test('a 404 in answer to a write is reported as unavailable, because the bucket does not exist', async () => {
    const { ring } = await stubbed((_, response) => sendError(response, 404, 'notFound'));
    for (const expected of [undefined, '1']) {
      await expect(ring.write('x', { expected })).rejects.toMatchObject(failed('unavailable'));
    }
  });

  test('a redirect is not followed, and neither the token nor the request is sent elsewhere', async () => {
    const elsewhere = await startHttpStub((_, response) => sendObject(response, 'theirs'));
    closing.push(() => elsewhere.close());
    const { stub, ring } = await stubbed((_, response) =>
      response.writeHead(307, { location: `${elsewhere.endpoint}/x` }).end(),
    );
    await expect(ring.read()).rejects.toMatchObject(failed('unavailable'));
    await expect(ring.write('x', { expected: undefined })).rejects.toMatchObject(failed('unavailable'));
    expect(asked(stub)).toEqual(['media', 'upload 0']);
    expect(elsewhere.requests).toEqual([]);
  });

  test('a body that ends early is reported as unavailable', async () => {
    const { ring } = await stubbed((_, response) => {
      response.writeHead(200, { ...generation(), 'content-length': '100' });
      response.write('half');
      setTimeout(() => response.destroy(), 20);
    });
    await expect(ring.read()).rejects.toMatchObject(failed('unavailable'));
  });

  test('a document that was damaged in transit is not stored, and the write fails as unavailable', async () => {
    const { ring } = await stubbed((_, response) => sendError(response, 400, 'invalid'));
    await expect(ring.write('x', { expected: undefined })).rejects.toMatchObject(failed('unavailable'));
  });

  test.each([
    ['with Content-Length', { 'content-length': `${2 ** 30}` }],
    ['without Content-Length', {}],
  ])('a body over the limit, %s, is rejected as too large, and the connection is closed (F23)', async (_, headers) => {
    let sent = 0;
    const { stub, ring } = await stubbed((__, response) => {
      response.writeHead(200, { ...generation(), ...headers });
      sent = 0;
      flood(response, (bytes) => (sent += bytes));
    });
    await expect(ring.read()).rejects.toMatchObject({ ...failed('too-large'), revision: '1' });
    await stub.allClosed();
    // The buffers of both sockets, far less than a gigabyte.
    expect(sent).toBeLessThan(64 * 2 ** 20);
  });

  test('a body that was compressed in transit is decompressed, and its checksum is the checksum of the object', async () => {
    const { ring } = await stubbed((_, response) => {
      const document = Buffer.from('x'.repeat(1000));
      const packed = gzipSync(document);
      const hash = `crc32c=${checksum(document)}`;
      sendObject(response, packed, { 'content-encoding': 'gzip', 'x-goog-hash': hash });
    });
    expect(await ring.read()).toEqual({ document: 'x'.repeat(1000), revision: '1' });
  });

  test('reading stops when a body decompresses to more than the limit (F23)', async () => {
    const { stub, ring } = await stubbed((_, response) => {
      response.writeHead(200, { ...generation(), 'content-encoding': 'gzip' });
      response.end(gzipSync(Buffer.alloc(2 ** 24)));
    });
    await expect(ring.read()).rejects.toMatchObject({ ...failed('too-large'), revision: '1' });
    await stub.allClosed();
  });

  test.each([
    ['an error', 500, 'media'],
    ['a listing', 200, 'list'],
    ['an answer to a write', 200, 'upload 0'],
  ])('%s that does not end is reported as unavailable, and the connection is closed (F23)', async (_, status, kind) => {
    const { stub, ring } = await stubbed((request, response) => {
      if (kindOf(request) === 'media' && kind === 'list') return sendError(response, 404, 'notFound');
      response.writeHead(status);
      flood(response, () => {});
    });
    const call = kind === 'upload 0' ? ring.write('x', { expected: undefined }) : ring.read();
    await expect(call).rejects.toMatchObject(failed('unavailable'));
    expect(asked(stub).at(-1)).toBe(kind);
    await stub.allClosed();
  });

  test.each([
    ['before the answer', () => undefined],
    [
      'in the middle of the body',
      (_: SeenRequest, response: ServerResponse) => {
        response.writeHead(200, { ...generation(), 'content-length': '100' });
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
    await expect(ring.write('x', { expected: '1' })).rejects.toMatchObject(failed('unavailable'));
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

  test('no error contains text from the service or data of the client (F33)', async () => {
    const canary = 'canary-6c1f';
    const stub = await startHttpStub((_, response) => sendError(response, 500, canary, canary));
    closing.push(() => stub.close());
    const answered = gcsRing({ bucket: canary, object: canary, client: clientOf(stub.endpoint, canary) });
    const unanswered = gcsRing({ bucket: canary, object: canary, client: clientOf('http://127.0.0.1:1', canary) });
    for (const ring of [answered, unanswered]) {
      for (const call of [
        () => ring.read(),
        () => ring.write(canary, { expected: undefined }),
        () => ring.write(canary, { expected: '1' }),
      ]) {
        const error: unknown = await call().catch((thrown: unknown) => thrown);
        expect(error).toMatchObject(failed('unavailable'));
        expect(error).not.toHaveProperty('cause');
        const shown = inspect(error, { depth: Infinity, showHidden: true, getters: true });
        expect(shown + String(Object(error).stack) + JSON.stringify(error)).not.toContain(canary);
      }
      expect(inspect(ring, { depth: Infinity, showHidden: true })).not.toContain(canary);
    }
    // The error could have contained it.
    expect(stub.requests.map(({ headers }) => headers.authorization)).toEqual(Array(3).fill(`Bearer ${canary}`));
  });
});

function generation(): Record<string, string> {
  return { 'x-goog-generation': '1', 'x-goog-hash': 'crc32c=AAAAAA==', 'x-goog-stored-content-encoding': 'identity' };
}

function endlessListing(response: ServerResponse): void {
  sendJson(response, 200, { kind: 'storage#objects', items: [], nextPageToken: 't' });
}

/** Sends until the other side closes. */
function flood(response: ServerResponse, onSent: (bytes: number) => void): void {
  const more = (): void => {
    while (!response.destroyed && response.write(Buffer.alloc(16_384, 'x'))) onSent(16_384);
    if (!response.destroyed) response.once('drain', more);
  };
  more();
}
