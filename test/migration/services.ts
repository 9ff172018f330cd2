import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateKeyCommand, KMSClient } from '@aws-sdk/client-kms';

/**
 * Environment variables of the guides: a KMS key in an emulator, a place for a ring that is removed after the test, and
 * the old secret.
 * @param moto - the emulator's address.
 */
export async function withServices(
  moto: string,
  secret: string,
  run: (environment: Readonly<Record<string, string>>) => Promise<void>,
): Promise<void> {
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  const client = new KMSClient({ endpoint: moto, region: 'us-east-1', credentials });
  const { KeyMetadata } = await client.send(new CreateKeyCommand({}));
  client.destroy();
  const folder = mkdtempSync(join(tmpdir(), 'sealring-migration-'));
  try {
    await run({
      AWS_ENDPOINT_URL_KMS: moto,
      AWS_REGION: 'us-east-1',
      AWS_DEFAULT_REGION: 'us-east-1',
      AWS_ACCESS_KEY_ID: credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
      KMS_KEY_ID: KeyMetadata?.Arn ?? '',
      RING_PATH: join(folder, 'refund-desk.ring'),
      REQUEST_STATE_KEY: secret,
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
