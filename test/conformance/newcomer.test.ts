import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { pythonVenv } from '../support/python-venv.ts';
import { packTarball } from '../support/tarballs.ts';

const guide = readFileSync(
  fileURLToPath(new URL('../../docs/guides/write-your-own-codec.md', import.meta.url)),
  'utf8',
);
const temporary = mkdtempSync(join(tmpdir(), 'sealring-newcomer-'));
const COMMANDS = 5;
let tarballs: readonly string[] = [];
let python = '';

beforeAll(async () => {
  // Core is installed too: npm would get it for the kit's types.
  tarballs = ['conformance', 'core'].map((name) => packTarball(name, temporary));
  python = await pythonVenv('python-sdk', ['mcp==2.3.0']);
});
afterAll(() => rmSync(temporary, { recursive: true, force: true }));

/** One code block of a section of the guide. */
interface Fence {
  readonly language: string;
  readonly text: string;
}

function fencesOf(section: string): readonly Fence[] {
  const from = guide.indexOf(`\n## ${section}\n`);
  const text = guide.slice(from, guide.indexOf('\n## ', from + 1));
  return [...text.matchAll(/^```([^\n]*)\n(.*?)^```$/gms)].map((match) => ({
    language: match[1] ?? '',
    text: match[2] ?? '',
  }));
}

interface Ended {
  readonly code: number;
  readonly output: string;
}

/** Types a command into a shell, in a folder where npm, Node and Python are available. */
function type(command: string, cwd: string): Promise<Ended> {
  const typed = command.replace(
    '--save-dev @sealring/conformance',
    `--save-dev --prefer-offline ${tarballs.join(' ')}`,
  );
  const { NODE_OPTIONS: _, ...env } = process.env;
  const PATH = [python, dirname(process.execPath), env['PATH']].join(delimiter);
  return new Promise((resolve) => {
    execFile('sh', ['-c', typed], { cwd, env: { ...env, PATH } }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), output: `${command}\n${stdout}${stderr}` });
    });
  });
}

test.each([
  ['In TypeScript', 'ts', 'my-codec/cipher.ts', ['cipher.getAuthTag()', 'Buffer.alloc(16)']],
  ['In Python', 'python', 'my-codec/cipher.py', ['os.urandom(12)', 'bytes(12)']],
] as const)(
  '%s: the guide leads to a codec that passes the kit, and the kit finds the fault in a broken one',
  async (section, language, file, [sound, broken]) => {
    const folder = join(temporary, language);
    mkdirSync(folder);
    const fences = fencesOf(section);
    const commands = fences.filter((fence) => fence.language === 'sh').flatMap(({ text }) => text.trim().split('\n'));
    const filled = fences.find((fence) => fence.language === language)?.text ?? '';
    expect(commands.length).toBeLessThanOrEqual(COMMANDS);
    const [installing = '', starting = '', ...checking] = commands;

    for (const command of [installing, starting]) expect(await type(command, folder)).toMatchObject({ code: 0 });
    const unfilled = await type(checking[0] ?? '', folder);
    expect(unfilled).toMatchObject({ code: 1, output: expect.stringContaining('CODEC-ROUNDTRIP-BYTES') });

    writeFileSync(join(folder, file), filled);
    for (const command of checking) {
      const ended = await type(command, folder);
      expect(ended.code, ended.output).toBe(0);
    }
    expect(readFileSync(join(folder, 'report.html'), 'utf8')).toContain('CODEC-ROUNDTRIP-BYTES');

    expect(filled).toContain(sound);
    writeFileSync(join(folder, file), filled.replace(sound, broken));
    expect((await type(checking[0] ?? '', folder)).code).toBe(1);
  },
);
