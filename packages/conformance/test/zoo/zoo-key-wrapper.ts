import {
  constants,
  createCipheriv,
  createDecipheriv,
  createHmac,
  generateKeyPairSync,
  privateDecrypt,
  publicEncrypt,
  randomBytes,
  sign,
  verify,
} from 'node:crypto';
import { types } from 'node:util';
import type { KeyWrapper, KeyWrapperErrorKind, WrapOptions, WrappedKey } from '@sealring/core';
import type { KeyWrapperTarget } from '../../src/index.ts';
import { ZooKey, type ZooKeyVersion } from './zoo-kms.ts';

export const PROVIDER = 'zoo';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export type Operation = 'wrap' | 'unwrap' | 'generate' | 'sign';

/** A copy of the class, which the kit recognizes by its name. */
export class ZooKeyWrapperError extends Error {
  override readonly name: string = 'KeyWrapperError';
  readonly kind: KeyWrapperErrorKind;
  readonly summary: object;

  constructor(kind: KeyWrapperErrorKind, operation: Operation) {
    super(`${PROVIDER} ${operation}: ${kind}`);
    this.kind = kind;
    Object.defineProperty(this, Symbol.for('@sealring/core/error'), { value: 'ERR_KEY_WRAPPER' });
    this.summary = { provider: PROVIDER, operation };
  }
}

/** The KMS key and the service of one instance. */
export interface World {
  readonly key: ZooKey;
  readonly other: ZooKey;
  readonly isReachable: boolean;
  isClosed: boolean;
}

/** The steps of the sound key wrapper. A broken one replaces one step. */
export interface Steps {
  readonly supports: KeyWrapper['supports'];
  readonly checkOptions: (options: WrapOptions) => void;
  readonly checkDataKey: (dataKey: Uint8Array, supports: KeyWrapper['supports']) => void;
  /** Copies the data key before the first asynchronous step. */
  readonly take: (dataKey: Uint8Array) => Uint8Array;
  /** The allow-list. */
  readonly mayAsk: (world: World, wrapped: WrappedKey) => boolean;
  /** One call: resolves with the answer of the service, or rejects with its error. */
  readonly ask: (world: World, operation: Operation, signal: AbortSignal | undefined, fail: Fail) => Promise<void>;
  readonly versionToOpen: (world: World, wrapped: WrappedKey) => ZooKeyVersion | undefined;
  readonly nameVersion: (version: ZooKeyVersion, key: ZooKey) => string;
  /** The bytes authenticated with the data key. */
  readonly bind: (context: WrapOptions['context'], keyId: string) => Buffer;
  readonly seal: (version: ZooKeyVersion, plaintext: Uint8Array, bound: Buffer) => Buffer;
  /** Throws for bytes that it did not seal. */
  readonly open: (version: ZooKeyVersion, bytes: Buffer, bound: Buffer) => Buffer;
  readonly give: (plaintext: Buffer) => Uint8Array;
  readonly fail: Fail;
}

/** Creates the error of a failure. Receives the bytes of the call, which the error must not show. */
type Fail = (kind: KeyWrapperErrorKind, operation: Operation, secret?: Uint8Array) => Error;

/** Ends with the answer of the service, or at once when the signal aborts. */
function answerOrAbort(signal: AbortSignal | undefined, fail: () => Error): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(fail());
    signal?.addEventListener('abort', abort, { once: true });
    setImmediate(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    });
  });
}

export const SOUND: Steps = {
  supports: { context: true, authenticated: true, keyVersions: true },
  checkOptions(options) {
    const context: unknown = options?.context;
    const isContext = typeof context === 'object' && context !== null;
    if (!isContext || !Object.values(context).every((value) => typeof value === 'string')) {
      throw new TypeError('context must be an object of strings');
    }
  },
  checkDataKey(dataKey, { context }) {
    if (!types.isUint8Array(dataKey)) throw new TypeError('a data key is bytes');
    if (dataKey.length !== 32 && (context || dataKey.length !== 64)) throw new RangeError('a data key has 32 bytes');
    if (dataKey.every((byte) => byte === dataKey[0])) throw new RangeError('a data key is not one byte repeated');
  },
  take: (dataKey) => Uint8Array.from(dataKey),
  mayAsk: ({ key }, { provider, keyId }) => provider === PROVIDER && keyId.startsWith(`${key.name}/`),
  async ask(world, operation, signal, fail) {
    const unavailable = (): Error => fail('unavailable', operation);
    if (world.isClosed || signal?.aborted === true) throw unavailable();
    await answerOrAbort(signal, unavailable);
    if (world.isClosed || !world.isReachable) throw unavailable();
    if (world.key.state !== 'enabled') throw fail(world.key.state, operation);
  },
  versionToOpen: ({ key }, { keyId }) => key.versions.find(({ id }) => id === keyId),
  nameVersion: ({ id }) => id,
  bind: (context, keyId) =>
    Buffer.from(JSON.stringify([keyId, ...Object.entries(context).toSorted(([a], [b]) => (a < b ? -1 : 1))])),
  seal: (version, plaintext, bound) => sealWith(randomBytes(NONCE_BYTES), version, plaintext, bound),
  open(version, bytes, bound) {
    const decipher = createDecipheriv('aes-256-gcm', version.secret, bytes.subarray(0, NONCE_BYTES), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(bound).setAuthTag(bytes.subarray(-TAG_BYTES));
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
  },
  give: (plaintext) => Uint8Array.from(plaintext),
  fail: (kind, operation) => new ZooKeyWrapperError(kind, operation),
};

export function sealWith(nonce: Buffer, version: ZooKeyVersion, plaintext: Uint8Array, bound: Buffer): Buffer {
  const cipher = createCipheriv('aes-256-gcm', version.secret, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(bound);
  return Buffer.concat([nonce, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
}

/** Deterministic: equal data keys and contexts give equal wraps, as with AES-SIV. */
export const DETERMINISTIC: Partial<Steps> = {
  seal(version, plaintext, bound) {
    const nonce = createHmac('sha256', version.secret).update(bound).update(plaintext).digest();
    return sealWith(nonce.subarray(0, NONCE_BYTES), version, plaintext, bound);
  },
};

/** Wraps as text that starts with a version, in canonical base64. */
export function asText({ seal, open }: Pick<Steps, 'seal' | 'open'>): Pick<Steps, 'seal' | 'open'> {
  return {
    seal: (...given) => Buffer.from(`zoo:v1:${seal(...given).toString('base64')}`),
    open(version, bytes, bound) {
      const sealed = Buffer.from(bytes.toString('latin1').slice('zoo:v1:'.length), 'base64');
      if (`zoo:v1:${sealed.toString('base64')}` !== bytes.toString('latin1')) throw new Error('not canonical');
      return open(version, sealed, bound);
    },
  };
}

const AES_KW_IV = Buffer.alloc(8, 0xa6);

/** AES key wrap (RFC 3394): no context, no randomness. */
export const KEY_WRAP: Partial<Steps> = {
  supports: { context: false, authenticated: true, keyVersions: true },
  seal({ secret }, plaintext) {
    const cipher = createCipheriv('id-aes256-wrap', secret, AES_KW_IV);
    return Buffer.concat([cipher.update(plaintext), cipher.final()]);
  },
  open({ secret }, bytes) {
    // OpenSSL decrypts no bytes to no bytes.
    if (bytes.length === 0) throw new Error('no bytes');
    const decipher = createDecipheriv('id-aes256-wrap', secret, AES_KW_IV);
    return Buffer.concat([decipher.update(bytes), decipher.final()]);
  },
};

export const OAEP = { padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' };

/** RSA-OAEP: no context, and anyone with the public key can wrap. */
export const PUBLIC_KEY: Partial<Steps> = {
  supports: { context: false, authenticated: false, keyVersions: true },
  seal: ({ pair }, plaintext) => publicEncrypt({ key: pair.publicKey, ...OAEP }, plaintext),
  open: ({ pair }, bytes) => privateDecrypt({ key: pair.privateKey, ...OAEP }, bytes),
};

/** A key wrapper with all members. */
export type Whole = Required<Omit<KeyWrapper, 'sign' | 'verify'>>;

/** Creates a key wrapper from these steps. */
function zooKeyWrapper(steps: Steps, world: World): Whole {
  const { key } = world;
  const failure = (kind: KeyWrapperErrorKind, operation: Operation, secret: Uint8Array): Error =>
    steps.fail(kind, operation, secret);

  async function wrapAs(operation: Operation, dataKey: Uint8Array, options: WrapOptions): Promise<WrappedKey> {
    const taken = steps.take(dataKey);
    await steps.ask(world, operation, options.signal, (kind, what) => failure(kind, what, taken));
    const keyId = steps.nameVersion(key.current, key);
    const wrapped = Uint8Array.from(steps.seal(key.current, taken, steps.bind(options.context, keyId)));
    return { provider: PROVIDER, keyId, wrapped };
  }

  return {
    provider: PROVIDER,
    keyId: key.name,
    supports: steps.supports,
    owns: (wrapped) => SOUND.mayAsk(world, wrapped),
    async wrap(dataKey, options) {
      steps.checkOptions(options);
      steps.checkDataKey(dataKey, steps.supports);
      return wrapAs('wrap', dataKey, options);
    },
    async unwrap(wrapped, options) {
      steps.checkOptions(options);
      if (typeof wrapped !== 'object' || wrapped === null) throw new TypeError('a wrapped key is an object');
      const isRecord = typeof wrapped.keyId === 'string' && types.isUint8Array(wrapped.wrapped);
      if (!isRecord) throw new TypeError('a wrapped key has a keyId and bytes');
      if (!steps.mayAsk(world, wrapped)) throw steps.fail('corrupt', 'unwrap');
      await steps.ask(world, 'unwrap', options.signal, steps.fail);
      const version = steps.versionToOpen(world, wrapped);
      if (version === undefined) throw steps.fail('corrupt', 'unwrap');
      let plaintext: Buffer;
      try {
        plaintext = steps.open(version, Buffer.from(wrapped.wrapped), steps.bind(options.context, wrapped.keyId));
      } catch {
        throw steps.fail('corrupt', 'unwrap');
      }
      return steps.give(plaintext);
    },
    async generate(options) {
      steps.checkOptions(options);
      const dataKey = Uint8Array.from(randomBytes(32));
      return { dataKey, wrapped: await wrapAs('generate', dataKey, options) };
    },
    async close() {
      world.isClosed = true;
    },
  };
}

/** Signatures beside the wraps, with one key for every instance of a target. */
export function signing(): (sound: Whole, world: World) => KeyWrapper {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  return (sound, world) => ({
    ...sound,
    async sign(entry, options) {
      if (!types.isUint8Array(entry)) throw new TypeError('an entry is bytes');
      const copy = Uint8Array.from(entry);
      await SOUND.ask(world, 'sign', options?.signal, SOUND.fail);
      return Uint8Array.from(sign(null, copy, privateKey));
    },
    verify: (entry, signature) => verify(null, entry, publicKey, signature),
  });
}

/** Creates a key wrapper. State outside one instance belongs to this function. */
export type Make = (world: World) => KeyWrapper;

/** The cache key, and a check before a cached result is used. */
export interface Memory {
  readonly nameOf: (wrapped: WrappedKey, options: WrapOptions) => readonly unknown[];
  readonly ask: (world: World, signal: AbortSignal | undefined) => Promise<void>;
}

/** The complete record as cache key, with a call to the service each time. */
export const GOOD_MEMORY: Memory = {
  nameOf: ({ provider, keyId, wrapped }, { context }) => [
    provider,
    keyId,
    Buffer.from(wrapped).toString('hex'),
    ...Object.entries(context),
  ],
  ask: (world, signal) => SOUND.ask(world, 'unwrap', signal, SOUND.fail),
};

/** Caches unwraps. */
export function remembering(memory: Partial<Memory> = {}): Make {
  const { nameOf, ask } = { ...GOOD_MEMORY, ...memory };
  const make = soundKeyWrapper();
  return (world) => {
    const sound = make(world);
    const opened = new Map<string, Uint8Array>();
    return {
      ...sound,
      async unwrap(wrapped, options) {
        if (wrapped?.wrapped === undefined) return sound.unwrap(wrapped, options);
        const name = JSON.stringify(nameOf(wrapped, options));
        let known = opened.get(name);
        if (known === undefined) known = await sound.unwrap(wrapped, options);
        else await ask(world, options.signal);
        opened.set(name, Uint8Array.from(known));
        return Uint8Array.from(known);
      },
    };
  };
}

/** A target with two keys of one service and all functions of `control`. */
export function zooTarget(name: string, make: Make, more: Partial<KeyWrapperTarget> = {}): KeyWrapperTarget {
  const [a, b] = [new ZooKey('keys/a'), new ZooKey('keys/b')];
  const start = (key: ZooKey, other: ZooKey, isReachable = true) => {
    const keyWrapper = make({ key, other, isReachable, isClosed: false });
    return { keyWrapper };
  };
  const set = (state: ZooKey['state']) => () => {
    a.state = state;
  };
  return {
    name,
    create: () => start(a, b),
    createOtherKey: () => start(b, a),
    createUnreachable: () => start(a, b, false),
    control: {
      disable: set('disabled'),
      enable: set('enabled'),
      deny: set('denied'),
      allow: set('enabled'),
      rotate: () => a.rotate(),
    },
    ...more,
  };
}

export function soundKeyWrapper(steps: Partial<Steps> = {}): (world: World) => Whole {
  return (world) => zooKeyWrapper({ ...SOUND, ...steps }, world);
}
