import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, inject, test } from 'vitest';
import { npmEnvironment } from '../support/npm-environment.ts';
import { pythonVenv } from '../support/python-venv.ts';
import { freePort } from '../support/redis.ts';
import { runProgram } from '../support/run-program.ts';
import { packTarballs } from '../support/tarballs.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const temporary = mkdtempSync(join(tmpdir(), 'sealring-newcomer-'));
afterAll(() => rmSync(temporary, { recursive: true, force: true }));

interface Fence {
  readonly language: string;
  readonly text: string;
}

function fencesOf(document: string): readonly Fence[] {
  const text = readFileSync(join(root, document), 'utf8');
  return [...text.matchAll(/^```([^\s`]*)[^\n]*\n(.*?)^```$/gms)].map(({ 1: language = '', 2: body = '' }) => ({
    language,
    text: body,
  }));
}

function commandsOf(document: string): readonly string[] {
  return fencesOf(document)
    .filter(({ language }) => language === 'sh')
    .flatMap(({ text }) => text.trim().split('\n'));
}

test('the README has one command for the main job, and one that runs all tests', () => {
  const { scripts }: { scripts: Record<string, string> } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const lines = commandsOf('README.md').map((line) => line.replace(/#.*/, '').trim());
  const commands = lines.filter((line) => /^npm (start|test|run) *[^-]*$/.test(line));
  expect(commands.slice(0, 2)).toEqual(['npm start', 'npm test']);
  const names = commands.map((command) => command.replace(/^npm (?:run )?/, ''));
  expect(Object.keys(scripts)).toEqual(expect.arrayContaining(names));
});

const PAGE = 'docs/guides/five-minutes-aws.md';
const moto = inject('moto');

describe.skipIf(moto === '')('the page on AWS, in an empty folder, with packed tarballs and the emulator', () => {
  test('nine commands and two files lead to a protected server', () => {
    expect(commandsOf(PAGE)).toHaveLength(9);
    expect(fencesOf(PAGE).filter(({ text }) => /^\/\/ \S+\.\w+\n/.test(text))).toHaveLength(2);
  });

  test('the commands and files, as printed, do what the page promises', async () => {
    const project = mkdtempSync(join(temporary, 'aws-'));
    for (const { language, text } of fencesOf(PAGE)) {
      const name = language === 'ts' ? /^\/\/ (\S+)\n/.exec(text)?.[1] : undefined;
      if (name !== undefined) writeFileSync(join(project, name), text);
    }
    const aws = await pythonVenv('awscli', ['awscli==1.46.3']);
    const environment = npmEnvironment();
    const env = {
      ...environment,
      PATH: [dirname(process.execPath), aws, environment['PATH']].join(delimiter),
      PORT: `${await freePort()}`,
      AWS_ENDPOINT_URL: moto,
      AWS_ACCESS_KEY_ID: 'any',
      AWS_SECRET_ACCESS_KEY: 'word',
    };
    const { code, output } = await runProgram('bash', ['-c', scriptOf(commandsOf(PAGE))], {
      cwd: project,
      env,
      timeoutMs: 300_000,
    });
    expect(output).toContain('created the ring; published key');
    expect(output).toMatch(/\[kms-rotation\][^]*0 errors, 1 warning/);
    expect(output).toMatch(/the client holds sr1\.[\w-]{8}…\nRefund order 1017\?\nrefunded 1017\n/);
    expect(code).toBe(0);
  });
});

/** The page's two terminals as one: the server runs in the background and ends after the client. */
function scriptOf(commands: readonly string[]): string {
  const tarballs = new Map(packTarballs(temporary).map(({ name, path }) => [name, path]));
  const typed = commands.map((command) =>
    command === 'node server.mts'
      ? [
          `${command} >server.log 2>&1 & server=$!`,
          'trap "kill $server" EXIT',
          'for _ in $(seq 300); do if grep -q listening server.log; then break; fi; sleep 0.1; done',
          'cat server.log',
        ].join('\n')
      : command.replaceAll(/@sealring\/[\w-]+/g, (name) =>
          [name, ...broughtBy(name)].map((one) => tarballs.get(one) ?? one).join(' '),
        ),
  );
  return ['set -euo pipefail', ...typed].join('\n');
}

/** The packages of this repository that the registry would deliver too: no tarball contains them. */
function broughtBy(name: string): readonly string[] {
  const manifest = join(root, 'packages', name.replace('@sealring/', ''), 'package.json');
  const { dependencies = {} }: { dependencies?: Record<string, string> } = JSON.parse(readFileSync(manifest, 'utf8'));
  return Object.keys(dependencies).filter((needed) => needed.startsWith('@sealring/'));
}
