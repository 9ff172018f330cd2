import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { selfSignedCertificate } from './certificate.ts';
import { bodyOf, REFUSALS, VaultError, type VaultRefusal } from './vault-error.ts';
import { type CryptographyOperation, type KeyVersion, VaultKey, type VaultKeyType } from './vault-key.ts';

/** A caller's permissions for keys, by the names of Key Vault's key permissions. */
export type VaultRight = 'get' | CryptographyOperation;

/** An authenticated request, as the vault received it. */
export interface VaultRequest {
  readonly operation: VaultRight;
  readonly name: string;
  /** The requested version; empty for the current one. */
  readonly version: string;
  readonly token: string;
}

/** The requests that a setting applies to: by default all, without an end. */
export interface KnobScope {
  readonly times?: number;
  readonly only?: readonly VaultRight[];
}

type Answer = Record<string, unknown>;

interface Knob {
  left: number;
  readonly only: readonly VaultRight[] | undefined;
  readonly act: 'hang' | 'reset' | VaultRefusal;
}

const VERBS: Readonly<Record<string, CryptographyOperation>> = {
  wrapkey: 'wrapKey',
  unwrapkey: 'unwrapKey',
  sign: 'sign',
};
const ALL_RIGHTS: readonly VaultRight[] = ['get', 'wrapKey', 'unwrapKey', 'sign'];

/**
 * A Key Vault on a free loopback port: its REST API over TLS, the challenge that each client meets first, real RSA, EC
 * and AES by node:crypto, the service's statuses and error bodies, and settings for failures.
 */
export class FakeKeyVault implements AsyncDisposable {
  /** `https://127.0.0.1:PORT`. */
  readonly url: string;
  /** The certificate to trust, as PEM. */
  readonly certificate: string;
  /** Every authenticated request, in order. */
  readonly requests: VaultRequest[] = [];
  /** Requests without a known token, each answered with the challenge. */
  challenges = 0;
  /** Bytes of bodies without a token: a client must not send a key before the challenge. */
  unauthenticatedBytes = 0;
  /** Unanswered requests whose connection is still open. */
  hanging = 0;
  /** The vault's clock, in milliseconds since the epoch: the `Date` of answers. */
  now: () => number = Date.now;
  /** Delay of every answer, in milliseconds. */
  delayMs = 0;
  readonly #server: Server;
  readonly #keys = new Map<string, VaultKey>();
  readonly #rights = new Map<string, readonly VaultRight[]>();
  #knobs: Knob[] = [];
  #spoilAnswer: ((answer: Answer, operation: VaultRight) => unknown) | undefined;
  #spoilText: ((text: string, operation: VaultRight) => string) | undefined;

  private constructor(server: Server, certificate: string) {
    this.#server = server;
    this.certificate = certificate;
    const { port } = server.address() as AddressInfo;
    this.url = `https://127.0.0.1:${port}`;
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
  }

  static async start(port = 0): Promise<FakeKeyVault> {
    const certificate = selfSignedCertificate();
    const server = createServer(certificate);
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return new FakeKeyVault(server, certificate.cert);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  createKey(name: string, type: VaultKeyType = 'RSA'): VaultKey {
    const key = new VaultKey(name, type);
    this.#keys.set(name.toLowerCase(), key);
    return key;
  }

  /** The key's identifier without a version, or of one version; `url` is the vault's address in the request. */
  idOf(key: VaultKey, version?: KeyVersion, url: string = this.url): string {
    return `${url}/keys/${key.name}${version === undefined ? '' : `/${version.id}`}`;
  }

  /** Creates a bearer token with these permissions. */
  issueToken(rights: readonly VaultRight[] = ALL_RIGHTS): string {
    const token = randomBytes(16).toString('hex');
    this.#rights.set(token, rights);
    return token;
  }

  setRights(token: string, rights: readonly VaultRight[]): void {
    this.#rights.set(token, rights);
  }

  /** Makes the token unknown to this vault. */
  forgetToken(token: string): void {
    this.#rights.delete(token);
  }

  /** Refuses requests that it would otherwise serve. The first setting that matches a request counts. */
  fail(refusal: VaultRefusal, scope: KnobScope = {}): void {
    this.#turn(refusal, scope);
  }

  deny(scope: KnobScope = {}): void {
    this.#turn(REFUSALS.denied, scope);
  }

  throttle(scope: KnobScope = {}): void {
    this.#turn(REFUSALS.throttled, scope);
  }

  /** Never answers. */
  hang(scope: KnobScope = {}): void {
    this.#turn('hang', scope);
  }

  /** Closes the connection after reading the request. */
  reset(scope: KnobScope = {}): void {
    this.#turn('reset', scope);
  }

  /** Changes the answers' JSON. */
  spoilAnswer(change: (answer: Answer, operation: VaultRight) => unknown): void {
    this.#spoilAnswer = change;
  }

  /** Changes the text of the answers. */
  spoilText(change: (text: string, operation: VaultRight) => string): void {
    this.#spoilText = change;
  }

  /** Changes the result of a cryptographic operation: a plaintext, a ciphertext, a signature. */
  spoilValue(change: (value: Buffer) => Uint8Array): void {
    this.spoilAnswer((answer) => {
      if (typeof answer['value'] !== 'string') return answer;
      const value = Buffer.from(change(Buffer.from(answer['value'], 'base64url')));
      return { ...answer, value: value.toString('base64url') };
    });
  }

  /** Changes the key id in the answers. */
  spoilKid(change: (kid: string) => unknown): void {
    this.spoilAnswer((answer) => {
      if (typeof answer['kid'] === 'string') return { ...answer, kid: change(answer['kid']) };
      const key = Object(answer['key']);
      return { ...answer, key: { ...key, kid: change(String(key.kid)) } };
    });
  }

  /** Resets every setting except the settings of keys and tokens. */
  heal(): void {
    this.#knobs = [];
    this.#spoilAnswer = undefined;
    this.#spoilText = undefined;
    this.delayMs = 0;
    this.now = Date.now;
  }

  #turn(act: Knob['act'], { times = Number.POSITIVE_INFINITY, only }: KnobScope): void {
    this.#knobs.push({ left: times, only, act });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request);
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
    const rights = this.#rights.get(token);
    if (rights === undefined) {
      this.challenges++;
      this.unauthenticatedBytes += body.length;
      this.#refuse(response, { ...REFUSALS.unauthorized, headers: { 'www-authenticate': challengeOf() } });
      return;
    }
    const asked = readPath(request);
    if (asked === undefined) {
      this.#refuse(response, REFUSALS.badParameter);
      return;
    }
    this.requests.push({ ...asked, token });
    const knob = this.#knobFor(asked.operation);
    if (knob === 'reset') {
      request.socket.resetAndDestroy();
      return;
    }
    if (knob === 'hang') {
      this.hanging++;
      response.once('close', () => this.hanging--);
      return;
    }
    if (this.delayMs > 0) await pause(this.delayMs, undefined, { ref: false });
    try {
      if (knob !== undefined) throw new VaultError(knob);
      if (!rights.includes(asked.operation)) throw new VaultError(REFUSALS.denied);
      this.#answer(response, asked.operation, this.#perform(asked, body, `https://${request.headers.host}`));
    } catch (error) {
      if (!(error instanceof VaultError)) throw error;
      this.#refuse(response, error.refusal);
    }
  }

  #knobFor(operation: VaultRight): Knob['act'] | undefined {
    const knob = this.#knobs.find(({ left, only }) => left > 0 && (only === undefined || only.includes(operation)));
    if (knob === undefined) return undefined;
    knob.left--;
    return knob.act;
  }

  #perform({ operation, name, version: asked }: Omit<VaultRequest, 'token'>, body: Buffer, url: string): Answer {
    const key = this.#keys.get(name.toLowerCase());
    if (key === undefined) throw new VaultError(REFUSALS.notFound);
    const version = key.version(asked);
    const kid = this.idOf(key, version, url);
    if (operation === 'get') return { ...version.bundle(kid) };
    const { alg, value } = readParameters(body);
    return { kid, value: version.perform(operation, alg, value).toString('base64url') };
  }

  #answer(response: ServerResponse, operation: VaultRight, answer: Answer): void {
    const spoilt: unknown = this.#spoilAnswer === undefined ? answer : this.#spoilAnswer(answer, operation);
    const text = JSON.stringify(spoilt) ?? '';
    this.#send(response, 200, {}, this.#spoilText === undefined ? text : this.#spoilText(text, operation));
  }

  #refuse(response: ServerResponse, refusal: VaultRefusal): void {
    this.#send(response, refusal.status, refusal.headers ?? {}, bodyOf(refusal));
  }

  #send(response: ServerResponse, status: number, headers: Readonly<Record<string, string>>, body: string): void {
    response.writeHead(status, {
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'no-cache',
      date: new Date(this.now()).toUTCString(),
      'x-ms-request-id': randomUUID(),
      ...headers,
    });
    response.end(body);
  }
}

/** Where to get a token, and for which resource (Key Vault, "Authentication, requests and responses"). */
function challengeOf(): string {
  const tenant = '00000000-0000-0000-0000-000000000000';
  return `Bearer authorization="https://login.microsoftonline.com/${tenant}", resource="https://vault.azure.net"`;
}

/** `GET /keys/NAME[/VERSION]`, or `POST /keys/NAME/VERSION/VERB`, with an api-version. */
function readPath({ method, url = '' }: IncomingMessage): Omit<VaultRequest, 'token'> | undefined {
  const { pathname, searchParams } = new URL(url, 'https://vault');
  const [, keys, name = '', version = '', verb, ...more] = pathname.split('/');
  if (keys !== 'keys' || name === '' || more.length > 0 || !searchParams.has('api-version')) return undefined;
  if (method === 'GET' && verb === undefined) return { operation: 'get', name, version };
  const operation = method === 'POST' && verb !== undefined ? VERBS[verb] : undefined;
  return operation === undefined ? undefined : { operation, name, version };
}

/** The body of a cryptographic operation: `{ alg, value }`, the value in base64url. */
function readParameters(body: Buffer): { readonly alg: unknown; readonly value: Buffer } {
  try {
    const { alg, value } = Object(JSON.parse(body.toString('utf8')));
    if (typeof value === 'string' && /^[A-Za-z0-9_-]*$/.test(value))
      return { alg, value: Buffer.from(value, 'base64url') };
  } catch {
    // The body is not JSON, and is refused below.
  }
  throw new VaultError(REFUSALS.badParameter);
}
