/**
 * A page that shows the keys of a ring over time, the rates of tokens and refusals, and the health of the members:
 * {@link serveDashboard} serves it. The command `sealring dashboard` of `@sealring/cli` serves it for a ring store and
 * a KMS.
 *
 * @packageDocumentation
 */

export { type AskOptions, askMember, type MemberAnswer } from './ask-member.ts';
export { type Dashboard, type DashboardOptions, serveDashboard } from './dashboard.ts';
export { type KeyPhases, keyFingerprint, keyPhases, type RingKey, type Span } from './key-phases.ts';
export { MAX_MEMBERS, refusalOfMember } from './member-address.ts';
export type { RingReport } from './ring-report.ts';
export { isLoopback } from './server.ts';
