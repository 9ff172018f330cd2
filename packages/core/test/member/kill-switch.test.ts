import { describe, expect, test } from 'vitest';
import type { KeyWrapperErrorKind } from '../../src/contracts/key-wrapper.ts';
import {
  ARMED,
  afterRefusal,
  hasRecentRefusal,
  isRefusal,
  type KillSwitch,
  refusalWindowMs,
} from '../../src/member/kill-switch.ts';

const WINDOW_MS = 60_000;
/** The wall clock is wrong, and has no effect. */
const after = (state: KillSwitch, kind: KeyWrapperErrorKind, seconds: number): KillSwitch =>
  afterRefusal(state, kind, { wallMs: -seconds, steadyMs: seconds * 1_000 }, WINDOW_MS);

describe('the kill switch (F10)', () => {
  type Answer = readonly [seconds: number, kind: 'denied' | 'disabled' | 'not-found'];

  /** When it stops sealing, seconds; undefined if it does not. */
  function stopsAt(...answers: readonly Answer[]): number | undefined {
    const { trippedAt } = answers.reduce((state, [at, kind]) => after(state, kind, at), ARMED);
    return trippedAt === undefined ? undefined : trippedAt.steadyMs / 1_000;
  }

  const denied = (...seconds: number[]): Answer[] => seconds.map((at) => [at, 'denied']);
  const disabled = (...seconds: number[]): Answer[] => seconds.map((at) => [at, 'disabled']);

  const table: readonly (readonly [string, readonly Answer[], number | undefined])[] = [
    ['one stray refusal does not stop sealing', denied(0), undefined],
    ['two refusals do not stop sealing', denied(0, 30), undefined],
    ['three refusals at least 8 s apart within 60 s stop sealing', denied(0, 8, 16), 16],
    ['three refusals over exactly 60 s stop sealing', denied(0, 30, 60), 60],
    ['three refusals over more than 60 s do not stop sealing', denied(0, 30, 60.001), undefined],
    ['the window of 60 s slides', denied(0, 30, 61, 69), 69],
    ['refusals less than 8 s apart count once', denied(0, 7.999, 15.998), undefined],
    ['a burst of a hundred counts once', denied(...Array.from({ length: 100 }, (_, i) => i * 0.07)), undefined],
    ['three bursts of refusals stop sealing', denied(0, 1, 2, 10, 11, 12, 20, 21), 20],
    ['a steady stream of one refusal per second stops sealing', denied(...Array.from({ length: 30 }, (_, i) => i)), 16],
    ['two refusals because of a disabled key stop sealing', disabled(0, 8), 8],
    ['two refusals because of a disabled key in one burst do not stop sealing', disabled(0, 7.9), undefined],
    ['two refusals because of a disabled key over more than 60 s do not stop sealing', disabled(0, 60.001), undefined],
    [
      'not found counts as denied',
      [
        [0, 'not-found'],
        [10, 'denied'],
        [20, 'not-found'],
      ],
      20,
    ],
    [
      'one answer of disabled and one of denied do not stop sealing',
      [
        [0, 'disabled'],
        [10, 'denied'],
      ],
      undefined,
    ],
    [
      'one answer of denied and one of disabled do not stop sealing',
      [
        [0, 'denied'],
        [10, 'disabled'],
      ],
      undefined,
    ],
    [
      'three refusals of any kind stop sealing',
      [
        [0, 'disabled'],
        [10, 'denied'],
        [20, 'denied'],
      ],
      20,
    ],
    [
      'two answers of disabled with one of denied between them stop sealing',
      [
        [0, 'disabled'],
        [10, 'denied'],
        [20, 'disabled'],
      ],
      20,
    ],
    ['later refusals do not change the time at which sealing stopped', denied(0, 10, 20, 30, 4_000), 20],
  ];

  test.each(table)('the kill switch counts refusals: %s', (_, answers, expected) => {
    expect(stopsAt(...answers)).toBe(expected);
  });

  test.each([
    [0.1, 60],
    [5, 60],
    [10, 80],
    [30, 200],
  ])('at a deadline of %d s for each call, refusals count together for %d s', (kmsTimeoutSeconds, seconds) => {
    expect(refusalWindowMs({ kmsTimeoutSeconds })).toBe(seconds * 1_000);
  });

  test('only answers about the permission to use the key are refusals', () => {
    const kinds = ['throttled', 'unavailable', 'denied', 'disabled', 'not-found', 'corrupt'] as const;
    expect(kinds.filter((kind) => isRefusal(kind))).toEqual(['denied', 'disabled', 'not-found']);
  });

  test('a refusal counts for a minute, and is then ignored if no other has followed', () => {
    const once = after(ARMED, 'denied', 5);
    expect(hasRecentRefusal(ARMED, 5_000, WINDOW_MS)).toBe(false);
    expect(hasRecentRefusal(once, 5_000, WINDOW_MS)).toBe(true);
    expect(hasRecentRefusal(once, 65_000, WINDOW_MS)).toBe(true);
    expect(hasRecentRefusal(once, 65_001, WINDOW_MS)).toBe(false);
  });

  test('remembers at most nine refusals, however many it counts (F23)', () => {
    let state = ARMED;
    for (let at = 0; at < 1_000; at++) {
      state = after({ ...state, trippedAt: undefined }, 'denied', at * 8);
      expect(state.refusals.length).toBeLessThanOrEqual(9);
    }
    expect(ARMED.refusals).toEqual([]);
  });
});
