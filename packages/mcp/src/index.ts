/**
 * Plugs a codec into the official MCP TypeScript SDK: {@link createProtectedMcpServer} and {@link protectRequestState}
 * bind `requestState` to the request, the audience and the principal, on the Python SDK's wire.
 *
 * @packageDocumentation
 */

export { compactJson } from './boundary/compact-json.ts';
export { type MemorySingleUseOptions, memorySingleUse, SingleUseStoreFullError } from './boundary/memory-single-use.ts';
export type { RejectEvent, RejectReason } from './boundary/refusal.ts';
export type { SingleUseStore } from './boundary/single-use.ts';
export { type ProtectRequestStateOptions, protectRequestState } from './server/attach.ts';
export { createProtectedMcpServer } from './server/create-protected-mcp-server.ts';
export type { OnInvalid } from './server/policy.ts';
export { authenticatedPrincipal } from './server/principal.ts';
export {
  type RequestStatePolicyOptions,
  RequestStateSecurity,
  type RequestStateSecurityOptions,
} from './server/security.ts';
export {
  createRequestStateCodec,
  type RequestStateCodecOptions,
  type RequestStateCodecTimesAndBinding,
} from './typescript/request-state-codec.ts';
