import { randomBytes } from 'node:crypto';
import { AesGcmRequestStateCodec } from '@sealring/core';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { RejectReason } from '../../src/index.ts';
import { type Answer, REFUSED, textOf, tokenOf, YES } from '../support/served.ts';
import type { Told } from './desk.ts';
import { type Carrier, type Guest, guestAt } from './guest.ts';
import { type Desk, httpTransport, MODERN, VARIANTS } from './variants.ts';

const key = randomBytes(32).toString('hex');
const REFUND = { name: 'refund', arguments: { order: 'A1' } };
const PLAINTEXT = 'asked:A1';
/** How long an event may take on a busy machine. */
const SOON = { timeout: 30_000 };

/** One request of each method that may carry state, the user of its state, and the answer of the second round. */
const CARRIERS: Readonly<Record<Carrier, { params: Record<string, unknown>; subject: string; told: object }>> = {
  'tools/call': { params: REFUND, subject: 'A1', told: { content: [{ type: 'text', text: 'asked:A1 yes' }] } },
  'prompts/get': {
    params: { name: 'terms' },
    subject: 'terms',
    told: { messages: [{ content: { text: 'asked:terms yes' } }] },
  },
  'resources/read': {
    params: { uri: 'note:1' },
    subject: 'note:1',
    told: { contents: [{ uri: 'note:1', text: 'asked:note:1 yes' }] },
  },
};
const METHODS: readonly Carrier[] = ['tools/call', 'prompts/get', 'resources/read'];

/** The state in a token, read with the key and without the boundary. */
function sealedIn(token: string): unknown {
  const codec = new AesGcmRequestStateCodec([Buffer.from(key, 'hex')]);
  const claims: unknown = JSON.parse(Buffer.from(codec.unseal(token)).toString());
  return Reflect.get(Object(claims), 's');
}

function tampered(token: string): string {
  const at = Math.floor(token.length / 2);
  return `${token.slice(0, at)}${token[at] === 'A' ? 'B' : 'A'}${token.slice(at + 1)}`;
}

const echoOf = (requestState: string, params: Record<string, unknown> = REFUND) => ({
  ...params,
  requestState,
  inputResponses: YES,
});

interface Outcome {
  /** The error on the wire. */
  readonly error: unknown;
  readonly result: unknown;
  /** What the desk reported about the call. */
  readonly told: readonly Told[];
}

async function outcomeOf(desk: Desk, asked: () => Promise<Answer>): Promise<Outcome> {
  const before = desk.told.length;
  const { error, result } = await asked();
  // A desk on stdio answers through one pipe and reports through another.
  await vi.waitUntil(() => desk.told.length > before, SOON);
  return { error, result, told: desk.told.slice(before) };
}

/** The client gets the single refusal, `onReject` the reason, and no handler runs. */
function refusedFor(reason: RejectReason, method: Carrier = 'tools/call'): Outcome {
  return {
    error: REFUSED,
    result: undefined,
    told: [{ what: 'refused', event: { direction: 'inbound', method, reason } }],
  };
}

describe.each(VARIANTS)('$name', (variant) => {
  const open = (settings: object = {}) => variant.open({ key, ...settings });
  let home: Desk;
  // A client that is signed in as Ada, in the era that has tokens; it does not continue by itself.
  let minter: Guest;
  const mint = async (params: Record<string, unknown> = REFUND, method: Carrier = 'tools/call') =>
    tokenOf(await minter.ask(method, params));

  beforeAll(async () => {
    home = await open();
    minter = await guestAt(home.transport(MODERN, 'ada'), MODERN, { goesOn: false });
  });
  afterAll(async () => {
    await minter[Symbol.asyncDispose]();
    await home[Symbol.asyncDispose]();
  });

  test('the server seals what it sends: the token holds the state and does not reveal it', async () => {
    const answer = await minter.ask('tools/call', REFUND);
    expect(answer.result).toMatchObject({ resultType: 'input_required', inputRequests: { confirm: {} } });
    expect(sealedIn(tokenOf(answer))).toBe(PLAINTEXT);
    expect(JSON.stringify(answer)).not.toContain(PLAINTEXT);
  });

  test('another server with the same key accepts the second round', async () => {
    await using other = await open();
    await using guest = await guestAt(other.transport(MODERN, 'ada'), MODERN, { goesOn: false });
    expect(textOf(await guest.ask('tools/call', echoOf(await mint())))).toBe('asked:A1 yes');
    await expect.poll(() => other.told, SOON).toEqual([{ what: 'handled', subject: 'A1', state: PLAINTEXT }]);
  });

  test('a server with another key refuses the token', async () => {
    await using other = await open({ key: randomBytes(32).toString('hex') });
    await using guest = await guestAt(other.transport(MODERN, 'ada'), MODERN, { goesOn: false });
    const token = await mint();
    expect(await outcomeOf(other, () => guest.ask('tools/call', echoOf(token)))).toEqual(refusedFor('unknown key'));
  });

  describe.each(variant.eras)('a client of $name', (era) => {
    let guest: Guest;

    beforeAll(async () => {
      guest = await guestAt(home.transport(era, 'ada'), era);
    });
    afterAll(() => guest[Symbol.asyncDispose]());

    test('negotiates that revision', () => {
      expect(guest.client.getNegotiatedProtocolVersion()).toBe(era.revision);
    });

    test.each(METHODS)('%s: the two rounds complete, and the handler gets the state in plaintext', async (method) => {
      const { params, subject } = CARRIERS[method];
      const [before, from] = [home.told.length, guest.wire.length];
      const result: unknown = await guest.client.request({ method, params: Object(params) }).catch((error) => error);
      // Without a session the SDK reports it: there is no one to ask.
      const ending = era.asks ? `asked:${subject} yes` : 'per-request legacy serving cannot receive';
      expect(result instanceof Error ? result.message : JSON.stringify(result)).toContain(ending);
      const rounds: Told[] = [{ what: 'handled', subject, state: null }];
      // In the 2025 era the state stays in the process.
      if (era === MODERN) rounds.push({ what: 'sealed' });
      if (era.asks) rounds.push({ what: 'handled', subject, state: `asked:${subject}` });
      await expect.poll(() => home.told.slice(before), SOON).toEqual(rounds);
      const wire = guest.wire.slice(from);
      // All messages except the last, the answer that contains the state by design.
      expect(JSON.stringify(wire.slice(0, -1))).not.toContain(`asked:${subject}`);
      const tokens = wire.filter((message) => JSON.stringify(message).includes('"requestState"'));
      expect(tokens).toHaveLength(era.revision === '2026-07-28' ? 2 : 0);
    });

    test.each(METHODS)('%s: a token is accepted for the request it was sealed for', async (method) => {
      const { params, told } = CARRIERS[method];
      const answer = await guest.ask(method, echoOf(await mint(params, method), params));
      expect(answer.result).toMatchObject(told);
    });

    test.each(METHODS)('%s: a tampered token is refused', async (method) => {
      const { params } = CARRIERS[method];
      const token = tampered(await mint(params, method));
      expect(await outcomeOf(home, () => guest.ask(method, echoOf(token, params)))).toEqual(
        refusedFor('authentication failed', method),
      );
    });

    test('the token of another user is refused', async () => {
      await using mallory = await guestAt(home.transport(era, 'mallory'), era);
      const token = await mint();
      expect(await outcomeOf(home, () => mallory.ask('tools/call', echoOf(token)))).toEqual(refusedFor('principal'));
    });

    test('no handler runs for a client that disconnects before its token is unsealed', async () => {
      await using desk = await open({ singleUse: true, holdsEchoes: true });
      await using sealer = await guestAt(desk.transport(MODERN, 'ada'), MODERN, { goesOn: false });
      const token = tokenOf(await sealer.ask('tools/call', REFUND));
      const story: Told[] = [{ what: 'handled', subject: 'A1', state: null }, { what: 'sealed' }, { what: 'holding' }];
      await using leaver = await guestAt(desk.transport(era, 'ada'), era, { goesOn: false });
      const leaving = new AbortController();
      const unanswered = leaver.ask('tools/call', echoOf(token), { signal: leaving.signal }).catch(String);
      await expect.poll(() => desk.told, SOON).toEqual(story);
      // Only its socket connects the cancellation of a 2025-era client to a server of one request.
      if (era.asks) leaving.abort();
      else await leaver.client.close();
      expect(await unanswered).toContain('no answer');
      story.push({ what: 'left' });
      await expect.poll(() => desk.told, SOON).toEqual(story);
      // The desk still works, and any effect of the first call has happened by then.
      await using next = era.asks ? undefined : await guestAt(desk.transport(era, 'ada'), era);
      await (next ?? leaver).ask('prompts/get', { name: 'terms' });
      story.push({ what: 'handled', subject: 'terms', state: null });
      await expect.poll(() => desk.told.slice(0, story.length), SOON).toEqual(story);
    });

    test('the server answers a request for a list that was announced but has no entries', async () => {
      await using empty = await open({ empty: true });
      await using visitor = await guestAt(empty.transport(era, 'ada'), era);
      expect(visitor.client.getServerCapabilities()).toMatchObject({ tools: {}, prompts: {}, resources: {} });
      expect((await visitor.client.listTools()).tools).toEqual([]);
      expect((await visitor.client.listPrompts()).prompts).toEqual([]);
      expect((await visitor.client.listResources()).resources).toEqual([]);
      expect((await visitor.client.listResourceTemplates()).resourceTemplates).toEqual([]);
      const lists = visitor.wire.filter((message) => Reflect.get(Object(message), 'result') !== undefined);
      expect(lists).toHaveLength(4);
    });
  });
});

describe('a proxy that alternates between servers', () => {
  test.each(VARIANTS.filter(({ name }) => name !== 'stdio'))(
    '$name: each round reaches the other server',
    async (variant) => {
      await using a = await variant.open({ key });
      await using b = await variant.open({ key });
      const origins = [a, b].flatMap(({ origin = [] }) => origin);
      await using guest = await guestAt(httpTransport(origins, '/mcp', 'ada'), MODERN);
      for (const [first, second] of [
        [a, b],
        [a, b],
      ]) {
        const result = await guest.client.callTool(REFUND);
        expect(result.content).toEqual([{ type: 'text', text: 'asked:A1 yes' }]);
        expect(first?.told.at(-1)).toEqual({ what: 'sealed' });
        expect(second?.told.at(-1)).toEqual({ what: 'handled', subject: 'A1', state: PLAINTEXT });
      }
      expect([...a.told, ...b.told].filter(({ what }) => what === 'refused')).toEqual([]);
    },
  );

  test('a fleet may mix the variants: each accepts the tokens of every other', async () => {
    const fleet = await Promise.all(
      VARIANTS.map(async (variant) => {
        const { name } = variant;
        const desk = await variant.open({ key });
        return { name, desk, guest: await guestAt(desk.transport(MODERN, 'ada'), MODERN, { goesOn: false }) };
      }),
    );
    const opened: string[] = [];
    for (const sealer of fleet) {
      const token = tokenOf(await sealer.guest.ask('tools/call', REFUND));
      for (const opener of fleet) {
        const answer = await opener.guest.ask('tools/call', echoOf(token));
        if (textOf(answer) === 'asked:A1 yes') opened.push(`${sealer.name}, ${opener.name}`);
      }
    }
    for (const { desk, guest } of fleet) {
      await guest[Symbol.asyncDispose]();
      await desk[Symbol.asyncDispose]();
    }
    expect(new Set(opened).size).toBe(VARIANTS.length ** 2);
  });
});
