/** Common code of single-use stores: checks a claim, and computes how long it is remembered. */

export { checkClaim, claimLifeMs, clockSkewMsOf } from './ring-store-arguments.ts';
