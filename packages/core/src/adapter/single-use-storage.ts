/** What every single-use store does: check a claim, and compute how long it is remembered. */

export { checkClaim, claimLifeMs, clockSkewMsOf } from './ring-store-arguments.ts';
