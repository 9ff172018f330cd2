import { parseExactly } from './exact-json.ts';
import { GatheredBytes } from './gathered-bytes.ts';
import { JsonStart } from './json-start.ts';
import { hasDuplicates, hasReference } from './json-structure.ts';
import { mayBeCarrier, readLeniently } from './lenient-reading.ts';

/** The content of a request. */
export type RequestBody =
  | ({ readonly kind: 'json' } & JsonBody)
  /** A body that the handler cannot mistake for a message with a state. `request` has the body that was sent. */
  | { readonly kind: 'other'; readonly request: Request }
  | ({ readonly kind: 'refused' } & RefusedBody);

/** A body that this package and the handler read in the same way. */
export interface JsonBody {
  readonly bytes: Uint8Array;
  readonly value: unknown;
  /** Whether the response may be the answer to a JSON-RPC message. */
  readonly holdsRpc: boolean;
  /** Whether the handler must get `value`: of two members with the same name, some parsers read the other one. */
  readonly mustPrint: boolean;
}

/** A body that a handler could read differently from this package, or that is too large. */
export interface RefusedBody {
  readonly status: 400 | 413 | 415;
  readonly message: string;
}

/**
 * Reads the body of a request if it may be JSON. Content type and path are ignored, because the client chooses them and a
 * handler may also ignore them. A body of another kind is not buffered.
 */
export async function readRequestBody(request: Request, maxBytes: number): Promise<RequestBody> {
  const { body } = request;
  if (body === null) return { kind: 'other', request: acceptingPlain(request) };
  const { headers } = request;
  const encoding = refusedEncoding(headers, LATIN);
  if (encoding !== undefined) return unsupported(encoding);
  const reader: ReadableStreamDefaultReader<Uint8Array> = body.getReader();
  const read = new GatheredBytes();
  const start = new JsonStart();
  let isJson: boolean | undefined;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    read.add(value);
    isJson ??= start.mayBeJson(value);
    if (isJson === false) return { kind: 'other', request: withRest(request, read.bytes, reader) };
    const refused = problemWith(headers, { size: read.size, isJson, maxBytes });
    if (refused !== undefined) {
      await reader.cancel();
      return refused;
    }
  }
  return isJson === true
    ? parsed(request, read.bytes)
    : { kind: 'other', request: withBody(request, read.bytes, new Headers(headers)) };
}

/** Checks the part of a body that has arrived. */
function problemWith(
  headers: Headers,
  { size, isJson = false, maxBytes }: { size: number; isJson: boolean | undefined; maxBytes: number },
): RequestBody | undefined {
  const encoding = isJson ? refusedEncoding(headers) : undefined;
  if (encoding !== undefined) return unsupported(encoding);
  if (size <= maxBytes && !(isJson && Number(headers.get('content-length')) > maxBytes)) return undefined;
  const message = `Payload Too Large: Request body must not exceed ${maxBytes} bytes`;
  return { kind: 'refused', status: 413, message };
}

function parsed(request: Request, bytes: Uint8Array): RequestBody {
  let text: string;
  try {
    // Some parsers accept bytes that are not UTF-8: for Jackson, C0 AF is a slash.
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return UNREADABLE;
  }
  const isSuspect = mayBeCarrier(text);
  let value: unknown;
  try {
    // Text that names no call passes as it was sent, also with numbers that other parsers read and this package does not.
    value = isSuspect ? parseExactly(text) : JSON.parse(text);
  } catch {
    if (isSuspect) return UNREADABLE;
    return { kind: 'other', request: withBody(request, bytes, new Headers(request.headers)) };
  }
  const { isMisleading, holdsRpc } = readLeniently(value, isSuspect);
  if (isMisleading || (isSuspect && MAY_REFER.test(text) && hasReference(value))) return MISLEADING;
  const mustPrint = isSuspect && (holdsRpc || hasDuplicates(text, value));
  return { kind: 'json', bytes, value, holdsRpc: holdsRpc || isSuspect, mustPrint };
}

const UNREADABLE = badRequest('the body is not valid JSON in UTF-8');
const MISLEADING = badRequest('other parsers could read the message differently');
/** A member `$ref`, or an escape that could be part of one. */
const MAY_REFER = /\$ref|\\/;

function badRequest(reason: string): RequestBody {
  return { kind: 'refused', status: 400, message: `Bad Request: ${reason}` };
}

function unsupported(reason: string): RequestBody {
  return { kind: 'refused', status: 415, message: `Unsupported Media Type: ${reason}` };
}

/**
 * The same request with a message as its body: the bytes that were sent, or other text. It does not accept compressed
 * responses, because they could not be read.
 */
export function withMessage(request: Request, body: Uint8Array | string): Request {
  const headers = plainHeaders(request);
  if (typeof body === 'string') for (const name of ['content-length', ...DIGESTS]) headers.delete(name);
  return withBody(request, body, headers);
}

/** The same request with a body that was read. */
export function withBody(request: Request, body: Uint8Array | string, headers: Headers): Request {
  return carriedOver(request, new Request(request, { method: request.method, headers, body: Buffer.from(body) }));
}

/** The same request with the part of its body that was read, and the rest as it arrives. */
function withRest(request: Request, read: Uint8Array, reader: ReadableStreamDefaultReader<Uint8Array>): Request {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(read);
    },
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
  const { method, headers } = request;
  return carriedOver(request, new Request(request, { method, headers, body, duplex: 'half' }));
}

/** The same request; if it asks for a stream of events, it no longer accepts a compressed response. */
function acceptingPlain(request: Request): Request {
  const { headers } = request;
  if (!headers.has('accept-encoding') || headers.get('accept')?.includes('text/event-stream') !== true) return request;
  return carriedOver(request, new Request(request, { headers: plainHeaders(request) }));
}

function plainHeaders(request: Request): Headers {
  const headers = new Headers(request.headers);
  headers.delete('accept-encoding');
  return headers;
}

/** Copies the properties of the request, because frameworks pass on the access token in one of them. */
function carriedOver(from: Request, to: Request): Request {
  for (const key of Object.keys(from)) Reflect.set(to, key, Reflect.get(from, key));
  return to;
}

/** Headers with a digest of the body. */
export const DIGESTS = ['content-digest', 'repr-digest', 'digest', 'content-md5'] as const;

/** Charsets in which the bytes of ASCII characters are those of UTF-8, as patterns. */
const UTF_8 = 'utf-?8|us-ascii';
const LATIN = `${UTF_8}|latin1|iso-8859-\\d+|windows-125\\d`;

/**
 * The reason why another parser could read a body differently from this package; undefined if there is no reason.
 * @param charsets - Pattern of the accepted charsets.
 */
export function refusedEncoding(headers: Headers, charsets: string = UTF_8): string | undefined {
  const encoding = headers.get('content-encoding')?.trim().toLowerCase() ?? 'identity';
  if (encoding !== 'identity') return 'Content-Encoding must be identity';
  // Checks every charset, with or without quotation marks, because parsers differ in which one they use.
  const named = (headers.get('content-type') ?? '').toLowerCase().split('charset').slice(1);
  const accepted = new RegExp(`^\\s*=\\s*("(${charsets})"|${charsets})\\s*(;|$)`);
  return named.every((charset) => accepted.test(charset)) ? undefined : 'charset must be utf-8';
}
