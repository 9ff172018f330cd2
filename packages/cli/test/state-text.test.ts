import { createHash } from 'node:crypto';
import { deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { isReadable } from '../src/probe/state-text.ts';

const text = '{"order":"1017","step":2}';
const tag = Buffer.from('3f9c0d71e2a84b56c8f1027d9eab4c6533d0917bfae2584c06d1b7933ea5f082', 'hex');

describe('a state', () => {
  test.each([
    ['plaintext', text],
    ['base64url', Buffer.from(text).toString('base64url')],
    ['hexadecimal', Buffer.from(text).toString('hex')],
    ['zlib', deflateSync(text).toString('base64url')],
    ['gzip', gzipSync(text).toString('base64url')],
    ['raw DEFLATE', deflateRawSync(text).toString('base64url')],
    ['raw DEFLATE with a tag of 32 bytes', Buffer.concat([deflateRawSync(text), tag]).toString('base64url')],
  ])('a state in %s is readable', (_name, state) => {
    expect(isReadable(state)).toBe(true);
  });

  test('a state of random bytes that happen to begin like DEFLATE data is not readable', () => {
    // Ends after a few bytes: literal "a", 100 times the byte before, end of block.
    const start = deflateRawSync('a'.repeat(101));
    expect(start.length).toBeLessThan(16);
    const random = createHash('shake256', { outputLength: 300 }).update('random').digest();
    expect(isReadable(`v1.${Buffer.concat([start, random]).toString('base64url')}`)).toBe(false);
    expect(isReadable(`v1.${random.toString('base64url')}`)).toBe(false);
  });
});
