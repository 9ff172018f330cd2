import { expect, test } from 'vitest';
import { KeyWrapperError } from '../../src/contracts/key-wrapper.ts';
import { Condition } from '../../src/member/condition.ts';
import type { MemberParts } from '../../src/member/parts.ts';
import type { Rotation } from '../../src/member/rotation.ts';
import { createSnapshot } from '../../src/ring/snapshot.ts';
import { EventLog } from '../support/event-log.ts';
import { one, ownKey } from '../support/known-keys.ts';

const now = { wallMs: Date.parse('2026-11-21T05:00:00Z'), steadyMs: 0 };
const at = new Date(now.wallMs);
const failed = new KeyWrapperError('throttled', { provider: 'kms', operation: 'unwrap' });

function setUp() {
  const facts = {
    isReady: true,
    isRefused: false,
    isFailing: false,
    isRepairDue: false,
    isClosed: false,
    trouble: undefined as string | undefined,
    keyCount: 1,
  };
  const view = {
    get isClosed(): boolean {
      return facts.isClosed;
    },
    snapshot: createSnapshot([ownKey(one)]),
    limits: { isRefused: () => facts.isRefused },
    now: () => now,
    wallMs: () => now.wallMs,
    isReady: () => facts.isReady,
    clockTrouble: () => facts.trouble,
  };
  const repairs = {
    isForeign: false,
    isContested: () => false,
    get dueAt() {
      return facts.isRepairDue ? now : undefined;
    },
  };
  const writer = {
    isDead: false,
    get keyCount(): number {
      return facts.keyCount;
    },
  };
  const rotation = {
    get isFailing(): boolean {
      return facts.isFailing;
    },
  };
  const ringClock = { trouble: () => undefined, disputedBy: () => undefined };
  const parts = { ring: 'payments', role: 'member', view, sync: { repairs }, writer, ringClock };
  return { condition: new Condition(parts as unknown as MemberParts, rotation as Rotation), facts };
}

test.each([
  ['ok', {}],
  ['failing', { isReady: false }],
  ['degraded', { isRefused: true }],
  ['degraded', { isFailing: true }],
  ['degraded', { isRepairDue: true }],
  ['degraded', { keyCount: 48 }],
])('the status is %s with %j', (status, more) => {
  const { condition, facts } = setUp();
  Object.assign(facts, more);
  expect(condition.status(now)).toBe(status);
});

test('a failure is shown until a pass succeeds, or longer while a rotation fails or the clock is unconfirmed', () => {
  const { condition, facts } = setUp();
  condition.failed(failed);
  expect([condition.failures, condition.status(now), condition.lastFailure]).toEqual([
    1,
    'degraded',
    { source: 'kms', kind: 'throttled', at },
  ]);
  expect([condition.hasFailedWithin(0, now), condition.hasFailedWithin(-1, now)]).toEqual([true, false]);
  facts.isFailing = true;
  condition.passed();
  expect([condition.failures, condition.hasFailedWithin(1e9, now)]).toEqual([0, false]);
  expect(condition.lastFailure).toMatchObject({ source: 'kms' });
  facts.trouble = 'stepped';
  condition.passed();
  expect(condition.lastFailure).toEqual({ source: 'clock', kind: 'unconfirmed', at });
  Object.assign(facts, { trouble: undefined, isFailing: false });
  condition.passed();
  expect(condition.lastFailure).toBeUndefined();
});

test('the status is emitted when it changes, but not after close, and every refresh is emitted', () => {
  const log = new EventLog();
  log.listen();
  const { condition, facts } = setUp();
  condition.emitRefresh(undefined, now);
  condition.emitRefresh(failed, now);
  facts.isReady = false;
  condition.emitStatus();
  facts.isReady = true;
  facts.isClosed = true;
  condition.emitStatus();
  log.end();
  expect(log.of('state')).toEqual([{ status: 'ok' }, { status: 'failing' }]);
  expect(log.of('refresh')).toEqual([
    { seconds: 0, ok: true },
    { seconds: 0, ok: false, source: 'kms', kind: 'throttled' },
  ]);
});
