import { createDecipheriv, createHash, generateKeyPairSync, randomBytes, randomUUID, sign } from 'node:crypto';
import { writeSync } from 'node:fs';
import { inspect, types } from 'node:util';
import type { KeyWrapper, KeyWrapperErrorKind, WrapOptions, WrappedKey } from '@sealring/core';
import type { KeyWrapperTarget } from '../../src/index.ts';
import {
  asText,
  GOOD_MEMORY,
  KEY_WRAP,
  type Make,
  PROVIDER,
  PUBLIC_KEY,
  remembering,
  SOUND,
  type Steps,
  sealWith,
  signing,
  soundKeyWrapper,
  type Whole,
  type World,
  ZooKeyWrapperError,
  zooTarget,
} from './zoo-key-wrapper.ts';
import type { ZooKeyVersion } from './zoo-kms.ts';

/** A key wrapper with one fault, and the requirement that must catch it. */
export interface BrokenKeyWrapper {
  readonly target: KeyWrapperTarget;
  readonly caughtBy: string;
  /** Other requirements that the same fault breaks; absent if it breaks nearly all. */
  readonly also?: readonly string[];
  /** Whether one of its calls never ends. */
  readonly hangs?: true;
}

type Rest = Pick<BrokenKeyWrapper, 'also' | 'hangs'>;

/** Exactly one requirement detects it. */
const ALONE: Rest = { also: [] };
const NEARLY_ALL: Rest = {};

function and(...also: readonly string[]): Rest {
  return { also };
}

function hanging(...also: readonly string[]): Rest {
  return { also, hangs: true };
}

function made(name: string, caughtBy: string, make: Make, rest: Rest = ALONE): BrokenKeyWrapper {
  return { target: zooTarget(name, make), caughtBy, ...rest };
}

/** A key wrapper with one wrong step. */
function broken(name: string, caughtBy: string, steps: Partial<Steps>, rest: Rest = ALONE): BrokenKeyWrapper {
  return made(name, caughtBy, soundKeyWrapper(steps), rest);
}

/** Instances share a client, which a second close of one of them takes from the others. */
function countingCloses(): Make {
  const worlds = new Set<World>();
  const sound = soundKeyWrapper();
  return (world) => {
    worlds.add(world);
    return changed(sound(world), world, () => ({
      async close() {
        if (world.isClosed) for (const one of worlds) one.isClosed = true;
        world.isClosed = true;
      },
    }));
  };
}

function lowerCase(wrapped: WrappedKey): WrappedKey {
  return { ...wrapped, keyId: wrapped.keyId.toLowerCase() };
}

/** A sound key wrapper inside a broken wrapper. */
function around(
  name: string,
  caughtBy: string,
  change: (sound: Whole, world: World) => object,
  rest: Rest = ALONE,
): BrokenKeyWrapper {
  const make = soundKeyWrapper();
  return made(name, caughtBy, (world) => changed(make(world), world, change), rest);
}

function changed<Sound extends object>(
  sound: Sound,
  world: World,
  change: (sound: Sound, world: World) => object,
): KeyWrapper {
  return { ...sound, ...change(sound, world) } as unknown as KeyWrapper;
}

/** A key wrapper with signatures and one fault in them. */
function signer(
  name: string,
  caughtBy: string,
  change: (sound: Required<KeyWrapper>, world: World) => object,
  rest: Rest = ALONE,
): BrokenKeyWrapper {
  const signs = signing();
  const make = soundKeyWrapper(PUBLIC_KEY);
  return made(
    name,
    caughtBy,
    (world) => changed(signs(make(world), world) as Required<KeyWrapper>, world, change),
    rest,
  );
}

/** The key that an instance selected last. */
const session: { version?: ZooKeyVersion } = {};

/** KMS keys whose shared connections were closed. */
const closedPools = new WeakSet<object>();

const byName = ([a]: readonly [string, string], [b]: readonly [string, string]): number => (a < b ? -1 : 1);
const wellFormed = (pair: readonly string[]): readonly [string, string] => {
  const [name = '', value = ''] = pair.map((text) => text.toWellFormed());
  return [name, value];
};
const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const never = (): Promise<never> => new Promise(() => undefined);

/** Binds a context as joined text. */
function binding(
  name: string,
  caughtBy: string,
  textOf: (entries: readonly (readonly [string, string])[]) => string,
  rest: Rest = ALONE,
): BrokenKeyWrapper {
  return broken(
    name,
    caughtBy,
    { bind: (context, keyId) => Buffer.from(`${keyId} ${textOf(Object.entries(context).toSorted(byName))}`) },
    rest,
  );
}

/** Returns other bytes for some data keys. Without generate, since random data keys rarely show the fault. */
function giving(name: string, give: (plaintext: Buffer) => Buffer, rest: Rest = ALONE): BrokenKeyWrapper {
  const make = soundKeyWrapper({ give: (plaintext) => Uint8Array.from(give(plaintext)) });
  return made(
    name,
    'WRAP-ROUNDTRIP',
    (world) => {
      const { generate: _, ...others } = make(world);
      return others;
    },
    rest,
  );
}

/** Generates its own data keys. */
function generating(name: string, dataKeyOf: (ordinal: number) => Uint8Array): BrokenKeyWrapper {
  return around(name, 'WRAP-GENERATE', (sound) => {
    let ordinal = 0;
    return {
      async generate(options: WrapOptions) {
        SOUND.checkOptions(options);
        const dataKey = dataKeyOf(ordinal++);
        return { dataKey, wrapped: await sound.wrap(dataKey, options) };
      },
    };
  });
}

/** Encrypts with repeated nonces. */
function repeating(name: string, nonceOf: (bound: Buffer) => Buffer, change = (steps: Steps): Partial<Steps> => steps) {
  const seal: Steps['seal'] = (version, plaintext, bound) => sealWith(nonceOf(bound), version, plaintext, bound);
  return broken(name, 'WRAP-CONFIDENTIAL', change({ ...SOUND, seal }));
}

/** Reports a wrong service date. */
function telling(name: string, tell: () => unknown): BrokenKeyWrapper {
  return around(name, 'WRAP-OPTIONS', (sound) => ({
    async unwrap(wrapped: WrappedKey, options: WrapOptions) {
      const plaintext = await sound.unwrap(wrapped, options);
      options.onServiceDate?.(tell() as Date);
      return plaintext;
    },
  }));
}

function changeSummary(error: Error, change: object): void {
  Object.defineProperty(error, 'summary', { value: { ...Object(Reflect.get(error, 'summary')), ...change } });
}

/** Fails with an error that shows too much. */
function failing(
  name: string,
  caughtBy: string,
  show: (error: ZooKeyWrapperError, secret: Uint8Array) => void,
  rest: Rest = ALONE,
): BrokenKeyWrapper {
  const steps: Partial<Steps> = {
    fail(kind, operation, secret) {
      const error = new ZooKeyWrapperError(kind, operation);
      if (secret !== undefined) show(error, secret);
      return error;
    },
  };
  return broken(name, caughtBy, steps, rest);
}

/** Replaces one error kind by another. */
function misnaming(
  name: string,
  caughtBy: string,
  [from, to]: readonly [KeyWrapperErrorKind, KeyWrapperErrorKind],
  rest: Rest = ALONE,
): BrokenKeyWrapper {
  const fail: Steps['fail'] = (kind, operation) => new ZooKeyWrapperError(kind === from ? to : kind, operation);
  return broken(name, caughtBy, { fail }, rest);
}

/** A key wrapper that never works again after one refusal. */
function unforgiving(name: string, caughtBy: string, state: 'disabled' | 'denied'): BrokenKeyWrapper {
  const refused = new WeakSet<World>();
  return broken(name, caughtBy, {
    async ask(world, operation, signal, fail) {
      if (refused.has(world)) throw fail(state, operation);
      if (world.key.state === state) refused.add(world);
      await SOUND.ask(world, operation, signal, fail);
    },
  });
}

/** Checks only the available part of the tag, or ignores bytes after it. */
function lax(cut: (bytes: Buffer) => Buffer): Partial<Steps> {
  return {
    open(version, bytes, bound) {
      const [nonce, body, tag] = [bytes.subarray(0, 12), bytes.subarray(12, 44), cut(bytes.subarray(44))];
      const decipher = createDecipheriv('aes-256-gcm', version.secret, nonce, { authTagLength: tag.length });
      decipher.setAAD(bound).setAuthTag(tag);
      return Buffer.concat([decipher.update(body), decipher.final()]);
    },
  };
}

/** Remembers what it has bound, and uses that for all versions but the newest. */
function lenientOfEarlier(): Make {
  const bounds = new Map<string, Buffer>();
  return (world) =>
    soundKeyWrapper({
      seal(version, plaintext, bound) {
        const sealed = SOUND.seal(version, plaintext, bound);
        bounds.set(hexOf(sealed), bound);
        return sealed;
      },
      open(version, bytes, bound) {
        const isNewest = version.id === world.key.current.id;
        return SOUND.open(version, bytes, isNewest ? bound : (bounds.get(hexOf(bytes)) ?? bound));
      },
    })(world);
}

const openAny = (versions: readonly ZooKeyVersion[], bytes: Buffer, bound: Buffer): Buffer => {
  for (const version of versions) {
    try {
      return SOUND.open(version, bytes, bound);
    } catch {
      // Try the next version.
    }
  }
  throw new Error('none');
};

/** Key wrappers with one fault each. */
export const BROKEN_KEY_WRAPPERS: readonly BrokenKeyWrapper[] = [
  around('names no KMS key', 'WRAP-FACTS', () => ({ keyId: '' })),
  around(
    'does not declare whether it is authenticated',
    'WRAP-FACTS',
    () => ({ supports: { context: true, keyVersions: true } }),
    and('WRAP-SIGN', 'WRAP-SIGN-BINDS', 'WRAP-VERIFY-LOCAL'),
  ),
  around(
    'declares versions with a text instead of a boolean',
    'WRAP-FACTS',
    () => ({ supports: { ...SOUND.supports, keyVersions: 'yes' } }),
    and('WRAP-VERSIONS-DECLARED'),
  ),
  around(
    'generates synchronously',
    'WRAP-PROMISES',
    (_, { key }) => ({
      generate({ context }: WrapOptions) {
        const dataKey = Uint8Array.from(randomBytes(32));
        const keyId = key.current.id;
        const wrapped = Uint8Array.from(SOUND.seal(key.current, dataKey, SOUND.bind(context, keyId)));
        return { dataKey, wrapped: { provider: PROVIDER, keyId, wrapped } };
      },
    }),
    and('WRAP-UNREACHABLE', 'WRAP-ABORTED', 'WRAP-REJECTS', 'WRAP-CLOSED', 'WRAP-ARGUMENT-CONTEXT'),
  ),
  giving('takes a leading zero for the sign byte of a number', (plaintext) =>
    plaintext[0] === 0 && (plaintext[1] ?? 0) >= 0x80 ? plaintext.subarray(1) : plaintext,
  ),
  giving('strips trailing zeros', (plaintext) => {
    const end = plaintext.findLastIndex((byte) => byte !== 0) + 1;
    return plaintext.subarray(0, end);
  }),
  giving('trims white space', (plaintext) => Buffer.from(plaintext.toString('latin1').trim(), 'latin1'), NEARLY_ALL),
  broken(
    'accepts only 32 bytes although the ring passes 64',
    'WRAP-LENGTH-64',
    {
      ...KEY_WRAP,
      checkDataKey: (dataKey) => SOUND.checkDataKey(dataKey, { context: true, authenticated: true }),
    },
    NEARLY_ALL,
  ),
  made('pads 32 bytes to 64', 'WRAP-LENGTH-32', (world) => {
    const take: Steps['take'] = (dataKey) => Uint8Array.of(...dataKey, ...new Uint8Array(64 - dataKey.length));
    const { generate: _, ...others } = soundKeyWrapper({ ...KEY_WRAP, take })(world);
    return others;
  }),
  broken('wraps the whole buffer of a view at its start', 'WRAP-VIEW', {
    take: (dataKey) => (dataKey.byteOffset === 0 ? new Uint8Array(dataKey.buffer.slice(0)) : Uint8Array.from(dataKey)),
  }),
  broken(
    'wraps the whole buffer of a view',
    'WRAP-VIEW',
    { take: (dataKey) => new Uint8Array(dataKey.buffer.slice(0)) },
    and('WRAP-CALLERS-BYTES-AT-ONCE'),
  ),
  around('returns bytes from its cache', 'WRAP-OWN-BYTES', (sound) => {
    const kept = new Map<string, Uint8Array>();
    return {
      async unwrap(wrapped: WrappedKey, options: WrapOptions) {
        const plaintext = await sound.unwrap(wrapped, options);
        const earlier = kept.get(hexOf(wrapped.wrapped));
        kept.set(hexOf(wrapped.wrapped), earlier ?? plaintext);
        return earlier ?? plaintext;
      },
    };
  }),
  around('overwrites the caller’s data key', 'WRAP-CALLERS-BYTES', (sound) => ({
    async wrap(dataKey: Uint8Array, options: WrapOptions) {
      const answer = await sound.wrap(dataKey, options);
      dataKey.fill(0);
      return answer;
    },
  })),
  around('overwrites the caller’s data key shortly after the call', 'WRAP-CALLERS-BYTES', (sound) => ({
    async wrap(dataKey: Uint8Array, options: WrapOptions) {
      const answer = await sound.wrap(dataKey, options);
      setTimeout(() => dataKey.fill(0), 2);
      return answer;
    },
  })),
  around(
    'overwrites an unwrapped data key shortly after the call',
    'WRAP-OWN-BYTES',
    (sound) => ({
      async unwrap(wrapped: WrappedKey, options: WrapOptions) {
        const answer = await sound.unwrap(wrapped, options);
        setTimeout(() => answer.fill(0), 10);
        return answer;
      },
    }),
    NEARLY_ALL,
  ),
  around('marks a wrapped key as unwrapped', 'WRAP-CALLERS-RECORD', (sound) => ({
    async unwrap(wrapped: WrappedKey, options: WrapOptions) {
      const answer = await sound.unwrap(wrapped, options);
      Reflect.set(wrapped, 'isOpen', true);
      return answer;
    },
  })),
  around(
    'keeps the caller’s data key',
    'WRAP-CALLERS-BYTES',
    (sound) => {
      const kept = new Map<string, Uint8Array>();
      return {
        async wrap(dataKey: Uint8Array, options: WrapOptions) {
          const answer = await sound.wrap(dataKey, options);
          kept.set(hexOf(answer.wrapped), dataKey);
          return answer;
        },
        async unwrap(wrapped: WrappedKey, options: WrapOptions) {
          const plaintext = await sound.unwrap(wrapped, options);
          return Uint8Array.from(kept.get(hexOf(wrapped.wrapped)) ?? plaintext);
        },
      };
    },
    and('WRAP-CALLERS-BYTES-AT-ONCE'),
  ),
  broken('reads the data key after queueing', 'WRAP-CALLERS-BYTES-AT-ONCE', { take: (dataKey) => dataKey }),
  around('returns the wrapped key of another context', 'WRAP-TWICE', (sound) => {
    const kept = new Map<string, WrappedKey>();
    return {
      async wrap(dataKey: Uint8Array, options: WrapOptions) {
        const answer = await sound.wrap(dataKey, options);
        const name = hexOf(dataKey);
        const { wrapped, ...rest } = kept.get(name) ?? answer;
        kept.set(name, { ...rest, wrapped: Uint8Array.from(wrapped) });
        return { ...rest, wrapped };
      },
    };
  }),
  around(
    'unwraps only the newest wrap of a data key',
    'WRAP-TWICE',
    (sound) => {
      const newest = new Map<string, string>();
      return {
        async wrap(dataKey: Uint8Array, options: WrapOptions) {
          const key = hexOf(dataKey);
          const answer = await sound.wrap(dataKey, options);
          newest.set(key, hexOf(answer.wrapped));
          return answer;
        },
        async unwrap(wrapped: WrappedKey, options: WrapOptions) {
          const plaintext = await sound.unwrap(wrapped, options);
          const last = newest.get(hexOf(plaintext));
          if (last !== undefined && last !== hexOf(wrapped.wrapped)) throw new ZooKeyWrapperError('corrupt', 'unwrap');
          return plaintext;
        },
      };
    },
    NEARLY_ALL,
  ),
  around('always generates the same data key', 'WRAP-GENERATE', (sound) => {
    const dataKey = Uint8Array.from(randomBytes(32));
    return {
      async generate(options: WrapOptions) {
        return { dataKey: Uint8Array.from(dataKey), wrapped: await sound.wrap(dataKey, options) };
      },
    };
  }),
  around('generates a data key of 16 bytes', 'WRAP-GENERATE', (sound) => ({
    async generate(options: WrapOptions) {
      const { dataKey, wrapped } = await sound.generate(options);
      return { dataKey: dataKey.slice(0, 16), wrapped };
    },
  })),
  around('generates a data key and wraps another', 'WRAP-GENERATE', (sound) => ({
    async generate(options: WrapOptions) {
      const { wrapped } = await sound.generate(options);
      return { dataKey: Uint8Array.from(randomBytes(32)), wrapped };
    },
  })),
  generating('generates data keys of one repeated random byte', () =>
    Uint8Array.of(...new Uint8Array(31).map((_, i) => i), ...randomBytes(1)),
  ),
  generating('generates data keys of two repeated bytes', () => {
    const [byte = 0] = randomBytes(1);
    return new Uint8Array(32).map((_, i) => (i % 2 === 0 ? byte : byte ^ 1));
  }),
  generating('generates data keys with an empty second half', () =>
    Uint8Array.of(...randomBytes(16), ...new Uint8Array(16).map((_, i) => i)),
  ),
  generating('generates data keys of hexadecimal text', () => Uint8Array.from(Buffer.from(hexOf(randomBytes(16))))),
  ...[3, 20].map((count) =>
    made(`generates the same ${count} data keys again`, 'WRAP-GENERATE', (world) => {
      const keys = Array.from({ length: count }, () => randomBytes(32));
      let ordinal = 0;
      const sound = soundKeyWrapper()(world);
      return {
        ...sound,
        async generate(options) {
          SOUND.checkOptions(options);
          const dataKey = Uint8Array.from(keys[ordinal++ % count] ?? []);
          return { dataKey, wrapped: await sound.wrap(dataKey, options) };
        },
      };
    }),
  ),
  made('generates one data key per millisecond', 'WRAP-GENERATE', (world) => {
    const sound = soundKeyWrapper()(world);
    const secret = randomBytes(32);
    return {
      ...sound,
      async generate(options) {
        SOUND.checkOptions(options);
        const dataKey = Uint8Array.from(createHash('sha256').update(secret).update(`${Date.now()}`).digest());
        return { dataKey, wrapped: await sound.wrap(dataKey, options) };
      },
    };
  }),
  around('makes each data key of two UUIDs', 'WRAP-GENERATE', (sound) => ({
    async generate(options: WrapOptions) {
      SOUND.checkOptions(options);
      const dataKey = Uint8Array.from(Buffer.from(`${randomUUID()}${randomUUID()}`.replaceAll('-', ''), 'hex'));
      return { dataKey, wrapped: await sound.wrap(dataKey, options) };
    },
  })),
  around('binds a generated data key to the first context with these names', 'WRAP-CONTEXT-BINDS', (sound) => {
    const known = new Map<string, WrapOptions['context']>();
    return {
      async generate(options: WrapOptions) {
        SOUND.checkOptions(options);
        const names = Object.keys(options.context).toSorted().join();
        const context = known.get(names) ?? { ...options.context };
        known.set(names, context);
        return sound.generate({ ...options, context });
      },
    };
  }),
  broken('encodes a lone surrogate as U+FFFD', 'WRAP-CONTEXT-BOUNDARIES', {
    bind: (context, keyId) => SOUND.bind(Object.fromEntries(Object.entries(context).map(wellFormed)), keyId),
  }),
  around('keeps the data key in the buffer of a wrapped key', 'WRAP-INSPECT-SECRET', (sound) => ({
    async wrap(dataKey: Uint8Array, options: WrapOptions) {
      const key = Uint8Array.from(dataKey ?? []);
      const one = await sound.wrap(dataKey, options);
      const both = Uint8Array.of(...key, ...one.wrapped);
      return { ...one, wrapped: both.subarray(key.length) };
    },
  })),
  around('returns a generated data key and its wrapped key in one buffer', 'WRAP-INSPECT-SECRET', (sound) => ({
    async generate(options: WrapOptions) {
      const { dataKey, wrapped } = await sound.generate(options);
      const both = Uint8Array.of(...dataKey, ...wrapped.wrapped);
      return { dataKey: both.subarray(0, 32), wrapped: { ...wrapped, wrapped: both.subarray(32) } };
    },
  })),
  around(
    'generates the next data key ahead of time',
    'WRAP-DISABLED',
    (sound) => {
      const ready = new Map<string, ReturnType<typeof sound.generate>>();
      return {
        async generate(options: WrapOptions) {
          if (options?.signal?.aborted === true) return sound.generate(options);
          const name = JSON.stringify(options?.context);
          const one = ready.get(name) ?? sound.generate(options);
          ready.delete(name);
          const { dataKey, wrapped } = await one;
          const next = sound.generate({ context: { ...options.context } });
          next.then(
            () => ready.set(name, next),
            () => ready.delete(name),
          );
          return { dataKey: Uint8Array.from(dataKey), wrapped };
        },
      };
    },
    and('WRAP-DENIED'),
  ),
  around('reports the date of the service after an abort', 'WRAP-SIGNAL-LEFT', (sound) => ({
    async wrap(dataKey: Uint8Array, options: WrapOptions) {
      setTimeout(() => options?.onServiceDate?.(new Date()), 10).unref();
      return sound.wrap(dataKey, options);
    },
  })),
  around('adds a member to a prototype', 'WRAP-NO-GLOBALS', (sound) => ({
    async unwrap(wrapped: WrappedKey, options: WrapOptions) {
      Reflect.set(Uint8Array.prototype, 'zooHex', () => '');
      return sound.unwrap(wrapped, options);
    },
  })),
  around('reports an invalid date with a refusal', 'WRAP-OPTIONS', (sound) => ({
    async unwrap(wrapped: WrappedKey, options: WrapOptions) {
      try {
        return await sound.unwrap(wrapped, options);
      } catch (error) {
        if (options?.signal?.aborted !== true) options?.onServiceDate?.(new Date(Number.NaN));
        throw error;
      }
    },
  })),
  around(
    'prints the first generated data key of an instance',
    'WRAP-OUTPUT-SECRET',
    (sound) => {
      let hasPrinted = false;
      return {
        async generate(options: WrapOptions) {
          const one = await sound.generate(options);
          if (!hasPrinted) console.debug('generated', Buffer.from(one.dataKey).toString('base64'));
          hasPrinted = true;
          return one;
        },
      };
    },
    and('WRAP-QUIET'),
  ),
  around(
    'generates under the name of the last version that it wrapped with',
    'WRAP-ROTATED-OPENS',
    (sound) => {
      let keyId: string | undefined;
      return {
        async wrap(dataKey: Uint8Array, options: WrapOptions) {
          const one = await sound.wrap(dataKey, options);
          ({ keyId } = one);
          return one;
        },
        async generate(options: WrapOptions) {
          const { dataKey, wrapped } = await sound.generate(options);
          return { dataKey, wrapped: { ...wrapped, keyId: keyId ?? wrapped.keyId } };
        },
      };
    },
    NEARLY_ALL,
  ),
  around('leaves a listener on the signal of a failed call', 'WRAP-SIGNAL-LEFT', (sound) => ({
    async wrap(dataKey: Uint8Array, options: WrapOptions) {
      const listener = (): void => undefined;
      options?.signal?.addEventListener('abort', listener);
      const one = await sound.wrap(dataKey, options);
      options?.signal?.removeEventListener('abort', listener);
      return one;
    },
  })),
  ...Object.entries({
    stream: () => process.stdout.write('\u200b'),
    console: () => console.debug(''),
    descriptor: () => writeSync(1, ''),
  }).map(([by, print]) =>
    around(`prints by its ${by} that a wrapped key was unwrapped`, 'WRAP-QUIET', (sound) => ({
      async unwrap(wrapped: WrappedKey, options: WrapOptions) {
        const plaintext = await sound.unwrap(wrapped, options);
        print();
        return plaintext;
      },
    })),
  ),
  around('leaves a listener on the signal of a refused unwrap', 'WRAP-SIGNAL-LEFT', (sound) => ({
    async unwrap(wrapped: WrappedKey, options: WrapOptions) {
      try {
        return await sound.unwrap(wrapped, options);
      } catch (error) {
        options?.signal?.addEventListener('abort', () => undefined);
        throw error;
      }
    },
  })),
  generating('generates the same data keys in every process', (ordinal) =>
    Uint8Array.from(createHash('sha256').update(`zoo ${ordinal}`).digest()),
  ),
  broken('carries the context in the wrapped key', 'WRAP-RECORD', {
    seal: (version, plaintext, bound) =>
      Buffer.concat([Buffer.from(`${bound.toString('hex')}.`), SOUND.seal(version, plaintext, bound)]),
    open(version, bytes, bound) {
      const head = Buffer.from(`${bound.toString('hex')}.`);
      if (!head.equals(bytes.subarray(0, head.length))) throw new Error('another context');
      return SOUND.open(version, Buffer.from(bytes.subarray(head.length)), bound);
    },
  }),
  broken('uses a keyId that is too long for a ring', 'WRAP-RECORD', {
    nameVersion: ({ id }) => `${id}?${'x'.repeat(2_048)}`,
    versionToOpen: ({ key }, { keyId }) => key.versions.find(({ id }) => keyId.startsWith(`${id}?`)),
  }),
  broken(
    'adds the data key to its wrap',
    'WRAP-CONFIDENTIAL',
    {
      seal: (version, plaintext, bound) => Buffer.concat([SOUND.seal(version, plaintext, bound), plaintext]),
      open(version, bytes, bound) {
        const plaintext = SOUND.open(version, bytes.subarray(0, -32), bound);
        if (!plaintext.equals(bytes.subarray(-32))) throw new Error('changed');
        return plaintext;
      },
    },
    and('WRAP-INSPECT-SECRET'),
  ),
  repeating('uses one nonce', () => Buffer.alloc(12, 7)),
  repeating('derives the nonce from the context', (bound) =>
    createHash('sha256').update(bound).digest().subarray(0, 12),
  ),
  made('counts nonces from one in every process', 'WRAP-CONFIDENTIAL', (world) => {
    let ordinal = 0;
    const seal: Steps['seal'] = (version, plaintext, bound) => {
      const nonce = Buffer.alloc(12);
      nonce.writeUInt32BE(++ordinal, 8);
      return sealWith(nonce, version, plaintext, bound);
    };
    return soundKeyWrapper({ seal })(world);
  }),
  repeating('uses one nonce, as text', () => Buffer.alloc(12, 7), asText),
  broken(
    'produces wrapped keys that are too large for a ring',
    'WRAP-RECORD-SIZE',
    {
      seal: (version, plaintext, bound) => SOUND.seal(version, Buffer.concat([plaintext, Buffer.alloc(4_096)]), bound),
      open: (version, bytes, bound) => SOUND.open(version, bytes, bound).subarray(0, -4_096),
    },
    and('WRAP-RECORD'),
  ),
  around(
    'keeps the nonce outside the stored record',
    'WRAP-STORED',
    (sound) => ({
      async wrap(dataKey: Uint8Array, options: WrapOptions) {
        const { wrapped, ...rest } = await sound.wrap(dataKey, options);
        return { ...rest, wrapped: wrapped.slice(12), nonce: wrapped.slice(0, 12) };
      },
      async generate(options: WrapOptions) {
        const { dataKey, wrapped: whole } = await sound.generate(options);
        const { wrapped, ...rest } = whole;
        return { dataKey, wrapped: { ...rest, wrapped: wrapped.slice(12), nonce: wrapped.slice(0, 12) } };
      },
      unwrap(given: WrappedKey & { readonly nonce?: Uint8Array }, options: WrapOptions) {
        if (given?.wrapped === undefined) return sound.unwrap(given, options);
        return sound.unwrap({ ...given, wrapped: Uint8Array.of(...(given.nonce ?? []), ...given.wrapped) }, options);
      },
    }),
    and('WRAP-ARGUMENT-BYTES'),
  ),
  made(
    'unwraps only wrapped keys of this process',
    'WRAP-PEER',
    (world) => {
      const own = randomBytes(8);
      const bind: Steps['bind'] = (context, keyId) => Buffer.concat([own, SOUND.bind(context, keyId)]);
      return soundKeyWrapper({ bind })(world);
    },
    and('WRAP-ROTATED-OPENS', 'WRAP-ROTATED-NAMES', 'WRAP-STORED', 'WRAP-CLOSE-ALONE', 'WRAP-ABORT-ALONE'),
  ),
  broken(
    'refuses unknown options',
    'WRAP-OPTIONS',
    {
      checkOptions(options) {
        SOUND.checkOptions(options);
        const unknown = Object.keys(options).find((name) => name !== 'context' && name !== 'signal');
        if (unknown !== undefined) throw new TypeError(`unknown option ${unknown}`);
      },
    },
    NEARLY_ALL,
  ),
  telling('reports the service’s date as text', () => new Date().toUTCString()),
  telling('reports seconds as milliseconds', () => new Date(Date.now() / 1_000)),
  telling('reports an invalid date', () => new Date('Sat, 21 Nov')),
  telling('reports undefined as a date', () => undefined),
  around('reports the local time before it calls the service', 'WRAP-OPTIONS', (sound) => ({
    async wrap(dataKey: Uint8Array, options: WrapOptions) {
      options.onServiceDate?.(new Date());
      return sound.wrap(dataKey, options);
    },
  })),
  around('reports a date of 1970 from generate', 'WRAP-OPTIONS', (sound) => ({
    async generate(options: WrapOptions) {
      const answer = await sound.generate(options);
      options.onServiceDate?.(new Date(0));
      return answer;
    },
  })),
  around('handles only one call at a time', 'WRAP-CONCURRENT', (sound) => {
    let current = new Uint8Array(0);
    return {
      async wrap(dataKey: Uint8Array, options: WrapOptions) {
        // Limits the fault to one requirement.
        if (!(dataKey instanceof Uint8Array) || options?.signal !== undefined) return sound.wrap(dataKey, options);
        current = Uint8Array.from(dataKey);
        await Promise.resolve();
        return sound.wrap(current, options);
      },
    };
  }),
  broken(
    'binds only the ring’s name',
    'WRAP-CONTEXT-BINDS',
    {
      bind: (context, keyId) => Buffer.from(`${keyId} ${context['sealring:ring']} ${context['ab']} ${context['abc']}`),
    },
    and('WRAP-CONTEXT-BOUNDARIES', 'WRAP-ROTATED-REFUSES'),
  ),
  broken(
    'binds no context, but declares that it does',
    'WRAP-CONTEXT-BINDS',
    { bind: (_, keyId) => Buffer.from(keyId) },
    and('WRAP-CONTEXT-BOUNDARIES', 'WRAP-ROTATED-REFUSES'),
  ),
  broken('binds names and values without a boundary', 'WRAP-CONTEXT-BOUNDARIES', {
    bind: (context, keyId) => Buffer.from([keyId, ...Object.entries(context).toSorted(byName).flat()].join('')),
  }),
  binding('joins a context with = and ,', 'WRAP-CONTEXT-BOUNDARIES', (entries) =>
    entries.map((entry) => entry.join('=')).join(','),
  ),
  binding('joins a context with = and &', 'WRAP-CONTEXT-BOUNDARIES', (entries) =>
    entries.map((entry) => entry.join('=')).join('&'),
  ),
  binding('joins a context with : and ;', 'WRAP-CONTEXT-BOUNDARIES', (entries) =>
    entries.map((entry) => entry.join(':')).join(';'),
  ),
  binding('joins a context with : and newlines', 'WRAP-CONTEXT-BOUNDARIES', (entries) =>
    entries.map((entry) => entry.join(': ')).join('\n'),
  ),
  binding('joins a context with NULs', 'WRAP-CONTEXT-BOUNDARIES', (entries) => entries.flat().join('\0')),
  binding('writes JSON without escaping', 'WRAP-CONTEXT-BOUNDARIES', (entries) =>
    entries.map(([name, value]) => `"${name}":"${value}"`).join(','),
  ),
  binding('quotes values without escaping', 'WRAP-CONTEXT-BOUNDARIES', (entries) => entries.flat().join('"')),
  binding('composes characters', 'WRAP-CONTEXT-BOUNDARIES', (entries) => JSON.stringify(entries).normalize('NFC')),
  binding('trims values', 'WRAP-CONTEXT-BOUNDARIES', (entries) =>
    JSON.stringify(entries.map(([name, value]) => [name, value.trim()])),
  ),
  binding('truncates characters to one byte', 'WRAP-CONTEXT-BOUNDARIES', (entries) =>
    Buffer.from(JSON.stringify(entries), 'latin1').toString('latin1'),
  ),
  binding('replaces non-Latin characters with ?', 'WRAP-CONTEXT-BOUNDARIES', (entries) =>
    JSON.stringify(entries).replaceAll(/[^\0-\u00ff]/g, '?'),
  ),
  binding('binds only the first 200 characters of a value', 'WRAP-CONTEXT-BINDS', (entries) =>
    JSON.stringify(entries.map(([name, value]) => [name, value.slice(0, 200)])),
  ),
  binding(
    'binds values without their names',
    'WRAP-CONTEXT-BINDS',
    (entries) => JSON.stringify(entries.map(([, value]) => value)),
    and('WRAP-CONTEXT-BOUNDARIES'),
  ),
  binding('binds names and values as separate sets', 'WRAP-CONTEXT-BINDS', (entries) =>
    JSON.stringify([entries.map(([name]) => name), entries.map(([, value]) => value).toSorted()]),
  ),
  made(
    'caches unwraps without the context',
    'WRAP-CONTEXT-BINDS',
    remembering({ nameOf: (wrapped, options) => GOOD_MEMORY.nameOf(wrapped, options).slice(0, 3) }),
    and('WRAP-CONTEXT-BOUNDARIES', 'WRAP-CONCURRENT', 'WRAP-AFTER-REFUSAL'),
  ),
  made(
    'caches unwraps by the context’s text',
    'WRAP-CONTEXT-BOUNDARIES',
    remembering({
      nameOf: (wrapped, { context }) => [
        ...GOOD_MEMORY.nameOf(wrapped, { context }).slice(0, 3),
        Object.entries(context).join(),
      ],
    }),
  ),
  made(
    'caches unwraps by the beginning of the bytes',
    'WRAP-BIT-FLIP',
    remembering({
      nameOf: ({ provider, keyId, wrapped }, { context }) => [provider, keyId, hexOf(wrapped.subarray(0, 12)), context],
    }),
    and('WRAP-TRUNCATION', 'WRAP-EXTENSION', 'WRAP-AFTER-REFUSAL', 'WRAP-SPLICE', 'WRAP-CONCURRENT'),
  ),
  made(
    'caches unwraps of any provider and key',
    'WRAP-FOREIGN-PROVIDER',
    remembering({ nameOf: ({ wrapped }, { context }) => [hexOf(wrapped), context] }),
    and('WRAP-OTHER-KEY-NAMED', 'WRAP-CONCURRENT', 'WRAP-AFTER-REFUSAL', 'WRAP-VERSION-BINDS'),
  ),
  broken('binds the order of the context’s members', 'WRAP-CONTEXT-ORDER', {
    bind: (context, keyId) => Buffer.from(JSON.stringify([keyId, context])),
  }),
  broken('binds a context, but declares that it does not', 'WRAP-CONTEXT-DECLARED', {
    supports: { context: false, authenticated: true, keyVersions: true },
  }),
  broken('ignores one bit of the first byte', 'WRAP-BIT-FLIP', {
    seal: (version, plaintext, bound) => Buffer.concat([Buffer.of(1), SOUND.seal(version, plaintext, bound)]),
    open: (version, bytes, bound) =>
      SOUND.open(version, ((bytes[0] ?? 0) & 0x7f) === 1 ? bytes.subarray(1) : Buffer.alloc(0), bound),
  }),
  broken('ignores a byte in the middle', 'WRAP-BIT-FLIP', {
    seal(version, plaintext, bound) {
      const sealed = SOUND.seal(version, plaintext, bound);
      return Buffer.concat([sealed.subarray(0, 30), randomBytes(1), sealed.subarray(30)]);
    },
    open: (version, bytes, bound) =>
      SOUND.open(version, Buffer.concat([bytes.subarray(0, 30), bytes.subarray(31)]), bound),
  }),
  broken(
    'does not check the first byte',
    'WRAP-BIT-FLIP',
    {
      seal: (version, plaintext, bound) => Buffer.concat([Buffer.of(1), SOUND.seal(version, plaintext, bound)]),
      open: (version, bytes, bound) => SOUND.open(version, bytes.subarray(1), bound),
    },
    and('WRAP-ROTATED-REFUSES'),
  ),
  broken(
    'checks only the available part of a tag',
    'WRAP-TRUNCATION',
    lax((tag) => (tag.length > 16 ? Buffer.alloc(16) : tag)),
  ),
  broken('ignores bytes after the tag', 'WRAP-EXTENSION', {
    open: (version, bytes, bound) => SOUND.open(version, bytes.subarray(0, 60), bound),
  }),
  broken('unwraps no bytes to a new data key', 'WRAP-EMPTY', {
    open: (version, bytes, bound) => (bytes.length === 0 ? randomBytes(32) : SOUND.open(version, bytes, bound)),
  }),
  broken('wraps the halves of a data key separately', 'WRAP-SPLICE', {
    seal(version, plaintext, bound) {
      const middle = plaintext.length >> 1;
      const parts = [plaintext.subarray(0, middle), plaintext.subarray(middle)];
      return Buffer.concat(parts.map((part) => sealWith(randomBytes(12), version, part, bound)));
    },
    open(version, bytes, bound) {
      const middle = bytes.length >> 1;
      const parts = [bytes.subarray(0, middle), bytes.subarray(middle)];
      return Buffer.concat(parts.map((part) => SOUND.open(version, part, bound)));
    },
  }),
  around(
    'locks itself after three refusals',
    'WRAP-AFTER-REFUSAL',
    (sound) => {
      let bad = 0;
      return {
        async unwrap(wrapped: WrappedKey, options: WrapOptions) {
          try {
            const plaintext = await sound.unwrap(wrapped, options);
            if (bad < 3) return plaintext;
          } catch (error) {
            bad += error instanceof ZooKeyWrapperError && error.kind === 'corrupt' ? 1 : 0;
            throw error;
          }
          throw new ZooKeyWrapperError('corrupt', 'unwrap');
        },
      };
    },
    and('WRAP-CONCURRENT', 'WRAP-CONTEXT-BINDS', 'WRAP-SIGNAL-LEFT'),
  ),
  around(
    'returns the last data key for a bad wrapped key',
    'WRAP-AFTER-REFUSAL',
    (sound) => {
      let last: Uint8Array | undefined;
      return {
        async unwrap(wrapped: WrappedKey, options: WrapOptions) {
          try {
            last = await sound.unwrap(wrapped, options);
          } catch (error) {
            if (!(error instanceof ZooKeyWrapperError) || error.kind !== 'corrupt' || last === undefined) throw error;
          }
          return Uint8Array.from(last);
        },
      };
    },
    and(
      'WRAP-CONCURRENT',
      'WRAP-ROTATED-REFUSES',
      'WRAP-VERSION-BINDS',
      'WRAP-BIT-FLIP',
      'WRAP-TRUNCATION',
      'WRAP-EXTENSION',
      'WRAP-EMPTY',
      'WRAP-SPLICE',
      'WRAP-OTHER-KEY',
      'WRAP-CONTEXT-BINDS',
      'WRAP-CONTEXT-BOUNDARIES',
      'WRAP-FOREIGN-PROVIDER',
      'WRAP-OTHER-KEY-NAMED',
    ),
  ),
  broken('selects its KMS key in a session that all instances share', 'WRAP-OTHER-KEY', {
    ask(...given) {
      const [world, operation] = given;
      if (operation !== 'unwrap') session.version = world.key.current;
      return SOUND.ask(...given);
    },
    seal: (version, plaintext, bound) => SOUND.seal(session.version ?? version, plaintext, bound),
  }),
  made(
    'uses the KMS key named in the ciphertext',
    'WRAP-OTHER-KEY',
    (world) => {
      const versions = () => [...world.key.versions, ...world.other.versions];
      const bind: Steps['bind'] = (context) => SOUND.bind(context, '');
      return soundKeyWrapper({ bind, open: (_, bytes, bound) => openAny(versions(), bytes, bound) })(world);
    },
    and('WRAP-VERSION-BINDS'),
  ),
  broken(
    'uses the KMS key named in the wrapped key',
    'WRAP-OTHER-KEY-NAMED',
    {
      mayAsk: (_, { provider }) => provider === PROVIDER,
      versionToOpen: ({ key, other }, { keyId }) => [...key.versions, ...other.versions].find(({ id }) => id === keyId),
    },
    and('WRAP-BEFORE-CALL'),
  ),
  made(
    'accepts any KMS key in its first call',
    'WRAP-OTHER-KEY-NAMED',
    (world) => {
      let isNew = true;
      const isName = (name: unknown): boolean => typeof name === 'string' && name.startsWith(`${world.other.name}/`);
      const mayAsk: Steps['mayAsk'] = (given, wrapped) =>
        SOUND.mayAsk(given, wrapped) || (isNew && wrapped.provider === PROVIDER && isName(wrapped.keyId));
      const versionToOpen: Steps['versionToOpen'] = ({ key, other }, { keyId }) =>
        [...key.versions, ...(isNew ? other.versions : [])].find(({ id }) => id === keyId);
      const ask: Steps['ask'] = async (...given) => {
        await SOUND.ask(...given);
        // The list of allowed keys arrives with the answer to the first call.
        setImmediate(() => {
          isNew = false;
        });
      };
      return soundKeyWrapper({ mayAsk, versionToOpen, ask })(world);
    },
    and('WRAP-BEFORE-CALL'),
  ),
  broken('lets entries of the context replace what it adds', 'WRAP-CONTEXT-BINDS', {
    bind: (context, keyId) => SOUND.bind({ provider: PROVIDER, keyId, ...context }, ''),
  }),
  broken('opens only the last three versions', 'WRAP-ROTATED-NAMES', {
    versionToOpen: ({ key }, { keyId }) => key.versions.slice(-3).find(({ id }) => id === keyId),
  }),
  around('drops the signal if the caller wants the date', 'WRAP-ABORT', (sound) => ({
    wrap: (dataKey: Uint8Array, options: WrapOptions) =>
      sound.wrap(dataKey, options?.onServiceDate === undefined ? options : { context: options.context }),
  })),
  made('counts a second close as that of another instance', 'WRAP-CLOSE-ALONE', countingCloses()),
  broken('accepts the name of its KMS key in different letter case', 'WRAP-OTHER-KEY-NAMED', {
    mayAsk: (world, wrapped) => SOUND.mayAsk(world, lowerCase(wrapped)),
    versionToOpen: (world, wrapped) => SOUND.versionToOpen(world, lowerCase(wrapped)),
    bind: (context, keyId) => SOUND.bind(context, keyId.toLowerCase()),
  }),
  broken(
    'ignores the provider',
    'WRAP-FOREIGN-PROVIDER',
    {
      mayAsk: (world, wrapped) => SOUND.mayAsk(world, { ...wrapped, provider: PROVIDER }),
    },
    and('WRAP-BEFORE-CALL', 'WRAP-ARGUMENTS', 'WRAP-ROTATED-REFUSES'),
  ),
  broken(
    'calls the service before checking the key',
    'WRAP-BEFORE-CALL',
    {
      mayAsk: () => true,
      versionToOpen: (world, wrapped) =>
        SOUND.mayAsk(world, wrapped) ? SOUND.versionToOpen(world, wrapped) : undefined,
    },
    and('WRAP-ARGUMENTS'),
  ),
  broken('compares the name of its KMS key as a pattern', 'WRAP-BEFORE-CALL', {
    mayAsk: ({ key }, { provider, keyId }) =>
      provider === PROVIDER && new RegExp(`^${key.name.replace('/', '.')}/`).test(keyId),
  }),
  broken('unwraps no bytes to no bytes', 'WRAP-EMPTY', {
    open: (version, bytes, bound) => (bytes.length === 0 ? bytes : SOUND.open(version, bytes, bound)),
  }),
  around('owns all wrapped keys of its provider', 'WRAP-OWNS', () => ({
    owns: ({ provider }: WrappedKey) => provider === PROVIDER,
  })),
  around('owns KMS keys with longer names', 'WRAP-OWNS', (sound) => ({
    owns: ({ provider, keyId }: WrappedKey) => provider === PROVIDER && keyId.startsWith(sound.keyId),
  })),
  around('calls the service in owns', 'WRAP-OWNS', (_, world) => ({
    owns: async (wrapped: WrappedKey) => SOUND.mayAsk(world, wrapped),
  })),
  misnaming(
    'reports an outage as a missing key',
    'WRAP-UNREACHABLE',
    ['unavailable', 'not-found'],
    and('WRAP-ABORT', 'WRAP-ABORTED', 'WRAP-CLOSED'),
  ),
  broken(
    'waits forever',
    'WRAP-UNREACHABLE',
    {
      async ask(world, operation, signal, fail) {
        if (world.isReachable || signal?.aborted === true) return SOUND.ask(world, operation, signal, fail);
        await Promise.race([
          never(),
          new Promise((_, reject) => signal?.addEventListener('abort', () => reject(fail('unavailable', operation)))),
        ]);
      },
    },
    hanging(
      'WRAP-OWNS',
      'WRAP-REJECTS',
      'WRAP-ERROR-INSTANCE',
      'WRAP-ERROR-CLASS',
      'WRAP-ERROR-SUMMARY',
      'WRAP-ERROR-SECRET',
      'WRAP-ERROR-CAUSE',
      'WRAP-OUTPUT-SECRET',
      'WRAP-CALLERS-BYTES',
      'WRAP-CLOSE',
      'WRAP-NO-TIMERS',
    ),
  ),
  broken('ignores an abort in progress', 'WRAP-ABORT', {
    async ask(world, operation, signal, fail) {
      if (signal?.aborted === true) throw fail('unavailable', operation);
      await SOUND.ask(world, operation, undefined, fail);
    },
  }),
  made(
    'ignores aborts for cached unwraps',
    'WRAP-ABORTED',
    remembering({ ask: (world) => GOOD_MEMORY.ask(world, undefined) }),
    and('WRAP-ABORT'),
  ),
  broken(
    'says AbortError',
    'WRAP-ABORT',
    {
      async ask(world, operation, signal, fail) {
        if (signal?.aborted === true) throw fail('unavailable', operation);
        await SOUND.ask(world, operation, signal, fail).catch((error: unknown) => {
          throw signal?.aborted === true ? signal.reason : error;
        });
      },
    },
    and('WRAP-ERROR-CLASS'),
  ),
  broken('checks a signal only in progress', 'WRAP-ABORTED', {
    async ask(world, operation, signal, fail) {
      await SOUND.ask(world, operation, signal?.aborted === true ? undefined : signal, fail);
    },
  }),
  broken(
    'fails with its own error class',
    'WRAP-ERROR-CLASS',
    {
      fail: (kind, operation) => Object.assign(new ZooKeyWrapperError(kind, operation), { name: 'ZooError' }),
    },
    NEARLY_ALL,
  ),
  broken('does not name the failed call', 'WRAP-ERROR-SUMMARY', {
    fail: (kind, operation) => Object.assign(new ZooKeyWrapperError(kind, operation), { summary: undefined }),
  }),
  failing(
    'shows the data key in an error',
    'WRAP-ERROR-SECRET',
    (error, secret) => {
      error.message += `: could not wrap ${Buffer.from(secret).toString('base64')}`;
    },
    and('WRAP-CLOSE'),
  ),
  failing(
    'keeps the vendor’s request in a hidden member',
    'WRAP-ERROR-SECRET',
    (error, secret) => {
      const request = { body: JSON.stringify({ value: Buffer.from(secret).toString('base64url') }) };
      Object.defineProperty(error, Symbol('request'), { value: request, enumerable: false });
    },
    and('WRAP-CLOSE'),
  ),
  failing(
    'shows a piece of the data key',
    'WRAP-ERROR-SECRET',
    (error, secret) => {
      Object.assign(error, { hint: `starts with ${hexOf(secret.subarray(0, 8))}` });
    },
    and('WRAP-CLOSE'),
  ),
  failing(
    'keeps the bytes in a getter',
    'WRAP-ERROR-SECRET',
    (error, secret) => {
      Object.defineProperty(error, 'request', { get: () => new Map([['Plaintext', Uint8Array.from(secret)]]) });
    },
    and('WRAP-CLOSE'),
  ),
  broken('shows the wrong argument in an error', 'WRAP-ERROR-SECRET', {
    checkDataKey(dataKey, supports) {
      try {
        SOUND.checkDataKey(dataKey, supports);
      } catch {
        throw new TypeError(`no data key: ${inspect(dataKey)}`);
      }
    },
  }),
  broken('imitates the class of an error', 'WRAP-ERROR-INSTANCE', {
    fail(kind, operation) {
      const { name, message, summary } = new ZooKeyWrapperError(kind, operation);
      return Object.assign(new Error(message), { name, kind, summary });
    },
  }),
  failing('attaches the vendor’s error', 'WRAP-ERROR-CAUSE', (error) => {
    error.cause = new Error('the vendor’s');
  }),
  failing('keeps the stack of the vendor’s error', 'WRAP-ERROR-CAUSE', (error) => {
    error.stack = new Error('the vendor’s').stack ?? '';
  }),
  failing('has the vendor’s message as code', 'WRAP-ERROR-CAUSE', (error) => {
    changeSummary(error, { code: 'the vendor’s' });
  }),
  failing('has the status as text', 'WRAP-ERROR-SUMMARY', (error) => {
    changeSummary(error, { status: '403' });
  }),
  broken(
    'prints data keys',
    'WRAP-OUTPUT-SECRET',
    {
      take(dataKey) {
        console.debug(`wrapping ${Buffer.from(dataKey).toString('base64')}`);
        return SOUND.take(dataKey);
      },
    },
    and('WRAP-QUIET'),
  ),
  broken('warns with data keys', 'WRAP-OUTPUT-SECRET', {
    take(dataKey) {
      process.emitWarning('a slow wrap', { type: 'ZooWarning', detail: Buffer.from(dataKey).toString('hex') });
      return SOUND.take(dataKey);
    },
  }),
  around('shows the last data key', 'WRAP-INSPECT-SECRET', (sound) => {
    const state: { last?: Uint8Array } = {};
    return {
      state,
      async unwrap(wrapped: WrappedKey, options: WrapOptions) {
        const plaintext = await sound.unwrap(wrapped, options);
        state.last = Uint8Array.from(plaintext);
        return plaintext;
      },
    };
  }),
  broken('wraps bytes of any length', 'WRAP-KEY-LENGTH', {
    checkDataKey(dataKey, supports) {
      const isOne = dataKey instanceof Uint8Array && dataKey.length !== 32;
      if (!isOne) SOUND.checkDataKey(dataKey, supports);
    },
  }),
  broken('wraps a buffer that was never filled', 'WRAP-KEY-CONSTANT', {
    checkDataKey(dataKey, supports) {
      const isConstant = dataKey instanceof Uint8Array && new Set(dataKey).size === 1 && dataKey.length === 32;
      if (!isConstant) SOUND.checkDataKey(dataKey, supports);
    },
  }),
  broken('wraps numbers', 'WRAP-ARGUMENTS', {
    checkDataKey(dataKey, supports) {
      SOUND.checkDataKey(Array.isArray(dataKey) ? Uint8Array.from(dataKey) : dataKey, supports);
    },
  }),
  broken('does not check the context', 'WRAP-ARGUMENT-CONTEXT', {
    checkOptions({ context }) {
      if (context === undefined || context === null) throw new TypeError('no context');
    },
  }),
  around('throws synchronously', 'WRAP-REJECTS', (sound) => ({
    wrap(dataKey: Uint8Array, options: WrapOptions) {
      SOUND.checkDataKey(dataKey, sound.supports);
      return sound.wrap(dataKey, options);
    },
  })),
  broken('needs signatures but has none', 'WRAP-SIGN', PUBLIC_KEY, and('WRAP-SIGN-BINDS', 'WRAP-VERIFY-LOCAL')),
  signer('omits a leading zero from its signature', 'WRAP-SIGN', (sound) => ({
    async sign(...given: Parameters<typeof sound.sign>) {
      const signature = await sound.sign(...given);
      return (signature[0] ?? 0) < 2 ? signature.slice(1) : signature;
    },
  })),
  signer(
    'signs with a key of this process',
    'WRAP-SIGN',
    (sound) => {
      const { privateKey } = generateKeyPairSync('ed25519');
      return {
        async sign(...[entry, options]: Parameters<typeof sound.sign>) {
          await sound.sign(entry, options);
          return Uint8Array.from(sign(null, entry, privateKey));
        },
      };
    },
    and(
      'WRAP-VERIFY-LOCAL',
      'WRAP-CONCURRENT',
      'WRAP-VIEW',
      'WRAP-CALLERS-BYTES',
      'WRAP-CALLERS-BYTES-AT-ONCE',
      'WRAP-DISABLED',
      'WRAP-DENIED',
    ),
  ),
  signer('accepts an empty signature', 'WRAP-SIGN-BINDS', (sound) => ({
    verify: (entry: Uint8Array, signature: Uint8Array) => signature.length === 0 || sound.verify(entry, signature),
  })),
  signer('signs only the beginning of an entry', 'WRAP-SIGN-BINDS', (sound) => ({
    sign: async (...[entry, options]: Parameters<typeof sound.sign>) => sound.sign(entry?.subarray(0, 16), options),
    verify: (entry: Uint8Array, signature: Uint8Array) => sound.verify(entry.subarray(0, 16), signature),
  })),
  signer('verifies at the service', 'WRAP-VERIFY-LOCAL', (sound, world) => ({
    verify(entry: Uint8Array, signature: Uint8Array) {
      if (!world.isReachable) throw new ZooKeyWrapperError('unavailable', 'sign');
      return sound.verify(entry, signature);
    },
  })),
  signer('verifies nothing after a call that failed', 'WRAP-VERIFY-LOCAL', (sound, world) => {
    let hasFailed = false;
    return {
      async sign(...given: Parameters<typeof sound.sign>) {
        hasFailed ||= !world.isReachable;
        return sound.sign(...given);
      },
      verify: (entry: Uint8Array, signature: Uint8Array) => !hasFailed && sound.verify(entry, signature),
    };
  }),
  made(
    'caches unwraps',
    'WRAP-DISABLED',
    remembering({ ask: async () => undefined }),
    and('WRAP-DENIED', 'WRAP-ABORTED'),
  ),
  around('caches a second unwrap while the key is disabled', 'WRAP-DISABLED', (sound, { key }) => {
    const opened = new Map<string, number>();
    const kept = new Map<string, Uint8Array>();
    return {
      async unwrap(wrapped: WrappedKey, options: WrapOptions) {
        const name = JSON.stringify([wrapped?.provider, wrapped?.keyId, hexOf(wrapped?.wrapped), options]);
        const known = kept.get(name);
        if (key.state === 'disabled' && known !== undefined && (opened.get(name) ?? 0) > 1)
          return Uint8Array.from(known);
        const plaintext = await sound.unwrap(wrapped, options);
        opened.set(name, (opened.get(name) ?? 0) + 1);
        kept.set(name, Uint8Array.from(plaintext));
        return plaintext;
      },
    };
  }),
  misnaming('reports a disabled key as an outage', 'WRAP-DISABLED', ['disabled', 'unavailable']),
  unforgiving('never recovers from a disabled key', 'WRAP-ENABLED', 'disabled'),
  misnaming('reports a denial as a missing key', 'WRAP-DENIED', ['denied', 'not-found']),
  unforgiving('never recovers from a denial', 'WRAP-ALLOWED', 'denied'),
  broken(
    'unwraps with the newest version',
    'WRAP-ROTATED-OPENS',
    { versionToOpen: ({ key }) => key.current },
    and('WRAP-ROTATED-NAMES'),
  ),
  made(
    'names the key without its version',
    'WRAP-ROTATED-NAMES',
    (world) => {
      const open: Steps['open'] = (_, bytes, bound) => openAny(world.key.versions, bytes, bound);
      return soundKeyWrapper({ nameVersion: (_, key) => `${key.name}/1`, open })(world);
    },
    and('WRAP-VERSIONS-DECLARED'),
  ),
  made('generates with the version before the newest', 'WRAP-ROTATED-NAMES', (world) => {
    const lagging = soundKeyWrapper({
      nameVersion: (_, { versions, current }) => (versions.at(-2) ?? current).id,
      seal: (_, plaintext, bound) => SOUND.seal(world.key.versions.at(-2) ?? world.key.current, plaintext, bound),
    })(world);
    return { ...soundKeyWrapper()(world), generate: lagging.generate };
  }),
  broken('names versions without declaring them', 'WRAP-VERSIONS-DECLARED', {
    supports: { context: true, authenticated: true },
  }),
  {
    target: zooTarget('hides its versions, but declares them', soundKeyWrapper(), {
      supports: { versions: false },
    }),
    caughtBy: 'WRAP-VERSIONS-DECLARED',
    also: [],
  },
  made('ignores the version', 'WRAP-VERSION-BINDS', (world) => {
    const bind: Steps['bind'] = (context) => SOUND.bind(context, world.key.name);
    const open: Steps['open'] = (_, bytes, bound) => openAny(world.key.versions, bytes, bound);
    return soundKeyWrapper({ bind, open })(world);
  }),
  broken('is throttled after close', 'WRAP-CLOSED', {
    async ask(world, operation, signal, fail) {
      if (world.isClosed) throw fail('throttled', operation);
      await SOUND.ask(world, operation, signal, fail);
    },
  }),
  broken(
    'hangs after close',
    'WRAP-CLOSE',
    {
      async ask(world, operation, signal, fail) {
        if (world.isClosed) await never();
        await SOUND.ask({ ...world, isClosed: false }, operation, signal, fail);
      },
    },
    hanging('WRAP-CLOSED'),
  ),
  around(
    'never ends its close',
    'WRAP-CLOSE',
    () => ({ close: never }),
    hanging('WRAP-OWN-BYTES', 'WRAP-CLOSED', 'WRAP-NO-TIMERS', 'WRAP-CLOSE-ALONE', 'WRAP-NO-GLOBALS', 'WRAP-QUIET'),
  ),
  around('binds no context after a rotation', 'WRAP-ROTATED-REFUSES', (sound, { key }) => {
    const without = (options: WrapOptions, versionId = key.current.id): WrapOptions => {
      SOUND.checkOptions(options);
      return versionId === key.versions[0]?.id ? options : { ...options, context: {} };
    };
    return {
      wrap: async (dataKey: Uint8Array, options: WrapOptions) => sound.wrap(dataKey, without(options)),
      generate: async (options: WrapOptions) => sound.generate(without(options)),
      unwrap: async (wrapped: WrappedKey, options: WrapOptions) =>
        sound.unwrap(wrapped, without(options, wrapped?.keyId)),
    };
  }),
  around('generates in advance, and answers while denied', 'WRAP-DENIED', (sound, world) => {
    let next: Awaited<ReturnType<Whole['generate']>> | undefined;
    return {
      async generate(options: WrapOptions) {
        const ready = world.key.state === 'denied' ? next : undefined;
        if (ready !== undefined) return ready;
        next = await sound.generate(options);
        return sound.generate(options);
      },
    };
  }),
  around('shows its last request', 'WRAP-INSPECT-SECRET', (sound) => ({
    lastRequest: '',
    wrap(this: { lastRequest: string }, dataKey: Uint8Array, options: WrapOptions) {
      this.lastRequest = types.isUint8Array(dataKey) ? hexOf(dataKey) : '';
      return sound.wrap(dataKey, options);
    },
  })),
  around('a closed instance closes the others until a new one is created', 'WRAP-CLOSE-ALONE', (sound, { key }) => {
    closedPools.delete(key);
    const isOpen = <T>(call: () => Promise<T>): Promise<T> =>
      closedPools.has(key) ? Promise.reject(SOUND.fail('unavailable', 'wrap')) : call();
    return {
      wrap: (dataKey: Uint8Array, options: WrapOptions) => isOpen(() => sound.wrap(dataKey, options)),
      async close() {
        closedPools.add(key);
        await sound.close();
      },
    };
  }),
  around('leaves a port', 'WRAP-NO-TIMERS', (sound) => ({
    wrap(dataKey: Uint8Array, options: WrapOptions) {
      const { port1 } = new MessageChannel();
      port1.ref();
      // Long enough to be detected.
      setTimeout(() => port1.close(), 4_000).unref();
      return sound.wrap(dataKey, options);
    },
  })),
  around('closes a connection that it never had', 'WRAP-CLOSE', (sound) => {
    let connection: { end(): void } | undefined;
    return {
      wrap(dataKey: Uint8Array, options: WrapOptions) {
        connection = { end: () => undefined };
        return sound.wrap(dataKey, options);
      },
      unwrap(wrapped: WrappedKey, options: WrapOptions) {
        connection = { end: () => undefined };
        return sound.unwrap(wrapped, options);
      },
      async close() {
        if (connection === undefined) throw new TypeError('the connection is undefined');
        connection.end();
      },
    };
  }),
  around('leaves a timer', 'WRAP-NO-TIMERS', (sound) => ({
    wrap(dataKey: Uint8Array, options: WrapOptions) {
      // Long enough to be detected, and ends by itself.
      setTimeout(() => undefined, 4_000);
      return sound.wrap(dataKey, options);
    },
  })),
  broken(
    'adds up the hashes of names and values',
    'WRAP-CONTEXT-BINDS',
    {
      bind(context, keyId) {
        const sum = Buffer.alloc(32);
        for (const word of Object.entries(context).flat()) {
          for (const [i, byte] of createHash('sha256').update(word).digest().entries()) sum[i] = (sum[i] ?? 0) ^ byte;
        }
        return Buffer.concat([Buffer.from(keyId), sum]);
      },
    },
    and('WRAP-CONTEXT-BOUNDARIES'),
  ),
  around('calls null a corrupt wrapped key', 'WRAP-ARGUMENT-BYTES', (sound) => ({
    async unwrap(wrapped: WrappedKey, options: WrapOptions) {
      if (typeof wrapped !== 'object' || wrapped === null) throw new ZooKeyWrapperError('corrupt', 'unwrap');
      return sound.unwrap(wrapped, options);
    },
  })),
  around('decodes a wrapped key that is base64 text', 'WRAP-ARGUMENT-BYTES', (sound) => ({
    unwrap: (wrapped: WrappedKey, options: WrapOptions) =>
      typeof wrapped?.wrapped === 'string'
        ? sound.unwrap({ ...wrapped, wrapped: Buffer.from(wrapped.wrapped, 'base64') }, options)
        : sound.unwrap(wrapped, options),
  })),
  made('does not bind the context of an earlier version', 'WRAP-ROTATED-REFUSES', lenientOfEarlier()),
  around('reports a changed wrap of an earlier version as not found', 'WRAP-ROTATED-REFUSES', (sound, { key }) => ({
    async unwrap(wrapped: WrappedKey, options: WrapOptions) {
      try {
        return await sound.unwrap(wrapped, options);
      } catch (error) {
        const isEarlier = key.versions.slice(0, -1).some(({ id }) => id === wrapped?.keyId);
        const isCorrupt = error instanceof ZooKeyWrapperError && error.kind === 'corrupt';
        throw isEarlier && isCorrupt ? new ZooKeyWrapperError('not-found', 'unwrap') : error;
      }
    },
  })),
  around('reports an outage before it looks at the wrapped key', 'WRAP-BEFORE-CALL', (sound, world) => {
    let isOut = false;
    return {
      async unwrap(wrapped: WrappedKey, options: WrapOptions) {
        if (isOut) throw new ZooKeyWrapperError('unavailable', 'unwrap');
        try {
          return await sound.unwrap(wrapped, options);
        } catch (error) {
          isOut = error instanceof ZooKeyWrapperError && error.kind === 'unavailable' && !world.isReachable;
          throw error;
        }
      },
    };
  }),
  around(
    'counts wraps in one byte',
    'WRAP-TWICE',
    (sound) => {
      let wraps = 0;
      return {
        async wrap(dataKey: Uint8Array, options: WrapOptions) {
          const wrapped = await sound.wrap(dataKey, options);
          Buffer.alloc(1).writeUInt8(wraps++);
          return wrapped;
        },
      };
    },
    and('WRAP-ROUNDTRIP'),
  ),
  around('gives the wrapped key as the id of its request', 'WRAP-ERROR-CAUSE', (sound) => ({
    async unwrap(wrapped: WrappedKey, options: WrapOptions) {
      try {
        return await sound.unwrap(wrapped, options);
      } catch (error) {
        if (error instanceof ZooKeyWrapperError) changeSummary(error, { requestId: hexOf(wrapped.wrapped) });
        throw error;
      }
    },
  })),
  around('gives every date to the first caller', 'WRAP-OPTIONS', (sound) => {
    let first: WrapOptions['onServiceDate'];
    return {
      async wrap(dataKey: Uint8Array, options: WrapOptions) {
        const wrapped = await sound.wrap(dataKey, options);
        first ??= options.onServiceDate;
        first?.(new Date());
        return wrapped;
      },
    };
  }),
  around('gives the date of its first answer', 'WRAP-OPTIONS', (sound) => {
    const date = new Date();
    return {
      async wrap(dataKey: Uint8Array, options: WrapOptions) {
        const wrapped = await sound.wrap(dataKey, options);
        options.onServiceDate?.(date);
        return wrapped;
      },
    };
  }),
];
