import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
  randomInt,
  sign,
  timingSafeEqual,
  verify,
} from 'node:crypto';
import { types } from 'node:util';
import { aessiv } from '@noble/ciphers/aes.js';
import { xchacha20poly1305 } from '@noble/ciphers/chacha.js';
import { AesGcmRequestStateCodec, type RequestStateCodec } from '@sealring/core';
import type { CodecTarget } from '../../src/index.ts';
import { secretOf, signOnly, soundCodec, zooTarget } from './broken-codecs.ts';

/** A sound codec, and the warnings that it may cause. */
export interface SoundCodec {
  readonly target: CodecTarget;
  readonly warnings: readonly string[];
}

class InvalidRequestState extends Error {
  override readonly name: string = 'InvalidRequestState';
}

function refuse(reason: string): never {
  throw new InvalidRequestState(reason);
}

/** Encrypts and authenticates bytes under a key. `open` returns undefined for other bytes. */
interface Box {
  seal(key: Buffer, payload: Uint8Array): Uint8Array;
  open(key: Buffer, sealed: Buffer): Uint8Array | undefined;
}

interface Encoding {
  encode(bytes: Buffer): string;
  decode(text: string): Buffer;
}

const BASE64URL: Encoding = nodeEncoding('base64url');
const HEX: Encoding = nodeEncoding('hex');

function nodeEncoding(name: 'base64url' | 'hex'): Encoding {
  return { encode: (bytes) => bytes.toString(name), decode: (text) => Buffer.from(text, name) };
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
/** RFC 4648, section 6, without padding. */
const BASE32: Encoding = {
  encode: (bytes) => regrouped(bytes, 8, 5).reduce((text, five) => text + ALPHABET[five], ''),
  decode(text) {
    const fives = Array.from(text, (char) => Math.max(ALPHABET.indexOf(char), 0));
    return Buffer.from(regrouped(fives, 5, 8).slice(0, Math.floor((fives.length * 5) / 8)));
  },
};

/** Groups of `from` bits as groups of `to` bits, the last filled with zeros. */
function regrouped(groups: Iterable<number>, from: number, to: number): number[] {
  const made: number[] = [];
  let [held, count] = [0, 0];
  for (const group of groups) {
    held = ((held << from) | group) & 0xfff;
    for (count += from; count >= to; count -= to) made.push((held >> (count - to)) & (2 ** to - 1));
  }
  return count > 0 ? [...made, (held << (to - count)) & (2 ** to - 1)] : made;
}

/** A codec from a box and an encoding, with exactly one text for each token. */
function codecOf(box: Box, encoding: Encoding, keys: readonly Buffer[], prefix = ''): RequestStateCodec {
  return {
    seal: (payload) => prefix + encoding.encode(Buffer.from(box.seal(keys[0] as Buffer, payload))),
    unseal(token) {
      if (typeof token !== 'string' || !token.startsWith(prefix)) refuse('malformed');
      const text = token.slice(prefix.length);
      // A length that no token of these tests reaches.
      if (text.length > 1_000_000) refuse('too long');
      const sealed = encoding.decode(text);
      if (encoding.encode(sealed) !== text) refuse('malformed');
      for (const key of keys) {
        const payload = box.open(key, sealed);
        if (payload !== undefined) return payload;
      }
      return refuse('authentication failed');
    },
  };
}

/** An authenticated cipher of Node: nonce, ciphertext, tag. */
function aead(cipher: 'aes-256-gcm' | 'chacha20-poly1305'): Box {
  const options = { authTagLength: 16 };
  return {
    seal(key, payload) {
      const nonce = randomBytes(12);
      const sealing = createCipheriv(cipher as 'aes-256-gcm', secretOf(key), nonce, options);
      return Buffer.concat([nonce, sealing.update(payload), sealing.final(), sealing.getAuthTag()]);
    },
    open(key, sealed) {
      if (sealed.length < 28) return undefined;
      const opening = createDecipheriv(cipher as 'aes-256-gcm', secretOf(key), sealed.subarray(0, 12), options);
      opening.setAuthTag(sealed.subarray(-16));
      try {
        return Buffer.concat([opening.update(sealed.subarray(12, -16)), opening.final()]);
      } catch {
        return undefined;
      }
    },
  };
}

/** Encrypts, then authenticates: vector, ciphertext, HMAC-SHA-256, under keys derived for each. */
function encryptThenMac(cipher: 'aes-256-cbc' | 'aes-256-ctr'): Box {
  const sub = (key: Buffer, use: string): KeyObject =>
    secretOf(new Uint8Array(hkdfSync('sha256', secretOf(key), '', use, 32)));
  const tagOf = (key: Buffer, body: Uint8Array): Buffer => createHmac('sha256', sub(key, 'mac')).update(body).digest();
  return {
    seal(key, payload) {
      const vector = randomBytes(16);
      const sealing = createCipheriv(cipher, sub(key, 'enc'), vector);
      const body = Buffer.concat([vector, sealing.update(payload), sealing.final()]);
      return Buffer.concat([body, tagOf(key, body)]);
    },
    open(key, sealed) {
      if (sealed.length < 48) return undefined;
      const body = sealed.subarray(0, -32);
      if (!timingSafeEqual(tagOf(key, body), sealed.subarray(-32))) return undefined;
      const opening = createDecipheriv(cipher, sub(key, 'enc'), body.subarray(0, 16));
      return Buffer.concat([opening.update(body.subarray(16)), opening.final()]);
    },
  };
}

/** A cipher of another library, with nonces of 24 bytes. */
const XCHACHA: Box = {
  seal(key, payload) {
    const nonce = randomBytes(24);
    return Buffer.concat([nonce, xchacha20poly1305(key, nonce).encrypt(payload)]);
  },
  open(key, sealed) {
    if (sealed.length < 40) return undefined;
    try {
      return xchacha20poly1305(key, sealed.subarray(0, 24)).decrypt(sealed.subarray(24));
    } catch {
      return undefined;
    }
  },
};

/** Deterministic: equal payloads give equal tokens, which reveals nothing else. */
const SIV: Box = {
  seal: (key, payload) => aessiv(key).encrypt(payload),
  open(key, sealed) {
    if (sealed.length < 16) return undefined;
    try {
      return aessiv(key).decrypt(sealed);
    } catch {
      return undefined;
    }
  },
};

/** Hides the length of the payload: two bytes of length, the payload, and zeros up to the length from `roundUp`. */
function padded(box: Box, roundUp: (length: number) => number): Box {
  return {
    seal(key, payload) {
      const whole = Buffer.alloc(roundUp(payload.length + 4));
      whole.writeUInt32BE(payload.length);
      whole.set(payload, 4);
      return box.seal(key, whole);
    },
    open(key, sealed) {
      const whole = box.open(key, sealed);
      if (whole === undefined) return undefined;
      return Uint8Array.from(whole.subarray(4, 4 + Buffer.from(whole).readUInt32BE()));
    },
  };
}

/** Several parts, as in custom formats: version, key id, nonce, ciphertext, tag, which authenticates the others. */
function inParts(keys: readonly Buffer[]): RequestStateCodec {
  const idOf = (key: Buffer): string => createHash('sha256').update(key).digest('hex').slice(0, 8);
  return {
    seal(payload) {
      const key = keys[0] as Buffer;
      const nonce = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', secretOf(key), nonce, { authTagLength: 16 });
      cipher.setAAD(Buffer.from(`v1:${idOf(key)}`));
      const body = Buffer.concat([cipher.update(payload), cipher.final()]);
      return ['v1', idOf(key), ...[nonce, body, cipher.getAuthTag()].map((part) => part.toString('base64url'))].join(
        ':',
      );
    },
    unseal(token) {
      const parts = typeof token === 'string' ? token.split(':') : refuse('malformed');
      const [version, id, ...encoded] = parts;
      const key = keys.find((one) => idOf(one) === id);
      if (version !== 'v1' || encoded.length !== 3) refuse('malformed');
      if (key === undefined) refuse('unknown key');
      const [nonce, body, tag] = encoded.map((part) => {
        const bytes = Buffer.from(part, 'base64url');
        return bytes.toString('base64url') === part ? bytes : refuse('malformed');
      }) as [Buffer, Buffer, Buffer];
      if (nonce.length !== 12 || tag.length !== 16) refuse('malformed');
      const decipher = createDecipheriv('aes-256-gcm', secretOf(key), nonce, { authTagLength: 16 });
      decipher.setAAD(Buffer.from(`v1:${id}`)).setAuthTag(tag);
      try {
        return Buffer.concat([decipher.update(body), decipher.final()]);
      } catch {
        return refuse('authentication failed');
      }
    },
  };
}

/** Like Fernet: a version, the time in seconds, padded base64. Unlike Fernet, accepts only the canonical encoding. */
function withTime(keys: readonly Buffer[]): RequestStateCodec {
  const inner = encryptThenMac('aes-256-cbc');
  const spelled = (bytes: Buffer): string => bytes.toString('base64').replaceAll('+', '-').replaceAll('/', '_');
  const bound = (key: Buffer, stamp: Uint8Array): Buffer => createHmac('sha256', secretOf(key)).update(stamp).digest();
  return {
    seal(payload) {
      const stamp = Buffer.alloc(9, 0x80);
      stamp.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 1000)), 1);
      return spelled(Buffer.concat([stamp, inner.seal(bound(keys[0] as Buffer, stamp), payload)]));
    },
    unseal(token) {
      const bytes =
        typeof token === 'string' && token.length < 1_000_000 ? Buffer.from(token, 'base64url') : refuse('odd');
      if (spelled(bytes) !== token || bytes.length < 57) refuse('malformed');
      const stamp = bytes.subarray(0, 9);
      for (const key of keys) {
        const payload = inner.open(bound(key, stamp), bytes.subarray(9));
        if (payload !== undefined) return payload;
      }
      return refuse('authentication failed');
    },
  };
}

/** With a plaintext time and ordinal, which two tokens may share. */
function numbered(keys: readonly Buffer[]): RequestStateCodec {
  let ordinal = 0;
  const inner = aead('aes-256-gcm');
  const bound = (key: Buffer, head: string): Buffer => createHmac('sha256', secretOf(key)).update(head).digest();
  return {
    seal(payload) {
      const head = `${Date.now().toString(36)}.${(ordinal++).toString(36).padStart(6, '0')}`;
      return `${head}.${Buffer.from(inner.seal(bound(keys[0] as Buffer, head), payload)).toString('base64url')}`;
    },
    unseal(token) {
      const [time = '', number = '', text = '', ...more] =
        typeof token === 'string' && token.length < 1_000_000 ? token.split('.') : refuse('odd');
      const sealed = Buffer.from(text, 'base64url');
      if (sealed.toString('base64url') !== text || more.length > 0) refuse('malformed');
      for (const key of keys) {
        const payload = inner.open(bound(key, `${time}.${number}`), sealed);
        if (payload !== undefined) return payload;
      }
      return refuse('authentication failed');
    },
  };
}

/** A JSON header in front, with exactly one accepted spelling. */
function withHeader(keys: readonly Buffer[]): RequestStateCodec {
  const header = `${Buffer.from('{"alg":"dir","enc":"A256GCM"}').toString('base64url')}..`;
  return codecOf(aead('aes-256-gcm'), BASE64URL, keys, header);
}

/** A token within JSON within base64, so that the last character encodes a brace. */
function inJson(keys: readonly Buffer[]): RequestStateCodec {
  const sound = soundCodec()(keys);
  const spelled = (inner: string): string => Buffer.from(JSON.stringify({ v: 1, token: inner })).toString('base64url');
  return {
    seal: (payload) => spelled(sound.seal(payload)),
    unseal(token) {
      let inner: unknown;
      try {
        inner = JSON.parse(Buffer.from(token, 'base64url').toString()).token;
      } catch {
        return refuse('no JSON');
      }
      return typeof inner === 'string' && spelled(inner) === token ? sound.unseal(inner) : refuse('malformed');
    },
  };
}

/** Tokens are handles to payloads in this process, so that only this process unseals them. */
function handles(): RequestStateCodec {
  const kept = new Map<string, Uint8Array>();
  return {
    seal(payload) {
      const handle = randomBytes(32).toString('base64url');
      kept.set(handle, Uint8Array.from(payload));
      return handle;
    },
    unseal: (token) => Uint8Array.from(kept.get(token) ?? refuse('unknown')),
  };
}

/** Refuses with its own error class and a long message. */
function talkative(keys: readonly Buffer[]): RequestStateCodec {
  const sound = soundCodec()(keys);
  return {
    seal: (payload) => sound.seal(payload),
    unseal(token) {
      try {
        return sound.unseal(token);
      } catch {
        const reason = 'This state was not sealed here, or was changed on its way, or is too old. '.repeat(4);
        throw Object.assign(new Error(reason), { name: 'StateRefused' });
      }
    },
  };
}

const LIMIT = 512;
function limited(keys: readonly Buffer[], most = LIMIT): RequestStateCodec {
  const sound = soundCodec()(keys);
  return {
    seal: (payload) => (payload.length > most ? refuse('too large') : sound.seal(payload)),
    unseal: (token) => sound.unseal(token),
  };
}

const gcm = aead('aes-256-gcm');
const boxed =
  (box: Box, encoding = BASE64URL) =>
  (keys: readonly Buffer[]) =>
    codecOf(box, encoding, keys);

function checkingType(keys: readonly Buffer[]): RequestStateCodec {
  const sound = soundCodec()(keys);
  return {
    seal: (payload) => sound.seal(payload),
    unseal(token) {
      if (typeof token !== 'string') throw new TypeError('token must be a string');
      return sound.unseal(token);
    },
  };
}

/** Sound codecs that differ in everything the contract leaves open. */
export const SOUND_CODECS: readonly SoundCodec[] = [
  { target: zooTarget('AES-GCM with a prefix', soundCodec()), warnings: [] },
  { target: zooTarget('the wire format of the Python SDK', (keys) => new AesGcmRequestStateCodec(keys)), warnings: [] },
  { target: zooTarget('ChaCha20-Poly1305', boxed(aead('chacha20-poly1305'))), warnings: [] },
  { target: zooTarget('AES-CBC, then HMAC', boxed(encryptThenMac('aes-256-cbc'))), warnings: [] },
  { target: zooTarget('AES-CTR, then HMAC', boxed(encryptThenMac('aes-256-ctr'))), warnings: [] },
  { target: zooTarget('AES-GCM in hex', boxed(gcm, HEX)), warnings: [] },
  { target: zooTarget('with a TypeError for another type', checkingType), warnings: [] },
  { target: zooTarget('AES-GCM in base32', boxed(gcm, BASE32)), warnings: [] },
  { target: zooTarget('XChaCha20-Poly1305 of another library', boxed(XCHACHA)), warnings: [] },
  { target: zooTarget('AES-SIV, with a deterministic token', boxed(SIV)), warnings: ['CODEC-DISTINCT'] },
  {
    target: zooTarget('padded to 64 bytes', boxed(padded(gcm, (length) => Math.ceil(length / 64) * 64))),
    warnings: [],
  },
  { target: zooTarget('padded at random', boxed(padded(gcm, (length) => length + randomInt(64)))), warnings: [] },
  { target: zooTarget('with several parts', inParts), warnings: ['CODEC-TOKEN-UNRESERVED'] },
  { target: zooTarget('with a time, in padded base64', withTime), warnings: ['CODEC-TOKEN-UNRESERVED'] },
  { target: zooTarget('with a time and an ordinal', numbered), warnings: [] },
  {
    target: zooTarget(
      'AES-GCM with a nonce derived from a keyed digest of the payload',
      soundCodec({
        nonce: (_, payload, key) => createHmac('sha256', secretOf(key)).update(payload).digest().subarray(0, 12),
      }),
    ),
    warnings: ['CODEC-DISTINCT'],
  },
  { target: zooTarget('with a JSON header', withHeader), warnings: [] },
  {
    target: zooTarget('signing only, as declared', (keys) => signOnly(keys), { supports: { confidentiality: false } }),
    warnings: [],
  },
  {
    target: zooTarget('with a limit of 512 bytes', (keys) => limited(keys), { supports: { maxPayloadBytes: LIMIT } }),
    warnings: [],
  },
  ...[1, 16].map((most) => ({
    target: zooTarget(`with a limit of ${most} bytes`, (keys) => limited(keys, most), {
      supports: { maxPayloadBytes: most },
    }),
    warnings: [],
  })),
  {
    target: zooTarget('with a limit of 64 KiB, which need not be declared', (keys) => limited(keys, 65_536)),
    warnings: [],
  },
  {
    target: zooTarget('with an Ed25519 signature before the payload', signedBefore, {
      supports: { confidentiality: false },
    }),
    warnings: [],
  },
  { target: zooTarget('with a token in JSON', inJson), warnings: [] },
  // No client can send a String object.
  { target: zooTarget('that accepts String objects', acceptingStringObjects), warnings: [] },
  {
    target: zooTarget('with long refusals of another name', talkative, { refusal: 'StateRefused' }),
    warnings: ['CODEC-REFUSAL-REASON'],
  },
  { target: handleTarget(), warnings: [] },
];

/** A changed signature often has a number out of range, which fails early. */
function signedBefore(keys: readonly Buffer[]): RequestStateCodec {
  const pairs = keys.map((key) => {
    const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), key]);
    const secret = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
    return { secret, open: createPublicKey(secret) };
  });
  return {
    seal(payload) {
      const signature = sign(null, payload, (pairs[0] as (typeof pairs)[0]).secret);
      return Buffer.concat([signature, payload]).toString('base64url');
    },
    unseal(token) {
      const bytes = Buffer.from(typeof token === 'string' ? token : '', 'base64url');
      if (bytes.toString('base64url') !== token || bytes.length < 64) throw new InvalidRequestState('malformed');
      const payload = bytes.subarray(64);
      if (pairs.some(({ open }) => verify(null, payload, open, bytes.subarray(0, 64)))) return Uint8Array.from(payload);
      throw new InvalidRequestState('authentication failed');
    },
  };
}

function acceptingStringObjects(keys: readonly Buffer[]): RequestStateCodec {
  const sound = soundCodec()(keys);
  return {
    seal: (payload) => sound.seal(payload),
    unseal: (token: unknown) => sound.unseal(types.isStringObject(token) ? String(token) : (token as string)),
  };
}

function handleTarget(): CodecTarget {
  const create = (): { codec: RequestStateCodec } => ({ codec: handles() });
  return {
    name: 'with handles to stored payloads',
    create,
    createPeer: create,
    createStranger: create,
    supports: { crossInstance: false },
  };
}
