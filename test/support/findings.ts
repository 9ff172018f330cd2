import type { ConformanceReport } from '@sealring/conformance';
import { expect } from 'vitest';

/** Fails with every finding of a run of the conformance kit, except for the given requirements. */
export function expectNoFindings({ results }: ConformanceReport, exempt: readonly string[] = []): void {
  const found = results.filter(({ id, status }) => (status === 'fail' || status === 'warn') && !exempt.includes(id));
  const lines = found.map(({ id, detail }) => `${id}: ${detail}`);
  expect(lines, lines.join('\n')).toEqual([]);
}
