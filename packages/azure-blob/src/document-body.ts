import { createHash } from 'node:crypto';
import { types } from 'node:util';
import { decodeDocument, type Outcome, readBody, type StoreFailure } from '@sealring/core/adapter';

/**
 * Reads the body of an answer, and verifies its checksum.
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
  const outcome = await readBody(body, declaredBytes);
  if ('failure' in outcome) return outcome;
  const expected = md5Of(outcome.answer);
  if (types.isUint8Array(md5) && expected !== undefined && !expected.equals(md5)) {
    return { failure: { kind: 'unavailable', detail: 'the document was damaged in transit' } };
  }
  return decodeDocument(outcome.answer, 'blob');
}

/** The checksum that Blob Storage keeps: MD5, 16 bytes. Undefined where this machine's policy (FIPS) forbids MD5. */
export function md5Of(bytes: Buffer): Buffer | undefined {
  try {
    return createHash('md5').update(bytes).digest();
  } catch {
    return undefined;
  }
}
