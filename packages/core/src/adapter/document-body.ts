import { isUtf8 } from 'node:buffer';
import { types } from 'node:util';
import { MAX_DOCUMENT_BYTES } from '../contracts/ring-store.ts';
import type { Outcome } from './calls.ts';
import { type StoreFailure, TOO_LARGE } from './failures.ts';

const NO_BODY = { kind: 'unavailable', detail: 'the answer has no body' } as const;
const SHORT = { kind: 'unavailable', detail: 'the body ended early' } as const;

/**
 * Reads the body of an answer. Stops reading after {@link MAX_DOCUMENT_BYTES}, with the failure `too-large`.
 *
 * @param body - The SDK's stream, unchecked.
 * @param declaredBytes - The length that the answer declares; anything but a number is ignored.
 */
export async function readBody(body: unknown, declaredBytes: unknown): Promise<Outcome<Buffer, StoreFailure>> {
  if (!isAsyncIterable(body)) return { failure: NO_BODY };
  if (typeof declaredBytes === 'number' && declaredBytes > MAX_DOCUMENT_BYTES) {
    // The stream is destroyed before the call is aborted: the abort makes it emit an error, which has no listener.
    if ('destroy' in body && typeof body.destroy === 'function') body.destroy();
    return { failure: TOO_LARGE };
  }
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    if (!types.isUint8Array(chunk)) return { failure: NO_BODY };
    length += chunk.length;
    if (length > MAX_DOCUMENT_BYTES) return { failure: TOO_LARGE };
    chunks.push(chunk);
  }
  if (typeof declaredBytes === 'number' && length !== declaredBytes) return { failure: SHORT };
  return { answer: Buffer.concat(chunks) };
}

/**
 * Decodes a stored document: `corrupt` if it is empty or not UTF-8.
 *
 * @param holder - The word in the message for the item that holds the document, such as `object` or `blob`.
 */
export function decodeDocument(bytes: Buffer, holder: string): Outcome<string, StoreFailure> {
  if (bytes.length === 0) return { failure: { kind: 'corrupt', detail: `the ${holder} is empty` } };
  if (!isUtf8(bytes)) return { failure: { kind: 'corrupt', detail: `the ${holder} is not UTF-8` } };
  return { answer: bytes.toString() };
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof (value as Partial<AsyncIterable<unknown>> | null | undefined)?.[Symbol.asyncIterator] === 'function';
}
