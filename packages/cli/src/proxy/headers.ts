/**
 * Headers of one connection, which a proxy must not pass on (RFC 9110, 7.6.1). `Host` names the server of the next
 * connection.
 */
const HOP_BY_HOP: readonly string[] = [
  'connection',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];

/** Whether the text has the form of a header name (RFC 9110, 5.1). */
export function isHeaderName(text: string): boolean {
  return /^[!#$%&'*+.^_`|~\w-]+$/.test(text);
}

/** The headers of a message that are passed on, from a list of alternating names and values. */
export function endToEndHeaders(raw: readonly string[]): Headers {
  const all = new Headers();
  for (let at = 0; at + 1 < raw.length; at += 2) all.append(raw[at] ?? '', raw[at + 1] ?? '');
  const named = (all.get('connection') ?? '').split(',').map((name) => name.trim().toLowerCase());
  for (const name of [...HOP_BY_HOP, ...named.filter(isHeaderName)]) all.delete(name);
  return all;
}

/** How many values a header has, in a list of alternating names and values. */
export function valuesOf(raw: readonly string[], name: string): number {
  return raw.filter((text, at) => at % 2 === 0 && text.toLowerCase() === name).length;
}

/** Facts about a request that the server behind the proxy cannot see. */
export interface Hop {
  /** The address that the connection comes from. */
  readonly address: string | undefined;
  readonly host: string | undefined;
}

/**
 * Adds `X-Forwarded-For`, `-Proto` and `-Host`. Values from another proxy in front of this one are kept, because TLS
 * may end there. This proxy bases no decision on these headers, because a client can also send them.
 */
export function addForwarded(headers: Headers, { address, host }: Hop): void {
  // A socket for IPv6 shows the address of an IPv4 client with this prefix.
  if (address !== undefined) headers.append('x-forwarded-for', address.replace(/^::ffff:(?=[\d.]+$)/, ''));
  if (!headers.has('x-forwarded-proto')) headers.set('x-forwarded-proto', 'http');
  if (host !== undefined && !headers.has('x-forwarded-host')) headers.set('x-forwarded-host', host);
}
