import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { array, assert, asyncProperty, boolean, constantFrom, integer, record } from 'fast-check';
import { expect, test } from 'vitest';
import { Fleet, open } from '../support/fleet.ts';

/** Disturbances of a running member, each for some time. */
const TROUBLES = {
  nothing: () => undefined,
  'the KMS is away': ({ kms }: Fleet) => void (kms.failing = 'unavailable'),
  'the KMS refuses': ({ kms }: Fleet) => void (kms.failing = 'denied'),
  'the KMS throttles': ({ kms }: Fleet) => void (kms.failing = 'throttled'),
  'the KMS says corrupt': ({ kms }: Fleet) => void (kms.failing = 'corrupt'),
  'the KMS hangs': ({ kms }: Fleet) => void (kms.hanging = true),
  'nobody may wrap': ({ kms }: Fleet) => void (kms.wrapFailing = 'denied'),
  'the store is away': ({ store }: Fleet) => void (store.down = true),
  'the store hangs': ({ store }: Fleet) => void (store.hanging = true),
  'the store is empty': ({ store }: Fleet) => store.flush(),
  'the store holds junk': ({ store }: Fleet) => store.put('no ring'),
  'the store has a wrong date': (fleet: Fleet) =>
    void (fleet.store.date = () => new Date(fleet.clock.wallMs() + 90_000_000)),
  'the clock steps ahead': ({ clock }: Fleet) => clock.step(200_000),
  'the clock steps back': ({ clock }: Fleet) => clock.step(-200_000),
  notifications: ({ store }: Fleet) => {
    for (let i = 0; i < 100; i++) store.notify();
  },
} satisfies Record<string, (fleet: Fleet) => unknown>;

function mend({ kms, store }: Fleet): void {
  kms.failing = undefined;
  kms.wrapFailing = undefined;
  kms.hanging = false;
  store.down = false;
  store.hanging = false;
  store.date = undefined;
}

const trouble = record({
  names: array(constantFrom(...(Object.keys(TROUBLES) as (keyof typeof TROUBLES)[])), { minLength: 1, maxLength: 3 }),
  // Times from a minute to longer than a key lives.
  minutes: constantFrom(1, 30, 600, 2_000),
  // Whether everything except the clock is healthy again before the next one.
  isMended: boolean(),
});

const SHORT = { rotateEverySeconds: 19_200, storeOutageSeconds: 14_400 };

test('a member makes at most one pass a second, and at most one in ten seconds that others cause, whatever happens (F47)', async () => {
  await assert(
    asyncProperty(
      constantFrom('member' as const, 'reader' as const),
      constantFrom('memory', 'shared'),
      array(trouble, { minLength: 1, maxLength: 5 }),
      integer({ min: 0, max: 3 }),
      async (role, kind, troubles, tokens) => {
        const fleet = new Fleet();
        fleet.store.kind = kind;
        const passes: number[] = [];
        const crowded = (): number[] =>
          passes.filter((at, i) => (passes[i + 13] ?? Number.POSITIVE_INFINITY) - at < 10);
        const advance = async (seconds: number): Promise<void> => {
          for (let passed = 0; passed < seconds && crowded().length === 0; passed += 60) await fleet.clock.advance(60);
        };
        const note = (): void => void passes.push(Number(fleet.clock.monotonicNs()) / 1e9);
        // Alone once the reader has started: with two members, the pass could belong to either.
        const founder = await fleet.start({ policy: SHORT });
        const member = role === 'member' ? founder : await fleet.start({ role, policy: SHORT });
        if (role === 'reader') await founder.codec.close();
        const token = 'sr1.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA';
        subscribe('sealring:refresh', note);
        try {
          for (const { names, minutes, isMended } of troubles) {
            for (const name of names) await TROUBLES[name](fleet);
            for (let i = 0; i < tokens; i++) {
              open(member, token);
              await fleet.clock.advance(7);
            }
            await advance(minutes * 60);
            if (isMended) mend(fleet);
          }
          await advance(600);
        } finally {
          unsubscribe('sealring:refresh', note);
          mend(fleet);
          await fleet.close();
        }
        expect(crowded()).toEqual([]);
        expect(passes.length).toBeGreaterThan(0);
      },
    ),
    { numRuns: Number(process.env['SEALRING_RUNS'] ?? 25), endOnFailure: true },
  );
});
