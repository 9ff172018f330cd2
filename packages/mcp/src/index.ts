export { type ProtectRequestStateOptions, protectRequestState } from './attach.ts';
export { compactJson } from './compact-json.ts';
export { createProtectedMcpServer } from './create-protected-mcp-server.ts';
export { authenticatedPrincipal } from './principal.ts';
export type { RejectEvent, RejectReason } from './refusal.ts';
export {
  type OnInvalid,
  type RequestStatePolicyOptions,
  RequestStateSecurity,
  type RequestStateSecurityOptions,
} from './security.ts';
export type { SingleUseStore } from './single-use.ts';
