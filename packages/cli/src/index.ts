/**
 * The parts of the `sealring` command line that programs can call: {@link runDoctor} and {@link policyFigures}, and the
 * type of a configuration file.
 *
 * @packageDocumentation
 */

export { type DoctorOptions, runDoctor } from './doctor/doctor.ts';
export type { DoctorReport, Finding, Severity } from './doctor/finding.ts';
export { type PolicyFigures, policyFigures } from './policy/figures.ts';
export type { SealringConfig, SealringProbe } from './settings/settings.ts';
