/* Adapters with one mistake each, written from the contract of `KeyWrapper` alone. */
import { createDecipheriv, randomBytes, sign, verify } from 'node:crypto';
import { writeSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { inspect } from 'node:util';
import { KeyWrapperError, type WrapOptions, type WrappedKey } from '@sealring/core';
import { AcmeError, AcmeWrapper, type MakeAcme, type Operation, type Setup } from './acme.ts';

type Options = WrapOptions;
type Entries = readonly (readonly [string, string])[];
type Constructor = new (setup: Setup) => AcmeWrapper;

/** An adapter of a class of its own. */
const of =
  (Class: Constructor): MakeAcme =>
  (setup) =>
    new Class(setup);
/** A good adapter with other members. */
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
/** Wraps bytes made of whatever it was given. */
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
/** Wrapped keys in another form. */
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
/** Unwraps with something that it keeps for its instance. */
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
const onError = (operation: Operation, change: (error: KeyWrapperError, given: never[]) => unknown): MakeAcme =>
  forOne(operation, async (good, given) => {
    try {
      return await good(...given);
    } catch (error) {
      if (!(error instanceof KeyWrapperError)) throw error;
      throw change(error, given) ?? error;
    }
  });

/** Every adapter, by what its author did. */
export const ACME_BROKEN: Readonly<Record<string, MakeAcme>> = {
  // Bytes
  'takes the plaintext for ASCII': giving((plaintext) => Buffer.from(plaintext.toString('ascii'), 'latin1')),
  'strips a newline at the end of the plaintext': giving((plaintext) =>
    plaintext.at(-1) === 0x0a ? plaintext.subarray(0, -1) : plaintext,
  ),
  'decodes a plaintext that reads as hex': giving((plaintext) =>
    /^[0-9a-f]{32}$/.test(plaintext.toString('latin1')) ? Buffer.from(plaintext.toString('latin1'), 'hex') : plaintext,
  ),
  'decodes a plaintext that reads as base64': giving((plaintext) =>
    /^[A-Za-z0-9+/_-]{32}$/.test(plaintext.toString('latin1'))
      ? Buffer.from(plaintext.toString('latin1'), 'base64')
      : plaintext,
  ),
  'keeps the data key as a number': giving((plaintext) =>
    Buffer.from(
      BigInt(`0x${hex(plaintext)}`)
        .toString(16)
        .padStart(2, '0'),
      'hex',
    ),
  ),
  'skips a byte order mark': giving((plaintext) =>
    plaintext.subarray(0, 3).equals(Buffer.of(0xef, 0xbb, 0xbf)) ? plaintext.subarray(3) : plaintext,
  ),
  'ends a plaintext at its first zero byte': giving((plaintext) =>
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
  'gives two callers at once the same bytes': keeping(
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
  'hands out the generated key that it caches': withMembers((good) => {
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
  'overwrites what it unwraps': unwrapping(async (good, wrapped, options) => {
    const opened = await good(wrapped, options);
    wrapped.wrapped.fill(0);
    return opened;
  }),
  'overwrites the entry it has signed': forOne('sign', async (good, given) => {
    const signature = await good(...given);
    (given[0] as unknown as Uint8Array).fill(0);
    return signature;
  }),
  'turns a signature round where it lies': withMembers((good) => ({
    verify: (entry: Uint8Array, signature: Uint8Array) => {
      const isGood = AcmeWrapper.prototype.verify.call(good, entry, signature);
      signature.reverse();
      return isGood;
    },
  })),
  'adds the key to the caller’s context': forOne('wrap', async (good, given) => {
    if (Object(Object(given[1]).context) === Object(given[1]).context)
      Object.assign((given[1] as unknown as Options).context, { key: 'x' });
    return good(...given);
  }),
  'reads an entry when its turn has come': withMembers((_, setup) => ({
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
  'leaves out names of its own prefix': encoding((entries) => entries.filter(([name]) => !name.startsWith('aws:'))),
  'copies a context by assignment': encoding((entries) => {
    const copy: Record<string, string> = {};
    for (const [name, value] of entries) copy[name] = value;
    return copy;
  }),
  'binds ten members': encoding((entries) => entries.slice(0, 10)),
  'reads numbers in a context': encoding((entries) =>
    entries.map(([name, value]) => [name, /^\d+(\.\d+)?$/.test(value) ? Number(value) : value]),
  ),
  'leaves out empty values': encoding((entries) => entries.filter(([, value]) => value !== '')),
  'composes accents': encoding((entries) => entries.map(([name, value]) => [name, value.normalize('NFC')])),
  'composes accents in names only': encoding((entries) =>
    entries.map(([name, value]) => [name.normalize('NFC'), value]),
  ),
  'keeps a context as Latin-1': of(
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
  'cuts values at 256 characters': encoding((entries) => entries.map(([name, value]) => [name, value.slice(0, 256)])),
  'binds the length of long values': encoding((entries) =>
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
  'unwraps what was wrapped under no context, whatever the context': of(
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
  'looks at half of the first byte': reading((wrapped) => wrapped.map((byte, i) => (i === 0 ? byte & 0x0f : byte))),
  'reads a length in front and nothing behind it': formed(
    (bytes) => Uint8Array.of(bytes.length, ...bytes),
    (bytes) => bytes.subarray(1, 1 + (bytes[0] ?? 0)),
  ),
  'ignores two flags in its head': formed(
    (bytes) => Uint8Array.of(7, 0, ...bytes),
    (bytes) => bytes.subarray(2),
  ),
  'decodes base64 loosely': formed(
    (bytes) => Buffer.from(Buffer.from(bytes).toString('base64')),
    (bytes) => Buffer.from(Buffer.from(bytes).toString('latin1'), 'base64'),
  ),
  'does not look at the version in its text': formed(
    (bytes) => Buffer.from(`acme:v1:${hex(bytes)}`),
    (bytes) => {
      const text = Buffer.from(bytes).toString('latin1');
      if (!/^acme:v\d:[0-9a-f]+$/.test(text))
        throw new KeyWrapperError('corrupt', { provider: 'acme', operation: 'unwrap' });
      return Buffer.from(text.slice(8), 'hex');
    },
  ),
  'reads hex in either case': formed(
    (bytes) => Buffer.from(hex(bytes)),
    (bytes) => {
      const text = Buffer.from(bytes).toString('latin1');
      if (!/^[0-9a-fA-F]*$/.test(text) || text.length % 2 === 1)
        throw new KeyWrapperError('corrupt', { provider: 'acme', operation: 'unwrap' });
      return Buffer.from(text, 'hex');
    },
  ),
  'skips spaces around its text': formed(
    (bytes) => Buffer.from(hex(bytes)),
    (bytes) => {
      const text = Buffer.from(bytes).toString('latin1').trim();
      if (!/^[0-9a-f]*$/.test(text) || text.length % 2 === 1)
        throw new KeyWrapperError('corrupt', { provider: 'acme', operation: 'unwrap' });
      return Buffer.from(text, 'hex');
    },
  ),
  'calls short bytes an outage': unwrapping(async (good, wrapped, options) => {
    if (wrapped?.wrapped?.length < 20)
      throw new KeyWrapperError('unavailable', { provider: 'acme', operation: 'unwrap' });
    return good(wrapped, options);
  }),
  'calls a changed head a key that is gone': unwrapping(async (good, wrapped, options) =>
    good(wrapped, options).catch((error: unknown) => {
      if (error instanceof KeyWrapperError && error.kind === 'corrupt' && wrapped.wrapped[0] !== 1)
        throw new KeyWrapperError('not-found', { provider: 'acme', operation: 'unwrap' });
      throw error;
    }),
  ),
  'answers changed bytes with random ones': unwrapping(async (good, wrapped, options) =>
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
  'takes a wrapped key without a provider': unwrapping((good, wrapped, options) =>
    good(wrapped?.provider === undefined && wrapped ? { ...wrapped, provider: 'acme' } : wrapped, options),
  ),
  'takes a wrapped key without a KMS key': unwrapping((good, wrapped, options) =>
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
  'compares the first letters of providers': unwrapping((good, wrapped, options) =>
    good(wrapped?.provider?.startsWith('acme') ? { ...wrapped, provider: 'acme' } : wrapped, options),
  ),

  // owns
  'owns what it made itself': withMembers((good, setup) => {
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
  'says 1 for owned': withMembers((good) => ({
    owns: (wrapped: WrappedKey) => (AcmeWrapper.prototype.owns.call(good, wrapped) ? 1 : 0),
  })),
  'throws for what it does not own': withMembers((good) => ({
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
        `does not pass on the signal of ${operation}`,
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
        `calls an outage of ${operation} a throttle`,
        onError(operation, (error) =>
          error.kind === 'unavailable' ? new KeyWrapperError('throttled', error.summary) : error,
        ),
      ],
      [
        `calls an outage of ${operation} a timeout`,
        onError(operation, (error) =>
          error.kind === 'unavailable' ? new KeyWrapperError('timeout' as never, error.summary) : error,
        ),
      ],
      [
        `lets the vendor’s error out of ${operation}`,
        onError(operation, (error) => (error.kind === 'unavailable' ? new AcmeError('ECONNREFUSED') : error)),
      ],
      [
        `calls a denied ${operation} an outage`,
        onError(operation, (error) =>
          error.kind === 'denied' ? new KeyWrapperError('unavailable', error.summary) : error,
        ),
      ],
      [
        `calls a disabled ${operation} denied`,
        onError(operation, (error) =>
          error.kind === 'disabled' ? new KeyWrapperError('denied', error.summary) : error,
        ),
      ],
      [
        `throws text out of ${operation}`,
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
        `does not let go of ${operation} when closed`,
        withMembers((good, setup) => {
          let isClosed = false;
          const own = (good[operation] as (...given: never[]) => Promise<unknown>).bind(good);
          return {
            [operation]: async (...given: never[]) => {
              if (isClosed)
                return (new AcmeWrapper(setup)[operation] as (...all: never[]) => Promise<unknown>)(...given);
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
  'shares a call under way, and the signal of the first': keeping(
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
  'trips a breaker with an error of its own': keeping(
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
  'closes the client that it was given': withMembers((good, { client }) => ({
    close: async () => {
      client.isOpen = false;
      setTimeout(() => (client.isOpen = true), 40);
      await AcmeWrapper.prototype.close.call(good);
    },
  })),
  'throws when it is closed twice': withMembers((good) => {
    let closed = 0;
    return {
      close: async () => {
        if (closed++ > 0) throw new Error('closed');
        await AcmeWrapper.prototype.close.call(good);
      },
    };
  }),
  'closes at once, and returns nothing': withMembers((good) => ({
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
  'keeps the body of a request as bytes': failing(
    (error, cause) =>
      void (
        secretOf(cause) && Object.assign(error, { body: Buffer.from(JSON.stringify({ Plaintext: secretOf(cause) })) })
      ),
  ),
  'keeps the body of a request in UTF-16': failing(
    (error, cause) => void (secretOf(cause) && Object.assign(error, { body: Buffer.from(secretOf(cause), 'utf16le') })),
  ),
  'puts the body into base64 once more': failing(
    (error, cause) =>
      void (secretOf(cause) && Object.assign(error, { body: Buffer.from(secretOf(cause)).toString('base64') })),
  ),
  'puts the body into its stack': failing(
    (error, cause) => void (secretOf(cause) && (error.stack = `${error.stack}\n    with ${secretOf(cause)}`)),
  ),
  'shows the request to JSON': failing(
    (error, cause) =>
      void (secretOf(cause) && Object.defineProperty(error, 'toJSON', { value: () => ({ body: secretOf(cause) }) })),
  ),
  'shows the request to inspect': failing(
    (error, cause) =>
      void (secretOf(cause) && Object.defineProperty(error, inspect.custom, { value: () => secretOf(cause) })),
  ),
  'keeps the request in a list of lists': failing(
    (error, cause) =>
      void (secretOf(cause) && Object.assign(error, { trail: [[['wrap', Buffer.from(secretOf(cause), 'base64')]]] })),
  ),
  'keeps the request in a closure’s property': failing(
    (error, cause) =>
      void (
        secretOf(cause) && Object.assign(error, { retry: Object.assign(() => undefined, { body: secretOf(cause) }) })
      ),
  ),
  'names its provider for people': failing(
    (error) => new KeyWrapperError(error.kind, { ...error.summary, provider: 'Acme Cloud' }),
  ),
  'rejects with an object': failing((error) => ({
    name: 'KeyWrapperError',
    kind: error.kind,
    message: error.message,
    summary: error.summary,
  })),
  'collects its errors': failing((error) =>
    Object.assign(new AggregateError([error], 'all failed'), { kind: error.kind, summary: error.summary }),
  ),
  'says the data key where it has the wrong length': checking((dataKey, good) => {
    try {
      good(dataKey as Uint8Array);
    } catch (error) {
      throw Object.assign(error as Error, { given: dataKey });
    }
  }),
  'says the text that it was given': checking((dataKey, good) => {
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
  'logs what it generated': withMembers((good) => {
    const generate = good.generate.bind(good);
    return {
      generate: async (options: Options) => {
        const made = await generate(options);
        console.debug({ dataKey: made.dataKey });
        return made;
      },
    };
  }),
  'logs what failed': failing(
    (error, cause) => void (secretOf(cause) && console.debug(error.kind, Object(cause).request)),
  ),
  'keeps the last request in sight': withMembers((good) => {
    const wrap = good.wrap.bind(good);
    const state: { last?: unknown } = {};
    return {
      state,
      wrap: async (dataKey: Uint8Array, options: Options) => (
        (state.last = { body: Buffer.from(dataKey ?? []).toString('base64') }), wrap(dataKey, options)
      ),
    };
  }),
  'keeps the last generated key in sight': withMembers((good) => {
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
  'takes text of 32 characters': converting((given) =>
    typeof given === 'string' && given.length === 32 ? Buffer.from(given, 'latin1') : given,
  ),
  'takes hexadecimal text': converting((given) =>
    typeof given === 'string' && /^[0-9a-f]{64}$/.test(given) ? Buffer.from(given, 'hex') : given,
  ),
  'takes base64 text': converting((given) =>
    typeof given === 'string' && given.length === 44 ? Buffer.from(given, 'base64') : given,
  ),
  'takes the JSON of a Buffer': converting((given) =>
    Object(given).type === 'Buffer' ? Buffer.from(Object(given).data) : given,
  ),
  'takes 16-bit words': converting((given) => (given instanceof Uint16Array ? new Uint8Array(given.buffer) : given)),
  'takes keys for AES-128': checking((dataKey, good) =>
    Object(dataKey).length === 16 && dataKey instanceof Uint8Array ? undefined : good(dataKey as Uint8Array),
  ),
  'takes any multiple of eight bytes': checking((dataKey, good) =>
    dataKey instanceof Uint8Array && dataKey.length % 8 === 0 && dataKey.length > 32
      ? undefined
      : good(dataKey as Uint8Array),
  ),
  'fills short keys with zeros': converting((given) =>
    given instanceof Uint8Array && given.length > 0 && given.length < 32
      ? Uint8Array.of(...given, ...new Uint8Array(32 - given.length))
      : given,
  ),
  'cuts long keys': converting((given) =>
    given instanceof Uint8Array && given.length > 32 ? given.subarray(0, 32) : given,
  ),
  'looks for zeros only': checking((dataKey, good) =>
    dataKey instanceof Uint8Array && dataKey.length === 32 && dataKey[0] !== 0
      ? undefined
      : good(dataKey as Uint8Array),
  ),
  'wraps under no context where none was given': forOne('wrap', async (good, [dataKey, options]) =>
    good(dataKey as never, (options === undefined ? { context: {} } : options) as never),
  ),
  'generates under no context where none was given': forOne('generate', async (good, [options]) =>
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
  'writes numbers in a context as text': forOne('wrap', async (good, [dataKey, options]) => {
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
  'asks before it looks at the length': forOne('wrap', async (good, [dataKey, options], setup) => {
    if (dataKey && !setup.isUp) throw new KeyWrapperError('unavailable', { provider: 'acme', operation: 'wrap' });
    return good(dataKey as never, options as never);
  }),
  'throws at once for a wrong entry': withMembers((good) => ({
    sign(...given: Parameters<AcmeWrapper['sign']>) {
      if (!(given[0] instanceof Uint8Array)) throw new TypeError('entry');
      return AcmeWrapper.prototype.sign.apply(good, given);
    },
  })),

  // Signatures
  'signs 4 096 bytes at most': signing((entry) => entry.subarray(0, 4_096)),
  'signs 64 bytes at most': signing((entry) => entry.subarray(0, 64)),
  'signs an entry as text': signing((entry) => Buffer.from(Buffer.from(entry).toString('utf8'))),
  'signs a trimmed entry': signing((entry) => Buffer.from(Buffer.from(entry).toString('latin1').trim(), 'latin1')),
  'signs an entry up to a zero byte': signing((entry) =>
    entry.subarray(0, entry.includes(0) ? entry.indexOf(0) : undefined),
  ),
  'signs the JSON of an entry': signing((entry) => {
    try {
      return Buffer.from(JSON.stringify(JSON.parse(Buffer.from(entry).toString())));
    } catch {
      return entry;
    }
  }),
  'signs what hexadecimal text stands for': signing((entry) =>
    /^([0-9a-f]{2})+$/.test(Buffer.from(entry).toString('latin1'))
      ? Buffer.from(Buffer.from(entry).toString('latin1'), 'hex')
      : entry,
  ),
  'signs without zeros in front': signing((entry) =>
    entry.subarray(
      Math.max(
        0,
        entry.findIndex((byte) => byte !== 0),
      ),
    ),
  ),
  'verifies in a promise': withMembers((good) => ({
    verify: async (...given: [Uint8Array, Uint8Array]) => AcmeWrapper.prototype.verify.apply(good, given),
  })),
  'throws for a signature of another length': withMembers((good) => ({
    verify(...given: [Uint8Array, Uint8Array]) {
      if (given[1].length !== 64) throw new RangeError('a signature has 64 bytes');
      return AcmeWrapper.prototype.verify.apply(good, given);
    },
  })),
  'looks at the first 64 bytes of a signature': withMembers((_, { acme }) => ({
    verify: (entry: Uint8Array, signature: Uint8Array) =>
      verify(null, entry, acme.signing.publicKey, signature.subarray(0, 64)),
  })),
  'mixes entries that are signed at once': withMembers((_, setup) => {
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
  'answers once more from memory while disabled': keeping(
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
  'says unavailable when it was disabled before': keeping(
    () => ({ seen: 0 }),
    async (state, good, wrapped, options) =>
      good(wrapped, options).catch((error: unknown) => {
        if (error instanceof KeyWrapperError && error.kind === 'disabled' && state.seen++ > 0)
          throw new KeyWrapperError('unavailable', error.summary);
        throw error;
      }),
  ),
  'remembers for its generate that the key was disabled': withMembers((good) => {
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
  'knows the last two versions': of(
    class extends AcmeWrapper {
      override async unwrap(wrapped: WrappedKey, options: Options): Promise<Uint8Array> {
        const version = Number(/#(\d+)$/.exec(wrapped?.keyId ?? '')?.[1] ?? 0);
        if (version > 0 && version < this.setup.acme.key(this.setup.name).versions.length - 1)
          throw this.fail('not-found', 'unwrap');
        return super.unwrap(wrapped, options);
      }
    },
  ),
  'knows the versions there were when it started': of(
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
  'names the first version of what it generates': withMembers((good) => {
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

  // Facts, dates, secrets, calls at once
  'names its provider in capitals': withMembers(() => ({ provider: 'ACME' })),
  'forgets what it supports once it is closed': withMembers((good) => ({
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
  'carries the key along in JSON': of(
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
  'takes its nonce from the clock': of(
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
  'mixes answers of calls at once': withMembers((good, setup) => {
    let last: Uint8Array | undefined;
    return {
      wrap: async (dataKey: Uint8Array, options: Options) => {
        if (dataKey instanceof Uint8Array && dataKey.length === 32) last = Uint8Array.from(dataKey);
        await AcmeWrapper.prototype.wrap.call(new AcmeWrapper(setup), dataKey, options);
        return AcmeWrapper.prototype.wrap.call(good, last ?? dataKey, options);
      },
    };
  }),
  'generates the same key for calls at once': withMembers((good) => {
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
  'overwrites what it gave when it is closed': withMembers((good) => {
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
  'overwrites a data key that it refuses': withMembers((good) => {
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
  'takes a data key that begins with zeros for an empty one': checking((dataKey, good) => {
    good(dataKey as Uint8Array);
    if ((dataKey as Uint8Array).subarray(0, 16).every((byte) => byte === 0)) throw new RangeError('empty');
  }),
  'loses calls beyond sixteen at once': withMembers((good) => {
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
  'leaves out the times of a context': encoding((entries) => entries.filter(([name]) => name !== 'sealring:times')),
  'folds line endings in a context': encoding((entries) =>
    entries.map(([name, value]) => [name, value.replaceAll('\r\n', '\n')]),
  ),
  'leaves out what takes no room in a context': encoding((entries) =>
    entries.map(([name, value]) => [name, value.replaceAll(/[\u200b\u2060\ufeff]/g, '')]),
  ),
  'opens a form of version 255 without its tag': unwrapping(async (good, wrapped, options, { acme, name }) => {
    const [version] = wrapped?.wrapped ?? [];
    if (version !== 0xff) return good(wrapped, options);
    const secret = acme.key(name).versions[0] as Buffer;
    const opening = createDecipheriv('aes-256-gcm', secret, wrapped.wrapped.subarray(2, 14));
    return Uint8Array.from(opening.update(wrapped.wrapped.subarray(14, -16)));
  }),
  'takes 32 bytes for a data key of before there was a KMS': unwrapping(async (good, wrapped, options) =>
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
  'shows the data key turned round': withMembers((good) => {
    const [encrypt, read] = [good.encrypt.bind(good), good.read.bind(good)];
    return {
      encrypt: (...given: Parameters<AcmeWrapper['encrypt']>) => {
        const made = encrypt(...given);
        return { ...made, wrapped: Uint8Array.of(...given[1].toReversed(), ...made.wrapped) };
      },
      read: (wrapped: Uint8Array) => read(wrapped.subarray(32)),
    };
  }),
  'makes wraps that no ring stores': formed(
    (bytes) => Buffer.concat([bytes, Buffer.alloc(2_000)]),
    (bytes) => bytes.subarray(0, -2_000),
  ),
  'takes a wrap without a provider for its own': withMembers((good) => {
    const owns = good.owns.bind(good);
    return {
      owns: (wrapped: WrappedKey) => owns(wrapped.provider === '' ? { ...wrapped, provider: 'acme' } : wrapped),
    };
  }),
  'finds its provider in a table': withMembers((good) => {
    const table: Record<string, unknown> = { acme: true };
    return {
      owns: (wrapped: WrappedKey) => {
        const known = table[wrapped.provider];
        if (known !== undefined && known !== true) throw new TypeError('a wrong entry');
        return known === true && AcmeWrapper.prototype.owns.call(good, wrapped);
      },
    };
  }),
  'looks for its key in any line of a name': withMembers((good) => {
    const owns = good.owns.bind(good);
    const last = (wrapped: WrappedKey): WrappedKey => ({ ...wrapped, keyId: wrapped.keyId.split('\n').at(-1) ?? '' });
    const unwrap = good.unwrap.bind(good);
    return {
      owns: (wrapped: WrappedKey) => owns(last(wrapped)),
      unwrap: (wrapped: WrappedKey, options: Options) =>
        unwrap(typeof wrapped?.keyId === 'string' ? last(wrapped) : wrapped, options),
    };
  }),
  'takes an ArrayBuffer for a data key': converting((given) =>
    given instanceof ArrayBuffer ? new Uint8Array(given) : given,
  ),
  'takes base64 for wrapped bytes': unwrapping(async (good, wrapped, options) => {
    const given: unknown = wrapped?.wrapped;
    return good(typeof given === 'string' ? { ...wrapped, wrapped: Buffer.from(given, 'base64') } : wrapped, options);
  }),
  'unwraps without options': unwrapping((good, wrapped, options) => good(wrapped, options ?? { context: {} })),
  'needs a prototype of a context': withMembers((good) => {
    const contextOf = good.contextOf.bind(good);
    return {
      contextOf: (options: Options) => {
        if (typeof options?.context === 'object') options.context?.hasOwnProperty('sealring:ring');
        return contextOf(options);
      },
    };
  }),
  'prints the data key a moment later': withMembers((good) => {
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
  'ends calls of others when it is closed': withMembers((good, { client }) => {
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
  'overwrites a signature that is wrong': withMembers((good) => ({
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
  'owns the newest version only': withMembers((good, { acme, name }) => {
    const owns = good.owns.bind(good);
    const isNewest = ({ keyId }: WrappedKey): boolean => keyId === good.nameOf(acme.key(name).versions.length);
    return {
      owns: (wrapped: WrappedKey) => owns(wrapped) && isNewest(wrapped),
      unwrap: (wrapped: WrappedKey, options: Options) =>
        AcmeWrapper.prototype.unwrap.call(Object.assign(Object.create(good), { owns }), wrapped, options),
    };
  }),

  // Neighbours of the above
  'hands out eight buffers in turn': unwrapping(
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
  'ends lines with LF only': giving((plaintext) =>
    Uint8Array.from(Buffer.from(plaintext.toString('latin1').replaceAll('\r\n', '\n'), 'latin1')),
  ),
  'looks up the version when it has wrapped': withMembers((good, { acme, name }) => {
    const wrap = good.wrap.bind(good);
    return {
      wrap: async (dataKey: Uint8Array, options: Options) => {
        const made = await wrap(dataKey, options);
        await pause(3);
        return { ...made, keyId: good.nameOf(acme.key(name).versions.length) };
      },
    };
  }),
  'shares one answer between contexts': keeping(
    () => new Map<string, Promise<Uint8Array>>(),
    async (flying, good, wrapped, options) => {
      if (options?.signal || !wrapped?.wrapped) return good(wrapped, options);
      const name = [wrapped.provider, wrapped.keyId, Buffer.from(wrapped.wrapped).toString('hex')].join(' ');
      const call = flying.get(name) ?? good(wrapped, options).finally(() => flying.delete(name));
      flying.set(name, call);
      return Uint8Array.from(await call);
    },
  ),
  'escapes separators, and not the escape': encoding((entries) =>
    entries.map((entry) => entry.map((text) => text.replaceAll(/[=,]/g, String.raw`\$&`)).join('=')).join(','),
  ),
  'takes yes for true': encoding((entries) => entries.map(([name, value]) => [name, value === 'yes' ? 'true' : value])),
  'takes a colon in a name for a dot': encoding((entries) =>
    entries.map(([name, value]) => [name.replaceAll(':', '.'), value]),
  ),
  'encodes a context for a URL': encoding((entries) =>
    entries.map((entry) => entry.map((text) => encodeURIComponent(text)).join('=')).join('&'),
  ),
  'adds a member to a context that can be changed': withMembers((good) => {
    const wrap = good.wrap.bind(good);
    return {
      wrap: async (dataKey: Uint8Array, options: Options) => {
        if (options?.context && Object.isExtensible(options.context))
          Object.assign(options.context, { 'acme:by': 'x' });
        return wrap(dataKey, options);
      },
    };
  }),
  'does not look at the highest bit of its second byte': reading((wrapped) =>
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
  'wraps nothing while its key is off': withMembers((good, { acme, name }) => {
    const wrap = good.wrap.bind(good);
    return {
      wrap: async (dataKey: Uint8Array, options: Options) =>
        wrap(dataKey, options).catch((error: unknown) => {
          if (acme.key(name).state === 'off' && !options?.signal?.aborted) return null;
          throw error;
        }),
    };
  }),
  'refuses another provider at once': withMembers((good) => {
    const unwrap = good.unwrap.bind(good);
    return {
      unwrap: (wrapped: WrappedKey, options: Options) => {
        if (typeof wrapped?.provider === 'string' && wrapped.provider !== good.provider)
          throw good.fail('corrupt', 'unwrap');
        return unwrap(wrapped, options);
      },
    };
  }),
  'ends an aborted call when it is answered': withMembers((good) => {
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
  'rejects with a reason of its own class': withMembers((good) => {
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
  'hands the data key to its children': withMembers((good) => {
    const wrap = good.wrap.bind(good);
    return {
      wrap: (dataKey: Uint8Array, options: Options) => {
        process.env['ACME_KEY'] = Buffer.from(dataKey ?? []).toString('base64');
        return wrap(dataKey, options);
      },
    };
  }),
  'verifies nothing signed by nobody': withMembers((good) => ({
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
  'sets onabort': withMembers((good) => {
    const wrap = good.wrap.bind(good);
    return {
      wrap: (dataKey: Uint8Array, options: Options) => {
        if (options?.signal) Reflect.set(options.signal, 'onabort', () => undefined);
        return wrap(dataKey, options);
      },
    };
  }),
} satisfies Record<string, MakeAcme>;
