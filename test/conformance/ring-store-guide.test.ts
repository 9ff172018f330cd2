import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const guide = readFileSync(join(root, 'docs/guides/write-your-own-ring-store.md'), 'utf8');
const folder = mkdtempSync(join(tmpdir(), 'sealring-guide-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function fencesOf(language: string): readonly string[] {
  return [...guide.matchAll(new RegExp(`^\`\`\`${language}\\b[^\\n]*\\n(.*?)^\`\`\`$`, 'gms'))].map(
    ([, text = '']) => text,
  );
}

/** Types a command into a shell. */
function type(command: string): Promise<{ readonly code: number; readonly output: string }> {
  const { NODE_OPTIONS: _, ...env } = process.env;
  const PATH = `${dirname(process.execPath)}:${env['PATH']}`;
  const typed = command.replace('npx sealring-conformance', 'node node_modules/@sealring/conformance/dist/cli/main.js');
  return new Promise((resolve) => {
    execFile('sh', ['-c', typed], { cwd: folder, env: { ...env, PATH } }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), output: `${command}\n${stdout}${stderr}` });
    });
  });
}

test('who follows the guide has a ring store checked, and a broken one found', { timeout: 600_000 }, async () => {
  // What npm install would do.
  mkdirSync(join(folder, 'node_modules/@sealring'), { recursive: true });
  for (const name of ['core', 'conformance']) {
    symlinkSync(join(root, 'packages', name), join(folder, 'node_modules/@sealring', name));
  }
  const commands = fencesOf('sh').flatMap((text) => text.trim().split('\n'));
  const [copying = '', checking = '', testing = ''] = commands.filter((command) => !command.startsWith('npm install'));

  expect(await type(copying)).toMatchObject({ code: 0 });
  const only = '--only RING-ROUNDTRIP,RING-STALE-LOSES,RING-CAS-ONE-WINNER --rounds 5';
  const unfilled = await type(`${checking} ${only}`);
  expect(unfilled).toMatchObject({ code: 1, output: expect.stringContaining('RING-ROUNDTRIP') });

  const [backend = ''] = fencesOf('ts');
  writeFileSync(join(folder, 'my-store/backend.ts'), backend);
  for (const command of [checking, testing]) {
    const ended = await type(command);
    expect(ended.code, ended.output).toBe(0);
  }
  expect(readFileSync(join(folder, 'report.html'), 'utf8')).toContain('RING-CAS-ONE-WINNER');

  const broken = backend
    .replace(' AND revision = ?', '')
    .replace('document, revision, name, expected', 'document, revision, name');
  expect(broken).not.toBe(backend);
  writeFileSync(join(folder, 'my-store/backend.ts'), broken);
  const found = await type(`${checking} ${only}`);
  expect(found).toMatchObject({ code: 1, output: expect.stringContaining('RING-STALE-LOSES') });
});
