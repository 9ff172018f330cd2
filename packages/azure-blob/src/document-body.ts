import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { types } from 'node:util';
import { MAX_DOCUMENT_BYTES, type Outcome, type StoreFailure, TOO_LARGE } from '@sealring/core/adapter';

const NO_DOCUMENT = { kind: 'unavailable', detail: 'the answer has no body' } as const;
const SHORT = { kind: 'unavailable', detail: 'the body ended early' } as const;
const DAMAGED = { kind: 'unavailable', detail: 'the document was damaged on its way' } as const;
const EMPTY = { kind: 'corrupt', detail: 'the blob is empty' } as const;
const FOREIGN = { kind: 'corrupt', detail: 'the blob is not UTF-8' } as const;

/**
 * Reads the body of an answer, if it has at most {@link MAX_DOCUMENT_BYTES}: of a longer one no more is read.
 *
 * @param body - The SDK's stream.
 * @param declaredBytes - `contentLength`, if the answer has one.
 * @param md5 - `contentMD5`, if the answer has one: 16 bytes.
 */
export async function readDocument(
  body: unknown,
  declaredBytes: unknown,
  md5: unknown,
): Promise<Outcome<string, StoreFailure>> {
  if (!isAsyncIterable(body)) return { failure: NO_DOCUMENT };
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
  const expected = md5Of(bytes);
  if (types.isUint8Array(md5) && expected !== undefined && !expected.equals(md5)) return { failure: DAMAGED };
  if (length === 0) return { failure: EMPTY };
  return isUtf8(bytes) ? { answer: bytes.toString('utf8') } : { failure: FOREIGN };
}

/** The checksum that Blob Storage keeps: MD5, 16 bytes. Undefined where this machine's policy (FIPS) forbids MD5. */
export function md5Of(bytes: Buffer): Buffer | undefined {
  try {
    return createHash('md5').update(bytes).digest();
  } catch {
    return undefined;
  }
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}
