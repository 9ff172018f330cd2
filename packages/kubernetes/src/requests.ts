import { type IncomingMessage, type RequestOptions, request as requestOverHttp } from 'node:http';
import { request as requestOverHttps } from 'node:https';
import type { Socket } from 'node:net';
import type { Outcome } from '@sealring/core/adapter';
import type { KubernetesRingClient } from './client.ts';
import type { Failure } from './error-table.ts';

/** Longest body that is read. A cluster object has at most 1.5 MiB, etcd's limit on the size of a request. */
export const MAX_BODY_BYTES: number = 4 * 1024 * 1024;

const TOO_LONG: Failure = { kind: 'unavailable', detail: 'the answer is longer than any that Kubernetes sends' };

/** One request to the API server. */
export interface Asked {
  /** From the root of the API server, with its query. */
  readonly path: string;
  readonly method: 'GET' | 'POST' | 'PATCH';
  /** Sent as JSON. */
  readonly body?: object;
}

/** The content type of a request body, by method. */
const TYPES = { GET: undefined, POST: 'application/json', PATCH: 'application/merge-patch+json' };

/** An answer that was read to its end. */
export interface Answer {
  readonly status: number;
  /** Undefined for a body that is not JSON. */
  readonly body: unknown;
}

/**
 * Sends one request, and resolves when the headers of the answer have arrived.
 *
 * @param onSocket - Receives the request's socket before the request is sent.
 * @throws the error of the client or of the network, or the signal's reason.
 */
export async function send(
  client: KubernetesRingClient,
  asked: Asked,
  signal: AbortSignal,
  onSocket?: (socket: Socket) => void,
): Promise<IncomingMessage> {
  // Throws if there is no current cluster.
  const { server } = client.getCurrentCluster() as { readonly server: string };
  const url = new URL(server.replace(/\/+$/, '') + asked.path);
  const bytes = asked.body === undefined ? undefined : Buffer.from(JSON.stringify(asked.body));
  const options: RequestOptions = {
    method: asked.method,
    signal,
    headers: {
      accept: 'application/json',
      'user-agent': 'sealring',
      ...(bytes && { 'content-type': TYPES[asked.method], 'content-length': bytes.length }),
    },
  };
  await client.applyToHTTPSOptions(options);
  const start = url.protocol === 'http:' ? requestOverHttp : requestOverHttps;
  return new Promise((resolve, reject) => {
    const request = start(url, options, resolve);
    request.on('error', reject);
    if (onSocket !== undefined) request.on('socket', onSocket);
    request.end(bytes);
  });
}

/** Reads an answer to its end, unless it is too long. */
export async function readAnswer(response: IncomingMessage): Promise<Outcome<Answer, Failure>> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response) {
    const bytes = Buffer.from(chunk);
    length += bytes.length;
    if (length > MAX_BODY_BYTES) return { failure: TOO_LONG };
    chunks.push(bytes);
  }
  return { answer: { status: response.statusCode ?? 0, body: parse(Buffer.concat(chunks).toString()) } };
}

/** Parses JSON; undefined for text that is not JSON, such as the answer of a proxy. */
export function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** An own property; undefined for a value without properties. */
export function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? Reflect.get(value, name)
    : undefined;
}
