import { types } from 'node:util';
import { MAX_DOCUMENT_BYTES, type Outcome, type StoreFailure, statusOf, TOO_LARGE } from '@sealring/core/adapter';

/** An HTTP answer whose body has not been read. */
export interface Answer {
  /** 100 to 599; 0 for what is no answer. */
  readonly status: number;
  readonly header: (name: string) => string | undefined;
  /** Every byte of the body, if it has at most {@link MAX_DOCUMENT_BYTES}: of a longer one no more is read. */
  readonly readBody: () => Promise<Outcome<Buffer, StoreFailure>>;
}

const NO_BODY = { kind: 'unavailable', detail: 'the answer has no body' } as const;
const SHORT = { kind: 'unavailable', detail: 'the body ended early' } as const;

/** What the SDK's transport resolved to: a response of `fetch`, with its body as `data`. */
export function answerOf(response: unknown): Answer {
  const headers = field(response, 'headers');
  const body = field(response, 'data');
  const header = (name: string): string | undefined => {
    const value: unknown = isHeaders(headers) ? headers.get(name) : undefined;
    return typeof value === 'string' ? value : undefined;
  };
  return {
    status: statusOf(field(response, 'status')) ?? 0,
    header,
    // Of a body that was packed on its way, the length is that of the pack.
    readBody: () => readBytes(body, header('content-encoding') === undefined ? header('content-length') : undefined),
  };
}

async function readBytes(body: unknown, declared: string | undefined): Promise<Outcome<Buffer, StoreFailure>> {
  if (!isAsyncIterable(body)) return { failure: NO_BODY };
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    if (!types.isUint8Array(chunk)) return { failure: NO_BODY };
    length += chunk.length;
    if (length > MAX_DOCUMENT_BYTES) return { failure: TOO_LARGE };
    chunks.push(chunk);
  }
  if (declared !== undefined && length !== Number(declared)) return { failure: SHORT };
  return { answer: Buffer.concat(chunks, length) };
}

/** A property of the answer to a call, inherited getters included: a response of `fetch` has nothing else. */
export function field(answer: unknown, name: string): unknown {
  return typeof answer === 'object' && answer !== null ? Reflect.get(answer, name) : undefined;
}

function isHeaders(value: unknown): value is { get(name: string): unknown } {
  return typeof field(value, 'get') === 'function';
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}
