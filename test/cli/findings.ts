import { type DoctorReport, type Finding, runDoctor, type SealringConfig, type Severity } from '@sealring/cli';
import { createKmsCodec } from '@sealring/core';

/** An environment without any variable that the doctor checks. */
const CLEAN: Readonly<Record<string, string>> = {};

/** Creates a ring as a member does. */
export async function createRing(config: SealringConfig): Promise<void> {
  const { probe: _, ...options } = config;
  const codec = await createKmsCodec({ ...options, create: 'now' });
  await codec.close();
}

/** Runs the doctor. */
export function examine(
  config: SealringConfig,
  environment: Readonly<Record<string, string>> = CLEAN,
): Promise<DoctorReport> {
  return runDoctor(config, { environment });
}

/** The findings of one severity, by id. */
export function idsOf(report: DoctorReport, severity: Severity): readonly string[] {
  return report.findings.filter((finding) => finding.severity === severity).map(({ id }) => id);
}

/** The one finding with an id. */
export function findingOf(report: DoctorReport, id: string): Finding | undefined {
  return report.findings.find((finding) => finding.id === id);
}
