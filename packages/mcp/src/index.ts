/**
 * Plugs a codec into the official MCP TypeScript SDK: {@link createProtectedMcpServer} and {@link protectRequestState}
 * bind `requestState` to the request, the audience and the principal, on the Python SDK's wire.
 *
 * @packageDocumentation
 */

export { type ProtectRequestStateOptions, protectRequestState } from './attach.ts';
export { compactJson } from './compact-json.ts';
export { createProtectedMcpServer } from './create-protected-mcp-server.ts';
export {
  createMcpdRequestStateCodec,
  generateEphemeralKey,
  type McpdBinding,
  type McpdRequester,
  type McpdRequestStateCodec,
  type McpdRequestStateCodecOptions,
} from './mcpd-request-state-codec.ts';
export {
  createMcpdRequestStateSecurity,
  type McpdRequestStateSecurityOptions,
} from './mcpd-security.ts';
export type { McpdMode, McpdRevision } from './mcpd-wire.ts';
export { type MemorySingleUseOptions, memorySingleUse, SingleUseStoreFullError } from './memory-single-use.ts';
export type { OnInvalid } from './policy.ts';
export { authenticatedPrincipal } from './principal.ts';
export type { RejectEvent, RejectReason } from './refusal.ts';
export {
  createRequestStateCodec,
  type RequestStateCodecOptions,
  type RequestStateCodecTimesAndBinding,
} from './request-state-codec.ts';
export {
  type RequestStatePolicyOptions,
  RequestStateSecurity,
  type RequestStateSecurityOptions,
} from './security.ts';
export type { SingleUseStore } from './single-use.ts';
