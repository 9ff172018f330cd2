import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { bytesOf, keyIdOf, parseKeyId, parseKeyPath, transitKey, versionOf } from '../src/key-path.ts';

const BODY = Buffer.alloc(60, 7).toString('base64');
const segment = fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}[A-Za-z0-9_]$/);
const segments = fc.array(segment, { minLength: 1, maxLength: 5 }).map((parts) => parts.join('/'));
const version = fc.integer({ min: 1, max: 2 ** 31 - 1 }).map(String);

describe('paths of transit keys', () => {
  test('namespace, mount and name make one path, and the root namespace adds nothing', () => {
    expect(transitKey('team/sub', 'deep/transit', 'k')).toEqual({
      path: 'team/sub/deep/transit/keys/k',
      mount: 'team/sub/deep/transit',
      name: 'k',
    });
    expect(transitKey('', 'transit', 'k').path).toBe('transit/keys/k');
  });

  test('a formatted path is parsed as the same key', () => {
    fc.assert(
      fc.property(fc.option(segments, { nil: '' }), segments, segment, (namespace, mount, name) => {
        const key = transitKey(namespace, mount, name);
        expect(parseKeyPath(key.path)).toEqual(key);
      }),
    );
  });

  test('a formatted keyId is parsed as the same path and version', () => {
    fc.assert(
      fc.property(segments, segment, version, (mount, name, made) => {
        const key = transitKey('', mount, name);
        expect(parseKeyId(keyIdOf(key, made))).toEqual({ path: key.path, version: made });
      }),
    );
  });

  test.each([
    '',
    'transit',
    'payments',
    'transit/payments',
    'transit/keys/',
    '/transit/keys/k',
    'keys/k',
    'transit/keys/a/b/',
    'transit/../keys/k',
    'transit/./keys/k',
    'transit//keys/k',
    'transit/keys/..',
    'transit/keys/k:v1',
    'transit/keys/k\n',
    'tränsit/keys/k',
    'transit/keys/k?x',
    'transit/keys/%2e%2e',
  ])('%j is not a path of a key', (path) => {
    expect(parseKeyPath(path)).toBeUndefined();
  });

  test.each([
    '',
    'k',
    'k:v',
    'k:v0',
    'k:v01',
    'k:v+1',
    'k:v-1',
    'k:v1 ',
    'k:v1\n',
    ':v1',
    'k:V1',
    'k:v12345678901',
    'k:1',
  ])('%j is not a keyId', (keyId) => {
    expect(parseKeyId(keyId)).toBeUndefined();
  });
});

describe('ciphertexts', () => {
  test('a ciphertext of any version is parsed', () => {
    fc.assert(
      fc.property(version, fc.uint8Array({ minLength: 60, maxLength: 100 }), (made, bytes) => {
        expect(versionOf(`vault:v${made}:${Buffer.from(bytes).toString('base64')}`)).toBe(made);
      }),
    );
  });

  test.each([
    ['version 0, which Vault decrypts as 1', `vault:v0:${BODY}`],
    ['a leading zero, which Vault ignores', `vault:v01:${BODY}`],
    ['a sign, which Vault ignores', `vault:v+1:${BODY}`],
    ['no version', `vault:v:${BODY}`],
    ['another prefix', `Vault:v1:${BODY}`],
    ['no prefix', BODY],
    ['a further field', `vault:v1:1:${BODY}`],
    ['white space', `vault:v1:${BODY}\n`],
    ['base64 without its padding', `vault:v1:${Buffer.alloc(61).toString('base64').replace(/=+$/, '')}`],
    ['base64 with stray bits', `vault:v1:${Buffer.alloc(61).toString('base64').replace('A==', 'B==')}`],
    ['base64url', `vault:v1:${Buffer.alloc(60, 0xff).toString('base64url')}`],
    ['fewer bytes than nonce, data key and tag', `vault:v1:${Buffer.alloc(57).toString('base64')}`],
    ['nothing', ''],
  ])('%s is rejected', (_, text) => {
    expect(versionOf(text)).toBeUndefined();
  });
});

test('base64 that is not canonical is rejected', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 70 }), (bytes) => {
      expect(new Uint8Array(bytesOf(Buffer.from(bytes).toString('base64')) ?? [])).toEqual(bytes);
    }),
  );
  for (const wrong of ['A', 'AA', 'AA=', 'AB==', 'AA==\n', ' AA==', 'A-==', 'AA==AA==', undefined, 7, null, ['AA==']]) {
    expect(bytesOf(wrong)).toBeUndefined();
  }
});
