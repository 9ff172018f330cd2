import { describe, expect, test } from 'vitest';
import { formatKeyId, isOf, parseKeyId, parseVersionId } from '../src/key-id.ts';

const VERSION = '0123456789abcdef0123456789abcdef';
const KEY = 'https://payments.vault.azure.net/keys/ring-wrapping';

describe('key identifiers', () => {
  test.each([KEY, `${KEY}/${VERSION}`, 'https://hsm.managedhsm.azure.net/keys/K', 'https://127.0.0.1:8443/keys/k-1'])(
    '%s is parsed, and formatted to the same text',
    (id) => {
      const parsed = parseKeyId(id);
      expect(parsed === undefined ? undefined : formatKeyId(parsed)).toBe(id);
    },
  );

  test('host names are lowercased, and the default port is dropped', () => {
    expect(parseKeyId('https://Payments.Vault.Azure.NET:443/keys/Ring')).toEqual({
      vaultUrl: 'https://payments.vault.azure.net',
      name: 'Ring',
      version: undefined,
    });
  });

  test.each([
    'http://payments.vault.azure.net/keys/k',
    'https://payments.vault.azure.net',
    'https://payments.vault.azure.net/keys/',
    'https://payments.vault.azure.net/secrets/k',
    `${KEY}/`,
    `${KEY}/${VERSION}/wrapkey`,
    `${KEY}/${VERSION.toUpperCase()}`,
    `${KEY}/${VERSION.slice(1)}`,
    `${KEY}/..`,
    'https://payments.vault.azure.net/keys/a%2Fb',
    'https://payments.vault.azure.net/keys/a b',
    'https://user:password@payments.vault.azure.net/keys/k',
    'https://payments.vault.azure.net@evil.example/keys/k',
    'https://payments.vault.azure.net/keys/k?version=1',
    'https://payments.vault.azure.net/keys/k#x',
    'https://payments.vault.azure.net:99999/keys/k',
    ' https://payments.vault.azure.net/keys/k',
    `${KEY}\n`,
    'https://payments.vault.azure.net\\keys\\k',
    'https://ｐayments.vault.azure.net/keys/k',
    '',
  ])('%j is rejected', (text) => {
    expect(parseKeyId(text)).toBeUndefined();
  });

  test.each([undefined, null, 7, {}, [KEY]])('a value that is not a string is rejected: %j', (value) => {
    expect(parseKeyId(value)).toBeUndefined();
  });

  test('only an identifier with a version names a version', () => {
    expect(parseVersionId(KEY)).toBeUndefined();
    expect(parseVersionId(`${KEY}/${VERSION}`)).toMatchObject({ name: 'ring-wrapping', version: VERSION });
  });

  test('adapter rule 6: a key id without a version matches every version, and one with a version matches only that one', () => {
    const other = 'f'.repeat(32);
    const whole = parseKeyId(KEY);
    const one = parseKeyId(`${KEY}/${VERSION}`);
    if (whole === undefined || one === undefined) throw new Error('both are identifiers');
    expect(isOf(whole, `${KEY}/${VERSION}`)).toBe(true);
    expect(isOf(whole, `${KEY}/${other}`)).toBe(true);
    expect(isOf(one, `${KEY}/${VERSION}`)).toBe(true);
    expect(isOf(one, `${KEY}/${other}`)).toBe(false);
    expect(isOf(whole, KEY)).toBe(false);
    expect(isOf(whole, `https://PAYMENTS.vault.azure.net/keys/RING-wrapping/${VERSION}`)).toBe(true);
    expect(isOf(whole, `https://payments.vault.azure.net/keys/ring/${VERSION}`)).toBe(false);
    expect(isOf(whole, `https://payment.vault.azure.net/keys/ring-wrapping/${VERSION}`)).toBe(false);
    expect(isOf(whole, `https://payments.vault.azure.net:8443/keys/ring-wrapping/${VERSION}`)).toBe(false);
  });
});
