import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { CRC32C } from '@google-cloud/storage';
import type { GcsRingRequest } from './client.ts';

/** What of a request depends on what is asked. */
export type Asked = Pick<GcsRingRequest, 'url' | 'method' | 'headers' | 'data'>;

/** The object that a store is about, and where. */
export interface Place {
  /** Without a slash at its end. */
  readonly endpoint: string;
  readonly bucket: string;
  readonly object: string;
}

const DOCUMENT_TYPE = 'text/plain; charset=utf-8';
/** As it is stored: a length and a checksum are those of what was sent. */
const PLAIN = { 'accept-encoding': 'identity' };

/** Asks for the bytes of the object and its generation: one answer, so that they belong together. */
export function mediaRequest({ endpoint, bucket, object }: Place): Asked {
  // Without /download the service may answer with a redirect (303 mediaDownloadRedirect).
  const path = `/download/storage/v1/b/${encode(bucket)}/o/${encode(object)}`;
  return {
    url: `${endpoint}${path}?alt=media`,
    method: 'GET',
    headers: { ...PLAIN, 'cache-control': 'no-store' },
  };
}

/** Asks for the first object whose name begins with the object's: itself, if it is there. */
export function listRequest({ endpoint, bucket, object }: Place): Asked {
  const fields = encode('kind,nextPageToken,items(name)');
  const query = `prefix=${encode(object)}&maxResults=1&fields=${fields}`;
  return { url: `${endpoint}/storage/v1/b/${encode(bucket)}/o?${query}`, method: 'GET', headers: PLAIN };
}

/**
 * Asks for a document to be stored if the object has the given generation; `0` means that there is none. The checksum
 * goes along, so that the service refuses a document that was damaged on its way instead of storing it.
 */
export function uploadRequest({ endpoint, bucket, object }: Place, document: string, generation: string): Asked {
  const bytes = Buffer.from(document, 'utf8');
  // A cache in between would serve an outdated ring.
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
 * Bytes as a stream whose errors are heard. Of bytes the SDK's transport (node-fetch 3) makes a stream of its own, and
 * ends it with an error that nobody hears when the signal has aborted before it starts: that would end the process.
 */
function streamOf(bytes: Buffer): Readable {
  return Readable.from([bytes], { objectMode: false }).on('error', () => undefined);
}

/** The CRC-32C as Cloud Storage spells it: base64 of 4 bytes, big endian. */
export function crc32cOf(bytes: Buffer): string {
  const crc32c = new CRC32C();
  crc32c.update(bytes);
  return crc32c.toString();
}

function encode(text: string): string {
  return encodeURIComponent(text);
}
