import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const guide = readFileSync(join(root, 'docs/guides/write-your-own-key-wrapper.md'), 'utf8');
const folder = mkdtempSync(join(tmpdir(), 'sealring-guide-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function fencesOf(language: string): readonly string[] {
  const fences = guide.matchAll(new RegExp(`^\`\`\`${language}\\b[^\\n]*\\n(.*?)^\`\`\`$`, 'gms'));
  return [...fences].map(([, text = '']) => text);
}

/** Types a command into a shell. */
function type(command: string): Promise<{ readonly code: number; readonly output: string }> {
  const { NODE_OPTIONS: _, NODE_TEST_CONTEXT: __, ...env } = process.env;
  const PATH = `${dirname(process.execPath)}:${env['PATH']}`;
  const typed = command.replace('npx sealring-conformance', 'node node_modules/@sealring/conformance/dist/cli/main.js');
  return new Promise((resolve) => {
    execFile('sh', ['-c', typed], { cwd: folder, env: { ...env, PATH } }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), output: `${command}\n${stdout}${stderr}` });
    });
  });
}

test('who follows the guide has a key wrapper checked, and a broken one found', { timeout: 300_000 }, async () => {
  // What npm install would do.
  mkdirSync(join(folder, 'node_modules/@sealring'), { recursive: true });
  for (const name of ['core', 'conformance']) {
    symlinkSync(join(root, 'packages', name), join(folder, 'node_modules/@sealring', name));
  }
  const commands = fencesOf('sh').flatMap((text) => text.trim().split('\n'));
  const [starting = '', checking = '', testing = ''] = commands.filter((command) => !command.startsWith('npm install'));

  expect(await type(starting)).toMatchObject({ code: 0 });
  const only = '--only WRAP-ROUNDTRIP,WRAP-CONTEXT-BINDS';
  const unfilled = await type(`${checking} ${only}`);
  expect(unfilled).toMatchObject({ code: 1, output: expect.stringContaining('WRAP-ROUNDTRIP') });

  const [service = ''] = fencesOf('ts');
  writeFileSync(join(folder, 'my-kms/service.ts'), service);
  const checked = await type(checking);
  expect(checked.code, checked.output).toBe(0);
  expect(readFileSync(join(folder, 'report.html'), 'utf8')).toContain('WRAP-CONTEXT-BINDS');
  const tested = await type(testing);
  expect(tested.code, tested.output).toBe(0);
  expect(tested.output).toMatch(/skipped [1-9]/);

  const broken = service.replaceAll('.setAAD(Buffer.from(`1${context}`))', '');
  expect(broken).not.toBe(service);
  writeFileSync(join(folder, 'my-kms/service.ts'), broken);
  const found = await type(`${checking} ${only}`);
  expect(found).toMatchObject({ code: 1, output: expect.stringContaining('WRAP-CONTEXT-BINDS') });
});
