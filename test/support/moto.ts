import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { pythonVenv } from './python-venv.ts';
import { type RunningServer, startOrSkip, startServer } from './servers.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Address of moto for KMS, S3, DynamoDB, IAM and STS: `http://127.0.0.1:PORT`, or empty if it cannot run. */
    moto: string;
  }
}

// The smallest set for these five; moto declares the two others only with everything else.
const REQUIREMENTS = ['moto==5.2.3', 'flask==3.1.3', 'flask-cors==6.0.5'];

/**
 * moto compares, and writes later, in as many threads as there are requests: two requests with one `If-Match` may both
 * win, and metadata comes after its object. The real services do each in one step, so requests are serialized.
 */
const ONE_AT_A_TIME = `
import io, sys, threading
from moto import server

dispatch = server.DomainDispatcherApplication.__call__
turn = threading.Lock()

def call(self, environ, start_response):
    # Before its turn: nobody waits for a slow sender.
    length = environ.get("CONTENT_LENGTH")
    if length:
        environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(int(length)))
    with turn:
        return dispatch(self, environ, start_response)

server.DomainDispatcherApplication.__call__ = call
server.main(sys.argv[1:])
`;

/** Starts moto on a free loopback port. */
export async function startMoto(): Promise<RunningServer> {
  const bin = await pythonVenv('moto', REQUIREMENTS);
  return startServer({
    name: 'moto',
    command: join(bin, 'python'),
    args: ['-c', ONE_AT_A_TIME, '-H', '127.0.0.1', '-p', '0'],
    // Otherwise Python buffers the line with the port.
    env: { PYTHONUNBUFFERED: '1' },
    readySeconds: 60,
    async ready(printed) {
      const address = /Running on (http:\/\/127\.0\.0\.1:\d+)/.exec(printed)?.[1];
      return address !== undefined && (await answers(`${address}/moto-api/data.json`)) ? address : undefined;
    },
  });
}

/** A vitest `globalSetup`: tests read the address with `inject('moto')`. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const moto = await startOrSkip(startMoto);
  project.provide('moto', moto?.address ?? '');
  return async () => moto?.stop();
}

/** Credentials that a client signs its requests with. */
export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** Creates an IAM user with permission for `actions`: moto supports only the resource `*`, and no conditions. */
export async function createUser(moto: string, name: string, actions: readonly string[]): Promise<Credentials> {
  const policy = { Version: '2012-10-17', Statement: [{ Effect: 'Allow', Action: actions, Resource: '*' }] };
  await callIam(moto, { Action: 'CreateUser', UserName: name });
  if (actions.length > 0) {
    const PolicyDocument = JSON.stringify(policy);
    await callIam(moto, { Action: 'PutUserPolicy', UserName: name, PolicyName: 'all', PolicyDocument });
  }
  const answer = await callIam(moto, { Action: 'CreateAccessKey', UserName: name });
  const valueOf = (tag: string): string => new RegExp(`<${tag}>([^<]+)</${tag}>`).exec(answer)?.[1] ?? '';
  return { accessKeyId: valueOf('AccessKeyId'), secretAccessKey: valueOf('SecretAccessKey') };
}

/** From now on the whole moto serves only signed requests of users with a policy: use a separate moto. */
export async function enforcePolicies(moto: string): Promise<void> {
  const response = await fetch(`${moto}/moto-api/reset-auth`, { method: 'POST', body: '0' });
  if (!response.ok) throw new Error(`moto: reset-auth returned ${response.status}`);
}

async function callIam(moto: string, form: Readonly<Record<string, string>>): Promise<string> {
  // Names the service for moto; the signature is not checked before the policies are enforced.
  const authorization =
    'AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/iam/aws4_request, SignedHeaders=host, Signature=none';
  const body = new URLSearchParams({ ...form, Version: '2010-05-08' });
  const response = await fetch(moto, { method: 'POST', body, headers: { authorization } });
  const text = await response.text();
  if (!response.ok) throw new Error(`moto: IAM answered ${response.status}`);
  return text;
}

async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(5000) });
    await response.arrayBuffer();
    return response.ok;
  } catch {
    return false;
  }
}
