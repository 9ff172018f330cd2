import { parseExactly } from './exact-json.ts';
import { GatheredBytes } from './gathered-bytes.ts';
import { mayBeCarrier } from './lenient-reading.ts';

/** The first bytes of a message's JSON: `{`, `[`, and `/` or `#` of a comment. */
const FIRST: readonly number[] = [0x7b, 0x5b, 0x2f, 0x23];
/** Bytes that can precede a message: byte order marks, and the UTF-8 of white space that many languages remove. */
const SKIPPED: ReadonlySet<number> = new Set(
  Buffer.from(
    'feff efbbbf c285 c2a0 e19a80 e28080 8182838485868788898a a8a9af e2819f e38080'.replaceAll(' ', ''),
    'hex',
  ),
);
/** Some parsers also skip control characters. */
const SPACE = 0x20;

/** The content of a request. */
export type RequestBody =
  | { readonly kind: 'json'; readonly bytes: Uint8Array; readonly value: unknown; readonly mayBeCarrier: boolean }
  /** A body that the handler cannot mistake for a message with a state. `request` has the body that was sent. */
  | { readonly kind: 'other'; readonly request: Request }
  | ({ readonly kind: 'refused' } & RefusedBody);

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
  const encoding = refusedEncoding(request.headers);
  if (encoding !== undefined) return { kind: 'refused', status: 415, message: `Unsupported Media Type: ${encoding}` };
  const reader: ReadableStreamDefaultReader<Uint8Array> = body.getReader();
  const read = new GatheredBytes();
  let isJson = false;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    read.add(value);
    if (!isJson) {
      const first = value.find((byte) => byte > SPACE && !SKIPPED.has(byte));
      isJson = FIRST.includes(first ?? SPACE);
      if (first !== undefined && !isJson) return { kind: 'other', request: withRest(request, read.bytes, reader) };
    }
    if (read.size > maxBytes || (isJson && Number(request.headers.get('content-length')) > maxBytes)) {
      await reader.cancel();
      const message = `Payload Too Large: Request body must not exceed ${maxBytes} bytes`;
      return { kind: 'refused', status: 413, message };
    }
  }
  const { bytes } = read;
  const text = new TextDecoder().decode(bytes);
  const isSuspect = mayBeCarrier(text);
  try {
    return { kind: 'json', bytes, value: parseExactly(text), mayBeCarrier: isSuspect };
  } catch {
    if (isSuspect) return { kind: 'refused', status: 400, message: 'Bad Request: the body is not valid JSON in UTF-8' };
    return { kind: 'other', request: withBody(request, bytes, new Headers(request.headers)) };
  }
}

/**
 * The same request with another message as its body. It does not accept compressed responses, because they could not
 * be read.
 */
export function withMessage(request: Request, body: Uint8Array | string): Request {
  const headers = plainHeaders(request);
  headers.delete('content-length');
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

/** The reason why another parser could read a body differently from this package; undefined if there is no reason. */
export function refusedEncoding(headers: Headers): string | undefined {
  const encoding = headers.get('content-encoding')?.trim().toLowerCase() ?? 'identity';
  if (encoding !== 'identity') return 'Content-Encoding must be identity';
  // Checks every charset, with or without quotation marks, because parsers differ in which one they use.
  const charsets = (headers.get('content-type') ?? '').toLowerCase().split('charset').slice(1);
  return charsets.every((charset) => /^\s*=\s*("(utf-?8|us-ascii)"|utf-?8|us-ascii)\s*(;|$)/.test(charset))
    ? undefined
    : 'charset must be utf-8';
}
