import { randomBytes } from 'node:crypto';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execCodecTarget, runCodecConformance } from '@sealring/conformance';
import { createKmsCodec, fileRing, localKeyWrapper } from '@sealring/core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { pythonWithPackage } from './python-package.ts';

const program = fileURLToPath(new URL('conformance_target.py', import.meta.url));
// The program imports the modules beside it.
const env = { PYTHONPATH: fileURLToPath(new URL('../../packages/conformance/templates/python', import.meta.url)) };
const folder = mkdtempSync(join(tmpdir(), 'sealring-kit-'));
const masterKey = randomBytes(32).toString('base64url');
const rings = ['before', 'after', 'stranger'].map((name) => join(folder, `${name}.ring`));
let python = '';

async function foundRings([before = '', after = '', stranger = '']: readonly string[]): Promise<void> {
  for (const path of [after, stranger]) {
    const keyWrapper = localKeyWrapper({ masterKey });
    const codec = await createKmsCodec({ keyWrapper, ring: fileRing(path), create: 'now' });
    if (path === after) {
      copyFileSync(after, before);
      await codec.rotate({ emergency: true });
    }
    await codec.close();
  }
}

beforeAll(async () => {
  python = await pythonWithPackage();
  await foundRings(rings);
});
afterAll(() => rmSync(folder, { recursive: true }));

test.each([
  ['sealring', 1],
  ['python', 2],
] as const)(
  'the Python package passes the whole conformance kit through a pipe: format %s, seed %i',
  async (format, seed) => {
    const command = [python, program, format, masterKey, ...rings];
    const target = execCodecTarget(command, { name: `sealring for Python, ${format}`, env, timeoutMs: 60_000 });
    try {
      const { results, passed } = await runCodecConformance(target, { seed });
      expect(results.filter(({ status }) => status === 'fail' || status === 'warn')).toEqual([]);
      expect(passed).toBe(true);
      expect(results.filter(({ status }) => status === 'pass').length).toBeGreaterThan(30);
    } finally {
      await target.close();
    }
  },
);
