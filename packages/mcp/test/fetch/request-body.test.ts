import { describe, expect, test } from 'vitest';
import { readRequestBody } from '../../src/fetch/request-body.ts';

/** A request whose body arrives in these chunks, and how many of them were read. */
function arriving(chunks: readonly (string | Uint8Array)[], headers: Record<string, string> = {}) {
  const seen: { read: number; cancelled: unknown } = { read: 0, cancelled: undefined };
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const chunk = chunks[seen.read];
        if (chunk === undefined) return controller.close();
        seen.read += 1;
        controller.enqueue(Buffer.from(chunk));
      },
      cancel(reason: unknown) {
        seen.cancelled = reason ?? 'without a reason';
      },
    },
    { highWaterMark: 0 },
  );
  return { seen, request: new Request('http://127.0.0.1/mcp', { method: 'POST', body, headers, duplex: 'half' }) };
}

describe('a body', () => {
  test.each([
    ['{}', 'json'],
    ['[]', 'json'],
    ['/**/{}', 'other'],
    ['#\n{}', 'other'],
  ])('a body that begins with %j is read whole, and is treated as %s', async (text, kind) => {
    const { request, seen } = arriving([' \n', text.slice(0, 1), text.slice(1), ' ']);
    expect((await readRequestBody(request, 1_000)).kind).toBe(kind);
    expect(seen.read).toBe(4);
  });

  test.each(
    [0xfeff, 0x85, 0xa0, 0x1680, 0x2000, 0x2007, 0x200a, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0, 0x1f].map((code) =>
      String.fromCharCode(code),
    ),
  )('a body is not streamed past the check after %j, which some parsers skip', async (space) => {
    const forged = `${space}{"method":"tools/call","a":NaN}`;
    expect(await readRequestBody(arriving([space, forged]).request, 1_000)).toMatchObject({
      kind: 'refused',
      status: 400,
    });
  });

  test.each(['a=1', 'é{}', '"{}"'])('a body that begins like %j is streamed to the handler', async (text) => {
    const { request, seen } = arriving([' ', text, 'more']);
    const read = await readRequestBody(request, 2);
    expect([read.kind, seen.read]).toEqual(['other', 2]);
    expect(read.kind === 'other' && (await read.request.text())).toBe(` ${text}more`);
  });

  test.each([
    ['Latin-1', 'a=1', 'other', 1],
    ['Latin-1', '{}', 'refused', 1],
    ['UTF-16', 'a=1', 'refused', 0],
  ])('a body in %s that begins with %j is treated as %s', async (charset, text, kind, chunks) => {
    const headers = { 'content-type': `text/plain; charset=${charset === 'Latin-1' ? 'iso-8859-1' : 'utf-16'}` };
    const { request, seen } = arriving([text, 'more'], headers);
    const read = await readRequestBody(request, 1_000);
    expect([read.kind, seen.read]).toEqual([kind, chunks]);
    expect(read.kind === 'refused' && read.status).toBe(kind === 'refused' && 415);
    expect(seen.cancelled).toBe(kind === 'refused' && chunks > 0 ? 'without a reason' : undefined);
  });

  test('a streamed body is cancelled with the reason that the handler gives', async () => {
    const { request, seen } = arriving(['a=1', 'more']);
    const read = await readRequestBody(request, 2);
    if (read.kind === 'other') await read.request.body?.cancel('no interest');
    expect(seen).toEqual({ read: 1, cancelled: 'no interest' });
  });

  test.each([
    ['{', '10', 'json', 3],
    ['{', '11', 'refused', 1],
    ['a', '11', 'other', 1],
  ])(
    'under a limit of 10 bytes, a body that begins with %j and has the content-length %s is treated as %s',
    async (first, length, kind, chunks) => {
      const { request, seen } = arriving([first, '"a"', ':1}'], { 'content-length': length });
      expect((await readRequestBody(request, 10)).kind).toBe(kind);
      expect(seen.read).toBe(chunks);
      expect(seen.cancelled).toBe(kind === 'refused' ? 'without a reason' : undefined);
    },
  );
});

test.each([
  ['text/event-stream', 'gzip', null],
  ['application/json, text/event-stream', 'gzip', null],
  ['text/html', 'gzip', 'gzip'],
  [undefined, 'gzip', 'gzip'],
  ['text/event-stream', undefined, null],
])(
  'a request without a body that accepts %s in %s is passed on with accept-encoding %s',
  async (accept, sent, left) => {
    const headers = { ...(accept && { accept }), ...(sent && { 'accept-encoding': sent }) };
    const request = Object.assign(new Request('http://127.0.0.1/mcp', { headers }), { user: 'ada' });
    const read = await readRequestBody(request, 10);
    if (read.kind !== 'other') throw new Error(read.kind);
    expect(read.request.headers.get('accept-encoding')).toBe(left);
    expect(read.request).toHaveProperty('user', 'ada');
    expect(Object.is(read.request, request)).toBe((sent ?? null) === left);
  },
);
