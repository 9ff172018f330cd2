import { createHash } from 'node:crypto';
import { types } from 'node:util';
import { type Outcome, ringStorage, type StoreFailure } from '@sealring/core/adapter';

/**
 * Reads the body of an answer, and verifies it against the checksum of the answer if there is one.
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
  const outcome = await ringStorage.readBody(body, declaredBytes);
  if ('failure' in outcome) return outcome;
  const { transactionalContentMD5: expected } = checksumOf(outcome.answer);
  if (types.isUint8Array(md5) && expected?.equals(md5) === false) {
    return { failure: { kind: 'unavailable', detail: 'the document was damaged in transit' } };
  }
  return ringStorage.decodeDocument(outcome.answer, 'blob');
}

/** The checksum that Blob Storage keeps: MD5, 16 bytes. None if this machine's policy (FIPS) forbids MD5. */
export function checksumOf(bytes: Buffer): { readonly transactionalContentMD5?: Buffer } {
  try {
    return { transactionalContentMD5: createHash('md5').update(bytes).digest() };
  } catch {
    return {};
  }
}
