import { describe, expect, test, vi } from 'vitest';
import { FAULT_CLASSES } from './faults.ts';
import { simulate } from './simulate.ts';
import { usualWorld } from './usual-world.ts';

// Computation only, on machines that may be busy.
vi.setConfig({ testTimeout: 900_000 });

describe('a fleet with one class of faults', () => {
  for (const faults of Object.keys(FAULT_CLASSES)) {
    test(`loses no valid token and keeps one ring: ${faults} (F7, F8, F10, F13, F28, F31)`, async () => {
      const report = await simulate(usualWorld(1, 3), [faults]);
      expect(report.violations).toEqual([]);
      expect(report.tokens.opened).toBeGreaterThan(40_000);
      // A document has 64 keys; a member remembers revoked ones that have left it.
      expect(report.ring.mostKeys).toBeLessThanOrEqual(faults === 'full-ring' ? 80 : 64);
    });
  }
});
