import { parseArgs } from 'node:util';

export const help = `Usage: npm start [-- options]

Two MCP servers, one ring of KMS-wrapped data keys, and a client whose second round reaches the other server. Then
what must be refused, a server that joins late, and a rotation under load. Ends by itself, with exit code 0 if
everything went as it must.

  --kms local             data keys wrapped in the servers' memory, under a key made for this run (default)
  --kms aws               data keys wrapped by AWS KMS; credentials and region come from the AWS default chain
    --key-id KEY          ARN, id or alias of the symmetric KMS key; required
    --endpoint URL        an emulator, http://127.0.0.1:PORT for one; any credentials and us-east-1 unless set
  --help                  this text`;

/** What was asked for on the command line. */
export type Choice =
  | { readonly kms: 'local' }
  | { readonly kms: 'aws'; readonly keyId: string; readonly endpoint: string | undefined };

/** The command line was wrong; the message names option and value. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** @throws {UsageError} */
export function readOptions(args: readonly string[]): Choice | 'help' {
  const { help: wantsHelp, kms = 'local', endpoint, 'key-id': keyId } = parse(args);
  if (wantsHelp === true) return 'help';
  if (kms === 'local') {
    for (const [name, value] of Object.entries({ '--endpoint': endpoint, '--key-id': keyId })) {
      if (value !== undefined) throw new UsageError(`${name} ${JSON.stringify(value)} needs --kms aws`);
    }
    return { kms };
  }
  if (kms !== 'aws') throw new UsageError(`--kms must be local or aws, got ${JSON.stringify(kms)}`);
  if (keyId === undefined || keyId === '') throw new UsageError('--kms aws needs --key-id, got none');
  if (endpoint !== undefined && !/^https?:$/.test(protocolOf(endpoint))) {
    throw new UsageError(`--endpoint must be an http or https URL, got ${JSON.stringify(endpoint)}`);
  }
  return { kms, keyId, endpoint };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        help: { type: 'boolean', short: 'h' },
        kms: { type: 'string' },
        endpoint: { type: 'string' },
        'key-id': { type: 'string' },
      },
    }).values;
  } catch (error) {
    // Node's own messages name the option, and what it needs.
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function protocolOf(url: string): string {
  return URL.canParse(url) ? new URL(url).protocol : '';
}
