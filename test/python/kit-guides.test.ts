import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { pythonWithPackage } from './python-package.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const cli = join(root, 'packages/conformance/dist/cli/main.js');
const temporary = mkdtempSync(join(tmpdir(), 'sealring-kit-guides-'));
let python = '';

beforeAll(async () => {
  python = await pythonWithPackage();
});
afterAll(() => rmSync(temporary, { recursive: true }));

interface Ended {
  readonly code: number;
  readonly output: string;
}

/** Types a command of the kit into a shell with the Python package. */
function type(command: string): Promise<Ended> {
  const typed = command.replace('npx sealring-conformance', `'${process.execPath}' '${cli}'`);
  const env = { ...process.env, PATH: [dirname(python), process.env['PATH']].join(delimiter) };
  return new Promise((resolve) => {
    execFile('sh', ['-c', typed], { cwd: temporary, env }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), output: `${command}\n${stdout}${stderr}` });
    });
  });
}

function fencesOf(guide: string, language: string): readonly string[] {
  const from = guide.indexOf('\n## In Python\n');
  const section = guide.slice(from, guide.indexOf('\n## ', from + 1));
  return [...section.matchAll(/^```([^\n]*)\n(.*?)^```$/gms)].flatMap(([, named, text = '']) =>
    named === language ? [text] : [],
  );
}

test.each([
  ['key-wrapper', 'my-python-kms/service.py', 'WRAP-CONTEXT-BINDS', 'b"1" + context', 'b"1"'],
  ['ring-store', 'my-python-store/backend.py', 'RING-STALE-LOSES', ' AND revision = ?', ' AND ? IS NOT NULL'],
] as const)(
  'the guide in Python leads to a %s that passes the kit, and the kit finds a fault in a broken one',
  async (name, file, foundBy, sound, broken) => {
    const guide = readFileSync(join(root, `docs/guides/write-your-own-${name}.md`), 'utf8');
    const commands = fencesOf(guide, 'sh').flatMap((text) => text.trim().split('\n'));
    const [starting = '', checking = ''] = commands.filter((command) => !command.startsWith('pip install'));
    const [filled = ''] = fencesOf(guide, 'python');

    expect(await type(starting)).toMatchObject({ code: 0 });
    const unfilled = await type(`${checking} --only ${name === 'key-wrapper' ? 'WRAP' : 'RING'}-ROUNDTRIP`);
    expect(unfilled).toMatchObject({ code: 1, output: expect.stringContaining('-ROUNDTRIP') });

    writeFileSync(join(temporary, file), filled);
    const checked = await type(checking);
    expect(checked.code, checked.output).toBe(0);
    expect(readFileSync(join(temporary, 'report.html'), 'utf8')).toContain(foundBy);

    expect(filled).toContain(sound);
    writeFileSync(join(temporary, file), filled.replaceAll(sound, broken));
    expect(await type(`${checking} --only ${foundBy}`)).toMatchObject({
      code: 1,
      output: expect.stringContaining(foundBy),
    });
  },
);

test.each([
  ['key-wrapper', 'key_wrapper.py', 'LocalKeyWrapper (Python) passes'],
  ['ring-store', 'ring_store.py', 'FileRing (Python) passes'],
] as const)('the example of a %s in Python passes', async (suite, file, verdict) => {
  const example = join(root, 'packages/conformance/examples/python', file);
  const { code, output } = await type(`npx sealring-conformance ${suite} --exec "python '${example}'" --quiet`);
  expect(code, output).toBe(0);
  expect(output).toContain(verdict);
});
