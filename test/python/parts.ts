import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { isUint8Array } from 'node:util/types';
import {
  type KeyWrapper,
  KeyWrapperError,
  type KeyWrapperErrorKind,
  RingConflictError,
  type RingStore,
  RingStoreError,
  type RingStoreErrorKind,
  type StoredRing,
  type WrappedKey,
} from '@sealring/core';

const PROGRAM = fileURLToPath(new URL('parts.py', import.meta.url));

interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
  readonly kind?: string;
  readonly provider?: string | null;
  readonly operation?: 'wrap' | 'unwrap' | 'generate' | 'sign';
  readonly revision?: string | null;
}

interface Bytes {
  readonly bytes: string;
}

interface Record {
  readonly provider: string;
  readonly keyId: string;
  readonly wrapped: Bytes;
}

/** A process with key wrappers and ring stores of the Python package, as those of @sealring/core. */
export class PythonParts {
  readonly #process: ChildProcess;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #requests = 0;
  #parts = 0;

  constructor(python: string) {
    const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1' };
    this.#process = spawn(python, [PROGRAM], { stdio: ['pipe', 'pipe', 'inherit'], env });
    if (this.#process.stdout === null) throw new Error('no output');
    createInterface({ input: this.#process.stdout }).on('line', (line) => {
      const answer: Answer = JSON.parse(line);
      this.#waiting.get(answer.id)?.(answer);
      this.#waiting.delete(answer.id);
    });
  }

  async ring(kind: 'file' | 'redis' | 'postgres', options: object): Promise<RingStore> {
    const part = ++this.#parts;
    const made = (await this.#ask({ op: 'create', part, kind, options })) as { readonly kind: string };
    const cutShort = (): RingStoreError => new RingStoreError('unavailable', 'aborted');
    return {
      kind: made.kind,
      read: async ({ signal, onServiceDate } = {}) => {
        const read = (await this.#unlessAborted({ op: 'read', part }, signal, cutShort)) as {
          readonly stored: StoredRing | null;
          readonly dates: readonly number[];
        };
        for (const date of read.dates) onServiceDate?.(new Date(date));
        return read.stored ?? undefined;
      },
      write: async (document, { expected, signal }) => {
        const request = { op: 'write', part, document, expected };
        return (await this.#unlessAborted(request, signal, cutShort)) as { readonly revision: string };
      },
    };
  }

  async keyWrapper(kind: 'local', options: object): Promise<KeyWrapper> {
    const part = ++this.#parts;
    const { provider, keyId, supports } = (await this.#ask({ op: 'create', part, kind, options })) as {
      readonly provider: string;
      readonly keyId: string;
      readonly supports: { readonly context: boolean; readonly authenticated: boolean; readonly key_versions: boolean };
    };
    const cutShort = (operation: 'wrap' | 'unwrap') => (): KeyWrapperError =>
      new KeyWrapperError('unavailable', { provider, operation });
    return {
      provider,
      keyId,
      supports: {
        context: supports.context,
        authenticated: supports.authenticated,
        keyVersions: supports.key_versions,
      },
      wrap: async (dataKey, { context, signal }) => {
        const request = { op: 'wrap', part, dataKey: encoded(dataKey), context };
        return wrappedKey((await this.#unlessAborted(request, signal, cutShort('wrap'))) as Record);
      },
      unwrap: async (wrapped, { context, signal }) => {
        const request = { op: 'unwrap', part, wrapped: recordOf(wrapped), context };
        return decoded((await this.#unlessAborted(request, signal, cutShort('unwrap'))) as Bytes);
      },
    };
  }

  async close(): Promise<void> {
    const exited = once(this.#process, 'exit');
    this.#process.stdin?.end();
    await exited;
  }

  /** Python has no signals: a call that is aborted goes on, and its answer is dropped. */
  #unlessAborted(request: object, signal: AbortSignal | undefined, cutShort: () => Error): Promise<unknown> {
    if (signal?.aborted === true) return Promise.reject(cutShort());
    const asked = this.#ask(request);
    if (signal === undefined) return asked;
    let abort = (): void => undefined;
    const aborted = new Promise((_, reject) => {
      abort = () => reject(cutShort());
      signal.addEventListener('abort', abort, { once: true });
    });
    return Promise.race([asked, aborted]).finally(() => signal.removeEventListener('abort', abort));
  }

  async #ask(request: object): Promise<unknown> {
    const id = ++this.#requests;
    const answer = await new Promise<Answer>((resolve) => {
      this.#waiting.set(id, resolve);
      // JSON has no undefined: what is missing is None.
      const text = JSON.stringify({ id, ...request }, (_, value: unknown) => (value === undefined ? null : value));
      this.#process.stdin?.write(`${text}\n`);
    });
    if (answer.error !== undefined) throw errorOf(answer);
    return answer.value;
  }
}

function errorOf({ error, kind, provider, operation, revision }: Answer): Error {
  if (error === 'RingConflictError') return new RingConflictError();
  if (error === 'RingStoreError') {
    return new RingStoreError(kind as RingStoreErrorKind, 'from Python', { revision: revision ?? undefined });
  }
  if (error === 'KeyWrapperError') {
    return new KeyWrapperError(kind as KeyWrapperErrorKind, {
      provider: provider ?? '',
      operation: operation ?? 'wrap',
    });
  }
  if (error === 'TypeError') return new TypeError('from Python');
  return error === 'ValueError' ? new RangeError('from Python') : new Error(error);
}

/** Also of what is no bytes: the other side says that it is wrong. */
function encoded(value: unknown): unknown {
  return isUint8Array(value) ? { bytes: Buffer.from(value).toString('base64') } : (value ?? null);
}

function decoded({ bytes }: Bytes): Uint8Array {
  return Uint8Array.from(Buffer.from(bytes, 'base64'));
}

function recordOf(wrapped: WrappedKey): unknown {
  return { ...wrapped, wrapped: encoded(wrapped?.wrapped), signature: undefined };
}

function wrappedKey({ provider, keyId, wrapped }: Record): WrappedKey {
  return { provider, keyId, wrapped: decoded(wrapped) };
}
