/* Adapters with one fault each, written only from the contract of `KeyWrapper`. */
import { createDecipheriv, randomBytes, sign, verify } from 'node:crypto';
import { writeSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { inspect } from 'node:util';
import { KeyWrapperError, type WrapOptions, type WrappedKey } from '@sealring/core';
import { AcmeError, AcmeWrapper, type MakeAcme, type Operation, type Setup } from './acme.ts';

type Options = WrapOptions;
type Entries = readonly (readonly [string, string])[];
type Constructor = new (setup: Setup) => AcmeWrapper;

/** An adapter with its own error class. */
const of =
  (Class: Constructor): MakeAcme =>
  (setup) =>
    new Class(setup);
/** A correct adapter with other members. */
const withMembers =
  (members: (good: AcmeWrapper, setup: Setup) => object): MakeAcme =>
  (setup) => {
    const good = new AcmeWrapper(setup);
    return Object.assign(good, members(good, setup));
  };
const sorted = (entries: Entries): Entries => entries.toSorted(([a], [b]) => (a < b ? -1 : 1));
const encoding = (change: (entries: Entries) => unknown): MakeAcme =>
  of(
    class extends AcmeWrapper {
      override encode(entries: Entries): Buffer {
        return Buffer.from(JSON.stringify(change(sorted(entries))));
      }
    },
  );
const giving = (give: (plaintext: Buffer) => Uint8Array): MakeAcme =>
  of(
    class extends AcmeWrapper {
      override give(plaintext: Buffer): Uint8Array {
        return give(plaintext);
      }
    },
  );
const checking = (check: (dataKey: unknown, good: (dataKey: Uint8Array) => void) => void): MakeAcme =>
  of(
    class extends AcmeWrapper {
      override checkDataKey(dataKey: Uint8Array): void {
        check(dataKey, (one) => super.checkDataKey(one));
      }
    },
  );
/** Wraps bytes that are converted from the argument. */
const converting = (convert: (given: unknown) => unknown): MakeAcme =>
  withMembers((good) => {
    const wrap = good.wrap.bind(good);
    return { wrap: async (given: unknown, options: Options) => wrap(convert(given) as Uint8Array, options) };
  });
const failing = (show: (error: KeyWrapperError, cause: unknown, operation: Operation) => unknown): MakeAcme =>
  of(
    class extends AcmeWrapper {
      override fail(...[kind, operation, cause]: Parameters<AcmeWrapper['fail']>): Error {
        const error = super.fail(kind, operation, cause) as KeyWrapperError;
        return (show(error, cause, operation) ?? error) as Error;
      }
    },
  );
const signing = (change: (entry: Uint8Array) => Uint8Array): MakeAcme =>
  of(
    class extends AcmeWrapper {
      override signature(entry: Uint8Array): Uint8Array {
        return super.signature(change(entry));
      }
      override verify(entry: Uint8Array, signature: Uint8Array): boolean {
        return super.verify(change(entry), signature);
      }
    },
  );
const reading = (read: (wrapped: Uint8Array) => Uint8Array): MakeAcme =>
  of(
    class extends AcmeWrapper {
      override read(wrapped: Uint8Array): Buffer {
        return Buffer.from(read(wrapped));
      }
    },
  );
/** Wrapped keys in another format. */
const formed = (write: (bytes: Uint8Array) => Uint8Array, read: (bytes: Uint8Array) => Uint8Array): MakeAcme =>
  of(
    class extends AcmeWrapper {
      override encrypt(...given: Parameters<AcmeWrapper['encrypt']>): WrappedKey {
        const made = super.encrypt(...given);
        return { ...made, wrapped: Uint8Array.from(write(made.wrapped)) };
      }
      override read(wrapped: Uint8Array): Buffer {
        return Buffer.from(read(wrapped));
      }
    },
  );
const unwrapping = (
  unwrap: (
    good: (wrapped: WrappedKey, options: Options) => Promise<Uint8Array>,
    wrapped: WrappedKey,
    options: Options,
    setup: Setup,
  ) => Promise<Uint8Array>,
): MakeAcme =>
  withMembers((good, setup) => {
    const own = good.unwrap.bind(good);
    return { unwrap: (wrapped: WrappedKey, options: Options) => unwrap(own, wrapped, options, setup) };
  });
/** Calls with state that belongs to its instance. */
const keeping = <State>(
  start: () => State,
  unwrap: (
    state: State,
    good: (wrapped: WrappedKey, options: Options) => Promise<Uint8Array>,
    wrapped: WrappedKey,
    options: Options,
  ) => Promise<Uint8Array>,
): MakeAcme =>
  withMembers((good) => {
    const state = start();
    const own = good.unwrap.bind(good);
    const member = (wrapped: WrappedKey, options: Options) => unwrap(state, own, wrapped, options);
    return Object.defineProperty({}, 'unwrap', { value: member, enumerable: true });
  });
/** An owns that compares names differently from unwrap. */
const owning = (isOwn: (name: string, own: string) => boolean): MakeAcme =>
  withMembers((good) => {
    const [unwrap, owns] = [good.unwrap.bind(good), good.owns.bind(good)];
    return {
      owns: ({ provider, keyId }: WrappedKey) =>
        provider === good.provider && isOwn(keyId.replace(/#\d+$/, ''), good.keyId),
      unwrap: async (wrapped: WrappedKey, options: Options) => {
        if (typeof wrapped?.keyId === 'string' && !owns(wrapped)) throw good.fail('corrupt', 'unwrap');
        return unwrap(wrapped, options);
      },
    };
  });
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const secretOf = (cause: unknown): string => String(Object(Object(cause).request).Plaintext ?? '');
const forOne = (
  operation: Operation,
  change: (good: (...given: never[]) => Promise<unknown>, given: never[], setup: Setup) => unknown,
): MakeAcme =>
  withMembers((good, setup) => {
    const own = (good[operation] as (...given: never[]) => Promise<unknown>).bind(good);
    return { [operation]: (...given: never[]) => change(own, given, setup) };
  });
const signalOf = (given: never[]): AbortSignal | undefined => (given.at(-1) as Options | undefined)?.signal;
const without = (given: never[]): never[] =>
  given.map((one) => (Object(one).signal ? { ...(one as object), signal: undefined } : one) as never);
/** An adapter that repeats its calls to an unreachable service after pauses, with a fault in its use of the signal. */
const retrying = (
  attempt: (ordinal: number, signal: AbortSignal | undefined) => AbortSignal | undefined,
  wait: (ms: number, signal: AbortSignal | undefined) => Promise<unknown>,
): MakeAcme =>
  of(
    class extends AcmeWrapper {
      override async ask<T>(...[operation, signal, ...given]: Parameters<AcmeWrapper['ask']>): Promise<T> {
        for (let ordinal = 0; ; ordinal++) {
          try {
            return (await super.ask(operation, attempt(ordinal, signal), ...given)) as T;
          } catch (error) {
            if (ordinal === 2 || attempt(ordinal, signal)?.aborted || this.isClosed) throw error;
            if ((error as KeyWrapperError).kind !== 'unavailable') throw error;
            await wait(300, signal);
          }
        }
      }
    },
  );
const onError = (operation: Operation, change: (error: KeyWrapperError, given: never[]) => unknown): MakeAcme =>
  forOne(operation, async (good, given) => {
    try {
      return await good(...given);
    } catch (error) {
      if (!(error instanceof KeyWrapperError)) throw error;
      throw change(error, given) ?? error;
    }
  });

/** The adapters by a description of their fault. */
export const ACME_BROKEN: Readonly<Record<string, MakeAcme>> = {
  // Bytes
  'treats the plaintext as ASCII': giving((plaintext) => Buffer.from(plaintext.toString('ascii'), 'latin1')),
  'strips a trailing newline of the plaintext': giving((plaintext) =>
    plaintext.at(-1) === 0x0a ? plaintext.subarray(0, -1) : plaintext,
  ),
  'decodes a plaintext that looks like hex': giving((plaintext) =>
    /^[0-9a-f]{32}$/.test(plaintext.toString('latin1')) ? Buffer.from(plaintext.toString('latin1'), 'hex') : plaintext,
  ),
  'decodes a plaintext that looks like base64': giving((plaintext) =>
    /^[A-Za-z0-9+/_-]{32}$/.test(plaintext.toString('latin1'))
      ? Buffer.from(plaintext.toString('latin1'), 'base64')
      : plaintext,
  ),
  'converts the data key to a number': giving((plaintext) =>
    Buffer.from(
      BigInt(`0x${hex(plaintext)}`)
        .toString(16)
        .padStart(2, '0'),
      'hex',
    ),
  ),
  'drops a byte order mark': giving((plaintext) =>
    plaintext.subarray(0, 3).equals(Buffer.of(0xef, 0xbb, 0xbf)) ? plaintext.subarray(3) : plaintext,
  ),
  'truncates a plaintext at a zero byte': giving((plaintext) =>
    plaintext.subarray(0, plaintext.includes(0) ? plaintext.indexOf(0) : undefined),
  ),
  'reads a view from its offset to the end of its buffer': withMembers((good) => {
    const wrap = good.wrap.bind(good);
    return {
      wrap: async (dataKey: Uint8Array, options: Options) =>
        dataKey?.buffer
          ? wrap(new Uint8Array(dataKey.buffer, dataKey.byteOffset).slice(0, Math.max(32, dataKey.length)), options)
          : wrap(dataKey, options),
    };
  }),
  'reads the whole buffer of a wrapped view': reading((wrapped) => new Uint8Array(wrapped.buffer)),
  'signs the whole buffer of a view': forOne('sign', (good, [entry, options]) =>
    good(
      ((entry as unknown as Uint8Array)?.buffer
        ? new Uint8Array((entry as unknown as Uint8Array).buffer)
        : entry) as never,
      options as never,
    ),
  ),
  'returns the same bytes to two concurrent callers': keeping(
    () => new Map<string, Promise<Uint8Array>>(),
    async (flying, good, wrapped, options) => {
      if (options?.signal || !wrapped?.wrapped) return good(wrapped, options);
      const name = JSON.stringify([
        wrapped.provider,
        wrapped.keyId,
        hex(wrapped.wrapped),
        options.context,
        Object.keys(options.context),
      ]);
      const call = flying.get(name) ?? good(wrapped, options).finally(() => flying.delete(name));
      flying.set(name, call);
      return call;
    },
  ),
  'returns a cached generated key': withMembers((good) => {
    const [unwrap, generate] = [good.unwrap.bind(good), good.generate.bind(good)];
    const cache = new Map<string, Uint8Array>();
    return Object.defineProperties(
      {},
      {
        generate: {
          enumerable: true,
          value: async (options: Options) => {
            const made = await generate(options);
            cache.set(hex(made.wrapped.wrapped), made.dataKey);
            return made;
          },
        },
        unwrap: {
          enumerable: true,
          value: async (wrapped: WrappedKey, options: Options) => {
            const opened = await unwrap(wrapped, options);
            const known = cache.get(hex(wrapped.wrapped));
            return known ? Uint8Array.from(known) : opened;
          },
        },
      },
    );
  }),
  'signs into one buffer for all calls': withMembers((good) => {
    const own = good.sign.bind(good);
    const buffer = new Uint8Array(64);
    return { sign: async (...given: Parameters<AcmeWrapper['sign']>) => (buffer.set(await own(...given)), buffer) };
  }),
  'overwrites the data key when a wrap fails': onError(
    'wrap',
    (_, [dataKey]) => void (dataKey as unknown as Uint8Array).fill(0),
  ),
  'overwrites the wrapped key': unwrapping(async (good, wrapped, options) => {
    const opened = await good(wrapped, options);
    wrapped.wrapped.fill(0);
    return opened;
  }),
  'overwrites the signed entry': forOne('sign', async (good, given) => {
    const signature = await good(...given);
    (given[0] as unknown as Uint8Array).fill(0);
    return signature;
  }),
  'reverses a signature in place': withMembers((good) => ({
    verify: (entry: Uint8Array, signature: Uint8Array) => {
      const isGood = AcmeWrapper.prototype.verify.call(good, entry, signature);
      signature.reverse();
      return isGood;
    },
  })),
  'adds a member to the caller’s context': forOne('wrap', async (good, given) => {
    if (Object(Object(given[1]).context) === Object(given[1]).context)
      Object.assign((given[1] as unknown as Options).context, { key: 'x' });
    return good(...given);
  }),
  'reads an entry after queueing': withMembers((_, setup) => ({
    async sign(entry: Uint8Array, options?: { signal?: AbortSignal }) {
      if (!(entry instanceof Uint8Array)) throw new TypeError('entry');
      const inner = new AcmeWrapper(setup);
      await inner.sign(Uint8Array.of(1), options);
      return Uint8Array.from(sign(null, entry, setup.acme.signing.privateKey));
    },
  })),
  'shares one record between all wraps': withMembers((good) => {
    const wrap = good.wrap.bind(good);
    const record: Record<string, unknown> = {};
    return {
      wrap: async (dataKey: Uint8Array, options: Options) => Object.assign(record, await wrap(dataKey, options)),
    };
  }),

  // Context
  'lowers the case of a context’s names': encoding((entries) =>
    entries.map(([name, value]) => [name.toLowerCase(), value]),
  ),
  'lowers the case of a context’s values': encoding((entries) =>
    entries.map(([name, value]) => [name, value.toLowerCase()]),
  ),
  'trims the values of a context': encoding((entries) => entries.map(([name, value]) => [name, value.trim()])),
  'omits names with its own prefix': encoding((entries) => entries.filter(([name]) => !name.startsWith('aws:'))),
  'copies a context by assignment': encoding((entries) => {
    const copy: Record<string, string> = {};
    for (const [name, value] of entries) copy[name] = value;
    return copy;
  }),
  'binds only ten members': encoding((entries) => entries.slice(0, 10)),
  'parses numbers in a context': encoding((entries) =>
    entries.map(([name, value]) => [name, /^\d+(\.\d+)?$/.test(value) ? Number(value) : value]),
  ),
  'omits empty values': encoding((entries) => entries.filter(([, value]) => value !== '')),
  'composes accents': encoding((entries) => entries.map(([name, value]) => [name, value.normalize('NFC')])),
  'composes accents only in names': encoding((entries) =>
    entries.map(([name, value]) => [name.normalize('NFC'), value]),
  ),
  'encodes a context as Latin-1': of(
    class extends AcmeWrapper {
      override encode(entries: Entries): Buffer {
        return Buffer.from(super.encode(entries).toString('utf8'), 'latin1');
      }
    },
  ),
  'joins a context with tabs': of(
    class extends AcmeWrapper {
      override encode(entries: Entries): Buffer {
        return Buffer.from(sorted(entries).flat().join('\t'));
      }
    },
  ),
  'truncates values at 256 characters': encoding((entries) =>
    entries.map(([name, value]) => [name, value.slice(0, 256)]),
  ),
  'binds only the length of long values': encoding((entries) =>
    entries.map(([name, value]) => [name, value.length > 512 ? value.length : value]),
  ),
  'generates without the context': of(
    class extends AcmeWrapper {
      override async generate(options: Options) {
        this.contextOf(options);
        return super.generate({ ...options, context: {} });
      }
      override async unwrap(wrapped: WrappedKey, options: Options): Promise<Uint8Array> {
        return super.unwrap(wrapped, options).catch((error: unknown) => {
          if (!(error instanceof KeyWrapperError) || error.kind !== 'corrupt' || !this.owns(wrapped)) throw error;
          return super.unwrap(wrapped, { ...options, context: {} });
        });
      }
    },
  ),
  'unwraps keys without a context under any context': of(
    class extends AcmeWrapper {
      override async unwrap(wrapped: WrappedKey, options: Options): Promise<Uint8Array> {
        return super.unwrap(wrapped, options).catch((error: unknown) => {
          if (!(error instanceof KeyWrapperError) || error.kind !== 'corrupt' || !this.owns(wrapped)) throw error;
          return super.unwrap(wrapped, { ...options, context: {} });
        });
      }
    },
  ),

  // Integrity
  'checks only half of the first byte': reading((wrapped) => wrapped.map((byte, i) => (i === 0 ? byte & 0x0f : byte))),
  'ignores bytes after a length prefix': formed(
    (bytes) => Uint8Array.of(bytes.length, ...bytes),
    (bytes) => bytes.subarray(1, 1 + (bytes[0] ?? 0)),
  ),
  'ignores two flags in its header': formed(
    (bytes) => Uint8Array.of(7, 0, ...bytes),
    (bytes) => bytes.subarray(2),
  ),
  'decodes base64 leniently': formed(
    (bytes) => Buffer.from(Buffer.from(bytes).toString('base64')),
    (bytes) => Buffer.from(Buffer.from(bytes).toString('latin1'), 'base64'),
  ),
  'ignores the version in its text': formed(
    (bytes) => Buffer.from(`acme:v1:${hex(bytes)}`),
    (bytes) => {
      const text = Buffer.from(bytes).toString('latin1');
      if (!/^acme:v\d:[0-9a-f]+$/.test(text))
        throw new KeyWrapperError('corrupt', { provider: 'acme', operation: 'unwrap' });
      return Buffer.from(text.slice(8), 'hex');
    },
  ),
  'accepts hex in upper case': formed(
    (bytes) => Buffer.from(hex(bytes)),
    (bytes) => {
      const text = Buffer.from(bytes).toString('latin1');
      if (!/^[0-9a-fA-F]*$/.test(text) || text.length % 2 === 1)
        throw new KeyWrapperError('corrupt', { provider: 'acme', operation: 'unwrap' });
      return Buffer.from(text, 'hex');
    },
  ),
  'ignores spaces around its text': formed(
    (bytes) => Buffer.from(hex(bytes)),
    (bytes) => {
      const text = Buffer.from(bytes).toString('latin1').trim();
      if (!/^[0-9a-f]*$/.test(text) || text.length % 2 === 1)
        throw new KeyWrapperError('corrupt', { provider: 'acme', operation: 'unwrap' });
      return Buffer.from(text, 'hex');
    },
  ),
  'reports short bytes as an outage': unwrapping(async (good, wrapped, options) => {
    if (wrapped?.wrapped?.length < 20)
      throw new KeyWrapperError('unavailable', { provider: 'acme', operation: 'unwrap' });
    return good(wrapped, options);
  }),
  'reports a changed header as a missing key': unwrapping(async (good, wrapped, options) =>
    good(wrapped, options).catch((error: unknown) => {
      if (error instanceof KeyWrapperError && error.kind === 'corrupt' && wrapped.wrapped[0] !== 1)
        throw new KeyWrapperError('not-found', { provider: 'acme', operation: 'unwrap' });
      throw error;
    }),
  ),
  'returns random bytes for changed ones': unwrapping(async (good, wrapped, options) =>
    good(wrapped, options).catch((error: unknown) => {
      if (
        error instanceof KeyWrapperError &&
        error.kind === 'corrupt' &&
        wrapped.provider === 'acme' &&
        wrapped.wrapped.length === 62
      )
        return Uint8Array.from(randomBytes(32));
      throw error;
    }),
  ),
  'accepts a wrapped key without a provider': unwrapping((good, wrapped, options) =>
    good(wrapped?.provider === undefined && wrapped ? { ...wrapped, provider: 'acme' } : wrapped, options),
  ),
  'accepts a wrapped key without a keyId': unwrapping((good, wrapped, options) =>
    good(wrapped?.keyId === '' ? { ...wrapped, keyId: 'keys/one#1' } : wrapped, options),
  ),
  'compares providers in lower case': unwrapping((good, wrapped, options) =>
    good(
      typeof wrapped?.provider === 'string' ? { ...wrapped, provider: wrapped.provider.toLowerCase() } : wrapped,
      options,
    ),
  ),
  'compares trimmed providers': unwrapping((good, wrapped, options) =>
    good(typeof wrapped?.provider === 'string' ? { ...wrapped, provider: wrapped.provider.trim() } : wrapped, options),
  ),
  'compares only the first letters of providers': unwrapping((good, wrapped, options) =>
    good(wrapped?.provider?.startsWith('acme') ? { ...wrapped, provider: 'acme' } : wrapped, options),
  ),

  // owns
  'owns only its own wraps': withMembers((good, setup) => {
    const made = new WeakSet<object>();
    const wrap = good.wrap.bind(good);
    return {
      wrap: async (dataKey: Uint8Array, options: Options) => {
        const one = await wrap(dataKey, options);
        made.add(one);
        return one;
      },
      owns: (wrapped: WrappedKey) => made.has(wrapped),
      unwrap: async (wrapped: WrappedKey, options: Options) => new AcmeWrapper(setup).unwrap(wrapped, options),
    };
  }),
  'returns 1 from owns': withMembers((good) => ({
    owns: (wrapped: WrappedKey) => (AcmeWrapper.prototype.owns.call(good, wrapped) ? 1 : 0),
  })),
  'throws in owns for other wrapped keys': withMembers((good) => ({
    owns: (wrapped: WrappedKey) => {
      if (wrapped.provider !== 'acme') throw new TypeError('not mine');
      return AcmeWrapper.prototype.owns.call(good, wrapped);
    },
    unwrap: async (wrapped: WrappedKey, options: Options) => {
      if (wrapped?.provider !== 'acme' && wrapped)
        throw new KeyWrapperError('corrupt', { provider: 'acme', operation: 'unwrap' });
      return AcmeWrapper.prototype.unwrap.call(good, wrapped, options);
    },
  })),

  // Endings
  ...Object.fromEntries(
    (['wrap', 'unwrap', 'generate', 'sign'] as const).flatMap((operation) => [
      [
        `ignores the signal of ${operation}`,
        forOne(operation, async (good, given) => {
          if (signalOf(given)?.aborted) throw new KeyWrapperError('unavailable', { provider: 'acme', operation });
          return good(...without(given));
        }),
      ],
      [
        `rejects an aborted ${operation} with the reason`,
        forOne(operation, async (good, given) => {
          const signal = signalOf(given);
          return good(...given).catch((error: unknown) => {
            throw signal?.aborted && signal.reason instanceof Error && signal.reason.name !== 'AbortError'
              ? signal.reason
              : error;
          });
        }),
      ],
      [
        `leaves a listener on the signal of ${operation}`,
        forOne(operation, async (good, given) => {
          signalOf(given)?.addEventListener('abort', () => undefined);
          return good(...given);
        }),
      ],
      [
        `reports an outage of ${operation} as throttled`,
        onError(operation, (error) =>
          error.kind === 'unavailable' ? new KeyWrapperError('throttled', error.summary) : error,
        ),
      ],
      [
        `reports an outage of ${operation} as timeout`,
        onError(operation, (error) =>
          error.kind === 'unavailable' ? new KeyWrapperError('timeout' as never, error.summary) : error,
        ),
      ],
      [
        `rejects ${operation} with the vendor’s error`,
        onError(operation, (error) => (error.kind === 'unavailable' ? new AcmeError('ECONNREFUSED') : error)),
      ],
      [
        `reports a denied ${operation} as an outage`,
        onError(operation, (error) =>
          error.kind === 'denied' ? new KeyWrapperError('unavailable', error.summary) : error,
        ),
      ],
      [
        `reports ${operation} with a disabled key as denied`,
        onError(operation, (error) =>
          error.kind === 'disabled' ? new KeyWrapperError('denied', error.summary) : error,
        ),
      ],
      [
        `rejects ${operation} with a text`,
        onError(operation, (error) => (error.kind === 'unavailable' ? 'unavailable' : error)),
      ],
      [
        `names an operation other than ${operation}`,
        onError(
          operation,
          (error) =>
            new KeyWrapperError(error.kind, {
              ...error.summary,
              operation: operation === 'unwrap' ? 'wrap' : 'unwrap',
            }),
        ),
      ],
      [
        `attaches the vendor’s error to that of ${operation}`,
        onError(operation, (error) => Object.assign(error, { cause: new AcmeError('KeyOff') })),
      ],
      [
        `is denied ${operation} after close`,
        withMembers((good) => {
          let isClosed = false;
          const own = (good[operation] as (...given: never[]) => Promise<unknown>).bind(good);
          return {
            [operation]: async (...given: never[]) => {
              if (isClosed) throw new KeyWrapperError('denied', { provider: 'acme', operation });
              return own(...given);
            },
            close: async () => {
              isClosed = true;
              await AcmeWrapper.prototype.close.call(good);
            },
          };
        }),
      ],
    ]),
  ),
  'joins concurrent calls with the signal of the first': keeping(
    () => new Map<string, Promise<Uint8Array>>(),
    async (flying, good, wrapped, options) => {
      if (!wrapped?.wrapped || !options?.context) return good(wrapped, options);
      const name = JSON.stringify([
        wrapped.provider,
        wrapped.keyId,
        hex(wrapped.wrapped),
        Object.entries(options.context),
      ]);
      if (options.signal?.aborted) return good(wrapped, options);
      const call = flying.get(name) ?? good(wrapped, options).finally(() => flying.delete(name));
      flying.set(name, call);
      return Uint8Array.from(await call);
    },
  ),
  'rejects again when the signal aborts afterwards': forOne('wrap', async (good, given) => {
    const made = await good(...given);
    signalOf(given)?.addEventListener('abort', () => void Promise.reject(new Error('late')));
    return made;
  }),
  'has a circuit breaker with its own error': keeping(
    () => ({ failed: 0 }),
    async (state, good, wrapped, options) => {
      if (state.failed > 0) throw new Error('circuit open');
      return good(wrapped, options).catch((error: unknown) => {
        if (error instanceof KeyWrapperError && error.kind === 'unavailable' && !options?.signal?.aborted)
          state.failed += 1;
        throw error;
      });
    },
  ),
  'waits forever after a first outage': keeping(
    () => ({ failed: 0 }),
    async (state, good, wrapped, options) => {
      if (state.failed > 0) return new Promise(() => undefined);
      return good(wrapped, options).catch((error: unknown) => {
        if (error instanceof KeyWrapperError && error.kind === 'unavailable' && !options?.signal) state.failed += 1;
        throw error;
      });
    },
  ),
  'closes the caller’s client': withMembers((good, { client }) => ({
    close: async () => {
      client.isOpen = false;
      setTimeout(() => (client.isOpen = true), 40);
      await AcmeWrapper.prototype.close.call(good);
    },
  })),
  'throws at a second close': withMembers((good) => {
    let closed = 0;
    return {
      close: async () => {
        if (closed++ > 0) throw new Error('closed');
        await AcmeWrapper.prototype.close.call(good);
      },
    };
  }),
  'returns nothing from close': withMembers((good) => ({
    close: () => void AcmeWrapper.prototype.close.call(good),
  })),
  'leaves the timer of a retry': forOne('wrap', async (good, given) => {
    const timer = setTimeout(() => undefined, 3_000);
    const made = await good(...given);
    clearTimeout(timer);
    return made;
  }),
  'keeps a connection alive after close': withMembers(() => {
    setTimeout(() => undefined, 3_000);
    return {};
  }),

  // Errors
  'attaches the request body as bytes': failing(
    (error, cause) =>
      void (
        secretOf(cause) && Object.assign(error, { body: Buffer.from(JSON.stringify({ Plaintext: secretOf(cause) })) })
      ),
  ),
  'attaches the request body in UTF-16': failing(
    (error, cause) => void (secretOf(cause) && Object.assign(error, { body: Buffer.from(secretOf(cause), 'utf16le') })),
  ),
  'attaches the request body in base64': failing(
    (error, cause) =>
      void (secretOf(cause) && Object.assign(error, { body: Buffer.from(secretOf(cause)).toString('base64') })),
  ),
  'shows the request body in its stack': failing(
    (error, cause) => void (secretOf(cause) && (error.stack = `${error.stack}\n    with ${secretOf(cause)}`)),
  ),
  'shows the request in JSON': failing(
    (error, cause) =>
      void (secretOf(cause) && Object.defineProperty(error, 'toJSON', { value: () => ({ body: secretOf(cause) }) })),
  ),
  'shows the request in inspect': failing(
    (error, cause) =>
      void (secretOf(cause) && Object.defineProperty(error, inspect.custom, { value: () => secretOf(cause) })),
  ),
  'attaches the request in nested lists': failing(
    (error, cause) =>
      void (secretOf(cause) && Object.assign(error, { trail: [[['wrap', Buffer.from(secretOf(cause), 'base64')]]] })),
  ),
  'attaches the request as a property of a function': failing(
    (error, cause) =>
      void (
        secretOf(cause) && Object.assign(error, { retry: Object.assign(() => undefined, { body: secretOf(cause) }) })
      ),
  ),
  'names its provider with a display name': failing(
    (error) => new KeyWrapperError(error.kind, { ...error.summary, provider: 'Acme Cloud' }),
  ),
  'rejects with an object': failing((error) => ({
    name: 'KeyWrapperError',
    kind: error.kind,
    message: error.message,
    summary: error.summary,
  })),
  'rejects with an AggregateError': failing((error) =>
    Object.assign(new AggregateError([error], 'all failed'), { kind: error.kind, summary: error.summary }),
  ),
  'shows a data key of the wrong length': checking((dataKey, good) => {
    try {
      good(dataKey as Uint8Array);
    } catch (error) {
      throw Object.assign(error as Error, { given: dataKey });
    }
  }),
  'shows a text argument': checking((dataKey, good) => {
    if (typeof dataKey === 'string') throw new TypeError(`not bytes: ${dataKey}`);
    good(dataKey as Uint8Array);
  }),

  // Output
  'writes requests to standard error': forOne('wrap', async (good, given) => {
    writeSync(
      2,
      Object(given[0]) instanceof Uint8Array ? `\u001b[8m${hex(given[0] as unknown as Uint8Array)}\u001b[0m\r` : '',
    );
    return good(...given);
  }),
  'logs generated data keys': withMembers((good) => {
    const generate = good.generate.bind(good);
    return {
      generate: async (options: Options) => {
        const made = await generate(options);
        console.debug({ dataKey: made.dataKey });
        return made;
      },
    };
  }),
  'logs failed requests': failing(
    (error, cause) => void (secretOf(cause) && console.debug(error.kind, Object(cause).request)),
  ),
  'keeps the last request in a member': withMembers((good) => {
    const wrap = good.wrap.bind(good);
    const state: { last?: unknown } = {};
    return {
      state,
      wrap: async (dataKey: Uint8Array, options: Options) => (
        (state.last = { body: Buffer.from(dataKey ?? []).toString('base64') }), wrap(dataKey, options)
      ),
    };
  }),
  'keeps the last generated key in a member': withMembers((good) => {
    const generate = good.generate.bind(good);
    const state: { last?: unknown } = {};
    return {
      state,
      generate: async (options: Options) => {
        const made = await generate(options);
        state.last = Uint8Array.from(made.dataKey);
        return made;
      },
    };
  }),

  // Arguments
  'accepts text of 32 characters': converting((given) =>
    typeof given === 'string' && given.length === 32 ? Buffer.from(given, 'latin1') : given,
  ),
  'accepts hexadecimal text': converting((given) =>
    typeof given === 'string' && /^[0-9a-f]{64}$/.test(given) ? Buffer.from(given, 'hex') : given,
  ),
  'accepts base64 text': converting((given) =>
    typeof given === 'string' && given.length === 44 ? Buffer.from(given, 'base64') : given,
  ),
  'accepts the JSON of a Buffer': converting((given) =>
    Object(given).type === 'Buffer' ? Buffer.from(Object(given).data) : given,
  ),
  'accepts 16-bit words': converting((given) => (given instanceof Uint16Array ? new Uint8Array(given.buffer) : given)),
  'accepts keys for AES-128': checking((dataKey, good) =>
    Object(dataKey).length === 16 && dataKey instanceof Uint8Array ? undefined : good(dataKey as Uint8Array),
  ),
  'accepts any multiple of eight bytes': checking((dataKey, good) =>
    dataKey instanceof Uint8Array && dataKey.length % 8 === 0 && dataKey.length > 32
      ? undefined
      : good(dataKey as Uint8Array),
  ),
  'pads short keys with zeros': converting((given) =>
    given instanceof Uint8Array && given.length > 0 && given.length < 32
      ? Uint8Array.of(...given, ...new Uint8Array(32 - given.length))
      : given,
  ),
  'truncates long keys': converting((given) =>
    given instanceof Uint8Array && given.length > 32 ? given.subarray(0, 32) : given,
  ),
  'refuses only zeros as constant keys': checking((dataKey, good) =>
    dataKey instanceof Uint8Array && dataKey.length === 32 && dataKey[0] !== 0
      ? undefined
      : good(dataKey as Uint8Array),
  ),
  'wraps without a context': forOne('wrap', async (good, [dataKey, options]) =>
    good(dataKey as never, (options === undefined ? { context: {} } : options) as never),
  ),
  'generates without a context argument': forOne('generate', async (good, [options]) =>
    good((Object(options).context ? options : { ...Object(options), context: {} }) as never),
  ),
  'signs text': forOne('sign', async (good, [entry, options]) =>
    good((typeof entry === 'string' ? Buffer.from(entry) : entry) as never, options as never),
  ),
  'unwraps base64 text': unwrapping((good, wrapped, options) =>
    good(
      typeof wrapped?.wrapped === 'string' ? { ...wrapped, wrapped: Buffer.from(wrapped.wrapped, 'base64') } : wrapped,
      options,
    ),
  ),
  'converts numbers in a context to text': forOne('wrap', async (good, [dataKey, options]) => {
    const { context } = Object(options);
    const isObject = typeof context === 'object' && context !== null;
    return good(
      dataKey as never,
      (isObject
        ? {
            ...Object(options),
            context: Object.fromEntries(Object.entries(context).map(([name, value]) => [name, String(value)])),
          }
        : options) as never,
    );
  }),
  'calls the service before checking the length': forOne('wrap', async (good, [dataKey, options], setup) => {
    if (dataKey && !setup.isUp) throw new KeyWrapperError('unavailable', { provider: 'acme', operation: 'wrap' });
    return good(dataKey as never, options as never);
  }),
  'throws synchronously for a wrong entry': withMembers((good) => ({
    sign(...given: Parameters<AcmeWrapper['sign']>) {
      if (!(given[0] instanceof Uint8Array)) throw new TypeError('entry');
      return AcmeWrapper.prototype.sign.apply(good, given);
    },
  })),

  // Signatures
  'signs at most 4 096 bytes': signing((entry) => entry.subarray(0, 4_096)),
  'signs at most 64 bytes': signing((entry) => entry.subarray(0, 64)),
  'signs an entry as text': signing((entry) => Buffer.from(Buffer.from(entry).toString('utf8'))),
  'signs a trimmed entry': signing((entry) => Buffer.from(Buffer.from(entry).toString('latin1').trim(), 'latin1')),
  'truncates an entry at a zero byte': signing((entry) =>
    entry.subarray(0, entry.includes(0) ? entry.indexOf(0) : undefined),
  ),
  'signs the JSON of an entry': signing((entry) => {
    try {
      return Buffer.from(JSON.stringify(JSON.parse(Buffer.from(entry).toString())));
    } catch {
      return entry;
    }
  }),
  'decodes hexadecimal entries': signing((entry) =>
    /^([0-9a-f]{2})+$/.test(Buffer.from(entry).toString('latin1'))
      ? Buffer.from(Buffer.from(entry).toString('latin1'), 'hex')
      : entry,
  ),
  'signs without leading zeros': signing((entry) =>
    entry.subarray(
      Math.max(
        0,
        entry.findIndex((byte) => byte !== 0),
      ),
    ),
  ),
  'returns a promise from verify': withMembers((good) => ({
    verify: async (...given: [Uint8Array, Uint8Array]) => AcmeWrapper.prototype.verify.apply(good, given),
  })),
  'throws for a signature of another length': withMembers((good) => ({
    verify(...given: [Uint8Array, Uint8Array]) {
      if (given[1].length !== 64) throw new RangeError('a signature has 64 bytes');
      return AcmeWrapper.prototype.verify.apply(good, given);
    },
  })),
  'checks only the first 64 bytes of a signature': withMembers((_, { acme }) => ({
    verify: (entry: Uint8Array, signature: Uint8Array) =>
      verify(null, entry, acme.signing.publicKey, signature.subarray(0, 64)),
  })),
  'mixes concurrently signed entries': withMembers((_, setup) => {
    let current: Uint8Array;
    const inner = new AcmeWrapper(setup);
    return {
      async sign(entry: Uint8Array, options?: { signal?: AbortSignal }) {
        if (!(entry instanceof Uint8Array)) throw new TypeError('entry');
        current = Uint8Array.from(entry);
        await inner.sign(Uint8Array.of(1), options);
        return Uint8Array.from(sign(null, current, setup.acme.signing.privateKey));
      },
    };
  }),

  // Control
  'returns one cached result while disabled': keeping(
    () => ({ known: new Map<string, Uint8Array>(), left: 0 }),
    async (state, good, wrapped, options) => {
      const name = JSON.stringify([wrapped?.provider, wrapped?.keyId, hex(wrapped?.wrapped ?? []), options?.context]);
      try {
        const opened = await good(wrapped, options);
        state.known.set(name, Uint8Array.from(opened));
        return opened;
      } catch (error) {
        const known = state.known.get(name);
        if (
          !(error instanceof KeyWrapperError) ||
          error.kind !== 'disabled' ||
          known === undefined ||
          state.left++ !== 1
        )
          throw error;
        return Uint8Array.from(known);
      }
    },
  ),
  'reports a repeated disabled as unavailable': keeping(
    () => ({ seen: 0 }),
    async (state, good, wrapped, options) =>
      good(wrapped, options).catch((error: unknown) => {
        if (error instanceof KeyWrapperError && error.kind === 'disabled' && state.seen++ > 0)
          throw new KeyWrapperError('unavailable', error.summary);
        throw error;
      }),
  ),
  'caches the disabled state for generate': withMembers((good) => {
    const generate = good.generate.bind(good);
    let off: unknown;
    return {
      generate: async (options: Options) => {
        if (off) throw off;
        return generate(options).catch((error: unknown) => {
          if (error instanceof KeyWrapperError && error.kind === 'disabled') off = error;
          throw error;
        });
      },
    };
  }),
  'supports only the last two versions': of(
    class extends AcmeWrapper {
      override async unwrap(wrapped: WrappedKey, options: Options): Promise<Uint8Array> {
        const version = Number(/#(\d+)$/.exec(wrapped?.keyId ?? '')?.[1] ?? 0);
        if (version > 0 && version < this.setup.acme.key(this.setup.name).versions.length - 1)
          throw this.fail('not-found', 'unwrap');
        return super.unwrap(wrapped, options);
      }
    },
  ),
  'supports only the versions from its start': of(
    class extends AcmeWrapper {
      readonly #count: number;
      constructor(setup: Setup) {
        super(setup);
        this.#count = setup.acme.key(setup.name).versions.length;
      }
      override async unwrap(wrapped: WrappedKey, options: Options): Promise<Uint8Array> {
        const version = Number(/#(\d+)$/.exec(wrapped?.keyId ?? '')?.[1] ?? 0);
        if (version > this.#count) throw this.fail('corrupt', 'unwrap');
        return super.unwrap(wrapped, options);
      }
    },
  ),
  'names the first version in generate': withMembers((good) => {
    const generate = good.generate.bind(good);
    return {
      generate: async (options: Options) => {
        const made = await generate(options);
        return { ...made, wrapped: { ...made.wrapped, keyId: `${good.keyId}#1` } };
      },
      unwrap: async (wrapped: WrappedKey, options: Options) => {
        const version = wrapped?.wrapped?.[1];
        const isFirst = wrapped?.keyId === `${good.keyId}#1`;
        return AcmeWrapper.prototype.unwrap.call(
          good,
          isFirst ? { ...wrapped, keyId: `${good.keyId}#${version}` } : wrapped,
          options,
        );
      },
    };
  }),

  // Facts, dates, secrets, concurrent calls
  'names its provider in capitals': withMembers(() => ({ provider: 'ACME' })),
  'loses supports after close': withMembers((good) => ({
    wrap: async (dataKey: Uint8Array, options: Options) => {
      const made = await AcmeWrapper.prototype.wrap.call(good, dataKey, options);
      good.supports = { context: true, authenticated: true };
      return made;
    },
  })),
  'reports the date in seconds': of(
    class extends AcmeWrapper {
      override tellDate(options: Options): void {
        options.onServiceDate?.(new Date(Date.now() / 1_000));
      }
    },
  ),
  'reports no date': of(
    class extends AcmeWrapper {
      override tellDate(options: Options): void {
        options.onServiceDate?.(new Date(Number.NaN));
      }
    },
  ),
  'includes the key in JSON': of(
    class extends AcmeWrapper {
      override encrypt(...given: Parameters<AcmeWrapper['encrypt']>): WrappedKey {
        const made = super.encrypt(...given);
        const body = JSON.stringify({
          c: Buffer.from(made.wrapped).toString('base64'),
          p: Buffer.from(given[1]).toString('base64'),
        });
        return { ...made, wrapped: Uint8Array.from(Buffer.from(body)) };
      }
      override read(wrapped: Uint8Array): Buffer {
        const { c, p } = JSON.parse(Buffer.from(wrapped).toString());
        const bytes = Buffer.from(c, 'base64');
        if (JSON.stringify({ c: bytes.toString('base64'), p }) !== Buffer.from(wrapped).toString())
          throw this.fail('corrupt', 'unwrap');
        return bytes;
      }
    },
  ),
  'derives its nonce from the clock': of(
    class extends AcmeWrapper {
      override encrypt(...[key, plaintext, context]: Parameters<AcmeWrapper['encrypt']>): WrappedKey {
        const nonce = Buffer.alloc(12, String(Math.floor(Date.now() / 10_000)));
        const bytes = this.setup.acme.encrypt(key, plaintext, context, nonce);
        return { provider: this.provider, keyId: this.nameOf(key.versions.length), wrapped: Uint8Array.from(bytes) };
      }
    },
  ),
  'shows the key in a hidden member of its record': withMembers((good) => {
    const wrap = good.wrap.bind(good);
    return {
      wrap: async (dataKey: Uint8Array, options: Options) =>
        Object.defineProperty(await wrap(dataKey, options), Symbol('key'), { value: Uint8Array.from(dataKey) }),
    };
  }),
  'mixes answers of concurrent calls': withMembers((good, setup) => {
    let last: Uint8Array | undefined;
    return {
      wrap: async (dataKey: Uint8Array, options: Options) => {
        if (dataKey instanceof Uint8Array && dataKey.length === 32) last = Uint8Array.from(dataKey);
        await AcmeWrapper.prototype.wrap.call(new AcmeWrapper(setup), dataKey, options);
        return AcmeWrapper.prototype.wrap.call(good, last ?? dataKey, options);
      },
    };
  }),
  'generates the same key for concurrent calls': withMembers((good) => {
    const generate = good.generate.bind(good);
    let flying: ReturnType<typeof generate> | undefined;
    return {
      generate: (options: Options) => {
        if (options?.signal || !options?.context) return generate(options);
        flying ??= generate(options).finally(() => (flying = undefined));
        return flying;
      },
    };
  }),
  'overwrites its results at close': withMembers((good) => {
    const [unwrap, close] = [good.unwrap.bind(good), good.close.bind(good)];
    const given: Uint8Array[] = [];
    return {
      unwrap: async (wrapped: WrappedKey, options: Options) => {
        const dataKey = await unwrap(wrapped, options);
        given.push(dataKey);
        return dataKey;
      },
      close: async () => {
        for (const dataKey of given) dataKey.fill(0);
        await close();
      },
    };
  }),
  'overwrites a refused data key': withMembers((good) => {
    const wrap = good.wrap.bind(good);
    return {
      wrap: async (dataKey: Uint8Array, options: Options) => {
        try {
          return await wrap(dataKey, options);
        } catch (error) {
          if (error instanceof TypeError) dataKey?.fill?.(0);
          throw error;
        }
      },
    };
  }),
  'refuses a data key with leading zeros': checking((dataKey, good) => {
    good(dataKey as Uint8Array);
    if ((dataKey as Uint8Array).subarray(0, 16).every((byte) => byte === 0)) throw new RangeError('empty');
  }),
  'loses more than sixteen concurrent calls': withMembers((good) => {
    const unwrap = good.unwrap.bind(good);
    let running = 0;
    return {
      unwrap: async (wrapped: WrappedKey, options: Options) => {
        running += 1;
        try {
          if (running > 16) throw good.fail('throttled', 'unwrap');
          return await unwrap(wrapped, options);
        } finally {
          running -= 1;
        }
      },
    };
  }),
  'binds lengths in one byte': of(
    class extends AcmeWrapper {
      override encode(entries: Entries): Buffer {
        const texts = sorted(entries).flat();
        return Buffer.concat(texts.flatMap((one) => [Buffer.of(Buffer.byteLength(one) & 0xff), Buffer.from(one)]));
      }
    },
  ),
  'omits the times of a context': encoding((entries) => entries.filter(([name]) => name !== 'sealring:times')),
  'folds line endings in a context': encoding((entries) =>
    entries.map(([name, value]) => [name, value.replaceAll('\r\n', '\n')]),
  ),
  'omits zero-width characters of a context': encoding((entries) =>
    entries.map(([name, value]) => [name, value.replaceAll(/[\u200b\u2060\ufeff]/g, '')]),
  ),
  'decrypts a format with version 255 without a tag': unwrapping(async (good, wrapped, options, { acme, name }) => {
    const [version] = wrapped?.wrapped ?? [];
    if (version !== 0xff) return good(wrapped, options);
    const secret = acme.key(name).versions[0] as Buffer;
    const opening = createDecipheriv('aes-256-gcm', secret, wrapped.wrapped.subarray(2, 14));
    return Uint8Array.from(opening.update(wrapped.wrapped.subarray(14, -16)));
  }),
  'treats 32 bytes as a plaintext data key': unwrapping(async (good, wrapped, options) =>
    wrapped?.wrapped?.length === 32 ? Uint8Array.from(wrapped.wrapped) : good(wrapped, options),
  ),
  'adds members to its JSON': formed(
    (bytes) => Buffer.from(JSON.stringify({ v: 1, c: hex(bytes) })),
    (bytes) => {
      try {
        const { c } = JSON.parse(Buffer.from(bytes).toString());
        return /^([0-9a-f]{2})+$/.test(c) ? Buffer.from(c, 'hex') : bytes;
      } catch {
        return bytes;
      }
    },
  ),
  'shows the data key reversed': withMembers((good) => {
    const [encrypt, read] = [good.encrypt.bind(good), good.read.bind(good)];
    return {
      encrypt: (...given: Parameters<AcmeWrapper['encrypt']>) => {
        const made = encrypt(...given);
        return { ...made, wrapped: Uint8Array.of(...given[1].toReversed(), ...made.wrapped) };
      },
      read: (wrapped: Uint8Array) => read(wrapped.subarray(32)),
    };
  }),
  'produces wraps that are too long for a ring': formed(
    (bytes) => Buffer.concat([bytes, Buffer.alloc(2_000)]),
    (bytes) => bytes.subarray(0, -2_000),
  ),
  'owns a wrap without a provider': withMembers((good) => {
    const owns = good.owns.bind(good);
    return {
      owns: (wrapped: WrappedKey) => owns(wrapped.provider === '' ? { ...wrapped, provider: 'acme' } : wrapped),
    };
  }),
  'looks up its provider in an object': withMembers((good) => {
    const table: Record<string, unknown> = { acme: true };
    return {
      owns: (wrapped: WrappedKey) => {
        const known = table[wrapped.provider];
        if (known !== undefined && known !== true) throw new TypeError('a wrong entry');
        return known === true && AcmeWrapper.prototype.owns.call(good, wrapped);
      },
    };
  }),
  'accepts its key in any line of a name': withMembers((good) => {
    const owns = good.owns.bind(good);
    const last = (wrapped: WrappedKey): WrappedKey => ({ ...wrapped, keyId: wrapped.keyId.split('\n').at(-1) ?? '' });
    const unwrap = good.unwrap.bind(good);
    return {
      owns: (wrapped: WrappedKey) => owns(last(wrapped)),
      unwrap: (wrapped: WrappedKey, options: Options) =>
        unwrap(typeof wrapped?.keyId === 'string' ? last(wrapped) : wrapped, options),
    };
  }),
  'accepts an ArrayBuffer as a data key': converting((given) =>
    given instanceof ArrayBuffer ? new Uint8Array(given) : given,
  ),
  'accepts base64 as wrapped bytes': unwrapping(async (good, wrapped, options) => {
    const given: unknown = wrapped?.wrapped;
    return good(typeof given === 'string' ? { ...wrapped, wrapped: Buffer.from(given, 'base64') } : wrapped, options);
  }),
  'unwraps without options': unwrapping((good, wrapped, options) => good(wrapped, options ?? { context: {} })),
  'requires a prototype of a context': withMembers((good) => {
    const contextOf = good.contextOf.bind(good);
    return {
      contextOf: (options: Options) => {
        if (typeof options?.context === 'object') options.context?.hasOwnProperty('sealring:ring');
        return contextOf(options);
      },
    };
  }),
  'prints the data key shortly after the call': withMembers((good) => {
    const wrap = good.wrap.bind(good);
    return {
      wrap: async (dataKey: Uint8Array, options: Options) => {
        const made = await wrap(dataKey, options);
        const shown = hex(dataKey);
        setTimeout(() => process.stderr.write(shown), 5);
        return made;
      },
    };
  }),
  'shows the data key in an error after close': withMembers((good) => {
    const wrap = good.wrap.bind(good);
    return {
      wrap: async (dataKey: Uint8Array, options: Options) => {
        try {
          return await wrap(dataKey, options);
        } catch (error) {
          throw good.isClosed ? Object.assign(error as Error, { body: hex(dataKey) }) : error;
        }
      },
    };
  }),
  'shows the data key percent-encoded': failing((error, cause) => {
    const bytes = [...Buffer.from(secretOf(cause), 'base64')];
    error.message += bytes.map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
  }),
  'ends calls of other instances at close': withMembers((good, { client }) => {
    const shared = client as { all?: Set<AcmeWrapper> };
    shared.all ??= new Set();
    shared.all.add(good);
    return {
      close: async () => {
        for (const one of shared.all ?? []) await AcmeWrapper.prototype.close.call(one);
        for (const one of shared.all ?? []) if (one !== good) one.isClosed = false;
      },
    };
  }),
  'generates bytes of seven bits': withMembers((good) => ({
    generate: async (options: Options) => {
      const dataKey = Uint8Array.from(randomBytes(32), (byte) => byte & 0x7f);
      return { dataKey, wrapped: await good.wrap(dataKey, options) };
    },
  })),
  'signs entries with folded line endings': signing((entry) =>
    Buffer.from(Buffer.from(entry).toString('latin1').replaceAll('\r\n', '\n'), 'latin1'),
  ),
  'overwrites a wrong signature': withMembers((good) => ({
    verify: (entry: Uint8Array, signature: Uint8Array) => {
      const isGood = AcmeWrapper.prototype.verify.call(good, entry, signature);
      if (!isGood) signature.fill(0);
      return isGood;
    },
  })),
  'verifies only while its key is enabled': withMembers((good, { acme, name }) => ({
    verify: (entry: Uint8Array, signature: Uint8Array) =>
      acme.key(name).state === 'on' && AcmeWrapper.prototype.verify.call(good, entry, signature),
  })),
  'owns only the newest version': withMembers((good, { acme, name }) => {
    const owns = good.owns.bind(good);
    const isNewest = ({ keyId }: WrappedKey): boolean => keyId === good.nameOf(acme.key(name).versions.length);
    return {
      owns: (wrapped: WrappedKey) => owns(wrapped) && isNewest(wrapped),
      unwrap: (wrapped: WrappedKey, options: Options) =>
        AcmeWrapper.prototype.unwrap.call(Object.assign(Object.create(good), { owns }), wrapped, options),
    };
  }),

  // Neighbours of the above
  'returns eight buffers in turn': unwrapping(
    (() => {
      const buffers = Array.from({ length: 8 }, () => new Uint8Array(32));
      let next = 0;
      return async (good, wrapped, options) => {
        const buffer = buffers[next++ % buffers.length] as Uint8Array;
        buffer.set(await good(wrapped, options));
        return buffer;
      };
    })(),
  ),
  'replaces CR LF with LF': giving((plaintext) =>
    Uint8Array.from(Buffer.from(plaintext.toString('latin1').replaceAll('\r\n', '\n'), 'latin1')),
  ),
  'reads the version after the wrap': withMembers((good, { acme, name }) => {
    const wrap = good.wrap.bind(good);
    return {
      wrap: async (dataKey: Uint8Array, options: Options) => {
        const made = await wrap(dataKey, options);
        await pause(3);
        return { ...made, keyId: good.nameOf(acme.key(name).versions.length) };
      },
    };
  }),
  'shares one result between contexts': keeping(
    () => new Map<string, Promise<Uint8Array>>(),
    async (flying, good, wrapped, options) => {
      if (options?.signal || !wrapped?.wrapped) return good(wrapped, options);
      const name = [wrapped.provider, wrapped.keyId, Buffer.from(wrapped.wrapped).toString('hex')].join(' ');
      const call = flying.get(name) ?? good(wrapped, options).finally(() => flying.delete(name));
      flying.set(name, call);
      return Uint8Array.from(await call);
    },
  ),
  'escapes separators, but not the escape character': encoding((entries) =>
    entries.map((entry) => entry.map((text) => text.replaceAll(/[=,]/g, String.raw`\$&`)).join('=')).join(','),
  ),
  'treats yes as true': encoding((entries) => entries.map(([name, value]) => [name, value === 'yes' ? 'true' : value])),
  'replaces colons in names with dots': encoding((entries) =>
    entries.map(([name, value]) => [name.replaceAll(':', '.'), value]),
  ),
  'encodes a context as in URLs': encoding((entries) =>
    entries.map((entry) => entry.map((text) => encodeURIComponent(text)).join('=')).join('&'),
  ),
  'adds a member to a mutable context': withMembers((good) => {
    const wrap = good.wrap.bind(good);
    return {
      wrap: async (dataKey: Uint8Array, options: Options) => {
        if (options?.context && Object.isExtensible(options.context))
          Object.assign(options.context, { 'acme:by': 'x' });
        return wrap(dataKey, options);
      },
    };
  }),
  'ignores the highest bit of the second byte': reading((wrapped) =>
    wrapped.map((byte, at) => (at === 1 ? byte & 0x7f : byte)),
  ),
  'caches by the sum of the bytes': keeping(
    () => new Map<string, Uint8Array>(),
    async (cache, good, wrapped, options) => {
      const sum = wrapped?.wrapped?.reduce?.((total: number, byte: number) => total + byte, 0);
      const name = JSON.stringify([wrapped?.provider, wrapped?.keyId, wrapped?.wrapped?.length, sum, options?.context]);
      const plaintext = cache.get(name) ?? (await good(wrapped, options));
      cache.set(name, Uint8Array.from(plaintext));
      return Uint8Array.from(plaintext);
    },
  ),
  'reads a version as a number': unwrapping(async (good, wrapped, options) =>
    good(
      typeof wrapped?.keyId === 'string'
        ? { ...wrapped, keyId: wrapped.keyId.replace(/#(.*)$/, (_, version) => `#${Number(version)}`) }
        : wrapped,
      options,
    ),
  ),
  'owns nothing after a refusal': withMembers((good) => {
    const [unwrap, owns] = [good.unwrap.bind(good), good.owns.bind(good)];
    let isGood = true;
    return {
      unwrap: async (wrapped: WrappedKey, options: Options) => {
        good.owns = owns;
        try {
          return await unwrap(wrapped, options);
        } catch (error) {
          isGood = false;
          throw error;
        } finally {
          good.owns = (one) => isGood && owns(one);
        }
      },
    };
  }),
  'resolves a wrap to null while the key is disabled': withMembers((good, { acme, name }) => {
    const wrap = good.wrap.bind(good);
    return {
      wrap: async (dataKey: Uint8Array, options: Options) =>
        wrap(dataKey, options).catch((error: unknown) => {
          if (acme.key(name).state === 'off' && !options?.signal?.aborted) return null;
          throw error;
        }),
    };
  }),
  'throws synchronously for another provider': withMembers((good) => {
    const unwrap = good.unwrap.bind(good);
    return {
      unwrap: (wrapped: WrappedKey, options: Options) => {
        if (typeof wrapped?.provider === 'string' && wrapped.provider !== good.provider)
          throw good.fail('corrupt', 'unwrap');
        return unwrap(wrapped, options);
      },
    };
  }),
  'ends an aborted call only at its answer': withMembers((good) => {
    const unwrap = good.unwrap.bind(good);
    return {
      unwrap: async (wrapped: WrappedKey, options: Options) => {
        const signal = options?.signal;
        if (!signal || signal.aborted) return unwrap(wrapped, options);
        const [outcome] = await Promise.allSettled([unwrap(wrapped, { context: options.context }), pause(20)]);
        if (signal.aborted) throw good.fail('unavailable', 'unwrap');
        if (outcome.status === 'rejected') throw outcome.reason;
        return outcome.value;
      },
    };
  }),
  'rejects with an abort reason of its class': withMembers((good) => {
    const unwrap = good.unwrap.bind(good);
    return {
      unwrap: (wrapped: WrappedKey, options: Options) =>
        unwrap(wrapped, options).catch((error: unknown) => {
          throw options?.signal?.reason instanceof KeyWrapperError ? options.signal.reason : error;
        }),
    };
  }),
  'shows a data key as a number': failing((error, cause) => {
    const digits = hex(Buffer.from(secretOf(cause), 'base64'));
    if (digits !== '') Object.assign(error, { serial: BigInt(`0x${digits}`).toString() });
  }),
  'puts the data key into the environment': withMembers((good) => {
    const wrap = good.wrap.bind(good);
    return {
      wrap: (dataKey: Uint8Array, options: Options) => {
        process.env['ACME_KEY'] = Buffer.from(dataKey ?? []).toString('base64');
        return wrap(dataKey, options);
      },
    };
  }),
  'accepts an empty signature of an empty entry': withMembers((good) => ({
    verify: (entry: Uint8Array, signature: Uint8Array) =>
      entry.length + signature.length === 0 || AcmeWrapper.prototype.verify.call(good, entry, signature),
  })),
  'does not close after a failure': withMembers((good) => {
    const [unwrap, close] = [good.unwrap.bind(good), good.close.bind(good)];
    let hasFailed = false;
    return {
      unwrap: (wrapped: WrappedKey, options: Options) =>
        unwrap(wrapped, options).catch((error: unknown) => {
          hasFailed = true;
          throw error;
        }),
      close: () => (hasFailed ? new Promise<void>(() => undefined) : close()),
    };
  }),
  'looks at the signal only in its first attempt': retrying(
    (ordinal, signal) => (ordinal === 0 ? signal : undefined),
    (ms) => pause(ms),
  ),
  'ignores an abort in the pauses between attempts': retrying(
    (_, signal) => signal,
    (ms) => pause(ms),
  ),
  'rejects with AbortError from a pause between attempts': retrying(
    (_, signal) => signal,
    (ms, signal) => pause(ms, undefined, signal ? { signal } : {}),
  ),
  'ignores an abort in the second of two requests': of(
    class extends AcmeWrapper {
      override async ask<T>(...[operation, signal, ...given]: Parameters<AcmeWrapper['ask']>): Promise<T> {
        await super.ask(operation, signal, () => pause(20));
        await super.ask(operation, undefined, () => pause(20));
        return super.ask(operation, undefined, ...given) as Promise<T>;
      }
    },
  ),
  'owns names that match the own name as a pattern': owning((name, own) =>
    new RegExp(`^${own.replaceAll('/', '.')}$`).test(name),
  ),
  'owns names that end with the own name': owning((name, own) => name.endsWith(own)),
  'owns names that the own name starts with': owning((name, own) => name !== '' && own.startsWith(name)),
  'owns its name in any letter case, but unwraps it in one only': owning((name, own) => name.toLowerCase() === own),
  'owns names with the own name on any line': owning((name, own) => new RegExp(`^${own}$`, 'm').test(name)),
  'owns names with white space, but does not unwrap them': owning((name, own) => name.trim() === own),
  'sets onabort': withMembers((good) => {
    const wrap = good.wrap.bind(good);
    return {
      wrap: (dataKey: Uint8Array, options: Options) => {
        if (options?.signal) Reflect.set(options.signal, 'onabort', () => undefined);
        return wrap(dataKey, options);
      },
    };
  }),
  'keeps unwrapped keys in sixteen slots': of(
    class extends AcmeWrapper {
      readonly #slots = new Uint8Array(16 * 32);
      #next = 0;
      override give(plaintext: Buffer): Uint8Array {
        const slot = this.#slots.subarray(this.#next, this.#next + 32);
        this.#next = (this.#next + 32) % this.#slots.length;
        slot.set(plaintext);
        return slot;
      }
    },
  ),
  'numbers its requests in one byte': of(
    class extends AcmeWrapper {
      readonly #waiting = new Map<number, (value: unknown) => void>();
      #next = 0;
      override async ask<T>(...given: Parameters<AcmeWrapper['ask']>): Promise<T> {
        const id = this.#next++ & 0xff;
        const answered = new Promise<unknown>((resolve, reject) => {
          this.#waiting.set(id, resolve);
          super.ask(...given).then((value) => this.#waiting.get(id)?.(value), reject);
        });
        return (await answered) as T;
      }
    },
  ),
  'stops after five aborted calls': of(
    class extends AcmeWrapper {
      #aborted = 0;
      override async ask<T>(...[operation, signal, ...given]: Parameters<AcmeWrapper['ask']>): Promise<T> {
        if (this.#aborted >= 5) throw this.fail('unavailable', operation);
        try {
          return (await super.ask(operation, signal, ...given)) as T;
        } finally {
          if (signal?.aborted) this.#aborted += 1;
        }
      }
    },
  ),
  'stops after five wrong arguments': of(
    class extends AcmeWrapper {
      #wrong = 0;
      override checkDataKey(dataKey: Uint8Array): void {
        if (this.#wrong >= 5) throw this.fail('unavailable', 'wrap');
        try {
          super.checkDataKey(dataKey);
        } catch (error) {
          this.#wrong += 1;
          throw error;
        }
      }
    },
  ),
  'ignores its signal while it waits for its turn': of(
    class extends AcmeWrapper {
      readonly #turns: Promise<unknown>[] = [0, 1, 2, 3].map(() => Promise.resolve());
      #next = 0;
      override async ask<T>(...[operation, signal, run, secret]: Parameters<AcmeWrapper['ask']>): Promise<T> {
        const turn = this.#next++ % this.#turns.length;
        const own = async (): Promise<unknown> => {
          await pause(5);
          return super.ask(operation, signal, run, secret);
        };
        const answer = (this.#turns[turn] as Promise<unknown>).then(own);
        this.#turns[turn] = answer.catch(() => undefined);
        return (await answer) as T;
      }
    },
  ),
  'passes the reason of AbortSignal.timeout on': withMembers((good) => {
    const unwrap = good.unwrap.bind(good);
    return {
      unwrap: (wrapped: WrappedKey, options: Options) =>
        unwrap(wrapped, options).catch((error: unknown) => {
          throw Object(options?.signal?.reason).name === 'TimeoutError' ? options.signal?.reason : error;
        }),
    };
  }),
  'does not notice an abort whose reason is null': of(
    class extends AcmeWrapper {
      override ask<T>(...[operation, signal, ...given]: Parameters<AcmeWrapper['ask']>): Promise<T> {
        const controller = new AbortController();
        const look = (): void => {
          if (signal?.reason) controller.abort();
        };
        look();
        signal?.addEventListener('abort', look, { once: true });
        const left = (): void => signal?.removeEventListener('abort', look);
        return super.ask<T>(operation, controller.signal, ...(given as [() => T])).finally(left);
      }
    },
  ),
  'has one listener for all calls of a signal': of(
    class extends AcmeWrapper {
      override ask<T>(...[operation, signal, ...given]: Parameters<AcmeWrapper['ask']>): Promise<T> {
        const controller = new AbortController();
        if (signal?.aborted) controller.abort();
        // oxlint-disable-next-line unicorn/prefer-add-event-listener -- that is the fault
        if (signal) signal.onabort = () => controller.abort();
        const left = (): void => {
          // oxlint-disable-next-line unicorn/prefer-add-event-listener
          if (signal) signal.onabort = null;
        };
        const waiting = super.ask(operation, controller.signal, () => pause(20));
        return waiting.then(() => super.ask<T>(operation, controller.signal, ...(given as [() => T]))).finally(left);
      }
    },
  ),
  'remembers a context by its object': of(
    class extends AcmeWrapper {
      readonly #known = new WeakMap<object, Buffer>();
      override contextOf(options: Options): Buffer {
        const known = this.#known.get(Object(options?.context)) ?? super.contextOf(options);
        this.#known.set(options.context, known);
        return known;
      }
    },
  ),
  'sorts the names of a context by locale': of(
    class extends AcmeWrapper {
      override encode(entries: Entries): Buffer {
        return Buffer.from(JSON.stringify(entries.toSorted(([a], [b]) => a.localeCompare(b))));
      }
    },
  ),
  'encodes sixteen bits of each character of a context': encoding((entries) =>
    entries.map((entry) => entry.map((one) => Array.from(one, (char) => (char.codePointAt(0) ?? 0) & 0xff_ff))),
  ),
  'reads a version as 32 bits': unwrapping((good, wrapped, options) =>
    good({ ...wrapped, keyId: wrapped?.keyId?.replace(/\d+$/, (digits) => String(Number(digits) | 0)) }, options),
  ),
  'names the last version in the order of texts': of(
    class extends AcmeWrapper {
      override encrypt(...[key, ...given]: Parameters<AcmeWrapper['encrypt']>): WrappedKey {
        const [last = 1] = key.versions.map((_, i) => String(i + 1)).toSorted((a, b) => (a < b ? 1 : -1));
        return super.encrypt({ ...key, versions: key.versions.slice(0, Number(last)) }, ...given);
      }
    },
  ),
  'owns names of members that every object has': owning((name, own) => name in { [own]: true }),
  'copies a data key with slice': withMembers((good) => {
    const wrap = good.wrap.bind(good);
    return {
      wrap: async (dataKey: Uint8Array, options: Options) => {
        const copy = dataKey?.slice?.();
        await pause(1);
        return wrap(copy, options);
      },
    };
  }),
} satisfies Record<string, MakeAcme>;
