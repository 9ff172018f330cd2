import { randomBytes } from 'node:crypto';
import {
  McpServer,
  type RequestStateCodec as SdkCodec,
  type RequestStateCodecOptions as SdkOptions,
  type ServerContext,
  createRequestStateCodec as sdkCodec,
} from '@modelcontextprotocol/server';
import { AesGcmRequestStateCodec, InvalidRequestState, SealUnavailableError } from '@sealring/core';
import { formatSecretsOf } from '@sealring/core/format-secrets';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createRequestStateCodec } from '../../src/index.ts';
import { clockAt, exchange } from '../support/exchange.ts';
import { Fleet } from '../support/rings.ts';
import { CONFIRM, REFUSED, serveHttp, textOf, tokenOf, YES } from '../support/served.ts';

const NOW = 1_795_000_000_000;
const KEY = 'a key of thirty-two bytes or more, for tests';
const clock = clockAt(NOW);

/** The parts of a context that these tests bind to; the codecs read nothing else. */
function contextOf(user: string): ServerContext {
  return Object.assign(Object.create(null), { user });
}
const bind = (ctx: ServerContext): string => String(Reflect.get(ctx, 'user'));
const alice = contextOf('alice');

async function reasonOf(verified: Promise<unknown>): Promise<unknown> {
  return verified.then(
    (payload) => ({ payload }),
    (error: unknown) => (error instanceof Error ? `${error.name}: ${error.message}` : error),
  );
}

/** For values that TypeScript would reject. */
function untyped(options: unknown): SdkCodec {
  return Reflect.apply(createRequestStateCodec, undefined, [options]);
}

const json = fc.jsonValue();
const keys = fc.uint8Array({ minLength: 32, maxLength: 80 });

describe('createRequestStateCodec with a key, compared with the codec of the TypeScript SDK', () => {
  test('each codec accepts the tokens that the other mints, for every payload, key and binding', async () => {
    const round = fc.asyncProperty(
      json,
      keys,
      fc.option(fc.string({ unit: 'binary' })),
      async (payload, key, bound) => {
        const options: SdkOptions = bound === null ? { key } : { key, bind: () => bound };
        const [ours, theirs] = [createRequestStateCodec(options), sdkCodec(options)];
        const expected: unknown = JSON.parse(JSON.stringify(payload));
        expect(await theirs.verify(await ours.mint(payload, alice), alice)).toEqual(expected);
        expect(await ours.verify(await theirs.mint(payload, alice), alice)).toEqual(expected);
      },
    );
    await fc.assert(round, { numRuns: 300 });
  });

  test('damaged tokens that both codecs refuse are refused with the same reason', async () => {
    const [ours, theirs] = [createRequestStateCodec({ key: KEY, bind }), sdkCodec({ key: KEY, bind })];
    const token = await theirs.mint({ step: 1 }, alice);
    const damage = fc.tuple(fc.nat(token.length - 1), fc.nat(2), fc.string({ minLength: 1, maxLength: 3 }));
    const round = fc.asyncProperty(damage, async ([at, cut, text]) => {
      const damaged = token.slice(0, at) + text + token.slice(at + cut);
      const [mine, sdk] = [await reasonOf(ours.verify(damaged, alice)), await reasonOf(theirs.verify(damaged, alice))];
      // The SDK decodes the MAC leniently, so it accepts some other spellings of a valid token. This codec accepts
      // none.
      const respelt = typeof sdk === 'object' && damaged !== token;
      expect(respelt ? ['Error: mac', 'Error: malformed'] : [sdk]).toContainEqual(mine);
    });
    await fc.assert(round, { numRuns: 500 });
  });

  test('the options, the codec and the verify hook have the types of the SDK', () => {
    const options: SdkOptions = { key: KEY, ttlSeconds: 60, bind };
    const codec: SdkCodec<{ step: number }> = createRequestStateCodec<{ step: number }>(options);
    // oxlint-disable-next-line typescript/unbound-method -- as the SDK's documentation passes it
    const server = new McpServer({ name: 'typed', version: '1.0.0' }, { requestState: { verify: codec.verify } });
    expect(server).toBeInstanceOf(McpServer);
  });

  test('options that cannot work do not compile', () => {
    const plain = new AesGcmRequestStateCodec([KEY]);
    const wrong = [
      // @ts-expect-error -- a signed wire needs a ring
      () => createRequestStateCodec({ codec: plain, wire: 'signed' }),
      // @ts-expect-error -- so does a signed wire in alsoAccept
      () => createRequestStateCodec({ key: KEY, alsoAccept: plain, wire: 'signed' }),
      // @ts-expect-error -- exactly one makes new tokens
      () => createRequestStateCodec({ key: KEY, codec: plain }),
      // @ts-expect-error -- a key has one wire
      () => createRequestStateCodec({ key: KEY, wire: 'sealed' }),
    ];
    for (const make of wrong) expect(make).toThrow(TypeError);
  });

  test('a key is copied, and a string is used as its UTF-8 bytes', async () => {
    const key = randomBytes(32);
    const codec = createRequestStateCodec({ key });
    const token = await sdkCodec({ key }).mint(1);
    key.fill(0);
    expect(await codec.verify(token, alice)).toBe(1);
    const text = 'ключ длиной больше тридцати двух байт';
    const sdkToken = await sdkCodec({ key: text }).mint(2);
    expect(await createRequestStateCodec({ key: Buffer.from(text) }).verify(sdkToken, alice)).toBe(2);
  });

  test('a disconnected client gets the same result as any other, as in the SDK', async () => {
    const gone = Object.assign(contextOf('alice'), { mcpReq: { signal: AbortSignal.abort(new Error('left')) } });
    for (const states of [createRequestStateCodec({ key: KEY }), sdkCodec({ key: KEY })]) {
      const token = await states.mint('mine');
      expect(await states.verify(token, gone)).toBe('mine');
      const forged = `${token.slice(0, -43)}${'A'.repeat(43)}`;
      expect(await reasonOf(states.verify(forged, gone))).toBe('Error: mac');
    }
  });

  test('the methods do not depend on `this`', async () => {
    // oxlint-disable-next-line typescript/unbound-method -- that is what is tested
    const { mint, verify } = createRequestStateCodec({ key: KEY });
    expect(await verify(await mint('free'), alice)).toBe('free');
  });
});

describe('the options of createRequestStateCodec', () => {
  const codec = new AesGcmRequestStateCodec([KEY]);
  test.each<[string, unknown, string]>([
    ['neither key nor codec', {}, 'TypeError'],
    ['both key and codec', { key: KEY, codec }, 'TypeError'],
    ['an unknown option', { key: KEY, ttl: 5 }, 'TypeError'],
    ['a wire without a codec', { key: KEY, wire: 'signed' }, 'TypeError'],
    ['an unknown wire', { codec, wire: 'open' }, 'RangeError'],
    ['a codec beside a codec', { codec, alsoAccept: codec }, 'TypeError'],
    ['a short key in alsoAccept', { codec, alsoAccept: 'x'.repeat(31) }, 'RangeError'],
    ['a short key', { key: new Uint8Array(31) }, 'RangeError'],
    ['an array for a key', { key: Array.from({ length: 32 }, () => 7) }, 'RangeError'],
    ['a lifetime of another type', { key: KEY, ttlSeconds: Number.NaN }, 'RangeError'],
    ['a bind of another type', { key: KEY, bind: 'alice' }, 'TypeError'],
    ['a clock of another type', { key: KEY, clock: {} }, 'TypeError'],
  ])('%s is rejected', (_name, options, error) => {
    expect(() => untyped(options)).toThrow(expect.objectContaining({ name: error }));
  });

  test('a ttlSeconds longer than the codec’s tokenLifetimeSeconds is rejected', async () => {
    await using fleet = new Fleet(NOW);
    const ring = await fleet.member();
    const ttlSeconds = ring.tokenLifetimeSeconds + 1;
    for (const wire of ['sealed', 'signed'] as const) {
      expect(() => untyped({ codec: ring, wire, ttlSeconds })).toThrow(RangeError);
    }
  });

  test('a bind that does not return a string makes mint reject, and verify refuse the token', async () => {
    const late = Promise.reject(new Error('late'));
    const coerced = new Map<unknown, string>([
      [undefined, 'undefined'],
      [null, 'null'],
      [7, '7'],
      [late, '[object Promise]'],
    ]);
    for (const [wrong, text] of coerced) {
      const states = untyped({ key: KEY, bind: () => wrong });
      await expect(states.mint(1, alice)).rejects.toThrow(TypeError);
      const token = await createRequestStateCodec({ key: KEY, bind: () => text }).mint(1, alice);
      expect(await reasonOf(states.verify(token, alice))).toBe('Error: bind');
    }
  });
});

describe('tokens of createRequestStateCodec with a codec', () => {
  test('a token reveals neither payload nor binding, and every member accepts it through two rotations', async () => {
    await using fleet = new Fleet(NOW);
    const [a, b] = [await fleet.member(), await fleet.member()];
    const options = { bind, clock: fleet.clock, ttlSeconds: a.tokenLifetimeSeconds };
    const mine = createRequestStateCodec({ ...options, codec: a });
    const other = createRequestStateCodec({ ...options, codec: b });
    const tokens: string[] = [];
    for (const round of [1, 2, 3]) {
      const token = await mine.mint({ secret: 'canary', round }, alice);
      expect(token).toMatch(/^sr1\./);
      expect(Buffer.from(token.slice(4), 'base64url').toString('latin1')).not.toMatch(/canary|alice/);
      expect(await reasonOf(other.verify(token, contextOf('mallory')))).toBe('Error: bind');
      tokens.push(token);
      for (const [i, each] of tokens.entries()) {
        expect(await other.verify(each, alice)).toEqual({ secret: 'canary', round: i + 1 });
      }
      await fleet.rotate();
    }
    expect(new Set(tokens.map((token) => token.slice(4, 16))).size).toBe(3);
  });

  test('tokens of createRequestStateCodec and tokens of a boundary with the same codec never pass for each other', async () => {
    await using fleet = new Fleet(NOW);
    const ring = await fleet.member();
    for (const codec of [new AesGcmRequestStateCodec([KEY]), ring]) {
      const states = createRequestStateCodec({ codec, clock });
      const security = { codec, clock, bindPrincipal: () => 'alice' };
      const request = { method: 'tools/call', params: { name: 'refund', arguments: {} } };
      const sealed = await exchange(request, security, undefined, () => ({
        resultType: 'input_required',
        requestState: 'plain',
      }));
      const token: unknown = Reflect.get(Object(sealed.result), 'requestState');
      expect(typeof token).toBe('string');
      expect(await reasonOf(states.verify(String(token), alice))).toMatch(/^Error: (malformed|mac)$/);
      const requestState = await states.mint({ step: 1 });
      const back = await exchange({ ...request, params: { ...request.params, requestState } }, security);
      expect(back).toMatchObject({ handled: false, error: REFUSED });
    }
  });

  test('a KMS codec has separate token keys for createRequestStateCodec', async () => {
    await using fleet = new Fleet(NOW);
    const codec = await fleet.member();
    const token = await createRequestStateCodec({ codec, clock }).mint(1);
    expect(() => codec.unseal(token)).toThrow(InvalidRequestState);
    expect(codec.for('typescript').unseal(token)).toBeInstanceOf(Uint8Array);
  });

  test('a codec with bind refuses a token without a binding, and a codec without bind refuses a token with one', async () => {
    const codec = new AesGcmRequestStateCodec([KEY]);
    const [free, bound] = [createRequestStateCodec({ codec }), createRequestStateCodec({ codec, bind })];
    expect(await reasonOf(bound.verify(await free.mint(1), alice))).toBe('Error: bind');
    expect(await reasonOf(free.verify(await bound.mint(1, alice), alice))).toBe('Error: bind');
  });

  test('a token is valid through its last second, and expired after that', async () => {
    const codec = new AesGcmRequestStateCodec([KEY]);
    const token = await createRequestStateCodec({ codec, clock, ttlSeconds: 10 }).mint(1);
    const at = (ms: number) => createRequestStateCodec({ codec, clock: clockAt(NOW + ms) }).verify(token, alice);
    expect(await at(10_999)).toBe(1);
    expect(await reasonOf(at(11_000))).toBe('Error: expired');
  });

  test('a codec’s refusals are reported as malformed or mac, and any other failure reveals nothing (F33)', async () => {
    const canary = Object.assign(new Error('canary'), { cause: 'canary' });
    const throwing = (error: unknown) =>
      createRequestStateCodec({
        codec: {
          seal: () => {
            throw error;
          },
          unseal: () => {
            throw error;
          },
        },
      });
    const told = async (error: unknown) => reasonOf(throwing(error).verify('token', alice));
    expect(await told(new InvalidRequestState('malformed'))).toBe('Error: malformed');
    expect(await told(new InvalidRequestState('unknown key'))).toBe('Error: mac');
    expect(await told(new InvalidRequestState('authentication failed'))).toBe('Error: mac');
    const failed = 'CodecFailedError: createRequestStateCodec: the codec failed (Error)';
    expect(await told(canary)).toBe(failed);
    expect(await reasonOf(throwing(canary).mint(1))).toBe(failed);
    expect(await reasonOf(throwing(new SealUnavailableError('reader')).mint(1))).toMatch(/^SealUnavailableError/);
    for (const wrong of [undefined, '', 7, Promise.reject(canary)]) {
      const states = untyped({ codec: { seal: () => wrong, unseal: () => wrong } });
      expect(await reasonOf(states.mint(1))).toMatch(/the codec failed/);
      expect(await reasonOf(states.verify('token', alice))).toMatch(/the codec failed/);
    }
  });
});

describe('a user’s own codec', () => {
  const sealer = new AesGcmRequestStateCodec([KEY]);
  const codecOf = (extra: object) => ({
    seal: (payload: Uint8Array) => sealer.seal(payload),
    unseal: (token: string) => sealer.unseal(token),
    ...extra,
  });

  test('gets the signal of the request in prepare if there is one, and needs no context', async () => {
    const handed: unknown[] = [];
    const prepare = async (_token: string, options: object) => void handed.push(options);
    const states = untyped({ codec: codecOf({ prepare }) });
    const token = await states.mint(1);
    const { signal } = new AbortController();
    for (const context of [undefined, Object.create(null), { mcpReq: {} }, { mcpReq: { signal } }]) {
      expect(await Reflect.apply(Reflect.get(states, 'verify'), states, [token, context])).toBe(1);
    }
    expect(handed).toStrictEqual([{}, {}, {}, { signal }]);
    expect(Reflect.get(Object(handed[3]), 'signal')).toBe(signal);
  });

  test('a failed prepare is reported with the class of its error, and does not count as a refusal of an unknown key (F9)', async () => {
    const unseal = () => {
      throw new InvalidRequestState('unknown key');
    };
    const prepare = async () => Promise.reject(new RangeError('canary'));
    expect(await reasonOf(untyped({ codec: codecOf({ prepare, unseal }) }).verify('token', alice))).toBe(
      'CodecFailedError: createRequestStateCodec: the codec failed (RangeError)',
    );
  });

  test('a failed authentication is still reported if prepare failed (F9)', async () => {
    const unseal = () => {
      throw new InvalidRequestState('authentication failed');
    };
    const prepare = async () => Promise.reject(new RangeError('canary'));
    expect(await reasonOf(untyped({ codec: codecOf({ prepare, unseal }) }).verify('token', alice))).toBe('Error: mac');
  });

  test('a value that is not a string, or is too long, is malformed, and the codec is not called', async () => {
    let asked = 0;
    const states = untyped({ codec: codecOf({ unseal: () => asked++ }) });
    const wrong: readonly unknown[] = [undefined, null, 7, ['token'], { length: 5 }, 'x'.repeat(262_145)];
    for (const state of wrong) {
      expect(await reasonOf(states.verify(state as string, alice))).toBe('Error: malformed');
    }
    expect(asked).toBe(0);
  });

  test('a codec can also seal other payloads, and a token without an envelope is malformed (F24)', async () => {
    const states = createRequestStateCodec({ codec: sealer, clock });
    const envelope = JSON.stringify({ p: 'canary', exp: NOW / 1_000 + 60 });
    const mark = 'sealring/v1/typescript\0';
    expect(await states.verify(sealer.seal(Buffer.from(mark + envelope)), alice)).toBe('canary');
    for (const other of ['sealring/v1/typescript\x01', mark.toUpperCase(), ' '.repeat(mark.length), '']) {
      expect(await reasonOf(states.verify(sealer.seal(Buffer.from(other + envelope)), alice))).toBe('Error: malformed');
    }
  });

  test('tokens of a codec can start like signed tokens, because dispatch depends on their whole shape', async () => {
    const moved = createRequestStateCodec({ codec: sealer, alsoAccept: KEY, clock });
    const [sealed, signed] = [await moved.mint(1), await createRequestStateCodec({ key: KEY, clock }).mint(2)];
    expect([sealed.slice(0, 3), signed.slice(0, 3)]).toEqual(['v1.', 'v1.']);
    expect([await moved.verify(sealed, alice), await moved.verify(signed, alice)]).toEqual([1, 2]);
  });

  test('a codec may make tokens of up to 262 144 characters, and never receives longer ones (F30)', async () => {
    const read: number[] = [];
    const of = (length: number) =>
      untyped({
        codec: {
          seal: () => 'A'.repeat(length),
          unseal: (token: string) => {
            read.push(token.length);
            throw new InvalidRequestState('authentication failed');
          },
        },
      });
    expect(await of(262_144).mint(1)).toHaveLength(262_144);
    const tooLong =
      'RangeError: createRequestStateCodec: a token must not have more than 262144 characters, got 262145';
    expect(await reasonOf(of(262_145).mint(1))).toBe(tooLong);
    expect(await reasonOf(of(0).verify('A'.repeat(262_144), alice))).toBe('Error: mac');
    expect(await reasonOf(of(0).verify('A'.repeat(262_145), alice))).toBe('Error: malformed');
    expect(read).toEqual([262_144]);
  });

  test('an async codec or bind that rejects does not end the process', async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => void unhandled.push(reason);
    process.on('unhandledRejection', note);
    const later = async () => Promise.reject(new Error('later'));
    const states = untyped({ codec: codecOf({ seal: later, unseal: later }) });
    expect(await reasonOf(states.mint(1))).toMatch(/the codec failed/);
    expect(await reasonOf(states.verify('token', alice))).toMatch(/the codec failed/);
    expect(await reasonOf(untyped({ key: KEY, bind: later }).mint(1, alice))).toMatch(/bind must return a string/);
    await new Promise((resolve) => setImmediate(resolve));
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
  });
});

test('an error for a payload that has no JSON form does not quote any part of the payload (F21)', async () => {
  const states = createRequestStateCodec({ key: KEY });
  const cyclic: Record<string, unknown> = {};
  cyclic['canary'] = { cyclic };
  const throwing = (error: unknown) => ({
    toJSON: () => {
      throw error;
    },
  });
  const general = 'TypeError: createRequestStateCodec: the payload cannot be serialized as JSON';
  for (const payload of [
    cyclic,
    throwing(new TypeError('canary')),
    throwing(new Error('canary')),
    throwing('canary'),
  ]) {
    expect(await reasonOf(states.mint(payload))).toBe(general);
  }
  expect(await reasonOf(states.mint({ canary: 10n }))).toBe('TypeError: Do not know how to serialize a BigInt');
});

/** Timers that keep the process running. */
function timers(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
}

describe('signed tokens with a ring', () => {
  test('every live key verifies, the newest one mints, and the SDK’s own codec accepts the token with the derived key', async () => {
    await using fleet = new Fleet(Date.now());
    const [a, b] = [await fleet.member(), await fleet.member('reader')];
    const options = { wire: 'signed', clock: fleet.clock, bind, ttlSeconds: a.tokenLifetimeSeconds } as const;
    const mine = createRequestStateCodec({ ...options, codec: a });
    const reader = createRequestStateCodec({ ...options, codec: b });
    const before = await mine.mint({ step: 1 }, alice);
    await fleet.rotate();
    const after = await mine.mint({ step: 2 }, alice);
    expect(before).toMatch(/^v1\.[\w-]+\.[\w-]{43}$/);
    for (const states of [mine, reader]) {
      expect(await states.verify(before, alice)).toEqual({ step: 1 });
      expect(await states.verify(after, alice)).toEqual({ step: 2 });
    }
    await expect(reader.mint(1, alice)).rejects.toThrow(SealUnavailableError);
    const [newest, oldest] = formatSecretsOf(a, 'typescript').open.map((key) => sdkCodec({ key: key.export(), bind }));
    expect(await newest?.verify(after, alice)).toEqual({ step: 2 });
    expect(await oldest?.verify(before, alice)).toEqual({ step: 1 });
  });

  test('a revoked key and a key of another fleet are refused as mac', async () => {
    await using fleet = new Fleet(NOW);
    await using stranger = new Fleet(NOW);
    const codec = await fleet.member();
    const states = createRequestStateCodec({ codec, wire: 'signed', clock: fleet.clock });
    const foreign = createRequestStateCodec({ codec: await stranger.member(), wire: 'signed', clock });
    expect(await reasonOf(states.verify(await foreign.mint(1), alice))).toBe('Error: mac');
    const token = await states.mint(1);
    expect(await states.verify(token, alice)).toBe(1);
    await codec.revoke(codec.health().keys[0]?.id ?? '');
    expect(await reasonOf(states.verify(token, alice))).toBe('Error: mac');
    expect(await states.verify(await states.mint(2), alice)).toBe(2);
  });

  test('signed and sealed tokens of one ring never pass for each other (F24)', async () => {
    await using fleet = new Fleet(NOW);
    const codec = await fleet.member();
    const signed = createRequestStateCodec({ codec, wire: 'signed', clock });
    const sealed = createRequestStateCodec({ codec, clock });
    expect(await reasonOf(sealed.verify(await signed.mint(1), alice))).toBe('Error: malformed');
    expect(await reasonOf(signed.verify(await sealed.mint(1), alice))).toBe('Error: malformed');
  });

  test.each<[string, (codec: object) => object]>([
    ['a ring as the codec', (codec) => ({ codec })],
    ['a ring as the codec and a fixed key in alsoAccept', (codec) => ({ codec, alsoAccept: KEY })],
    ['a fixed key and a ring in alsoAccept', (codec) => ({ key: KEY, alsoAccept: codec })],
  ])(
    'with %s, a token of a key that this member has not read yet triggers a read of the ring, and is accepted',
    async (_name, over) => {
      await using fleet = new Fleet(NOW);
      const [a, late] = [await fleet.member(), await fleet.member()];
      const ahead = createRequestStateCodec({ codec: a, wire: 'signed', clock: fleet.clock });
      const behind = untyped({ ...over(late), wire: 'signed', clock: fleet.clock });
      await a.revoke(a.health().keys[0]?.id ?? '');
      const token = await ahead.mint(1);
      expect(await behind.verify(token, alice)).toBe(1);
    },
  );

  test('forged tokens trigger one read of the ring, not one for each token (F5)', async () => {
    await using fleet = new Fleet(NOW);
    const states = createRequestStateCodec({ codec: await fleet.member(), wire: 'signed', clock: fleet.clock });
    const token = await states.mint(1);
    const before = fleet.reads;
    for (let i = 0; i < 500; i++) {
      const forged = `${token.slice(0, -43)}${randomBytes(32).toString('base64url')}`;
      expect(await reasonOf(states.verify(forged, alice))).toBe('Error: mac');
    }
    expect(fleet.reads - before).toBe(1);
  });

  test('a store that hangs delays a refusal and does no other harm (F29)', async () => {
    await using fleet = new Fleet(NOW);
    const states = createRequestStateCodec({ codec: await fleet.member(), wire: 'signed', clock: fleet.clock });
    const token = await states.mint(1);
    fleet.hangs = true;
    const forged = `${token.slice(0, -43)}${'A'.repeat(43)}`;
    const before = timers();
    const client = new AbortController();
    const gone = Object.assign(contextOf('alice'), { mcpReq: { signal: client.signal } });
    const left = reasonOf(states.verify(forged, gone));
    const refused = reasonOf(states.verify(forged, alice));
    await new Promise((resolve) => setImmediate(resolve));
    // The wait keeps no process alive.
    const during = timers();
    client.abort(new Error('left'));
    expect(await left).toBe('Error: left');
    expect(during).toBe(before);
    expect(await refused).toBe('Error: mac');
    expect(await states.verify(token, alice)).toBe(1);
  });

  test('a refusal leaves no timer that keeps the process alive', async () => {
    await using fleet = new Fleet(NOW);
    const states = createRequestStateCodec({ codec: await fleet.member(), wire: 'signed', clock: fleet.clock });
    const forged = `${(await states.mint(1)).slice(0, -43)}${'A'.repeat(43)}`;
    const before = timers();
    expect(await reasonOf(states.verify(forged, alice))).toBe('Error: mac');
    expect(timers()).toBe(before);
  });

  test('a closed ring is not reported as a refused token', async () => {
    await using fleet = new Fleet(NOW);
    const codec = await fleet.member();
    const states = createRequestStateCodec({ codec, wire: 'signed', clock });
    const token = await states.mint(1);
    await codec.close();
    expect(await reasonOf(states.verify(token, alice))).toMatch(/^CodecClosedError/);
  });
});

test.each(['signed', 'sealed'] as const)(
  'wire %s: a member with an outdated view reads the ring before it refuses a token, unless the client has disconnected',
  async (wire) => {
    await using fleet = new Fleet(NOW);
    const [a, late] = [await fleet.member(), await fleet.member()];
    const ahead = untyped({ codec: a, wire, clock: fleet.clock });
    const behind = untyped({ codec: late, wire, clock: fleet.clock });
    const ofRevokedKey = await ahead.mint(0);
    await a.revoke(a.health().keys[0]?.id ?? '');
    const token = await ahead.mint(1);
    fleet.clock.advance(400);
    expect(await reasonOf(behind.verify(ofRevokedKey, alice))).toBe('Error: mac');
    const gone = Object.assign(Object.create(null), { mcpReq: { signal: AbortSignal.abort(new Error('left')) } });
    await expect(behind.verify(token, gone)).rejects.toThrow('left');
    expect(await behind.verify(token, alice)).toBe(1);
  },
);

describe('a migration from a fixed key to a KMS', () => {
  test.each(['signed', 'sealed'] as const)(
    'every token is accepted on every server at every step of a migration to the %s wire',
    async (wire) => {
      await using fleet = new Fleet(Math.floor(Date.now() / 1_000) * 1_000);
      const rings = [await fleet.member(), await fleet.member(), await fleet.member()];
      // The SDK has no clock option, so all of them use the system's.
      const steps = [
        () => sdkCodec({ key: KEY, bind }),
        (i: number) => untyped({ key: KEY, bind, alsoAccept: rings[i], wire }),
        (i: number) => untyped({ codec: rings[i], bind, wire, alsoAccept: KEY }),
      ];
      const servers: SdkCodec[] = rings.map(() => sdkCodec({ key: KEY, bind }));
      const inFlight: string[] = [];
      for (const [step, make] of steps.entries()) {
        for (let i = 0; i < servers.length; i++) {
          servers[i] = make(i);
          for (const minter of servers) inFlight.push(await minter.mint({ step, server: i }, alice));
          for (const token of inFlight) {
            for (const opener of servers) expect(await opener.verify(token, alice)).toHaveProperty('step');
          }
        }
      }
      expect(inFlight.some((token) => !token.startsWith('v1.'))).toBe(wire === 'sealed');
      // The last step, when the old tokens have expired: the key is removed.
      const last = untyped({ codec: rings[0], bind, wire });
      expect(await reasonOf(last.verify(inFlight[0] ?? '', alice))).toMatch(/^Error: (mac|malformed)$/);
      expect(await last.verify(inFlight.at(-1) ?? '', alice)).toEqual({ step: 2, server: 2 });
    },
  );

  test('fails on servers that have not been migrated yet if minting changes first', async () => {
    await using fleet = new Fleet(NOW);
    const moved = createRequestStateCodec({ codec: await fleet.member(), wire: 'signed', alsoAccept: KEY });
    expect(await reasonOf(sdkCodec({ key: KEY }).verify(await moved.mint(1), alice))).toBe('Error: mac');
  });
});

test('a real server completes two rounds over HTTP, and the SDK refuses a forged state', async () => {
  await using fleet = new Fleet(Date.now());
  const codec = await fleet.member();
  for (const states of [
    createRequestStateCodec<{ order: string }>({ codec, bind: (ctx) => ctx.mcpReq.method }),
    createRequestStateCodec<{ order: string }>({ codec, wire: 'signed', bind: (ctx) => ctx.mcpReq.method }),
  ]) {
    await using http = await serveHttp(() => {
      const server = new McpServer(
        { name: 'refund-desk', version: '1.0.0' },
        // oxlint-disable-next-line typescript/unbound-method -- as the SDK's documentation passes it
        { requestState: { verify: states.verify } },
      );
      server.registerTool('refund', {}, async (ctx) => {
        const state = ctx.mcpReq.requestState<{ order: string }>();
        if (state !== undefined) return { content: [{ type: 'text', text: state.order }] };
        const requestState = await states.mint({ order: 'A1' }, ctx);
        return { resultType: 'input_required', inputRequests: { confirm: CONFIRM }, requestState };
      });
      return server;
    });
    const requestState = tokenOf(await http.call('tools/call', { name: 'refund' }));
    const second = { name: 'refund', inputResponses: YES, requestState };
    expect(textOf(await http.call('tools/call', second))).toBe('A1');
    const forged = { ...second, requestState: `${requestState.slice(0, -8)}AAAAAAAA` };
    expect((await http.call('tools/call', forged)).error).toMatchObject(REFUSED);
  }
});

test('errors, rejected options and inspected codecs show no secret and no payload (F21, F33)', async () => {
  await using fleet = new Fleet(NOW);
  const { inspect } = await import('node:util');
  const canary = 'canary-canary-canary-canary-canary-canary';
  const codec = await fleet.member();
  const sinks: string[] = [];
  const log = (value: unknown) => sinks.push(inspect(value, { depth: 9, showHidden: true }));
  const circular: Record<string, unknown> = {};
  circular[canary] = circular;
  const deep: Record<string, unknown> = { toJSON: () => JSON.parse(canary) };
  const bindTo = () => canary;
  const all = [
    createRequestStateCodec({ key: canary, bind: bindTo }),
    createRequestStateCodec({ codec, wire: 'signed', alsoAccept: canary, bind: bindTo, clock }),
    createRequestStateCodec({ codec, alsoAccept: canary, bind: bindTo, clock }),
  ];
  for (const states of all) {
    log(states);
    for (const payload of [circular, deep, canary.repeat(8_000)]) await states.mint(payload, alice).catch(log);
    const token = await states.mint({ [canary]: canary }, alice);
    const forged = Buffer.from(canary).toString('base64url');
    for (const bad of [`${token}A`, canary, `v1.${forged}.${forged}`, `sr1.${forged}`])
      await states.verify(bad, alice).catch(log);
    for (const other of all) if (other !== states) await other.verify(token, alice).catch(log);
  }
  const throwing = createRequestStateCodec({
    key: canary,
    bind: () => {
      throw new Error(canary);
    },
  });
  await throwing.verify(await createRequestStateCodec({ key: canary, bind: bindTo }).mint(1, alice), alice).catch(log);
  for (const options of [
    { key: canary.slice(0, 31) },
    { key: canary, codec },
    { key: canary, wire: 'signed' },
    { codec, alsoAccept: [canary] },
  ]) {
    try {
      untyped(options);
    } catch (error) {
      log(error);
    }
  }
  expect(sinks.length).toBeGreaterThan(20);
  const encodings = [canary, Buffer.from(canary).toString('base64url'), Buffer.from(canary).toString('hex')];
  expect(sinks.filter((text) => encodings.some((secret) => text.includes(secret.slice(0, 10))))).toEqual([]);
});
