/**
 * The parts of the `sealring` command line that programs use: {@link runDoctor}, {@link policyFigures}, and the type of a settings file.
 *
 * @packageDocumentation
 */

export { type DoctorOptions, runDoctor } from './doctor/doctor.ts';
export type { DoctorReport, Finding, Severity } from './doctor/finding.ts';
export { type PolicyFigures, policyFigures } from './policy/figures.ts';
export type { SealringConfig, SealringProbe } from './settings/settings.ts';
