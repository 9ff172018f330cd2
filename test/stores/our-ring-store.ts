import { setImmediate as turn } from 'node:timers/promises';
import { describeRingStore, type RingStoreTarget } from '@sealring/conformance';
import type { RingStore } from '@sealring/core';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';

/** Enough runs to catch every broken store of the kit's own tests. */
const ROUNDS = Number(process.env['SEALRING_ROUNDS'] ?? 20);

/** Tests of a store of this repository: the whole kit, whose warnings are failures here, and more. */
export function describeOurRingStore(target: RingStoreTarget): void {
  describe('the conformance kit, with warnings as failures', () => {
    const warnings: string[] = [];
    const note = ({ name, message }: Error): void => {
      if (name === 'ConformanceWarning') warnings.push(message);
    };
    beforeAll(() => void process.on('warning', note));
    afterAll(() => void process.off('warning', note));
    afterEach(async () => {
      // A warning is emitted at the next turn.
      await turn();
      expect(warnings.splice(0)).toEqual([]);
    });

    describeRingStore(target, { describe, test }, { rounds: ROUNDS });
  });

  describe(`the ring store ${target.name}`, () => {
    const open = async (): Promise<RingStore> => {
      const instance = await target.create(`ours-${process.pid}-${Date.now()}`);
      onTestFinished(async () => instance.close?.());
      return instance.store;
    };

    test('the ring store cannot be changed from outside', async () => {
      expect(Object.isFrozen(await open())).toBe(true);
    });

    test('rejects unknown options (F17)', async () => {
      const store = await open();
      for (const options of [{ timeout: 5 }, []]) {
        await expect(Reflect.apply(Reflect.get(store, 'read'), store, [options])).rejects.toBeInstanceOf(TypeError);
      }
      const unknown = { expected: undefined, expect: 'y' };
      await expect(Reflect.apply(Reflect.get(store, 'write'), store, ['x', unknown])).rejects.toBeInstanceOf(TypeError);
      expect(await store.read()).toBeUndefined();
    });

    test.skipIf(target.supports?.serviceDate !== true)(
      'reports one date for each answer, correct to the minute (F13)',
      async () => {
        const store = await open();
        const dates: Date[] = [];
        await store.read({ onServiceDate: (date) => void dates.push(date) });
        expect(dates).toHaveLength(1);
        // The backend runs on this machine, with the same clock.
        for (const date of dates) expect(Math.abs(Date.now() - date.getTime())).toBeLessThan(60_000);
      },
    );
  });
}
