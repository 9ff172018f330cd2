import { isUtf8 } from 'node:buffer';
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createSecretKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  timingSafeEqual,
  verify,
} from 'node:crypto';
import { createSocket } from 'node:dgram';
import { readFileSync } from 'node:fs';
import { crc32, deflateRawSync, gunzipSync, inflateRawSync } from 'node:zlib';
import type { RequestStateCodec } from '@sealring/core';
import type { CodecTarget } from '../../src/index.ts';

/** A codec with one fault, and the requirement that must catch it. */
export interface BrokenCodec {
  readonly target: CodecTarget;
  readonly caughtBy: string;
}

class InvalidRequestState extends Error {
  override readonly name = 'InvalidRequestState';
}

/** Node takes ten times longer for a key as bytes. */
export const secretOf = (key: Uint8Array): KeyObject => createSecretKey(key);

const PREFIX = 'zoo1.';
const SHARED = randomBytes(32);
const refuse = (reason = 'authentication failed'): never => {
  throw new InvalidRequestState(reason);
};

/** The steps of the sound codec. A broken codec replaces one step. */
interface Steps {
  readonly nonce: (ordinal: number, payload: Uint8Array, key: Buffer) => Buffer;
  readonly encode: (bytes: Buffer) => string;
  readonly decode: (text: string) => Buffer;
  readonly parse: (token: string, decode: (text: string) => Buffer) => Buffer;
  readonly open: (key: Buffer, bytes: Buffer) => Buffer;
  readonly before: (payload: Uint8Array) => Uint8Array;
  readonly after: (payload: Buffer) => Uint8Array;
}

const SOUND: Steps = {
  nonce: () => randomBytes(12),
  encode: (bytes) => bytes.toString('base64url'),
  decode: (text) => {
    const bytes = Buffer.from(text, 'base64url');
    return bytes.toString('base64url') === text ? bytes : refuse('malformed');
  },
  parse: (token, decode) => {
    if (typeof token !== 'string' || !token.startsWith(PREFIX)) refuse('malformed');
    return decode(token.slice(PREFIX.length));
  },
  open(key, bytes) {
    if (bytes.length < 28) refuse('malformed');
    const decipher = createDecipheriv('aes-256-gcm', secretOf(key), bytes.subarray(0, 12), { authTagLength: 16 });
    decipher.setAAD(Buffer.from(PREFIX)).setAuthTag(bytes.subarray(-16));
    try {
      return Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()]);
    } catch {
      return refuse();
    }
  },
  before: (payload) => payload,
  after: (payload) => payload,
};

class ZooCodec implements RequestStateCodec {
  readonly #keys: readonly Buffer[];
  readonly #steps: Steps;
  #ordinal = 0;

  constructor(keys: readonly Buffer[], steps: Steps) {
    this.#keys = keys;
    this.#steps = steps;
  }

  seal(payload: Uint8Array): string {
    const key = this.#keys[0] as Buffer;
    const nonce = this.#steps.nonce(this.#ordinal++, payload, key);
    const cipher = createCipheriv('aes-256-gcm', secretOf(key), nonce, { authTagLength: 16 });
    cipher.setAAD(Buffer.from(PREFIX));
    const body = Buffer.concat([cipher.update(this.#steps.before(payload)), cipher.final()]);
    return PREFIX + this.#steps.encode(Buffer.concat([nonce, body, cipher.getAuthTag()]));
  }

  unseal(token: string): Uint8Array {
    const bytes = this.#steps.parse(token, this.#steps.decode);
    let failure: unknown;
    for (const key of this.#keys) {
      try {
        return this.#steps.after(this.#steps.open(key, bytes));
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }
}

/** A target with two keys, and codecs that use some of them. */
export function zooTarget(
  name: string,
  make: (keys: readonly Buffer[]) => RequestStateCodec,
  more: Partial<CodecTarget> = {},
): CodecTarget {
  const [a, b] = [randomBytes(32), randomBytes(32)];
  return {
    name,
    create: () => ({ codec: make([a]) }),
    createPeer: () => ({ codec: make([a]) }),
    createStranger: () => ({ codec: make([b]) }),
    createRotated: () => ({ codec: make([b, a]) }),
    ...more,
  };
}

export function soundCodec(steps: Partial<Steps> = {}): (keys: readonly Buffer[]) => RequestStateCodec {
  return (keys) => new ZooCodec(keys, { ...SOUND, ...steps });
}

function broken(name: string, caughtBy: string, steps: Partial<Steps>): BrokenCodec {
  return { target: zooTarget(name, soundCodec(steps)), caughtBy };
}

/** A sound codec inside a broken wrapper. */
function wrapped(
  name: string,
  caughtBy: string,
  wrap: (sound: RequestStateCodec) => object,
  more: Partial<CodecTarget> = {},
): BrokenCodec {
  const make = soundCodec();
  return { target: zooTarget(name, (keys) => wrap(make(keys)) as RequestStateCodec, more), caughtBy };
}

const both = (sound: RequestStateCodec, change: Partial<RequestStateCodec>): RequestStateCodec => ({
  seal: (payload) => sound.seal(payload),
  unseal: (token) => sound.unseal(token),
  ...change,
});

/** Seals once for all payloads of one length with an equal part. */
function cachingBy(what: string, partOf: (payload: Uint8Array) => number | string): BrokenCodec {
  return wrapped(`caches tokens by ${what}`, 'CODEC-ROUNDTRIP-BYTES', (sound) => {
    const tokens = new Map<string, string>();
    return both(sound, {
      seal(payload) {
        const key = `${payload.length} ${partOf(payload)}`;
        const token = tokens.get(key) ?? sound.seal(payload);
        tokens.set(key, token);
        return token;
      },
    });
  });
}

/** Returns to the old key after a rotation. */
function returning(
  name: string,
  make: (codecs: { readonly rotated: RequestStateCodec; readonly old: RequestStateCodec }) => RequestStateCodec,
): BrokenCodec {
  const target = zooTarget(name, (keys) => make({ rotated: soundCodec()(keys), old: soundCodec()(keys.slice(-1)) }));
  return { target, caughtBy: 'CODEC-ROTATED-SEALS' };
}

/** A codec that only signs and declares that. */
function readable(
  name: string,
  caughtBy: string,
  make: (keys: readonly [Buffer, ...Buffer[]]) => RequestStateCodec,
): BrokenCodec {
  const more = { supports: { confidentiality: false } };
  return { target: zooTarget(name, (keys) => make(keys as [Buffer]), more), caughtBy };
}

const signers = new Map<string, { readonly privateKey: KeyObject; readonly publicKey: KeyObject }>();

function macOf(key: Buffer, content: string): string {
  return createHmac('sha256', secretOf(key)).update(content).digest('base64url');
}

function openGcm(key: Buffer, bytes: Buffer): Buffer {
  const decipher = createDecipheriv('aes-256-gcm', secretOf(key), bytes.subarray(0, 12), { authTagLength: 16 });
  decipher.setAuthTag(bytes.subarray(-16));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()]);
  } catch {
    return refuse();
  }
}

function openLoosely(key: Buffer, bytes: Buffer): Buffer {
  if (bytes.length < 28) refuse('malformed');
  const decipher = createDecipheriv('aes-256-gcm', secretOf(key), bytes.subarray(0, 12), { authTagLength: 16 });
  return decipher.update(bytes.subarray(12, -16));
}

function outcomeOf(codec: RequestStateCodec, token: string): { payload: Uint8Array } | { error: unknown } {
  try {
    return { payload: codec.unseal(token) };
  } catch (error) {
    return { error };
  }
}

function firstOf(one: RequestStateCodec, other: RequestStateCodec, token: string): Uint8Array {
  const outcome = outcomeOf(one, token);
  return 'payload' in outcome ? outcome.payload : other.unseal(token);
}

/** Adds text to the refusal. */
function orRefuse(codec: RequestStateCodec, token: string, more: object): Uint8Array {
  const outcome = outcomeOf(codec, token);
  if ('payload' in outcome) return outcome.payload;
  throw Object.assign(outcome.error as Error, more);
}

const sha256 = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest();
/** A counter in this process, shared by all keys. */
let nonces = 0;

const lenient = (text: string): Buffer => Buffer.from(text, 'base64url');

/** Seals with the nonce of the previous token after another call. */
function nonceAfter(what: 'unseal' | 'refusal'): (sound: RequestStateCodec) => RequestStateCodec {
  const key = randomBytes(32);
  return () => {
    let [nonce, isDue] = [randomBytes(12), false];
    const codec = soundCodec({
      nonce() {
        if (!isDue) nonce = randomBytes(12);
        isDue = false;
        return nonce;
      },
    })([key]);
    return both(codec, {
      unseal(token) {
        try {
          const payload = codec.unseal(token);
          isDue = what === 'unseal';
          return payload;
        } catch (error) {
          isDue = what === 'refusal';
          throw error;
        }
      },
    });
  };
}

/** Tokens that contain the time of sealing; a token is accepted or refused by its age in seconds. */
function timed(sound: RequestStateCodec, accepts: (ageSeconds: number) => boolean): RequestStateCodec {
  return {
    seal(payload) {
      const at = Buffer.alloc(8);
      at.writeDoubleBE(Date.now());
      return sound.seal(Buffer.concat([at, payload]));
    },
    unseal(token) {
      const opened = Buffer.from(sound.unseal(token));
      if (!accepts((Date.now() - opened.readDoubleBE()) / 1_000)) refuse('expired');
      return Uint8Array.from(opened.subarray(8));
    },
  };
}

export const BROKEN_CODECS: readonly BrokenCodec[] = [
  broken('decodes base64 leniently', 'CODEC-CANONICAL-LAST-CHAR', { decode: lenient }),
  broken('accepts padding', 'CODEC-CANONICAL-PADDING', { decode: (text) => SOUND.decode(text.replace(/=+$/, '')) }),
  broken('strips white space', 'CODEC-CANONICAL-SPACE', { decode: (text) => SOUND.decode(text.replace(/\s/g, '')) }),
  broken('accepts the standard alphabet', 'CODEC-CANONICAL-ALPHABET', {
    decode: (text) => SOUND.decode(text.replaceAll('+', '-').replaceAll('/', '_')),
  }),
  broken('decodes hex in any case', 'CODEC-CANONICAL-CASE', {
    encode: (bytes) => bytes.toString('hex'),
    decode: (text) => (/^(?:[0-9a-fA-F]{2})*$/.test(text) ? Buffer.from(text, 'hex') : refuse('malformed')),
  }),
  broken('keeps the low byte of a character', 'CODEC-CANONICAL-UNICODE', {
    decode: (text) => SOUND.decode(Buffer.from(text, 'latin1').toString('latin1')),
  }),
  broken('percent-decodes first', 'CODEC-CANONICAL-PERCENT', {
    parse: (token, decode) =>
      SOUND.parse(
        token.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
        decode,
      ),
  }),
  broken('does not authenticate the prefix', 'CODEC-BIT-FLIP', {
    parse: (token, decode) => decode(typeof token === 'string' ? token.slice(PREFIX.length) : refuse()),
  }),
  broken('accepts short tags', 'CODEC-TRUNCATION', {
    open(key, bytes) {
      if (bytes.length < 28) refuse('malformed');
      for (const tagLength of [16, 15, 14, 13, 12]) {
        const length = tagLength as 16;
        try {
          const decipher = createDecipheriv('aes-256-gcm', secretOf(key), bytes.subarray(0, 12), {
            authTagLength: length,
          });
          const end = bytes.length - tagLength;
          decipher.setAAD(Buffer.from(PREFIX)).setAuthTag(bytes.subarray(end));
          return Buffer.concat([decipher.update(bytes.subarray(12, end)), decipher.final()]);
        } catch {
          continue;
        }
      }
      // Truncated tags: the missing bytes are not checked.
      const decipher = createDecipheriv('aes-256-gcm', secretOf(key), bytes.subarray(0, 12));
      return Buffer.concat([decipher.setAAD(Buffer.from(PREFIX)).update(bytes.subarray(12, -15))]);
    },
  }),
  broken('ignores text after the tag', 'CODEC-EXTENSION', {
    parse: (token, decode) => SOUND.parse(token.split('~')[0] ?? '', decode),
  }),
  broken('uses a constant nonce', 'CODEC-KEYSTREAM', { nonce: () => Buffer.alloc(12) }),
  broken('uses a nonce from a counter that restarts', 'CODEC-KEYSTREAM', {
    nonce: (ordinal) => {
      const nonce = Buffer.alloc(12);
      nonce.writeUInt32BE(ordinal);
      return nonce;
    },
  }),
  broken('nonce of eight bits', 'CODEC-REPEATS', { nonce: () => Buffer.concat([Buffer.alloc(11), randomBytes(1)]) }),
  broken('nonce from the payload', 'CODEC-KEYLESS', { nonce: (_, payload) => sha256(payload).subarray(0, 12) }),
  broken('derives the nonce from the first bytes and a counter', 'CODEC-KEYLESS', {
    nonce(_, payload) {
      const nonce = Buffer.alloc(12);
      nonce.set(payload.subarray(0, 8));
      nonce.writeUInt32BE(nonces++, 8);
      return nonce;
    },
  }),
  broken('derives the nonce from a short digest of the payload', 'CODEC-KEYLESS', {
    nonce: (_, payload) => Buffer.concat([sha256(payload).subarray(0, 4), Buffer.alloc(8)]),
  }),
  broken('derives the nonce from a short digest and random bytes', 'CODEC-KEYLESS', {
    nonce: (_, payload) => Buffer.concat([sha256(payload).subarray(0, 2), randomBytes(4), Buffer.alloc(6)]),
  }),
  broken('derives the nonce from a short keyed digest', 'CODEC-KEYSTREAM', {
    nonce: (_, payload, key) =>
      Buffer.concat([createHmac('sha256', secretOf(key)).update(payload).digest().subarray(0, 2), Buffer.alloc(10)]),
  }),
  broken('derives the nonce from a counter and the beginning of the payload', 'CODEC-KEYSTREAM', {
    nonce: (ordinal, payload, key) =>
      createHmac('sha256', secretOf(key))
        .update(`${ordinal}:`)
        .update(payload.subarray(0, 64))
        .digest()
        .subarray(0, 12),
  }),
  broken('derives the nonce from a counter and the end of the payload', 'CODEC-KEYSTREAM', {
    nonce: (ordinal, payload, key) =>
      createHmac('sha256', secretOf(key)).update(`${ordinal}:`).update(payload.subarray(-64)).digest().subarray(0, 12),
  }),
  broken('stores JSON instead of bytes', 'CODEC-ROUNDTRIP-BYTES', {
    before: (payload) => Buffer.from(JSON.stringify(Buffer.from(payload).toString())),
    after: (payload) => Buffer.from(String(JSON.parse(payload.toString()))),
  }),
  broken('stores text instead of bytes', 'CODEC-ROUNDTRIP-BYTES', {
    before: (payload) => Buffer.from(Buffer.from(payload).toString('utf8')),
  }),
  broken('strips trailing zeros', 'CODEC-ROUNDTRIP-BYTES', {
    after: (payload) => payload.subarray(0, payload.findLastIndex((byte) => byte !== 0) + 1),
  }),
  broken('refuses an empty payload', 'CODEC-ROUNDTRIP-BYTES', {
    after: (payload) => (payload.length === 0 ? refuse() : payload),
  }),
  broken('truncates at 4 KiB', 'CODEC-ROUNDTRIP-BYTES', { before: (payload) => payload.subarray(0, 4_096) }),
  broken('reads the whole buffer of a view', 'CODEC-ROUNDTRIP-VIEW', {
    before: (payload) => Buffer.from(payload.buffer),
  }),
  wrapped('divides a token at each tilde by recursion', 'CODEC-REFUSAL-CLASS', (sound) =>
    both(sound, {
      unseal(token) {
        const split = (some: string): readonly string[] => {
          const at = some.indexOf('~');
          return at < 0 ? [some] : [some.slice(0, at), ...split(some.slice(at + 1))];
        };
        const parts = split(token);
        return parts.length === 2 && parts[0] === 'v1' ? sound.unseal(parts[1] ?? '') : refuse();
      },
      seal: (payload) => `v1~${sound.seal(payload)}`,
    }),
  ),
  broken('reads the whole buffer of an empty view', 'CODEC-ROUNDTRIP-VIEW', {
    before: (payload) => (payload.length === 0 ? Buffer.from(payload.buffer) : payload),
  }),
  broken('takes bytes for text after 1 024 letters', 'CODEC-ROUNDTRIP-BYTES', {
    before: (payload) =>
      payload.length > 1_024 && payload.subarray(0, 1_024).every((byte) => byte >= 0x20 && byte < 0x7f)
        ? Buffer.from(Buffer.from(payload).toString())
        : payload,
  }),
  broken('keeps numbers of eight bytes, but not their bits', 'CODEC-ROUNDTRIP-BYTES', {
    before(payload) {
      if (payload.length !== 8) return payload;
      const number = Buffer.from(payload).readDoubleLE();
      if (!Number.isNaN(number)) return payload;
      const bytes = Buffer.alloc(8);
      bytes.writeDoubleLE(Number.NaN);
      return bytes;
    },
  }),
  broken('compresses before encryption', 'CODEC-NO-COMPRESSION', {
    before: (payload) => deflateRawSync(payload),
    after: (payload) => inflateRawSync(payload),
  }),
  wrapped('modifies the caller’s buffer', 'CODEC-CALLERS-BUFFER', (sound) =>
    both(sound, {
      seal(payload) {
        const token = sound.seal(payload);
        payload.fill(0);
        return token;
      },
    }),
  ),
  wrapped('returns the buffer passed to seal', 'CODEC-OWN-RESULT', (sound) => {
    const sealed = new Map<string, Uint8Array>();
    return both(sound, {
      seal(payload) {
        const token = sound.seal(payload);
        sealed.set(token, payload);
        return token;
      },
      unseal: (token) => sealed.get(token) ?? sound.unseal(token),
    });
  }),
  wrapped('returns null instead of throwing', 'CODEC-GARBAGE', (sound) =>
    both(sound, {
      unseal(token) {
        try {
          return sound.unseal(token);
        } catch {
          return null as unknown as Uint8Array;
        }
      },
    }),
  ),
  wrapped('throws a TypeError on short input', 'CODEC-REFUSAL-CLASS', (sound) =>
    both(sound, {
      unseal(token) {
        if (token.length < 8) throw new TypeError('too short');
        return sound.unseal(token);
      },
    }),
  ),
  {
    target: zooTarget('throws the last error of several keys', (keys) => {
      const sound = soundCodec()(keys);
      return both(sound, {
        unseal(token) {
          try {
            return sound.unseal(token);
          } catch (error) {
            throw keys.length > 1 ? new Error('unable to authenticate data') : error;
          }
        },
      });
    }),
    caughtBy: 'CODEC-REFUSAL-CLASS',
  },
  broken('decodes long tokens leniently', 'CODEC-CANONICAL-ALPHABET', {
    decode: (text) => (text.length > 1_024 ? Buffer.from(text, 'base64url') : SOUND.decode(text)),
  }),
  wrapped('parses the number of its key leniently', 'CODEC-EXTENSION', (sound) =>
    both(sound, {
      seal: (payload) => `7.${sound.seal(payload)}`,
      unseal(token) {
        const [number = '', ...rest] = typeof token === 'string' ? token.split('.') : [];
        return Number.parseInt(number, 10) === 7 ? sound.unseal(rest.join('.')) : refuse('unknown key');
      },
    }),
  ),
  wrapped('throws an assertion error for what is no text', 'CODEC-NOT-TEXT-CLASS', (sound) =>
    both(sound, {
      unseal(token) {
        if (typeof token !== 'string') throw new Error('assertion failed');
        return sound.unseal(token);
      },
    }),
  ),
  wrapped('throws a RangeError on long input', 'CODEC-REFUSAL-CLASS', (sound) =>
    both(sound, {
      unseal(token) {
        if (token.length > 10_000) throw new RangeError('too long');
        return sound.unseal(token);
      },
    }),
  ),
  wrapped('shows the token in a refusal', 'CODEC-REFUSAL-TOKEN', (sound) =>
    both(sound, {
      unseal(token) {
        try {
          return sound.unseal(token);
        } catch {
          throw new InvalidRequestState(`refused ${token}`);
        }
      },
    }),
  ),
  wrapped('shows the payload in a refusal', 'CODEC-REFUSAL-SECRET', (sound) => {
    let last: Uint8Array = new Uint8Array(0);
    return both(sound, {
      seal(payload) {
        last = payload;
        return sound.seal(payload);
      },
      unseal(token) {
        try {
          return sound.unseal(token);
        } catch (error) {
          throw Object.assign(new InvalidRequestState('authentication failed'), {
            cause: error,
            state: Buffer.from(last).toString(),
          });
        }
      },
    });
  }),
  wrapped('refuses with a long message', 'CODEC-REFUSAL-REASON', (sound) =>
    both(sound, {
      unseal(token) {
        try {
          return sound.unseal(token);
        } catch {
          throw new InvalidRequestState('the state that came back is not one that this server has sealed');
        }
      },
    }),
  ),
  wrapped('caches by the first characters', 'CODEC-AFTER-REFUSAL', (sound) => {
    const opened = new Map<string, Uint8Array>();
    return both(sound, {
      unseal(token) {
        const known = opened.get(token.slice(0, 20));
        if (known !== undefined && token.length > 20) return Uint8Array.from(known);
        const payload = sound.unseal(token);
        opened.set(token.slice(0, 20), payload);
        return payload;
      },
    });
  }),
  ...(['aes-256-ecb', 'aes-256-cbc'] as const).map((cipher) => ({
    target: zooTarget(`${cipher} with a fixed initialization vector, and signed`, (keys) => {
      const signing = signOnly(keys);
      const vector = cipher === 'aes-256-ecb' ? null : Buffer.alloc(16);
      const [encrypting] = keys as [Buffer];
      return {
        seal(payload) {
          const sealing = createCipheriv(cipher, keys[0] as Buffer, vector);
          return signing.seal(Buffer.concat([sealing.update(payload), sealing.final()]));
        },
        unseal(token) {
          const body = signing.unseal(token);
          const key = keys.find((one) => signOnly([one]).seal(body) === token) ?? encrypting;
          const opening = createDecipheriv(cipher, key, vector);
          return Buffer.concat([opening.update(body), opening.final()]);
        },
      };
    }),
    caughtBy: 'CODEC-PATTERN',
  })),
  wrapped('returns views of a pool', 'CODEC-OWN-RESULT', (sound) => {
    const pool = Buffer.alloc(1 << 20);
    return both(sound, {
      unseal(token) {
        const payload = sound.unseal(token);
        pool.set(payload);
        return pool.subarray(0, payload.length);
      },
    });
  }),
  {
    target: zooTarget(
      'authenticates only the first 4 KiB',
      (keys) => {
        const signing = signOnly(keys);
        const head = (bytes: Uint8Array): Uint8Array => bytes.subarray(0, 4_096);
        return {
          seal: (payload) => {
            const rest = Buffer.from(payload.subarray(4_096)).toString('base64url');
            return `${signing.seal(head(payload))}.${rest}`;
          },
          unseal(token) {
            const [first = '', rest = ''] = typeof token === 'string' ? token.split('.', 2) : refuse();
            if (token !== `${first}.${SOUND.decode(rest).toString('base64url')}`) refuse('malformed');
            return Buffer.concat([signing.unseal(first), SOUND.decode(rest)]);
          },
        };
      },
      { supports: { confidentiality: false } },
    ),
    caughtBy: 'CODEC-LONG-PAYLOAD',
  },
  {
    target: zooTarget(
      'authenticates decoded text',
      (keys) => {
        const signing = signOnly(keys);
        const asText = (bytes: Uint8Array): Buffer => Buffer.from(Buffer.from(bytes).toString('utf8'));
        const tagOf = (payload: Uint8Array): string => signing.seal(asText(payload)).slice(0, 43);
        return {
          seal: (payload) => `${tagOf(payload)}.${Buffer.from(payload).toString('base64url')}`,
          unseal(token) {
            const [tag = '', body = '', ...more] = typeof token === 'string' ? token.split('.') : refuse();
            const payload = SOUND.decode(body);
            const signed = keys.some((key) => signOnly([key]).seal(asText(payload)).slice(0, 43) === tag);
            return signed && more.length === 0 ? payload : refuse();
          },
        };
      },
      { supports: { confidentiality: false } },
    ),
    caughtBy: 'CODEC-BIT-FLIP',
  },
  wrapped('accepts its prefix twice', 'CODEC-EXTENSION', (sound) =>
    both(sound, {
      unseal: (token) =>
        sound.unseal(
          typeof token === 'string' && token.startsWith(PREFIX + PREFIX) ? token.slice(PREFIX.length) : token,
        ),
    }),
  ),
  wrapped('accepts a Buffer as a token', 'CODEC-NOT-TEXT', (sound) =>
    both(sound, {
      unseal: (token: unknown) => sound.unseal(Buffer.isBuffer(token) ? token.toString() : (token as string)),
    }),
  ),
  broken('derives the nonce from a long payload', 'CODEC-DISTINCT', {
    nonce: (_, payload) => (payload.length < 4_096 ? randomBytes(12) : sha256(payload).subarray(0, 12)),
  }),
  wrapped('returns short results as views of the places of a pool, in turn', 'CODEC-OWN-RESULT', (sound) => {
    const pool = Buffer.alloc(500 * 64);
    let turn = 0;
    return {
      seal: (payload: Uint8Array) => sound.seal(payload),
      unseal(token: string) {
        const payload = sound.unseal(token);
        if (payload.length > 64) return payload;
        turn = (turn + 1) % 500;
        pool.set(payload, turn * 64);
        return pool.subarray(turn * 64, turn * 64 + payload.length);
      },
    };
  }),
  wrapped('keeps its payloads', 'CODEC-NOT-KEPT', (sound) => {
    const kept: Uint8Array[] = [];
    return {
      seal(payload: Uint8Array) {
        kept.push(payload);
        return sound.seal(payload);
      },
      unseal: (token: string) => sound.unseal(token),
    };
  }),
  wrapped('shows its last payloads', 'CODEC-NOT-KEPT', (sound) => {
    const last: string[] = [];
    return {
      last,
      seal(payload: Uint8Array) {
        last.push(Buffer.from(payload).toString('base64'));
        return sound.seal(payload);
      },
      unseal: (token: string) => sound.unseal(token),
    };
  }),
  wrapped('refuses tokens that are older than two seconds', 'CODEC-ANY-ORDER', (sound) =>
    dated(sound, (sealedMs) => Date.now() - sealedMs > 2_000),
  ),
  wrapped('refuses tokens that are older than itself', 'CODEC-ANY-ORDER', (sound) => {
    // Instances that were created at the same moment pass.
    const oldestMs = Date.now() - 1_000;
    return dated(sound, (sealedMs) => sealedMs < oldestMs);
  }),
  { target: wipingTarget(), caughtBy: 'CODEC-CLOSE-ALONE' },
  wrapped('returns short results as views of a pool', 'CODEC-OWN-RESULT', (sound) => {
    const pool = Buffer.alloc(64);
    return both(sound, {
      unseal(token) {
        const payload = sound.unseal(token);
        if (payload.length > pool.length) return payload;
        pool.set(payload);
        return pool.subarray(0, payload.length);
      },
    });
  }),
  wrapped('caches a payload at its third unseal', 'CODEC-OWN-RESULT', (sound) => {
    const times = new Map<string, number>();
    const kept = new Map<string, Uint8Array>();
    return both(sound, {
      unseal(token) {
        const payload = kept.get(token) ?? sound.unseal(token);
        const time = (times.get(token) ?? 0) + 1;
        times.set(token, time);
        if (time >= 3) kept.set(token, payload);
        return payload;
      },
    });
  }),
  wrapped('ignores a URL fragment', 'CODEC-EXTENSION', (sound) =>
    both(sound, { unseal: (token) => sound.unseal(typeof token === 'string' ? (token.split('#')[0] ?? '') : token) }),
  ),
  wrapped('fails at 128 bytes', 'CODEC-ROUNDTRIP-BYTES', (sound) =>
    both(sound, { seal: (payload) => sound.seal(payload.length === 128 ? payload.subarray(1) : payload) }),
  ),
  wrapped('normalizes line endings', 'CODEC-ROUNDTRIP-BYTES', (sound) =>
    both(sound, {
      seal: (payload) =>
        sound.seal(Buffer.from(Buffer.from(payload).toString('latin1').replaceAll('\r\n', '\n'), 'latin1')),
    }),
  ),
  wrapped('shows the payload as numbers', 'CODEC-REFUSAL-SECRET', (sound) => {
    let last: Uint8Array = new Uint8Array(0);
    return both(sound, {
      seal(payload) {
        last = Uint8Array.from(payload);
        return sound.seal(payload);
      },
      unseal(token) {
        try {
          return sound.unseal(token);
        } catch {
          throw Object.defineProperty(new InvalidRequestState('authentication failed'), 'partial', {
            value: last,
            enumerable: false,
          });
        }
      },
    });
  }),
  wrapped('locks out after a thousand refusals', 'CODEC-AFTER-REFUSAL', (sound) => {
    let refused = 0;
    return both(sound, {
      unseal(token) {
        if (refused > 1_000) refuse('locked');
        try {
          return sound.unseal(token);
        } catch (error) {
          refused += 1;
          throw error;
        }
      },
    });
  }),
  {
    target: (() => {
      const make = soundCodec();
      const target = zooTarget('a peer that unseals only short tokens', make);
      const createPeer: CodecTarget['createPeer'] = async () => {
        const { codec } = await target.createPeer();
        return {
          codec: both(codec, { unseal: (token) => (token.length > 2_000 ? refuse('too long') : codec.unseal(token)) }),
        };
      };
      return { ...target, createPeer };
    })(),
    caughtBy: 'CODEC-PEER',
  },
  wrapped('sets the exit code', 'CODEC-NO-GLOBALS', (sound) =>
    both(sound, {
      seal(payload) {
        process.exitCode = 0;
        return sound.seal(payload);
      },
    }),
  ),
  wrapped('sets the time zone', 'CODEC-NO-GLOBALS', (sound) =>
    both(sound, {
      unseal(token) {
        process.env['TZ'] = 'UTC';
        return sound.unseal(token);
      },
    }),
  ),
  wrapped('asynchronous', 'CODEC-SYNCHRONOUS', (sound) => ({
    seal: async (payload: Uint8Array) => sound.seal(payload),
    unseal: async (token: string) => sound.unseal(token),
  })),
  wrapped('returns text', 'CODEC-SYNCHRONOUS', (sound) => ({
    seal: (payload: Uint8Array) => sound.seal(payload),
    unseal: (token: string) => Buffer.from(sound.unseal(token)).toString(),
  })),
  wrapped('leaves a timer', 'CODEC-NO-TIMERS', (sound) =>
    both(sound, {
      seal(payload) {
        setTimeout(() => undefined, 60_000);
        return sound.seal(payload);
      },
    }),
  ),
  wrapped('leaves an unreferenced timer', 'CODEC-NO-TIMERS', (sound) =>
    both(sound, {
      unseal(token) {
        setInterval(() => undefined, 60_000).unref();
        return sound.unseal(token);
      },
    }),
  ),
  wrapped('starts a timer on creation', 'CODEC-ENDS', (sound) => {
    // This timer lasts long enough to be detected, and ends by itself.
    setTimeout(() => undefined, 3_000);
    return sound;
  }),
  wrapped('starts a timer with the hundredth token', 'CODEC-ENDS', (sound) => {
    let sealed = 0;
    return both(sound, {
      seal(payload) {
        if (++sealed === 100) void Promise.resolve().then(() => setTimeout(() => undefined, 3_000));
        return sound.seal(payload);
      },
    });
  }),
  wrapped('takes seconds to refuse garbage', 'CODEC-HUGE-QUICK', (sound) =>
    both(sound, {
      unseal(token) {
        const until = performance.now() + (typeof token === 'string' && token.length > 5_000_000 ? 2_500 : 0);
        while (performance.now() < until);
        return sound.unseal(token);
      },
    }),
  ),
  wrapped('patches a getter of a prototype', 'CODEC-NO-GLOBALS', (sound) =>
    both(sound, {
      seal(payload) {
        const prototype: object = Map.prototype;
        const size = Object.getOwnPropertyDescriptor(prototype, 'size');
        const patched = function (this: unknown): unknown {
          return Reflect.apply(Reflect.get(size ?? {}, 'get') as () => unknown, this, []);
        };
        Object.defineProperty(prototype, 'size', { get: patched, configurable: true });
        return sound.seal(payload);
      },
    }),
  ),
  wrapped('patches an unnamed prototype on creation', 'CODEC-NO-GLOBALS', (sound) => {
    const prototype = Reflect.getPrototypeOf(Uint8Array.prototype) ?? {};
    Object.defineProperty(prototype, 'sealed', { value: {}, configurable: true });
    return sound;
  }),
  wrapped('ends the process', 'CODEC-NO-EXIT', (sound) =>
    both(sound, {
      unseal(token) {
        try {
          return sound.unseal(token);
        } catch {
          process.exit(1);
        }
      },
    }),
  ),
  wrapped('patches a built-in', 'CODEC-NO-GLOBALS', (sound) =>
    both(sound, {
      seal(payload) {
        const prototype: object = Array.prototype;
        Object.defineProperty(prototype, 'sealed', { value: {}, configurable: true });
        return sound.seal(payload);
      },
    }),
  ),
  wrapped('unseals only the last hundred tokens', 'CODEC-ANY-ORDER', (sound) => {
    const known: string[] = [];
    return both(sound, {
      seal(payload) {
        known.push(sound.seal(payload));
        if (known.length > 100) known.shift();
        return known.at(-1) ?? '';
      },
      unseal: (token) => (known.includes(token) ? sound.unseal(token) : refuse()),
    });
  }),
  wrapped('unseals a token only once', 'CODEC-ANY-ORDER', (sound) => {
    const opened = new Set<string>();
    return both(sound, {
      unseal(token) {
        if (opened.has(token)) refuse();
        const payload = sound.unseal(token);
        opened.add(token);
        return payload;
      },
    });
  }),
  wrapped('takes the algorithm from the token', 'CODEC-DOWNGRADE', (sound) =>
    both(sound, {
      seal: (payload) => `gcm.${sound.seal(payload)}`,
      unseal(token) {
        const [algorithm = '', ...rest] = token.split('.');
        if (algorithm === 'none') return Buffer.from(rest.join('.'), 'base64url');
        return algorithm === 'gcm' ? sound.unseal(rest.join('.')) : refuse();
      },
    }),
  ),
  wrapped('accepts an old version without a check', 'CODEC-DOWNGRADE', (sound) =>
    both(sound, {
      unseal: (token) => (token.startsWith('zoo0.') ? Buffer.from(token) : sound.unseal(token)),
    }),
  ),
  wrapped('accepts the algorithm none in a header', 'CODEC-DOWNGRADE', (sound) => {
    const header = Buffer.from('{"alg":"A256GCM","kid":"1"}').toString('base64url');
    return both(sound, {
      seal: (payload) => `${header}.${sound.seal(payload).slice(PREFIX.length)}`,
      unseal(token) {
        const [given = '', body = '', ...more] = token.split('.');
        const text = Buffer.from(given, 'base64url').toString();
        if (text.includes('"alg":"none"')) return Buffer.from(body, 'base64url');
        return given === header && more.length === 0 ? sound.unseal(PREFIX + body) : refuse();
      },
    });
  }),
  {
    target: zooTarget('tag of one byte', (keys) => signOnly(keys, 1), { supports: { confidentiality: false } }),
    caughtBy: 'CODEC-FORGE',
  },
  {
    target: zooTarget('tag of four bytes', (keys) => signOnly(keys, 4), { supports: { confidentiality: false } }),
    caughtBy: 'CODEC-TAG-LENGTH',
  },
  wrapped('compares tags byte by byte', 'CODEC-TIMING', (sound) => {
    const tagOf = (token: string): Buffer => createHmac('sha256', SHARED).update(token).digest().subarray(0, 16);
    return both(sound, {
      seal(payload) {
        const token = sound.seal(payload).slice(PREFIX.length);
        return Buffer.concat([Buffer.from(token, 'base64url'), tagOf(token)]).toString('base64url');
      },
      unseal(text) {
        const bytes = SOUND.decode(text);
        const token = bytes.subarray(0, -16).toString('base64url');
        const tag = tagOf(token);
        for (let i = 0; i < 16; i++) {
          if (bytes[bytes.length - 16 + i] !== tag[i]) refuse();
          // Simulates a comparison in a slow language.
          tagOf(token);
        }
        return sound.unseal(PREFIX + token);
      },
    });
  }),
  broken('pads its base64', 'CODEC-TOKEN-UNRESERVED', {
    encode: (bytes) => `${bytes.toString('base64url')}${'='.repeat((3 - (bytes.length % 3)) % 3)}`,
    decode(text) {
      const bytes = Buffer.from(text, 'base64url');
      const padded = `${bytes.toString('base64url')}${'='.repeat((3 - (bytes.length % 3)) % 3)}`;
      return padded === text ? bytes : refuse('malformed');
    },
  }),
  {
    target: zooTarget('inverts bits instead of encrypting', (keys) => {
      const turned = (bytes: Uint8Array): Buffer => Buffer.from(bytes.map((byte) => byte ^ 0xa5));
      const signing = signOnly(keys);
      return { seal: (payload) => signing.seal(turned(payload)), unseal: (token) => turned(signing.unseal(token)) };
    }),
    caughtBy: 'CODEC-KEYLESS',
  },
  wrapped('adds a digest of the payload', 'CODEC-KEYLESS', (sound) => {
    const digestOf = (payload: Uint8Array): string => createHash('sha256').update(payload).digest('base64url');
    return both(sound, {
      seal: (payload) => `${digestOf(payload)}.${sound.seal(payload)}`,
      unseal(token) {
        const payload = sound.unseal(token.slice(44));
        return token.startsWith(`${digestOf(payload)}.`) ? payload : refuse();
      },
    });
  }),
  ...Object.entries({
    JSON: (payload: Uint8Array) => payload[0] === 0x7b,
    text: (payload: Uint8Array) => isUtf8(payload),
    ASCII: (payload: Uint8Array) => payload.every((byte) => byte < 0x80),
    numbers: (payload: Uint8Array) => /^\d+$/.test(Buffer.from(payload).toString('latin1')),
    'equal bytes': (payload: Uint8Array) => payload.every((byte) => byte === payload[0]),
  }).map(([kind, is]) =>
    wrapped(`shows whether the payload is ${kind}`, 'CODEC-KEYLESS', (sound) => {
      const mark = (payload: Uint8Array): string => (is(payload) ? 'A' : 'B');
      return both(sound, {
        seal: (payload) => mark(payload) + sound.seal(payload),
        unseal(token) {
          const payload = sound.unseal(token.slice(1));
          return token.startsWith(mark(payload)) ? payload : refuse();
        },
      });
    }),
  ),
  wrapped('adds a checksum of the payload', 'CODEC-KEYLESS', (sound) => {
    const sumOf = (payload: Uint8Array): string => crc32(payload).toString(16).padStart(8, '0');
    return both(sound, {
      seal: (payload) => `${sumOf(payload)}.${sound.seal(payload)}`,
      unseal(token) {
        const payload = sound.unseal(token.slice(9));
        return token.startsWith(`${sumOf(payload)}.`) ? payload : refuse();
      },
    });
  }),
  // The checksum is encrypted with the payload and replaces a tag.
  ...(
    [
      ['CRC-32', checksum],
      ['SHA-256', sha256],
    ] as const
  ).map(([name, digestOf]) => ({
    target: zooTarget(`uses a ${name} of the payload as tag`, (keys) =>
      inCounterMode(keys, {
        before: (_, payload) => Buffer.concat([payload, digestOf(payload)]),
        after(_, whole) {
          const length = digestOf(whole).length;
          const payload = whole.subarray(0, -length);
          return whole.length >= length && digestOf(payload).equals(whole.subarray(-length)) ? payload : refuse();
        },
      }),
    ),
    caughtBy: 'CODEC-FORGE',
  })),
  {
    target: zooTarget('uses a short SHA-1 before the payload as tag', (keys) => {
      const digestOf = (payload: Uint8Array): Buffer => createHash('sha1').update(payload).digest().subarray(0, 12);
      return inCounterMode(keys, {
        before: (_, payload) => Buffer.concat([digestOf(payload), payload]),
        after: (_, whole) =>
          digestOf(whole.subarray(12)).equals(whole.subarray(0, 12)) ? whole.subarray(12) : refuse(),
      });
    }),
    caughtBy: 'CODEC-FORGE',
  },
  {
    target: zooTarget(
      'uses a keyed checksum as tag',
      (keys) =>
        tagged(keys, (key, body) =>
          Buffer.concat(
            [0, 1, 2, 3].map((i) => checksum(Buffer.concat([sha256(Buffer.concat([key, Buffer.of(i)])), body]))),
          ),
        ),
      { supports: { confidentiality: false } },
    ),
    caughtBy: 'CODEC-SPLICE',
  },
  {
    target: zooTarget(
      'uses the MAC of a checksum as tag',
      (keys) => tagged(keys, (key, body) => createHmac('sha256', secretOf(key)).update(checksum(body)).digest()),
      { supports: { confidentiality: false } },
    ),
    caughtBy: 'CODEC-FORGE',
  },
  {
    target: zooTarget(
      'uses the MAC of a sum as tag',
      (keys) =>
        tagged(keys, (key, body) => {
          const sum = body.reduce((total, byte) => total + byte, 0);
          return createHmac('sha256', secretOf(key)).update(`${body.length} ${sum}`).digest();
        }),
      { supports: { confidentiality: false } },
    ),
    caughtBy: 'CODEC-SPLICE',
  },
  {
    target: zooTarget('uses an XOR as tag', (keys) => {
      const hiding = (key: Buffer): RequestStateCodec =>
        inCounterMode([key], { before: (_, one) => one, after: (_, one) => one });
      const tagOf = (key: Buffer, body: Buffer): Buffer => {
        const tag = Buffer.from(sha256(Buffer.concat([key, Buffer.from(String(body.length))])).subarray(0, 16));
        for (const [i, byte] of body.entries()) tag[i % 16] = (tag[i % 16] ?? 0) ^ byte;
        return tag;
      };
      return {
        seal(payload) {
          const [key] = keys as [Buffer];
          const body = Buffer.from(hiding(key).seal(payload), 'base64url');
          return Buffer.concat([body, tagOf(key, body)]).toString('base64url');
        },
        unseal(token) {
          const bytes = typeof token === 'string' ? SOUND.decode(token) : refuse();
          if (bytes.length < 32) refuse('malformed');
          const [body, tag] = [bytes.subarray(0, -16), bytes.subarray(-16)];
          const key = keys.find((one) => tagOf(one, body).equals(tag)) ?? refuse();
          return hiding(key).unseal(body.toString('base64url'));
        },
      };
    }),
    caughtBy: 'CODEC-SPLICE',
  },
  {
    target: (() => {
      // All codecs of the process share one cache of unsealed tokens.
      const opened = new Map<string, Uint8Array>();
      return zooTarget('shares a cache with strangers', (keys) => {
        const sound = soundCodec()(keys);
        return both(sound, {
          unseal(token) {
            const known = opened.get(token);
            if (known !== undefined) return Uint8Array.from(known);
            const payload = sound.unseal(token);
            opened.set(token, Uint8Array.from(payload));
            return payload;
          },
        });
      });
    })(),
    caughtBy: 'CODEC-STRANGER',
  },
  cachingBy('the beginning of a payload', (payload) => Buffer.from(payload.subarray(0, 64)).toString('hex')),
  cachingBy('the end of a payload', (payload) => Buffer.from(payload.subarray(-64)).toString('hex')),
  cachingBy('the sum of the bytes', (payload) => payload.reduce((sum, byte) => sum + byte, 0)),
  wrapped('prints', 'CODEC-QUIET', (sound) =>
    both(sound, {
      unseal(token) {
        process.stdout.write('opening\n');
        return sound.unseal(token);
      },
    }),
  ),
  wrapped('sets a global', 'CODEC-NO-GLOBALS', (sound) =>
    both(sound, {
      seal(payload) {
        const token = sound.seal(payload);
        Reflect.set(globalThis, 'lastToken', token);
        return token;
      },
    }),
  ),
  wrapped('puts a slash into tokens', 'CODEC-TOKEN-TEXT', (sound) =>
    both(sound, {
      seal: (payload) => `/${sound.seal(payload)}`,
      unseal: (token) => (token.startsWith('/') ? sound.unseal(token.slice(1)) : refuse()),
    }),
  ),
  wrapped(
    'truncates payloads that are too long',
    'CODEC-SIZE-LIMIT',
    (sound) => both(sound, { seal: (payload) => sound.seal(payload.subarray(0, 100)) }),
    {
      supports: { maxPayloadBytes: 100 },
    },
  ),
  {
    target: zooTarget('uses one key for all codecs', (keys) => soundCodec()(keys.map(() => SHARED))),
    caughtBy: 'CODEC-STRANGER',
  },
  {
    target: zooTarget('generates a key for each instance', (keys) => soundCodec()(keys.map(() => randomBytes(32)))),
    caughtBy: 'CODEC-PEER',
  },
  {
    target: zooTarget('forgets the old key', (keys) => soundCodec()(keys.slice(0, 1))),
    caughtBy: 'CODEC-ROTATED-OPENS',
  },
  {
    target: zooTarget('keeps sealing with the old key', (keys) => soundCodec()(keys.toReversed())),
    caughtBy: 'CODEC-ROTATED-SEALS',
  },
  returning('seals with the key of the last token', ({ rotated, old }) => {
    let active = rotated;
    return {
      seal: (payload) => active.seal(payload),
      unseal(token) {
        const payload = rotated.unseal(token);
        active = 'payload' in outcomeOf(old, token) ? old : rotated;
        return payload;
      },
    };
  }),
  returning('seals with the old key after a refusal', ({ rotated, old }) => {
    let active = rotated;
    return {
      seal: (payload) => active.seal(payload),
      unseal(token) {
        active = old;
        const payload = rotated.unseal(token);
        active = rotated;
        return payload;
      },
    };
  }),
  returning('seals long payloads with the old key', ({ rotated, old }) =>
    both(rotated, { seal: (payload) => (payload.length > 1_000 ? old : rotated).seal(payload) }),
  ),
  { target: zooTarget('signs only, claims to encrypt', (keys) => signOnly(keys)), caughtBy: 'CODEC-CONFIDENTIAL' },
  broken('decodes a payload that looks like base64', 'CODEC-ROUNDTRIP-BYTES', {
    after(payload) {
      const decoded = Buffer.from(payload.toString('latin1'), 'base64');
      return payload.length > 16 && decoded.toString('base64') === payload.toString('latin1') ? decoded : payload;
    },
  }),
  broken('decodes a payload that looks like hex', 'CODEC-ROUNDTRIP-BYTES', {
    after: (payload) =>
      payload.length > 7 && /^([0-9a-f]{2})+$/.test(payload.toString('latin1'))
        ? Buffer.from(payload.toString('latin1'), 'hex')
        : payload,
  }),
  broken('decompresses a compressed payload', 'CODEC-ROUNDTRIP-BYTES', {
    after: (payload) => (payload[0] === 0x1f && payload[1] === 0x8b ? gunzipSync(payload) : payload),
  }),
  broken('reformats a JSON object', 'CODEC-ROUNDTRIP-BYTES', {
    before(payload) {
      try {
        return payload[0] === 0x7b ? Buffer.from(JSON.stringify(JSON.parse(Buffer.from(payload).toString()))) : payload;
      } catch {
        return payload;
      }
    },
  }),
  wrapped('does not seal a token again', 'CODEC-ROUNDTRIP-BYTES', (sound) =>
    both(sound, {
      seal: (payload) => {
        const content = Buffer.from(payload).toString('latin1');
        return content.startsWith(PREFIX) ? content : sound.seal(payload);
      },
    }),
  ),
  wrapped('caches the token of a buffer', 'CODEC-CALLERS-BUFFER', (sound) => {
    const known = new WeakMap<Uint8Array, string>();
    return both(sound, {
      seal(payload) {
        const token = known.get(payload) ?? sound.seal(payload);
        known.set(payload, token);
        return token;
      },
    });
  }),
  wrapped('overwrites a buffer shortly after the call', 'CODEC-CALLERS-BUFFER', (sound) =>
    both(sound, {
      seal(payload) {
        const token = sound.seal(payload);
        setTimeout(() => payload.fill(0), 1).unref();
        return token;
      },
    }),
  ),
  wrapped('overwrites a result shortly after the call', 'CODEC-OWN-RESULT', (sound) =>
    both(sound, {
      unseal(token) {
        const payload = sound.unseal(token);
        setTimeout(() => payload.fill(0), 1).unref();
        return payload;
      },
    }),
  ),
  broken('truncates at 100 000 bytes without declaring a limit', 'CODEC-SIZE-LIMIT', {
    before: (payload) => payload.subarray(0, 100_000),
  }),
  wrapped(
    'overwrites a payload that is too long',
    'CODEC-SIZE-LIMIT',
    (sound) =>
      both(sound, {
        seal(payload) {
          if (payload.length <= 1_000) return sound.seal(payload);
          payload.fill(0);
          throw new RangeError('too long');
        },
      }),
    { supports: { maxPayloadBytes: 1_000 } },
  ),
  wrapped('treats a key id of zeros as the newest key', 'CODEC-BIT-FLIP', (sound) => {
    const id = Buffer.of(7, 7, 7, 7).toString('hex');
    return both(sound, {
      seal: (payload) => `${id}.${sound.seal(payload)}`,
      unseal(token) {
        const [, given, rest = ''] = /^([0-9a-f]{8})\.(.*)$/s.exec(token) ?? [];
        return given === id || given === '00000000' ? sound.unseal(rest) : refuse('unknown key');
      },
    });
  }),
  broken('reads a version as a number', 'CODEC-DOWNGRADE', {
    parse(token, decode) {
      const [, version, body] = (typeof token === 'string' && /^zoo([^.]*)\.(.*)$/s.exec(token)) || [];
      return Number(version) === 1 ? decode(body ?? '') : refuse('malformed');
    },
  }),
  broken('decodes JSON escapes', 'CODEC-CANONICAL-PERCENT', {
    parse(token, decode) {
      try {
        return SOUND.parse(JSON.parse(`"${token}"`), decode);
      } catch {
        return refuse('malformed');
      }
    },
  }),
  broken('ignores soft hyphens', 'CODEC-CANONICAL-SPACE', {
    decode: (text) => SOUND.decode(text.replaceAll('\u00ad', '')),
  }),
  wrapped('looks up its key in an object', 'CODEC-REFUSAL-CLASS', (sound) => {
    const table: Record<string, RequestStateCodec> = { k1: sound };
    return both(sound, {
      seal: (payload) => `k1~${sound.seal(payload)}`,
      unseal(token) {
        const [name = '', rest = ''] = typeof token === 'string' ? token.split('~') : [];
        return (table[name] ?? refuse('unknown key')).unseal(rest);
      },
    });
  }),
  wrapped('throws a RangeError at a megabyte', 'CODEC-REFUSAL-CLASS', (sound) =>
    both(sound, {
      unseal(token) {
        if (token?.length > 500_000) throw new RangeError('too long');
        return sound.unseal(token);
      },
    }),
  ),
  wrapped('caches tokens without regard to case', 'CODEC-CANONICAL-CASE', (sound) => {
    const known = new Map<string, Uint8Array>();
    return both(sound, {
      unseal(token) {
        const name = token?.toLowerCase?.();
        const payload = known.get(name) ?? sound.unseal(token);
        known.set(name, payload);
        return Uint8Array.from(payload);
      },
    });
  }),
  wrapped('shows the last payload in a refusal', 'CODEC-REFUSAL-SECRET', (sound) => {
    let last: Uint8Array | undefined;
    return both(sound, {
      unseal(token) {
        try {
          last = sound.unseal(token);
          return last;
        } catch (error) {
          throw Object.assign(error as Error, { last });
        }
      },
    });
  }),
  wrapped('attaches the error of a parser, which quotes the token, to its refusal', 'CODEC-REFUSAL-TOKEN', (sound) => {
    const decoded = (token: string): string => Buffer.from(token, 'base64url').toString();
    return {
      seal: (payload: Uint8Array) => Buffer.from(JSON.stringify({ t: sound.seal(payload) })).toString('base64url'),
      unseal(token: string) {
        try {
          const { t } = JSON.parse(decoded(token)) as { t: string };
          if (Buffer.from(JSON.stringify({ t })).toString('base64url') !== token) refuse('malformed');
          return sound.unseal(t);
        } catch (error) {
          if (error instanceof InvalidRequestState) throw error;
          throw Object.assign(new InvalidRequestState('malformed'), { cause: error });
        }
      },
    };
  }),
  wrapped('attaches the token to its refusal under a symbol', 'CODEC-REFUSAL-TOKEN', (sound) =>
    both(sound, {
      unseal(token) {
        try {
          return sound.unseal(token);
        } catch (error) {
          throw Object.assign(error as Error, { [Symbol('token')]: token });
        }
      },
    }),
  ),
  wrapped('gives a long reason', 'CODEC-REFUSAL-REASON', (sound) =>
    both(sound, {
      unseal(token) {
        try {
          return sound.unseal(token);
        } catch (error) {
          throw Object.assign(error as Error, { reason: 'a reason that says much more than a log needs to know' });
        }
      },
    }),
  ),
  wrapped('seals with the nonce of the last unsealed token', 'CODEC-KEYSTREAM', nonceAfter('unseal')),
  wrapped('reuses the last nonce after a refusal', 'CODEC-KEYSTREAM', nonceAfter('refusal')),
  broken('seals short payloads with one nonce', 'CODEC-KEYSTREAM', {
    nonce: (_, payload) => (payload.length < 8 ? Buffer.alloc(12) : randomBytes(12)),
  }),
  broken('seals long payloads with one nonce', 'CODEC-KEYSTREAM', {
    nonce: (_, payload) => (payload.length > 10_000 ? Buffer.alloc(12) : randomBytes(12)),
  }),
  broken('compresses digits', 'CODEC-NO-COMPRESSION', {
    before(payload) {
      const content = Buffer.from(payload);
      if (content.length === 0 || !/^\d+$/.test(content.toString('latin1')))
        return Buffer.concat([Buffer.of(2), content]);
      return Buffer.concat([
        Buffer.of(content.length % 2),
        Buffer.from(`0${content.toString()}`.slice(1 - (content.length % 2)), 'hex'),
      ]);
    },
    after: (payload) =>
      payload[0] === 2
        ? payload.subarray(1)
        : Buffer.from(
            payload
              .subarray(1)
              .toString('hex')
              .slice(payload[0] === 1 ? 1 : 0),
          ),
  }),
  readable('does not sign the boundaries of its parts', 'CODEC-SPLICE', ([key]) => ({
    seal(payload) {
      const body = Buffer.from(payload).toString('base64url');
      return `v1.${body}.${macOf(key, `v1${body}`)}`;
    },
    unseal(token) {
      const [head = '', body = '', tag, more] = typeof token === 'string' ? token.split('.') : [];
      const isGood = head.startsWith('v1') && more === undefined && tag === macOf(key, head + body);
      return isGood ? Buffer.from(body, 'base64url') : refuse();
    },
  })),
  readable('uses a digest as signature', 'CODEC-FORGE', (keys) => tagged(keys, (_, body) => sha256(body))),
  readable('accepts a malleable signature', 'CODEC-FORGE', ([key]) => {
    const { privateKey, publicKey } =
      signers.get(key.toString('hex')) ?? generateKeyPairSync('ec', { namedCurve: 'P-256' });
    signers.set(key.toString('hex'), { privateKey, publicKey });
    const form = { dsaEncoding: 'ieee-p1363' } as const;
    return {
      seal: (payload) =>
        Buffer.concat([payload, sign('sha256', payload, { key: privateKey, ...form })]).toString('base64url'),
      unseal(token) {
        const bytes = typeof token === 'string' ? SOUND.decode(token) : refuse();
        const [payload, signature] = [bytes.subarray(0, -64), bytes.subarray(-64)];
        const isGood = bytes.length >= 64 && verify('sha256', payload, { key: publicKey, ...form }, signature);
        return isGood ? Buffer.from(payload) : refuse();
      },
    };
  }),
  readable('reveals the expected tag in a refusal', 'CODEC-FORGE', ([key]) => ({
    seal(payload) {
      const body = Buffer.from(payload).toString('base64url');
      return `${body}.${macOf(key, body)}`;
    },
    unseal(token) {
      const [body = '', tag, more] = typeof token === 'string' ? token.split('.') : [];
      if (SOUND.decode(body) && more === undefined && tag === macOf(key, body)) return Buffer.from(body, 'base64url');
      return refuse(`wanted ${macOf(key, body)}`);
    },
  })),
  ...[1_024, 16_384].map((size) => ({
    target: zooTarget(`seals chunks of ${size} bytes without marking the last one`, ([key]) => {
      const piece = (nonce: Buffer, index: number): Buffer => Buffer.concat([nonce, Buffer.of(0, 0, 0, index)]);
      return {
        seal(payload) {
          const nonce = randomBytes(8);
          const sealed = [nonce];
          for (let at = 0; at === 0 || at < payload.length; at += size) {
            const cipher = createCipheriv('aes-256-gcm', key as Buffer, piece(nonce, at / size));
            sealed.push(cipher.update(payload.subarray(at, at + size)), cipher.final(), cipher.getAuthTag());
          }
          return Buffer.concat(sealed).toString('base64url');
        },
        unseal(token) {
          const bytes = typeof token === 'string' ? SOUND.decode(token) : refuse();
          const opened: Buffer[] = [];
          for (let at = 8; at === 8 || at < bytes.length; at += size + 16) {
            const part = Buffer.concat([
              piece(bytes.subarray(0, 8), (at - 8) / (size + 16)),
              bytes.subarray(at, at + size + 16),
            ]);
            opened.push(part.length < 28 ? refuse('malformed') : openGcm(key as Buffer, part));
          }
          return Buffer.concat(opened);
        },
      };
    }),
    caughtBy: 'CODEC-LONG-PAYLOAD',
  })),
  wrapped('accepts a token marked as plain', 'CODEC-DOWNGRADE', (sound) =>
    both(sound, {
      unseal: (token) => (token?.startsWith?.('plain.') ? SOUND.decode(token.slice(6)) : sound.unseal(token)),
    }),
  ),
  {
    target: zooTarget('unseals tokens of the old key without their tag', (keys) => {
      const [sound, old] = [soundCodec()(keys), soundCodec({ open: openLoosely })(keys.slice(1))];
      return keys.length < 2 ? sound : both(sound, { unseal: (token) => firstOf(sound, old, token) });
    }),
    caughtBy: 'CODEC-ROTATED-OPENS',
  },
  wrapped('expires a token after a moment', 'CODEC-ANY-ORDER', (sound) => {
    const sealed = new Map<string, number>();
    return both(sound, {
      seal(payload) {
        const token = sound.seal(payload);
        sealed.set(token, performance.now());
        return token;
      },
      unseal: (token) =>
        performance.now() - (sealed.get(token) ?? performance.now()) > 1_000 ? refuse() : sound.unseal(token),
    });
  }),
  broken('derives the nonce from the beginning of the payload', 'CODEC-KEYSTREAM', {
    nonce: (_, payload, key) => sha256(Buffer.concat([key, payload.subarray(0, 16)])).subarray(0, 12),
  }),
  wrapped('writes a zero after a view', 'CODEC-CALLERS-BUFFER', (sound) =>
    both(sound, {
      seal(payload) {
        const behind = payload.byteOffset + payload.length;
        if (behind < payload.buffer.byteLength) new Uint8Array(payload.buffer)[behind] = 0;
        return sound.seal(payload);
      },
    }),
  ),
  broken('omits the padding of whole blocks, but always removes padding', 'CODEC-ROUNDTRIP-BYTES', {
    before(payload) {
      const more = (16 - (payload.length % 16)) % 16;
      return Buffer.concat([payload, Buffer.alloc(more, more)]);
    },
    after(payload) {
      const more = payload.at(-1) ?? 0;
      const isPadded = more > 0 && more < 16 && payload.subarray(-more).every((byte) => byte === more);
      return isPadded ? payload.subarray(0, -more) : payload;
    },
  }),
  {
    target: zooTarget('names its key in a refusal', (keys) => {
      const sound = soundCodec()(keys);
      return both(sound, { unseal: (token) => orRefuse(sound, token, { key: keys[0]?.toString('hex') }) });
    }),
    caughtBy: 'CODEC-REFUSAL-SECRET',
  },
  wrapped('attaches the beginning of a token to its refusal', 'CODEC-REFUSAL-TOKEN', (sound) =>
    both(sound, { unseal: (token) => orRefuse(sound, token, { hint: `${token?.slice?.(0, 12)}…` }) }),
  ),
  wrapped('attaches the end of a token to its refusal', 'CODEC-REFUSAL-TOKEN', (sound) =>
    both(sound, { unseal: (token) => orRefuse(sound, token, { hint: `…${token?.slice?.(-6)}` }) }),
  ),
  wrapped('attaches the bytes of a token to its refusal', 'CODEC-REFUSAL-TOKEN', (sound) =>
    both(sound, {
      unseal: (token) =>
        orRefuse(sound, token, { bytes: Buffer.from(token?.slice?.(PREFIX.length) ?? '', 'base64url') }),
    }),
  ),
  wrapped('reads a file', 'CODEC-NO-IO', (sound) =>
    both(sound, {
      seal(payload) {
        readFileSync(import.meta.filename);
        return sound.seal(payload);
      },
    }),
  ),
  wrapped('ignores a doubled character', 'CODEC-EXTENSION', (sound) =>
    both(sound, {
      unseal(token) {
        for (let at = 1; at < Math.min(token?.length ?? 0, 200); at++) {
          const shorter = token.slice(0, at) + token.slice(at + 1);
          if (token[at] === token[at - 1] && 'payload' in outcomeOf(sound, shorter)) return sound.unseal(shorter);
        }
        return sound.unseal(token);
      },
    }),
  ),
  {
    target: zooTarget('reveals equal payloads', (keys) => {
      const sound = soundCodec()(keys);
      const markOf = (payload: Uint8Array): string => macOf(keys[0] as Buffer, Buffer.from(payload).toString('hex'));
      return both(sound, {
        seal: (payload) => `${sound.seal(payload)}~${markOf(payload)}`,
        unseal(token) {
          const [body = '', mark, more] = typeof token === 'string' ? token.split('~') : [];
          const payload = sound.unseal(body);
          const isGood =
            more === undefined && keys.some((key) => mark === macOf(key, Buffer.from(payload).toString('hex')));
          return isGood ? payload : refuse();
        },
      });
    }),
    caughtBy: 'CODEC-DISTINCT',
  },
  wrapped('refuses a token of the future', 'CODEC-CLOCK-SKEW', (sound) => timed(sound, (age) => age >= 0)),
  wrapped('refuses a token of a clock that is behind', 'CODEC-CLOCK-SKEW', (sound) => timed(sound, (age) => age < 30)),
  wrapped('refuses a token after five minutes', 'CODEC-AGE', (sound) => timed(sound, (age) => age < 300)),
  {
    target: zooTarget('derives its key from the hour', (keys) => {
      const codec = (): RequestStateCodec => {
        const hour = String(Math.floor(Date.now() / 3_600_000));
        return soundCodec()(keys.map((key) => createHmac('sha256', key).update(hour).digest()));
      };
      return { seal: (payload) => codec().seal(payload), unseal: (token) => codec().unseal(token) };
    }),
    caughtBy: 'CODEC-CLOCK-SKEW',
  },
  {
    target: zooTarget('derives its key from the date', (keys) => {
      const codec = (): RequestStateCodec => {
        const date = new Date().toISOString().slice(0, 10);
        return soundCodec()(keys.map((key) => createHmac('sha256', key).update(date).digest()));
      };
      return { seal: (payload) => codec().seal(payload), unseal: (token) => codec().unseal(token) };
    }),
    caughtBy: 'CODEC-AGE',
  },
  broken('takes the time and a counter as its nonce', 'CODEC-KEYSTREAM', {
    nonce(ordinal) {
      const nonce = Buffer.alloc(12);
      nonce.writeBigUInt64BE(BigInt(Date.now()));
      nonce.writeUInt32BE(ordinal, 8);
      return nonce;
    },
  }),
  wrapped('refuses shared memory', 'CODEC-ROUNDTRIP-REALM', (sound) =>
    both(sound, {
      seal(payload) {
        if (payload.buffer instanceof SharedArrayBuffer) throw new TypeError('the payload must not be shared');
        return sound.seal(payload);
      },
    }),
  ),
  wrapped('accepts only bytes of its own realm', 'CODEC-ROUNDTRIP-REALM', (sound) =>
    both(sound, {
      seal(payload) {
        if (!(payload instanceof Uint8Array)) throw new TypeError('the payload must be a Uint8Array');
        return sound.seal(payload);
      },
    }),
  ),
  broken('skips characters between Z and a', 'CODEC-CANONICAL-ALPHABET', {
    decode: (text) => (/^[A-z0-9_-]*$/.test(text) ? SOUND.decode(text.replace(/[[\\\]^`]/g, '')) : refuse('malformed')),
  }),
  broken('folds letters', 'CODEC-CANONICAL-UNICODE', {
    decode: (text) => SOUND.decode(text.replaceAll('\u017f', 's').replaceAll('\u212a', 'K')),
  }),
  broken('reads a space as a hyphen', 'CODEC-CANONICAL-ALPHABET', {
    encode: (bytes) => `${bytes.toString('base64url')}-st`,
    decode: (text) => SOUND.decode(text.replaceAll(' ', '-').replace(/-st$|$/, (end) => (end === '' ? '!' : ''))),
  }),
  {
    target: zooTarget('reads the number of a key in 32 bits', (keys) => {
      const number = (key: Buffer): number => createHmac('sha256', key).update('id').digest().readUInt16BE();
      return {
        seal: (payload) => `${number(keys[0] as Buffer)}.${soundCodec()(keys).seal(payload)}`,
        unseal(token) {
          const [, digits = '', rest = ''] = /^([0-9]{1,12})\.(.*)$/s.exec(token) ?? refuse('malformed');
          const key = keys.find((one) => (Number(digits) | 0) === number(one)) ?? refuse('unknown key');
          return soundCodec()([key]).unseal(rest);
        },
      };
    }),
    caughtBy: 'CODEC-DOWNGRADE',
  },
  {
    target: zooTarget('draws the new key of a rotation in every instance', (keys) => {
      const own = keys.length > 1 ? [randomBytes(32), ...keys.slice(1)] : keys;
      return soundCodec()(own);
    }),
    caughtBy: 'CODEC-ROTATED-OPENS',
  },
  {
    target: zooTarget('authenticates chunks by their numbers alone', ([key]) => ({
      seal: (payload) =>
        Buffer.concat(
          Array.from({ length: Math.floor(payload.length / 1_024) + 1 }).map((_, i) => {
            const nonce = randomBytes(12);
            const cipher = createCipheriv('aes-256-gcm', key as Buffer, nonce, { authTagLength: 16 });
            const isLast = i === Math.floor(payload.length / 1_024);
            cipher.setAAD(Buffer.from(`${i} ${isLast}`));
            const piece = payload.subarray(i * 1_024, (i + 1) * 1_024);
            return Buffer.concat([nonce, cipher.update(piece), cipher.final(), cipher.getAuthTag()]);
          }),
        ).toString('base64url'),
      unseal(token) {
        const bytes = SOUND.decode(typeof token === 'string' ? token : refuse('malformed'));
        const count = Math.floor(bytes.length / 1_052) + 1;
        return Uint8Array.from(
          Buffer.concat(
            Array.from({ length: count }).map((_, i) => {
              const piece = bytes.subarray(i * 1_052, (i + 1) * 1_052);
              if (piece.length < 28) refuse('malformed');
              const decipher = createDecipheriv('aes-256-gcm', key as Buffer, piece.subarray(0, 12), {
                authTagLength: 16,
              });
              decipher.setAAD(Buffer.from(`${i} ${i === count - 1}`)).setAuthTag(piece.subarray(-16));
              try {
                return Buffer.concat([decipher.update(piece.subarray(12, -16)), decipher.final()]);
              } catch {
                return refuse();
              }
            }),
          ),
        );
      },
    })),
    caughtBy: 'CODEC-LONG-PAYLOAD',
  },
  wrapped(
    'keeps the beginning of a payload that is too long',
    'CODEC-SIZE-LIMIT',
    (sound) => {
      let kept: Uint8Array = new Uint8Array(0);
      return both(sound, {
        seal(payload) {
          if (payload.length > 1_024) {
            kept = payload.slice(0, 16);
            throw new RangeError('the payload is too long');
          }
          const token = sound.seal(Buffer.concat([kept, payload]));
          kept = new Uint8Array(0);
          return token;
        },
      });
    },
    { supports: { maxPayloadBytes: 1_024 } },
  ),
  wrapped(
    'limits the compressed length',
    'CODEC-SIZE-LIMIT',
    (sound) =>
      both(sound, {
        seal(payload) {
          if (deflateRawSync(payload).length > 1_100) throw new RangeError('the payload is too long');
          return sound.seal(payload);
        },
      }),
    { supports: { maxPayloadBytes: 1_024 } },
  ),
  wrapped('warns of refusals', 'CODEC-NO-IO', (sound) =>
    both(sound, {
      unseal(token) {
        const outcome = outcomeOf(sound, token);
        if ('payload' in outcome) return outcome.payload;
        process.emitWarning('a token was refused', 'ZooWarning');
        throw outcome.error;
      },
    }),
  ),
  wrapped('reads a file for a long payload', 'CODEC-NO-IO', (sound) =>
    both(sound, {
      seal(payload) {
        if (payload.length > 32_768) readFileSync(import.meta.filename);
        return sound.seal(payload);
      },
    }),
  ),
  wrapped('counts refusals at a service', 'CODEC-NO-IO', (sound) =>
    both(sound, {
      unseal(token) {
        const outcome = outcomeOf(sound, token);
        if ('payload' in outcome) return outcome.payload;
        const socket = createSocket('udp4');
        socket.on('error', () => undefined).unref();
        socket.send('refused:1|c', 9, '127.0.0.1', () => socket.close());
        throw outcome.error;
      },
    }),
  ),
  {
    target: zooTarget('forgets its key for unknown ones', (keys) => {
      const id = (key: Buffer): string => createHmac('sha256', key).update('id').digest('hex').slice(0, 8);
      const known = new Map<string, Buffer | undefined>(keys.map((key) => [id(key), key]));
      return {
        seal(payload) {
          const [first] = keys as [Buffer];
          return Buffer.concat([
            Buffer.from(id(first), 'hex'),
            Buffer.from(soundCodec()([first]).seal(payload)),
          ]).toString('base64url');
        },
        unseal(token) {
          const bytes = SOUND.decode(typeof token === 'string' ? token : refuse('malformed'));
          const name = bytes.subarray(0, 4).toString('hex');
          if (!known.has(name)) {
            if (known.size >= 64) known.delete(known.keys().next().value ?? '');
            known.set(name, undefined);
          }
          return soundCodec()([known.get(name) ?? refuse('unknown key')]).unseal(bytes.subarray(4).toString('latin1'));
        },
      };
    }),
    caughtBy: 'CODEC-AFTER-REFUSAL',
  },
  {
    target: zooTarget('names the unknown key', (keys) => {
      const id = (key: Buffer): string => createHmac('sha256', key).update('id').digest('base64url').slice(0, 6);
      const codecs = new Map(keys.map((key) => [id(key), soundCodec()([key])]));
      const [first] = keys as [Buffer];
      return {
        seal: (payload) => `${id(first)}~${codecs.get(id(first))?.seal(payload) ?? ''}`,
        unseal(token) {
          const [name = '', ...rest] = (typeof token === 'string' ? token : '').split('~');
          const codec = codecs.get(name) ?? refuse(/^[\w-]{6}$/.test(name) ? `no key ${name}` : 'malformed');
          return codec.unseal(rest.join('~'));
        },
      };
    }),
    caughtBy: 'CODEC-REFUSAL-TOKEN',
  },
];

function checksum(bytes: Uint8Array): Buffer {
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(bytes));
  return sum;
}

/** A readable token with a tag in front. */
function tagged(keys: readonly Buffer[], tagOf: (key: Buffer, body: Buffer) => Buffer): RequestStateCodec {
  return {
    seal(payload) {
      const body = Buffer.from(payload);
      return Buffer.concat([tagOf(keys[0] as Buffer, body), body]).toString('base64url');
    },
    unseal(token) {
      const bytes = typeof token === 'string' ? SOUND.decode(token) : refuse();
      const found = keys.some((key) => {
        const { length } = tagOf(key, Buffer.alloc(0));
        return bytes.length >= length && tagOf(key, bytes.subarray(length)).equals(bytes.subarray(0, length));
      });
      return found ? Buffer.from(bytes.subarray(tagOf(keys[0] as Buffer, bytes).length)) : refuse();
    },
  };
}

/** AES-CTR with a random vector. The callers authenticate it. */
function inCounterMode(
  keys: readonly Buffer[],
  steps: {
    readonly before: (key: Buffer, payload: Uint8Array) => Uint8Array;
    readonly after: (key: Buffer, whole: Buffer) => Uint8Array;
  },
): RequestStateCodec {
  return {
    seal(payload) {
      const [key] = keys as [Buffer];
      const vector = randomBytes(16);
      const sealing = createCipheriv('aes-256-ctr', key, vector);
      return Buffer.concat([vector, sealing.update(steps.before(key, payload)), sealing.final()]).toString('base64url');
    },
    unseal(token) {
      const bytes = typeof token === 'string' ? SOUND.decode(token) : refuse();
      if (bytes.length < 16) refuse('malformed');
      let failure: unknown;
      for (const key of keys) {
        const opening = createDecipheriv('aes-256-ctr', key, bytes.subarray(0, 16));
        try {
          return Uint8Array.from(
            steps.after(key, Buffer.concat([opening.update(bytes.subarray(16)), opening.final()])),
          );
        } catch (error) {
          failure = error;
        }
      }
      throw failure;
    },
  };
}

/** Readable and signed: sound without a claim of confidentiality. */
export function signOnly(keys: readonly Buffer[], tagBytes = 32): RequestStateCodec {
  const tagOf = (key: Buffer, body: Buffer): Buffer =>
    createHmac('sha256', secretOf(key)).update(body).digest().subarray(0, tagBytes);
  return {
    seal(payload) {
      const body = Buffer.from(payload);
      return Buffer.concat([tagOf(keys[0] as Buffer, body), body]).toString('base64url');
    },
    unseal(token) {
      const bytes = typeof token === 'string' ? SOUND.decode(token) : refuse();
      if (bytes.length < tagBytes) refuse('malformed');
      const body = bytes.subarray(tagBytes);
      return keys.some((key) => timingSafeEqual(tagOf(key, body), bytes.subarray(0, tagBytes)))
        ? Buffer.from(body)
        : refuse();
    },
  };
}

/** Seals the time with the payload, and refuses what was sealed too long ago. */
function dated(sound: RequestStateCodec, isTooOld: (sealedMs: number) => boolean): RequestStateCodec {
  return {
    seal(payload) {
      const time = Buffer.alloc(8);
      time.writeDoubleBE(Date.now());
      return sound.seal(Buffer.concat([time, payload]));
    },
    unseal(token) {
      const opened = Buffer.from(sound.unseal(token));
      return isTooOld(opened.readDoubleBE()) ? refuse() : opened.subarray(8);
    },
  };
}

/** Each close overwrites the key that all instances use. */
function wipingTarget(): CodecTarget {
  const make = soundCodec();
  const [a, b] = [randomBytes(32), randomBytes(32)];
  const instance = (...keys: readonly Buffer[]) => {
    return {
      codec: make(keys),
      close() {
        for (const key of keys) key.fill(0);
      },
    };
  };
  return {
    name: 'overwrites at close the key that others use',
    create: () => instance(a),
    createPeer: () => instance(a),
    createStranger: () => instance(b),
    createRotated: () => instance(b, a),
  };
}
