/**
 * Protects `requestState` in servers built with the official MCP TypeScript SDK: {@link createProtectedMcpServer} and
 * {@link protectRequestState} bind it to the request, the audience and the principal, in the token format of the MCP
 * Python SDK.
 *
 * @packageDocumentation
 */

export type { SingleUseStore } from '@sealring/core';
export { compactJson } from './boundary/compact-json.ts';
export { type MemorySingleUseOptions, memorySingleUse } from './boundary/memory-single-use.ts';
export { REJECT_REASONS, type RejectEvent, type RejectReason } from './boundary/refusal.ts';
export { CARRIER_METHODS, type CarrierMethod } from './boundary/request-identity.ts';
export {
  type FetchHandler,
  type FetchPrincipal,
  type ProtectFetchOptions,
  protectFetch,
} from './fetch/protect-fetch.ts';
export { type ProtectRequestStateOptions, protectRequestState } from './server/attach.ts';
export { authInfoOf, type VerifiedAccessToken } from './server/auth-info.ts';
export { createProtectedMcpServer, type ProtectedMcpServerOptions } from './server/create-protected-mcp-server.ts';
export { BOUNDARY_EVENTS, type BoundaryEvents } from './server/events.ts';
export type { OnInvalid } from './server/policy.ts';
export { type AuthenticatedContext, authenticatedPrincipal } from './server/principal.ts';
export {
  type RequestStatePolicyOptions,
  RequestStateSecurity,
  type RequestStateSecurityOptions,
} from './server/security.ts';
export {
  type AccessTokenClaim,
  CodecFailedError,
  InvalidClaimError,
  isMcpError,
  MCP_ERROR_CODES,
  type McpError,
  type McpErrorCode,
  SingleUseStoreFullError,
} from './shared/errors.ts';
export {
  createRequestStateCodec,
  type RequestStateCodecOptions,
  type RequestStateCodecTimesAndBinding,
} from './typescript/request-state-codec.ts';
