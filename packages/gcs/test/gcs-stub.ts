import type { ServerResponse } from 'node:http';
import { CRC32C, Storage } from '@google-cloud/storage';
import { type AuthClient, OAuth2Client, PassThroughClient } from 'google-auth-library';
// @boundaries-ignore the servers that the tests share are not a package
import type { SeenRequest } from '../../../test/support/http-stub.ts';

/** The real SDK at a local endpoint, without credentials unless there is a token. */
export function clientOf(endpoint: string, accessToken?: string): Storage {
  let authClient: AuthClient = new PassThroughClient();
  if (accessToken !== undefined) {
    const withToken = new OAuth2Client();
    withToken.setCredentials({ access_token: accessToken, expiry_date: Date.now() + 3_600_000 });
    authClient = withToken;
  }
  return new Storage({ apiEndpoint: endpoint, projectId: 'test', useAuthWithCustomEndpoint: true, authClient });
}

/** The kind of a request: `media`, `list`, or `upload` with its generation. */
export function kindOf({ url }: SeenRequest): string {
  const { pathname, searchParams } = new URL(url, 'http://stub');
  if (pathname.startsWith('/upload/')) return `upload ${searchParams.get('ifGenerationMatch')}`;
  return pathname.startsWith('/download/') ? 'media' : 'list';
}

/** Answers with an object as Cloud Storage does. */
export function sendObject(
  response: ServerResponse,
  body: string | Buffer,
  headers: Readonly<Record<string, string>> = {},
): void {
  const bytes = Buffer.from(body);
  response.writeHead(200, {
    'content-length': `${bytes.length}`,
    'x-goog-generation': '1',
    'x-goog-hash': `crc32c=${checksum(bytes)},md5=AAAAAAAAAAAAAAAAAAAAAA==`,
    'x-goog-stored-content-encoding': 'identity',
    ...headers,
  });
  response.end(bytes);
}

export function sendJson(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=UTF-8' });
  response.end(JSON.stringify(value));
}

/** Answers with an error in the form of the JSON API. */
export function sendError(response: ServerResponse, status: number, reason: string, message = 'text'): void {
  sendJson(response, status, { error: { code: status, message, errors: [{ message, domain: 'global', reason }] } });
}

/** Answers that the bucket exists and does not have the object. */
export function sendEmptyListing(response: ServerResponse): void {
  sendJson(response, 200, { kind: 'storage#objects' });
}

export function checksum(bytes: Buffer): string {
  const crc32c = new CRC32C();
  crc32c.update(bytes);
  return crc32c.toString();
}
