import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Command, Option } from 'commander';
import { UsageError } from './usage-error.ts';

const TEMPLATES = fileURLToPath(new URL('../../templates/', import.meta.url));

/** The files of each template, the one to be written first, and how it is checked. */
const LANGUAGES = {
  typescript: {
    files: ['cipher.ts', 'codec.ts', 'target.ts', 'conformance.ts'],
    toFill: 'seal and open',
    commands: (folder: string) => [
      `npx sealring-conformance codec ${join(folder, 'target.ts')} --report report.html`,
      `node --test ${join(folder, 'conformance.ts')}`,
    ],
  },
  javascript: {
    files: ['cipher.js', 'codec.js', 'target.js', 'conformance.js'],
    toFill: 'seal and open',
    commands: (folder: string) => [
      `npx sealring-conformance codec ${join(folder, 'target.js')} --report report.html`,
      `node --test ${join(folder, 'conformance.js')}`,
    ],
  },
  python: {
    files: ['cipher.py', 'codec.py', 'sealring_codec.py'],
    toFill: 'seal and open_sealed',
    commands: (folder: string) => [
      `npx sealring-conformance codec --exec "python ${join(folder, 'codec.py')}" --report report.html`,
    ],
  },
} as const;

type Language = keyof typeof LANGUAGES;

const EXAMPLE = `
Example:
  $ npx sealring-conformance init my-codec
`;

export function addInitCommand(program: Command): void {
  program
    .command('init')
    .summary('write a codec to start from')
    .description('Writes a codec with two functions left to fill, and what checks it. Overwrites nothing.')
    .argument('[folder]', 'where to', 'my-codec')
    .addOption(new Option('--language <language>', 'which').choices(Object.keys(LANGUAGES)).default('typescript'))
    .addHelpText('after', EXAMPLE)
    .action((folder: string, { language }: { readonly language: Language }) => {
      const { files, toFill, commands } = LANGUAGES[language];
      const taken = files.find((file) => existsSync(join(folder, file)));
      if (taken !== undefined) throw new UsageError(`${join(folder, taken)} is there already: nothing was written`);
      mkdirSync(folder, { recursive: true });
      for (const file of files) copyFileSync(join(TEMPLATES, language, file), join(folder, file));
      const lines = [
        ...files.map((file) => `wrote ${join(folder, file)}`),
        '',
        `Fill ${toFill} in ${join(folder, files[0])}, then:`,
        ...commands(folder).map((command) => `  ${command}`),
      ];
      process.stdout.write(`${lines.join('\n')}\n`);
    });
}
