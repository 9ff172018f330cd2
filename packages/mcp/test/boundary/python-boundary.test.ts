import { isDeepStrictEqual } from 'node:util';
import { type AuthInfo, InMemoryTransport, Server } from '@modelcontextprotocol/server';
import { AesGcmRequestStateCodec } from '@sealring/core';
import { describe, expect, test } from 'vitest';
import { mintClaims } from '../../src/boundary/claims.ts';
import { principalClaim } from '../../src/boundary/principal-claim.ts';
import { isCarrierMethod, requestIdentity } from '../../src/boundary/request-identity.ts';
import { protectRequestState, RequestStateSecurity } from '../../src/index.ts';
import { clockAt, exchange, type Outcome } from '../support/exchange.ts';
import { boundaryVectors, type Echo, ringOf, type VectorPrincipal } from '../support/vectors.ts';

const { mints, vectors, wireError } = boundaryVectors;
const utf8 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8');

test('the file of vectors is complete', () => {
  expect([mints.length, vectors.length]).toEqual([149, 599]);
});

describe('the bytes of claims, compared with the MCP Python SDK', () => {
  test.each(mints)('claims are written byte for byte as the MCP Python SDK writes them: $name', (mint) => {
    const { method, target, a } = mint;
    if (!isCarrierMethod(method)) throw new Error(`${method} is no carrier`);
    const read =
      mint.jsRepresentable && mint.lenient !== true ? requestIdentity(method, JSON.parse(mint.params)) : undefined;
    const { method: readMethod, target: readTarget, digest } = read ?? { method, target, digest: a };
    expect([readMethod, readTarget, digest]).toEqual([method, target, a]);
    const { principalText, pSalt } = mint;
    const principal =
      principalText === null || pSalt === null ? null : principalClaim(principalText, Buffer.from(pSalt, 'hex'));
    expect(principal).toBe(mint.p);
    const claims = mintClaims({
      nowSeconds: mint.now,
      ttlSeconds: mint.ttl,
      identity: { method, target, digest: a },
      state: mint.state,
      audience: mint.audience,
      principal,
      id: null,
    });
    expect(utf8(claims)).toBe(mint.claims);
    const codec = new AesGcmRequestStateCodec(ringOf(mint.ring));
    expect(utf8(codec.unseal(mint.token))).toBe(mint.claims);
    expect(utf8(codec.unseal(codec.seal(claims)))).toBe(mint.claims);
  });
});

describe('the answer to a token, compared with the MCP Python SDK', () => {
  test.each(vectors)('a token is answered as the MCP Python SDK answers it: $class: $name', async (echo) => {
    expect(verdict(echo, await echoed(echo))).toBe('as Python');
  });
});

/** The defect of an outcome, or `as Python`. */
function verdict(echo: Echo, outcome: Outcome | undefined): string {
  if (outcome === undefined) return echo.jsRepresentable ? 'the request was not sent' : 'as Python';
  const { handled, state, events } = outcome;
  if (echo.expect === 'untouched') {
    if (events.length > 0) return 'it acted';
    return !handled || isDeepStrictEqual(state, echo.requestState ?? undefined) ? 'as Python' : 'it changed the state';
  }
  const answer = handled ? 'accept' : 'reject';
  const fault = handled ? faultOfAcceptance(echo, outcome) : faultOfRefusal(outcome);
  if (fault !== undefined) return fault;
  if (answer !== echo.expect) {
    // Values that JSON.parse has changed cannot be distinguished.
    const excused = echo.lenient === true ? answer === 'reject' : !echo.jsRepresentable;
    return excused ? 'as Python' : `${answer}, not ${echo.expect}`;
  }
  const reason = events[0]?.reason;
  const given = echo.reason === 'seal' ? 'authentication failed' : echo.reason;
  if (answer === 'reject' && echo.reasonMayDiffer !== true && reason !== given) return `${reason}, not ${given}`;
  return 'as Python';
}

function faultOfAcceptance(echo: Echo, { state, events }: Outcome): string | undefined {
  if (events.length > 0) return 'accepted with an event';
  return echo.expect === 'accept' && state !== echo.state ? 'another state' : undefined;
}

function faultOfRefusal({ error, events }: Outcome): string | undefined {
  if (!isDeepStrictEqual(error, wireError)) return `answered ${JSON.stringify(error)}`;
  return events.length === 1 && events[0]?.direction === 'inbound' ? undefined : `${events.length} events`;
}

/** The outcome of one echo, or undefined if the request is not JSON here. */
async function echoed(echo: Echo): Promise<Outcome | undefined> {
  let params: Record<string, unknown>;
  try {
    params = JSON.parse(echo.params);
  } catch {
    return undefined;
  }
  const { bindPrincipal, authInfo } = binding(echo.principal, echo.principalText);
  return await exchange(
    { method: echo.method, params: { ...params, requestState: echo.requestState } },
    {
      keys: ringOf(echo.ring),
      clock: clockAt(echo.nowMs),
      ...(echo.audience === null ? {} : { audience: echo.audience }),
      ...(bindPrincipal === undefined ? {} : { bindPrincipal }),
    },
    authInfo,
  );
}

const RETURNED = {
  'returns int': 5,
  'returns bytes': Buffer.from('x'),
  'returns list': ['x'],
  'returns bool': true,
  'returns dict': { x: 1 },
};

// JavaScript users are not bound by types.
const returnedBy = (error: string): ReturnType<typeof JSON.parse> => Reflect.get(RETURNED, error);

function raises(): never {
  throw new Error('raises');
}

interface Binding {
  readonly bindPrincipal?: (() => string | null) | null;
  readonly authInfo?: AuthInfo;
}

function binding(principal: VectorPrincipal, text: string | null): Binding {
  if (principal === null) return {};
  if ('unbound' in principal) return { bindPrincipal: null };
  if ('text' in principal) return { bindPrincipal: () => principal.text };
  if ('error' in principal) {
    const returns = () => returnedBy(principal.error);
    return { bindPrincipal: principal.error === 'raises' ? raises : returns };
  }
  // Python binds a number's str(); `extra.iss` counts only as a string here.
  if (principal.iss !== undefined && typeof principal.iss !== 'string') return { bindPrincipal: () => text };
  const { clientId, iss, sub } = principal;
  const extra = { ...(iss === undefined ? {} : { iss }), ...(sub === undefined ? {} : { sub }) };
  return { authInfo: { token: 'access-token', clientId, scopes: [], extra } };
}

describe('policies', () => {
  const codec = new AesGcmRequestStateCodec(ringOf(['main']));
  const refused: Readonly<Record<string, readonly [unknown, ErrorConstructor]>> = {
    both: [{ keys: ringOf(['main']), codec }, TypeError],
    neither: [{}, TypeError],
    'ttl-0': [{ codec, ttlSeconds: 0 }, RangeError],
    'ttl-negative': [{ codec, ttlSeconds: -1 }, RangeError],
    'ttl-nan': [{ codec, ttlSeconds: Number.NaN }, RangeError],
    'ttl-inf': [{ codec, ttlSeconds: Number.POSITIVE_INFINITY }, RangeError],
    'empty-ring': [{ keys: [] }, RangeError],
    'short-key': [{ keys: [Buffer.alloc(31, 'ab')] }, RangeError],
  };

  test.each(boundaryVectors.policyConstruction)('the constructor rejects the policy $name', ({ name }) => {
    const [options, kind] = refused[name] ?? [];
    if (kind === undefined) throw new Error(`no counterpart for ${name}`);
    expect(() => Reflect.construct(RequestStateSecurity, [options])).toThrow(kind);
  });

  test.each(boundaryVectors.audienceResolution)(
    'the policy audience $policyAudience and the default $defaultAudience result in $effective',
    async ({ policyAudience, defaultAudience, effective }) => {
      const server = new Server({ name: 's', version: '1' });
      const security = new RequestStateSecurity({
        codec,
        ...(policyAudience === null ? {} : { audience: policyAudience }),
      });
      protectRequestState(server, security, { defaultAudience });
      server.fallbackRequestHandler = async () => ({ resultType: 'input_required', requestState: 'x' });
      const [client, transport] = InMemoryTransport.createLinkedPair();
      await server.connect(transport);
      const answer = new Promise<unknown>((resolve) => Object.assign(client, { onmessage: resolve }));
      await client.start();
      await client.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 't' } });
      const token = String(Reflect.get(Object(Reflect.get(Object(await answer), 'result')), 'requestState'));
      const claims: Record<string, unknown> = JSON.parse(utf8(codec.unseal(token)));
      expect(claims['aud'] ?? null).toBe(effective);
    },
  );

  test.each(boundaryVectors.sealRefusals)('a state is not sealed: $name', async ({ principal, wireError: wire }) => {
    const { bindPrincipal } = binding(principal, null);
    const outcome = await exchange(
      { method: 'tools/call', params: { name: 't' } },
      { codec, bindPrincipal: bindPrincipal ?? null },
      undefined,
      () => ({ resultType: 'input_required', requestState: 'canary-state' }),
    );
    expect(outcome.error).toEqual(wire);
    expect(outcome.events).toEqual([
      { direction: 'outbound', method: 'tools/call', reason: 'principal binding error' },
    ]);
  });
});
