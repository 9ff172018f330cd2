import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Server, type ServerContext } from '@modelcontextprotocol/server';
import { SealUnavailableError } from '@sealring/core';
import { describe, expect, test } from 'vitest';
import type { RejectEvent } from '../../src/index.ts';
import { createRequestStateCodec, protectRequestState, RequestStateSecurity } from '../../src/index.ts';
import { createMcpdRequestStateSecurity } from '../../src/mcpd/index.ts';
import { answerOf, exchange } from '../support/exchange.ts';
import { Fleet } from '../support/rings.ts';
import { call, NOT_SEALED, textOf, tokenOf, YES } from '../support/served.ts';

const CALL = { method: 'tools/call', params: { name: 't' } };
const ask = () => ({ resultType: 'input_required', requestState: 'x' });
const SEAL_OUTAGE_SECONDS = 3_600;

/** A codec that cannot seal until it has been prepared this many times. */
function awaiting(prepares: number, order: unknown[], reason: string = 'ring read too old') {
  let left = prepares;
  return {
    seal: () => {
      order.push('seal');
      if (left > 0) throw Object.assign(new SealUnavailableError('no active key'), { reason });
      return 'token';
    },
    unseal: () => new Uint8Array(),
    prepare: async (token: string | undefined, { signal }: { readonly signal?: AbortSignal }) => {
      left -= 1;
      order.push(['prepare', token, signal?.aborted]);
    },
  };
}

describe('sealing a first round when no key may seal (F50)', () => {
  test('prepares the codec once, and tries once more', async () => {
    const order: unknown[] = [];
    const outcome = await exchange(CALL, { codec: awaiting(1, order) }, undefined, ask);
    expect(outcome).toMatchObject({ result: { requestState: 'token' }, events: [] });
    expect(order).toEqual(['seal', ['prepare', undefined, false], 'seal']);
  });

  test.each([
    ['ring read too old', { codecReason: 'ring read too old' }, 'seal unavailable (ring read too old)'],
    ['canary', {}, 'seal unavailable (SealUnavailableError)'],
  ])(
    'refuses with `seal unavailable` and the codec’s reason if the second attempt fails too: %s',
    async (word, told, line) => {
      const order: unknown[] = [];
      const outcome = await exchange(CALL, { codec: awaiting(2, order, word) }, undefined, ask);
      expect(outcome.error).toEqual(NOT_SEALED);
      expect(outcome.events).toStrictEqual([
        { direction: 'outbound', method: 'tools/call', reason: 'seal unavailable', ...told },
      ]);
      expect(outcome.errors.map(({ message }) => message)).toEqual([
        `requestState: refused outbound on tools/call: ${line}`,
      ]);
      expect(order).toHaveLength(3);
    },
  );

  test('sealing a first round is not retried if prepare is missing or fails, and the refusal has the codec’s reason', async () => {
    const order: unknown[] = [];
    const { seal, unseal } = awaiting(1, order);
    const failing = async () => Promise.reject(new Error('canary'));
    for (const codec of [
      { seal, unseal },
      { seal, unseal, prepare: failing },
    ]) {
      const outcome = await exchange(CALL, { codec }, undefined, ask);
      expect(outcome.events).toMatchObject([{ reason: 'seal unavailable', codecReason: 'ring read too old' }]);
    }
  });

  test('sealing a first round is not retried after other errors of the codec', async () => {
    let seals = 0;
    const codec = {
      seal: () => {
        seals += 1;
        throw new Error('canary');
      },
      unseal: () => new Uint8Array(),
      prepare: async () => {},
    };
    const outcome = await exchange(CALL, { codec }, undefined, ask);
    expect(outcome.events.map(({ reason }) => reason)).toEqual(['codec error']);
    expect(seals).toBe(1);
  });

  test('seals the first state on a runtime without timers, even if the ring was idle for longer than sealOutageSeconds', async () => {
    await using fleet = new Fleet(1_795_000_000_000);
    const codec = await fleet.member();
    const events: RejectEvent[] = [];
    const security = new RequestStateSecurity({ codec, clock: fleet.clock, onReject: (event) => events.push(event) });
    const mcpd = createMcpdRequestStateSecurity({ codec, clock: fleet.clock, onReject: (event) => events.push(event) });
    for (const policy of [security, mcpd]) {
      fleet.clock.advance(SEAL_OUTAGE_SECONDS + 1);
      expect(() => codec.seal(new Uint8Array(1))).toThrow(SealUnavailableError);
      const server = protectRequestState(new Server({ name: 'a', version: '1' }), policy, { defaultAudience: 'a' });
      server.fallbackRequestHandler = async () => ask();
      const { result, error } = await answerOf(server, CALL);
      expect({ error, events }).toEqual({ error: undefined, events: [] });
      expect(result).toMatchObject({ requestState: expect.any(String) });
    }
  });
});

describe('mint of createRequestStateCodec when no key may seal (F50)', () => {
  const signalled = (signal: AbortSignal): ServerContext => Object.assign(Object.create(null), { mcpReq: { signal } });

  test('prepares the codec once, and tries once more', async () => {
    const order: unknown[] = [];
    expect(await createRequestStateCodec({ codec: awaiting(1, order) }).mint(1)).toBe('token');
    expect(order).toEqual(['seal', ['prepare', undefined, undefined], 'seal']);
  });

  test('rejects with the codec’s error if preparing the codec does not help or is not possible', async () => {
    const order: unknown[] = [];
    const { seal, unseal } = awaiting(1, []);
    await expect(createRequestStateCodec({ codec: awaiting(2, order) }).mint(1)).rejects.toThrow(SealUnavailableError);
    expect(order).toHaveLength(3);
    await expect(createRequestStateCodec({ codec: { seal, unseal } }).mint(1)).rejects.toThrow(SealUnavailableError);
  });

  test('mint does not retry after other errors', async () => {
    let seals = 0;
    const seal = () => {
      seals += 1;
      throw new Error('canary');
    };
    const codec = { seal, unseal: () => new Uint8Array(), prepare: async () => {} };
    await expect(createRequestStateCodec({ codec }).mint(1)).rejects.toThrow('the codec failed (Error)');
    expect(seals).toBe(1);
  });

  test('rejects with the reason of the signal if the client disconnects', async () => {
    const left = new AbortController();
    const { seal, unseal } = awaiting(1, []);
    const prepare = async () => left.abort(new Error('left'));
    const states = createRequestStateCodec({ codec: { seal, unseal, prepare } });
    await expect(states.mint(1, signalled(left.signal))).rejects.toThrow('left');
  });

  test.each(['sealed', 'signed'] as const)(
    'mints at once on a runtime without timers, even if the ring was idle for longer than sealOutageSeconds: wire %s',
    async (wire) => {
      await using fleet = new Fleet(1_795_000_000_000);
      const codec = await fleet.member();
      const states = createRequestStateCodec({ codec, wire, clock: fleet.clock });
      await states.mint({ step: 1 });
      fleet.clock.advance(SEAL_OUTAGE_SECONDS + 1);
      expect(() => codec.seal(new Uint8Array(1))).toThrow(SealUnavailableError);
      const context = signalled(new AbortController().signal);
      expect(await states.verify(await states.mint({ step: 2 }, context), context)).toEqual({ step: 2 });
    },
  );
});

/** The next line of JSON that a program prints. */
async function nextLine(child: ChildProcess): Promise<Record<string, unknown>> {
  const [chunk] = await once(child.stdout ?? child, 'data');
  return JSON.parse(String(chunk).split('\n')[0] ?? '');
}

test('a server that was stopped for longer than sealOutageSeconds seals its next first round (F50)', async () => {
  const program = fileURLToPath(new URL('frozen-server.ts', import.meta.url));
  const child = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const { url, sealOutageSeconds } = await nextLine(child);
    const toServer = (of: Record<string, unknown>) => call(String(url), 1, 'tools/call', of);
    const params = { name: 'refund', arguments: { order: 'A1' } };
    const first = await toServer(params);
    expect(tokenOf(first)).toEqual(expect.any(String));
    process.kill(child.pid ?? 0, 'SIGSTOP');
    await new Promise((resolve) => setTimeout(resolve, Number(sealOutageSeconds) * 1_500));
    // Sent while it is stopped: the request is the first to run.
    const pending = toServer(params);
    await new Promise((resolve) => setTimeout(resolve, 100));
    process.kill(child.pid ?? 0, 'SIGCONT');
    const echo = { ...params, requestState: tokenOf(await pending), inputResponses: YES };
    expect(textOf(await toServer(echo))).toBe('asked:A1');
  } finally {
    process.kill(child.pid ?? 0, 'SIGCONT');
    child.kill('SIGKILL');
  }
});
