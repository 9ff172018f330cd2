import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type RequestOptions } from 'node:https';
import { type AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { RingConflictError } from '@sealring/core';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
// @boundaries-ignore the servers that the tests share are not a package
import { selfSignedCertificate } from '../../../test/support/azure-key-vault/certificate.ts';
// @boundaries-ignore the servers that the tests share are not a package
import { kubeConfig } from '../../../test/support/kubernetes/api-server.ts';
import { type KubernetesRingClient, kubernetesRing } from '../src/index.ts';

/* Answers that no API server gives, but that a proxy, another service or a broken server may send. */

const UID = '11111111-2222-3333-4444-555555555555';
const revision = `${UID}/7`;
const secret = (change: object = {}, metadata: object = {}): object => ({
  kind: 'Secret',
  metadata: { name: 'ring', uid: UID, resourceVersion: '7', ...metadata },
  data: { ring: 'b25l' },
  ...change,
});

/** A client that sets no agent. */
const bareClient = (server: string, options: RequestOptions = {}): KubernetesRingClient => ({
  getCurrentCluster: () => ({ server }),
  applyToHTTPSOptions: async (asked) => void Object.assign(asked, options),
});

/** A ring at a server that answers in this way; `path` follows its address. */
async function ringAt(
  answer: (request: IncomingMessage, response: ServerResponse) => unknown,
  path = '',
  kind: 'Secret' | 'ConfigMap' = 'Secret',
) {
  const server = createServer((request, response) => void answer(request, response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const client = bareClient(`http://127.0.0.1:${port}${path}`);
  const ring = kubernetesRing({ namespace: 'sealring', name: 'ring', kind, client });
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
  test('an answer with the object is read as the ring', async () => {
    for (const document of ['one', 'x'.repeat(262_144)]) {
      const ring = await ringAt(sending(200, secret({ data: { ring: Buffer.from(document).toString('base64') } })));
      expect(await ring.read()).toEqual({ document, revision });
    }
  });

  test.each([
    ['another kind', secret({ kind: 'ConfigMap' })],
    ['another name', secret({}, { name: 'another' })],
    ['no uid', secret({}, { uid: undefined })],
    ['an invalid uid', secret({}, { uid: '../..' })],
    ['no version', secret({}, { resourceVersion: undefined })],
    ['the version 0, which sets no condition', secret({}, { resourceVersion: '0' })],
    ['a version that is not a number', secret({}, { resourceVersion: 'abc' })],
    ['no metadata', secret({ metadata: undefined })],
    ['a list', { kind: 'SecretList', items: [] }],
    ['text', '<html>'],
    ['nothing', ''],
    ['null', 'null'],
  ])('an answer with %s is reported as unavailable, never as an absent ring', async (_title, body) => {
    const ring = await ringAt(sending(200, body));
    await expect(ring.read()).rejects.toMatchObject({ kind: 'unavailable', detail: 'the answer is not the Secret' });
  });

  test.each([
    ['that is empty', '', 'empty'],
    ['that is not base64', 'b25l*', 'base64'],
    ['that is base64 without its padding', 'b25lcg', 'base64'],
    ['that is not text', 7, 'not text'],
  ])('an object with an entry %s is corrupt, and the error has its revision', async (_title, entry, detail) => {
    const ring = await ringAt(sending(200, secret({ data: { ring: entry } })));
    await expect(ring.read()).rejects.toMatchObject({
      kind: 'corrupt',
      detail: expect.stringContaining(detail),
      revision,
    });
  });

  test('an answer that is longer than any object is not read to its end', async () => {
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
      detail: 'the answer is longer than any that Kubernetes sends',
    });
    expect(sent).toBeLessThan(64 * 1024 * 1024);
  });

  test('a redirect of a request is not followed', async () => {
    const paths: unknown[] = [];
    const ring = await ringAt((request, response) => {
      paths.push(request.url);
      response.writeHead(307, { location: '/elsewhere' }).end();
    });
    await expect(ring.read()).rejects.toMatchObject({ kind: 'unavailable' });
    expect(paths).toEqual(['/api/v1/namespaces/sealring/secrets/ring']);
  });
});

test.each([
  ['no entry', {}],
  ['an entry that is not base64', { ring: 'b25l*' }],
  ['another document', { ring: 'dHdv' }],
])('a write whose answer has %s is reported as not stored', async (_title, data) => {
  const ring = await ringAt(sending(200, secret({ data })));
  const refusal = { kind: 'unavailable', detail: expect.stringContaining('webhooks') };
  await expect(ring.write('one', { expected: revision })).rejects.toMatchObject(refusal);
});

test('wrong arguments cause a TypeError, and no request is made', async () => {
  const ring = await ringAt(() => expect.unreachable());
  await expect(ring.read(Object({ timeout: 1 }))).rejects.toThrow(TypeError);
  await expect(ring.write('', { expected: undefined })).rejects.toThrow(TypeError);
  expect(() => ring.watch(Object('x'))).toThrow(TypeError);
});

test('the path prefix of an API server is kept, with and without trailing slashes', async () => {
  const paths: unknown[] = [];
  for (const prefix of ['/clusters/a', '/clusters/a//']) {
    const ring = await ringAt((request, response) => {
      paths.push(request.url);
      sending(200, secret())(request, response);
    }, prefix);
    await ring.read();
  }
  const path = '/clusters/a/api/v1/namespaces/sealring/secrets/ring';
  expect(paths).toEqual([path, path]);
});

test('a write is a merge patch with a condition, or creates a missing object', async () => {
  const seen: unknown[] = [];
  const ring = await ringAt(async (request, response) => {
    const { accept, 'user-agent': agent, 'content-type': type, 'content-length': length = '0' } = request.headers;
    const body = await text(request);
    seen.push({
      method: request.method,
      url: request.url,
      accept,
      agent,
      type,
      ...(body && { body: JSON.parse(body) }),
    });
    expect(Number(length)).toBe(Buffer.byteLength(body));
    const absent = { kind: 'Status', reason: 'NotFound', details: { kind: 'secrets', name: 'ring' } };
    sending(seen.length === 2 ? 404 : 200, seen.length === 2 ? absent : secret())(request, response);
  });
  await ring.write('one', { expected: revision });
  await ring.write('one', { expected: undefined });
  await ring.write('one', { expected: undefined });
  const url = '/api/v1/namespaces/sealring/secrets';
  const ours = { url: `${url}/ring`, accept: 'application/json', agent: 'sealring', type: undefined };
  const data = { ring: 'b25l' };
  const annotations = { 'sealring.dev/write': expect.stringMatching(/^[0-9a-f-]{36}$/) };
  const patch = (uid: string, resourceVersion: string) => ({
    ...ours,
    method: 'PATCH',
    type: 'application/merge-patch+json',
    body: { metadata: { uid, resourceVersion, annotations }, data },
  });
  const labels = { 'app.kubernetes.io/managed-by': 'sealring' };
  const metadata = { name: 'ring', namespace: 'sealring', labels, annotations };
  expect(seen).toEqual([
    patch(UID, '7'),
    { ...ours, method: 'GET' },
    {
      ...ours,
      method: 'POST',
      url,
      type: ours.accept,
      body: { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', data },
    },
    { ...ours, method: 'GET' },
    // A condition that no object fulfils.
    patch('00000000-0000-0000-0000-000000000000', '1'),
  ]);
});

test.each([
  'x',
  '7',
  '/',
  UID,
  `${UID}/`,
  `${UID}/0`,
  `${UID}/00`,
  `${UID}/-1`,
  `${UID}/abc`,
  `${UID}/7/8`,
  `${UID}/7x`,
  `${UID}/${'9'.repeat(20)}`,
  `x${UID}/7`,
  `${UID.replaceAll('1', 'g')}/7`,
  `${UID.slice(1)}/7`,
  'a/b"c',
])(
  'a write that expects the revision %j, which no ring ever had, is a conflict and makes no request',
  async (expected) => {
    const ring = await ringAt(() => expect.unreachable());
    await expect(ring.write('two', { expected })).rejects.toBeInstanceOf(RingConflictError);
  },
);

test('an https:// server is called over TLS', async () => {
  const { key, cert } = selfSignedCertificate();
  const server = createTlsServer({ key, cert }, sending(200, secret())).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const cluster = { server: `https://127.0.0.1:${port}`, caData: Buffer.from(cert).toString('base64') };
  for (const client of [kubeConfig(cluster, 'token'), bareClient(cluster.server, { ca: cert })]) {
    const ring = kubernetesRing({ namespace: 'sealring', name: 'ring', client });
    expect(await ring.read()).toEqual({ document: 'one', revision });
  }
  server.closeAllConnections();
});

test('a ConfigMap entry with a lone surrogate, which has no UTF-8 form, is corrupt', async () => {
  const ring = await ringAt(sending(200, secret({ kind: 'ConfigMap', data: { ring: '\ud800' } })), '', 'ConfigMap');
  await expect(ring.read()).rejects.toMatchObject({ kind: 'corrupt', detail: expect.stringContaining('UTF-8') });
});

test('a write to a ConfigMap also removes the entry from binaryData, because a key may be in only one of the two', async () => {
  let sent: unknown;
  const answer = secret({ kind: 'ConfigMap', data: { ring: 'one' } });
  const ring = await ringAt(
    async (request, response) => {
      sent = JSON.parse(await text(request));
      sending(200, answer)(request, response);
    },
    '',
    'ConfigMap',
  );
  await ring.write('one', { expected: revision });
  expect(sent).toMatchObject({ data: { ring: 'one' }, binaryData: { ring: null } });
});

describe('a watch', () => {
  test.each([
    ['an error and no end', JSON.stringify({ type: 'ERROR', object: { kind: 'Status', code: 410 } })],
    ['text', '<html>'],
    ['an event without a version', JSON.stringify({ type: 'ADDED', object: {} })],
  ])('a watch that gets %s is replaced by a new one', async (_title, line) => {
    let watches = 0;
    const ring = await ringAt((_request, response) => {
      watches += 1;
      response.writeHead(200).write(`${line}\n`);
    });
    ring.watch(() => undefined);
    await expect.poll(() => watches).toBeGreaterThan(1);
  });

  test('a watch that gets a line longer than any object is replaced by a new one', async () => {
    let watches = 0;
    const ring = await ringAt((_request, response) => {
      watches += 1;
      response.writeHead(200).write(Buffer.alloc(5 * 1024 * 1024, 0x61));
    });
    ring.watch(() => undefined);
    await expect.poll(() => watches).toBeGreaterThan(1);
  });

  test('a watch that is refused is started again, and the refusal is not a change', async () => {
    let [ended, heard] = [0, 0];
    const ring = await ringAt((_request, response) => {
      response.once('close', () => ended++);
      response.writeHead(403).write('{"kind":"Status"}');
    });
    ring.watch(() => heard++);
    await expect.poll(() => ended).toBeGreaterThan(1);
    expect(heard).toBe(0);
  });

  test('reads each event once it is complete, in whatever pieces it arrives', async () => {
    const [first, second] = [7, 8].map((version) =>
      JSON.stringify({ type: 'ADDED', object: { metadata: { resourceVersion: `${version}` } } }),
    );
    let [watches, heard] = [0, 0];
    const ring = await ringAt((_request, response) => {
      watches += 1;
      response.writeHead(200).write(`\n${first}\n${second?.slice(0, 9)}`);
      setImmediate(() => response.write(`${second?.slice(9)}\n{"type":`));
    });
    ring.watch(() => heard++);
    // It is also called once for the connection.
    await expect.poll(() => [watches, heard]).toEqual([1, 3]);
  });

  test('calls and watches end when the store is closed', async () => {
    const keepAlive = vi.spyOn(Socket.prototype, 'setKeepAlive');
    onTestFinished(() => keepAlive.mockRestore());
    const ends: Promise<unknown>[] = [];
    const ring = await ringAt((_request, response) => {
      ends.push(once(response, 'close'));
      response.writeHead(200).flushHeaders();
    });
    const reading = ring.read();
    await new Promise<void>((connected) => void ring.watch(connected));
    await expect.poll(() => ends.length).toBe(2);
    expect(keepAlive).toHaveBeenCalledWith(true, 15_000);
    await ring.close();
    await expect(reading).rejects.toMatchObject({ kind: 'unavailable' });
    await Promise.all(ends);
  });
});
