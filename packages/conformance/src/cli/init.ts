import { constants, copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Command, Option } from 'commander';
import { UsageError } from './messages.ts';

const TEMPLATES = fileURLToPath(new URL('../../templates/', import.meta.url));

interface Template {
  readonly files: readonly string[];
  /** Whether the files are ECMAScript modules, which do not load in a folder whose package.json says `commonjs`. */
  readonly areModules: boolean;
  readonly toFill: string;
  readonly commands: (folder: string) => readonly string[];
}

/** Adds two files: `target`, which contains a target, and `conformance`, which checks it with Node’s test runner. */
function inNode(suite: string, extension: string, names: readonly string[], toFill: string): Template {
  return {
    files: [...names, 'target', 'conformance'].map((name) => `${name}.${extension}`),
    areModules: true,
    toFill,
    commands: (folder) => [
      `npx sealring-conformance ${suite} ${join(folder, `target.${extension}`)} --report report.html`,
      `node --test ${join(folder, `conformance.${extension}`)}`,
    ],
  };
}

/** A program that the kit runs, and the module that implements the protocol. */
function inPython(suite: string, names: readonly [string, string], helper: string, toFill: string): Template {
  return {
    files: [...names, helper].map((name) => `${name}.py`),
    areModules: false,
    toFill,
    commands: (folder) => [
      `npx sealring-conformance ${suite} --exec "python ${join(folder, `${names[1]}.py`)}" --report report.html`,
    ],
  };
}

/** A folder of templates for each suite and language. */
const ALL: Readonly<Record<string, Readonly<Record<string, Template>>>> = {
  codec: {
    typescript: inNode('codec', 'ts', ['cipher', 'codec'], 'seal and unseal'),
    javascript: inNode('codec', 'js', ['cipher', 'codec'], 'seal and unseal'),
    python: inPython('codec', ['cipher', 'codec'], 'sealring_codec', 'seal and unseal'),
  },
  'key-wrapper': {
    typescript: inNode('key-wrapper', 'ts', ['service', 'key-wrapper'], 'encrypt, decrypt and kindOf'),
    python: inPython('key-wrapper', ['service', 'key_wrapper'], 'sealring_adapter', 'encrypt, decrypt and kind_of'),
  },
  'ring-store': {
    typescript: inNode('ring-store', 'ts', ['backend', 'store'], 'find and swap'),
    python: inPython('ring-store', ['backend', 'store'], 'sealring_adapter', 'find and swap'),
  },
};

const EXAMPLE = `
Examples:
  $ npx sealring-conformance init my-codec
  $ npx sealring-conformance init my-kms --suite key-wrapper
  $ npx sealring-conformance init my-store --suite ring-store --language python
`;

export function addInitCommand(program: Command): void {
  const languages = [...new Set(Object.values(ALL).flatMap(Object.keys))];
  program
    .command('init')
    .summary('create a codec or an adapter from a template')
    .description(
      'Writes a codec, key wrapper or ring store with a few functions to fill in, and its checks. Never overwrites a file.',
    )
    .argument('[folder]', 'folder to create (default: my-<suite>, such as my-codec)')
    .addOption(new Option('--suite <suite>', 'kind of template').choices(Object.keys(ALL)).default('codec'))
    .addOption(new Option('--language <language>', 'language of the template').choices(languages).default('typescript'))
    .addHelpText('after', EXAMPLE)
    .action((given: string | undefined, { suite, language }: { readonly suite: string; readonly language: string }) => {
      const template = ALL[suite]?.[language];
      if (template === undefined) throw new UsageError(`there is no template for a ${suite} in ${language}`);
      write(given ?? `my-${suite}`, suite === 'codec' || language === 'python' ? language : suite, template);
    });
}

/** @throws {UsageError} if a file exists, or cannot be written. */
function write(folder: string, source: string, { files, areModules, toFill, commands }: Template): void {
  if (folder === '') throw new UsageError('"" is not the name of a folder');
  const taken = files.find((file) => existsSync(join(folder, file)));
  if (taken !== undefined) throw new UsageError(`${join(folder, taken)} already exists; nothing was written`);
  const manifest = join(folder, 'package.json');
  // `npm init` writes "type": "commonjs" to the package.json of the parent folder.
  const needsManifest = areModules && !existsSync(manifest);
  try {
    mkdirSync(folder, { recursive: true });
    // The flag does not follow a link that someone has put there.
    for (const file of files) copyFileSync(join(TEMPLATES, source, file), join(folder, file), constants.COPYFILE_EXCL);
    if (needsManifest) writeFileSync(manifest, '{ "private": true, "type": "module" }\n', { flag: 'wx' });
  } catch (error) {
    throw new UsageError(`cannot write to "${folder}" (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`);
  }
  const lines = [
    ...[...files, ...(needsManifest ? ['package.json'] : [])].map((file) => `wrote ${join(folder, file)}`),
    '',
    `Fill in ${toFill} in ${join(folder, files[0] ?? '')}, then run:`,
    ...commands(folder).map((command) => `  ${command}`),
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
}
