import { type Command, Option } from 'commander';
import { documentOf } from '../migration/carry.ts';
import { checkNewFile, writeNewFile } from '../migration/new-file.ts';
import { WIRES, type Wire, wireSecretsOf } from '../migration/wire-secrets.ts';
import { readDocument } from '../ring/document.ts';
import { ringNameOf } from '../settings/settings.ts';
import { writeOut } from '../terminal/output.ts';
import { visibleLine } from '../terminal/visible.ts';
import { UsageError } from '../usage-error.ts';
import { withRing, withSettings } from './connect.ts';
import { addCommonOptions, type CommonOptions, printJson } from './options.ts';

const EXAMPLE = `
Writes the ring document as it is stored: data keys that the KMS key wraps,
times and revocations. It is useless without permission to unwrap. The command
first unwraps all keys, to check that "import" can use the file. It creates the
file with mode 0600, and never overwrites a file; - means standard output.

--plain instead writes the secrets of one wire format in plaintext, for servers
that stop using Sealring. Anyone who has that file can make and read tokens of
that format until the last key has expired; see
docs/guides/export-and-import.md.

Example:
  $ npx sealring init --local
  $ npx sealring export backup.ring
`;

interface ExportOptions extends CommonOptions {
  readonly plain?: Wire;
  readonly theyLeaveTheKms?: boolean;
}

export function addExportCommand(program: Command): void {
  addCommonOptions(
    program
      .command('export')
      .summary('write the ring to a file, with its keys wrapped')
      .description('Writes the ring document to a new file.')
      .argument('<file>', 'new file, or - for standard output')
      .addOption(
        new Option('--plain <wire>', 'write the secrets of this wire format, IN PLAINTEXT').choices([...WIRES]),
      )
      .option('--they-leave-the-kms', 'required with --plain, because the KMS no longer protects the secrets'),
  )
    .addHelpText('after', EXAMPLE)
    .action(async (file: string, { config, json = false, plain, theyLeaveTheKms = false }: ExportOptions) => {
      if (plain === undefined && theyLeaveTheKms) throw new UsageError('--they-leave-the-kms requires --plain');
      if (plain !== undefined && !theyLeaveTheKms) throw new UsageError(UNCONFIRMED);
      if (file === STDOUT && plain !== undefined) throw new UsageError('--plain writes to a file only, not to -');
      if (file === STDOUT && json) throw new UsageError('- is standard output, which --json also uses: name a file');
      if (file !== STDOUT) checkNewFile(file);
      const facts = plain === undefined ? await exportRing(file, config) : await exportPlain(file, config, plain);
      const line = `wrote ${facts.what} of ring "${visibleLine(facts.ring)}" to`;
      if (json) printJson(facts);
      else if (file === STDOUT) process.stderr.write(`${line} standard output\n`);
      else process.stdout.write(`${line} ${file} (mode 0600)\n`);
    });
}

const STDOUT = '-';

const UNCONFIRMED =
  '--plain writes secrets in plaintext, which no KMS protects and no revocation reaches: add --they-leave-the-kms if you ' +
  'want that. To move a ring to another KMS or store, use "sealring import --from"';

interface Facts {
  readonly file: string;
  readonly ring: string;
  readonly what: string;
}

async function exportRing(file: string, config: string | undefined): Promise<Facts> {
  return withSettings(config, async (settings) => {
    const document = await documentOf(settings.config);
    if (file === STDOUT) await writeOut(`${document}\n`);
    else writeNewFile(file, document);
    const keys = readDocument(document)?.entries.length ?? 0;
    return { file, ring: ringNameOf(settings.config), what: `${keys} wrapped key${keys === 1 ? '' : 's'}` };
  });
}

async function exportPlain(file: string, config: string | undefined, wire: Wire): Promise<Facts> {
  return withRing(config, 'reader', async (codec, settings) => {
    await documentOf(settings.config);
    const ring = ringNameOf(settings.config);
    const keys = wireSecretsOf(codec, wire);
    writeNewFile(file, `${JSON.stringify({ format: 'sealring/plain/1', ring, wire, keys }, undefined, 2)}\n`);
    process.stderr.write(
      `WARNING: ${file} contains ${keys.length} secret${keys.length === 1 ? '' : 's'} IN PLAINTEXT. Anyone who reads it can make and read every ${wire}\n` +
        'token of this ring. The KMS does not protect it, and "sealring revoke" does not reach servers that use it.\n' +
        'Move it to your secret store, delete the file, and delete the ring when the last token has expired.\n',
    );
    return { file, ring, what: `${keys.length} plaintext secret${keys.length === 1 ? '' : 's'} (${wire})` };
  });
}
