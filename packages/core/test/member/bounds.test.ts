import { randomFillSync } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Closing } from '../../src/base/closing.ts';
import { keeperOf } from '../../src/codec/ring-codec.ts';
import { KeyWrapperError } from '../../src/contracts/key-wrapper.ts';
import { KmsCalls } from '../../src/kms/kms-calls.ts';
import { parseDocument } from '../../src/ring/document.ts';
import { Fleet, open, seal } from '../support/fleet.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const WHAT = { provider: 'local', operation: 'unwrap' } as const;

/** Calls to a service that answers only on request, and ignores signals. */
function hangingCalls() {
  const clock = new VirtualClock('2026-11-21T03:00:00Z');
  const closing = new Closing();
  const random = (fill: Uint8Array): void => void randomFillSync(fill);
  const onServiceDate = (): void => undefined;
  const calls = new KmsCalls({ ring: 'r', clock, random, timeoutSeconds: 5, closing, onServiceDate });
  const answers: (() => void)[] = [];
  const started = { now: 0, most: 0, ever: 0 };
  const run = async (): Promise<string> => {
    started.ever += 1;
    started.now += 1;
    started.most = Math.max(started.most, started.now);
    await new Promise<void>((resolve) => answers.push(resolve));
    started.now -= 1;
    return 'answer';
  };
  return { clock, calls, run, started, answers, closing };
}

describe('a KMS that hangs (F29)', () => {
  test('holds four calls and lets 256 wait, and any further call is refused at once', async () => {
    const { clock, calls, run, started } = hangingCalls();
    const outcomes: string[] = [];
    const settled = Array.from({ length: 1_000 }, () =>
      calls.call(WHAT, run, { foreground: false }).then(
        () => outcomes.push('answered'),
        (error: unknown) => outcomes.push(error instanceof KeyWrapperError ? error.kind : 'another error'),
      ),
    );
    await clock.advance(0);
    expect(started).toEqual({ now: 4, most: 4, ever: 4 });
    expect(outcomes).toEqual(Array(1_000 - 4 - 256).fill('unavailable'));
    await clock.advance(5);
    await Promise.all(settled);
    expect(outcomes).toEqual(Array(1_000).fill('unavailable'));
    // None of the waiting calls was sent later: their callers have given up.
    expect(started.ever).toBe(4);
  });

  test('holds its slots until its calls have really ended, however long after their deadline', async () => {
    const { clock, calls, run, started, answers } = hangingCalls();
    const call = () => calls.call(WHAT, run, { foreground: false }).catch((error: KeyWrapperError) => error.kind);
    const first = Array.from({ length: 4 }, call);
    await clock.advance(5);
    expect(await Promise.all(first)).toEqual(Array(4).fill('unavailable'));
    const later = call();
    await clock.advance(4);
    expect(started).toEqual({ now: 4, most: 4, ever: 4 });
    answers.shift()?.();
    await clock.advance(0);
    expect(started).toMatchObject({ now: 4, ever: 5 });
    answers.pop()?.();
    expect(await later).toBe('answer');
    expect(started.most).toBe(4);
  });

  test('a KMS that fails is called four times for a caller that waits, and once in the background', async () => {
    for (const [foreground, attempts] of [
      [true, 4],
      [false, 1],
    ] as const) {
      const { clock, calls } = hangingCalls();
      let made = 0;
      const failing = async (): Promise<never> => {
        made += 1;
        throw new KeyWrapperError('throttled', WHAT);
      };
      const outcome = calls.call(WHAT, failing, { foreground }).catch((error: KeyWrapperError) => error.kind);
      await clock.advance(60);
      expect([await outcome, made]).toEqual(['throttled', attempts]);
    }
  });

  test('a KMS and a store that hang for 40 minutes delay neither seal nor unseal', async () => {
    const fleet = new Fleet();
    const a = await fleet.start();
    const b = await fleet.start();
    fleet.kms.hanging = true;
    fleet.store.hanging = true;
    fleet.kms.mostInFlight = 0;
    const calls = (): number => fleet.kms.total + fleet.store.reads + fleet.store.writes;
    for (let minute = 0; minute < 40; minute++) {
      await fleet.clock.advance(60);
      const before = calls();
      for (let i = 0; i < 100; i++) expect(open(b, seal(a, `${i}`))).toBe(`${i}`);
      // These calls caused no request either.
      expect(calls()).toBe(before);
    }
    for (const member of [a, b]) {
      expect(member.codec.health()).toMatchObject({ status: 'degraded', ready: true });
    }
    // Each member has its own limit.
    expect(fleet.kms.mostInFlight).toBeGreaterThan(0);
    expect(fleet.kms.mostInFlight).toBeLessThanOrEqual(2 * 4);
    fleet.kms.hanging = false;
    fleet.store.hanging = false;
    await fleet.close();
  });

  test('a KMS that hangs does not delay close()', async () => {
    const fleet = new Fleet();
    const a = await fleet.start();
    fleet.kms.hanging = true;
    fleet.store.hanging = true;
    const refreshed = Promise.allSettled([a.codec.refresh(), a.codec.rotate()]);
    await fleet.clock.advance(1);
    // No time passes, so no deadline can have ended the calls.
    await a.codec.close();
    for (const outcome of await refreshed) expect(outcome.status).toBe('rejected');
  });
});

describe('the bounded memory of a member (F23)', () => {
  let fleet: Fleet;
  beforeEach(() => {
    fleet = new Fleet();
  });
  afterEach(() => fleet.close());

  test('with more than 256 purposes, the codec of the least recently used purpose is created again', async () => {
    const { codec } = await fleet.start();
    const first = codec.for('p0');
    const kept = Array.from({ length: 255 }, (_, i) => codec.for(`p${i + 1}`));
    expect(codec.for('p0')).toBe(first);
    expect(kept.map((_, i) => codec.for(`p${i + 1}`))).toEqual(kept);
    codec.for('another');
    expect(codec.for('p0')).not.toBe(first);
    const token = first.seal(Buffer.from('state'));
    expect(Buffer.from(codec.for('p0').unseal(token)).toString()).toBe('state');
  });

  test('at most 64 expired keys, which can still certify, are remembered', async () => {
    const a = await fleet.start();
    for (let i = 0; i < 80; i++) {
      await fleet.clock.advance(6 * 3_600);
      await a.codec.rotate();
    }
    expect(keeperOf(a.codec)?.view.past.size).toBe(64);
  });

  test('in a ring of 48 keys, no further key can be requested, and no key is dropped', async () => {
    const a = await fleet.start();
    const tokens = [seal(a)];
    for (let i = 1; i < 48; i++) {
      expect(a.codec.health().problems).toEqual([]);
      await a.codec.rotate();
    }
    expect(a.codec.health()).toMatchObject({ status: 'degraded', problems: [{ kind: 'nearly-full' }] });
    const document = await fleet.store.document();
    for (const asked of [a.codec.rotate(), a.codec.rotate({ emergency: true })]) {
      await expect(asked).rejects.toMatchObject({ name: 'RingStoreError', kind: 'too-large' });
    }
    expect(await fleet.store.document()).toBe(document);
    tokens.push(seal(a));
    const b = await fleet.start();
    expect(b.codec.health().keys.map(({ held }) => held)).toEqual(Array(48).fill(true));
    for (const token of tokens) expect([open(a, token), open(b, token)]).toEqual(['state', 'state']);
  });

  test('the revocation of the 64th key makes no successor until all members have read the earlier revocations', async () => {
    const a = await fleet.start();
    for (let i = 1; i < 48; i++) await a.codec.rotate();
    for (let i = 48; i < 64; i++) await a.codec.revoke(a.codec.health().sealingKey ?? '');
    expect(a.codec.health().keys).toHaveLength(64);
    const last = seal(a);
    await a.codec.revoke(a.codec.health().sealingKey ?? '');
    expect(open(a, last)).toBe('InvalidRequestState: unknown key');
    expect(a.codec.health()).toMatchObject({ canSeal: false, status: 'failing' });
    await fleet.clock.advance(2 * 300 + 60 + 300);
    expect(a.codec.health().keys.length).toBeGreaterThan(64);
    expect(parseDocument((await fleet.store.document()) ?? '', 'default').entries).toHaveLength(64);
    expect(open(a, last)).toBe('InvalidRequestState: unknown key');
    expect(a.codec.health()).toMatchObject({ canSeal: true, status: 'degraded' });
    expect(a.codec.health().problems.map(({ kind }) => kind)).toEqual(['nearly-full']);
  });
});
