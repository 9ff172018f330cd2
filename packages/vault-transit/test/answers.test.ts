import { getEventListeners, once } from 'node:events';
import { createServer } from 'node:net';
import type { WrappedKey } from '@sealring/core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { VaultTransitKeyWrapperOptions } from '../src/index.ts';
import {
  CALLS,
  ciphertextOf,
  context,
  hasOpenBao,
  newKey,
  openbao,
  sampleKey,
  type Wrapper,
  withCiphertext,
  wrapperFor,
} from './fixture.ts';
import { type PassingAnswer, type SpoilingProxy, startSpoilingProxy } from './spoiling-proxy.ts';

let proxy: SpoilingProxy;
let name: string;
let made: WrappedKey;

function setUp(options: Partial<VaultTransitKeyWrapperOptions> = {}): Wrapper {
  return wrapperFor(name, { address: proxy.address, maxAttempts: 2, ...options });
}

/** Changes `data` in an answer of Vault. */
function data(change: (found: Record<string, unknown>) => unknown): (answer: PassingAnswer) => Partial<PassingAnswer> {
  return ({ body }) => {
    const answer = JSON.parse(body);
    return { body: JSON.stringify({ ...answer, data: change(answer.data) }) };
  };
}

function flipped(text: unknown, at: number): string {
  const bytes = Buffer.from(String(text));
  bytes[at] = bytes[at] === 65 ? 66 : 65;
  return bytes.toString();
}

describe.skipIf(!hasOpenBao)('a proxy between the key wrapper and a real OpenBao', () => {
  beforeAll(async () => {
    proxy = await startSpoilingProxy(openbao.address);
    name = await newKey();
    made = await wrapperFor(name).wrap(sampleKey(), { context });
  });
  afterEach(() => {
    proxy.restore();
    proxy.requests.length = 0;
  });
  afterAll(() => proxy.close());

  describe('adapter rule 4: checks of the answer', () => {
    const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');
    const both: [string, (answer: PassingAnswer) => Partial<PassingAnswer>][] = [
      ['an empty body', () => ({ body: '' })],
      ['204 without a body, as for a write to another engine', () => ({ status: 204, body: '' })],
      ['{}', () => ({ body: '{}' })],
      ['null', () => ({ body: 'null' })],
      ['an array', () => ({ body: '[]' })],
      ['data that is null, as in a wrapped response', data(() => null)],
      ['data that is text', data(() => 'plaintext')],
      ['a body of more than 64 KiB', ({ body }) => ({ body: body + ' '.repeat(65_536) })],
      ['an error of more than 64 KiB', () => ({ status: 500, body: 'x'.repeat(65_537) })],
    ];
    const ofWrap: typeof both = [
      ['no ciphertext', data(() => ({ key_version: 1 }))],
      ['a ciphertext in a list', data((d) => ({ ...d, ciphertext: [d['ciphertext']] }))],
      [
        'a ciphertext of version 0',
        data((d) => ({ ...d, ciphertext: String(d['ciphertext']).replace('v1', 'v0'), key_version: 0 })),
      ],
      [
        'another version in the ciphertext',
        data((d) => ({ ...d, ciphertext: String(d['ciphertext']).replace('v1', 'v2') })),
      ],
      ['another version beside the ciphertext', data((d) => ({ ...d, key_version: 2 }))],
      ['no version beside the ciphertext', data(({ ciphertext }) => ({ ciphertext }))],
      ['a truncated ciphertext', data((d) => ({ ...d, ciphertext: String(d['ciphertext']).slice(0, -8) }))],
      [
        'a ciphertext that is too long',
        data((d) => ({ ...d, ciphertext: String(d['ciphertext']) + 'AAAA'.repeat(100) })),
      ],
      [
        'a ciphertext with another alphabet',
        data((d) => ({ ...d, ciphertext: `${String(d['ciphertext']).slice(0, -4)}-_--` })),
      ],
    ];
    const ofUnwrap: typeof both = [
      ['no plaintext', data(() => ({}))],
      ['a plaintext of 31 bytes', data(() => ({ plaintext: base64(sampleKey().subarray(1)) }))],
      ['a plaintext of 33 bytes', data(() => ({ plaintext: base64(Uint8Array.of(...sampleKey(), 1)) }))],
      ['a plaintext of 32 equal bytes', data(() => ({ plaintext: base64(new Uint8Array(32)) }))],
      ['a truncated plaintext', data((d) => ({ plaintext: String(d['plaintext']).slice(0, -1) }))],
      ['a plaintext that is not base64', data((d) => ({ plaintext: `!${String(d['plaintext']).slice(1)}` }))],
      ['a plaintext with stray bits', data((d) => ({ plaintext: flipped(d['plaintext'], 42).replace(/.=$/, 'B=') }))],
      ['a plaintext as a list', data(() => ({ plaintext: [...sampleKey()] }))],
    ];
    const spoilt = [
      ...both.flatMap(([what, spoil]) => CALLS.map(([call, run]) => ({ what, call, spoil, run }))),
      ...ofWrap.map(([what, spoil]) => ({ what, call: 'wrap', spoil, run: CALLS[0]?.[1] })),
      ...ofUnwrap.map(([what, spoil]) => ({ what, call: 'unwrap', spoil, run: CALLS[1]?.[1] })),
    ];
    test.each(spoilt)(
      'an answer to $call with $what is reported as corrupt, and no retry follows',
      async ({ spoil, call, run }) => {
        proxy.spoilAnswers(spoil);
        const refusal = { name: 'KeyWrapperError', kind: 'corrupt', summary: { operation: call } };
        await expect(run?.(setUp(), made)).rejects.toMatchObject(refusal);
        expect(proxy.requests).toHaveLength(1);
      },
    );

    test('a ciphertext byte flipped on the way to or from Vault makes the unwrap fail as corrupt', async () => {
      const length = ciphertextOf(made).length;
      for (let at = 9; at < length; at += 7) {
        proxy.spoilAnswers(data((d) => ({ ...d, ciphertext: flipped(d['ciphertext'], at) })));
        const wrapped = await setUp().wrap(sampleKey(), { context });
        proxy.restore();
        await expect(setUp().unwrap(wrapped, { context })).rejects.toMatchObject({ kind: 'corrupt' });
        proxy.spoilRequests((body) => {
          const request = JSON.parse(body);
          return JSON.stringify({ ...request, ciphertext: flipped(request.ciphertext, at) });
        });
        await expect(setUp().unwrap(made, { context })).rejects.toMatchObject({ kind: 'corrupt' });
      }
    });
  });

  describe('adapter rule 6: the KMS key of a call', () => {
    test.each([
      ['another provider', { provider: 'aws-kms' }],
      ['another key', { keyId: 'transit/keys/other:v1' }],
      ['another mount', { keyId: () => `other/keys/${name}:v1` }],
      ['a namespace', { keyId: () => `team/transit/keys/${name}:v1` }],
      ['an address', { keyId: () => `https://vault.example.com/transit/keys/${name}:v1` }],
      ['no version', { keyId: () => `transit/keys/${name}` }],
      ['version 0', { keyId: () => `transit/keys/${name}:v0` }],
      ['another version than its ciphertext', { keyId: () => `transit/keys/${name}:v2` }],
      ['a path out of the mount', { keyId: () => `transit/keys/../keys/${name}:v1` }],
      ['nothing', { keyId: '' }],
    ])('contract 3: a wrapped key that names %s is corrupt, and no request is made', async (_, change) => {
      const { keyId = made.keyId, provider = made.provider } = { keyId: undefined, provider: undefined, ...change };
      const relabelled = { ...made, provider, keyId: typeof keyId === 'string' ? keyId : keyId() };
      await expect(setUp().unwrap(relabelled, { context })).rejects.toMatchObject({ kind: 'corrupt' });
      expect(proxy.requests).toEqual([]);
    });

    test.each([
      ['version 0', (text: string) => text.replace(':v1:', ':v0:')],
      ['version 01', (text: string) => text.replace(':v1:', ':v01:')],
      ['version +1', (text: string) => text.replace(':v1:', ':v+1:')],
      ['another version', (text: string) => text.replace(':v1:', ':v2:')],
      ['white space', (text: string) => `${text}\n`],
      ['base64url', (text: string) => `${text.slice(0, -4)}-_-_`],
      ['a missing group', (text: string) => text.slice(0, -4)],
      ['too many bytes', (text: string) => text + 'AAAA'.repeat(50)],
      ['nothing', () => ''],
    ])(
      'a wrapped key whose ciphertext has %s is corrupt, and no request is made, though Vault might accept it',
      async (_, change) => {
        const changed = withCiphertext(made, change(ciphertextOf(made)));
        await expect(setUp().unwrap(changed, { context })).rejects.toMatchObject({ kind: 'corrupt' });
        expect(proxy.requests).toEqual([]);
      },
    );

    test('owns() refuses wrapped keys that name another provider, another key or no version, without a request', () => {
      expect(setUp().owns?.(made)).toBe(true);
      for (const other of [
        { provider: 'aws-kms' },
        { keyId: 'transit/keys/other:v1' },
        { keyId: `transit/keys/${name}` },
      ]) {
        expect(setUp().owns?.({ ...made, ...other })).toBe(false);
      }
      expect(proxy.requests).toEqual([]);
    });
  });

  describe('contract 4: wrong arguments', () => {
    test.each<[string, (w: Wrapper) => Promise<unknown>, typeof TypeError | typeof RangeError]>([
      ['a data key of 31 bytes', (w) => w.wrap(sampleKey().subarray(1), { context }), RangeError],
      ['no options', (w) => w.wrap(sampleKey(), Object(undefined)), TypeError],
      ['a wrapped key that is text', (w) => w.unwrap(Object('blob'), { context }), TypeError],
    ])('%s is rejected with a TypeError or RangeError, and no request is made', async (_, run, type) => {
      await expect(run(setUp())).rejects.toThrow(type);
      expect(proxy.requests).toEqual([]);
    });

    test('contract 1: a data key that the caller overwrites during the call is wrapped as it was given', async () => {
      const dataKey = sampleKey();
      const wrapping = setUp().wrap(dataKey, { context });
      dataKey.fill(0);
      expect(await setUp().unwrap(await wrapping, { context })).toEqual(sampleKey());
    });
  });

  describe('adapter rule 3: retries', () => {
    test.each([
      ['a 503 with an HTML body', { status: 503, body: '<html>' }, 'unavailable', 2],
      ['a 500', { status: 500, body: '{"errors":["internal error"]}' }, 'unavailable', 2],
      ['a 429', { status: 429, body: '' }, 'throttled', 2],
      ['a 400 for an unknown reason', { status: 400, body: '{"errors":["something new"]}' }, 'unavailable', 2],
      ['a 200 that is not JSON', { status: 200, body: '<html>welcome</html>' }, 'unavailable', 2],
      ['a 200 that is half of its JSON', { status: 200, body: '{"data":{"plaint' }, 'unavailable', 2],
      ['a 403 with an HTML body', { status: 403, body: '<html>' }, 'denied', 1],
      ['a 401', { status: 401, body: '' }, 'denied', 1],
      ['a 404', { status: 404, body: '' }, 'not-found', 1],
    ])('only a transient failure is retried: %s', async (_, answer, kind, attempts) => {
      for (const [, run] of CALLS) {
        proxy.requests.length = 0;
        proxy.answer(answer);
        await expect(run(setUp(), made)).rejects.toMatchObject({ kind, summary: { status: answer.status, attempts } });
        expect(proxy.requests).toHaveLength(attempts);
      }
    });

    test.each([undefined, '200', Number.NaN, 0, 1000])(
      'an answer with the status %j is reported as unavailable',
      async (status) => {
        const client = { fetch: async () => ({ status: status as number, headers: new Headers(), body: null }) };
        await expect(setUp({ client }).unwrap(made, { context })).rejects.toMatchObject({
          kind: 'unavailable',
          summary: { status: undefined },
        });
      },
    );

    test('an answer with invalid UTF-8, within it or at its end, is reported as unavailable', async () => {
      const good = Buffer.from(
        JSON.stringify({ data: { plaintext: Buffer.from(sampleKey()).toString('base64') }, x: '' }),
      );
      const client = { fetch: async () => new Response(good) };
      expect(await setUp({ client }).unwrap(made, { context })).toEqual(sampleKey());
      const within = Buffer.concat([good.subarray(0, -2), Buffer.of(0xff), good.subarray(-2)]);
      for (const bad of [within, Buffer.concat([good, Buffer.of(0xc3)])]) {
        const spoilt = { fetch: async () => new Response(bad) };
        await expect(setUp({ client: spoilt }).unwrap(made, { context })).rejects.toMatchObject({
          kind: 'unavailable',
        });
      }
    });

    test('an answer of exactly 64 KiB is read, even in chunks that split its characters', async () => {
      const text = JSON.stringify({
        data: { plaintext: Buffer.from(sampleKey()).toString('base64') },
        x: 'é'.repeat(8),
      });
      const whole = new Uint8Array(65_536).fill(0x20);
      whole.set(Buffer.from(text));
      async function* body(): AsyncGenerator<Uint8Array> {
        for (let at = 0; at < whole.length; at += 7) yield whole.slice(at, at + 7);
      }
      const client = { fetch: async () => ({ status: 200, headers: new Headers(), body: body() }) };
      expect(await setUp({ client }).unwrap(made, { context })).toEqual(sampleKey());
    });

    test('an answer whose body is not bytes, and so has no length, is reported as unavailable', async () => {
      const text = JSON.stringify({ data: { plaintext: Buffer.from(sampleKey()).toString('base64') } });
      const other: unknown = Uint8Array.from(Buffer.from(text)).buffer;
      async function* body(): AsyncGenerator<Uint8Array> {
        yield other as Uint8Array;
      }
      const client = { fetch: async () => ({ status: 200, headers: new Headers(), body: body() }) };
      await expect(setUp({ client }).unwrap(made, { context })).rejects.toMatchObject({ kind: 'unavailable' });
    });

    test('adapter rule 5: every chunk of an answer is overwritten', async () => {
      const text = JSON.stringify({ data: { plaintext: Buffer.from(sampleKey()).toString('base64') } });
      const pieces = [text.slice(0, 25), text.slice(25)].map((piece) => new Uint8Array(Buffer.from(piece)));
      async function* body(): AsyncGenerator<Uint8Array> {
        yield* pieces;
      }
      const client = { fetch: async () => ({ status: 200, headers: new Headers(), body: body() }) };
      expect(await setUp({ client }).unwrap(made, { context })).toEqual(sampleKey());
      for (const piece of pieces) expect(piece).toEqual(new Uint8Array(piece.length));
    });

    test('a warning that associated_data is ignored is recognized among other warnings, which have no effect', async () => {
      const warn = (...warnings: unknown[]): void =>
        proxy.spoilAnswers(({ body }) => ({ body: JSON.stringify({ ...JSON.parse(body), warnings }) }));
      warn('something else', 7);
      expect(await setUp().unwrap(made, { context })).toEqual(sampleKey());
      warn('something else', 'Endpoint ignored these unrecognized parameters: [associated_data]');
      await expect(setUp().unwrap(made, { context })).rejects.toMatchObject({ kind: 'denied' });
    });

    test('a call that fails once succeeds when it is retried', async () => {
      let failures = 1;
      proxy.spoilAnswers(() => (failures-- > 0 ? { status: 503, body: '' } : {}));
      expect(await setUp().unwrap(made, { context })).toEqual(sampleKey());
      expect(proxy.requests).toHaveLength(2);
    });

    test.each<[string, () => string | Promise<string>]>([
      [
        'throws',
        () => {
          throw new Error('renewal failed');
        },
      ],
      ['rejects', () => Promise.reject(new Error('renewal failed'))],
      ['returns nothing', () => ''],
      ['returns a list', () => Object(['hvs.token'])],
      ['returns a line break', () => 'hvs.token\n'],
    ])('a token function that %s is reported as unavailable, not denied, and no request is made', async (_, token) => {
      await expect(setUp({ token }).unwrap(made, { context })).rejects.toMatchObject({
        kind: 'unavailable',
        summary: { hint: expect.stringContaining('token function'), attempts: 2 },
      });
      expect(proxy.requests).toEqual([]);
    });
  });

  describe('redirects', () => {
    test.each([301, 302, 303, 307, 308])(
      'a redirect with status %i is reported as unavailable, and the token is not sent elsewhere',
      async (status) => {
        const elsewhere = await startSpoilingProxy(openbao.address);
        for (const [, run] of CALLS) {
          proxy.spoilAnswers(() => ({
            status,
            headers: { Location: `${elsewhere.address}/v1/transit/decrypt/${name}` },
          }));
          await expect(run(setUp({ maxAttempts: 1 }), made)).rejects.toMatchObject({
            kind: 'unavailable',
            summary: { status, hint: expect.stringContaining('standby') },
          });
        }
        expect(elsewhere.requests).toEqual([]);
        await elsewhere.close();
      },
    );
  });

  describe('the end of every call (F29)', () => {
    test.each(CALLS)(
      '%s: a Vault that hangs before or during its answer is reported as unavailable, and its connection is closed',
      async (_, run) => {
        for (const where of ['before', 'inBody'] as const) {
          const before = proxy.abandoned;
          proxy.hang(where);
          await expect(run(setUp({ callTimeoutSeconds: 0.2 }), made)).rejects.toMatchObject({
            kind: 'unavailable',
            summary: { attempts: 2, hint: expect.stringContaining('callTimeoutSeconds') },
          });
          await expect.poll(() => proxy.abandoned).toBe(before + 2);
        }
      },
    );

    test.each(CALLS)(
      '%s: a connection that is reset before or during an answer makes the call unavailable after a retry',
      async (_, run) => {
        for (const where of ['before', 'inBody'] as const) {
          proxy.reset(where);
          await expect(run(setUp(), made)).rejects.toMatchObject({ kind: 'unavailable', summary: { attempts: 2 } });
        }
      },
    );

    test('a port where nothing listens is reported as unavailable, with the code of the error', async () => {
      const gone = await startSpoilingProxy('');
      await gone.close();
      await expect(setUp({ address: gone.address }).unwrap(made, { context })).rejects.toMatchObject({
        kind: 'unavailable',
        summary: { code: 'ECONNREFUSED', attempts: 2 },
      });
    });

    test('a server without TLS at an https address is reported as unavailable', async () => {
      const address = proxy.address.replace('http:', 'https:');
      await expect(setUp({ address }).unwrap(made, { context })).rejects.toMatchObject({ kind: 'unavailable' });
    });

    test('a body without an end is cut off at 64 KiB', async () => {
      const closed: Promise<unknown>[] = [];
      const server = createServer((socket) => {
        closed.push(new Promise((resolve) => socket.on('close', resolve)));
        socket.on('error', () => {});
        socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
        const more = (): void => {
          if (!socket.destroyed) socket.write(`1000\r\n${' '.repeat(4096)}\r\n`, () => setImmediate(more));
        };
        more();
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const { port } = Object(server.address());
      const keyWrapper = setUp({ address: `http://127.0.0.1:${port}` });
      await expect(keyWrapper.unwrap(made, { context })).rejects.toMatchObject({
        kind: 'corrupt',
        summary: { attempts: 1, hint: expect.stringContaining('64 KiB') },
      });
      // Ends only when the client has closed its side. Other programs of the machine may connect to this port too.
      expect(closed.length).toBeGreaterThanOrEqual(1);
      await Promise.all(closed);
      server.close();
    });

    test.each(CALLS)('contract 5: %s: an abort ends a call immediately, without a retry', async (_, run) => {
      proxy.hang();
      const controller = new AbortController();
      const { signal } = controller;
      const call = run(setUp(), made, { context, signal });
      await expect.poll(() => proxy.requests.length).toBe(1);
      controller.abort();
      await expect(call).rejects.toMatchObject({ kind: 'unavailable', summary: { attempts: 1 } });
      expect(proxy.requests).toHaveLength(1);
      expect(getEventListeners(signal, 'abort')).toEqual([]);
    });

    test('contract 5: a call whose signal is already aborted makes no request', async () => {
      const signal = AbortSignal.abort();
      await expect(setUp().wrap(sampleKey(), { context, signal })).rejects.toMatchObject({ kind: 'unavailable' });
      await expect(setUp().unwrap(made, { context, signal })).rejects.toMatchObject({ kind: 'unavailable' });
      expect(proxy.requests).toEqual([]);
    });

    test('close() ends calls in progress and refuses later ones', async () => {
      proxy.hang();
      const keyWrapper = setUp({ maxAttempts: 1 });
      const call = keyWrapper.unwrap(made, { context });
      await expect.poll(() => proxy.requests.length).toBe(1);
      await keyWrapper.close();
      const closed = { kind: 'unavailable', summary: { hint: expect.stringContaining('closed') } };
      await expect(call).rejects.toMatchObject(closed);
      proxy.restore();
      await expect(keyWrapper.unwrap(made, { context })).rejects.toMatchObject(closed);
      expect(proxy.requests).toHaveLength(1);
    });
  });
});
