import type { KeyWrapper, RequestStateCodec } from '@sealring/core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  CODEC_REQUIREMENTS,
  KEY_WRAPPER_REQUIREMENTS,
  RING_STORE_REQUIREMENTS,
  runCodecConformance,
  runKeyWrapperConformance,
  runRingStoreConformance,
} from '../../src/index.ts';
import { Trial } from '../../src/trial.ts';
import { noting } from '../noting.ts';
import { zooTarget as codecTarget, soundCodec } from '../zoo/broken-codecs.ts';
import { zooRingTarget } from '../zoo/broken-ring-stores.ts';
import { DETERMINISTIC, soundKeyWrapper, zooTarget as wrapperTarget } from '../zoo/zoo-key-wrapper.ts';
import { Calls, recordedCalls } from './recording.ts';

// What the kit asks of a target, with everything random replaced by a sequence, and every clock by a counter.

const state = vi.hoisted(() => ({ drawn: 0, ms: 0 }));
vi.mock('node:crypto', async (original) => {
  const real = await original<typeof import('node:crypto')>();
  const randomBytes = (length: number): Buffer =>
    Buffer.from(real.hkdfSync('sha256', 'conformance kit', String(state.drawn++), '', length));
  return { ...real, default: { ...real, randomBytes }, randomBytes };
});

// A check makes tokens from the texts of a refusal, whose stack has the paths of this checkout.
const { stackTraceLimit } = Error;
beforeAll(() => {
  Error.stackTraceLimit = 0;
});
afterAll(() => {
  Error.stackTraceLimit = stackTraceLimit;
});
beforeEach(() => {
  state.drawn = 0;
  state.ms = 0;
});
afterEach(() => {
  vi.restoreAllMocks();
});

/**
 * How far each reading of the clock advances it: so little that no time budget ends early, but enough that each ends
 * eventually.
 */
const TICK_MS = 0.001;

function countTime(): void {
  vi.spyOn(performance, 'now').mockImplementation(() => (state.ms += TICK_MS));
}

/**
 * They measure time, wait for a moment of a call, retry, call as often as there is time, or use names with the time:
 * their calls depend on the machine.
 */
const VARYING =
  /^(?:CODEC-TIMING|RING-(?:ABORT-\w+|OUTAGE-UNDER-WAY|NO-LOST-UPDATE|WRITE-REVISION|NAMES-SEPARATE|READ-(?:OVERLAPPED|CREATED|WHOLE|CURRENT|MONOTONE)|LOSER-NEVER-APPEARS))$/;

describe('the calls that the kit makes to a codec', () => {
  for (const { id } of CODEC_REQUIREMENTS.filter((one) => !VARYING.test(one.id))) {
    test(`the calls of ${id} are as recorded`, async () => {
      const calls = new Calls();
      const sound = soundCodec();
      const make = (keys: readonly Buffer[]): RequestStateCodec =>
        noting(sound(keys), ['seal', 'unseal'], (...call) => calls.note('codec', call));
      countTime();
      await runCodecConformance(codecTarget('noted', make), { seed: 1, only: [id] });
      expect(calls.asked).toEqual(recordedCalls('codec', id, calls.asked));
    });
  }
});

const WRAPPER_CALLS = ['wrap', 'unwrap', 'generate', 'sign', 'verify', 'owns', 'close'] as const;

describe('the calls that the kit makes to a key wrapper', () => {
  for (const { id } of KEY_WRAPPER_REQUIREMENTS) {
    test(`the calls of ${id} are as recorded`, async () => {
      const calls = new Calls();
      const sound = soundKeyWrapper(DETERMINISTIC);
      const make = (world: Parameters<typeof sound>[0]): KeyWrapper =>
        noting<KeyWrapper>(sound(world), WRAPPER_CALLS, (...call) => calls.note(world.key.name, call));
      countTime();
      await runKeyWrapperConformance(wrapperTarget('noted', make), { seed: 1, only: [id] });
      expect(calls.asked).toEqual(recordedCalls('key wrapper', id, calls.asked));
    });
  }
});

describe('the calls that the kit makes to a ring store', () => {
  // The tests are concurrent, so the replacement lasts from the first to the last of them.
  const original = Object.getOwnPropertyDescriptor(Trial.prototype, 'inTime');
  beforeAll(() => {
    Trial.prototype.inTime = function* everyItem(items) {
      yield* items;
    };
  });
  afterAll(() => {
    Object.defineProperty(Trial.prototype, 'inTime', original ?? {});
  });

  for (const { id } of RING_STORE_REQUIREMENTS.filter((one) => !VARYING.test(one.id))) {
    test.concurrent(`the calls of ${id} are as recorded`, async () => {
      const calls = new Calls();
      let ordinal = 0;
      const revise = (): string => `revision-${++ordinal}`;
      const target = zooRingTarget('noted', { revise }, {}, (store, _, name) =>
        noting(store, ['read', 'write', 'watch'], (...call) => calls.note(name, call)),
      );
      await runRingStoreConformance(target, { seed: 1, only: [id], rounds: 3 });
      expect(calls.asked).toEqual(recordedCalls('ring store', id, calls.asked));
    });
  }
});
