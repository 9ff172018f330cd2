import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { CRC32C } from '@google-cloud/storage';
import type { GcsRingRequest } from './client.ts';

/** The parts of a request that differ between operations. */
export type Asked = Pick<GcsRingRequest, 'url' | 'method' | 'headers' | 'data'>;

/** The object of a store, and its endpoint. */
export interface Place {
  /** The endpoint without a trailing slash. */
  readonly endpoint: string;
  readonly bucket: string;
  readonly object: string;
}

const DOCUMENT_TYPE = 'text/plain; charset=utf-8';
/** Uncompressed, so that length and checksum match the stored bytes. */
const PLAIN = { 'accept-encoding': 'identity' };

/** Requests the bytes of the object and its generation in one answer, so that they belong together. */
export function mediaRequest({ endpoint, bucket, object }: Place): Asked {
  // Without /download the service may answer with a redirect (303 mediaDownloadRedirect).
  const path = `/download/storage/v1/b/${encode(bucket)}/o/${encode(object)}`;
  return {
    url: `${endpoint}${path}?alt=media`,
    method: 'GET',
    headers: { ...PLAIN, 'cache-control': 'no-store' },
  };
}

/** Requests the first object whose name begins with the name of the object: the object itself, if it exists. */
export function listRequest({ endpoint, bucket, object }: Place): Asked {
  const fields = encode('kind,nextPageToken,items(name)');
  const query = `prefix=${encode(object)}&maxResults=1&fields=${fields}`;
  return { url: `${endpoint}/storage/v1/b/${encode(bucket)}/o?${query}`, method: 'GET', headers: PLAIN };
}

/**
 * Stores a document if the object has the given generation; `0` means that it does not exist. The checksum is
 * also sent, so that the service rejects a document that was damaged in transit.
 */
export function uploadRequest({ endpoint, bucket, object }: Place, document: string, generation: string): Asked {
  const bytes = Buffer.from(document, 'utf8');
  // A cache between the service and a member would serve an outdated ring.
  const metadata = JSON.stringify({ contentType: DOCUMENT_TYPE, cacheControl: 'no-store', crc32c: crc32cOf(bytes) });
  const boundary = randomUUID();
  const data = Buffer.concat([
    Buffer.from(`--${boundary}\r\ncontent-type: application/json; charset=utf-8\r\n\r\n${metadata}\r\n`),
    Buffer.from(`--${boundary}\r\ncontent-type: ${DOCUMENT_TYPE}\r\n\r\n`),
    bytes,
    Buffer.from(`\r\n--${boundary}--`),
  ]);
  const query = `uploadType=multipart&name=${encode(object)}&ifGenerationMatch=${generation}&fields=generation`;
  return {
    url: `${endpoint}/upload/storage/v1/b/${encode(bucket)}/o?${query}`,
    method: 'POST',
    headers: {
      ...PLAIN,
      'content-type': `multipart/related; boundary=${boundary}`,
      'content-length': String(data.length),
    },
    data: streamOf(data),
  };
}

/**
 * Bytes as a stream whose errors are handled. The SDK's transport (node-fetch 3) converts bytes to its own stream. If
 * the signal is aborted before the request starts, it destroys that stream with an unhandled error, which ends the
 * process.
 */
function streamOf(bytes: Buffer): Readable {
  return Readable.from(bytes).on('error', () => undefined);
}

/** The CRC-32C in Cloud Storage's form: base64 of 4 bytes, big endian. */
export function crc32cOf(bytes: Buffer): string {
  const crc32c = new CRC32C();
  crc32c.update(bytes);
  return crc32c.toString();
}

function encode(text: string): string {
  return encodeURIComponent(text);
}
