import { isUtf8 } from 'node:buffer';
import { types } from 'node:util';
import { MAX_DOCUMENT_BYTES, type Outcome, type StoreFailure, TOO_LARGE } from '@sealring/core/adapter';

const NO_DOCUMENT = { kind: 'unavailable', detail: 'the answer has no body' } as const;
const SHORT = { kind: 'unavailable', detail: 'the body ended early' } as const;
const EMPTY = { kind: 'corrupt', detail: 'the object is empty' } as const;
const FOREIGN = { kind: 'corrupt', detail: 'the object is not UTF-8' } as const;

/**
 * Reads the body of an answer, at most {@link MAX_DOCUMENT_BYTES} of it: what is longer is let go unread.
 *
 * @param body - The SDK's stream.
 * @param declaredBytes - `ContentLength`, if the answer has one.
 */
export async function readDocument(body: unknown, declaredBytes: unknown): Promise<Outcome<string, StoreFailure>> {
  if (!isAsyncIterable(body)) return { failure: NO_DOCUMENT };
  if (typeof declaredBytes === 'number' && declaredBytes > MAX_DOCUMENT_BYTES) {
    // First, because the abort that follows would make the SDK's stream fail with nobody listening.
    discard(body);
    return { failure: TOO_LARGE };
  }
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    if (!types.isUint8Array(chunk)) return { failure: NO_DOCUMENT };
    length += chunk.length;
    if (length > MAX_DOCUMENT_BYTES) return { failure: TOO_LARGE };
    chunks.push(chunk);
  }
  if (typeof declaredBytes === 'number' && length !== declaredBytes) return { failure: SHORT };
  const bytes = Buffer.concat(chunks, length);
  if (length === 0) return { failure: EMPTY };
  return isUtf8(bytes) ? { answer: bytes.toString('utf8') } : { failure: FOREIGN };
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

function discard(body: object): void {
  if ('destroy' in body && typeof body.destroy === 'function') body.destroy();
}
