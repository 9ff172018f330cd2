/*
 * A KMS of a fictitious vendor, with latency, request ids and errors that contain the request, and a correct
 * adapter for it. `acme-broken.ts` has broken adapters.
 */
import {
  createCipheriv,
  createDecipheriv,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  verify,
} from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { types } from 'node:util';
import {
  type KeyWrapper,
  KeyWrapperError,
  type KeyWrapperErrorKind,
  type WrapOptions,
  type WrappedKey,
} from '@sealring/core';
import type { KeyWrapperTarget } from '../../src/index.ts';

export type Operation = 'wrap' | 'unwrap' | 'generate' | 'sign';

/** The error of the vendor's client, which contains the request. */
export class AcmeError extends Error {
  override readonly name = 'AcmeError';
  readonly code: string;
  readonly request: unknown;

  constructor(code: string, request?: unknown) {
    super(`the service answered ${code}`);
    this.code = code;
    this.request = request;
  }
}

interface AcmeKey {
  readonly name: string;
  readonly versions: Buffer[];
  state: 'on' | 'off' | 'forbidden';
}

/** The service, shared by all instances of a target. */
class Acme {
  readonly keys = new Map<string, AcmeKey>();
  readonly signing: { readonly publicKey: KeyObject; readonly privateKey: KeyObject } = generateKeyPairSync('ed25519');
  latencyMs: () => number = () => 0;
  requests = 0;

  constructor(...names: readonly string[]) {
    for (const name of names) this.keys.set(name, { name, versions: [randomBytes(32)], state: 'on' });
  }

  key(name: string): AcmeKey {
    const key = this.keys.get(name);
    if (key === undefined) throw new AcmeError('NoSuchKey');
    return key;
  }

  encrypt(key: AcmeKey, plaintext: Uint8Array, context: Buffer, nonce = randomBytes(12)): Buffer {
    const version = key.versions.length;
    const cipher = createCipheriv('aes-256-gcm', key.versions[version - 1] as Buffer, nonce);
    const head = Buffer.of(1, version);
    cipher.setAAD(Buffer.concat([head, context]));
    return Buffer.concat([head, nonce, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
  }

  decrypt(key: AcmeKey, bytes: Buffer, context: Buffer): Buffer {
    const secret = key.versions[(bytes[1] ?? 0) - 1];
    if (bytes.length < 30 || bytes[0] !== 1 || secret === undefined) throw new AcmeError('BadCiphertext');
    const decipher = createDecipheriv('aes-256-gcm', secret, bytes.subarray(2, 14), { authTagLength: 16 });
    decipher.setAAD(Buffer.concat([bytes.subarray(0, 2), context])).setAuthTag(bytes.subarray(-16));
    try {
      return Buffer.concat([decipher.update(bytes.subarray(14, -16)), decipher.final()]);
    } catch {
      throw new AcmeError('BadCiphertext');
    }
  }

  /** One request with network latency. */
  async request<T>(isUp: boolean, name: string, run: (key: AcmeKey) => T, body?: unknown): Promise<T> {
    this.requests += 1;
    const ms = this.latencyMs();
    if (ms > 0) await pause(ms);
    else await new Promise((resolve) => setImmediate(resolve));
    if (!isUp) throw new AcmeError('ECONNREFUSED', body);
    const key = this.key(name);
    if (key.state === 'off') throw new AcmeError('KeyOff', body);
    if (key.state === 'forbidden') throw new AcmeError('Forbidden', body);
    return run(key);
  }
}

/** The settings of an instance. */
export interface Setup {
  readonly acme: Acme;
  readonly name: string;
  readonly isUp: boolean;
  /** A client shared by all instances of a target, as if the caller had passed it. */
  readonly client: { isOpen: boolean };
}

const KINDS: Readonly<Record<string, KeyWrapperErrorKind>> = {
  NoSuchKey: 'not-found',
  KeyOff: 'disabled',
  Forbidden: 'denied',
  BadCiphertext: 'corrupt',
  Busy: 'throttled',
};

/** The adapter, in steps that broken adapters replace. */
export class AcmeWrapper implements KeyWrapper {
  readonly provider = 'acme';
  readonly keyId: string;
  supports: KeyWrapper['supports'] = { context: true, authenticated: true, keyVersions: true };
  readonly setup: Setup;
  isClosed = false;
  readonly #ending = new AbortController();

  constructor(setup: Setup) {
    this.setup = setup;
    // Hides the client from inspection.
    Object.defineProperty(this, 'setup', { enumerable: false });
    this.keyId = setup.name;
  }

  owns(wrapped: WrappedKey): boolean {
    return wrapped.provider === this.provider && wrapped.keyId.replace(/#\d+$/, '') === this.keyId;
  }

  async wrap(dataKey: Uint8Array, options: WrapOptions): Promise<WrappedKey> {
    this.checkDataKey(dataKey);
    const context = this.contextOf(options);
    const copy = Uint8Array.from(dataKey);
    const answer = await this.ask('wrap', options.signal, (key) => this.encrypt(key, copy, context), copy);
    this.tellDate(options);
    return answer;
  }

  async unwrap(wrapped: WrappedKey, options: WrapOptions): Promise<Uint8Array> {
    this.checkWrapped(wrapped);
    const context = this.contextOf(options);
    if (!this.owns(wrapped)) throw this.fail('corrupt', 'unwrap');
    const bytes = this.read(wrapped.wrapped);
    const plaintext = await this.ask('unwrap', options.signal, (key) => {
      if (wrapped.keyId !== this.nameOf(bytes[1] ?? 0)) throw new AcmeError('BadCiphertext');
      return this.setup.acme.decrypt(key, bytes, context);
    });
    this.tellDate(options);
    return this.give(plaintext);
  }

  async generate(options: WrapOptions): Promise<{ readonly dataKey: Uint8Array; readonly wrapped: WrappedKey }> {
    const context = this.contextOf(options);
    const dataKey = Uint8Array.from(randomBytes(32));
    const wrapped = await this.ask('generate', options.signal, (key) => this.encrypt(key, dataKey, context), dataKey);
    return { dataKey, wrapped };
  }

  async sign(entry: Uint8Array, options?: { readonly signal?: AbortSignal }): Promise<Uint8Array> {
    if (!types.isUint8Array(entry)) throw new TypeError('an entry is a Uint8Array');
    const copy = Uint8Array.from(entry);
    return this.ask('sign', options?.signal, () => this.signature(copy));
  }

  verify(entry: Uint8Array, signature: Uint8Array): boolean {
    return verify(null, entry, this.setup.acme.signing.publicKey, signature);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    this.#ending.abort();
  }

  nameOf(version: number): string {
    return `${this.keyId}#${version}`;
  }

  encrypt(key: AcmeKey, plaintext: Uint8Array, context: Buffer): WrappedKey {
    const bytes = this.setup.acme.encrypt(key, plaintext, context);
    return { provider: this.provider, keyId: this.nameOf(key.versions.length), wrapped: Uint8Array.from(bytes) };
  }

  signature(entry: Uint8Array): Uint8Array {
    return Uint8Array.from(sign(null, entry, this.setup.acme.signing.privateKey));
  }

  give(plaintext: Buffer): Uint8Array {
    return Uint8Array.from(plaintext);
  }

  read(wrapped: Uint8Array): Buffer {
    return Buffer.from(wrapped);
  }

  tellDate(options: WrapOptions): void {
    options.onServiceDate?.(new Date());
  }

  checkDataKey(dataKey: Uint8Array): void {
    if (!types.isUint8Array(dataKey)) throw new TypeError('a data key is a Uint8Array');
    if (dataKey.length !== 32) throw new RangeError('a data key has 32 bytes');
    if (dataKey.every((byte) => byte === dataKey[0])) throw new RangeError('a data key is not one byte repeated');
  }

  checkWrapped(wrapped: WrappedKey): void {
    if (typeof wrapped !== 'object' || wrapped === null) throw new TypeError('a wrapped key is an object');
    if (typeof wrapped.keyId !== 'string' || !types.isUint8Array(wrapped.wrapped))
      throw new TypeError('no wrapped key');
  }

  contextOf(options: WrapOptions): Buffer {
    const context: unknown = options?.context;
    if (typeof context !== 'object' || context === null) throw new TypeError('context must be an object');
    if (!Object.values(context).every((value) => typeof value === 'string'))
      throw new TypeError('context: strings only');
    return this.encode(Object.entries(context as Record<string, string>));
  }

  encode(entries: readonly (readonly [string, string])[]): Buffer {
    return Buffer.from(JSON.stringify(entries.toSorted(([a], [b]) => (a < b ? -1 : 1))));
  }

  fail(kind: KeyWrapperErrorKind, operation: Operation, _cause?: unknown): Error {
    return new KeyWrapperError(kind, { provider: this.provider, operation });
  }

  /** Maps an error of the client. */
  translate(error: unknown, operation: Operation): Error {
    if (error instanceof KeyWrapperError) return error;
    const kind = error instanceof AcmeError ? KINDS[error.code] : undefined;
    return this.fail(kind ?? 'unavailable', operation, error);
  }

  /** One call: ends with its answer, when the signal aborts, or when the wrapper closes. */
  async ask<T>(
    operation: Operation,
    signal: AbortSignal | undefined,
    run: (key: AcmeKey) => T,
    secret?: Uint8Array,
  ): Promise<T> {
    const { acme, name, isUp, client } = this.setup;
    if (this.isClosed || !client.isOpen || signal?.aborted === true) throw this.fail('unavailable', operation);
    const signals = [this.#ending.signal, ...(signal ? [signal] : [])];
    let giveUp: (() => void) | undefined;
    const given = new Promise<never>((_, reject) => {
      giveUp = () => reject(this.fail('unavailable', operation));
      for (const one of signals) one.addEventListener('abort', giveUp, { once: true });
    });
    const body = secret && { Plaintext: Buffer.from(secret).toString('base64') };
    try {
      return await Promise.race([acme.request(isUp, name, run, body), given]);
    } catch (error) {
      throw this.translate(error, operation);
    } finally {
      for (const one of signals) if (giveUp) one.removeEventListener('abort', giveUp);
    }
  }
}

/** Creates an adapter for one instance. */
export type MakeAcme = (setup: Setup) => object;

/** A target with two keys of one service and all functions of `control`. */
export function acmeTarget(
  name: string,
  make: MakeAcme,
  more: Partial<KeyWrapperTarget> = {},
  latencyMs?: () => number,
): KeyWrapperTarget {
  const acme = new Acme('keys/one', 'keys/two');
  if (latencyMs) acme.latencyMs = latencyMs;
  const client = { isOpen: true };
  const start = (key: string, isUp = true) => {
    const keyWrapper = make({ acme, name: key, isUp, client }) as KeyWrapper;
    return { keyWrapper };
  };
  const set = (state: AcmeKey['state']) => () => {
    acme.key('keys/one').state = state;
  };
  return {
    name,
    create: () => start('keys/one'),
    createOtherKey: () => start('keys/two'),
    createUnreachable: () => start('keys/one', false),
    control: {
      disable: set('off'),
      enable: set('on'),
      deny: set('forbidden'),
      allow: set('on'),
      rotate: () => void acme.key('keys/one').versions.push(randomBytes(32)),
    },
    ...more,
  };
}
