import { createHmac, hkdfSync } from 'node:crypto';
import { inspect } from 'node:util';
import { CodecClosedError, SealUnavailableError } from '@sealring/core';
import { formatSecretsOf } from '@sealring/core/format-secrets';
import * as fc from 'fast-check';
import { afterEach, describe, expect, test, vi } from 'vitest';
import {
  createMcpdRequestStateCodec,
  type McpdRequestStateCodec,
  type McpdRequestStateCodecOptions,
} from '../../src/mcpd/index.ts';
import { NonceBudget } from '../../src/mcpd/nonce-budget.ts';
import { clockAt } from '../support/exchange.ts';
import { Fleet } from '../support/rings.ts';

const NOW = 1_795_000_000_000;
const KEY = 'a key of thirty-two bytes or more, for tests';
const clock = clockAt(NOW);
const alice = { subject: 'alice', target: 'tools/call\0refund' };
const MODES = ['signed', 'encrypted'] as const;
const BINDINGS = ['none', 'authSubject', 'authSubjectAndTool'] as const;

/** Accepts values that TypeScript would reject. */
function untyped(options: unknown): McpdRequestStateCodec {
  return Reflect.apply(createMcpdRequestStateCodec, undefined, [options]);
}

interface Loose {
  encode(state: unknown, who: unknown): unknown;
  decode(token: unknown, who: unknown): unknown;
}

function loosely(states: object): Loose {
  return states as Loose;
}

afterEach(() => vi.restoreAllMocks());

/** A sub-key, derived independently from the format's specification. */
function subKey(info: string): Buffer {
  return Buffer.from(hkdfSync('sha256', KEY, Buffer.alloc(32), `mcp.requestState ${info}`, 32));
}

/** The June forgery and similar ones need a MAC under the key of the bind tags. */
function bindKey(): Buffer {
  return subKey('bind-hmac key');
}

function signedUnder(key: Buffer, payload: string | Uint8Array): string {
  const mac = createHmac('sha256', key).update(payload).digest('base64url');
  return `v1.${Buffer.from(payload).toString('base64url')}.${mac}`;
}

describe.each(MODES)('the codec in mode %s', (mode) => {
  const states = createMcpdRequestStateCodec({ key: KEY, mode, binding: 'authSubjectAndTool', clock });

  test('decode returns the encoded state for the same requester, with every binding', () => {
    const text = fc.string({ unit: 'grapheme', minLength: 1 });
    const round = fc.property(text, text, text, fc.constantFrom(...BINDINGS), (state, name, target, binding) => {
      const subject = name.replaceAll('\0', '');
      const codec = createMcpdRequestStateCodec({ key: KEY, mode, binding, clock });
      const token = codec.encode(state, { subject, target });
      expect(codec.decode(token, { subject, target })).toBe(state);
      expect(codec.decode(token, { subject: `${subject}x`, target })).toBe(binding === 'none' ? state : null);
      const elsewhere = codec.decode(token, { subject, target: `${target}x` });
      expect(elsewhere).toBe(binding === 'authSubjectAndTool' ? null : state);
    });
    fc.assert(round, { numRuns: 300 });
  });

  test('decode returns null for a damaged, cut or re-encoded token, or for another mode or key (F18, F19, F24)', () => {
    const token = states.encode('{"step":1}', alice);
    for (let at = 0; at < token.length; at++) {
      for (const damaged of [
        `${token.slice(0, at)}${token[at] === 'A' ? 'B' : 'A'}${token.slice(at + 1)}`,
        token.slice(0, at),
        `${token.slice(0, at)}\n${token.slice(at)}`,
        `${token.slice(0, at)}.${token.slice(at)}`,
      ]) {
        expect(states.decode(damaged, alice)).toBe(null);
      }
    }
    const other = createMcpdRequestStateCodec({
      key: KEY,
      binding: 'authSubjectAndTool',
      clock,
      mode: mode === 'signed' ? 'encrypted' : 'signed',
    });
    const stranger = createMcpdRequestStateCodec({ key: `another ${KEY}`, mode, binding: 'authSubjectAndTool', clock });
    for (const bad of [
      `${token}=`,
      `${token}A`,
      `${token}.`,
      `${token}.${token}`,
      ` ${token}`,
      `${token}${token}`,
      token.replace('v1', 'v2'),
      '',
      'v1.',
      'v1e.',
      'v1..',
      `v1e.${'A'.repeat(37)}`,
      other.encode('{"step":1}', alice),
      stranger.encode('{"step":1}', alice),
    ]) {
      expect(states.decode(bad, alice)).toBe(null);
    }
    for (const bad of [undefined, null, 7, {}, [token]]) {
      expect(loosely(states).decode(bad, alice)).toBe(null);
    }
  });

  test('decode returns null for a token over 256 KiB without decoding it, and encode makes no such token (F30)', () => {
    expect(states.decode(`v1${mode === 'signed' ? '' : 'e'}.${'A'.repeat(10_000_000)}`, alice)).toBe(null);
    expect(() => states.encode('x'.repeat(200_000), alice)).toThrow(RangeError);
  });

  test('a token is accepted until its last second, and for 300 seconds by default', () => {
    const token = states.encode('1', alice);
    const at = (ms: number) =>
      createMcpdRequestStateCodec({ key: KEY, mode, binding: 'authSubjectAndTool', clock: clockAt(NOW + ms) });
    expect(at(300_999).decode(token, alice)).toBe('1');
    expect(at(301_000).decode(token, alice)).toBe(null);
  });

  test('encode rejects an empty state, and never returns it in plaintext', () => {
    expect(() => states.encode('', alice)).toThrow(RangeError);
  });

  test('subjects that would share a bind tag are distinguished or rejected', () => {
    const token = states.encode('1', { subject: 'a', target: 'b\0c' });
    expect(states.decode(token, { subject: 'a\0b', target: 'c' })).toBe(null);
    expect(() => states.encode('1', { subject: 'a\0b', target: 'c' })).toThrow(RangeError);
    const bound = createMcpdRequestStateCodec({ key: KEY, mode, clock });
    expect(bound.decode(bound.encode('1', { subject: 'u\ufffd' }), { subject: 'u\ud800' })).toBe(null);
    expect(() => bound.encode('1', { subject: 'u\ud800' })).toThrow(RangeError);
    expect(() => bound.encode('\ud800', { subject: 'u' })).toThrow(TypeError);
  });

  test('every member of a ring accepts tokens throughout a rotation, and refuses tokens of revoked keys', async () => {
    await using fleet = new Fleet(NOW);
    const [a, b] = [await fleet.member(), await fleet.member('reader')];
    const options = { mode, clock: fleet.clock, ttlSeconds: a.tokenLifetimeSeconds };
    const mine = createMcpdRequestStateCodec({ ...options, codec: a });
    const reader = createMcpdRequestStateCodec({ ...options, codec: b });
    const before = mine.encode('before', alice);
    await fleet.rotate();
    const after = mine.encode('after', alice);
    for (const member of [mine, reader]) {
      expect([member.decode(before, alice), member.decode(after, alice)]).toEqual(['before', 'after']);
    }
    expect(() => reader.encode('1', alice)).toThrow(SealUnavailableError);
    const [oldest] = a.health().keys.toSorted((x, y) => x.activates.getTime() - y.activates.getTime());
    await a.revoke(oldest?.id ?? '');
    expect([mine.decode(before, alice), mine.decode(after, alice)]).toEqual([null, 'after']);
    await a.close();
    expect(() => mine.decode(after, alice)).toThrow(CodecClosedError);
  });

  test('a peer that has the secret of this format accepts the tokens of a ring', async () => {
    await using fleet = new Fleet(NOW);
    const codec = await fleet.member();
    const key = formatSecretsOf(codec, 'mcp.d').seal.export();
    const [ours, peers] = [{ codec }, { key }].map((over) => createMcpdRequestStateCodec({ ...over, mode, clock }));
    expect(peers?.decode(ours?.encode('1', alice) ?? '', alice)).toBe('1');
    expect(ours?.decode(peers?.encode('2', alice) ?? '', alice)).toBe('2');
  });

  test('a token sealed with a key that this member has not read yet triggers a read of the ring', async () => {
    await using fleet = new Fleet(NOW);
    const [a, late] = [await fleet.member(), await fleet.member()];
    const ahead = createMcpdRequestStateCodec({ mode, clock: fleet.clock, codec: a });
    const behind = createMcpdRequestStateCodec({ mode, clock: fleet.clock, codec: late });
    await a.revoke(a.health().keys[0]?.id ?? '');
    const token = ahead.encode('1', alice);
    expect(behind.decode(token, alice)).toBe(null);
    await expect.poll(() => behind.decode(token, alice)).toBe('1');
  });

  test.each(['current', '2026-06'] as const)(
    'a migration from a fixed key of revision %s to a KMS keeps every token valid on every server at every step',
    async (revision) => {
      await using fleet = new Fleet(NOW);
      const rings = [await fleet.member(), await fleet.member(), await fleet.member()];
      const base = { mode, revision, clock: fleet.clock };
      const steps: ((i: number) => McpdRequestStateCodecOptions)[] = [
        () => ({ ...base, key: KEY }),
        (i) => ({ ...base, key: KEY, ...alsoAccept(rings[i]) }),
        (i) => ({ ...base, ...codecOf(rings[i]), alsoAccept: KEY }),
      ];
      const servers = rings.map(() => createMcpdRequestStateCodec({ ...base, key: KEY }));
      const inFlight: string[] = [];
      for (const options of steps) {
        for (let i = 0; i < servers.length; i++) {
          servers[i] = createMcpdRequestStateCodec(options(i));
          for (const server of servers) inFlight.push(server.encode('1', alice));
          for (const token of inFlight) for (const server of servers) expect(server.decode(token, alice)).toBe('1');
        }
      }
      const last = createMcpdRequestStateCodec({ mode, clock: fleet.clock, ...codecOf(rings[0]) });
      expect([last.decode(inFlight[0] ?? '', alice), last.decode(inFlight.at(-1) ?? '', alice)]).toEqual([null, '1']);
    },
  );
});

type Ring = NonNullable<McpdRequestStateCodecOptions['codec']>;
const alsoAccept = (codec: Ring | undefined) => (codec === undefined ? {} : { alsoAccept: codec });
const codecOf = (codec: Ring | undefined) => (codec === undefined ? {} : { codec });

test('forged tokens trigger one read of the ring, not one for each token (F5)', async () => {
  await using fleet = new Fleet(NOW);
  const states = createMcpdRequestStateCodec({ codec: await fleet.member(), clock: fleet.clock });
  const before = fleet.reads;
  for (let i = 0; i < 500; i++) expect(states.decode(signedUnder(bindKey(), `{"s":"${i}"}`), alice)).toBe(null);
  await fleet.refresh();
  expect(fleet.reads - before).toBe(2);
});

test('a token that is accepted triggers no read of the ring', async () => {
  await using fleet = new Fleet(NOW);
  const codec = await fleet.member();
  const states = createMcpdRequestStateCodec({ codec, clock: fleet.clock, ttlSeconds: codec.tokenLifetimeSeconds });
  const token = states.encode('1', alice);
  fleet.clock.advance(400);
  const before = fleet.reads;
  expect(states.decode(token, alice)).toBe('1');
  await fleet.refresh();
  expect(fleet.reads - before).toBe(1);
  expect(states.decode('v1.forged.token', alice)).toBe(null);
  await fleet.refresh();
  expect(fleet.reads - before).toBe(3);
});

test('encode makes a token of 262 144 characters, which decode accepts, but makes no longer token (F30)', () => {
  const states = createMcpdRequestStateCodec({ key: KEY, mode: 'encrypted', clock });
  // The rest of a token beside the state; 262 140 characters of base64url leave this.
  const frame = Buffer.from(states.encode('1', alice).slice('v1e.'.length), 'base64url').length - 1;
  const state = 'x'.repeat((262_140 / 4) * 3 - frame);
  const longest = states.encode(state, alice);
  expect(longest).toHaveLength(262_144);
  expect(states.decode(longest, alice)).toBe(state);
  expect(() => states.encode(`${state}x`, alice)).toThrow(RangeError);
});

describe('revisions of mcp.d’s signed format', () => {
  const exp = NOW / 1_000 + 60;
  const tagOf = (subject: string) => createHmac('sha256', bindKey()).update(subject).digest('hex');
  const payload = JSON.stringify({ b: tagOf('admin'), exp, s: 'forged' });
  // A client that may choose its subject reads this tag in its own token. It is the June revision's MAC of the payload.
  const forged = `v1.${Buffer.from(payload).toString('base64url')}.${Buffer.from(tagOf(payload), 'hex').toString('base64url')}`;

  test('the current revision refuses a MAC that can be forged in the June revision', () => {
    expect(forged).toBe(signedUnder(bindKey(), payload));
    const [june, current] = (['2026-06', 'current'] as const).map((revision) =>
      createMcpdRequestStateCodec({ key: KEY, revision, clock }),
    );
    expect(june?.decode(forged, { subject: 'admin' })).toBe('forged');
    expect(current?.decode(forged, { subject: 'admin' })).toBe(null);
  });

  test('the current revision has a separate key for payloads', () => {
    const honest = signedUnder(subKey('payload-hmac key'), JSON.stringify({ b: tagOf('alice'), exp, s: '1' }));
    expect(createMcpdRequestStateCodec({ key: KEY, clock }).decode(honest, alice)).toBe('1');
  });

  test('the June revision rejects a subject that looks like a payload, and the current one accepts it', () => {
    const june = createMcpdRequestStateCodec({ key: KEY, revision: '2026-06', clock });
    for (const subject of [payload, ` \n${payload}`]) expect(() => june.encode('1', { subject })).toThrow(RangeError);
    const current = createMcpdRequestStateCodec({ key: KEY, clock });
    expect(current.decode(current.encode('1', { subject: payload }), { subject: payload })).toBe('1');
  });

  test('a subject with a brace that is not at its start does not look like a payload', () => {
    const june = createMcpdRequestStateCodec({ key: KEY, revision: '2026-06', clock });
    const subject = 'alice {admin}';
    expect(june.decode(june.encode('1', { subject }), { subject })).toBe('1');
  });

  test('the June revision accepts tokens of both revisions, but a ring has only the current revision', async () => {
    const june = createMcpdRequestStateCodec({ key: KEY, revision: '2026-06', clock });
    expect(june.decode(createMcpdRequestStateCodec({ key: KEY, clock }).encode('1', alice), alice)).toBe('1');
    await using fleet = new Fleet(NOW);
    const codec = await fleet.member();
    expect(() => createMcpdRequestStateCodec({ codec, revision: '2026-06' })).toThrow(TypeError);
  });

  test('decode returns null even for an authentic token over 256 KiB (F30)', () => {
    const june = createMcpdRequestStateCodec({ key: KEY, revision: '2026-06', clock });
    const tokenOf = (length: number) =>
      signedUnder(bindKey(), JSON.stringify({ b: tagOf('alice'), exp, s: 'x'.repeat(length) }));
    expect(june.decode(tokenOf(190_000), alice)).toHaveLength(190_000);
    expect(june.decode(tokenOf(200_000), alice)).toBe(null);
  });

  test('decode returns null for authenticated bytes that are not a payload', () => {
    const june = createMcpdRequestStateCodec({ key: KEY, revision: '2026-06', clock });
    const b = tagOf('alice');
    const opened = [
      { s: 'x', b },
      { s: 'x', exp: `${exp}`, b },
      { s: 'x', exp: exp + 0.5, b },
      { s: 'x', exp: 2 ** 53, b },
      { s: 7, exp, b },
      { exp, b },
      { s: 'x', exp },
      { s: 'x', exp, b: 7 },
      { s: 'x', exp, b: b.toUpperCase() },
      [],
      null,
      7,
      'x',
    ].map((claims) => june.decode(signedUnder(bindKey(), JSON.stringify(claims)), alice));
    const proto = `{"__proto__":${JSON.stringify({ s: 'x', exp, b })}}`;
    opened.push(june.decode(signedUnder(bindKey(), proto), alice));
    expect(new Set(opened)).toEqual(new Set([null]));
    expect(june.decode(signedUnder(bindKey(), 'no json'), alice)).toBe(null);
    // Signed, and with the right members, but not UTF-8 or with a byte order mark: no server prints such a text.
    const text = Buffer.from(JSON.stringify({ b, exp, s: 'x' }));
    const invalid = Buffer.from(text.toString('latin1').replace('"x"', '"\xff"'), 'latin1');
    for (const bytes of [invalid, Buffer.concat([Buffer.of(0xef, 0xbb, 0xbf), text])]) {
      expect(june.decode(signedUnder(bindKey(), bytes), alice)).toBe(null);
    }
    expect(june.decode(signedUnder(bindKey(), text), alice)).toBe('x');
    expect(june.decode(signedUnder(bindKey(), JSON.stringify({ more: 1, exp, s: 'x', b })), alice)).toBe('x');
  });
});

describe('the options of createMcpdRequestStateCodec', () => {
  test.each<[string, unknown, string]>([
    ['null', null, 'TypeError'],
    ['an unknown option', { key: KEY, bindTo: 'none' }, 'TypeError'],
    ['an array for a key', { key: Array.from({ length: 32 }, () => 7) }, 'TypeError'],
    ['a text without a UTF-8 form', { key: `${KEY}\ud800` }, 'TypeError'],
    ['a key of 31 bytes', { key: new Uint8Array(31) }, 'RangeError'],
    ['an empty key, which is not the same as a missing one', { key: '' }, 'RangeError'],
    ['a codec of another type', { codec: KEY }, 'TypeError'],
    ['a key together with a codec', { key: KEY, codec: {} }, 'TypeError'],
    ['a key beside a key', { key: KEY, alsoAccept: KEY }, 'TypeError'],
    ['an unknown binding', { key: KEY, binding: 'tool' }, 'RangeError'],
    ['an unknown revision', { key: KEY, revision: '2026-07' }, 'RangeError'],
    ['a lifetime of 0', { key: KEY, ttlSeconds: 0 }, 'RangeError'],
    ['a lifetime of half a second', { key: KEY, ttlSeconds: 0.5 }, 'RangeError'],
    ['a lifetime that is text', { key: KEY, ttlSeconds: '300' }, 'TypeError'],
    ['a clock of another type', { key: KEY, clock: {} }, 'TypeError'],
  ])('%s is rejected', (_name, options, error) => {
    expect(() => untyped(options)).toThrow(expect.objectContaining({ name: error }));
  });

  test('a key together with a codec, or an invalid alsoAccept, is rejected', async () => {
    await using fleet = new Fleet(NOW);
    const codec = await fleet.member();
    expect(() => untyped({ key: KEY, codec })).toThrow('give either key or codec, not both');
    expect(() => untyped({ codec, alsoAccept: 5 })).toThrow('alsoAccept must be a Uint8Array or a string, got 5');
  });

  test('a ttlSeconds longer than the codec’s tokenLifetimeSeconds is rejected', async () => {
    await using fleet = new Fleet(NOW);
    const codec = await fleet.member();
    const ttlSeconds = codec.tokenLifetimeSeconds + 1;
    expect(() => createMcpdRequestStateCodec({ codec, ttlSeconds })).toThrow(RangeError);
  });

  test('the options have the same defaults as in mcp.d: signed tokens, bound to the subject', () => {
    const states = createMcpdRequestStateCodec({ key: KEY, clock });
    const token = states.encode('1', alice);
    expect(token).toMatch(/^v1\./);
    expect(states.decode(token, { subject: 'alice', target: 'elsewhere' })).toBe('1');
    expect(states.decode(token, { subject: 'mallory' })).toBe(null);
  });

  test('without a key, the codec makes a random one and emits one process warning', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    // As in a process that has not warned yet.
    vi.resetModules();
    const fresh = await import('../../src/mcpd/request-state-codec.ts');
    const [one, other, twin] = [{}, { mode: 'encrypted' as const }, {}].map((options) =>
      fresh.createMcpdRequestStateCodec(options),
    );
    if (one === undefined || other === undefined || twin === undefined) throw new Error('not made');
    const token = one.encode('1', alice);
    expect([one.decode(token, alice), twin.decode(token, alice)]).toEqual(['1', null]);
    expect(other.decode(other.encode('1', alice), alice)).toBe('1');
    expect(warned.mock.calls.map(([, about]) => about)).toEqual([
      { type: 'SealringWarning', code: 'SEALRING_EPHEMERAL' },
    ]);
  });
});

test('errors and inspected codecs of mcp.d show no secret and no state (F21, F33)', async () => {
  await using fleet = new Fleet(NOW);
  const canary = 'canary-canary-canary-canary-canary-canary';
  const sinks: string[] = [];
  const log = (value: unknown) => sinks.push(inspect(value, { depth: 9, showHidden: true }));
  const attempt = (run: () => unknown) => {
    try {
      log(run());
    } catch (error) {
      log(error);
    }
  };
  const codec = await fleet.member();
  for (const options of [{ key: canary }, { codec, alsoAccept: canary }, { key: canary, alsoAccept: codec }]) {
    const states = untyped({ ...options, mode: 'encrypted', clock });
    const who = { subject: canary };
    log(states);
    for (const state of ['', `${canary}\ud800`, canary.repeat(8_000)]) attempt(() => states.encode(state, who));
    for (const other of [{ subject: `${canary}\ud800` }, canary]) {
      attempt(() => loosely(states).encode('1', other));
      attempt(() => loosely(states).decode('1', other));
    }
    log(states.encode(canary, who));
    log(states.decode(`${states.encode(canary, who)}A`, who));
  }
  for (const options of [
    { key: canary.slice(0, 31) },
    { key: [canary] },
    { key: canary, codec },
    { alsoAccept: canary },
  ]) {
    attempt(() => untyped(options));
  }
  expect(sinks.length).toBeGreaterThan(20);
  const encodings = [canary, Buffer.from(canary).toString('base64url'), Buffer.from(canary).toString('hex')];
  expect(sinks.filter((text) => encodings.some((secret) => text.includes(secret.slice(0, 10))))).toEqual([]);
});

describe('the budget of random nonces (F1)', () => {
  test('limits the nonces of each key separately', () => {
    const budget = new NonceBudget(2);
    const [key, other] = [{}, {}];
    budget.spend(key);
    budget.spend(key);
    expect(() => budget.spend(key)).toThrow(SealUnavailableError);
    budget.spend(other);
  });

  test('encrypted tokens use the budget of random nonces, and signed tokens do not', () => {
    const spent = vi.spyOn(NonceBudget.prototype, 'spend');
    const [signed, encrypted] = MODES.map((mode) => createMcpdRequestStateCodec({ key: KEY, mode, clock }));
    for (let i = 0; i < 5; i++) signed?.encode('1', alice);
    expect(spent).not.toHaveBeenCalled();
    for (let i = 0; i < 5; i++) encrypted?.encode('1', alice);
    expect(spent).toHaveBeenCalledTimes(5);
    expect(new Set(spent.mock.calls.map(([key]) => key)).size).toBe(1);
  });

  test('all uses of a key of the ring share one budget of random nonces', async () => {
    await using fleet = new Fleet(NOW);
    const spent = vi.spyOn(NonceBudget.prototype, 'spend');
    const states = createMcpdRequestStateCodec({ codec: await fleet.member(), mode: 'encrypted', clock: fleet.clock });
    for (let i = 0; i < 3; i++) states.encode('1', alice);
    expect(spent).toHaveBeenCalledTimes(3);
    expect(new Set(spent.mock.calls.map(([key]) => key)).size).toBe(1);
  });
});
