import type { KeyHealth } from '@sealring/core';
import type { Command } from 'commander';
import { readDocument } from '../ring/document.ts';
import { keyName } from '../ring/key-name.ts';
import { attempt, openToCreate } from '../ring/open.ts';
import { publishedKeys, publishedText } from '../ring/published.ts';
import { statusOf } from '../ring/status.ts';
import { statusText } from '../ring/status-text.ts';
import { paintFor } from '../terminal/paint.ts';
import { UsageError } from '../usage-error.ts';
import { withSettings } from './connect.ts';
import { LOCAL_FILES, writeLocalSetup } from './local-setup.ts';
import { addCommonOptions, type CommonOptions, printJson } from './options.ts';

const EXAMPLE = `
Creates the ring at once. Servers would first wait until the store has had no
ring for six minutes. An existing ring is left unchanged, without an error,
unless none of its keys may still seal: then the command adds a key that seals
at once.

--local first writes two files to the working directory, and overwrites nothing:
a development key (${LOCAL_FILES.key}, mode 0600), and
${LOCAL_FILES.config}, which configures a ring in a file.

Example:
  $ npx sealring init --local
  $ npx sealring status
`;

interface InitOptions extends CommonOptions {
  readonly local?: boolean;
}

export function addInitCommand(program: Command): void {
  addCommonOptions(
    program
      .command('init')
      .summary('create the ring')
      .description('Creates the ring, unless it exists.')
      .option('--local', 'for development: keep the key and the ring in files'),
  )
    .addHelpText('after', EXAMPLE)
    .action(async ({ config: file, json = false, color, local = false }: InitOptions) => {
      if (local && file !== undefined) throw new UsageError('--local writes its own configuration: omit --config');
      if (local) setUpLocally(json);
      await withSettings(file, async ({ config }) => {
        const stored = await attempt('reading the ring', () => config.ring.read());
        const before = stored === undefined ? undefined : readDocument(stored.document);
        const codec = await openToCreate(config, { mustExist: false });
        try {
          const status = await statusOf(codec, config);
          const published = publishedKeys(before?.entries ?? [], codec.health().keys);
          const created = stored === undefined;
          if (json) printJson({ created, published: published.map(({ id }) => keyName(id)), ...status });
          else {
            const head = headOf(created, published);
            process.stdout.write(`${head}\n${statusText(status, paintFor(process.stdout, color))}`);
          }
        } finally {
          await codec.close();
        }
      });
    });
}

function headOf(isCreated: boolean, published: readonly KeyHealth[]): string {
  if (isCreated) return `created the ring; ${publishedText(published)}`;
  if (published.length === 0) return 'the ring already exists; it was not changed';
  return `the ring already exists, but none of its keys may seal; ${publishedText(published)}`;
}

function setUpLocally(isJson: boolean): void {
  const lines = writeLocalSetup();
  (isJson ? process.stderr : process.stdout).write(`${lines.join('\n')}\n`);
}
