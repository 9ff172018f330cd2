import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
// @boundaries-ignore the servers of the tests are shared, and no package
import { kubeConfig } from '../../../test/support/kubernetes/api-server.ts';
import { kubernetesRing } from '../src/index.ts';

/* Answers that no API server gives: what a proxy, another service or a broken server may send in its place. */

const UID = '11111111-2222-3333-4444-555555555555';
const revision = `${UID}/7`;
const secret = (change: object = {}, metadata: object = {}): object => ({
  kind: 'Secret',
  metadata: { name: 'ring', uid: UID, resourceVersion: '7', ...metadata },
  data: { ring: 'b25l' },
  ...change,
});

/** A ring at a server that answers in this way; `path` is behind its address. */
async function ringAt(answer: (request: IncomingMessage, response: ServerResponse) => void, path = '') {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const client = kubeConfig({ server: `http://127.0.0.1:${port}${path}`, skipTLSVerify: true }, 'token');
  const ring = kubernetesRing({ namespace: 'sealring', name: 'ring', client });
  onTestFinished(async () => {
    await ring.close();
    server.closeAllConnections();
    server.close();
  });
  return ring;
}

const sending =
  (status: number, body: unknown) =>
  (_request: IncomingMessage, response: ServerResponse): void => {
    response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body));
  };

describe('an answer to a read', () => {
  test('with the object is read as the ring', async () => {
    const ring = await ringAt(sending(200, secret()));
    expect(await ring.read()).toEqual({ document: 'one', revision });
  });

  test.each([
    ['another kind', secret({ kind: 'ConfigMap' })],
    ['another name', secret({}, { name: 'another' })],
    ['no uid', secret({}, { uid: undefined })],
    ['a uid that is none', secret({}, { uid: '../..' })],
    ['no version', secret({}, { resourceVersion: undefined })],
    ['the version 0, which is no condition', secret({}, { resourceVersion: '0' })],
    ['a version that is no number', secret({}, { resourceVersion: 'abc' })],
    ['no metadata', secret({ metadata: undefined })],
    ['a list', { kind: 'SecretList', items: [] }],
    ['text', '<html>'],
    ['nothing', ''],
    ['null', 'null'],
  ])('with %s is unavailable, never an absent ring', async (_title, body) => {
    const ring = await ringAt(sending(200, body));
    await expect(ring.read()).rejects.toMatchObject({ kind: 'unavailable', detail: 'the answer is not the Secret' });
  });

  test.each([
    ['that is not base64', 'b25l*', 'base64'],
    ['that is base64 without its padding', 'b25lcg', 'base64'],
    ['that is not text', 7, 'not text'],
  ])('with an entry %s is corrupt, and has its revision', async (_title, entry, detail) => {
    const ring = await ringAt(sending(200, secret({ data: { ring: entry } })));
    await expect(ring.read()).rejects.toMatchObject({
      kind: 'corrupt',
      detail: expect.stringContaining(detail),
      revision,
    });
  });

  test('that is longer than any object is not read to its end', async () => {
    let sent = 0;
    const ring = await ringAt((_request, response) => {
      response.writeHead(200);
      const chunk = Buffer.alloc(65_536, 0x20);
      const more = (): void => {
        do sent += chunk.length;
        while (!response.destroyed && response.write(chunk));
        response.once('drain', more);
      };
      more();
    });
    await expect(ring.read()).rejects.toMatchObject({
      kind: 'unavailable',
      detail: expect.stringContaining('longer than any answer'),
    });
    expect(sent).toBeLessThan(64 * 1024 * 1024);
  });

  test('that sends the request elsewhere is not followed', async () => {
    const paths: unknown[] = [];
    const ring = await ringAt((request, response) => {
      paths.push(request.url);
      response.writeHead(307, { location: '/elsewhere' }).end();
    });
    await expect(ring.read()).rejects.toMatchObject({ kind: 'unavailable' });
    expect(paths).toEqual(['/api/v1/namespaces/sealring/secrets/ring']);
  });
});

test('the path of an API server that is behind a prefix is kept, with and without a slash at its end', async () => {
  const paths: unknown[] = [];
  for (const prefix of ['/clusters/a', '/clusters/a/']) {
    const ring = await ringAt((request, response) => {
      paths.push(request.url);
      sending(200, secret())(request, response);
    }, prefix);
    await ring.read();
  }
  const path = '/clusters/a/api/v1/namespaces/sealring/secrets/ring';
  expect(paths).toEqual([path, path]);
});

describe('a watch', () => {
  test.each([
    ['an error and no end', JSON.stringify({ type: 'ERROR', object: { kind: 'Status', code: 410 } })],
    ['text', '<html>'],
    ['an event without a version', JSON.stringify({ type: 'ADDED', object: {} })],
  ])('that gets %s is replaced by a new one', async (_title, line) => {
    let watches = 0;
    const ring = await ringAt((_request, response) => {
      watches += 1;
      response.writeHead(200).write(`${line}\n`);
    });
    ring.watch(() => undefined);
    await expect.poll(() => watches).toBeGreaterThan(1);
  });

  test('that gets a line longer than any object is replaced by a new one', async () => {
    let watches = 0;
    const ring = await ringAt((_request, response) => {
      watches += 1;
      response.writeHead(200).write(Buffer.alloc(5 * 1024 * 1024, 0x61));
    });
    ring.watch(() => undefined);
    await expect.poll(() => watches, { timeout: 5_000 }).toBeGreaterThan(1);
  });

  test('ends when the store is closed', async () => {
    let open = 0;
    const ring = await ringAt((_request, response) => {
      open += 1;
      response.once('close', () => open--);
      response.writeHead(200).flushHeaders();
    });
    ring.watch(() => undefined);
    await expect.poll(() => open).toBe(1);
    await ring.close();
    await expect.poll(() => open).toBe(0);
  });
});
