import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as mcp from '../src/index.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'sealring-copy-'));
let copy: typeof mcp;

/** The built package in its own folder, like a second version in another `node_modules`. */
beforeAll(async () => {
  cpSync(join(root, 'packages/mcp/dist'), join(folder, 'dist'), { recursive: true });
  cpSync(join(root, 'packages/mcp/package.json'), join(folder, 'package.json'));
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  copy = await import(pathToFileURL(join(folder, 'dist/index.js')).href);
});
afterAll(() => rmSync(folder, { recursive: true }));

const errorsOf = ({ CodecFailedError, InvalidClaimError, SingleUseStoreFullError }: typeof mcp) => [
  new CodecFailedError('x'),
  new InvalidClaimError('sub', 'a string'),
  new SingleUseStoreFullError('x'),
];

test('instanceof is true for errors of another copy of the package, but only for the class of the error', () => {
  for (const error of [...errorsOf(mcp), ...errorsOf(copy)]) {
    const { CodecFailedError, InvalidClaimError, SingleUseStoreFullError } = mcp;
    const classes = [CodecFailedError, InvalidClaimError, SingleUseStoreFullError];
    expect(classes.filter((errorClass) => error instanceof errorClass).map(({ name }) => name)).toEqual([error.name]);
  }
});

test('instanceof is false for a class that extends the class of an error', () => {
  class Own extends mcp.CodecFailedError {}
  expect([new Own('x') instanceof Own, new mcp.CodecFailedError('x') instanceof Own]).toEqual([true, false]);
});

describe('isMcpError', () => {
  test('recognizes errors of this copy of the package and of another', () => {
    expect(copy.SingleUseStoreFullError).not.toBe(mcp.SingleUseStoreFullError);
    for (const error of [...errorsOf(mcp), ...errorsOf(copy)]) {
      expect([mcp.isMcpError(error), copy.isMcpError(error)]).toEqual([true, true]);
    }
  });

  test('rejects other errors, and values that are not errors', () => {
    const named = Object.assign(new Error('x'), { name: 'CodecFailedError', code: 'ERR_CODEC_FAILED' });
    const branded = { [Symbol.for('@sealring/mcp/error')]: true };
    for (const value of [named, branded, new TypeError('x'), undefined, null, 'ERR_CODEC_FAILED']) {
      expect(mcp.isMcpError(value)).toBe(false);
    }
  });
});

test('MCP_ERROR_CODES lists the code of every error class', () => {
  const codes = errorsOf(mcp).map(({ code }) => code);
  expect(codes.toSorted()).toEqual(mcp.MCP_ERROR_CODES);
  const page = 'https://github.com/sealring/sealring/blob/main/docs/errors.md';
  for (const { name, help } of errorsOf(mcp)) expect(help).toBe(`${page}#${name.toLowerCase()}`);
});
