import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { inspect } from 'node:util';
import { McpServer } from '@modelcontextprotocol/server';
import { AesGcmRequestStateCodec, InvalidRequestState, type RequestStateCodec } from '@sealring/core';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { requestIdentity } from '../../src/boundary/request-identity.ts';
import {
  authenticatedPrincipal,
  createProtectedMcpServer,
  type RejectEvent,
  type RequestStateSecurityOptions,
} from '../../src/index.ts';
import { policyOf } from '../../src/server/policy.ts';
import { RequestStateSecurity } from '../../src/server/security.ts';
import { clockAt, exchange, type Outcome } from '../support/exchange.ts';
import {
  type HttpServer,
  NOT_SEALED,
  REFUSED,
  type RefundCall,
  registerRefund,
  serveHttp,
  signedIn,
  textOf,
  tokenOf,
  YES,
} from '../support/served.ts';

const INFO = { name: 'refund-desk', version: '1.0.0' };
const KEY = Buffer.from('00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff', 'hex');
const OTHER_KEY = Buffer.from('ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100', 'hex');
const codec = new AesGcmRequestStateCodec([KEY]);
const REQUEST = { name: 'refund', arguments: { order: 'A1' } };

const construct = (options: unknown) => () => Reflect.construct(RequestStateSecurity, [options]);

afterEach(() => vi.restoreAllMocks());

describe('the options of RequestStateSecurity', () => {
  test.each([
    ['an unknown option', { codec, ttl: 600 }, '"ttl"'],
    ['the SDK’s own codec', { codec: { mint: () => '', verify: () => '' } }, 'codec'],
    ['a key that is a number', { keys: [32] }, 'keys[0]'],
    ['a ttl that is text', { codec, ttlSeconds: '600' }, 'ttlSeconds'],
    ['a ttl that is null', { codec, ttlSeconds: null }, 'ttlSeconds'],
    ['an onInvalid that is a boolean', { codec, onInvalid: true }, 'onInvalid'],
    ['a maxTokenLength that is null', { codec, maxTokenLength: null }, 'maxTokenLength'],
    ['a requireSubject that is text', { codec, requireSubject: 'yes' }, 'requireSubject'],
    ['requireSubject beside a bindPrincipal', { codec, requireSubject: true, bindPrincipal: null }, 'requireSubject'],
    ['a futureSkewSeconds that is null', { codec, futureSkewSeconds: null }, 'futureSkewSeconds'],
    ['a clock that is a function', { codec, clock: () => 0 }, 'clock'],
    ['an onReject that is an object', { codec, onReject: {} }, 'onReject'],
  ])('%s causes a TypeError that names the option', (_name, options, named) => {
    expect(construct(options)).toThrow(TypeError);
    expect(construct(options)).toThrow(named);
  });

  test.each([
    ['a maxTokenLength over the codecs’ own cap', { codec, maxTokenLength: 262_145 }, 'maxTokenLength'],
    ['a maxTokenLength that is NaN', { codec, maxTokenLength: Number.NaN }, 'maxTokenLength'],
    ['a maxTokenLength that is not an integer', { codec, maxTokenLength: 1000.5 }, 'maxTokenLength'],
    ['a negative futureSkewSeconds', { codec, futureSkewSeconds: -1 }, 'futureSkewSeconds'],
    [
      'a ttl longer than the codec’s keys live',
      { codec: codecOf({ tokenLifetimeSeconds: 599 }) },
      'tokenLifetimeSeconds',
    ],
    [
      'a codec whose keys live NaN seconds',
      { codec: codecOf({ tokenLifetimeSeconds: Number.NaN }) },
      'tokenLifetimeSeconds',
    ],
  ])('%s causes a RangeError that names the option', (_name, options, named) => {
    expect(construct(options)).toThrow(RangeError);
    expect(construct(options)).toThrow(named);
  });

  test('the defaults are as documented in the README', () => {
    expect(policyOf(new RequestStateSecurity({ codec }))).toMatchObject({
      ttlSeconds: 600,
      requireSubject: false,
      singleUse: undefined,
      onInvalid: 'reject',
      maxTokenLength: 65_536,
      futureSkewSeconds: 60,
      onReject: undefined,
    });
  });

  test.each([
    ['maxTokenLength', 256, 262_144],
    ['futureSkewSeconds', 0, 3_600],
  ])('%s may be from %d to %d', (option, least, most) => {
    for (const value of [least, most]) expect(construct({ codec, [option]: value })).not.toThrow();
    for (const value of [least - 1, most + 1]) expect(construct({ codec, [option]: value })).toThrow(RangeError);
  });

  test('a ttlSeconds equal to the codec’s tokenLifetimeSeconds is accepted', () => {
    expect(construct({ codec: codecOf({ tokenLifetimeSeconds: 600 }) })).not.toThrow();
  });

  test('options are copied: later changes have no effect', async () => {
    const options = { codec, ttlSeconds: 60, onInvalid: 'reject' };
    const security = Reflect.construct(RequestStateSecurity, [options]);
    Object.assign(options, { codec: undefined, onInvalid: 're-elicit-any' });
    await using http = await serveHttp(() =>
      createProtectedMcpServer({
        McpServer,
        serverInfo: INFO,
        security,
        serverOptions: { capabilities: { tools: {} } },
      }),
    );
    expect((await http.call('tools/call', { name: 't', requestState: 'x' })).error).toEqual(REFUSED);
    expect(Object.isFrozen(security)).toBe(true);
  });

  test('a policy shows nothing when it is inspected (F21)', () => {
    const security = new RequestStateSecurity({ keys: [KEY] });
    expect(inspect(security, { showHidden: true, depth: 9 })).toBe('RequestStateSecurity {}');
    expect(JSON.stringify(security)).toBe('{}');
  });

  test('ephemeral emits one process warning, and accepts ttlSeconds and audience only', async () => {
    const emitWarning = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    // As in a process that has not warned yet.
    vi.resetModules();
    const fresh = await import('../../src/server/security.ts');
    const ofFresh = await import('../../src/server/policy.ts');
    const policies = [
      fresh.RequestStateSecurity.ephemeral(),
      fresh.RequestStateSecurity.ephemeral({ ttlSeconds: 5, audience: 'a' }),
    ].map((security) => ofFresh.policyOf(security));
    expect(policies).toMatchObject([
      { ttlSeconds: 600, audience: undefined },
      { ttlSeconds: 5, audience: 'a' },
    ]);
    expect(emitWarning.mock.calls).toEqual([
      [
        expect.stringContaining('a key that exists only in this process'),
        { type: 'SealringWarning', code: 'SEALRING_EPHEMERAL' },
      ],
    ]);
    expect(() => Reflect.apply(Reflect.get(RequestStateSecurity, 'ephemeral'), undefined, [{ codec }])).toThrow(
      'RequestStateSecurity.ephemeral: unknown option "codec"',
    );
    expect(() => RequestStateSecurity.ephemeral({ ttlSeconds: 0 })).toThrow(RangeError);
  });
});

function codecOf(extra: object): RequestStateCodec {
  return { seal: (payload) => codec.seal(payload), unseal: (token) => codec.unseal(token), ...extra };
}

interface Desk extends AsyncDisposable {
  readonly http: HttpServer;
  readonly events: RejectEvent[];
  readonly seen: RefundCall[];
  readonly errors: Error[];
}

/** A protected refund desk over real HTTP. */
async function desk(options: Partial<RequestStateSecurityOptions>): Promise<Desk> {
  const events: RejectEvent[] = [];
  const seen: RefundCall[] = [];
  const errors: Error[] = [];
  const onReject = (event: RejectEvent) => events.push(event);
  const security = Reflect.construct(RequestStateSecurity, [
    { ...('keys' in options ? {} : { codec }), onReject, ...options },
  ]);
  const http = await serveHttp(() => {
    const server = createProtectedMcpServer({ McpServer, serverInfo: INFO, security });
    Object.assign(server.server, { onerror: (error: Error) => errors.push(error) });
    registerRefund(server, seen);
    return server;
  });
  return { http, events, seen, errors, [Symbol.asyncDispose]: () => http[Symbol.asyncDispose]() };
}

async function mint(from: Desk, user?: string): Promise<string> {
  return tokenOf(await from.http.call('tools/call', REQUEST, user === undefined ? {} : { user }));
}

const reasons = (from: Desk): string[] => from.events.map((event) => event.reason);

const context = (http: object | undefined) => Object({ http });

const ask = () => ({ resultType: 'input_required', requestState: 'x' });

describe('the principal of a token', () => {
  test('alice’s token is refused for bob and without a principal, and a token without a principal is refused for alice', async () => {
    await using at = await desk({});
    const [alices, nobodys] = [await mint(at, 'alice'), await mint(at)];
    const echo = (requestState: string, user?: string) =>
      at.http.call('tools/call', { ...REQUEST, requestState }, user === undefined ? {} : { user });
    expect(textOf(await echo(alices, 'alice'))).toBe('asked:A1');
    expect((await echo(alices, 'bob')).error).toEqual(REFUSED);
    expect((await echo(alices)).error).toEqual(REFUSED);
    expect((await echo(nobodys, 'alice')).error).toEqual(REFUSED);
    expect(reasons(at)).toEqual(['principal', 'principal drift', 'principal drift']);
  });

  test('authenticatedPrincipal returns the same text as the Python SDK, and refuses claims of other types', () => {
    const of = (extra: object | undefined, clientId: unknown = 'web') =>
      authenticatedPrincipal(context({ authInfo: { clientId, ...(extra === undefined ? {} : { extra }) } }));
    expect(authenticatedPrincipal(context(undefined))).toBe(null);
    expect(authenticatedPrincipal(context({}))).toBe(null);
    expect(of({ iss: 'https://idp.example', sub: 'alice' })).toBe('["web","https://idp.example","alice"]');
    expect(of({ sub: 'é' })).toBe('["web",null,"\\u00e9"]');
    expect(of({ iss: 5, sub: null })).toBe('["web",null,null]');
    expect(of(undefined)).toBe('["web",null,null]');
    expect(of(JSON.parse('{"__proto__":{"sub":"admin"}}'))).toBe('["web",null,null]');
    expect(() => of({ sub: 5 })).toThrow(TypeError);
    expect(() => of({}, 5)).toThrow(TypeError);
  });

  const without = { token: 't', clientId: 'shared-app', scopes: [] };
  test('an access token without a subject is reported once for each client, and the report does not contain the client id', async () => {
    const told: unknown[] = [];
    const listen = (message: unknown) => void told.push(message);
    subscribe('sealring:principal-without-subject', listen);
    await using at = await desk({});
    const [first] = [await mint(at, 'client:shared-app'), await mint(at, 'client:shared-app'), await mint(at, 'alice')];
    expect(told).toHaveLength(1);
    await mint(at, 'client:other-app');
    unsubscribe('sealring:principal-without-subject', listen);
    expect(told).toHaveLength(2);
    expect(told.map((message) => Object.keys(Object(message)))).toEqual([['client'], ['client']]);
    expect(JSON.stringify(told)).not.toContain('-app');
    const echo = { ...REQUEST, requestState: first };
    expect(textOf(await at.http.call('tools/call', echo, { user: 'client:shared-app' }))).toBe('asked:A1');
    expect((await at.http.call('tools/call', echo, { user: 'client:other-app' })).error).toEqual(REFUSED);
    expect(reasons(at)).toEqual(['principal']);
  });

  test.each([
    ['requireSubject and no subject', { codec, requireSubject: true }, without],
    ['a subject that is not a string', { codec }, signedIn(5)],
  ])('with %s, a state is refused in both directions', async (_name, options, authInfo) => {
    const request = { method: 'tools/call', params: { name: 't' } };
    const sealed = await exchange(request, options, authInfo, ask);
    expect(sealed.error).toEqual(NOT_SEALED);
    expect(sealed.events.map((event) => event.reason)).toEqual(['principal binding error']);
    const made = await exchange(request, { codec }, signedIn('alice'), ask);
    const params = { ...request.params, requestState: Object(made.result).requestState };
    const echoed = await exchange({ ...request, params }, options, authInfo);
    expect(echoed.error).toEqual(REFUSED);
    expect(echoed.events.map((event) => event.reason)).toEqual(['principal binding error']);
  });
});

describe('onInvalid', () => {
  // A day late, not a second: the time is read long before the last of these tests mints its token.
  const late = { clock: clockAt(Date.now() + 86_400_000) };
  const stranger = { keys: [OTHER_KEY] };
  const firstRound = { order: 'A1', state: undefined, answers: undefined };

  test.each([
    ['reject', late, 'expired', 0],
    ['re-elicit', late, 'expired', 1],
    ['re-elicit', stranger, 'unknown key', 1],
    ['re-elicit-any', late, 'expired', 1],
  ] as const)(
    'with onInvalid %s and options %o, a refused token is reported as %s',
    async (onInvalid, options, reason, rounds) => {
      await using minter = await desk({});
      await using at = await desk({ ...options, onInvalid });
      const requestState = await mint(minter);
      const answer = await at.http.call('tools/call', { ...REQUEST, requestState, inputResponses: YES });
      expect(reasons(at)).toEqual([reason]);
      // The result is as on the first round: the handler sees neither the state nor the attacker-chosen answers.
      expect(at.seen).toEqual(Array.from({ length: rounds }, () => firstRound));
      expect(answer.error).toEqual(rounds === 0 ? REFUSED : undefined);
      expect(answer.result?.['resultType']).toBe(rounds === 0 ? undefined : 'input_required');
    },
  );

  test.each([
    ['tampered', (token: string) => `${token.slice(0, -9)}AAAAAAAAA`, {}, 'authentication failed'],
    ['malformed', (token: string) => `${token}.TAMPERED`, {}, 'malformed'],
    ['for other arguments', (token: string) => token, { arguments: { order: 'B2' } }, 'request binding'],
  ] as const)(
    'after a token that is %s, the handler runs again only with re-elicit-any',
    async (_name, change, params, reason) => {
      await using careful = await desk({ onInvalid: 're-elicit' });
      await using trusting = await desk({ onInvalid: 're-elicit-any' });
      const echo = { ...REQUEST, ...params, requestState: change(await mint(careful)), inputResponses: YES };
      expect((await careful.http.call('tools/call', echo)).error).toEqual(REFUSED);
      expect((await trusting.http.call('tools/call', echo)).result).toMatchObject({ resultType: 'input_required' });
      expect([reasons(careful), reasons(trusting)]).toEqual([[reason], [reason]]);
      expect(trusting.seen.map((call) => [call.state, call.answers])).toEqual([[undefined, undefined]]);
    },
  );

  test('the state that is sealed after a refusal is accepted, and bound to the current principal', async () => {
    await using at = await desk({ onInvalid: 're-elicit-any' });
    const requestState = await mint(at, 'alice');
    const again = await at.http.call('tools/call', { ...REQUEST, requestState }, { user: 'bob' });
    const echo = { ...REQUEST, requestState: tokenOf(again), inputResponses: YES };
    expect(textOf(await at.http.call('tools/call', echo, { user: 'bob' }))).toBe('asked:A1');
  });
});

/** Keeps every claim, and fails on request. */
function store() {
  const claims: { readonly id: string; readonly expiresAt: Date }[] = [];
  let failure: unknown;
  return {
    claims,
    fail: (how: unknown) => {
      failure = how;
    },
    claim: async (id: string, expiresAt: Date) => {
      if (failure instanceof Error) throw failure;
      if (failure !== undefined) return Object(failure);
      const fresh = !claims.some((claim) => claim.id === id);
      claims.push({ id, expiresAt });
      return fresh;
    },
  };
}

describe('single use', () => {
  test('a token can be redeemed only once across the fleet, and its claim lasts until exp plus the clock skew', async () => {
    const shared = store();
    const wallMs = 1_795_000_000_000;
    const options = { singleUse: shared, clock: clockAt(wallMs) };
    await using one = await desk(options);
    await using other = await desk(options);
    const echo = { ...REQUEST, requestState: await mint(one), inputResponses: YES };
    expect(textOf(await other.http.call('tools/call', echo))).toBe('asked:A1');
    expect((await one.http.call('tools/call', echo)).error).toEqual(REFUSED);
    expect((await other.http.call('tools/call', echo)).error).toEqual(REFUSED);
    expect([...reasons(one), ...reasons(other)]).toEqual(['already used', 'already used']);
    expect(shared.claims[0]?.id).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(shared.claims[0]?.expiresAt.getTime()).toBe(wallMs + 660_000);
  });

  test('only one of two concurrent redemptions runs the handler', async () => {
    await using at = await desk({ singleUse: store() });
    const echo = { ...REQUEST, requestState: await mint(at), inputResponses: YES };
    const answers = await Promise.all([at.http.call('tools/call', echo), at.http.call('tools/call', echo)]);
    expect(answers.filter((answer) => answer.error === undefined)).toHaveLength(1);
  });

  test('a token that was refused for another user or other arguments can still be redeemed', async () => {
    const shared = store();
    await using at = await desk({ singleUse: shared });
    const requestState = await mint(at, 'alice');
    const call = (params: object, user: string) =>
      at.http.call('tools/call', { ...REQUEST, requestState, ...params }, { user });
    await call({}, 'bob');
    await call({ arguments: { order: 'B2' } }, 'alice');
    expect(shared.claims).toEqual([]);
    expect(textOf(await call({}, 'alice'))).toBe('asked:A1');
  });

  test.each([
    ['is down', new Error('canary-connection-string')],
    ['answers with anything but true', 1],
    ['answers null', null],
  ])('a token is refused if the store %s, even with re-elicit', async (_name, failure) => {
    const shared = store();
    await using at = await desk({ singleUse: shared, onInvalid: 're-elicit' });
    const requestState = await mint(at);
    shared.fail(failure);
    expect((await at.http.call('tools/call', { ...REQUEST, requestState })).error).toEqual(REFUSED);
    expect(reasons(at)).toEqual(['already used']);
    expect(inspect(at.errors)).not.toContain('canary');
  });

  test('a client that disconnects while its token is being verified does not redeem that token', async () => {
    const shared = store();
    const leaving = new AbortController();
    const policy = policyOf(new RequestStateSecurity({ codec, singleUse: shared }));
    const boundary = policy.boundaryFor(null);
    const request = {
      method: 'tools/call' as const,
      identity: requestIdentity('tools/call', REQUEST),
      signal: leaving.signal,
      bindPrincipal: () => null,
      warn: () => {},
    };
    const token = boundary.seal(request, 'x', undefined);
    const bindPrincipal = () => {
      leaving.abort(new Error('left'));
      return null;
    };
    await expect(boundary.unseal({ ...request, bindPrincipal }, token)).rejects.toThrow('left');
    expect(shared.claims).toEqual([]);
  });

  test('with single use, a token without an identifier is refused; without it, a token with an identifier is accepted', async () => {
    await using off = await desk({});
    await using on = await desk({ singleUse: store() });
    const without = { ...REQUEST, requestState: await mint(off) };
    expect((await on.http.call('tools/call', without)).error).toEqual(REFUSED);
    expect(reasons(on)).toEqual(['malformed']);
    expect(textOf(await off.http.call('tools/call', { ...REQUEST, requestState: await mint(on) }))).toBe('asked:A1');
  });
});

async function sealing(options: Partial<RequestStateSecurityOptions>, state: unknown): Promise<Outcome> {
  const all = Object({ codec, ...options });
  return await exchange({ method: 'tools/call', params: { name: 't' } }, all, undefined, () => ({
    resultType: 'input_required',
    requestState: state,
  }));
}

describe('maxTokenLength', () => {
  test('limits the length of the token, and a state whose token would be longer is not sealed', async () => {
    const fits = await sealing({}, 'a'.repeat(48_000));
    expect(Object(fits.result).requestState.length).toBeLessThanOrEqual(65_536);
    for (const state of ['a'.repeat(49_500), 'a'.repeat(70_000), '🔑'.repeat(16_384)]) {
      const outcome = await sealing({}, state);
      expect(outcome.error).toEqual(NOT_SEALED);
      expect(outcome.events.map((event) => event.reason)).toEqual(['state too large']);
    }
    const largest = await sealing({ maxTokenLength: 262_144 }, 'a'.repeat(196_000));
    expect(Object(largest.result).requestState.length).toBeGreaterThan(261_000);
    const overCap = await sealing({ maxTokenLength: 262_144 }, 'a'.repeat(197_000));
    expect(overCap.events.map((event) => event.reason)).toEqual(['state too large']);
  });
});

const named = (name: string, reason: unknown) => Object.assign(new Error('canary'), { name, reason });

const prepare = () => Promise.reject(new Error('canary'));

describe('codecs', () => {
  const echo = { method: 'tools/call', params: { name: 't', requestState: 'token' } };
  test.each([
    ['malformed', new InvalidRequestState('malformed'), 'malformed'],
    ['unknown key', new InvalidRequestState('unknown key'), 'unknown key'],
    ['of another copy of the class', named('InvalidRequestState', 'unknown key'), 'unknown key'],
    ['with the Python SDK’s word', named('InvalidRequestState', 'seal'), 'authentication failed'],
    ['with its own reason', named('InvalidRequestState', 'canary'), 'codec error'],
    ['with a reason and another name', named('KmsError', 'unknown key'), 'codec error'],
    ['a plain one', new Error('canary'), 'codec error'],
    ['no Error at all', 'canary', 'codec error'],
    ['with our name and no reason', named('InvalidRequestState', undefined), 'codec error'],
    ['with our members and no Error', { name: 'InvalidRequestState', reason: 'unknown key' }, 'codec error'],
    ['null', null, 'codec error'],
  ])(
    'an error that unseal throws is reported with a known reason or as a codec error: %s (%s)',
    async (_name, thrown, reason) => {
      const throwing = codecOf({
        unseal: () => {
          throw thrown;
        },
      });
      const outcome = await exchange(echo, { codec: throwing, onInvalid: 're-elicit' });
      // An error other than an unknown key never lets the handler run again (F9).
      expect([outcome.handled, outcome.error]).toEqual(reason === 'unknown key' ? [true, undefined] : [false, REFUSED]);
      expect(outcome.events).toEqual([{ direction: 'inbound', method: 'tools/call', reason }]);
      expect(inspect(outcome.errors)).not.toContain('canary');
    },
  );

  test.each([['text'], [null], [Promise.resolve(new Uint8Array(1))], [[1, 2]]])(
    'a result of %o from unseal causes a codec error',
    async (value) => {
      const outcome = await exchange(echo, { codec: codecOf({ unseal: () => value }) });
      expect(outcome.events.map((event) => event.reason)).toEqual(['codec error']);
    },
  );

  test.each([[''], [null], [Promise.resolve('token')], [new Uint8Array(3)]])(
    'a result of %o from seal causes a codec error',
    async (value) => {
      const outcome = await sealing({ codec: codecOf({ seal: () => value }) }, 'x');
      expect(outcome.error).toEqual(NOT_SEALED);
      expect(outcome.events).toEqual([{ direction: 'outbound', method: 'tools/call', reason: 'codec error' }]);
    },
  );

  test('prepare is called with the token and awaited before unseal, and not called without a token', async () => {
    const order: unknown[] = [];
    const prepared = codecOf({
      prepare: async (token: string, { signal }: { signal: AbortSignal }) => {
        await Promise.resolve();
        order.push(['prepare', token, signal.aborted]);
      },
      unseal: (token: string) => {
        order.push(['unseal', token]);
        throw new InvalidRequestState('unknown key');
      },
    });
    await exchange(echo, { codec: prepared });
    await exchange({ method: 'tools/call', params: { name: 't' } }, { codec: prepared });
    expect(order).toEqual([
      ['prepare', 'token', false],
      ['unseal', 'token'],
    ]);
  });

  test('a prepare that fails is not fatal, but the key then does not count as unknown (F9)', async () => {
    const made = await sealing({}, 'x');
    const token = Object(made.result).requestState;
    const params = { name: 't', requestState: token };
    const opened = await exchange({ method: 'tools/call', params }, { codec: codecOf({ prepare }) });
    expect(opened).toMatchObject({ handled: true, state: 'x', events: [] });
    expect(opened.errors.map((error) => error.message)).toEqual([
      'requestState: codec.prepare failed (Error) on tools/call',
    ]);
    const stranger = new AesGcmRequestStateCodec([OTHER_KEY]);
    const unknown = codecOf({ prepare, unseal: (text: string) => stranger.unseal(text) });
    const refused = await exchange({ method: 'tools/call', params }, { codec: unknown, onInvalid: 're-elicit' });
    expect(refused).toMatchObject({ handled: false, error: REFUSED });
    expect(refused.events.map((event) => event.reason)).toEqual(['codec error']);
  });
});

const observers: Readonly<Record<string, () => unknown>> = {
  throws: () => {
    throw new Error('observer');
  },
  rejects: async () => Promise.reject(new Error('observer')),
};

describe('onReject', () => {
  test.each(['throws', 'rejects'])('an onReject that %s does not change the answer to the client', async (how) => {
    await using at = await desk(Object({ onReject: observers[how] }));
    expect((await at.http.call('tools/call', { ...REQUEST, requestState: 'x' })).error).toEqual(REFUSED);
    expect(at.errors.map((error) => error.message)).toEqual([
      'requestState: refused inbound on tools/call: malformed',
      'requestState: onReject threw (Error)',
    ]);
  });
});
