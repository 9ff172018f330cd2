import { type DoctorReport, type Finding, runDoctor, type SealringConfig, type Severity } from '@sealring/cli';
import { createKmsCodec } from '@sealring/core';

/** What servers without any of the doctor's variables run with. */
const CLEAN: Readonly<Record<string, string>> = {};

/** Founds a ring as a member would. */
export async function found(config: SealringConfig): Promise<void> {
  const { probe: _, ...options } = config;
  const codec = await createKmsCodec({ ...options, create: 'now' });
  await codec.close();
}

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
