import { gzipSync } from 'node:zlib';
import { McpServer } from '@modelcontextprotocol/server';
import { describe, expect, test } from 'vitest';
import {
  authenticatedPrincipal,
  createProtectedMcpServer,
  type FetchHandler,
  memorySingleUse,
  protectFetch,
  RequestStateSecurity,
} from '../../src/index.ts';
import { clockAt } from '../support/exchange.ts';
import {
  gate,
  modern,
  NOT_SEALED,
  REFUSED,
  registerRefund,
  serveHttp,
  signedIn,
  tokenOf,
  YES,
} from '../support/served.ts';
import { clientOf, codec, plainHandler, serveProtected } from './fetch-server.ts';

const REFUND = { name: 'refund', arguments: { order: 'A1' } };
const answering =
  (answer: (request: Request) => Response | Promise<Response>): FetchHandler =>
  async (request) =>
    await answer(request);
const result = (value: unknown, id: unknown = 1): string => JSON.stringify({ jsonrpc: '2.0', id, result: value });
const ASKED = { resultType: 'input_required', requestState: 'the plaintext' };

describe.each(['json', 'sse'] as const)('protectFetch around a handler that answers with %s', (mode) => {
  test('serves tools, prompts and resources to the official client in two rounds', async () => {
    const seen: unknown[] = [];
    await using served = await serveProtected(plainHandler(mode, seen), { requireSubject: true });
    const client = await clientOf(served.url);
    expect((await client.callTool(REFUND)).content).toEqual([{ type: 'text', text: 'asked:A1' }]);
    expect((await client.getPrompt({ name: 'terms' })).messages[0]?.content).toEqual({
      type: 'text',
      text: 'asked:terms',
    });
    const { contents } = await client.readResource({ uri: 'note:7' });
    expect(contents).toEqual([{ uri: 'note:7', text: 'asked:note:7' }]);
    await client.close();
    expect(seen).toHaveLength(6);
    expect(seen[1]).toEqual({ state: 'asked:A1', answers: YES });
    expect(served.events).toEqual([]);
  });

  test('sends a token, and no part of the state', async () => {
    await using served = await serveProtected(plainHandler(mode));
    const { text } = await served.post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: modern(REFUND) });
    expect(text).toContain('"requestState":"v1.');
    expect(text).not.toContain('asked:');
    expect(text.startsWith('{')).toBe(mode === 'json');
  });

  describe('requests that are refused', () => {
    const other = (change: Record<string, unknown>) => ({ ...REFUND, ...change });
    test.each([
      ['a plaintext state', 'malformed', { params: { requestState: 'asked:A1' } }],
      ['a tampered token', 'authentication failed', { tamper: true }],
      ['a state that is not a string', 'non-string requestState', { params: { requestState: { a: 1 } } }],
      ['other arguments', 'request binding', { params: other({ arguments: { order: 'A2' } }) }],
      ['another tool', 'request binding', { params: other({ name: 'cancel' }) }],
      ['another method', 'request binding', { method: 'prompts/get', params: { name: 'refund' } }],
      ['another user', 'principal', { user: 'mallory' }],
      ['a request without a user', 'principal drift', { user: '' }],
      ['an expired token', 'expired', { wallMs: 601_000 }],
      ['a token of another audience', 'audience', { audience: 'another desk' }],
    ])('protectFetch refuses %s as protectRequestState does, without a handler call', async (_name, reason, attack) => {
      const { tamper, params, method, user, wallMs, audience } = Object(attack);
      const seen: unknown[] = [];
      let now = 1_795_000_000_000;
      const policy = { clock: { ...clockAt(0), wallMs: () => now } };
      await using served = await serveProtected(plainHandler(mode, seen), policy);
      await using elsewhere = await serveProtected(plainHandler(mode), policy, { audience: audience ?? 'desk' });
      const sealed = tokenOf(Object(await elsewhere.ask(REFUND)));
      const requestState = tamper === true ? `${sealed.slice(0, -8)}AAAAAAAA` : sealed;
      now += wallMs ?? 0;
      const sent = { ...REFUND, requestState, inputResponses: YES, ...params };
      const answer = await served.ask(sent, { user, method });
      expect(answer).toEqual({ jsonrpc: '2.0', id: 1, error: REFUSED });
      expect(served.events).toEqual([{ direction: 'inbound', method: method ?? 'tools/call', reason }]);
      expect(served.errors).toHaveLength(1);
      expect(seen).toEqual([]);
    });
  });

  test('refuses states of requests without a subject in both directions under requireSubject', async () => {
    await using lenient = await serveProtected(plainHandler(mode));
    await using served = await serveProtected(plainHandler(mode), { requireSubject: true });
    const requestState = tokenOf(Object(await lenient.ask(REFUND, { user: '' })));
    expect(await served.ask(REFUND, { user: '' })).toMatchObject({ error: NOT_SEALED });
    expect(await served.ask({ ...REFUND, requestState }, { user: '' })).toMatchObject({ error: REFUSED });
    expect(served.events.map(({ direction, reason }) => `${direction} ${reason}`)).toEqual([
      'outbound principal binding error',
      'inbound principal binding error',
    ]);
  });

  test('seals no state for an access token that bindPrincipal rejects, and reveals no part of the error', async () => {
    const bindPrincipal = async () => await Promise.reject(new Error('the secret of the verifier'));
    await using served = await serveProtected(plainHandler(mode), {}, { bindPrincipal });
    expect(await served.ask(REFUND)).toEqual({ jsonrpc: '2.0', id: 1, error: NOT_SEALED });
    expect(served.errors.join()).not.toContain('secret');
  });

  test('redeems a token once with a single-use store', async () => {
    await using served = await serveProtected(plainHandler(mode), { singleUse: memorySingleUse() });
    const requestState = tokenOf(Object(await served.ask(REFUND)));
    expect(await served.ask({ ...REFUND, requestState })).toHaveProperty('result.content');
    expect(await served.ask({ ...REFUND, requestState })).toMatchObject({ error: REFUSED });
    expect(served.events).toMatchObject([{ reason: 'already used' }]);
  });

  test('with re-elicit, an expired token leads to a first round without input responses', async () => {
    const seen: unknown[] = [];
    let now = 1_795_000_000_000;
    const clock = { ...clockAt(0), wallMs: () => now };
    await using served = await serveProtected(plainHandler(mode, seen), { clock, onInvalid: 're-elicit' });
    const requestState = tokenOf(Object(await served.ask(REFUND)));
    now += 601_000;
    expect(tokenOf(Object(await served.ask({ ...REFUND, requestState, inputResponses: YES })))).toMatch(/^v1\./);
    expect(seen[1]).toEqual({ state: undefined, answers: undefined });
  });

  test('marks a resource that depends on a state as not cacheable', async () => {
    await using served = await serveProtected(plainHandler(mode));
    const asked = { method: 'resources/read' };
    const requestState = tokenOf(Object(await served.ask({ uri: 'note:7' }, asked)));
    expect(await served.ask({ uri: 'note:7', requestState }, asked)).toMatchObject({
      result: { ttlMs: 0, cacheScope: 'private' },
    });
  });
});

test('protectFetch and protectRequestState accept each other’s tokens', async () => {
  const security = new RequestStateSecurity({ codec, requireSubject: true });
  await using wrapped = await serveProtected(plainHandler('json'), { requireSubject: true });
  await using attached = await serveHttp(() => {
    const server = createProtectedMcpServer({ McpServer, serverInfo: { name: 'desk', version: '1.0.0' }, security });
    registerRefund(server);
    return server;
  });
  const first = tokenOf(Object(await wrapped.ask(REFUND)));
  const second = tokenOf(await attached.call('tools/call', REFUND, { user: 'ada' }));
  const answers = [
    await attached.call('tools/call', { ...REFUND, requestState: first }, { user: 'ada' }),
    await wrapped.ask({ ...REFUND, requestState: second }),
  ];
  for (const answer of answers) expect(answer).toHaveProperty('result.content', [{ type: 'text', text: 'asked:A1' }]);
});

test.each([
  ['another order of members', '{"a":1,"b":[2]}', '{ "b":[2], "a":1 }', true],
  ['escapes', '"é/"', '"\\u00E9\\/"', true],
  ['1.0 in place of 1', '1', '1.0', true],
  ['1e2 in place of 100', '100', '1e2', true],
  ['-0 in place of 0, as in Python', '0', '-0', true],
  ['an integer that is a double in place of the next one', '9007199254740992', '9007199254740993', false],
  ['another normalization form of Unicode', '"\u00E9"', '"e\u0301"', false],
  ['a lone surrogate in place of another one', '"\\ud800"', '"\\ud801"', false],
  ['a text in place of a number', '1', '"1"', false],
  ['null in place of nothing', '{}', '{"a":null}', false],
  ['an added member __proto__', '{}', '{"__proto__":{"a":1}}', false],
  ['an added member constructor', '{}', '{"constructor":1}', false],
])('a state is bound to the meaning of the arguments: %s', async (_name, asked, sent, isAccepted) => {
  const seen: string[] = [];
  const handler = answering(async (request) => {
    seen.push(await request.text());
    return new Response(result(ASKED), { headers: { 'content-type': 'application/json' } });
  });
  await using served = await serveProtected(handler);
  const call = (order: string, rest: string): Promise<{ readonly text: string }> =>
    served.post(
      {},
      { raw: `{"id":1,"method":"tools/call","params":{"name":"refund"${rest},"arguments":{"order":${order}}}}` },
    );
  const requestState = tokenOf(JSON.parse((await call(asked, '')).text));
  await call(sent, `,"_meta":{"progressToken":7},"requestState":${JSON.stringify(requestState)}`);
  expect(seen).toHaveLength(isAccepted ? 2 : 1);
});

test('integers beyond 2^53 reach the handler as they were sent, and a state is bound to them', async () => {
  const bodies: string[] = [];
  const handler = answering(async (request) => {
    bodies.push(await request.text());
    const answer = result({ ...ASKED, order: 0 }, 0).replaceAll(/"(order|id)":0/g, '"$1":9007199254740993');
    return new Response(answer, { headers: { 'content-type': 'application/json' } });
  });
  await using served = await serveProtected(handler);
  const call = (order: string, requestState?: string): Promise<{ readonly text: string }> => {
    const params = JSON.stringify({ name: 'refund', requestState, arguments: { order: 0 } });
    const raw = `{"id":9007199254740993,"method":"tools/call","params":${params.replace('"order":0', `"order":${order}`)}}`;
    return served.post({}, { raw });
  };
  const { text } = await call('9007199254740993');
  expect(bodies[0]).toContain('{"order":9007199254740993}');
  expect(text).toContain('"id":9007199254740993');
  expect(text).toContain('"order":9007199254740993');
  const token = tokenOf(JSON.parse(text));
  expect((await call('9007199254740992', token)).text).toContain(JSON.stringify(REFUSED));
  expect((await call('9007199254740993', token)).text).not.toContain('"error"');
  expect(bodies).toHaveLength(2);
});

describe('a request that tries to bypass the boundary', () => {
  const forged = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { ...REFUND, requestState: 'asked:A1' } };
  /** Answers with the request that it received, whatever the content type. */
  const echo = answering(async (request) => Response.json({ echoed: await request.text() }));

  test.each([
    ['as text/plain', { raw: JSON.stringify(forged), headers: { 'content-type': 'text/plain' } }],
    ['after white space', { raw: ` \r\n\t${JSON.stringify(forged)}` }],
    ['after a byte order mark', { raw: `\uFEFF${JSON.stringify(forged)}` }],
    ['without jsonrpc', { raw: JSON.stringify({ ...forged, jsonrpc: undefined }) }],
    ['twice, the valid one first', { raw: JSON.stringify(forged).replace('"requestState"', '"requestState":"x",$&') }],
    ['with a text as its id', { raw: JSON.stringify({ ...forged, id: 'a' }) }],
  ])('a forged request sent %s is refused', async (_name, options) => {
    await using served = await serveProtected(echo);
    expect(JSON.parse((await served.post(forged, options)).text)).toMatchObject({ error: REFUSED });
  });

  test.each([
    ['a notification', { ...forged, id: undefined }],
    ['a request with the id null', { ...forged, id: null }],
    ['a batch', [{ jsonrpc: '2.0', id: 2, method: 'ping' }, forged]],
  ])('%s with a state is refused with status 400', async (_name, message) => {
    await using served = await serveProtected(echo);
    const { status, text } = await served.post(message);
    expect({ status, answer: JSON.parse(text) }).toEqual({
      status: 400,
      answer: { jsonrpc: '2.0', id: null, error: REFUSED },
    });
    expect(served.events).toEqual([{ direction: 'inbound', method: 'tools/call', reason: 'unverified requestState' }]);
  });

  test.each([
    ['that is compressed', { raw: gzipSync(JSON.stringify(forged)), headers: { 'content-encoding': 'gzip' } }],
    [
      'in UTF-16',
      {
        raw: Buffer.from(`\uFEFF${JSON.stringify(forged)}`, 'utf16le'),
        headers: { 'content-type': 'application/json; charset=utf-16' },
      },
    ],
    [
      'in UTF-7, whose charset follows another one in quotation marks',
      {
        raw: JSON.stringify(forged).replace('/', '+AC8-'),
        headers: { 'content-type': 'application/json; a="; charset=utf-8"; charset=utf-7' },
      },
    ],
  ])('a body %s is answered with status 415', async (_name, options) => {
    await using served = await serveProtected(echo);
    expect((await served.post(forged, options)).status).toBe(415);
  });

  const sent = JSON.stringify(forged);
  /**
   * The bytes of a text in which the listed characters of one part are replaced by other bytes, given in hexadecimal.
   */
  const spelledIn = (text: string, part: string, spelling: Readonly<Record<string, string>>) => {
    const hexOf = (letter: string): string => spelling[letter] ?? Buffer.from(letter).toString('hex');
    const [before, after] = text.split(part).map((side) => Buffer.from(side));
    const changed = Array.from(part, hexOf).join('');
    return Buffer.concat([before ?? Buffer.of(), Buffer.from(changed, 'hex'), after ?? Buffer.of()]);
  };
  test.each([
    ['a number that only Python reads', sent.replace('"A1"', 'NaN')],
    ['UTF-16 without a charset', Buffer.from(sent, 'utf16le')],
    ['big-endian UTF-16', Buffer.from(`\uFEFF${sent}`, 'utf16le').swap16()],
    ['UTF-32', Buffer.from(Array.from(sent, (letter) => [letter.charCodeAt(0), 0, 0, 0]).flat())],
    ['a comment in front', `/**/ ${sent}`],
    ['a comment and an escaped method', sent.replace('tools/call', 'tools\\/\\u0063all').replace('{', '{/**/')],
    ['a control character in front', `\f${sent}`],
    ['two byte order marks', `\uFEFF\uFEFF${sent}`],
    ['two values', `${sent}\n${sent}`],
    ['a member that Go takes for requestState, beyond ASCII', sent.replace('requestState', 'reque\u017FtState')],
    ['a second value of the arguments', sent.replace('"requestState"', '"Arguments":{"order":"A2"},$&')],
    ['a member that Go takes for the method, without jsonrpc', JSON.stringify({ Method: 'tools/call', id: 1 })],
    ['a batch within a batch', `[[${sent}]]`],
    [
      'params as an array, which Rust takes for a structure',
      sent.replace(/"params":.*/, '"params":["refund",{},"x"]}'),
    ],
    [
      'a message as an array, which Rust takes for a structure',
      `["2.0",1,"tools/call",${JSON.stringify(forged.params)}]`,
    ],
    ['a member of params that Object.assign inherits', sent.replace('"requestState"', '"__proto__":{$&:"x"},"a"')],
    ['a member of a batch that Object.assign inherits', `[${sent.replace('"params"', '"__proto__"')}]`],
    ['a method that ends at a zero character in C', sent.replace('tools/call', 'tools/call\\u0000')],
    ['a name that ends at a zero character in C', sent.replace('requestState', 'requestState\\u0000')],
    [
      'invalid UTF-8 that some parsers ignore',
      Buffer.from(sent.replace('/call', '\xff/call').replace('"A1"', 'NaN'), 'latin1'),
    ],
    ...['c0af', 'e080af', 'f08080af', 'f8808080af', 'fc80808080af'].map((hex): [string, Buffer<ArrayBuffer>] => [
      `a slash in ${hex.length / 2} bytes, which Jackson and others read`,
      spelledIn(sent, 'tools/call', { '/': hex }),
    ]),
    ['a name in bytes that are not UTF-8', spelledIn(sent, '"method"', { e: 'c1a5' })],
    ['a zero character in two bytes, as in Java', spelledIn(sent, 'A1', { A: 'c080' })],
    ['a character in six bytes (CESU-8)', spelledIn(sent, 'A1', { A: 'eda081edb080' })],
    ['a lone surrogate in three bytes', spelledIn(sent, 'A1', { A: 'eda080' })],
    ['a message in Latin-1', Buffer.from(sent.replace('A1', '\xe9'), 'latin1')],
    ['an invalid byte in front, which some servers remove', Buffer.concat([Buffer.of(0x8b), Buffer.from(sent)])],
    ['a method that is an array, which JavaScript reads as text', sent.replace('"tools/call"', '[$&]')],
    ['a method that is true, which PHP finds equal to any text', sent.replace('"tools/call"', 'true')],
    [
      'a method that is true beside a number that is out of range',
      sent.replace('"tools/call"', 'true').replace('"A1"', '1e400'),
    ],
    [
      'a method that is true beside a long number that is nested 100 000 deep',
      sent
        .replace('"tools/call"', 'true')
        .replace('"A1"', `${'['.repeat(100_000)}1234567890123456789${']'.repeat(100_000)}`),
    ],
    ['a method that is true in a batch', `[${sent.replace('"tools/call"', 'true')}]`],
    ['a batch that PHP reads from an object', `{"0":${sent}}`],
    [
      'a batch that PHP reads from an object, with a method that is true',
      `{"0":${sent.replace('"tools/call"', 'true')}}`,
    ],
    ['a batch in an object that Json.NET reads as a list', `{"$values":[${sent}]}`],
    ['a member that no message has', sent.replace('{', '{"x":1,')],
    [
      'params that fastjson takes from another member',
      sent.replace('"params":', '"result":').replace(/}$/, ',"params":{"$ref":"$.result"}}'),
    ],
    ['arguments that fastjson takes from another member', sent.replace('{"order":"A1"}', '{"$ref":"$.params._meta"}')],
    ['a reference in a list', sent.replace('"A1"', '[{"$ref":".."}]')],
    ['a reference that is escaped', sent.replace('"A1"', '{"\\u0024ref":"@"}')],
    [
      'arguments that Json.NET takes from another member',
      sent.replace('{"order":"A1"}', '{"$ref":"urn:a"},"_meta":{"$id":"urn:a"}'),
    ],
    ['white space beyond ASCII in front', `\u00A0\u3000${sent}`],
    ['a comment of Perl in front', `# ${sent}\n${sent}`],
    [
      'arguments nested 100 000 deep',
      sent.replace('"A1"', `${'['.repeat(100_000)}${']'.repeat(100_000)}`).replace(/,"requestState":"[^"]*"/, ''),
    ],
    ['a batch nested 100 000 deep', `${'['.repeat(100_000)}${sent}${']'.repeat(100_000)}`],
  ])('%s is refused with status 400, and reported', async (_name, raw) => {
    await using served = await serveProtected(echo);
    expect((await served.post(forged, { raw })).status).toBe(400);
    expect(served.errors).toHaveLength(1);
  });

  test.each(['#/definitions/order', '#order', 'https://example.com/order.json', 'urn:example:order'])(
    'a JSON Schema with the reference %j reaches the handler',
    async ($ref) => {
      await using served = await serveProtected(echo);
      const params = { name: 'refund', arguments: { schema: { $id: 'https://example.com/', properties: { $ref } } } };
      const { text } = await served.post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
      expect(JSON.parse(JSON.parse(text).echoed).params).toEqual(params);
    },
  );

  test('of two members with the same name, the handler gets the one that was checked', async () => {
    await using served = await serveProtected(echo);
    const raw = sent.replace('"method":"tools/call"', '$&,"method":"ping"');
    const { echoed } = JSON.parse((await served.post(forged, { raw })).text);
    expect(echoed).toContain('"method":"ping"');
    expect(echoed).not.toContain('"method":"tools/call"');
  });

  test('a batch without states reaches the handler as it was sent', async () => {
    await using served = await serveProtected(echo);
    const raw = '[{"jsonrpc":"2.0","id":1,"method":"ping"}, {"jsonrpc":"2.0","method":"notifications/initialized"}]';
    expect(JSON.parse((await served.post([], { raw })).text)).toEqual({ echoed: raw });
  });
});

describe('an answer with a state that cannot be bound', () => {
  const events = (...messages: readonly string[]): Response =>
    new Response(messages.map((message) => `event: message\ndata: ${message}\n\n`).join(''), {
      headers: { 'content-type': 'text/event-stream' },
    });
  const json = (text: string): Response => new Response(text, { headers: { 'content-type': 'application/json' } });

  test.each([
    ['the answer to another id', () => json(result(ASKED, 2))],
    ['an event for another id', () => events(result(ASKED, 2))],
    [
      'a state for another id on a result that is not input_required',
      () => events(result({ requestState: 'the plaintext' }, 2)),
    ],
    [
      'a state that is nested too deeply',
      () => json(result({ ...ASKED, n: 0 }).replace('"n":0', `"n":${'['.repeat(100_000)}${']'.repeat(100_000)}`)),
    ],
    [
      'an event with a state that is nested too deeply',
      () => events(result({ ...ASKED, n: 0 }).replace('"n":0', `"n":${'['.repeat(100_000)}${']'.repeat(100_000)}`)),
    ],
    ['a batch', () => json(`[${result(ASKED)}]`)],
    ['a state that is not a string', () => json(result({ ...ASKED, requestState: { secret: 'the plaintext' } }))],
    ['a state on a result that is not input_required', () => json(result({ requestState: 'the plaintext' }))],
    [
      'an input_required result that was printed into text',
      () => json(result({ content: [{ type: 'text', text: JSON.stringify(ASKED) }] })),
    ],
    ['an input_required result in structuredContent', () => json(result({ structuredContent: ASKED }))],
    [
      'an input_required result that was printed into a prompt',
      () => json(result({ messages: [{ role: 'user', content: { type: 'text', text: JSON.stringify(ASKED) } }] })),
    ],
    [
      'an input_required result that was printed into a resource',
      () => json(result({ contents: [{ uri: 'note:7', text: JSON.stringify(ASKED) }] })),
    ],
    ['JSON with a number that only Python writes', () => json(result({ ...ASKED, n: 0 }).replace('"n":0', '"n":NaN'))],
    ['JSON that is cut off', () => json(result(ASKED).slice(0, -9))],
    ['an event that is cut off', () => events(result(ASKED).slice(0, -9))],
    ['an answer that is called text', () => new Response(result(ASKED))],
    ['an answer without a type', () => new Response(Buffer.from(result(ASKED)))],
    [
      'an answer in UTF-16',
      () =>
        new Response(Buffer.from(result(ASKED), 'utf16le'), {
          headers: { 'content-type': 'application/json; charset=utf-16le' },
        }),
    ],
    ['an answer in UTF-16 without a charset', () => json(Buffer.from(result(ASKED), 'utf16le').toString('latin1'))],
    [
      'an answer that is compressed',
      () =>
        new Response(gzipSync(result(ASKED)), {
          headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
        }),
    ],
  ])('%s is replaced by an internal error', async (_name, answer) => {
    await using served = await serveProtected(answering(answer));
    const { text } = await served.post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: REFUND });
    expect(text).toContain(JSON.stringify(NOT_SEALED));
    expect(text).not.toContain('plaintext');
    expect(served.errors).toHaveLength(1);
  });

  test.each([
    ['JSON', json],
    ['an event', events],
  ])('a state of null in %s is left out', async (_name, answer) => {
    await using served = await serveProtected(answering(() => answer(result({ ...ASKED, requestState: null }))));
    const { requestState: _, ...asked } = ASKED;
    expect(await served.ask(REFUND)).toEqual({ jsonrpc: '2.0', id: expect.anything(), result: asked });
    expect(served.errors).toEqual([]);
  });

  test.each([
    ['JSON', json],
    ['an event', events],
  ])('of two results in %s, the client gets the one that was checked', async (_name, answer) => {
    const twice = result({ ok: true }).replace('"result"', `"result":${JSON.stringify(ASKED)},$&`);
    await using served = await serveProtected(answering(() => answer(twice)));
    const { text } = await served.post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: REFUND });
    expect(text).toContain('"result":{"ok":true}');
    expect(text).not.toContain('plaintext');
  });

  test('an event of a stream that was started with GET is replaced by an internal error', async () => {
    await using served = await serveProtected(answering(() => events(result({ ok: true }), result(ASKED))));
    const text = await (await fetch(served.url, { headers: { accept: 'text/event-stream' } })).text();
    expect(text).toContain(`data: ${result({ ok: true })}\n\n`);
    expect(text).toContain(JSON.stringify(NOT_SEALED));
    expect(text).not.toContain('plaintext');
  });

  test('the request to the handler accepts no compressed answer', async () => {
    const handler = answering((request) => json(result({ encoding: request.headers.get('accept-encoding') })));
    await using served = await serveProtected(handler);
    expect(await served.ask(REFUND)).toMatchObject({ result: { encoding: null } });
  });
});

describe('sizes and streams', () => {
  test('a JSON body of the largest size is read, and a longer one is refused with status 413', async () => {
    const handler = answering(async (request) => Response.json({ read: (await request.text()).length }));
    await using served = await serveProtected(handler, {}, { maxRequestBytes: 100_000 });
    const body = (length: number): string => `{"a":"${'x'.repeat(length - 8)}"}`;
    expect(await served.post({}, { raw: body(100_000) })).toEqual({ status: 200, text: '{"read":100000}' });
    expect((await served.post({}, { raw: body(100_001) })).status).toBe(413);
    const chunks = new ReadableStream({
      start(controller) {
        for (const chunk of [body(100_001).slice(0, 50_000), body(100_001).slice(50_000)])
          controller.enqueue(Buffer.from(chunk));
        controller.close();
      },
    });
    expect((await served.post({}, { raw: chunks })).status).toBe(413);
  });

  test('a body of 64 MiB that is not JSON is streamed to the handler', async () => {
    let size = 0;
    const handler = answering(async (request) => {
      for await (const chunk of request.body ?? []) size += chunk.byteLength;
      return new Response('stored');
    });
    await using served = await serveProtected(handler);
    let sent = 0;
    const raw = new ReadableStream({
      pull(controller) {
        if (sent === 64) return controller.close();
        sent += 1;
        controller.enqueue(Buffer.alloc(1_048_576, 'x'));
      },
    });
    expect(await served.post({}, { raw })).toEqual({ status: 200, text: 'stored' });
    expect(size).toBe(67_108_864);
  });

  test('a JSON answer over the limit is replaced by an internal error', async () => {
    const handler = answering(() => Response.json({ jsonrpc: '2.0', id: 1, result: { text: 'x'.repeat(2_000) } }));
    await using served = await serveProtected(handler, {}, { maxResponseBytes: 1_000 });
    expect(await served.ask(REFUND)).toEqual({ jsonrpc: '2.0', id: 1, error: NOT_SEALED });
    expect(served.errors).toEqual(['requestState: a response has more than 1000 bytes']);
  });

  test('an event over the limit ends the stream', async () => {
    const headers = { 'content-type': 'text/event-stream' };
    const handler = answering(() => new Response(`data: 1\n\ndata: ${'x'.repeat(2_000)}`, { headers }));
    await using served = await serveProtected(handler, {}, { maxResponseBytes: 1_000 });
    await expect(served.ask(REFUND)).rejects.toThrow('more than 1000 bytes');
    expect(served.errors).toEqual(['requestState: a response has more than 1000 bytes']);
  });

  test('an event is sent once it is complete, and a client that leaves cancels the stream of the handler', async () => {
    const cancelled = gate();
    const headers = { 'content-type': 'text/event-stream' };
    const body = () =>
      new ReadableStream({
        start: (controller) => controller.enqueue(Buffer.from(`data: ${result(ASKED)}\n\ndata: {"unfinished`)),
        cancel: () => cancelled.open(),
      });
    await using served = await serveProtected(answering(() => new Response(body(), { headers })));
    const leaving = new AbortController();
    const response = await fetch(served.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer ada' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: REFUND }),
      signal: leaving.signal,
    });
    const reader = response.body?.getReader();
    const first = Buffer.from((await reader?.read())?.value ?? []).toString();
    expect(first).toMatch(/^data: .*"requestState":"v1\..*\n\n$/);
    leaving.abort();
    await cancelled.opened;
  });

  test('a request whose client leaves while its token is verified does not reach the handler, and does not count as a refusal', async () => {
    const holding = gate();
    const left = gate();
    const held = {
      seal: (payload: Uint8Array) => codec.seal(payload),
      unseal: (token: string) => codec.unseal(token),
      async prepare(token: string | undefined, { signal }: { readonly signal: AbortSignal }) {
        if (token === undefined) return;
        holding.open();
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
        left.open();
      },
    };
    const seen: unknown[] = [];
    await using served = await serveProtected(plainHandler('json', seen), { codec: held });
    const requestState = tokenOf(Object(await served.ask(REFUND)));
    const leaving = new AbortController();
    const asked = served.ask({ ...REFUND, requestState }, { signal: leaving.signal });
    await holding.opened;
    leaving.abort();
    await expect(asked).rejects.toThrow('aborted');
    await left.opened;
    expect(seen).toHaveLength(1);
    expect(served.events).toEqual([]);
  });
});

describe('routes without MCP', () => {
  test.each([
    ['a page', () => new Response('<p>hello</p>', { headers: { 'content-type': 'text/html' } })],
    ['JSON', () => new Response('{ "a": 1.0 }', { headers: { 'content-type': 'application/json' } })],
    [
      'JSON that looks like a result',
      () => new Response(result(ASKED), { headers: { 'content-type': 'application/json' } }),
    ],
    [
      'events',
      () =>
        new Response(': hello\r\n\r\nid: 1\rdata: { "a":\ndata: 1.0 }\n\ndata: not JSON\n\ndata: unfinished', {
          headers: { 'content-type': 'text/event-stream' },
        }),
    ],
    ['nothing', () => new Response(null, { status: 204 })],
  ])('the answer to %s is passed on byte for byte', async (_name, answer) => {
    const ofIts = (response: Response): Response => {
      response.headers.set('x-of-its', 'own');
      return response;
    };
    await using served = await serveProtected(answering(() => ofIts(answer())));
    const expected = await answer().text();
    for (const init of [{}, { method: 'POST', body: '{"a":1}' }, { method: 'POST', body: 'a=1' }]) {
      const response = await fetch(served.url, init);
      expect(await response.text()).toBe(expected);
      expect(response.headers.get('x-of-its')).toBe('own');
    }
    expect(served.errors).toEqual([]);
  });

  test.each([
    ['JSON', '{ "a": 1.0, "a": 2 }'],
    ['text that opens like JSON', '{ not JSON'],
    ['a form', 'a=1&b=2'],
    ['white space', ' \n '],
    ['a list that names a call', '[ "tools/call", 1.0 ]'],
    ['an object that names a call', '{ "params": "all", "search": "tools/call", "n": 1.0 }'],
    ['an object with a member like that of a message', '{ "ID": 7, "note": "how does tools/call work" }'],
    ['a payment with a method', '{ "id": 7, "method": { "type": "card" } }'],
    ['objects with numbers as names', '{ "1": { "a": 1.0 }, "2": { "method": "GET" } }'],
  ])('%s reaches the handler byte for byte, with its headers', async (_name, body) => {
    const handler = answering(async (request) => {
      const { headers } = request;
      return new Response(`${headers.get('content-length')} ${headers.get('x-of-mine')} ${await request.text()}`);
    });
    await using served = await serveProtected(handler);
    const response = await fetch(served.url, { method: 'POST', body, headers: { 'x-of-mine': 'yes' } });
    expect(await response.text()).toBe(`${body.length} yes ${body}`);
  });

  test.each([
    ['a form in Latin-1', 'a=\xe9', 'application/x-www-form-urlencoded; charset=ISO-8859-1', 200],
    ['a text in Windows-1252', '\x93{}\x94', 'text/plain; charset="windows-1252"', 200],
    ['JSON in Latin-1', '{"a":"\xe9"}', 'application/json; charset=latin1', 415],
    ['JSON after white space of Latin-1', '\xa0{"a":"\xe9"}', 'text/plain; charset=iso-8859-1', 415],
    ['a form in UTF-7', 'a=1', 'application/x-www-form-urlencoded; charset=utf-7', 415],
    ['a text in EBCDIC', '\xc0', 'text/plain; charset=cp037', 415],
  ])('a body reaches the handler only if it cannot be JSON in its charset: %s', async (_name, text, type, status) => {
    const got: Buffer[] = [];
    const handler = answering(async (request) => {
      got.push(Buffer.from(await request.arrayBuffer()));
      return new Response('saved');
    });
    const security = new RequestStateSecurity({ codec });
    const handle = protectFetch(handler, security, { audience: null, bindPrincipal: null });
    const body = Buffer.from(text, 'latin1');
    const init = { method: 'POST', body, headers: { 'content-type': type } };
    expect((await handle(new Request('http://127.0.0.1/form', init))).status).toBe(status);
    expect(got).toEqual(status === 200 ? [body] : []);
  });

  test('of two members with the same name, a handler on another route also gets the one that was checked', async () => {
    await using served = await serveProtected(answering(async (request) => new Response(await request.text())));
    const raw = '{"x":{"method":"tools/call"},"x":"tools/call","n":1.0}';
    expect((await served.post({}, { raw })).text).toBe('{"x":"tools/call","n":1}');
  });

  test('additional arguments, and the access token of the request, reach the handler', async () => {
    const security = new RequestStateSecurity({ codec });
    const handle = protectFetch(
      (request: Request, env: { readonly name: string }) =>
        Response.json({ ...env, auth: Reflect.get(request, 'auth') }),
      security,
      { audience: null, bindPrincipal: null },
    );
    const request = new Request('http://127.0.0.1/mcp', { method: 'POST', body: JSON.stringify({ method: 'ping' }) });
    const response = await handle(Object.assign(request, { auth: signedIn('ada') }), { name: 'env' });
    expect(await response.json()).toEqual({ name: 'env', auth: signedIn('ada') });
  });
});

describe('options that protectFetch rejects', () => {
  const handler = plainHandler('json');
  const security = new RequestStateSecurity({ codec });
  const required = { audience: 'desk', bindPrincipal: null };
  const strict = new RequestStateSecurity({ codec, requireSubject: true });
  test.each([
    [
      'a handler that is not a function',
      () => protectFetch(Object({}), security, required),
      'protectFetch: handler must be a function, got an object',
    ],
    ['a policy of another kind', () => protectFetch(handler, Object({}), required), 'RequestStateSecurity'],
    [
      'no audience',
      () => protectFetch(handler, security, { bindPrincipal: null }),
      'protectFetch: an audience is required, in the policy or in audience;',
    ],
    ['no bindPrincipal', () => protectFetch(handler, security, { audience: 'desk' }), 'bindPrincipal is required'],
    [
      'null for bindPrincipal under requireSubject',
      () => protectFetch(handler, strict, required),
      'requireSubject: true requires bindPrincipal to be a function',
    ],
    [
      'a text for bindPrincipal',
      () => protectFetch(handler, security, { ...required, bindPrincipal: Object('ada') }),
      'bindPrincipal must be a function or null',
    ],
    ['an unknown option', () => protectFetch(handler, security, Object({ ...required, path: '/' })), 'path'],
    [
      'a listener that is not a function',
      () => protectFetch(handler, security, Object({ ...required, onerror: 5 })),
      'protectFetch: onerror must be a function, got 5',
    ],
    [
      'a limit of 0 for answers',
      () => protectFetch(handler, security, { ...required, maxResponseBytes: 0 }),
      'protectFetch: maxResponseBytes',
    ],
    ['a limit of 0', () => protectFetch(handler, security, { ...required, maxRequestBytes: 0 }), 'maxRequestBytes'],
  ])('protectFetch rejects %s', (_name, make, message) => {
    expect(make).toThrow(message);
  });

  test('bindPrincipal can be left out if the policy has null for it', async () => {
    const nobody = new RequestStateSecurity({ codec, bindPrincipal: null });
    const handle = protectFetch(handler, nobody, { audience: null });
    expect((await handle(new Request('http://127.0.0.1/'))).status).toBe(405);
  });

  test('a request whose body was read before is rejected', async () => {
    const handle = protectFetch((request: Request, _options: object) => handler(request), security, required);
    const read = new Request('http://127.0.0.1/mcp', { method: 'POST', body: '{}' });
    await read.text();
    await expect(handle(read, {})).rejects.toThrow('has already been read');
    const parsed = new Request('http://127.0.0.1/mcp', { method: 'POST', body: '{}' });
    await expect(handle(parsed, { parsedBody: {} })).rejects.toThrow('has already been read');
  });

  test('AuthInfo is not a principal for a policy with its own bindPrincipal', async () => {
    await using served = await serveProtected(plainHandler('json'), { bindPrincipal: () => 'somebody' });
    expect(await served.ask(REFUND)).toMatchObject({ error: NOT_SEALED });
    await using same = await serveProtected(plainHandler('json'), { bindPrincipal: authenticatedPrincipal });
    expect(tokenOf(Object(await same.ask(REFUND)))).toMatch(/^v1\./);
  });
});
