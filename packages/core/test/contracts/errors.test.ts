import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { INVALID_REASONS, InvalidRequestState } from '../../src/contracts/codec.ts';
import { CodecClosedError, SEAL_UNAVAILABLE_REASONS, SealUnavailableError } from '../../src/contracts/errors.ts';
import { KEY_WRAPPER_ERROR_KINDS, KeyWrapperError } from '../../src/contracts/key-wrapper.ts';
import { RING_STORE_ERROR_KINDS, RingConflictError, RingStoreError } from '../../src/contracts/ring-store.ts';
import * as core from '../../src/index.ts';

const root = fileURLToPath(new URL('../../../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'sealring-copy-'));
let copy: typeof core;

/** The built package in its own folder, like a second version in another `node_modules`. */
beforeAll(() => {
  cpSync(join(root, 'packages/core/dist'), join(folder, 'dist'), { recursive: true });
  cpSync(join(root, 'packages/core/package.json'), join(folder, 'package.json'));
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  // Node loads it, as for a user: vite would look for the sources of the copy.
  copy = createRequire(import.meta.url)(join(folder, 'dist/index.js'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const CLASSES = [
  'CodecClosedError',
  'InvalidRequestState',
  'KeyWrapperError',
  'RingConflictError',
  'RingStoreError',
  'SealUnavailableError',
  'SingleUseStoreError',
] as const;

const errorsOf = (from: typeof core) => ({
  CodecClosedError: new from.CodecClosedError(),
  InvalidRequestState: new from.InvalidRequestState('malformed'),
  KeyWrapperError: new from.KeyWrapperError('denied', { provider: 'local', operation: 'wrap', code: 'AccessDenied' }),
  RingConflictError: new from.RingConflictError(),
  RingStoreError: new from.RingStoreError('denied', 'x', { serviceCode: 'AccessDenied' }),
  SealUnavailableError: new from.SealUnavailableError('reader'),
  SingleUseStoreError: new from.SingleUseStoreError('denied', 'x', { serviceCode: 'AccessDenied' }),
});

const classesOf = ({ ...all }: typeof core): Pick<typeof core, (typeof CLASSES)[number]> => all;
const [ours, theirs] = [classesOf(core), () => classesOf(copy)];

describe.each(CLASSES)('instanceof %s', (name) => {
  test('instanceof is true for the errors of the class and of its copy in another package, and for no other error', () => {
    expect(theirs()[name]).not.toBe(ours[name]);
    for (const [errorName, error] of [...Object.entries(errorsOf(core)), ...Object.entries(errorsOf(copy))]) {
      expect([error instanceof ours[name], error instanceof theirs()[name]]).toEqual(Array(2).fill(errorName === name));
    }
  });

  test('instanceof is false for objects that only look like an error of the class', () => {
    const { code } = errorsOf(core)[name];
    const branded = { name, code, [Symbol.for('@sealring/core/error')]: code };
    for (const value of [Object.assign(new Error('x'), { name, code }), branded, undefined, null, name]) {
      expect(value instanceof ours[name]).toBe(false);
    }
  });
});

test('instanceof of a subclass of one of the package’s classes is true only for errors of that subclass', () => {
  class OwnError extends core.RingStoreError {}
  expect(new OwnError('denied', 'x')).toBeInstanceOf(core.RingStoreError);
  expect(new OwnError('denied', 'x') instanceof OwnError).toBe(true);
  expect(new core.RingStoreError('denied', 'x') instanceof OwnError).toBe(false);
});

const page = readFileSync(join(root, 'docs/errors.md'), 'utf8');

test.each<readonly [string, Error & { readonly help: string }, string]>([
  ['CodecClosedError', new CodecClosedError(), 'the codec is closed'],
  ['RingConflictError', new RingConflictError(), 'another writer changed the ring first: read it again'],
  ...INVALID_REASONS.map(
    (reason) => [`InvalidRequestState: ${reason}`, new InvalidRequestState(reason), reason] as const,
  ),
  ...SEAL_UNAVAILABLE_REASONS.map(
    (reason) =>
      [`SealUnavailableError: ${reason}`, new SealUnavailableError(reason), `cannot seal: ${reason}`] as const,
  ),
  ...RING_STORE_ERROR_KINDS.map(
    (kind) => [`RingStoreError: ${kind}`, new RingStoreError(kind, 'x'), `ring store ${kind}: x`] as const,
  ),
  ...KEY_WRAPPER_ERROR_KINDS.map((kind) => {
    const error = new KeyWrapperError(kind, { provider: 'local', operation: 'wrap' });
    return [`KeyWrapperError: ${kind}`, error, `local wrap: ${kind}`] as const;
  }),
])('the error of the section “%s” has the name and message given there, and links to it', (title, error, message) => {
  expect(page).toMatch(new RegExp(`^##+ ${title}$`, 'm'));
  expect([error.name, error.message]).toEqual([title.split(':')[0], message]);
  const anchor = title.toLowerCase().replaceAll(':', '').replaceAll(' ', '-');
  expect(error.help).toBe(`https://github.com/sealring/sealring/blob/main/docs/errors.md#${anchor}`);
});

test('each error class has its own code, which the code of a service does not replace', () => {
  const classes = Object.values(core).filter(
    (value) => typeof value === 'function' && value.prototype instanceof Error,
  );
  const errors = Object.values(errorsOf(core));
  expect(new Set(errors.map((error) => error.constructor))).toEqual(new Set(classes));
  const codes = [...errors.map(({ code }) => code), optionErrorCode()];
  expect(new Set(codes)).toEqual(new Set(core.CORE_ERROR_CODES));
  expect(codes.length).toBe(core.CORE_ERROR_CODES.length);
});

function optionErrorCode(): unknown {
  try {
    core.fileRing('');
  } catch (error) {
    return error instanceof Error && 'code' in error ? error.code : undefined;
  }
  throw new Error('an empty path was accepted');
}
