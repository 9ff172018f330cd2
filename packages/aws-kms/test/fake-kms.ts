import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { DecryptCommand, EncryptCommand, GenerateDataKeyCommand } from '@aws-sdk/client-kms';
// @boundaries-ignore code that the tests of all packages share is not a package
import { spellingsOf } from '../../../test/support/leaks.ts';
import type { AwsKmsClient, AwsKmsCommand } from '../src/index.ts';

/** A request that the fake received. */
export interface FakeRequest {
  readonly operation: 'generate' | 'wrap' | 'unwrap';
  readonly keyId: string | undefined;
  readonly context: Readonly<Record<string, string>>;
}

/** The answer of the fake, before a fault changes it. */
export interface FakeAnswer {
  KeyId?: unknown;
  Plaintext?: unknown;
  CiphertextBlob?: unknown;
}

/** The form of the fake's errors. */
export interface FakeErrorShape {
  readonly name: string;
  readonly status?: number | undefined;
  readonly requestId?: string | undefined;
  readonly code?: string | undefined;
}

const ACCOUNT = '111122223333';

/**
 * AWS KMS in memory, for behaviour that no emulator has: key states, throttling, hangs, corrupted answers,
 * replicas of one multi-Region key, and errors that contain the data key. Uses real AES-256-GCM, with the context as
 * additional data.
 */
export class FakeKms implements AwsKmsClient {
  /** Every request, in order. */
  readonly requests: FakeRequest[] = [];
  /** Every plaintext buffer that was returned, so that a test can check that it is overwritten. */
  readonly handedOut: Uint8Array[] = [];
  /** Signals of the calls that hang. */
  readonly hanging: AbortSignal[] = [];
  destroyed = 0;
  readonly region: string;
  readonly #keys: Map<string, Uint8Array>;
  readonly #aliases = new Map<string, string>();
  readonly #canary: Uint8Array | undefined;
  #failures: (FakeErrorShape | undefined)[] = [];
  #always: FakeErrorShape | undefined;
  #spoil: ((answer: FakeAnswer) => unknown) | undefined;
  #hangs: 'no' | 'heeding' | 'ignoring' = 'no';
  #late: (() => void)[] = [];

  /** @param canary - The data key that GenerateDataKey returns and every error then contains, in every field. */
  constructor(options: { region?: string; canary?: Uint8Array; replicaOf?: FakeKms } = {}) {
    this.region = options.region ?? 'eu-west-1';
    this.#keys = options.replicaOf === undefined ? new Map() : options.replicaOf.#keys;
    this.#canary = options.canary;
  }

  arn(id: string): string {
    return `arn:aws:kms:${this.region}:${ACCOUNT}:key/${id}`;
  }

  createKey(id: string): string {
    this.#keys.set(id, randomBytes(32));
    return this.arn(id);
  }

  pointAlias(alias: string, id: string): void {
    this.#aliases.set(alias, id);
  }

  throttleNext(count: number): void {
    this.failNext(count, { name: 'ThrottlingException', status: 400 });
  }

  failNext(count: number, shape: FakeErrorShape): void {
    for (let i = 0; i < count; i++) this.#failures.push(shape);
  }

  failAlways(shape: FakeErrorShape): void {
    this.#always = shape;
  }

  disable(): void {
    this.#always = { name: 'DisabledException', status: 400 };
  }

  deny(): void {
    this.#always = { name: 'AccessDeniedException', status: 400 };
  }

  /** Removes every fault. */
  heal(): void {
    this.#always = undefined;
    this.#failures = [];
    this.#spoil = undefined;
    this.#hangs = 'no';
  }

  /** Stops answering; with `ignoring`, even after an abort. */
  hang(how: 'heeding' | 'ignoring' = 'heeding'): void {
    this.#hangs = how;
  }

  /** Answers the hanging calls. */
  answerLate(): void {
    for (const answer of this.#late.splice(0)) answer();
  }

  spoil(change: (answer: FakeAnswer) => unknown): void {
    this.#spoil = change;
  }

  destroy(): void {
    this.destroyed++;
  }

  async send(command: AwsKmsCommand, options: { readonly abortSignal: AbortSignal }): Promise<unknown> {
    const { request, run } = this.#read(command);
    this.requests.push(request);
    if (this.#hangs !== 'no') await this.#silence(options.abortSignal, this.#hangs === 'heeding');
    const failure = this.#failures.shift() ?? this.#always;
    if (failure !== undefined) throw this.#error(failure);
    const answer: unknown = this.#spoil === undefined ? run() : this.#spoil(run());
    const { Plaintext } = Object(answer);
    if (Plaintext instanceof Uint8Array) this.handedOut.push(Plaintext);
    return answer;
  }

  #read(command: AwsKmsCommand): { request: FakeRequest; run: () => FakeAnswer } {
    if (command instanceof GenerateDataKeyCommand) {
      const { KeyId, EncryptionContext: context = {} } = command.input;
      const run = (): FakeAnswer => {
        const Plaintext = this.#canary === undefined ? randomBytes(32) : Buffer.from(this.#canary);
        return { Plaintext, ...this.#encrypt(KeyId, Plaintext, context) };
      };
      return { request: { operation: 'generate', keyId: KeyId, context }, run };
    }
    if (command instanceof EncryptCommand) {
      const { KeyId, Plaintext = new Uint8Array(), EncryptionContext: context = {} } = command.input;
      return {
        request: { operation: 'wrap', keyId: KeyId, context },
        run: () => this.#encrypt(KeyId, Plaintext, context),
      };
    }
    if (command instanceof DecryptCommand) {
      const { KeyId, CiphertextBlob = new Uint8Array(), EncryptionContext: context = {} } = command.input;
      return {
        request: { operation: 'unwrap', keyId: KeyId, context },
        run: () => this.#decrypt(KeyId, CiphertextBlob, context),
      };
    }
    throw new Error('a command that the wrapper never sends');
  }

  #encrypt(keyId: string | undefined, plaintext: Uint8Array, context: Record<string, string>): FakeAnswer {
    const { id, key } = this.#find(keyId);
    const nonce = randomBytes(12);
    const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: 16 }).setAAD(bytesOf(context));
    const body = Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
    return { KeyId: this.arn(id), CiphertextBlob: Buffer.concat([Buffer.from(id.padEnd(40)), nonce, body]) };
  }

  #decrypt(keyId: string | undefined, blob: Uint8Array, context: Record<string, string>): FakeAnswer {
    const { id, key } = this.#find(keyId);
    const bytes = Buffer.from(blob);
    const made = bytes.subarray(0, 40).toString('latin1').replace(/ +$/, '');
    if (bytes.length < 68 || !this.#keys.has(made))
      throw this.#error({ name: 'InvalidCiphertextException', status: 400 });
    if (made !== id) throw this.#error({ name: 'IncorrectKeyException', status: 400 });
    const open = createDecipheriv('aes-256-gcm', key, bytes.subarray(40, 52), { authTagLength: 16 });
    open.setAAD(bytesOf(context)).setAuthTag(bytes.subarray(-16));
    try {
      return { KeyId: this.arn(id), Plaintext: Buffer.concat([open.update(bytes.subarray(52, -16)), open.final()]) };
    } catch {
      throw this.#error({ name: 'InvalidCiphertextException', status: 400 });
    }
  }

  #find(keyId = ''): { id: string; key: Uint8Array } {
    const prefix = `arn:aws:kms:${this.region}:${ACCOUNT}:`;
    const local = keyId.startsWith(prefix) ? keyId.slice(prefix.length) : keyId;
    const id = this.#aliases.get(local) ?? local.replace(/^key\//, '');
    const key = this.#keys.get(id);
    if (key === undefined) throw this.#error({ name: 'NotFoundException', status: 400 });
    return { id, key };
  }

  // As in vendors' errors, the key is in every place where it was observed, including getters and prototypes.
  #error(shape: FakeErrorShape): Error {
    const leaks = this.#canary === undefined ? [] : spellingsOf(this.#canary);
    const error = new Error([shape.name, ...leaks].join(' '), { cause: { body: leaks } });
    return Object.assign(error, {
      name: shape.name,
      ...(shape.code !== undefined && { code: shape.code }),
      $fault: 'client',
      $metadata: { httpStatusCode: shape.status, requestId: shape.requestId ?? leaks[1], cfId: leaks[0] },
      $response: { body: this.#canary, headers: { 'x-key': leaks[2] } },
      Message: leaks.join(),
    });
  }

  #silence(signal: AbortSignal, heeding: boolean): Promise<void> {
    this.hanging.push(signal);
    return new Promise((resolve, reject) => {
      this.#late.push(resolve);
      const abort = (): void => reject(this.#error({ name: 'AbortError' }));
      if (heeding) signal.addEventListener('abort', abort, { once: true });
    });
  }
}

function bytesOf(context: Record<string, string>): Buffer {
  const pairs = Object.entries(context).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Buffer.from(JSON.stringify(pairs));
}
