import { generateKeyPairSync } from 'node:crypto';
import { awsKmsKeyWrapper } from '@sealring/aws-kms';
import { azureKeyVaultKeyWrapper } from '@sealring/azure-key-vault';
import { type KeyWrapper, localKeyWrapper } from '@sealring/core';
import { gcpKmsKeyWrapper } from '@sealring/gcp-kms';
import { vaultTransitKeyWrapper } from '@sealring/vault-transit';
import { bytes, fuzzKey, internal, type Parser } from '../parser.ts';

/*
 * Wrapped keys of a ring document, and answers of a service. An input is three parts between newlines: the key id of
 * the wrapped key, its bytes in base64, and the answer: for AWS and Azure the name of the key that the service reports,
 * for Google the plaintext, for Vault the whole body.
 */
const CONTEXT = { 'sealring:ring': 'default', 'sealring:purpose': 'data-key' };
const DATA_KEY = fuzzKey('data key');

const AWS = 'arn:aws:kms:eu-west-1:111122223333:key/mrk-1234abcd12ab34cd56ef1234567890ab';
const GCP = 'projects/shop/locations/europe-west1/keyRings/mcp/cryptoKeys/sealring';
const AZURE = 'https://payments.vault.azure.net/keys/sealring';
const AZURE_VERSION = `${AZURE}/0123456789abcdef0123456789abcdef`;

interface Parts {
  readonly keyId: string;
  readonly wrapped: Uint8Array;
  readonly answer: Buffer;
}

function partsOf(input: Uint8Array): Parts {
  const buffer = Buffer.from(input.buffer, input.byteOffset, input.length);
  const first = buffer.indexOf(10);
  const second = first < 0 ? -1 : buffer.indexOf(10, first + 1);
  if (second < 0) return { keyId: '', wrapped: buffer, answer: Buffer.alloc(0) };
  return {
    keyId: buffer.toString('utf8', 0, first),
    wrapped: Buffer.from(buffer.toString('latin1', first + 1, second), 'base64'),
    answer: buffer.subarray(second + 1),
  };
}

const joined = (keyId: string, wrapped: Uint8Array, answer: Uint8Array = new Uint8Array()): Buffer =>
  Buffer.concat([bytes(`${keyId}\n${Buffer.from(wrapped).toString('base64')}\n`), answer]);

/** Wrapped keys of each key wrapper. */
export async function wrapParsers(): Promise<readonly Parser[]> {
  return [await local(), aws(), await gcp(), azure(), vault()];
}

async function local(): Promise<Parser> {
  const keyWrapper = localKeyWrapper({ masterKey: fuzzKey('master key'), alsoUnwrap: [fuzzKey('old master key')] });
  const wraps = await Promise.all([
    keyWrapper.wrap(DATA_KEY, { context: CONTEXT }),
    keyWrapper.wrap(DATA_KEY, { context: {} }),
  ]);
  return parserOf(keyWrapper, {
    seeds: wraps.map(({ keyId, wrapped }) => joined(keyId, wrapped)),
    words: [keyWrapper.keyId],
    hear: () => undefined,
  });
}

function aws(): Parser {
  let answer: unknown;
  const client = { send: async (): Promise<unknown> => answer };
  return parserOf(awsKmsKeyWrapper({ keyId: AWS, client, maxAttempts: 1, multiRegion: true }), {
    seeds: [
      joined(AWS, bytes('ciphertext'), bytes(AWS)),
      joined(AWS.replace('eu-west-1', 'us-east-1'), bytes('x'), bytes(AWS)),
    ],
    words: [AWS, 'arn:aws:kms:', ':key/mrk-', 'alias/', 'aws-cn'],
    hear: ({ answer: name }) => {
      answer = { KeyId: name.toString('utf8'), Plaintext: new Uint8Array(DATA_KEY) };
    },
  });
}

async function gcp(): Promise<Parser> {
  const { versionTag } = await internal<{ readonly versionTag: (dataKey: Uint8Array, version: string) => Buffer }>(
    'gcp-kms/src/version-tag.ts',
  );
  const { crc32c } = await internal<{ readonly crc32c: (data: Uint8Array) => number }>('gcp-kms/src/crc32c.ts');
  const version = `${GCP}/cryptoKeyVersions/7`;
  let plaintext: Buffer = DATA_KEY;
  const client = {
    encrypt: async (): Promise<unknown> => [],
    decrypt: async (): Promise<unknown> => [{ plaintext, plaintextCrc32c: { value: crc32c(plaintext) } }],
  };
  const wrapped = Buffer.concat([bytes('ciphertext'), versionTag(DATA_KEY, version)]);
  return parserOf(gcpKmsKeyWrapper({ keyId: GCP, client, maxAttempts: 1 }), {
    seeds: [joined(version, wrapped, DATA_KEY), joined(`${GCP}/cryptoKeyVersions/8`, wrapped, DATA_KEY)],
    words: [GCP, '/cryptoKeyVersions/', '1'],
    hear: ({ answer }) => {
      plaintext = Buffer.from(answer);
    },
  });
}

function azure(): Parser {
  let keyID: unknown;
  const { x = '', y = '' } = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' });
  const answered = async (): Promise<unknown> => ({ result: Buffer.concat([DATA_KEY, fuzzKey('hash')]), keyID });
  const clients = {
    keys: () => ({ getKey: answered }),
    cryptography: () => ({ wrapKey: answered, unwrapKey: answered, sign: answered }),
  };
  const keyWrapper = azureKeyVaultKeyWrapper({
    keyId: AZURE,
    clients,
    signPublicKeys: [{ kty: 'EC', crv: 'P-256', x, y }],
    maxAttempts: 1,
  });
  return parserOf(keyWrapper, {
    seeds: [joined(AZURE_VERSION, bytes('ciphertext'), bytes(AZURE_VERSION)), joined(AZURE, bytes('x'), bytes(AZURE))],
    words: [AZURE, AZURE_VERSION, 'https://', '/keys/', ':443'],
    hear: (parts) => {
      keyID = parts.answer.toString('utf8');
      keyWrapper.verify?.(parts.wrapped, parts.answer);
    },
  });
}

function vault(): Parser {
  let body: Buffer = Buffer.alloc(0);
  const client = {
    fetch: async () => ({ status: 200, headers: { get: () => null }, body: chunks(body) }),
  };
  const keyWrapper = vaultTransitKeyWrapper({
    address: 'https://vault.example.com',
    keyId: 'payments',
    client,
    maxAttempts: 1,
  });
  const ciphertext = `vault:v3:${Buffer.alloc(60, 7).toString('base64')}`;
  const answer = { data: { plaintext: DATA_KEY.toString('base64') }, warnings: null };
  return parserOf(keyWrapper, {
    seeds: [
      joined('transit/keys/payments:v3', bytes(ciphertext), bytes(JSON.stringify(answer))),
      joined('transit/keys/payments:v4', bytes(ciphertext), bytes(JSON.stringify({ ...answer, warnings: ['x'] }))),
    ],
    words: [
      'transit/keys/payments',
      ':v',
      'vault:v',
      '"data":',
      '"plaintext":',
      '"warnings":[',
      'associated_data',
      '__proto__',
      '=',
    ],
    hear: (parts) => {
      body = Buffer.from(parts.answer);
    },
  });
}

async function* chunks(body: Uint8Array): AsyncGenerator<Uint8Array> {
  yield body;
}

function parserOf(
  keyWrapper: KeyWrapper,
  { seeds, words, hear }: Pick<Parser, 'seeds' | 'words'> & { readonly hear: (parts: Parts) => void },
): Parser {
  const { provider } = keyWrapper;
  return {
    name: `wrapped-key-${provider}`,
    seeds,
    words,
    refuses: ({ name }) => name === 'KeyWrapperError',
    parse: (input) => {
      const parts = partsOf(input);
      hear(parts);
      const { keyId, wrapped } = parts;
      return keyWrapper.unwrap({ provider, keyId, wrapped }, { context: CONTEXT });
    },
  };
}
