import { createHash } from 'node:crypto';
import {
  type KeyWrapper,
  KeyWrapperError,
  type KeyWrapperErrorKind,
  RingConflictError,
  type RingStore,
  RingStoreError,
} from '@sealring/core';
import { FORBIDDEN } from '../simulator/services.ts';
import type { KeptKey } from './history.ts';

/** A KMS of a trace: every answer follows from the trace, so that any language can give it. */
export class TracedKms {
  readonly #kept = new Map<string, { readonly dataKey: Uint8Array; readonly context: string }>();
  failing: KeyWrapperErrorKind | undefined;
  wrapFailing: KeyWrapperErrorKind | undefined;
  /** The date of answers, milliseconds; undefined if they have none. */
  dateMs: () => number | undefined;
  readonly provider: string;
  keyId = 'key/1';
  calls = 0;
  generated = 0;

  constructor(provider: string, dateMs: () => number | undefined) {
    this.provider = provider;
    this.dateMs = dateMs;
  }

  learn(keys: readonly KeptKey[]): void {
    for (const { wrapped, dataKey, context } of keys) {
      this.#kept.set(wrapped, { dataKey: Buffer.from(dataKey, 'base64url'), context: spelt(context) });
    }
  }

  wrapper(keyVersions: boolean): KeyWrapper {
    const { provider } = this;
    const answered = <T>(
      operation: 'wrap' | 'unwrap' | 'generate',
      note: ((date: Date) => void) | undefined,
      answer: () => T,
      keyId = '',
    ): T => {
      this.calls += 1;
      const dateMs = this.dateMs();
      if (dateMs !== undefined) note?.(new Date(dateMs));
      const kind =
        keyId === FORBIDDEN ? 'denied' : (this.failing ?? (operation === 'unwrap' ? undefined : this.wrapFailing));
      if (kind !== undefined) throw new KeyWrapperError(kind, { provider, operation });
      return answer();
    };
    const keep = (dataKey: Uint8Array, context: Readonly<Record<string, string>>) => {
      // This cannot be a counter: a slow start in TypeScript also wraps random bytes with the other key wrappers, to
      // learn their answers, and discards the wraps; Python calls one key wrapper after another.
      const key = Buffer.from(dataKey).toString('base64url');
      const wrapped = digest(`wrap/${provider}/${this.keyId}/${key}`).subarray(0, 12);
      this.#kept.set(wrapped.toString('base64url'), { dataKey: Uint8Array.from(dataKey), context: spelt(context) });
      return { provider, keyId: this.keyId, wrapped };
    };
    return {
      provider,
      keyId: 'key',
      supports: { context: true, authenticated: true, keyVersions },
      wrap: async (dataKey, { context, onServiceDate }) =>
        answered('wrap', onServiceDate, () => keep(dataKey, context)),
      unwrap: async (wrapped, { context, onServiceDate }) =>
        answered(
          'unwrap',
          onServiceDate,
          () => {
            const kept = this.#kept.get(Buffer.from(wrapped.wrapped).toString('base64url'));
            if (kept === undefined || kept.context !== spelt(context)) {
              throw new KeyWrapperError('corrupt', { provider, operation: 'unwrap' });
            }
            return Uint8Array.from(kept.dataKey);
          },
          wrapped.keyId,
        ),
      generate: async ({ context, onServiceDate }) =>
        answered('generate', onServiceDate, () => {
          const dataKey = digest(`key/${provider}/${this.generated++}`);
          return { dataKey: Uint8Array.from(dataKey), wrapped: keep(dataKey, context) };
        }),
    };
  }
}

/** A ring store of a trace, and the writes to it. */
export class TracedStore {
  document: string | null = null;
  failing: 'unavailable' | 'denied' | undefined;
  dateMs: () => number | undefined;
  /** Another member writes this right before the next write. */
  race: string | undefined;
  /** Whether the answer to the next write is lost. */
  losesAnswer = false;
  reads = 0;
  writes: { readonly document: string; readonly outcome: 'written' | 'conflict' | 'failed' | 'lost' }[] = [];
  #revision = 0;
  #changed: () => void = () => undefined;

  constructor(dateMs: () => number | undefined) {
    this.dateMs = dateMs;
  }

  put(document: string | null): void {
    this.document = document;
    this.#revision += 1;
  }

  notify(): void {
    this.#changed();
  }

  ring(): RingStore {
    const date = (note: ((date: Date) => void) | undefined): void => {
      const dateMs = this.dateMs();
      if (dateMs !== undefined) note?.(new Date(dateMs));
      if (this.failing !== undefined) throw new RingStoreError(this.failing, 'as the trace says');
    };
    return {
      kind: 'traced',
      read: async (options) => {
        this.reads += 1;
        date(options?.onServiceDate);
        return this.document === null ? undefined : { document: this.document, revision: String(this.#revision) };
      },
      write: async (document, { expected, onServiceDate }) => {
        const outcome = (name: 'written' | 'conflict' | 'failed' | 'lost'): void => {
          this.writes.push({ document, outcome: name });
        };
        if (this.failing !== undefined) outcome('failed');
        date(onServiceDate);
        if (this.race !== undefined) this.put(this.race);
        this.race = undefined;
        if ((this.document === null ? undefined : String(this.#revision)) !== expected) {
          outcome('conflict');
          throw new RingConflictError();
        }
        this.put(document);
        if (this.losesAnswer) {
          this.losesAnswer = false;
          outcome('lost');
          throw new RingStoreError('unavailable', 'the answer got lost');
        }
        outcome('written');
        return { revision: String(this.#revision) };
      },
      watch: (changed) => {
        this.#changed = changed;
        return () => (this.#changed = () => undefined);
      },
    };
  }
}

/** The 32 bytes that represent `text`. */
export function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function spelt(context: Readonly<Record<string, string>>): string {
  return JSON.stringify(Object.entries(context).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
