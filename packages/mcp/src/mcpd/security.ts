import type { ServerContext } from '@modelcontextprotocol/server';
import type { RejectEvent } from '../boundary/refusal.ts';
import { CheckedPolicy } from '../server/policy.ts';
import { subjectOf } from '../server/principal.ts';
import { RequestStateSecurity } from '../server/security.ts';
import { isCodec } from '../shared/codec-option.ts';
import { callback, knownOptions } from '../shared/option-checks.ts';
import { readMaxTokenLength } from '../shared/token-length.ts';
import { McpdBoundary } from './boundary.ts';
import {
  CODEC_OPTIONS,
  createMcpdRequestStateCodec,
  type McpdRequestStateCodecOptions,
} from './request-state-codec.ts';

const OWNER = 'createMcpdRequestStateSecurity';
const KNOWN = [...CODEC_OPTIONS, 'subject', 'maxTokenLength', 'onReject'];

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
  const bindPrincipal = callback(OWNER, 'subject', subject) ?? subjectOf;
  const reject = callback(OWNER, 'onReject', onReject);
  const boundary = new McpdBoundary({
    states: createMcpdRequestStateCodec(ofCodec),
    ring: [ofCodec['codec'], ofCodec['alsoOpen']].find(isCodec),
    maxTokenLength: readMaxTokenLength(OWNER, maxTokenLength),
  });
  return new RequestStateSecurity(
    new CheckedPolicy({
      bindPrincipal,
      requireSubject: false,
      onInvalid: 're-elicit-any',
      onReject: reject,
      audience: null,
      boundaryFor: () => boundary,
    }),
  );
}
