import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes, randomInt } from 'node:crypto';
import * as fc from 'fast-check';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { Clock, Moment } from '../../src/base/clock.ts';
import { createKmsCodec, type KmsCodec } from '../../src/codec/kms-codec.ts';
import { InvalidRequestState } from '../../src/contracts/codec.ts';
import type { KeyWrapper } from '../../src/contracts/key-wrapper.ts';
import { RingStoreError } from '../../src/contracts/ring-store.ts';
import { DataKey } from '../../src/keys/data-key.ts';
import { localKeyWrapper } from '../../src/kms/local-key-wrapper.ts';
import { encodeDocument, parseDocument, type RingEntry } from '../../src/ring/document.ts';
import { memoryRing } from '../../src/stores/memory-ring.ts';
import { sourceOf, tokensOver } from '../support/tokens.ts';

/* A second implementation of the format, from wire-formats.md alone, without any code of src. */

const PREFIX = 'sr1.';
const B64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const MAX_LENGTH = 256 * 1024;

function referenceKeyId(dataKey: Uint8Array): Buffer {
  return createHash('sha256')
    .update(Buffer.concat([Buffer.from('sealring/v1/key-id'), dataKey]))
    .digest()
    .subarray(0, 9);
}

function referenceSub(dataKey: Uint8Array, label: string, ring: string, tail: Uint8Array): Buffer {
  const name = Buffer.from(ring);
  const message = Buffer.concat([
    Buffer.from(label),
    Buffer.from([0]),
    Buffer.from([name.length >> 8, name.length & 255]),
    name,
    tail,
  ]);
  return createHmac('sha512', dataKey).update(message).digest();
}

interface Parts {
  readonly keyId: Buffer;
  readonly salt: Buffer;
  readonly commitment: Buffer;
  readonly nonce: Buffer;
  readonly ciphertext: Buffer;
  readonly tag: Buffer;
}

function referenceBlock(dataKey: Uint8Array, ring: string, salt: Uint8Array, purpose?: string): Buffer {
  const tail = purpose === undefined ? salt : Buffer.concat([salt, Buffer.from([0]), Buffer.from(purpose)]);
  return referenceSub(dataKey, 'sealring/v1/token', ring, tail);
}

function referenceSeal(
  dataKey: Uint8Array,
  ring: string,
  payload: Uint8Array,
  given: { salt?: Uint8Array; nonce?: Uint8Array; purpose?: string } = {},
): string {
  const salt = given.salt ?? randomBytes(18);
  const nonce = given.nonce ?? randomBytes(12);
  const block = referenceBlock(dataKey, ring, salt, given.purpose);
  const header = Buffer.concat([referenceKeyId(dataKey), salt, block.subarray(32, 50)]);
  const cipher = createCipheriv('aes-256-gcm', block.subarray(0, 32), nonce, { authTagLength: 16 });
  cipher.setAAD(Buffer.concat([Buffer.from(PREFIX), header]));
  const ciphertext = Buffer.concat([cipher.update(payload), cipher.final()]);
  const body = Buffer.concat([nonce, ciphertext, cipher.getAuthTag()]);
  return PREFIX + header.toString('base64url') + body.toString('base64url');
}

function take(token: string): Parts {
  const header = Buffer.from(token.slice(4, 64), 'base64url');
  const body = Buffer.from(token.slice(64), 'base64url');
  return {
    keyId: header.subarray(0, 9),
    salt: header.subarray(9, 27),
    commitment: header.subarray(27, 45),
    nonce: body.subarray(0, 12),
    ciphertext: body.subarray(12, -16),
    tag: body.subarray(-16),
  };
}

function put(parts: Parts): string {
  const header = Buffer.concat([parts.keyId, parts.salt, parts.commitment]).toString('base64url');
  return PREFIX + header + Buffer.concat([parts.nonce, parts.ciphertext, parts.tag]).toString('base64url');
}

function gcmOpen(key: Uint8Array, aad: Uint8Array, parts: Pick<Parts, 'nonce' | 'ciphertext' | 'tag'>): Buffer {
  const decipher = createDecipheriv('aes-256-gcm', key, parts.nonce, { authTagLength: 16 });
  decipher.setAAD(aad);
  decipher.setAuthTag(parts.tag);
  return Buffer.concat([decipher.update(parts.ciphertext), decipher.final()]);
}

function aadOf(parts: Parts): Buffer {
  return Buffer.concat([Buffer.from(PREFIX), parts.keyId, parts.salt, parts.commitment]);
}

function referenceOpen(dataKey: Uint8Array, ring: string, token: string, purpose?: string): Buffer {
  const parts = take(token);
  expect(put(parts)).toBe(token);
  expect(parts.keyId).toEqual(referenceKeyId(dataKey));
  const block = referenceBlock(dataKey, ring, parts.salt, purpose);
  expect(parts.commitment).toEqual(block.subarray(32, 50));
  return gcmOpen(block.subarray(0, 32), aadOf(parts), parts);
}

/* A Sealring token, with data keys that the test knows. */

const now: Moment = Object.freeze({ wallMs: 1_795_000_000_000, steadyMs: 5_000 });

function oneKey(ring = 'payments', purpose?: string) {
  const dataKey = randomBytes(32);
  const held = new DataKey(dataKey, ring);
  return { dataKey, ring, held, tokens: tokensOver(sourceOf([held]), { purpose }) };
}

function reasonOf(open: () => unknown): string {
  try {
    open();
  } catch (error) {
    if (error instanceof InvalidRequestState) return error.reason;
    throw error;
  }
  return 'opened';
}

/** A codec over a memory ring whose data keys the test reads at the key wrapper. */
async function codecWithKnownKeys(clock?: Clock): Promise<{ codec: KmsCodec; dataKeys: Buffer[] }> {
  const local = localKeyWrapper({ masterKey: randomBytes(32) });
  const dataKeys: Buffer[] = [];
  const keyWrapper: KeyWrapper = {
    ...local,
    async generate(options) {
      const made = await local.generate?.(options);
      if (made === undefined) throw new Error('the local key wrapper generates');
      dataKeys.push(Buffer.from(made.dataKey));
      return made;
    },
  };
  const codec = await createKmsCodec({ keyWrapper, ring: memoryRing(), ringName: 'payments', ...(clock && { clock }) });
  return { codec, dataKeys };
}

afterEach(() => {
  vi.restoreAllMocks();
});

describe('an implementation written from the document alone', () => {
  test('unseals our tokens, with payloads of 0 bytes to 70 KB, and with and without a purpose', () => {
    const keys = [oneKey(), oneKey('a'), oneKey('x'.repeat(64)), oneKey('payments', 'cursor')];
    fc.assert(
      fc.property(fc.nat(70_000), fc.nat(255), fc.constantFrom(...keys.keys()), (length, seed, which) => {
        const { dataKey, ring, tokens } = keys[which] ?? oneKey();
        const payload = Buffer.alloc(length, createHash('sha256').update(String(seed)).digest());
        const token = tokens.seal(payload, now);
        const opened = referenceOpen(dataKey, ring, token, which === 3 ? 'cursor' : undefined);
        expect(opened.equals(payload)).toBe(true);
        expect(Buffer.from(tokens.open(token, now).payload).equals(payload)).toBe(true);
      }),
      { numRuns: 150 },
    );
  });

  test('seals tokens that we unseal, with payloads of 0 bytes to 70 KB, cold and warm', () => {
    const { dataKey, ring, tokens } = oneKey();
    const salts = [randomBytes(18), randomBytes(18)];
    fc.assert(
      fc.property(fc.nat(70_000), fc.nat(1), (length, which) => {
        const payload = randomBytes(length);
        const salt = salts[which];
        const token = referenceSeal(dataKey, ring, payload, salt === undefined ? {} : { salt });
        const { payload: opened, key } = tokens.open(token, now);
        expect(Buffer.from(opened).equals(payload)).toBe(true);
        expect(opened.buffer.byteLength).toBe(length);
        expect(key.id).toBe(referenceKeyId(dataKey).toString('base64url'));
      }),
      { numRuns: 150 },
    );
  });

  test('makes exactly the same token as ours from the same salt and nonce', () => {
    for (const purpose of [undefined, 'cursor']) {
      const { dataKey, ring, tokens } = oneKey('payments', purpose);
      for (const length of [0, 1, 2, 3, 4_000, 9_000]) {
        const payload = randomBytes(length);
        const token = tokens.seal(payload, now);
        const { salt, nonce } = take(token);
        expect(referenceSeal(dataKey, ring, payload, { salt, nonce, ...(purpose && { purpose }) })).toBe(token);
      }
    }
  });

  test('derives different token keys for another ring name, even if one name begins with the other (F25)', () => {
    const dataKey = randomBytes(32);
    const ours = new DataKey(dataKey, 'a');
    const theirs = new DataKey(dataKey, 'ab');
    expect(ours.id).toBe(theirs.id);
    const token = tokensOver(sourceOf([ours])).seal(Buffer.from('state'), now);
    expect(reasonOf(() => tokensOver(sourceOf([theirs])).open(token, now))).toBe('authentication failed');
  });

  test('agrees with a real ring, whose data key only the key wrapper has seen', async () => {
    const { codec, dataKeys } = await codecWithKnownKeys();
    const [dataKey] = dataKeys;
    if (dataKey === undefined) throw new Error('the ring has a key');
    const payload = randomBytes(500);
    expect(referenceOpen(dataKey, 'payments', codec.seal(payload)).equals(payload)).toBe(true);
    expect(Buffer.from(codec.unseal(referenceSeal(dataKey, 'payments', payload))).equals(payload)).toBe(true);
    const forPurpose = codec.for('cursor');
    expect(referenceOpen(dataKey, 'payments', forPurpose.seal(payload), 'cursor').equals(payload)).toBe(true);
    await codec.close();
  });
});

describe('the shape of a token', () => {
  test('a token has a header of 60 characters and 73 bytes of overhead: 102 characters for an empty payload', () => {
    const { tokens, held } = oneKey();
    expect(tokens.seal(new Uint8Array(0), now)).toHaveLength(102);
    const headers = new Set<string>();
    for (let length = 0; length < 400; length++) {
      const token = tokens.seal(Buffer.alloc(length), now);
      expect(token).toMatch(/^sr1\.[A-Za-z0-9_-]+$/);
      expect(token).toHaveLength(4 + Math.ceil(((73 + length) * 4) / 3));
      expect(token.slice(4, 16)).toBe(held.id);
      expect(Buffer.from(token.slice(4), 'base64url')).toHaveLength(73 + length);
      headers.add(token.slice(4, 64));
    }
    expect(headers.size).toBe(1);
  });

  test('a token that is shorter than the shortest valid one is malformed', () => {
    const { dataKey, ring, tokens } = oneKey();
    const token = referenceSeal(dataKey, ring, new Uint8Array(0));
    for (let length = 0; length < token.length; length++) {
      expect(reasonOf(() => tokens.open(token.slice(0, length), now))).toBe('malformed');
    }
    expect(reasonOf(() => tokens.open(token, now))).toBe('opened');
  });
});

describe('changed tokens', () => {
  const { dataKey, ring } = oneKey();
  const token = referenceSeal(dataKey, ring, Buffer.from('{"step":2}'));
  const bytes = Buffer.from(token.slice(4), 'base64url');

  function expectedReason(byte: number): string {
    return byte < 9 ? 'unknown key' : 'authentication failed';
  }

  for (const warm of [false, true]) {
    test(`every flipped bit is refused ${warm ? 'while its header is warm' : 'with a cold header'}: in the key id as an unknown key, elsewhere as authentication failed`, () => {
      const held = new DataKey(dataKey, ring);
      const tokens = tokensOver(sourceOf([held]));
      for (let bit = 0; bit < bytes.length * 8; bit++) {
        if (warm) tokens.open(token, now);
        const flipped = Buffer.from(bytes);
        flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
        const reason = reasonOf(() => tokens.open(PREFIX + flipped.toString('base64url'), now));
        expect(`bit ${bit}: ${reason}`).toBe(`bit ${bit}: ${expectedReason(bit >> 3)}`);
      }
      expect(held.tokenKeyCount).toBe(warm ? 1 : 0);
    });
  }

  test('a body with bytes added to or removed from its end is refused', () => {
    const held = new DataKey(dataKey, ring);
    const tokens = tokensOver(sourceOf([held]));
    for (let cut = 1; cut <= 10; cut++) {
      const shorter = PREFIX + bytes.subarray(0, -cut).toString('base64url');
      expect(reasonOf(() => tokens.open(shorter, now))).toBe('authentication failed');
      const longer = PREFIX + Buffer.concat([bytes, randomBytes(cut)]).toString('base64url');
      expect(reasonOf(() => tokens.open(longer, now))).toBe('authentication failed');
    }
  });

  test('a tag cut to 4, 8, 12 or 15 bytes is refused (F19)', () => {
    const held = new DataKey(dataKey, ring);
    const tokens = tokensOver(sourceOf([held]));
    for (const length of [0, 8, 40]) {
      const whole = take(referenceSeal(dataKey, ring, randomBytes(length)));
      for (const tagBytes of [4, 8, 12, 15]) {
        const cut = put({ ...whole, tag: whole.tag.subarray(0, tagBytes) });
        // A token that is cut below the minimum length has no room for a tag.
        const expected = cut.length < 102 ? 'malformed' : 'authentication failed';
        for (const warm of [false, true]) {
          if (warm) tokens.open(put(whole), now);
          expect(reasonOf(() => tokens.open(cut, now))).toBe(expected);
        }
      }
    }
  });
});

describe('the spelling of a token (F18)', () => {
  /** The first of each kind: 0, 2 and 4 unused bits in the last character. */
  const lengths = [2, 1, 0];

  for (const length of lengths) {
    test(`all 63 other last characters of a token of ${length} bytes are refused, the aliases as malformed`, () => {
      const { dataKey, ring, tokens } = oneKey();
      const token = referenceSeal(dataKey, ring, Buffer.alloc(length));
      const whole = Buffer.from(token.slice(4), 'base64url');
      let aliases = 0;
      for (const warm of [false, true]) {
        if (warm) tokens.open(token, now);
        for (const last of B64) {
          const other = token.slice(0, -1) + last;
          if (other === token) continue;
          const isAlias = Buffer.from(other.slice(4), 'base64url').equals(whole);
          if (isAlias) aliases += 1;
          const canonical = Buffer.from(other.slice(4), 'base64url').toString('base64url') === other.slice(4);
          expect(reasonOf(() => tokens.open(other, now))).toBe(canonical ? 'authentication failed' : 'malformed');
        }
      }
      expect(aliases).toBe(2 * ({ 2: 0, 1: 3, 0: 15 }[length] ?? 0));
    });
  }

  test('a token with padding, white space, a percent sign or a dot anywhere is malformed', () => {
    const { dataKey, ring, tokens } = oneKey();
    for (const length of [0, 1, 2, 7_000]) {
      const token = referenceSeal(dataKey, ring, Buffer.alloc(length));
      for (const warm of [false, true]) {
        if (warm) tokens.open(token, now);
        for (const junk of [
          '=',
          '==',
          '\n',
          '\r\n',
          ' ',
          '\t',
          '\0',
          '%',
          '%3D',
          '.',
          '~',
          '\u00a0',
          '\u200b',
          '\ufeff',
        ]) {
          for (const at of [4, 16, 40, 64, 70, token.length]) {
            const reason = reasonOf(() => tokens.open(token.slice(0, at) + junk + token.slice(at), now));
            // A shift of the header may leave a canonical text with another key id.
            expect(reason).toBe('malformed');
          }
        }
      }
    }
  });

  /** Replaces every occurrence in the header, then in the body, of each character that `alias` knows. */
  function expectAliasesRefused(alias: (char: string) => readonly string[]): number {
    const { dataKey, ring, tokens } = oneKey();
    let tried = 0;
    for (let round = 0; round < 3; round++) {
      const token = referenceSeal(dataKey, ring, randomBytes(round === 2 ? 6_500 : 60));
      for (const warm of [false, true]) {
        if (warm) tokens.open(token, now);
        for (let at = 4; at < token.length; at += at > 300 ? 97 : 1) {
          for (const other of alias(token.charAt(at))) {
            const reason = reasonOf(() => tokens.open(token.slice(0, at) + other + token.slice(at + 1), now));
            expect(`${at} ${other}: ${reason}`).toBe(`${at} ${other}: malformed`);
            tried += 1;
          }
        }
      }
    }
    return tried;
  }

  test('a token in the standard base64 alphabet is malformed', () => {
    expect(expectAliasesRefused((char) => (char === '-' ? ['+'] : char === '_' ? ['/'] : []))).toBeGreaterThan(0);
  });

  test('characters whose low byte is a base64url character are malformed, in header and body', () => {
    const aliases = (char: string) =>
      [0x01, 0x02, 0x20, 0x4e, 0xff].map((high) => String.fromCharCode(high * 256 + char.charCodeAt(0)));
    expect(aliases('-')).toContain('\u012d');
    expect(expectAliasesRefused(aliases)).toBeGreaterThan(1_000);
  });

  test('look-alike characters are malformed: full-width, Cyrillic and mathematical ones, and other dashes', () => {
    const alike: Readonly<Record<string, readonly string[]>> = {
      a: ['\u0430'],
      o: ['\u043e'],
      A: ['\u0410', '\u{1d400}'],
      '-': ['\u2010', '\u2212', '\u00ad'],
      _: ['\u203f'],
      k: ['\u212a'],
    };
    const tried = expectAliasesRefused((char) => [
      ...(alike[char] ?? []),
      String.fromCharCode(0xfee0 + char.charCodeAt(0)),
    ]);
    expect(tried).toBeGreaterThan(500);
  });

  test('a change of case makes another token, which is refused', () => {
    const { dataKey, ring, tokens } = oneKey();
    const token = referenceSeal(dataKey, ring, randomBytes(50));
    for (let at = 4; at < token.length; at++) {
      const char = token.charAt(at);
      const other = char === char.toLowerCase() ? char.toUpperCase() : char.toLowerCase();
      if (other === char) continue;
      expect(reasonOf(() => tokens.open(token.slice(0, at) + other + token.slice(at + 1), now))).not.toBe('opened');
    }
    expect(reasonOf(() => tokens.open(token.toLowerCase(), now))).not.toBe('opened');
  });

  test('any text is refused unless it is the token', async () => {
    const { codec } = await codecWithKnownKeys();
    const token = codec.seal(randomBytes(30));
    fc.assert(
      fc.property(
        fc.nat(token.length),
        fc.nat(3),
        fc.oneof(
          fc.string({ unit: 'binary', maxLength: 3 }),
          fc.string({ unit: fc.constantFrom(...Array.from(B64)), maxLength: 3 }),
        ),
        (at, removed, inserted) => {
          const text = token.slice(0, at) + inserted + token.slice(at + removed);
          expect(reasonOf(() => codec.unseal(text)) === 'opened').toBe(text === token);
        },
      ),
      { numRuns: 3_000 },
    );
    await codec.close();
  });
});

describe('prefix and length', () => {
  test('a token under another prefix is refused by a codec that accepts every format (F24)', async () => {
    const codec = await createKmsCodec({
      keyWrapper: localKeyWrapper({ masterKey: randomBytes(32) }),
      ring: memoryRing(),
      accept: ['sealring', 'python'],
    });
    const token = codec.seal(Buffer.from('state'));
    expect(reasonOf(() => codec.unseal(token))).toBe('opened');
    for (const prefix of ['v1.', 'v1e.', 'sr2.', 'sr1', 'SR1.', 'sr1..', ' sr1.', 'Sr1.', '\ufb06r1.', '', 'sr0.']) {
      expect(reasonOf(() => codec.unseal(prefix + token.slice(4)))).not.toBe('opened');
    }
    const python = await createKmsCodec({
      keyWrapper: localKeyWrapper({ masterKey: randomBytes(32) }),
      ring: memoryRing(),
      format: 'python',
      accept: ['sealring', 'python'],
    });
    const theirs = python.seal(Buffer.alloc(200));
    expect(reasonOf(() => python.unseal(theirs))).toBe('opened');
    expect(reasonOf(() => python.unseal(`sr1.${theirs.slice(3)}`))).not.toBe('opened');
    await Promise.all([codec.close(), python.close()]);
  });

  test('the tag authenticates the prefix: a sealer that authenticates another prefix makes no token of this format (F24)', () => {
    const { dataKey, ring, tokens } = oneKey();
    const parts = take(referenceSeal(dataKey, ring, Buffer.from('state')));
    const block = referenceBlock(dataKey, ring, parts.salt);
    for (const prefix of ['', 'sr0.', 'v1.']) {
      const cipher = createCipheriv('aes-256-gcm', block.subarray(0, 32), parts.nonce, { authTagLength: 16 });
      cipher.setAAD(Buffer.concat([Buffer.from(prefix), parts.keyId, parts.salt, parts.commitment]));
      const ciphertext = Buffer.concat([cipher.update('state'), cipher.final()]);
      expect(reasonOf(() => tokens.open(put({ ...parts, ciphertext, tag: cipher.getAuthTag() }), now))).toBe(
        'authentication failed',
      );
    }
  });

  test('a token of 10 MB is refused before any byte of it is decoded (F30)', async () => {
    const codec = await createKmsCodec({
      keyWrapper: localKeyWrapper({ masterKey: randomBytes(32) }),
      ring: memoryRing(),
      accept: ['sealring', 'python'],
    });
    const short = codec.seal(Buffer.from('state'));
    const huge = `${short.slice(0, 64)}${'A'.repeat(10_000_000)}`;
    const decodes = [
      vi.spyOn(Buffer, 'from'),
      vi.spyOn(Buffer, 'allocUnsafeSlow'),
      vi.spyOn(Buffer, 'allocUnsafe'),
      vi.spyOn(Buffer.prototype, 'write'),
      vi.spyOn(Buffer.prototype, 'toString'),
    ];
    const count = () => decodes.reduce((sum, spy) => sum + spy.mock.calls.length, 0);
    const purpose = codec.for('cursor');
    for (const token of [huge, `v1.${huge.slice(4)}`, 'A'.repeat(10_000_000), '='.repeat(MAX_LENGTH + 1)]) {
      expect(reasonOf(() => codec.unseal(token))).toBe('malformed');
      expect(reasonOf(() => purpose.unseal(token))).toBe('malformed');
      expect(reasonOf(() => codec.inspect(token))).toBe('malformed');
    }
    expect(count()).toBe(0);
    // A token at the bound itself is decoded, which shows that the counters count.
    expect(reasonOf(() => codec.unseal(huge.slice(0, MAX_LENGTH)))).not.toBe('opened');
    expect(count()).toBeGreaterThan(0);
    await codec.close();
  });
});

/*
 * GF(2^128) and GHASH of SP 800-38D, section 6.3 and 6.4: bit 0 of a block is its leftmost, so a block read as a
 * big-endian number has the coefficient of x^0 in its highest bit.
 */

const ONE = 1n << 127n;
const REDUCE = 0xe1n << 120n;

function multiply(x: bigint, y: bigint): bigint {
  let product = 0n;
  let v = y;
  for (let bit = 127n; bit >= 0n; bit--) {
    if ((x >> bit) & 1n) product ^= v;
    v = v & 1n ? (v >> 1n) ^ REDUCE : v >> 1n;
  }
  return product;
}

/** x^(2^128 − 2): Fermat's little theorem in the field of 2^128 elements. */
function inverse(x: bigint): bigint {
  let result = ONE;
  let power = x;
  for (let i = 1; i < 128; i++) {
    power = multiply(power, power);
    result = multiply(result, power);
  }
  return result;
}

function blocksOf(bytes: Uint8Array): bigint[] {
  const padded = Buffer.concat([bytes, Buffer.alloc((16 - (bytes.length % 16)) % 16)]);
  return Array.from({ length: padded.length / 16 }, (_, i) => numberOf(padded.subarray(16 * i, 16 * i + 16)));
}

function numberOf(block: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(block).toString('hex')}`);
}

function blockOf(value: bigint): Buffer {
  return Buffer.from(value.toString(16).padStart(32, '0'), 'hex');
}

function ghash(h: bigint, blocks: readonly bigint[]): bigint {
  return blocks.reduce((sum, block) => multiply(sum ^ block, h), 0n);
}

function aesBlock(key: Uint8Array, block: Uint8Array): bigint {
  const cipher = createCipheriv('aes-256-ecb', key, null).setAutoPadding(false);
  return numberOf(Buffer.concat([cipher.update(block), cipher.final()]));
}

/** The length block of GHASH: bits of additional data and of ciphertext. */
function lengthBlock(aadBytes: number, ciphertextBytes: number): bigint {
  return (BigInt(aadBytes * 8) << 64n) | BigInt(ciphertextBytes * 8);
}

function gcmTag(key: Uint8Array, nonce: Uint8Array, aad: Uint8Array, ciphertext: Uint8Array): bigint {
  const h = aesBlock(key, Buffer.alloc(16));
  const mask = aesBlock(key, Buffer.concat([nonce, Buffer.from([0, 0, 0, 1])]));
  return ghash(h, [...blocksOf(aad), ...blocksOf(ciphertext), lengthBlock(aad.length, ciphertext.length)]) ^ mask;
}

/**
 * A ciphertext of two blocks and a tag that verify under both keys (Grubbs, Lu and Ristenpart, 2017; Dodis and others,
 * 2018). The tag is linear in the second block C: tag = base + C × H^2, so one equation gives C.
 */
function collide(
  keys: readonly [Uint8Array, Uint8Array],
  aads: readonly [Uint8Array, Uint8Array],
): Pick<Parts, 'nonce' | 'ciphertext' | 'tag'> {
  const nonce = randomBytes(12);
  const first = randomBytes(16);
  const open = Buffer.concat([first, Buffer.alloc(16)]);
  const base = gcmTag(keys[0], nonce, aads[0], open) ^ gcmTag(keys[1], nonce, aads[1], open);
  const h = keys.map((key) => aesBlock(key, Buffer.alloc(16))) as [bigint, bigint];
  const second = multiply(base, inverse(multiply(h[0], h[0]) ^ multiply(h[1], h[1])));
  const ciphertext = Buffer.concat([first, blockOf(second)]);
  return { nonce, ciphertext, tag: blockOf(gcmTag(keys[0], nonce, aads[0], ciphertext)) };
}

describe('a ciphertext made for two keys', () => {
  const salt = randomBytes(18);

  /** Token keys of two data keys under one salt, commitments (theirs first), and the AAD of each one's own header. */
  function keysOfBoth(dataKeys: readonly [Uint8Array, Uint8Array]) {
    const [a, b] = dataKeys;
    const blocks = [referenceBlock(a, 'payments', salt), referenceBlock(b, 'payments', salt)] as const;
    const ownAad = (dataKey: Uint8Array, block: Buffer) =>
      Buffer.concat([Buffer.from(PREFIX), referenceKeyId(dataKey), salt, block.subarray(32, 50)]);
    return {
      keys: [blocks[0].subarray(0, 32), blocks[1].subarray(0, 32)] as const,
      commitments: [blocks[0].subarray(32, 50), blocks[1].subarray(32, 50), Buffer.alloc(18), randomBytes(18)],
      aads: [ownAad(a, blocks[0]), ownAad(b, blocks[1])] as const,
    };
  }

  test('the field and GHASH of this test match node:crypto', () => {
    for (let i = 0; i < 20; i++) {
      const [key, nonce, aad, payload] = [
        randomBytes(32),
        randomBytes(12),
        randomBytes(randomInt(60)),
        randomBytes(randomInt(70)),
      ];
      const cipher = createCipheriv('aes-256-gcm', key, nonce);
      cipher.setAAD(aad);
      const ciphertext = Buffer.concat([cipher.update(payload), cipher.final()]);
      expect(blockOf(gcmTag(key, nonce, aad, ciphertext))).toEqual(cipher.getAuthTag());
    }
    const x = numberOf(randomBytes(16)) | 1n;
    expect(multiply(x, inverse(x))).toBe(ONE);
  });

  test('decrypts under both token keys with raw AES-GCM, and is refused by a ring with both data keys (F3)', async () => {
    const { codec, dataKeys } = await codecWithKnownKeys();
    await codec.rotate();
    const [one, two] = dataKeys;
    if (one === undefined || two === undefined) throw new Error('the ring has two keys');
    expect(codec.health().keys.filter((key) => key.held)).toHaveLength(2);

    const { keys, commitments, aads } = keysOfBoth([one, two]);
    const bodies = [
      // Valid for each key with its own additional data: only the commitment prevents it.
      { body: collide(keys, aads), aads },
      ...[one, two].flatMap((dataKey) =>
        commitments.map((commitment) => {
          const aad = Buffer.concat([Buffer.from(PREFIX), referenceKeyId(dataKey), salt, commitment]);
          return { body: collide(keys, [aad, aad]), aads: [aad, aad] as const };
        }),
      ),
    ];
    const opened: string[] = [];
    for (const [n, { body, aads: under }] of bodies.entries()) {
      const plaintexts = [gcmOpen(keys[0], under[0], body), gcmOpen(keys[1], under[1], body)] as const;
      expect(plaintexts[0]).toHaveLength(32);
      expect(plaintexts[0].equals(plaintexts[1])).toBe(false);
      for (const [i, dataKey] of [one, two].entries()) {
        for (const [j, commitment] of commitments.entries()) {
          const token = put({ keyId: referenceKeyId(dataKey), salt, commitment, ...body });
          const reason = reasonOf(() => codec.unseal(token));
          expect(reason).toMatch(/^(?:authentication failed|opened)$/);
          if (reason === 'authentication failed') continue;
          // It must unseal only under the key that its header commits to, with that key's result.
          const right = Buffer.from(codec.unseal(token)).equals(i === 0 ? plaintexts[0] : plaintexts[1]);
          opened.push(`body ${n} key ${i} commitment ${j}${right ? '' : ' wrongly'}`);
        }
      }
    }
    expect(opened).toEqual([
      'body 0 key 0 commitment 0',
      'body 0 key 1 commitment 1',
      'body 1 key 0 commitment 0',
      'body 6 key 1 commitment 1',
    ]);
    await codec.close();
  });

  test('unseals only under the data key of its commitment if two data keys have one key id (F3, F16)', () => {
    const [one, two] = [randomBytes(32), randomBytes(32)];
    const held = [new DataKey(one, 'payments'), new DataKey(two, 'payments')] as const;
    // The id of the first, claimed for the second: the result of 2^72 work, or of a broken hash.
    const ofOne = tokensOver(sourceOf([held[0]]));
    const ofTwo = tokensOver(sourceOf([held[1]], new Map([[held[0].id, held[1]]])));
    const { keys, commitments } = keysOfBoth([one, two]);
    const aadUnderOneId = (commitment: Buffer = Buffer.alloc(0)) =>
      Buffer.concat([Buffer.from(PREFIX), referenceKeyId(one), salt, commitment]);
    const aads = [aadUnderOneId(commitments[0]), aadUnderOneId(commitments[1])] as const;
    const body = collide(keys, aads);
    expect(gcmOpen(keys[0], aads[0], body)).toHaveLength(32);
    expect(gcmOpen(keys[1], aads[1], body)).toHaveLength(32);
    const token = (commitment: Buffer) => put({ keyId: referenceKeyId(one), salt, commitment, ...body });
    const outcomes = commitments.map((commitment) =>
      [ofOne, ofTwo].map((tokens) => reasonOf(() => tokens.open(token(commitment), now))),
    );
    expect(outcomes).toEqual([
      ['opened', 'authentication failed'],
      ['authentication failed', 'opened'],
      ['authentication failed', 'authentication failed'],
      ['authentication failed', 'authentication failed'],
    ]);
  });

  test('an honest token with a colliding key id is refused by its commitment, unlike a ciphertext made for two keys (F16)', () => {
    const [one, two] = [oneKey(), oneKey()];
    const token = take(referenceSeal(one.dataKey, one.ring, Buffer.from('state')));
    const renamed = put({ ...token, keyId: referenceKeyId(two.dataKey) });
    expect(reasonOf(() => two.tokens.open(renamed, now))).toBe('authentication failed');
    const collided = tokensOver(sourceOf([two.held], new Map([[one.held.id, two.held]])));
    expect(reasonOf(() => collided.open(put(token), now))).toBe('authentication failed');
    expect(two.held.tokenKeyCount).toBe(0);
  });
});

describe('key ids', () => {
  const times = { created: 0, activates: 0, sealsUntil: 1_000, opensUntil: 2_000 };
  const mac = Buffer.alloc(32, 1);
  const wrap = { provider: 'local', keyId: 'k', wrapped: Buffer.alloc(60, 1), mac };
  const entry: RingEntry = { id: 'AAAAAAAAAAAA', ...times, vouchers: new Map(), revoked: undefined, wraps: [wrap] };
  const textOf = (...entries: readonly RingEntry[]) => encodeDocument({ ring: 'payments', claim: undefined, entries });

  /** The ids of a document's keys and vouchers, or the kind of its refusal. */
  function idsIn(text: string): unknown {
    try {
      const { entries } = parseDocument(text, 'payments');
      return entries.flatMap(({ id, vouchers }) => [id, ...vouchers.keys()]);
    } catch (error) {
      if (error instanceof RingStoreError) return error.kind;
      throw error;
    }
  }

  test('ids that are member names of every object are not valid in a document, and are unknown keys in a token (F17)', () => {
    const { tokens } = oneKey();
    const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf', '__proto__AAA', 'constructorA'];
    for (const name of names) {
      const id = name.slice(0, 12).padEnd(12, '_');
      const body = randomBytes(45).toString('base64url').slice(12) + randomBytes(30).toString('base64url');
      expect(reasonOf(() => tokens.open(`${PREFIX}${id}${body}`, now))).toBe('unknown key');
      expect(tokens.misses).toContain(id);

      const text = textOf({ ...entry, id: name, vouchers: new Map([[name, mac]]) });
      expect(idsIn(text)).toEqual(name.length === 12 ? [name, name] : 'corrupt');
    }
    expect(Object.getPrototypeOf({})).toBe(Object.prototype);
  });
});
