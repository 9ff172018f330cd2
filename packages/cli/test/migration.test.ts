import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AesGcmRequestStateCodec, createKmsCodec, fileRing, localKeyWrapper } from '@sealring/core';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { newProject, runCli } from './cli-process.ts';

const OLD = 'sealring.config.mjs';
const NEW = 'new.config.mjs';

let project: ReturnType<typeof newProject>;
const run = (args: readonly string[]) => runCli(args, { cwd: project.cwd });
const at = (name: string): string => join(project.cwd, name);
const textOf = (name: string): string => readFileSync(at(name), 'utf8');
const secretOf = (): string => textOf('sealring.local.key').trim();
const newMasterKey = randomBytes(32).toString('base64url');

beforeEach(async () => {
  project = newProject();
  await run(['init', '--local']);
});
afterEach(() => project.remove());

const oldWrapper = () => localKeyWrapper({ masterKey: secretOf() });
const openOld = (format: 'sealring' | 'python' = 'sealring') =>
  createKmsCodec({ ringName: 'local', ring: fileRing(at('sealring.local.ring')), keyWrapper: oldWrapper(), format });

/** A configuration with another key and another store. */
function writeNewConfig(ringName = 'local'): void {
  writeFileSync(
    at(NEW),
    `import { fileRing, localKeyWrapper } from '@sealring/core';
export default {
  ringName: '${ringName}',
  ring: fileRing(new URL('new.ring', import.meta.url).pathname),
  keyWrapper: localKeyWrapper({ masterKey: '${newMasterKey}' }),
};
`,
  );
}

describe('export', () => {
  test('export writes the stored document, readable only by its owner, with no plaintext key', async () => {
    const { code, stdout, stderr } = await run(['export', 'backup.ring', '--json']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).toMatchObject({ file: 'backup.ring', ring: 'local', what: '1 wrapped key' });
    expect(textOf('backup.ring')).toBe(textOf('sealring.local.ring'));
    expect(statSync(at('backup.ring')).mode & 0o777).toBe(0o600);
  });

  test('export overwrites no file and follows no link', async () => {
    writeFileSync(at('mine'), 'mine');
    symlinkSync(at('elsewhere'), at('link'));
    for (const file of ['mine', 'link']) expect((await run(['export', file])).code).toBe(2);
    expect(textOf('mine')).toBe('mine');
    expect(existsSync(at('elsewhere'))).toBe(false);
    expect((await run(['export', 'no/such/folder'])).code).toBe(2);
  });

  test('export writes no document whose keys it cannot unwrap', async () => {
    writeFileSync(at('sealring.local.key'), randomBytes(32).toString('base64url'));
    expect((await run(['export', 'backup.ring'])).code).toBe(1);
    expect(existsSync(at('backup.ring'))).toBe(false);
  });

  test('export --plain requires a second flag and prints a warning (F21)', async () => {
    const refused = await run(['export', 'plain.json', '--plain', 'python']);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toMatch(/--they-leave-the-kms.*import --from/);
    expect(existsSync(at('plain.json'))).toBe(false);
    expect((await run(['export', 'x', '--they-leave-the-kms'])).code).toBe(2);
    const { code, stdout, stderr } = await run(['export', 'plain.json', '--plain', 'python', '--they-leave-the-kms']);
    expect(code).toBe(0);
    expect(stderr).toMatch(/^WARNING: .*IN PLAINTEXT/);
    const { keys } = JSON.parse(textOf('plain.json'));
    expect(stdout + stderr).not.toContain(keys[0]);
    expect(statSync(at('plain.json')).mode & 0o777).toBe(0o600);
  });

  test('exported secrets unseal only tokens of their format, and the secret of the active key comes first', async () => {
    await using before = await openOld('python');
    const first = before.seal(new TextEncoder().encode('before'));
    await run(['rotate']);
    await run(['export', 'plain.json', '--plain', 'python', '--they-leave-the-kms']);
    const { keys }: { keys: readonly string[] } = JSON.parse(textOf('plain.json'));
    expect(keys).toHaveLength(2);
    const decoded = keys.map((key) => Buffer.from(key, 'base64url'));
    const outside = new AesGcmRequestStateCodec(decoded);
    expect(Buffer.from(outside.unseal(first)).toString()).toBe('before');
    // The successor propagates: the secret's tokens must still unseal, now and at every server.
    expect(Buffer.from(before.unseal(outside.seal(Buffer.from('after')))).toString()).toBe('after');
    expect(() => new AesGcmRequestStateCodec(decoded.slice(1)).unseal(first)).toThrow('unknown key');
    expect(Buffer.from(new AesGcmRequestStateCodec(decoded.slice(0, 1)).unseal(first)).toString()).toBe('before');
    await using native = await openOld();
    for (const key of keys) expect(textOf('sealring.local.ring')).not.toContain(key);
    expect(() => outside.unseal(native.seal(Buffer.from('native')))).toThrow('malformed');
  });
});

describe('import', () => {
  test('import restores a lost ring, and its tokens can be unsealed again (F31)', async () => {
    await using codec = await openOld();
    const token = codec.seal(Buffer.from('x'));
    await codec.close();
    await run(['export', 'backup.ring']);
    renameSync(at('sealring.local.ring'), at('lost.ring'));
    const { code, stdout, stderr } = await run(['import', 'backup.ring', '--json']);
    expect(code).toBe(0);
    expect(stderr).toMatch(/^WARNING: .*Revoke again/);
    expect(JSON.parse(stdout).keys).toHaveLength(1);
    await using again = await openOld();
    expect(Buffer.from(again.unseal(token)).toString()).toBe('x');
  });

  test('import ignores a newline at the end of the file', async () => {
    await run(['export', 'backup.ring']);
    const text = textOf('backup.ring');
    writeFileSync(at('backup.ring'), `${text}\n`);
    renameSync(at('sealring.local.ring'), at('lost.ring'));
    expect((await run(['import', 'backup.ring'])).code).toBe(0);
    expect(textOf('sealring.local.ring')).toBe(text);
  });

  test('import does not overwrite a ring (F31)', async () => {
    await run(['export', 'backup.ring']);
    const before = textOf('sealring.local.ring');
    const { code, stderr } = await run(['import', 'backup.ring']);
    expect(code).toBe(1);
    expect(stderr).toMatch(/the store already has a ring/);
    expect(textOf('sealring.local.ring')).toBe(before);
  });

  test('import stores no document whose keys the configuration cannot unwrap (F26)', async () => {
    await run(['export', 'backup.ring']);
    writeNewConfig();
    writeFileSync(at('edited.ring'), textOf('backup.ring').replace('"keys":', '"epoch":1,"keys":'));
    renameSync(at('sealring.local.ring'), at('lost.ring'));
    for (const args of [['edited.ring'], ['sealring.local.key'], ['backup.ring', '--config', NEW]]) {
      expect((await run(['import', ...args])).code).toBe(1);
    }
    expect(readdirSync(project.cwd)).not.toContain('sealring.local.ring');
    expect(readdirSync(project.cwd)).not.toContain('new.ring');
  });

  test('import --from copies a ring to another store and KMS key, and its tokens can be unsealed there', async () => {
    await using codec = await openOld();
    const token = codec.seal(Buffer.from('x'));
    await codec.rotate();
    await codec.close();
    writeNewConfig();
    const { code, stdout, stderr } = await run(['import', '--from', OLD, '--config', NEW, '--json']);
    expect(code).toBe(0);
    expect(stderr).toMatch(/^WARNING: two stores now have this ring/);
    expect(JSON.parse(stdout)).toMatchObject({ keys: { length: 2 }, unverifiedRevocations: [] });
    const ring = fileRing(at('new.ring'));
    await using carried = await createKmsCodec({
      ringName: 'local',
      ring,
      keyWrapper: localKeyWrapper({ masterKey: newMasterKey }),
      create: 'never',
    });
    expect(Buffer.from(carried.unseal(token)).toString()).toBe('x');
    // The other direction: servers with the old key unseal tokens that were sealed in the new place.
    await using back = await createKmsCodec({ ringName: 'local', ring, keyWrapper: oldWrapper(), create: 'never' });
    expect(back.unseal(carried.seal(Buffer.from('y')))).toHaveLength(1);
    expect(textOf('new.ring')).not.toContain(secretOf());
  });

  test('import --from leaves the old ring unchanged', async () => {
    const before = textOf('sealring.local.ring');
    writeNewConfig();
    await run(['import', '--from', OLD, '--config', NEW]);
    expect(textOf('sealring.local.ring')).toBe(before);
  });

  test('import --from rejects another ring name (F25)', async () => {
    writeNewConfig('other');
    const { code, stderr } = await run(['import', '--from', OLD, '--config', NEW]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/"local".*"other"/);
    expect(existsSync(at('new.ring'))).toBe(false);
  });

  test.each([[[]], [['a.ring', '--from', OLD]], [['no-such.ring']]])(
    'import %j is rejected with exit code 2',
    async (args) => {
      expect((await run(['import', ...args])).code).toBe(2);
    },
  );
});
