import { AesGcmRequestStateCodec, InvalidRequestState } from '@sealring/core';
import { describe, expect, test } from 'vitest';
import { type Boundary, type BoundaryRequest, prepareFor } from '../../src/boundary/boundary.ts';
import { mintClaims } from '../../src/boundary/claims.ts';
import { saltSource } from '../../src/boundary/random-salt.ts';
import { requestIdentity } from '../../src/boundary/request-identity.ts';
import { RequestStateSecurity } from '../../src/index.ts';
import { policyOf } from '../../src/server/policy.ts';
import { clockAt, exchange, type Outcome } from '../support/exchange.ts';
import { NOT_SEALED, REFUSED } from '../support/served.ts';

const KEY = Buffer.from('00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff', 'hex');
const NOW_SECONDS = 1_795_000_000;
const LONGEST = 262_144;
const codec = new AesGcmRequestStateCodec([KEY]);
const CALL = { method: 'tools/call', params: { name: 't' } };
const ask = (state: unknown) => () => ({ resultType: 'input_required', requestState: state });

/** The real codec, except for the given methods. */
function codecOf(extra: object) {
  return {
    seal: (payload: Uint8Array) => codec.seal(payload),
    unseal: (token: string) => codec.unseal(token),
    ...extra,
  };
}

function boundaryOf(options: object): Boundary {
  const security = new RequestStateSecurity({ codec, clock: clockAt(NOW_SECONDS * 1_000), ...options });
  return policyOf(security).boundaryFor(null);
}

function requestOf(extra: Partial<BoundaryRequest> = {}): BoundaryRequest {
  const { signal } = new AbortController();
  const identity = requestIdentity('tools/call', CALL.params);
  return { method: 'tools/call', identity, signal, bindPrincipal: () => null, warn: () => {}, ...extra };
}

const reasons = (outcome: Outcome): string[] => outcome.events.map((event) => event.reason);

function echo(token: string, options: object): Promise<Outcome> {
  return exchange({ ...CALL, params: { ...CALL.params, requestState: token } }, Object({ codec, ...options }));
}

/** The unhandled rejections during a run: each of them would end a process. */
async function unhandledDuring(run: () => Promise<unknown>): Promise<unknown[]> {
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => void unhandled.push(reason);
  process.on('unhandledRejection', note);
  try {
    await run();
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.off('unhandledRejection', note);
  }
  return unhandled;
}

const later = async () => Promise.reject(new Error('later'));

describe('an async callback in place of a synchronous one', () => {
  test.each([
    ['seal', { codec: codecOf({ seal: later }) }, 'codec error'],
    ['bindPrincipal', { codec, bindPrincipal: later }, 'principal binding error'],
  ])('an async %s is refused, and its rejection does not end the process', async (_name, options, reason) => {
    const unhandled = await unhandledDuring(async () => {
      const outcome = await exchange(CALL, Object(options), undefined, ask('x'));
      expect(outcome).toMatchObject({ error: NOT_SEALED, events: [{ reason }] });
    });
    expect(unhandled).toEqual([]);
  });

  test('an async unseal is refused, and its rejection does not end the process', async () => {
    const unhandled = await unhandledDuring(async () => {
      expect((await echo('token', { codec: codecOf({ unseal: later }) })).error).toEqual(REFUSED);
    });
    expect(unhandled).toEqual([]);
  });
});

describe('the size limits (F30)', () => {
  test('accepts the longest token of any codec, and refuses a token that is one character longer', async () => {
    const read: number[] = [];
    const reader = codecOf({
      unseal: (token: string) => {
        read.push(token.length);
        throw new InvalidRequestState('authentication failed');
      },
    });
    expect(reasons(await echo('A'.repeat(LONGEST), { codec: reader }))).toEqual(['authentication failed']);
    expect(reasons(await echo('A'.repeat(LONGEST + 1), { codec: reader }))).toEqual(['malformed']);
    expect(read).toEqual([LONGEST]);
  });

  test.each([
    [256, undefined],
    [257, 'state too large'],
  ])('with maxTokenLength 256, a token of %i characters has the result %s', async (length, reason) => {
    const options = { codec: codecOf({ seal: () => 'A'.repeat(length) }), maxTokenLength: 256 };
    const outcome = await exchange(CALL, options, undefined, ask('x'));
    expect(reasons(outcome)).toEqual(reason === undefined ? [] : [reason]);
  });

  test('refuses a state longer than maxTokenLength without sealing it', async () => {
    const sealed: Uint8Array[] = [];
    const counting = codecOf({ seal: (payload: Uint8Array) => `token-${sealed.push(payload)}` });
    const outcome = await exchange(CALL, { codec: counting }, undefined, ask('x'.repeat(65_537)));
    expect(reasons(outcome)).toEqual(['state too large']);
    expect(sealed).toEqual([]);
  });
});

describe('the binding of a request', () => {
  const deep: unknown = JSON.parse(`${'['.repeat(600)}${']'.repeat(600)}`);
  test.each<[string, Record<string, unknown>]>([
    ['a name that is not text', { name: 5 }],
    ['arguments nested too deep', { name: 't', arguments: { deep } }],
  ])('%s: no state is sealed for the request, and no token is accepted', async (_name, params) => {
    const sealed = await exchange({ method: 'tools/call', params }, { codec }, undefined, ask('x'));
    expect(sealed).toMatchObject({ error: NOT_SEALED, events: [{ reason: 'request binding' }] });
    const made = await exchange(CALL, { codec }, undefined, ask('x'));
    const requestState = Object(made.result).requestState;
    const echoed = await exchange({ method: 'tools/call', params: { ...params, requestState } }, { codec });
    expect(echoed).toMatchObject({ handled: false, error: REFUSED, events: [{ reason: 'request binding' }] });
  });

  test.each([undefined, null, {}, { name: null }])(
    'parameters %o have the empty target, as in the MCP Python SDK',
    (params) => {
      const { target, digest } = requestIdentity('tools/call', params);
      expect(target).toBe('');
      expect(digest).toBe(requestIdentity('tools/call', { name: 't', arguments: {} }).digest);
    },
  );

  test('a new state in response to a token is bound to the same principal as the token', async () => {
    const made = await exchange(CALL, { codec }, undefined, ask('one'));
    const params = { ...CALL.params, requestState: Object(made.result).requestState };
    const again = await exchange({ ...CALL, params }, { codec }, undefined, (state) => ask(`${String(state)} two`)());
    expect(await echo(Object(again.result).requestState, {})).toMatchObject({ state: 'one two', events: [] });
  });
});

describe('an error of a codec', () => {
  const throwing = (thrown: unknown, more: object = {}) => ({
    codec: codecOf({
      unseal: () => {
        throw thrown;
      },
      ...more,
    }),
    onInvalid: 're-elicit',
  });

  test('the handler runs again for a token of an unknown key if prepare succeeded', async () => {
    const outcome = await echo('token', throwing(new InvalidRequestState('unknown key'), { prepare: async () => {} }));
    expect(outcome).toMatchObject({ handled: true, state: undefined });
    expect(reasons(outcome)).toEqual(['unknown key']);
  });

  test('a failed prepare does not change the reason for refusing a malformed token', async () => {
    const prepare = async () => Promise.reject(new Error('canary'));
    expect(reasons(await echo('token', throwing(new InvalidRequestState('malformed'), { prepare })))).toEqual([
      'malformed',
    ]);
  });

  test.each([
    ['KmsError', 'KmsError'],
    ['A'.repeat(48), 'A'.repeat(48)],
    ['A'.repeat(49), 'not an Error'],
    ['canary: no name', 'not an Error'],
    ['no name canary', 'not an Error'],
    ['-----BEGIN', 'not an Error'],
    ['END-----', 'not an Error'],
    [5, 'not an Error'],
    [undefined, 'not an Error'],
    [['canary'], 'not an Error'],
  ])('an error named %o is reported to onerror as %s, without its text (F21)', async (name, told) => {
    const { errors } = await echo('token', throwing(Object.assign(new Error('canary'), { name })));
    expect(errors.map((error) => error.message)).toEqual([
      `requestState: refused inbound on tools/call: codec error (${told})`,
    ]);
  });

  test('a refusal without an underlying error is reported without an error class', async () => {
    const { errors } = await echo('token', {});
    expect(errors.map((error) => error.message)).toEqual(['requestState: refused inbound on tools/call: malformed']);
  });
});

describe('single use', () => {
  test('the failure of a store is reported to onerror with the class of the error', async () => {
    const singleUse = { claim: async () => Promise.reject(new RangeError('canary')) };
    const made = await exchange(CALL, { codec, singleUse }, undefined, ask('x'));
    const { errors } = await echo(Object(made.result).requestState, { singleUse });
    expect(errors.map((error) => error.message)).toEqual([
      'requestState: refused inbound on tools/call: already used (RangeError)',
    ]);
  });

  test('no handler runs for a client that disconnects while its token is claimed', async () => {
    const leaving = new AbortController();
    const claim = async () => {
      leaving.abort(new Error('left'));
      return true;
    };
    const boundary = boundaryOf({ singleUse: { claim } });
    const token = boundary.seal(requestOf(), 'x', undefined) ?? '';
    await expect(boundary.unseal(requestOf({ signal: leaving.signal }), token)).rejects.toThrow('left');
  });

  test.each([
    ['too short', Buffer.alloc(15).toString('base64url')],
    ['too long', Buffer.alloc(17).toString('base64url')],
    ['spelt in another way', `${'A'.repeat(21)}B`],
    ['padded', `${'A'.repeat(22)}==`],
  ])('an identifier that is %s makes the token malformed (F18)', async (_name, id) => {
    const claimed: string[] = [];
    const claim = async (of: string) => claimed.push(of) > 0;
    const envelope = (of: string) =>
      mintClaims({
        nowSeconds: NOW_SECONDS,
        ttlSeconds: 600,
        identity: requestIdentity('tools/call', CALL.params),
        state: 'x',
        audience: null,
        principal: null,
        id: of,
      });
    const boundary = boundaryOf({ singleUse: { claim } });
    await expect(boundary.unseal(requestOf(), codec.seal(envelope(id)))).rejects.toThrow('malformed');
    expect(claimed).toEqual([]);
    const right = Buffer.alloc(16).toString('base64url');
    expect(await boundary.unseal(requestOf(), codec.seal(envelope(right)))).toMatchObject({ state: 'x' });
    expect(claimed).toHaveLength(1);
  });
});

test('null and undefined from bindPrincipal both mean that there is no principal', async () => {
  for (const [sealing, opening] of [
    [null, undefined],
    [undefined, null],
  ]) {
    const sealed = await exchange(CALL, Object({ codec, bindPrincipal: () => sealing }), undefined, ask('x'));
    const token: unknown = Reflect.get(Object(sealed.result), 'requestState');
    expect(token).toEqual(expect.any(String));
    expect((await echo(String(token), { bindPrincipal: () => opening })).state).toBe('x');
  }
});

describe('prepare', () => {
  test.each([
    ['of a codec without prepare', {}],
    ['of one whose prepare returns nothing', { prepare: () => undefined }],
    ['of one whose prepare returns a promise', { prepare: async () => {} }],
  ])('prepare %s succeeds', async (_name, prepared) => {
    expect(await prepareFor(requestOf(), prepared, 'token')).toBe(true);
  });

  test('reports a prepare that throws, and treats the key as not looked up', async () => {
    const warnings: string[] = [];
    const prepare = () => {
      throw new RangeError('canary');
    };
    const request = requestOf({ warn: (message) => void warnings.push(message) });
    expect(await prepareFor(request, { prepare }, 'token')).toBe(false);
    expect(warnings).toEqual(['codec.prepare failed (RangeError)']);
  });
});

test('nothing is unsealed, and no refusal is reported, when the client disconnects during prepare', async () => {
  const leaving = new AbortController();
  const unsealed: string[] = [];
  const warnings: string[] = [];
  const prepared = codecOf({
    prepare: async () => {
      leaving.abort(new Error('left'));
      throw new Error('interrupted');
    },
    unseal: (token: string) => {
      unsealed.push(token);
      return codec.unseal(token);
    },
  });
  const boundary = boundaryOf({ codec: prepared });
  const token = boundary.seal(requestOf(), 'x', undefined) ?? '';
  const request = requestOf({ signal: leaving.signal, warn: (message) => void warnings.push(message) });
  await expect(boundary.unseal(request, token)).rejects.toThrow('left');
  expect([unsealed, warnings]).toEqual([[], []]);
});

test('a payload that is not strict UTF-8 is malformed', async () => {
  const boundary = boundaryOf({});
  const envelope = Buffer.from(codec.unseal(boundary.seal(requestOf(), 'state', undefined) ?? ''));
  const invalid = Buffer.from(envelope.toString('latin1').replace('state', 'stat\xff'), 'latin1');
  for (const payload of [invalid, Buffer.concat([Buffer.of(0xef, 0xbb, 0xbf), envelope])]) {
    await expect(boundary.unseal(requestOf(), codec.seal(payload))).rejects.toThrow('malformed');
  }
  expect(await boundary.unseal(requestOf(), codec.seal(envelope))).toMatchObject({ state: 'state' });
});

test('salts have their full length, are random and are never returned twice', () => {
  const draw = saltSource(8);
  const drawn = Array.from({ length: 600 }, () => draw());
  expect(new Set(drawn.map((salt) => salt.length))).toEqual(new Set([8]));
  expect(new Set(drawn.map((salt) => Buffer.from(salt).toString('hex'))).size).toBe(600);
  // Each result belongs to the caller: writing to one changes no other.
  const [first, second] = [draw(), draw()];
  const before = Buffer.from(second).toString('hex');
  first.fill(0);
  expect(Buffer.from(second).toString('hex')).toBe(before);
});
