import type { ConfigFailure } from '../settings/config-failure.ts';
import { type DoctorReport, error, type Finding } from './finding.ts';
import { kmsFinding } from './kms-findings.ts';

/** The report for a configuration that could not be loaded because the KMS or the store failed. */
export function configFailureReport(
  { kms, keyId = '', message }: ConfigFailure,
  role: DoctorReport['role'] = 'member',
): Omit<DoctorReport, 'ring'> {
  const findings: readonly Finding[] =
    kms.length > 0
      ? kms.map((failure) => kmsFinding(failure, keyId))
      : [error('store-error', message, 'Check the store that the configuration calls while it is loaded.')];
  return { healthy: false, role, findings, wrote: [] };
}
