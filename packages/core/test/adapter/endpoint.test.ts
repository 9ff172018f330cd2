import { expect, test } from 'vitest';
import { endpointUrl } from '../../src/adapter/options.ts';

const read = (value: unknown, mayBeHttp = false): string => endpointUrl('f', 'endpoint', value, mayBeHttp).href;

test.each([
  'https://kms.example:8443/x',
  'http://127.0.0.1:1',
  'http://127.1.2.3',
  'http://127.255.10.1',
  'http://localhost:1',
  'http://[::1]:1',
])('the endpoint %s is accepted', (url) => {
  expect(read(url)).toBe(new URL(url).href);
});

test.each([
  'http://kms.example',
  'http://notlocalhost',
  'http://127.0.0.1.example',
  'http://localhost.example',
  'http://0.0.0.0:1',
])('the endpoint %s is accepted only where the caller allows plaintext', (url) => {
  expect(() => read(url)).toThrow(/dangerouslyAllowHttp/);
  expect(read(url, true)).toBe(new URL(url).href);
});

test.each([
  'ftp://kms.example',
  'kms.example:443',
  '',
  'https://u@h',
  'https://u:canary@h',
  'https://:canary@h',
  'https://h?canary',
  'https://h#canary',
])('the endpoint %o is refused, and the error does not repeat it', (url) => {
  expect(() => read(url, true)).toThrow(RangeError);
  expect(() => read(url, true)).toThrow(/^f: endpoint must be an? (?:https:\/\/ )?URL/);
  expect(() => read(url, true)).not.toThrow(/canary/);
});

test.each([undefined, 7, null, {}])('an endpoint %o, which is not a string, is refused', (value) => {
  expect(() => read(value)).toThrow(TypeError);
});
