import { canonicalJson } from '@sealring/core';

/**
 * Encodes plain JSON values exactly as `compact_json` of the MCP Python SDK does (`mcp.server.request_state`, 2.3.0):
 * ASCII only, floats as Python writes them, no white space. The digest of a request's arguments is computed over this text.
 *
 * `JSON.parse` cannot distinguish `1.0` from `1` or `-0.0` from `-0`, rounds integers beyond 2^53, and rejects `NaN`, so a
 * server in another language refuses a token for such arguments.
 *
 * @param options - `sortKeys`: sorts the members of every object by code point. Default: false, insertion order.
 * @throws {TypeError} for a value that is not plain JSON.
 * @throws {RangeError} for nesting deeper than 512 levels.
 *
 * @example
 * ```ts
 * compactJson({ b: 1.5, a: 'é' }, { sortKeys: true }); // {"a":"\u00e9","b":1.5}
 * ```
 */
export function compactJson(value: unknown, options: { readonly sortKeys?: boolean } = {}): string {
  return canonicalJson(value, { sortKeys: options.sortKeys === true, allowInfinity: true });
}
