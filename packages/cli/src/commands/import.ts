import { readFileSync, statSync } from 'node:fs';
import { MAX_DOCUMENT_BYTES } from '@sealring/core/ring';
import type { Command } from 'commander';
import { Failure } from '../failure.ts';
import { isConflict } from '../foreign-error.ts';
import { checkDocument, documentOf, withWrapsOf } from '../migration/carry.ts';
import { attempt, open } from '../ring/open.ts';
import { statusOf } from '../ring/status.ts';
import { statusText } from '../ring/status-text.ts';
import { loadSettings } from '../settings/load.ts';
import { ringNameOf, type SealringConfig } from '../settings/settings.ts';
import { paintFor } from '../terminal/paint.ts';
import { UsageError } from '../usage-error.ts';
import { withSettings } from './connect.ts';
import { addCommonOptions, type CommonOptions, printJson } from './options.ts';

const EXAMPLE = `
Writes a ring to the empty store of the configuration: the ring in a file that
"export" wrote or, with --from, the ring of another configuration. --from also
wraps the data keys with the KMS key of this configuration, in memory: no
plaintext key is written. The command stores a document only if it could unwrap
all of its keys. The ring keeps its name.

Afterwards the ring is in two places: docs/guides/export-and-import.md describes
how to move the servers.

Example:
  $ npx sealring init --local
  $ npx sealring export backup.ring
  $ mv sealring.local.ring lost.ring
  $ npx sealring import backup.ring
`;

interface ImportOptions extends CommonOptions {
  readonly from?: string;
}

export function addImportCommand(program: Command): void {
  addCommonOptions(
    program
      .command('import')
      .summary('write a ring to an empty store')
      .description('Writes a ring to an empty store, from a file or from another store.')
      .argument('[file]', 'file that "sealring export" wrote')
      .option('--from <config>', 'configuration file of the other ring'),
  )
    .addHelpText('after', EXAMPLE)
    .action(async (file: string | undefined, { config, json = false, color, from }: ImportOptions) => {
      if ((file === undefined) === (from === undefined)) {
        throw new UsageError('import requires either a file or --from <config>');
      }
      const given = file === undefined ? undefined : documentIn(file);
      await withSettings(config, async ({ config: target }) => {
        await checkEmpty(target);
        const document = given ?? (await carried(target, from ?? ''));
        await checkDocument(target, document);
        await attempt('storing the ring', () => store(target, document));
        warn(from !== undefined);
        const codec = await open(target, { role: 'reader', create: 'never' });
        try {
          const status = await statusOf(codec, target);
          if (json) printJson(status);
          else process.stdout.write(statusText(status, paintFor(process.stdout, color)));
        } finally {
          await codec.close();
        }
      });
    });
}

async function carried(target: SealringConfig, from: string): Promise<string> {
  const source = await loadSettings(from, '--from');
  try {
    const [mine, theirs] = [ringNameOf(target), ringNameOf(source.config)];
    if (mine !== theirs) {
      throw new UsageError(
        `the ring name is "${theirs}" in ${from} and "${mine}" here: every key is bound to its ring name, so the names must match`,
      );
    }
    return await withWrapsOf(target, source.config, await documentOf(source.config));
  } finally {
    await source.close();
  }
}

async function checkEmpty({ ring }: SealringConfig): Promise<void> {
  const stored = await attempt('reading the store', () => ring.read());
  if (stored !== undefined) throw new Failure('ring-exists', EXISTS);
}

const EXISTS = 'the store already has a ring, and import requires an empty store: nothing was written';

async function store({ ring }: SealringConfig, document: string): Promise<void> {
  try {
    await ring.write(document, { expected: undefined });
  } catch (error) {
    if (isConflict(error)) throw new Failure('ring-exists', EXISTS);
    throw error;
  }
}

function documentIn(file: string): string {
  try {
    const size = statSync(file, { throwIfNoEntry: false })?.size;
    if (size === undefined) throw new UsageError(`"${file}" does not exist`);
    if (size === 0 || size > MAX_DOCUMENT_BYTES) {
      throw new UsageError(
        `"${file}" is not a ring document: it has ${size} bytes, and a ring document has 1 to ${MAX_DOCUMENT_BYTES}`,
      );
    }
    // A final newline, from an editor or from "export -", is not part of the document.
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`cannot read "${file}" (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`);
  }
}

function warn(isCarried: boolean): void {
  process.stderr.write(
    isCarried
      ? 'WARNING: two stores now have this ring. Do not rotate or revoke keys in either until no server uses the old one; then delete the old ring.\n'
      : 'WARNING: the file does not contain newer keys or revocations. Revoke again every key that was revoked after the export.\n',
  );
}
