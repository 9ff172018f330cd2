import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { KeyWrapper } from '../../src/contracts/key-wrapper.ts';
import type { RingStore } from '../../src/contracts/ring-store.ts';
import { parseDocument } from '../../src/ring/document.ts';
import { Fleet, type Member, open, seal } from '../support/fleet.ts';

let fleet: Fleet;
beforeEach(() => {
  fleet = new Fleet();
});
afterEach(() => fleet.close());

/** A call that is held back until it is released. */
class Gate {
  #waiting: (() => void)[] = [];
  isShut = false;

  async pass(): Promise<void> {
    if (this.isShut) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  get held(): number {
    return this.#waiting.length;
  }

  /** Releases one held call, or all. */
  letGo(count = this.#waiting.length): void {
    for (const resolve of this.#waiting.splice(0, count)) resolve();
  }
}

function gated(inner: KeyWrapper, gate: Gate): KeyWrapper {
  return {
    ...inner,
    async unwrap(wrapped, options) {
      await gate.pass();
      return inner.unwrap(wrapped, options);
    },
  };
}

/** Answers are held back, not requests: what was read is older by the time it arrives. */
function gatedStore(inner: RingStore, gate: Gate): RingStore {
  return {
    ...inner,
    async read(options) {
      const stored = await inner.read(options);
      await gate.pass();
      return stored;
    },
  };
}

async function turn(): Promise<void> {
  await fleet.clock.advance(0);
}

/** Id and state of every key, as in health(). */
function keysOf(member: Member): string[] {
  return member.codec.health().keys.map(({ id, state, held }) => `${id} ${state} ${held}`);
}

/** Everything that a member returns or does at one moment must come from one view of the ring. */
function expectOneView(member: Member, tokens: ReadonlyMap<string, string>): void {
  const { keys, sealingKey } = member.codec.health();
  const token = seal(member);
  expect(token.slice(4, 16)).toBe(sealingKey);
  expect(member.codec.inspect(token)).toMatchObject({ keyId: sealingKey, state: 'active' });
  expect(open(member, token)).toBe('state');
  for (const [id, old] of tokens) {
    const key = keys.find((candidate) => candidate.id === id);
    const opens = key?.held === true && key.state !== 'revoked';
    expect([id, open(member, old)]).toEqual([id, opens ? 'state' : 'InvalidRequestState: unknown key']);
    expect(member.codec.inspect(old).state).toBe(key?.state ?? 'unknown');
  }
}

describe('a refresh between seals and unseals (F12)', () => {
  test('keeps the old view until every new key is unwrapped, and then swaps it completely', async () => {
    const gate = new Gate();
    const a = await fleet.start();
    const b = await fleet.start({ keyWrapper: gated(fleet.kms.connect(), gate) });
    const first = seal(a);
    b.ring.cut = true;
    await a.codec.revokeAllBefore(new Date(fleet.clock.wallMs() + 1_000));
    const second = seal(a);
    await a.codec.rotate();
    await fleet.clock.advance(1);
    const tokens = new Map([first, second].map((token) => [token.slice(4, 16), token]));
    const before = keysOf(b);
    expect(before).toHaveLength(1);
    b.ring.cut = false;
    gate.isShut = true;
    const refreshed = b.codec.refresh();
    for (const left of [2, 1]) {
      await turn();
      expect(gate.held).toBe(left);
      // The revocation was read; until its successor is there, the old key seals.
      expect(keysOf(b)).toEqual(before);
      expectOneView(b, tokens);
      gate.letGo(1);
    }
    await refreshed;
    expectOneView(b, tokens);
    expect(b.codec.health().keys.map(({ state, held }) => [state, held])).toEqual([
      ['revoked', false],
      ['active', true],
      ['propagating', true],
    ]);
    expect([open(b, first), open(b, second)]).toEqual(['InvalidRequestState: unknown key', 'state']);
  });

  test('shows one document at a time, whatever was written meanwhile, and never goes back to an older one', async () => {
    const written: string[][] = [];
    const recorded = (inner: RingStore): RingStore => ({
      ...inner,
      async write(document, options) {
        const answer = await inner.write(document, options);
        written.push(
          parseDocument(document, 'default').entries.map(({ id, revoked }) => `${id} ${revoked !== undefined}`),
        );
        return answer;
      },
    });
    const gate = new Gate();
    const a = await fleet.start({ ring: recorded(fleet.store.connect()) });
    const b = await fleet.start({ ring: fleet.store.connect(), keyWrapper: gated(fleet.kms.connect(), gate) });
    const tokens = new Map<string, string>();
    let seen = 0;
    const look = (): void => {
      const token = seal(a);
      tokens.set(token.slice(4, 16), token);
      const shown = b.codec.health().keys.map(({ id, state }) => `${id} ${state === 'revoked'}`);
      const index = written.findIndex((ids, i) => i >= seen && ids.toSorted().join() === shown.toSorted().join());
      expect(index).toBeGreaterThanOrEqual(seen);
      seen = index;
      expectOneView(b, tokens);
    };
    for (let round = 0; round < 8; round++) {
      gate.isShut = true;
      const refreshing: Promise<void>[] = [];
      for (let step = 0; step < 12; step++) {
        if (step === 1) await a.codec.rotate();
        if (step === 4) await a.codec.revoke(a.codec.health().sealingKey ?? '');
        if (step % 3 === 0) refreshing.push(b.codec.refresh());
        look();
        await new Promise((resolve) => setImmediate(resolve));
        look();
        gate.letGo(1);
      }
      gate.isShut = false;
      gate.letGo();
      await Promise.all(refreshing);
      look();
    }
    // The last check saw the last document.
    expect(seen).toBe(written.length - 1);
    expect(written.length).toBeGreaterThan(16);
  });

  test('changes and writes nothing if its answer is late and a rotation has replaced the document since', async () => {
    const gate = new Gate();
    const a = await fleet.start();
    const b = await fleet.start({ ring: gatedStore(fleet.store.connect(), gate) });
    gate.isShut = true;
    const late = b.codec.refresh();
    await turn();
    expect(gate.held).toBe(1);
    const rotated = b.codec.rotate();
    await turn();
    gate.isShut = false;
    gate.letGo();
    const { writes } = fleet.store;
    await Promise.all([late, rotated]);
    // The other one reads it after a push, and unwraps it within a minute.
    await fleet.clock.advance(65);
    expect(fleet.store.writes - writes).toBe(1);
    for (const member of [a, b]) {
      expect(member.codec.health()).toMatchObject({ status: 'ok', lastError: undefined });
      expect(member.codec.health().keys).toHaveLength(2);
    }
  });

  test('removes no key if every other read returns an older copy of the document', async () => {
    const a = await fleet.start();
    const old = await fleet.store.connect().read();
    let isBehind = false;
    let reads = 0;
    // A replica that lags behind, and one that does not.
    const replicated = (inner: RingStore): RingStore => ({
      ...inner,
      read: async (options) => (isBehind && reads++ % 2 === 0 ? old : inner.read(options)),
    });
    const b = await fleet.start({ ring: replicated(fleet.store.connect()) });
    await a.codec.rotate({ emergency: true });
    await fleet.clock.advance(1_000);
    const before = keysOf(b);
    expect(before).toHaveLength(2);
    const token = seal(b);
    isBehind = true;
    for (let minute = 0; minute < 30; minute++) {
      await fleet.clock.advance(60);
      expect(keysOf(b)).toEqual(before);
      expectOneView(b, new Map([[token.slice(4, 16), token]]));
    }
    expect(reads).toBeGreaterThan(4);
  });

  test('a refresh that cannot unwrap a new key still applies a revocation, in one swap', async () => {
    const a = await fleet.start();
    const b = await fleet.start();
    const first = seal(a);
    b.ring.cut = true;
    await a.codec.revokeAllBefore(new Date(fleet.clock.wallMs() + 1_000));
    await fleet.clock.advance(1);
    b.ring.cut = false;
    b.keyWrapper.cut = true;
    const refreshed = Promise.allSettled([b.codec.refresh()]);
    await fleet.clock.advance(10);
    const reason = { name: 'KeyWrapperError', kind: 'unavailable' };
    expect(await refreshed).toMatchObject([{ status: 'rejected', reason }]);
    expect(open(b, first)).toBe('InvalidRequestState: unknown key');
    expect(b.codec.health()).toMatchObject({ status: 'failing', canSeal: false });
    b.keyWrapper.cut = false;
    await fleet.clock.advance(61);
    expect(open(b, seal(a))).toBe('state');
    expect(b.codec.health().status).toBe('ok');
  });
});
