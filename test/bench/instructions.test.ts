import { describe, expect, test } from 'vitest';
import { MissingPrerequisite } from '../support/python-venv.ts';
import {
  committedBaseline,
  type InstructionsReport,
  judgeInstructions,
  measureInstructions,
  NODE,
  PROCESSOR,
  RENEW,
  renewBaseline,
  type TokenCounts,
} from './instructions.ts';

const baseline = await committedBaseline();
const isCi = process.env['CI'] === 'true';
const renews = !isCi && process.env['SEALRING_RENEW_INSTRUCTIONS'] === '1';

/**
 * The counts, or why they are missing; under CI that is a failure, unless the cause is the processor, which CI cannot
 * choose.
 */
async function countedHere(): Promise<InstructionsReport | string> {
  if (!renews && baseline.processor !== PROCESSOR)
    return `counts on the processor ${PROCESSOR} differ from those on ${baseline.processor}`;
  if (!isCi && !renews && baseline.node !== NODE) return `counts of Node ${NODE} differ from those of ${baseline.node}`;
  try {
    return await measureInstructions();
  } catch (error) {
    if (isCi || !(error instanceof MissingPrerequisite)) throw error;
    return error.message;
  }
}

test('sealing and unsealing execute as many instructions and allocate as much heap as in the baseline', async (context) => {
  const report = await countedHere();
  if (typeof report === 'string') return context.skip(report);
  if (renews) await renewBaseline(report);
  const judged = renews ? { ...report, baseline: await committedBaseline() } : report;
  expect(judgeInstructions(judged).filter(({ met }) => !met)).toEqual([]);
});

describe('the comparison with the baseline', () => {
  const report: InstructionsReport = { ...baseline, baseline };
  const changed = (change: Partial<TokenCounts>): InstructionsReport => ({
    ...report,
    operations: { ...report.operations, unseal: { ...report.operations.unseal, ...change } },
  });
  const unmet = (one: InstructionsReport): readonly string[] =>
    judgeInstructions(one)
      .filter(({ met }) => !met)
      .map(({ law }) => law);

  test('accepts a difference of one percent, and reports one of three percent', () => {
    const { instructions, heapBytes } = baseline.operations.unseal;
    expect(unmet(report)).toEqual([]);
    expect(unmet(changed({ instructions: instructions * 1.01, heapBytes: heapBytes * 0.99 }))).toEqual([]);
    expect(unmet(changed({ instructions: instructions * 1.03 }))).toEqual([expect.stringMatching(/^instr.* unseal/)]);
    expect(unmet(changed({ heapBytes: heapBytes * 1.03 }))).toEqual([expect.stringMatching(/^bytes.* unseal/)]);
    // An improvement must be kept.
    expect(unmet(changed({ instructions: instructions * 0.97 }))).toEqual([expect.stringContaining(RENEW)]);
  });

  test('asks for a new baseline if the recorded one is from another build of Node or for another payload', () => {
    expect(unmet({ ...report, node: 'v20.0.0 linux x64' })).toEqual([expect.stringContaining(RENEW)]);
    expect(unmet({ ...report, payloadBytes: 64 })).toEqual([expect.stringContaining(RENEW)]);
  });
});
