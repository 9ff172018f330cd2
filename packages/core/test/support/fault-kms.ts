import { randomBytes } from 'node:crypto';
import {
  type KeyWrapper,
  KeyWrapperError,
  type KeyWrapperErrorKind,
  type WrapOptions,
  type WrappedKey,
} from '../../src/contracts/key-wrapper.ts';
import { localKeyWrapper } from '../../src/kms/local-key-wrapper.ts';

/** A KMS with adjustable faults over real cryptography. Each member gets a `connect()`. */
export class FaultKms {
  readonly #inner = localKeyWrapper({ masterKey: randomBytes(32) });
  /** The error of every call; undefined if it works. */
  failing: KeyWrapperErrorKind | undefined;
  /** The error of calls that make or wrap a data key, while unwraps still work. */
  wrapFailing: KeyWrapperErrorKind | undefined;
  /** The only wrap that is refused. */
  refused: Uint8Array | undefined;
  /** The version of the KMS key that new wrappers name; undefined if the key has no versions. */
  version: number | undefined;
  /** How many of the next calls fail with `unavailable`. */
  failNext = 0;
  hanging = false;
  /** Every call waits for this first. */
  latency: (() => Promise<void>) | undefined;
  /** The date of the service's answers; undefined if they have none. */
  date: (() => Date) | undefined;
  calls = { generate: 0, wrap: 0, unwrap: 0 };
  inFlight = 0;
  mostInFlight = 0;

  get total(): number {
    return this.calls.generate + this.calls.wrap + this.calls.unwrap;
  }

  connect(provider = 'local'): KeyWrapper & { cut: boolean } {
    const inner = this.#inner;
    const guarded = async <T>(
      operation: 'generate' | 'wrap' | 'unwrap',
      connection: { cut: boolean },
      options: WrapOptions,
      run: () => Promise<T>,
    ): Promise<T> => {
      this.calls[operation] += 1;
      this.inFlight += 1;
      this.mostInFlight = Math.max(this.mostInFlight, this.inFlight);
      try {
        if (this.hanging) await new Promise(() => undefined);
        await this.latency?.();
        if (this.date !== undefined) options.onServiceDate?.(this.date());
        if (this.failNext > 0) {
          this.failNext -= 1;
          throw new KeyWrapperError('unavailable', { provider, operation });
        }
        const kind = connection.cut
          ? 'unavailable'
          : (this.failing ?? (operation === 'unwrap' ? undefined : this.wrapFailing));
        if (kind !== undefined) throw new KeyWrapperError(kind, { provider, operation });
        return await run();
      } finally {
        this.inFlight -= 1;
      }
    };
    const hasVersions = this.version !== undefined;
    const renamed = (wrapped: WrappedKey): WrappedKey => ({
      ...wrapped,
      provider,
      keyId: hasVersions ? `${wrapped.keyId}/${this.version}` : wrapped.keyId,
    });
    const original = (wrapped: WrappedKey): WrappedKey => ({
      ...wrapped,
      provider: 'local',
      keyId: wrapped.keyId.replace(/\/\d+$/, ''),
    });
    const connection = {
      provider,
      keyId: inner.keyId,
      supports: { ...inner.supports, keyVersions: hasVersions },
      cut: false,
      wrap: (dataKey: Uint8Array, options: WrapOptions) =>
        guarded('wrap', connection, options, async () => renamed(await inner.wrap(dataKey, options))),
      unwrap: (wrapped: WrappedKey, options: WrapOptions) =>
        guarded('unwrap', connection, options, async () => {
          if (this.refused !== undefined && Buffer.from(this.refused).equals(wrapped.wrapped)) {
            throw new KeyWrapperError('denied', { provider, operation: 'unwrap' });
          }
          return inner.unwrap(original(wrapped), options);
        }),
      generate: (options: WrapOptions) =>
        guarded('generate', connection, options, async () => {
          const dataKey = new Uint8Array(randomBytes(32));
          return { dataKey, wrapped: renamed(await inner.wrap(dataKey, options)) };
        }),
    };
    return connection;
  }
}
