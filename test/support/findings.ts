import type { ConformanceReport, ConformanceResult } from '@sealring/conformance';
import { expect } from 'vitest';

/**
 * Fails with every finding of a run of the conformance kit, except for the given requirements. Returns the findings of
 * these.
 */
export function expectNoFindings(
  { results }: ConformanceReport,
  exempt: readonly string[] = [],
): readonly ConformanceResult[] {
  const findings = results.filter(({ status }) => status === 'fail' || status === 'warn');
  const lines = findings.filter(({ id }) => !exempt.includes(id)).map(({ id, detail }) => `${id}: ${detail}`);
  expect(lines, lines.join('\n')).toEqual([]);
  return findings;
}
