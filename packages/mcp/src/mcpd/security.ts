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
   * Returns, synchronously, the subject that a state belongs to. Requests for which it returns null share the empty
   * subject. Default: the `extra.sub` of the access token.
   */
  readonly subject?: (ctx: ServerContext) => string | null;
  /** Maximum length of a token to seal. Characters, 256 to 262 144. Default: 65 536. */
  readonly maxTokenLength?: number;
  /** Called exactly once per refusal, synchronously. An error that it throws is reported to the server's `onerror`. */
  readonly onReject?: (event: RejectEvent) => void;
}

/**
 * A policy for `protectRequestState` with mcp.d's token formats and the behaviour of its dispatch: when a token is refused,
 * the handler runs as on the first round, without `requestState` and `inputResponses`, and asks again. The refusal is
 * reported to `onReject` and `server.onerror`. This fails the official tampered-state scenario by design.
 *
 * Use it for fleets with mcp.d servers. A token is bound to the parts that `binding` selects: at most subject, method
 * and name, and never the arguments or the audience. Therefore give each service its own key or ring, and use
 * `RequestStateSecurity` wherever all servers support it.
 *
 * @throws {TypeError} or {RangeError} as `createMcpdRequestStateCodec` does, and for invalid values of the other options.
 *
 * @example
 * ```ts
 * const security = createMcpdRequestStateSecurity({ codec, mode: 'encrypted', binding: 'authSubjectAndTool' });
 * const server = createProtectedMcpServer({ McpServer, serverInfo, security });
 * ```
 */
export function createMcpdRequestStateSecurity(options: McpdRequestStateSecurityOptions = {}): RequestStateSecurity {
  const { subject, maxTokenLength, onReject, ...ofCodec } = knownOptions(OWNER, options, KNOWN);
  const bindPrincipal = callback(OWNER, 'subject', subject) ?? subjectOf;
  const reject = callback(OWNER, 'onReject', onReject);
  const boundary = new McpdBoundary({
    states: createMcpdRequestStateCodec(ofCodec),
    ring: [ofCodec['codec'], ofCodec['alsoAccept']].find(isCodec),
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
