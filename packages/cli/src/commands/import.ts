import { readFileSync, statSync } from 'node:fs';
import { MAX_DOCUMENT_BYTES } from '@sealring/core/ring';
import type { Command } from 'commander';
import { Failure } from '../failure.ts';
import { isConflict } from '../foreign-error.ts';
import { documentOf, proveThatItOpens, withWrapsOf } from '../migration/carry.ts';
import { attempt, open } from '../ring/open.ts';
import { statusOf, statusText } from '../ring/status.ts';
import { loadSettings } from '../settings/load.ts';
import { ringNameOf, type SealringConfig } from '../settings/settings.ts';
import { paintFor } from '../terminal/paint.ts';
import { UsageError } from '../usage-error.ts';
import { withSettings } from './connect.ts';
import { addCommonOptions, type CommonOptions, printJson } from './options.ts';

const EXAMPLE = `
Puts a ring into the store of the configuration, which must be empty: a file of "export", or with --from the ring of another
configuration. With --from, wraps by the KMS key of this configuration are added, on a copy in memory: no data key is
written anywhere in plaintext. Before anything is stored, the configuration has to open all of it. The name stays.

The ring is then in two places: docs/guides/export-and-import.md says how servers move from one to the other.

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
      .summary('a ring from a file or from another store and KMS')
      .description('Puts a ring into an empty store, with wraps by the KMS key of the configuration.')
      .argument('[file]', 'a file that "sealring export" wrote')
      .option('--from <config>', 'the configuration of the ring as it was: .js, .mjs or .ts'),
  )
    .addHelpText('after', EXAMPLE)
    .action(async (file: string | undefined, { config, json = false, color, from }: ImportOptions) => {
      if ((file === undefined) === (from === undefined)) {
        throw new UsageError('which ring? Give the file of an export, or --from another configuration: one of them');
      }
      const given = file === undefined ? undefined : documentIn(file);
      await withSettings(config, async ({ config: target }) => {
        await checkEmpty(target);
        const document = given ?? (await carried(target, from ?? ''));
        await proveThatItOpens(target, document);
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
  const source = await loadSettings(from);
  try {
    const [mine, theirs] = [ringNameOf(target), ringNameOf(source.config)];
    if (mine !== theirs) {
      throw new UsageError(
        `the ring is "${theirs}" in ${from} and "${mine}" here: its name is bound into every key and stays`,
      );
    }
    return await withWrapsOf(target, source.config, await documentOf(source.config));
  } finally {
    await source.close();
  }
}

async function checkEmpty({ ring }: SealringConfig): Promise<void> {
  const stored = await attempt('reading the store', () => ring.read());
  if (stored !== undefined) throw new Failure(OCCUPIED);
}

const OCCUPIED = 'there is a ring in the store already: import writes into an empty one only, and nothing was written';

async function store({ ring }: SealringConfig, document: string): Promise<void> {
  try {
    await ring.write(document, { expected: undefined });
  } catch (error) {
    if (isConflict(error)) throw new Failure(OCCUPIED);
    throw error;
  }
}

function documentIn(file: string): string {
  const size = statSync(file, { throwIfNoEntry: false })?.size;
  if (size === undefined) throw new UsageError(`"${file}" is not there`);
  if (size === 0 || size > MAX_DOCUMENT_BYTES)
    throw new UsageError(`"${file}" is no ring document: it has ${size} bytes`);
  // The newline that an editor or a pager has put at its end is not of the document.
  return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
}

function warn(isCarried: boolean): void {
  process.stderr.write(
    isCarried
      ? 'WARNING: two stores hold this ring now. Rotate and revoke in neither until no server uses the old one, and then remove that.\n'
      : 'WARNING: keys and revocations that are newer than the file are not in it. Revoke again what was revoked since.\n',
  );
}
