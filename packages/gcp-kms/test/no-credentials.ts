import { KeyManagementServiceClient } from '@google-cloud/kms';
import { KeyWrapperError } from '@sealring/core';
import { gcpKmsKeyWrapper } from '../src/index.ts';

// Runs without credentials. Prints the outcome of a wrap, and whether the process continues.

const keyId = 'projects/shop/locations/europe-west1/keyRings/mcp/cryptoKeys/sealring';
const dataKey = Uint8Array.from({ length: 32 }, (_, i) => i);

async function kindOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return 'an answer';
  } catch (error) {
    return error instanceof KeyWrapperError ? error.kind : 'another error';
  }
}

const own = gcpKmsKeyWrapper({ keyId, maxAttempts: 2 });
const kind = await kindOf(own.wrap(dataKey, { context: {} }));
await own.close();
process.stdout.write(`own client: ${kind}, closed\n`);

const client = new KeyManagementServiceClient();
const given = gcpKmsKeyWrapper({ keyId, client, maxAttempts: 2 });
process.stdout.write(`given client: ${await kindOf(given.wrap(dataKey, { context: {} }))}\n`);
// An unhandled rejection would have been reported by now, and would have ended the process.
await new Promise(setImmediate);

process.once('unhandledRejection', () => process.stdout.write('SDK alone: unhandled rejection\n'));
await kindOf(new KeyManagementServiceClient().encrypt({ name: keyId, plaintext: dataKey }));
