import type { ServerContext } from '@modelcontextprotocol/server';
import { isCodec } from './codec-option.ts';
import { createMcpdRequestStateCodec, type McpdRequestStateCodecOptions } from './mcpd-request-state-codec.ts';
import { knownOptions, show } from './option-checks.ts';
import { type McpdPolicy, rememberPolicy } from './policy.ts';
import { subjectOf } from './principal.ts';
import type { RejectEvent } from './refusal.ts';
import { RequestStateSecurity } from './security.ts';
import { readMaxTokenLength } from './token-length.ts';

const OWNER = 'createMcpdRequestStateSecurity';

/** Options of {@link createMcpdRequestStateSecurity}. */
export interface McpdRequestStateSecurityOptions extends McpdRequestStateCodecOptions {
  /**
   * Who the state belongs to, synchronously; null for nobody, whom all that are not signed in share. Default: the
   * `extra.sub` of the access token.
   */
  readonly subject?: (ctx: ServerContext) => string | null;
  /** Longest token that may be sealed. Characters, 256 to 262 144. Default: 65 536. */
  readonly maxTokenLength?: number;
  /** Called exactly once per refusal, synchronously. What it throws goes to the server's `onerror`. */
  readonly onReject?: (event: RejectEvent) => void;
}

/**
 * A policy for `protectRequestState` that speaks mcp.d's wires and behaves as its dispatch does: whatever is wrong with a
 * token, the handler runs as on the first round, without `requestState` and `inputResponses`, and asks again; `onReject`
 * and `server.onerror` are told. That fails the official tampered-state scenario by design.
 *
 * For a fleet that has mcp.d servers in it. It binds subject, method and name, but no arguments and no audience: give
 * every service a key or ring of its own, and prefer `RequestStateSecurity` where every server can.
 *
 * @throws {TypeError} and {@link RangeError} as `createMcpdRequestStateCodec`, and for what is wrong with the rest.
 *
 * @example
 * ```ts
 * const security = createMcpdRequestStateSecurity({ codec, mode: 'encrypted', binding: 'authSubjectAndTool' });
 * const server = createProtectedMcpServer(McpServer, info, {}, security);
 * ```
 */
export function createMcpdRequestStateSecurity(options: McpdRequestStateSecurityOptions = {}): RequestStateSecurity {
  const { subject, maxTokenLength, onReject, ...ofCodec } = knownOptions(OWNER, options, KNOWN);
  if (subject !== undefined && !isFunction(subject)) {
    throw new TypeError(`${OWNER}: subject must be a function, got ${show(subject)}`);
  }
  if (onReject !== undefined && !isFunction(onReject)) {
    throw new TypeError(`${OWNER}: onReject must be a function, got ${show(onReject)}`);
  }
  const policy: McpdPolicy = {
    wire: 'mcp.d',
    states: createMcpdRequestStateCodec(ofCodec),
    ring: [ofCodec['codec'], ofCodec['alsoOpen']].find(isCodec),
    bindPrincipal: subject ?? subjectOf,
    requireSubject: false,
    onInvalid: 're-elicit-any',
    maxTokenLength: readMaxTokenLength(OWNER, maxTokenLength),
    onReject,
  };
  const security: RequestStateSecurity = Object.create(RequestStateSecurity.prototype);
  rememberPolicy(security, policy);
  return Object.freeze(security);
}

const KNOWN = [
  'key',
  'allowEphemeral',
  'codec',
  'alsoOpen',
  'mode',
  'binding',
  'ttlSeconds',
  'revision',
  'clock',
  'subject',
  'maxTokenLength',
  'onReject',
];

function isFunction(value: unknown): value is (argument: unknown) => unknown {
  return typeof value === 'function';
}
