import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const temporary = mkdtempSync(join(tmpdir(), 'sealring-guides-'));
afterAll(() => rmSync(temporary, { recursive: true, force: true }));

function fencesOf(guide: string, language: string): readonly string[] {
  const fences = guide.matchAll(new RegExp(`^\`\`\`${language}\\b[^\\n]*\\n(.*?)^\`\`\`$`, 'gms'));
  return [...fences].map(([, text = '']) => text);
}

/** Types a command into a shell. */
function type(command: string, cwd: string): Promise<{ readonly code: number; readonly output: string }> {
  const { NODE_OPTIONS: _, NODE_TEST_CONTEXT: __, ...env } = process.env;
  const PATH = `${dirname(process.execPath)}:${env['PATH']}`;
  const typed = command.replace('npx sealring-conformance', 'node node_modules/@sealring/conformance/dist/cli/main.js');
  return new Promise((resolve) => {
    execFile('sh', ['-c', typed], { cwd, env: { ...env, PATH } }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), output: `${command}\n${stdout}${stderr}` });
    });
  });
}

const GUIDES: readonly (readonly [
  what: string,
  file: string,
  only: string,
  foundBy: string,
  broken: (sound: string) => string,
])[] = [
  [
    'key wrapper',
    'my-kms/service.ts',
    '--only WRAP-ROUNDTRIP,WRAP-CONTEXT-BINDS',
    'WRAP-CONTEXT-BINDS',
    (sound) => sound.replaceAll('.setAAD(Buffer.from(`1${context}`))', ''),
  ],
  [
    'ring store',
    'my-store/backend.ts',
    '--only RING-ROUNDTRIP,RING-STALE-LOSES,RING-CAS-ONE-WINNER --rounds 5',
    'RING-STALE-LOSES',
    (sound) =>
      sound.replace(' AND revision = ?', '').replace('document, revision, name, expected', 'document, revision, name'),
  ],
];

test.each(GUIDES)(
  'a %s from the guide passes the checks, and a broken one fails them',
  async (what, file, only, foundBy, broken) => {
    const name = what.replace(' ', '-');
    const folder = join(temporary, name);
    // Links the packages as npm install would.
    mkdirSync(join(folder, 'node_modules/@sealring'), { recursive: true });
    for (const one of ['core', 'conformance']) {
      symlinkSync(join(root, 'packages', one), join(folder, 'node_modules/@sealring', one));
    }
    const guide = readFileSync(join(root, `docs/guides/write-your-own-${name}.md`), 'utf8');
    const commands = fencesOf(guide, 'sh').flatMap((text) => text.trim().split('\n'));
    const [starting = '', checking = '', testing = ''] = commands.filter((one) => !one.startsWith('npm install'));

    expect(await type(starting, folder)).toMatchObject({ code: 0 });
    const unfilled = await type(`${checking} ${only}`, folder);
    expect(unfilled).toMatchObject({ code: 1, output: expect.stringContaining('-ROUNDTRIP') });

    const [sound = ''] = fencesOf(guide, 'ts');
    writeFileSync(join(folder, file), sound);
    const checked = await type(checking, folder);
    expect(checked.code, checked.output).toBe(0);
    const tested = await type(testing, folder);
    expect(tested.code, tested.output).toBe(0);
    // Tests that do not apply are skipped, not passed.
    expect(tested.output).toMatch(/skipped [1-9]/);
    expect(readFileSync(join(folder, 'report.html'), 'utf8')).toContain(foundBy);

    expect(broken(sound)).not.toBe(sound);
    writeFileSync(join(folder, file), broken(sound));
    const found = await type(`${checking} ${only}`, folder);
    expect(found).toMatchObject({ code: 1, output: expect.stringContaining(foundBy) });
  },
);
