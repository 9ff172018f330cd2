import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { createKmsCodec, fileRing, localKeyWrapper } from '@sealring/core';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { newProject, runCli } from './cli-process.ts';

const root = join(import.meta.dirname, '../../..');
const MAIN = join(import.meta.dirname, '../dist/main.js');
const EXAMPLE_ID = 'zWmwhf-E_bTV';

/** The program of npx. Another test covers the question and the wait of a revocation, and the code of status. */
const NPX = `#!/bin/sh
shift
if [ "$1" = revoke ]; then shift; set -- revoke --yes --no-wait "$@"; fi
"${process.execPath}" "${MAIN}" "$@"
code=$?
if [ "$1" = status ] && [ $code = 3 ]; then exit 0; fi
exit $code
`;

/** The destination in the guide on moving. */
const NEW_CONFIG = `import { fileRing, localKeyWrapper } from '@sealring/core';
export default {
  ringName: 'local',
  ring: fileRing(new URL('new.ring', import.meta.url).pathname),
  keyWrapper: localKeyWrapper({ masterKey: '${randomBytes(32).toString('base64url')}' }),
};
`;

let project: ReturnType<typeof newProject>;
beforeEach(() => {
  project = newProject();
  const bin = join(project.cwd, 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'npx'), NPX);
  chmodSync(join(bin, 'npx'), 0o755);
});
afterEach(() => project.remove());

/** Runs the lines of an example as a shell would. Commands that install, and those that never end, are left out. */
async function runLines(text: string): Promise<{ readonly code: number; readonly output: string }> {
  const lines = text.split('\n').filter((line) => !line.startsWith('npm install') && !line.includes('--watch'));
  if (!lines.some((line) => line.includes('init --local'))) await runCli(['init', '--local'], { cwd: project.cwd });
  else await runShell(lines.filter((line) => line.includes('init --local')).join('\n'));
  const id = await prepareToken();
  writeFileSync(join(project.cwd, 'new.config.mjs'), NEW_CONFIG);
  const rest = lines.filter((line) => !line.includes('init --local')).join('\n');
  return runShell(rest.replaceAll(EXAMPLE_ID, id));
}

function runShell(script: string): Promise<{ readonly code: number; readonly output: string }> {
  const env = { ...process.env, PATH: [join(project.cwd, 'bin'), process.env['PATH']].join(delimiter) };
  return new Promise((resolve) => {
    execFile('sh', ['-ec', script], { cwd: project.cwd, env }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), output: `${stdout}${stderr}` });
    });
  });
}

/** Puts a token where the examples read one. @returns the id of its key. */
async function prepareToken(): Promise<string> {
  await using codec = await createKmsCodec({
    ringName: 'local',
    ring: fileRing(join(project.cwd, 'sealring.local.ring')),
    keyWrapper: localKeyWrapper({ masterKey: readFileSync(join(project.cwd, 'sealring.local.key'), 'utf8').trim() }),
  });
  const token = codec.seal(new TextEncoder().encode('x'));
  writeFileSync(join(project.cwd, 'token.txt'), `${token}\n`);
  return codec.inspect(token).keyId;
}

const PAGES = [
  'packages/cli/README.md',
  'docs/guides/operate.md',
  'docs/guides/incidents.md',
  'docs/guides/rotation-and-revocation.md',
  'docs/guides/export-and-import.md',
];

const fences = PAGES.flatMap((document) => {
  const text = readFileSync(join(root, document), 'utf8');
  return [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(({ 1: script = '', index }) => ({
    place: `${document}:${text.slice(0, index).split('\n').length}`,
    script,
  }));
});

describe.skipIf(process.platform === 'win32')('commands in the documentation', () => {
  test('the documentation has more than five blocks of commands', () => {
    expect(fences.length).toBeGreaterThan(5);
  });

  test.each(fences)('the commands at $place run on a local ring', async ({ script }) => {
    expect(await runLines(script)).toMatchObject({ code: 0 });
  });

  // The doctor's example names a key of AWS; the tests of all packages run it on an emulator.
  test.each(['status', 'init', 'rotate', 'revoke', 'inspect', 'export', 'import', 'policy', 'bench', 'keeper'])(
    'the example in the help of %s runs',
    async (command) => {
      const { stdout } = await runCli([command, '--help'], { cwd: project.cwd });
      const lines = [...stdout.matchAll(/^ {2}\$ (.*)$/gm)].map(({ 1: line = '' }) => line);
      expect(lines.length).toBeGreaterThan(0);
      expect(await runLines(lines.join('\n'))).toMatchObject({ code: 0 });
    },
  );
});
