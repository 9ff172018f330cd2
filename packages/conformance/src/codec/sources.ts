/** Where the requirements of codecs come from. */
export const CONTRACT = 'RequestStateCodec of the MCP Python SDK 2.3.0 (mcp.server.request_state)';
export const SPEC = 'MCP 2026-07-28, multi round-trip requests: requestState is untrusted when it comes back';
export const RFC4648 = 'RFC 4648, section 3.5: canonical encoding';
export const KIT = 'Sealring conformance kit';
