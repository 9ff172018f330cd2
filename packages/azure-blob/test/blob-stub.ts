import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { ContainerClient, StorageSharedKeyCredential } from '@azure/storage-blob';
// @boundaries-ignore the servers that the tests share are not a package
import type { SeenRequest } from '../../../test/support/http-stub.ts';

/** The real SDK at a local endpoint, without retries; signs with the account key if there is one. */
export function clientOf(endpoint: string, accountKey?: string): ContainerClient {
  const credential = accountKey === undefined ? undefined : new StorageSharedKeyCredential('account', accountKey);
  return new ContainerClient(`${endpoint}/account/ring`, credential, { retryOptions: { maxTries: 1 } });
}

/** Method and conditions of a request. */
export function kindOf({ method, headers }: SeenRequest): string {
  return [method, headers['if-match'], headers['if-none-match']].filter(Boolean).join(' ');
}

/** Answers with a blob as Blob Storage does. */
export function sendBlob(
  response: ServerResponse,
  body: string | Buffer,
  headers: Readonly<Record<string, string>> = {},
): void {
  const bytes = Buffer.from(body);
  response.writeHead(200, {
    etag: '"0x1"',
    'content-length': `${bytes.length}`,
    'content-md5': createHash('md5').update(bytes).digest('base64'),
    'x-ms-blob-type': 'BlockBlob',
    ...headers,
  });
  response.end(bytes);
}

/** Answers that the blob was written. */
export function sendCreated(
  response: ServerResponse,
  headers: Readonly<Record<string, string>> = { etag: '"0x2"' },
): void {
  response.writeHead(201, { 'content-length': '0', ...headers }).end();
}

/** Answers with an error in Blob Storage's form. */
export function sendError(response: ServerResponse, status: number, code: string, message = 'text'): void {
  response.writeHead(status, { 'content-type': 'application/xml', 'x-ms-error-code': code });
  response.end(
    `<?xml version="1.0" encoding="utf-8"?>\n<Error><Code>${code}</Code><Message>${message}</Message></Error>`,
  );
}
