import { type Command, Option } from 'commander';
import { documentOf } from '../migration/carry.ts';
import { writeNewFile } from '../migration/new-file.ts';
import { WIRES, type Wire, wireSecretsOf } from '../migration/wire-secrets.ts';
import { readDocument } from '../ring/document.ts';
import { ringNameOf } from '../settings/settings.ts';
import { UsageError } from '../usage-error.ts';
import { withRing, withSettings } from './connect.ts';
import { addCommonOptions, type CommonOptions, printJson } from './options.ts';

const EXAMPLE = `
Writes the ring document as it is stored: data keys wrapped by the KMS key, times, revocations. Nothing in it can be used
without the right to unwrap. It is opened first: what "import" could not open is not written. The file is new, mode 0600.

With --plain the secrets of one wire are written instead, in plaintext, for servers that leave Sealring for the SDK's own
codec. Whoever has that file can make and read tokens of that wire until the last of the keys ends: docs/guides/export-and-import.md.

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
      .summary('the ring as a file, wrapped as it is')
      .description('Writes the ring document to a new file; with --plain the secrets of one wire.')
      .argument('<file>', 'a file that is not there yet')
      .addOption(new Option('--plain <wire>', 'the secrets of tokens of this wire, IN PLAINTEXT').choices([...WIRES]))
      .option('--they-leave-the-kms', 'with --plain: you know that these secrets leave the KMS for good'),
  )
    .addHelpText('after', EXAMPLE)
    .action(async (file: string, { config, json = false, plain, theyLeaveTheKms = false }: ExportOptions) => {
      if (plain === undefined && theyLeaveTheKms) throw new UsageError('--they-leave-the-kms goes with --plain');
      if (plain !== undefined && !theyLeaveTheKms) throw new UsageError(REFUSAL);
      const facts = plain === undefined ? await exportRing(file, config) : await exportPlain(file, config, plain);
      if (json) printJson(facts);
      else process.stdout.write(`wrote ${facts.what} of ring "${facts.ring}" to ${file} (mode 0600)\n`);
    });
}

const REFUSAL =
  '--plain writes secrets in plaintext, where no KMS guards them and no revocation reaches them: add ' +
  '--they-leave-the-kms if that is meant. To move a ring to another KMS or store it is not needed: "sealring import --from"';

interface Facts {
  readonly file: string;
  readonly ring: string;
  readonly what: string;
}

async function exportRing(file: string, config: string | undefined): Promise<Facts> {
  return withSettings(config, async (settings) => {
    const document = await documentOf(settings.config);
    writeNewFile(file, document);
    const keys = readDocument(document)?.entries.length ?? 0;
    return { file, ring: ringNameOf(settings.config), what: `${keys} wrapped key${keys === 1 ? '' : 's'}` };
  });
}

async function exportPlain(file: string, config: string | undefined, wire: Wire): Promise<Facts> {
  return withRing(config, 'reader', async (codec, settings) => {
    const ring = ringNameOf(settings.config);
    const keys = wireSecretsOf(codec, wire);
    writeNewFile(file, `${JSON.stringify({ format: 'sealring/plain/1', ring, wire, keys }, undefined, 2)}\n`);
    process.stderr.write(
      `WARNING: ${file} holds ${keys.length} secret${keys.length === 1 ? '' : 's'} IN PLAINTEXT. Whoever reads it can make and read every ${wire}\n` +
        'token of this ring. Rights at the KMS do not guard it, and "sealring revoke" does not reach servers that use it.\n' +
        'Bring it to your secret store, delete the file, and end the ring when the last token has expired.\n',
    );
    return { file, ring, what: `${keys.length} plaintext secret${keys.length === 1 ? '' : 's'} (${wire})` };
  });
}
