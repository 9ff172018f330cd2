import { canonicalJson } from '@sealring/core';

/**
 * Prints plain JSON values exactly as `compact_json` of the MCP Python SDK does (`mcp.server.request_state`, 2.3.0):
 * ASCII only, floats as Python prints them, no white space. The digest of a request's arguments is taken over this text.
 *
 * `1.0`, integers beyond 2^53, `-0` and `NaN` are lost in `JSON.parse`: arguments that hold them do not match across
 * languages, and such a token is refused.
 *
 * @param options - `sortKeys`: order the members of every object by code point. Default: false, insertion order.
 * @throws {TypeError} for anything that is no plain JSON value.
 * @throws {RangeError} for nesting deeper than 512.
 *
 * @example
 * ```ts
 * compactJson({ b: 1.5, a: 'é' }, { sortKeys: true }); // {"a":"\u00e9","b":1.5}
 * ```
 */
export function compactJson(value: unknown, options: { readonly sortKeys?: boolean } = {}): string {
  return canonicalJson(value, { sortKeys: options.sortKeys === true, allowInfinity: true });
}
