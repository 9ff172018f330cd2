/**
 * For fleets with mcp.d servers: {@link createMcpdRequestStateSecurity} protects a server built with the official MCP
 * TypeScript SDK, using the token formats of mcp.d's `secureRequestState`, and {@link createMcpdRequestStateCodec} is
 * its codec.
 *
 * @packageDocumentation
 */

export type { SingleUseStore } from '@sealring/core';
export type { RejectEvent, RejectReason } from '../boundary/refusal.ts';
export type { OnInvalid } from '../server/policy.ts';
export {
  type RequestStatePolicyOptions,
  RequestStateSecurity,
  type RequestStateSecurityOptions,
} from '../server/security.ts';
export {
  createMcpdRequestStateCodec,
  generateEphemeralKey,
  type McpdBinding,
  type McpdRequester,
  type McpdRequestStateCodec,
  type McpdRequestStateCodecOptions,
} from './request-state-codec.ts';
export { createMcpdRequestStateSecurity, type McpdRequestStateSecurityOptions } from './security.ts';
export type { McpdMode, McpdRevision } from './wire.ts';
