import { parseArgs } from 'node:util';

export const help = `Usage: npm start [-- options]

Runs two MCP servers, one ring of KMS-wrapped data keys, and a client whose second round reaches the other server. Then
it shows tokens that are refused, a server that joins late, and a rotation under load. Exits with code 0 if every step
succeeded.

  --kms local             data keys wrapped in the servers' memory, with a key made for this run (default)
  --kms aws               AWS KMS; credentials and region come from the AWS default chain
    --key-id KEY          ARN, id or alias of the symmetric KMS key; required
    --endpoint URL        an emulator, such as http://127.0.0.1:PORT; placeholder credentials and us-east-1 unless set
  --kms gcp               Google Cloud KMS, with Application Default Credentials
    --key-id NAME         projects/…/locations/…/keyRings/…/cryptoKeys/…; required
    --endpoint URL        an emulator, such as http://127.0.0.1:PORT, without TLS and credentials
  --kms azure             Azure Key Vault, with the default chain of @azure/identity
    --key-id URL          the RSA key that wraps, https://VAULT/keys/NAME; required
    --sign-key-id URL     one version of the EC key that signs, https://VAULT/keys/NAME/VERSION; required
                          for an emulator: set AZURE_EMULATOR_TOKEN to its bearer token, NODE_EXTRA_CA_CERTS to its certificate
  --kms vault             transit engine of HashiCorp Vault or OpenBao; its token in VAULT_TOKEN
    --key-id NAME         the transit key; required
    --endpoint URL        the server, such as http://127.0.0.1:8200; required
  --ring-name NAME        name of the ring; the key may be bound to one (default: refund-desk)
  --help                  print this help`;

/** The options of the command line. */
export type Choice = { readonly ringName: string } & KmsChoice;

type KmsChoice =
  | { readonly kms: 'local' }
  | { readonly kms: 'aws' | 'gcp'; readonly keyId: string; readonly endpoint: string | undefined }
  | { readonly kms: 'azure'; readonly keyId: string; readonly signKeyId: string }
  | { readonly kms: 'vault'; readonly keyId: string; readonly endpoint: string };

/** The command line was wrong; the message names option and value. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

const OPTIONS_OF: Readonly<
  Record<Choice['kms'], { readonly needs: readonly Name[]; readonly takes: readonly Name[] }>
> = {
  local: { needs: [], takes: [] },
  aws: { needs: ['key-id'], takes: ['endpoint'] },
  gcp: { needs: ['key-id'], takes: ['endpoint'] },
  azure: { needs: ['key-id', 'sign-key-id'], takes: [] },
  vault: { needs: ['key-id', 'endpoint'], takes: [] },
};

type Name = 'key-id' | 'sign-key-id' | 'endpoint';

/** @throws {UsageError} */
export function readOptions(args: readonly string[]): Choice | 'help' {
  const { help: wantsHelp, kms = 'local', 'ring-name': ringName = 'refund-desk', ...given } = parse(args);
  if (wantsHelp === true) return 'help';
  if (!isKms(kms)) {
    throw new UsageError(`--kms must be one of ${Object.keys(OPTIONS_OF).join(', ')}, got ${JSON.stringify(kms)}`);
  }
  const { needs, takes } = OPTIONS_OF[kms];
  for (const [name, value] of Object.entries(given)) {
    if (![...needs, ...takes].some((known) => known === name)) {
      throw new UsageError(`--${name} ${JSON.stringify(value)} is not an option for --kms ${kms}`);
    }
  }
  const required = (name: Name): string => {
    const value = given[name];
    if (value === undefined || value === '') throw new UsageError(`--kms ${kms} requires --${name}`);
    return value;
  };
  for (const name of needs) required(name);
  const { endpoint } = given;
  if (endpoint !== undefined && !/^https?:$/.test(protocolOf(endpoint))) {
    throw new UsageError(`--endpoint must be an http or https URL, got ${JSON.stringify(endpoint)}`);
  }
  switch (kms) {
    case 'local':
      return { kms, ringName };
    case 'aws':
    case 'gcp':
      return { kms, ringName, keyId: required('key-id'), endpoint };
    case 'azure':
      return { kms, ringName, keyId: required('key-id'), signKeyId: required('sign-key-id') };
    case 'vault':
      return { kms, ringName, keyId: required('key-id'), endpoint: required('endpoint') };
  }
}

function isKms(name: string): name is Choice['kms'] {
  return Object.hasOwn(OPTIONS_OF, name);
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
        'ring-name': { type: 'string' },
        'sign-key-id': { type: 'string' },
      },
    }).values;
  } catch (error) {
    // Node's own messages name the option and its requirement.
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function protocolOf(url: string): string {
  return URL.canParse(url) ? new URL(url).protocol : '';
}
