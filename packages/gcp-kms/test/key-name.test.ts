import { describe, expect, test } from 'vitest';
import { isKeyName, keyOfVersion } from '../src/key-name.ts';

const KEY = 'projects/shop/locations/europe-west1/keyRings/mcp/cryptoKeys/sealring';

describe('resource names', () => {
  test.each([
    KEY,
    'projects/example.com:shop-1/locations/global/keyRings/A_b-9/cryptoKeys/9',
    'projects/123456789012/locations/us/keyRings/r/cryptoKeys/k',
    `projects/shop/locations/eu/keyRings/${'r'.repeat(63)}/cryptoKeys/${'k'.repeat(63)}`,
  ])('%s names a key, and its versions belong to it', (name) => {
    expect(isKeyName(name)).toBe(true);
    expect(keyOfVersion(`${name}/cryptoKeyVersions/1`)).toBe(name);
    expect(keyOfVersion(`${name}/cryptoKeyVersions/1204`)).toBe(name);
    expect(keyOfVersion(name)).toBeUndefined();
  });

  test.each([
    '',
    'sealring',
    `/${KEY}`,
    `${KEY}/`,
    `${KEY}\n`,
    ` ${KEY}`,
    `//cloudkms.googleapis.com/${KEY}`,
    `gcp-kms://${KEY}`,
    `${KEY}/cryptoKeyVersions/1`,
    KEY.replace('shop', 'Shop'),
    KEY.replace('shop', 'a/b'),
    KEY.replace('shop', '..'),
    KEY.replace('europe-west1', '-'.repeat(64)),
    KEY.replace('mcp', 'm c p'),
    KEY.replace('mcp', 'r'.repeat(64)),
    KEY.replace('sealring', ''),
    KEY.replace('sealring', 'ключ'),
    KEY.replace('cryptoKeys', 'cryptokeys'),
  ])('%j does not name a key', (name) => {
    expect(isKeyName(name)).toBe(false);
  });

  test.each(['0', '01', '-1', '1.0', '', 'latest', '1/', '1\n', '9'.repeat(20)])(
    'the version %j is rejected',
    (version) => {
      expect(keyOfVersion(`${KEY}/cryptoKeyVersions/${version}`)).toBeUndefined();
    },
  );
});
