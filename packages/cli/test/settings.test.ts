import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { newProject, runCli } from './cli-process.ts';

let project: ReturnType<typeof newProject>;
beforeEach(() => {
  project = newProject();
});
afterEach(() => project.remove());

const run = (args: readonly string[], env: NodeJS.ProcessEnv = {}) => runCli(args, { cwd: project.cwd, env });

function write(name: string, text: string): void {
  writeFileSync(join(project.cwd, name), text);
}

const SOUND = `import { localKeyWrapper, memoryRing } from '@sealring/core';
const keyWrapper = localKeyWrapper({ masterKey: Buffer.alloc(32, 'ÿ a fixed key') });
`;

const COMMANDS = ['doctor', 'status', 'init', 'rotate', 'revoke', 'inspect', 'export', 'import', 'policy', 'bench'];

describe('the command line', () => {
  test.each(COMMANDS)('%s has help with an example, and no option that takes a secret', async (command) => {
    const { code, stdout } = await run([command, '--help']);
    expect(code).toBe(0);
    expect(stdout).toContain(`$ npx sealring ${command}`);
    const options = [...stdout.matchAll(/^ +(--[a-z-]+)/gm)].map(({ 1: option = '' }) => option);
    expect(options.filter((option) => /key|secret|token|password|credential|url/.test(option))).toEqual([]);
  });

  test('sealring without a command lists the commands', async () => {
    const { code, stderr } = await run([]);
    expect(code).toBe(2);
    for (const command of COMMANDS) expect(stderr).toContain(command);
  });

  test('the error about an unknown option names it and suggests another', async () => {
    const { code, stderr } = await run(['status', '--jsn']);
    expect(code).toBe(2);
    expect(stderr).toMatch(/--jsn.*--json/);
  });

  test.each(['0', 'soon', '1e9'])('the error about --watch %s names the option and its value', async (value) => {
    const { code, stderr } = await run(['status', '--watch', value]);
    expect(code).toBe(2);
    expect(stderr).toContain('--watch');
    expect(stderr).toContain(value);
  });
});

describe('the choice of a configuration', () => {
  test('the error about a missing configuration lists all ways to provide one', async () => {
    const { code, stderr } = await run(['status']);
    expect(code).toBe(2);
    expect(stderr).toMatch(/sealring\.config\.js.*--config.*SEALRING_\*.*init --local/);
  });

  test.each(['sealring.config.js', 'sealring.config.mjs'])('%s in the working directory is loaded', async (name) => {
    write('package.json', '{ "type": "module" }');
    write(name, `${SOUND}export default { ring: memoryRing(), keyWrapper, ringName: 'mine' };`);
    const { code, stdout } = await run(['doctor']);
    expect(code).toBe(0);
    expect(stdout).toContain(`ring "mine" as a member, configured by ${name}`);
  });

  test('a function in the --config module is called, --role overrides its role, and its ring is closed', async () => {
    write(
      'ring.mjs',
      `${SOUND}export default async () => ({ ring: { ...memoryRing(), close: async () => console.error('closed') }, keyWrapper });
export const close = () => console.error('and the rest');
// Represents an open connection, which must not delay the end of the process.
setInterval(() => undefined, 1000);`,
    );
    const { code, stdout, stderr } = await run(['doctor', '--config', 'ring.mjs', '--role', 'reader']);
    expect(code).toBe(0);
    expect(stdout).toContain('as a reader, configured by ring.mjs');
    expect(stderr).toBe('closed\nand the rest\n');
  });

  test.each([
    ['a number as default export', 'export default 7;', /has no configuration: its default export must be an object/],
    [
      'an unknown option',
      `${SOUND}export default { ring: memoryRing(), keyWraper: keyWrapper };`,
      /unknown option "keyWraper"; did you mean "keyWrapper"\?/,
    ],
    [
      'no store',
      `${SOUND}export default { ring: 'redis://', keyWrapper };`,
      /ring must be a ring store, such as s3Ring\(\{ … \}\), got a string/,
    ],
    [
      'no key wrapper',
      `${SOUND}export default { ring: memoryRing(), keyWrapper: [] };`,
      /keyWrapper must be .*got an empty list/,
    ],
    [
      'a singleUse that is not a store',
      `${SOUND}export default { ring: memoryRing(), keyWrapper, singleUse: memoryRing() };`,
      /singleUse must be a single-use store/,
    ],
    [
      'half a probe',
      `${SOUND}export default { ring: memoryRing(), keyWrapper, probe: { ring: memoryRing() } };`,
      /probe must/,
    ],
    ['a missing package', "import 'no-such-package';", /no-such-package/],
    [
      'an option that its adapter refuses',
      "import { localKeyWrapper } from '@sealring/core'; export default { keyWrapper: localKeyWrapper({ masterKey: 'short' }) };",
      /masterKey/,
    ],
  ])('a configuration with %s is rejected with a message that names the mistake', async (_, text, message) => {
    write('sealring.config.mjs', text);
    const { code, stderr, stdout } = await run(['status']);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(message);
    expect(stderr.trimEnd()).not.toContain('\n');
  });

  test('an error in a configuration file is reported by class and line, without its message (F21)', async () => {
    write('sealring.config.mjs', "\nthrow new Error('postgres://app:hunter2@db');");
    const { code, stderr } = await run(['status']);
    expect(code).toBe(2);
    expect(stderr).toMatch(/cannot load sealring\.config\.mjs, line 2: Error$/m);
    expect(stderr).not.toContain('hunter2');
  });

  test.each([
    [{ SEALRING_RING_STORE: 's3' }, /no KMS key is named.*SEALRING_AWS_KMS_KEY_ID/],
    [{ SEALRING_AWS_KMS_KEY_ID: 'alias/x' }, /SEALRING_RING_STORE is not set/],
    [
      { SEALRING_AWS_KMS_KEY_ID: 'alias/x', SEALRING_RING_STORE: 'floppy' },
      /SEALRING_RING_STORE must be s3, .*file, or a URL: .*; got "floppy"/,
    ],
    [{ SEALRING_AWS_KMS_KEY_ID: 'alias/x', SEALRING_RING_STORE: 's3' }, /SEALRING_S3_BUCKET is not set/],
    [
      { SEALRING_AWS_KMS_KEY_ID: 'alias/x', SEALRING_AWS_KMS_MULTI_REGION: 'yes' },
      /SEALRING_AWS_KMS_MULTI_REGION must be true or false, got "yes"/,
    ],
    [{ SEALRING_AWS_KMS_KEY_ID: 'not a key' }, /keyId/],
    [{ SEALRING_GCP_KMS_KEY_ID: 'not a key' }, /keyId/],
    [{ SEALRING_AZURE_KEY_ID: 'https://v.vault.azure.net/keys/k' }, /SEALRING_AZURE_SIGN_KEY_ID is not set/],
  ])('the environment %j is rejected with a message that names the variable', async (env, message) => {
    const { code, stderr } = await run(['status'], { AWS_REGION: 'us-east-1', ...env });
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
  });
});
