/* Unusual correct adapters, which differ in everything that the contract leaves open. */
import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { type KeyWrapper, KeyWrapperError, type WrapOptions, type WrappedKey } from '@sealring/core';
import type { KeyWrapperTarget } from '../../src/index.ts';
import { AcmeWrapper, acmeTarget, type MakeAcme, type Operation } from './acme.ts';

type Class = new (...given: ConstructorParameters<typeof AcmeWrapper>) => KeyWrapper;
const of =
  (Made: Class): MakeAcme =>
  (setup) =>
    new Made(setup);
const plain: MakeAcme = (setup) => new AcmeWrapper(setup);

/** All members, bound to the adapter, for an object of any kind. */
function membersOf(good: KeyWrapper): Record<string, unknown> {
  const names = ['wrap', 'unwrap', 'generate', 'sign', 'verify', 'owns', 'close'] as const;
  const calls = names.map((name) => [name, (good[name] as (...given: never[]) => unknown).bind(good)] as const);
  return { provider: good.provider, keyId: good.keyId, supports: good.supports, ...Object.fromEntries(calls) };
}

/** Wrapped keys in another canonical form. */
const formed = (write: (bytes: Uint8Array) => Uint8Array, read: (bytes: Buffer) => Buffer): MakeAcme =>
  of(
    class extends AcmeWrapper {
      override encrypt(...given: Parameters<AcmeWrapper['encrypt']>): WrappedKey {
        const made = super.encrypt(...given);
        return { ...made, wrapped: Uint8Array.from(write(made.wrapped)) };
      }
      override read(wrapped: Uint8Array): Buffer {
        try {
          const bytes = read(Buffer.from(wrapped));
          if (Buffer.from(write(bytes)).equals(wrapped)) return bytes;
        } catch {
          // Another form.
        }
        throw this.fail('corrupt', 'unwrap');
      }
    },
  );

/** Another copy of the class, as in a package that is installed twice. */
class ForeignError extends Error {
  override readonly name = 'KeyWrapperError';
  readonly kind: string;
  readonly summary: object;
  constructor(kind: string, summary: object) {
    super(kind);
    this.kind = kind;
    Object.defineProperty(this, Symbol.for('@sealring/core/error'), { value: 'ERR_KEY_WRAPPER' });
    this.summary = summary;
  }
}

export const ACME_SOUND: readonly KeyWrapperTarget[] = [
  acmeTarget('a class with private fields', plain),
  acmeTarget('a service with 3 ms latency', plain, {}, () => 3),
  acmeTarget('a service whose latency varies', plain, {}, () => Math.floor(Math.random() * 12)),
  acmeTarget('a frozen object', (setup) => Object.freeze(membersOf(new AcmeWrapper(setup)))),
  acmeTarget('an object without a prototype', (setup) =>
    Object.assign(Object.create(null), membersOf(new AcmeWrapper(setup))),
  ),
  acmeTarget(
    'a proxy',
    (setup) =>
      new Proxy(membersOf(new AcmeWrapper(setup)), { get: (holder, name) => Reflect.get(holder, name) as unknown }),
  ),
  acmeTarget('facts that getters create each time', (setup) => {
    const good = new AcmeWrapper(setup);
    return Object.defineProperties(membersOf(good), {
      supports: { get: () => ({ ...good.supports }), enumerable: true },
    });
  }),
  acmeTarget(
    'text that starts with a version',
    formed(
      (bytes) => Buffer.from(`acme:v1:${Buffer.from(bytes).toString('base64')}`),
      (text) => Buffer.from(text.toString('latin1').slice(8), 'base64'),
    ),
  ),
  acmeTarget(
    'JSON as wrapped key',
    formed(
      (bytes) => Buffer.from(JSON.stringify({ v: 1, c: Buffer.from(bytes).toString('hex') })),
      (text) => Buffer.from(JSON.parse(text.toString('utf8')).c, 'hex'),
    ),
  ),
  acmeTarget(
    'a checksum around its wrapped keys',
    formed(
      (bytes) => Buffer.concat([bytes, Buffer.of(bytes.reduce((sum, byte) => (sum + byte) & 0xff, 0))]),
      (bytes) => bytes.subarray(0, -1),
    ),
  ),
  acmeTarget(
    'wrapped keys of the maximum length',
    formed(
      (bytes) => Buffer.concat([bytes, Buffer.alloc(1_900, bytes.at(-1))]),
      (bytes) => bytes.subarray(0, -1_900),
    ),
  ),
  acmeTarget(
    'wrapped keys of a class with getters',
    of(
      class extends AcmeWrapper {
        override encrypt(...given: Parameters<AcmeWrapper['encrypt']>): WrappedKey {
          const made = super.encrypt(...given);
          return Object.create(made) as WrappedKey;
        }
      },
    ),
  ),
  acmeTarget(
    'pooled Buffers as results',
    of(
      class extends AcmeWrapper {
        override give(plaintext: Buffer): Uint8Array {
          return Buffer.from(plaintext);
        }
      },
    ),
  ),
  acmeTarget(
    'generate by means of wrap',
    of(
      class extends AcmeWrapper {
        override async generate(options: WrapOptions) {
          const dataKey = Uint8Array.from(randomBytes(32));
          return { dataKey, wrapped: await this.wrap(dataKey, options) };
        }
      },
    ),
  ),
  acmeTarget(
    'its own copy of the error class',
    of(
      class extends AcmeWrapper {
        override fail(kind: KeyWrapperError['kind'], operation: Operation): Error {
          return new ForeignError(kind, { provider: this.provider, operation });
        }
        override translate(error: unknown, operation: Operation): Error {
          return error instanceof ForeignError ? error : super.translate(error, operation);
        }
      },
    ),
  ),
  acmeTarget(
    'a subclass of the error with more members',
    of(
      class extends AcmeWrapper {
        override fail(kind: KeyWrapperError['kind'], operation: Operation): Error {
          const summary = {
            provider: this.provider,
            operation,
            status: 400,
            requestId: 'a1b2',
            attempts: 3,
            hint: 'see the console',
          };
          return new (class AcmeFailure extends KeyWrapperError {})(kind, summary);
        }
      },
    ),
  ),
  acmeTarget(
    'an error that names its attempts',
    of(
      class extends AcmeWrapper {
        override fail(kind: KeyWrapperError['kind'], operation: Operation): Error {
          const summary = { provider: this.provider, operation };
          return new KeyWrapperError(kind, { ...summary, causes: [new KeyWrapperError(kind, summary)] });
        }
      },
    ),
  ),
  acmeTarget(
    'retries after a pause',
    of(
      class extends AcmeWrapper {
        override async ask<T>(...given: Parameters<AcmeWrapper['ask']>): Promise<T> {
          try {
            return (await super.ask(...given)) as T;
          } catch (error) {
            const [, signal] = given;
            if (!(error instanceof KeyWrapperError) || error.kind !== 'unavailable' || signal?.aborted || this.isClosed)
              throw error;
            await pause(5, undefined, signal ? { signal } : {}).catch(() => undefined);
            return (await super.ask(...given)) as T;
          }
        }
      },
    ),
  ),
  acmeTarget(
    'retries after longer and longer pauses, until an abort',
    of(
      class extends AcmeWrapper {
        override async ask<T>(...given: Parameters<AcmeWrapper['ask']>): Promise<T> {
          const [operation, signal] = given;
          for (const ms of [10, 25, 50]) {
            try {
              return (await super.ask(...given)) as T;
            } catch (error) {
              if (!(error instanceof KeyWrapperError) || error.kind !== 'unavailable' || this.isClosed) throw error;
            }
            await pause(ms, undefined, signal ? { signal } : {}).catch(() => {
              throw this.fail('unavailable', operation);
            });
          }
          return (await super.ask(...given)) as T;
        }
      },
    ),
  ),
  acmeTarget('one request for equal concurrent calls', (setup) => {
    const good = new AcmeWrapper(setup);
    const flying = new Map<string, Promise<Uint8Array>>();
    const unwrap = async (wrapped: WrappedKey, options: WrapOptions): Promise<Uint8Array> => {
      if (options?.signal !== undefined || wrapped?.wrapped === undefined || options?.context === undefined)
        return good.unwrap(wrapped, options);
      const name = JSON.stringify([
        wrapped.provider,
        wrapped.keyId,
        Buffer.from(wrapped.wrapped).toString('hex'),
        Object.entries(options.context),
      ]);
      const call = flying.get(name) ?? good.unwrap(wrapped, options).finally(() => flying.delete(name));
      flying.set(name, call);
      return Uint8Array.from(await call);
    };
    return { ...membersOf(good), unwrap };
  }),
  acmeTarget('one call at a time', (setup) => {
    const good = membersOf(new AcmeWrapper(setup));
    let last: Promise<unknown> = Promise.resolve();
    const queued = (name: string) => [
      name,
      async (...given: readonly unknown[]) => {
        const call = good[name] as (...all: readonly unknown[]) => Promise<unknown>;
        const copies = given.map((one) => (one instanceof Uint8Array ? Uint8Array.from(one) : one));
        if (Object(given.at(-1)).signal !== undefined) return call(...copies);
        const mine = last.then(() => call(...copies));
        last = mine.catch(() => undefined);
        return mine;
      },
    ];
    return { ...good, ...Object.fromEntries(['wrap', 'unwrap', 'generate', 'sign'].map(queued)) };
  }),
  acmeTarget(
    'no optional members',
    (setup) => {
      const { provider, keyId, supports, wrap, unwrap } = membersOf(new AcmeWrapper(setup));
      return { provider, keyId, supports, wrap, unwrap };
    },
    { control: {} },
  ),
  acmeTarget(
    'a call before it refuses a context',
    of(
      class extends AcmeWrapper {
        override contextOf(options: WrapOptions): Buffer {
          const context = super.contextOf(options);
          if (context.length > 1_500)
            throw new KeyWrapperError('denied', { provider: this.provider, operation: 'wrap' });
          return context;
        }
      },
    ),
  ),
  acmeTarget(
    'a clock one hour off',
    of(
      class extends AcmeWrapper {
        override tellDate(options: WrapOptions): void {
          options.onServiceDate?.(new Date(Date.now() + 3_600_000));
        }
      },
    ),
  ),
  acmeTarget('a provider of one digit', (setup) => Object.assign(new AcmeWrapper(setup), { provider: '0' })),
];
