import { describe, expect, test } from 'vitest';
import { carriesState, hasId } from '../../src/fetch/call.ts';
import { type FetchPrincipal, protectFetch } from '../../src/fetch/protect-fetch.ts';
import { type RejectEvent, RequestStateSecurity } from '../../src/index.ts';
import { createMcpdRequestStateSecurity } from '../../src/mcpd/index.ts';
import { NOT_SEALED, REFUSED, signedIn } from '../support/served.ts';
import { codec } from './fetch-server.ts';

const STATE = 'the plaintext';
const ASKED = { resultType: 'input_required', requestState: STATE };
const CALL = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'refund' } };
const READ = { jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri: 'note:7' } };
const PING = { jsonrpc: '2.0', id: 1, method: 'ping' };
const JSON_TYPE = { 'content-type': 'application/json' };
const EVENTS_TYPE = { 'content-type': 'text/event-stream' };
const DIGESTS = { 'content-digest': 'D', 'repr-digest': 'D', digest: 'D', 'content-md5': 'D' };
const answered = (result: unknown, id: unknown = 1) => JSON.stringify({ jsonrpc: '2.0', id, result });
const replaced = (id: unknown = 1) => JSON.stringify({ jsonrpc: '2.0', id, error: NOT_SEALED });
const refused = (message: string) => JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32_000, message } });

interface Settings {
  readonly policy?: object;
  readonly options?: object;
  readonly headers?: Record<string, string>;
  readonly method?: 'GET' | 'POST';
  readonly signal?: AbortSignal;
  readonly bindPrincipal?: () => FetchPrincipal | Promise<FetchPrincipal>;
}

/** The answer to one request, and what the handler got. `answer`: the body, or the whole answer of the handler. */
async function exchanged(sent: unknown, answer: string | Response = answered({}), settings: Settings = {}) {
  const { policy = {}, options = {}, headers = {}, method = 'POST', signal, bindPrincipal = () => null } = settings;
  const [events, errors, got]: [RejectEvent[], string[], Request[]] = [[], [], []];
  const security = new RequestStateSecurity({ codec, onReject: (event) => events.push(event), ...policy });
  const handler = (request: Request): Response => {
    got.push(request);
    return typeof answer === 'string' ? new Response(answer, { headers: JSON_TYPE }) : answer;
  };
  const onerror = ({ message }: Error) => errors.push(message);
  const guarded = protectFetch(handler, security, { audience: null, bindPrincipal, onerror, ...options });
  const isBody = typeof sent === 'string' || sent instanceof Uint8Array;
  const body = method === 'GET' ? null : isBody ? Buffer.from(sent) : JSON.stringify(sent);
  const response = await guarded(
    new Request('http://127.0.0.1/mcp', { method, body, headers, signal: signal ?? null }),
  );
  return { response, text: await response.text(), status: response.status, events, errors, got };
}

async function sealedFor(message: object): Promise<string> {
  return JSON.parse((await exchanged(message, answered(ASKED))).text).result.requestState;
}

const withState = (message: typeof CALL | typeof READ, requestState: unknown) => ({
  ...message,
  params: { ...message.params, requestState },
});

test.each([
  ['a name that is folded', { ...PING, Method: 'tools/call' }, 'other parsers could read the message differently'],
  ['a number that is not JSON', '{"method":"tools/call","n":NaN}', 'the body is not valid JSON in UTF-8'],
  ['a text in another encoding', Buffer.from('{"text":"caf\xe9"}', 'latin1'), 'the body is not valid JSON in UTF-8'],
  ['a method that is not text', { ...PING, method: true }, 'other parsers could read the message differently'],
  [
    'a deep call',
    JSON.stringify(CALL).replace('"refund"', `$&,"a":${'['.repeat(50_000)}${']'.repeat(50_000)}`),
    'the body is nested too deeply',
  ],
  [
    'a deep notification',
    `{"method":"a","params":{"b":"tools/call","a":${'['.repeat(50_000)}${']'.repeat(50_000)}}}`,
    'the body is nested too deeply',
  ],
])('%s is answered with status 400 and the reason, which is reported', async (_name, sent, reason) => {
  const { status, text, errors, got } = await exchanged(sent);
  expect([status, text]).toEqual([400, refused(`Bad Request: ${reason}`)]);
  expect(errors).toEqual([`requestState: refused inbound: Bad Request: ${reason}`]);
  expect(got).toEqual([]);
});

test.each([
  [
    'another encoding',
    { headers: { 'content-encoding': 'br' } },
    415,
    'Unsupported Media Type: Content-Encoding must be identity',
  ],
  ['a large body', { options: { maxRequestBytes: 9 } }, 413, 'Payload Too Large: Request body must not exceed 9 bytes'],
])('%s is answered with the matching status, and is not reported', async (_name, settings, status, reason) => {
  const outcome = await exchanged(CALL, '', settings);
  expect([outcome.status, outcome.text, outcome.errors, outcome.got]).toEqual([status, refused(reason), [], []]);
});

describe('a state that a client sends', () => {
  test.each([[CALL], [READ]])(
    'a state is verified before the handler gets it, and bound to its request: %j',
    async (message) => {
      const token = await sealedFor(message);
      const { got, text, response } = await exchanged(withState(message, token));
      expect(await got[0]?.json()).toEqual(withState(message, STATE));
      expect(JSON.parse(text).result).toEqual(message === READ ? { ttlMs: 0, cacheScope: 'private' } : {});
      expect(response.headers.get('content-type')).toBe('application/json');
      const forged = await exchanged(withState(message, `${token.slice(0, -8)}AAAAAAAA`));
      expect(JSON.parse(forged.text)).toEqual({ jsonrpc: '2.0', id: 1, error: REFUSED });
      expect([forged.status, forged.response.headers.get('content-type'), forged.got]).toEqual([
        200,
        'application/json',
        [],
      ]);
    },
  );

  test.each([[undefined], [null]])('a state that a client sends counts as absent if it is %s', async (state) => {
    const { got, text, errors } = await exchanged(withState(READ, state));
    expect(await got[0]?.json()).toEqual(READ);
    expect([text, errors]).toEqual([answered({}), []]);
  });

  test.each([[undefined], [null]])('a state that a client sends counts as absent if params is %s', async (params) => {
    const { got, errors } = await exchanged({ ...CALL, params });
    expect(await got[0]?.json()).toEqual(JSON.parse(JSON.stringify({ ...CALL, params })));
    expect(errors).toEqual([]);
  });

  test.each([
    ['in a notification', withState({ ...CALL, id: Object(undefined) }, 'x'), 'tools/call'],
    ['in a batch', [PING, withState(READ, 'x')], 'resources/read'],
  ])('a state %s is refused with status 400', async (_name, sent, method) => {
    const { status, text, events, got } = await exchanged(sent);
    expect([status, JSON.parse(text)]).toEqual([400, { jsonrpc: '2.0', id: null, error: REFUSED }]);
    expect(events).toEqual([{ direction: 'inbound', method, reason: 'unverified requestState' }]);
    expect(got).toEqual([]);
  });

  test('if a client leaves while its state is verified, nothing is refused and no error text is sent', async () => {
    const leaving = new AbortController();
    const bindPrincipal = () => {
      leaving.abort(Object.assign(new Error('secret'), { code: 5 }));
      return null;
    };
    const requestState = await sealedFor(CALL);
    const settings = { bindPrincipal, signal: leaving.signal };
    const { text, events } = await exchanged(withState(CALL, requestState), answered({}), settings);
    expect([text, events]).toEqual([replaced(), []]);
    const asked = await exchanged(CALL, answered(ASKED), {
      ...settings,
      bindPrincipal: async () => Promise.reject(new Error('left')),
    });
    expect([asked.text, asked.events]).toEqual([replaced(), []]);
  });
});

describe('the answer to a call', () => {
  test.each([
    ['without a state', '{ "jsonrpc":"2.0", "id":1, "result":{"resultType":"input_required"} }'],
    ['with a result', '{ "jsonrpc":"2.0", "id":1, "result":{} }'],
    ['with an error', '{ "id":1, "error":{"code":1,"message":"no"} }'],
    ['that is null', ' null'],
    ['that is a number', ' 5'],
    ['that is a batch', '[ {"jsonrpc":"2.0","id":1,"result":{}}, {"jsonrpc":"2.0","id":2,"result":{}} ]'],
    [
      'with the word requestState',
      '{ "jsonrpc":"2.0", "id":1, "result":{"content":[{"type":"text","text":"requestState"}], "n":1.0} }',
    ],
  ])('an answer %s is sent byte for byte, with its headers', async (_name, answer) => {
    const headers = { ...JSON_TYPE, etag: 'E' };
    const { text, response, errors } = await exchanged(CALL, new Response(answer, { headers, status: 201 }));
    expect([text, response.headers.get('etag'), response.status, errors]).toEqual([answer, 'E', 201, []]);
  });

  test.each([
    ['that is not JSON', 'not JSON'],
    ['that is empty', ''],
    ['whose text is not in UTF-8', Buffer.from('{"jsonrpc":"2.0","id":1,"result":{"text":"caf\xe9"}}', 'latin1')],
  ])('an answer of the type JSON %s is replaced, unless its status is an error', async (_name, body) => {
    const { text, status, errors } = await exchanged(CALL, new Response(body, { headers: JSON_TYPE, status: 201 }));
    expect([text, status]).toEqual([replaced(), 200]);
    expect(errors.join()).toContain('a response cannot be read');
    const failed = await exchanged(CALL, new Response(body, { headers: JSON_TYPE, status: 500 }));
    expect([failed.text, failed.status]).toEqual([Buffer.from(body).toString(), 500]);
  });

  test.each(['application/json', 'Application/JSON ; charset=utf-8', 'application/vnd.mcp+json'])(
    'the state in an answer of the type %s is sealed, and headers that no longer match the answer are dropped',
    async (type) => {
      const stale = { etag: 'E', ...DIGESTS, 'content-length': '9' };
      const headers = { ...stale, 'content-type': type, 'x-of-its': 'own' };
      const { text, response } = await exchanged(CALL, new Response(answered(ASKED), { headers, status: 201 }));
      expect(JSON.parse(text).result.requestState).toMatch(/^v1\./);
      expect(Object.fromEntries(response.headers)).toEqual({ 'content-type': type, 'x-of-its': 'own' });
      expect(response.status).toBe(201);
    },
  );

  test.each([
    ['that is a batch', `[${answered({})},${answered(ASKED)}]`, `[${answered({})},${replaced()}]`, 'unsealed'],
    ['for another id', answered(ASKED, 2), replaced(2), 'unsealed'],
    ['of two results', answered({}).replace('"result"', `"result":${JSON.stringify(ASKED)},$&`), answered({}), ''],
    ['that is cut off', answered(ASKED).slice(0, -3), replaced(), 'cannot be read'],
  ])('an answer %s to a call is sent without a state', async (_name, answer, text, reported) => {
    const outcome = await exchanged(CALL, answer);
    expect(outcome.text).toBe(text);
    expect(outcome.errors.join()).toContain(reported);
    const event = { direction: 'outbound', method: 'unknown', reason: 'unsealed requestState' };
    expect(outcome.events).toEqual(reported === 'unsealed' ? [event] : []);
  });

  test('an answer of as many bytes as the limit is sent, and a longer one is replaced', async () => {
    const answer = answered({ a: 1 });
    const limit = (maxResponseBytes: number) => exchanged(CALL, answer, { options: { maxResponseBytes } });
    expect((await limit(answer.length)).text).toBe(answer);
    expect(await limit(answer.length - 1)).toMatchObject({ text: replaced(), status: 200 });
  });

  test('an answer has no requestState if the codec makes no token for it', async () => {
    const security = createMcpdRequestStateSecurity({ key: 'a key of thirty-two bytes or more, for tests' });
    const handler = () => new Response(answered({ ...ASKED, requestState: '' }), { headers: JSON_TYPE });
    const guarded = protectFetch(handler, security, { audience: null, bindPrincipal: null });
    const response = await guarded(new Request('http://127.0.0.1/', { method: 'POST', body: JSON.stringify(CALL) }));
    expect(await response.json()).toEqual(JSON.parse(answered({ resultType: 'input_required' })));
  });

  test('a codec that cannot be prepared is reported', async () => {
    const prepare = async () => Promise.reject(new RangeError('secret'));
    const { seal, unseal } = { seal: codec.seal.bind(codec), unseal: codec.unseal.bind(codec) };
    const policy = { codec: { seal, unseal, prepare } };
    const { errors } = await exchanged(withState(CALL, await sealedFor(CALL)), answered({}), { policy });
    expect(errors).toEqual(['requestState: codec.prepare failed (RangeError) on tools/call']);
  });
});

describe('the answer to another request', () => {
  test('an answer to another request is replaced if it has a state or, with status 500, is unreadable', async () => {
    for (const sent of [PING, { 0: { id: 1 }, method: true }, { text: 'tools/call' }, ['tools/call']])
      expect((await exchanged(sent, answered(ASKED))).text).toBe(replaced());
    const { text, status, errors } = await exchanged(PING, answered(ASKED).slice(0, -3));
    expect([text, status]).toEqual([replaced(null), 500]);
    expect(errors).toEqual([
      'requestState: a response cannot be read: it must be JSON or server-sent events, in UTF-8, not compressed',
    ]);
  });

  test('an event that names a state but is not JSON is replaced, but a stream without a body is not', async () => {
    const events = new Response('data: {"requestState":\n\n', { headers: EVENTS_TYPE });
    const { text, errors } = await exchanged('', events, { method: 'GET' });
    expect(text).toBe(`data: ${replaced(null)}\n\n`);
    expect(errors).toEqual(['requestState: refused outbound on unknown: unsealed requestState']);
    expect((await exchanged(CALL, new Response(null, { headers: EVENTS_TYPE }))).text).toBe('');
  });

  test('a text event with the word requestState passes, unless it answers a call', async () => {
    const events = () => new Response('data: requestState\n\n', { headers: EVENTS_TYPE });
    for (const sent of [PING, { a: 1 }]) expect((await exchanged(sent, events())).text).toBe('data: requestState\n\n');
    expect((await exchanged(CALL, events())).text).toBe(`data: ${replaced()}\n\n`);
  });

  test.each([
    ['a call', CALL, null],
    ['a request of another method', PING, null],
    ['a batch with one message', [{ a: 1 }, PING], null],
    ['a batch with a call without a state', [PING, CALL], null],
    ['an object that a parser could take for a batch', { 0: { id: 1 }, method: true }, null],
    ['JSON of another kind', { a: 1 }, 'gzip'],
    ['JSON of another kind with a member method', { a: { method: 'GET' } }, 'gzip'],
  ])('accept-encoding reaches the handler only with requests that are not MCP: %s', async (_name, sent, encoding) => {
    const { got } = await exchanged(sent, '{}', { headers: { 'accept-encoding': 'gzip' } });
    expect(got[0]?.headers.get('accept-encoding')).toBe(encoding);
  });
});

describe('the headers of a request', () => {
  test.each<[string, unknown, boolean]>([
    ['a call', CALL, false],
    ['a message that is printed again', [CALL], false],
    ['a message that passes as it was sent', PING, true],
    ['JSON of another kind', { a: 1 }, true],
    ['a text', 'a=1', true],
  ])('digests of the body reach the handler only with the body that was sent: %s', async (_name, sent, kept) => {
    const { got } = await exchanged(sent, answered({}), { headers: DIGESTS });
    const headers = Object.keys(DIGESTS).filter((name) => got[0]?.headers.has(name));
    expect(headers).toEqual(kept ? Object.keys(DIGESTS) : []);
  });
});

describe('bindPrincipal', () => {
  test.each<[string, object, FetchPrincipal, boolean]>([
    ['a text', { requireSubject: true }, 'ada', true],
    ['a user', { requireSubject: true }, signedIn('ada'), true],
    ['a user, for a policy without principals', { bindPrincipal: null }, signedIn('ada'), true],
    ['an empty text', {}, '', true],
    ['an empty text under requireSubject', { requireSubject: true }, '', false],
    ['null', {}, null, true],
    ['undefined', {}, undefined, true],
    ['null under requireSubject', { requireSubject: true }, null, false],
    ['undefined under requireSubject', { requireSubject: true }, undefined, false],
    ['a user, for a policy with its own principals', { bindPrincipal: () => 'ada' }, signedIn('ada'), false],
    ['an object without a client', {}, Object({ name: 'ada' }), false],
    ['an array', {}, Object(['ada']), false],
  ])(
    'if bindPrincipal returns %s under the policy %j, the state for %j is sealed: %s',
    async (_name, policy, principal, isSealed) => {
      const { text } = await exchanged(CALL, answered(ASKED), {
        policy,
        bindPrincipal: () => principal,
      });
      expect(text.includes('"requestState":"v1.')).toBe(isSealed);
      expect(text === replaced()).toBe(!isSealed);
    },
  );

  test('bindPrincipal is called only once for a request that carries a state and gets a new state', async () => {
    let calls = 0;
    const bindPrincipal = () => {
      calls += 1;
      return null;
    };
    const sent = withState(CALL, await sealedFor(CALL));
    const { text } = await exchanged(sent, answered(ASKED), { bindPrincipal });
    expect([text.includes('"requestState":"v1.'), calls]).toEqual([true, 1]);
  });

  test('with null as bindPrincipal, states that belong to no user are sealed', async () => {
    const { text } = await exchanged(CALL, answered(ASKED), { options: { bindPrincipal: null } });
    expect(text).toContain('"requestState":"v1.');
  });

  test('the failure of bindPrincipal is reported with the class of its error', async () => {
    const bindPrincipal = async () => Promise.reject(new RangeError('secret'));
    const { text, errors } = await exchanged(CALL, answered(ASKED), { bindPrincipal });
    expect(text).toBe(replaced());
    expect(errors).toEqual(['requestState: refused outbound on tools/call: principal binding error (RangeError)']);
  });
});

test.each([
  [{ id: 'a' }, true],
  [{ id: 0 }, true],
  [{ id: 1n }, true],
  [{ id: null }, false],
  [{ id: true }, false],
  [{}, false],
])('%o can be answered: %s', (message, canBe) => {
  expect(hasId(message)).toBe(canBe);
});

test.each([
  [{ params: { requestState: '' } }, true],
  [{ params: { requestState: 0 } }, true],
  [{ params: { requestState: null } }, false],
  [{ params: {} }, false],
  [{ requestState: 'x' }, false],
])('%j has a state: %s', (message, carries) => {
  expect(carriesState(message)).toBe(carries);
});
