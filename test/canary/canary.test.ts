import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { canaryEnvironment } from './environment.ts';
import { formsOf, sightings } from './search.ts';

const mark = randomBytes(8);
let folder = '';

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sealring-canary-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function inFile(content: Uint8Array | string): readonly string[] {
  const file = join(folder, 'output');
  writeFileSync(file, content);
  return sightings(mark, [file]).map(({ form }) => form);
}

describe('the search for keys that were generated in a canary run (F21)', () => {
  const key = Buffer.concat([mark, randomBytes(24)]);

  test.for([
    ['raw', key],
    ['hex', key.toString('hex')],
    ['HEX', key.toString('hex').toUpperCase()],
    ['hex', `<Buffer ${key.toString('hex').replaceAll(/(..)/g, '$1 ')}>`],
    ['numbers', inspect(new Uint8Array(key))],
    ['numbers', JSON.stringify([...key])],
    ['base64 behind 0', key.toString('base64')],
    ['base64url behind 0', key.toString('base64url')],
    ['base64 behind 1', Buffer.concat([Buffer.alloc(1), key]).toString('base64')],
    ['base64url behind 2', Buffer.concat([Buffer.alloc(5), key]).toString('base64url')],
  ] as const)('the search finds a key that was generated in a canary run as %s', ([form, content]) => {
    expect(inFile(Buffer.concat([Buffer.from('before '), Buffer.from(content), Buffer.from(' after')]))).toContain(
      form,
    );
  });

  test('the search finds a key across two pieces of a long file', () => {
    expect(inFile(Buffer.concat([Buffer.alloc(1024 * 1024 - 3, 0x20), key, Buffer.alloc(1024, 0x20)]))).toEqual([
      'raw',
    ]);
  });

  test('the search finds nothing in a text without a key', () => {
    expect(inFile(randomBytes(100_000).toString('base64'))).toEqual([]);
  });

  test('the search looks for each form, and all forms differ', () => {
    const forms = [...formsOf(Buffer.from('0123456789abcdef', 'hex')).values()].map(String);
    // Base64 and base64url differ only if the mark has one of their two letters.
    expect(new Set(forms).size).toBeGreaterThanOrEqual(forms.length - 3);
  });
});

describe('the canary mark in keys (F21)', () => {
  const CORE = new URL('../../packages/core/dist/index.js', import.meta.url).href;

  function outputOf(program: string): readonly string[] {
    const args = ['--input-type=module', '--eval', program];
    const { stdout, stderr, status } = spawnSync(process.execPath, args, { env: canaryEnvironment(mark) });
    expect({ status, stderr: status === 0 ? '' : String(stderr) }).toEqual({ status: 0, stderr: '' });
    return inFile(Buffer.concat([stdout, stderr]));
  }

  const START = `
    import { randomBytes } from 'node:crypto';
    import { createKmsCodec, localKeyWrapper, memoryRing } from '${CORE}';
    const keyWrapper = localKeyWrapper({ masterKey: randomBytes(32) });
    const ring = memoryRing();
    const codec = await createKmsCodec({ keyWrapper, ring, create: 'now' });
    const token = codec.seal(new Uint8Array(100));
  `;

  test('a program that prints its data key is caught', () => {
    const leak = `const { dataKey } = await keyWrapper.generate({ context: {} }); console.log(dataKey);`;
    expect(outputOf(START + leak)).not.toEqual([]);
  });

  test('a program that throws its master key is caught', () => {
    const leak = `process.on('uncaughtException', (error) => { console.error(error); process.exit(0); });
      throw new Error(randomBytes(32).toString('base64'));`;
    expect(outputOf(START + leak)).not.toEqual([]);
  });

  test('a program that prints codec, ring document, health, token and events shows no key', () => {
    const show = `
      import { inspect } from 'node:util';
      await codec.rotate({ emergency: true });
      const shown = [codec, keyWrapper, ring, await ring.read(), codec.health(), codec.inspect(token), token];
      for (const one of shown) console.log(inspect(one, { depth: 9, showHidden: true }), JSON.stringify(one));
    `;
    expect(outputOf(START + show)).toEqual([]);
  });
});
