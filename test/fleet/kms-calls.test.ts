import { CreateKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import { createAwsKmsCodec } from '@sealring/aws-kms';
import { type KmsCodec, memoryRing, type RingStore } from '@sealring/core';
import { afterEach, beforeAll, describe, expect, inject, test } from 'vitest';

const payload = new TextEncoder().encode('{"order":"A1"}');
const open: KmsCodec[] = [];
let keyId: string;

/** The vendor's own client, which counts its requests by name. */
function countingClient(): { client: KMSClient; counts: Record<string, number> } {
  const client = new KMSClient({
    endpoint: inject('moto'),
    region: 'us-east-1',
    maxAttempts: 1,
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  });
  const counts: Record<string, number> = {};
  client.middlewareStack.add(
    (next, context) => (args) => {
      const name = String(context.commandName);
      counts[name] = (counts[name] ?? 0) + 1;
      return next(args);
    },
    { step: 'build' },
  );
  return { client, counts };
}

async function start(client: KMSClient, ring: RingStore, ringName = 'payments'): Promise<KmsCodec> {
  const codec = await createAwsKmsCodec({ keyId, client, ring, ringName });
  open.push(codec);
  return codec;
}

beforeAll(async () => {
  const { client } = countingClient();
  const { KeyMetadata } = await client.send(new CreateKeyCommand({}));
  keyId = KeyMetadata?.Arn ?? '';
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((codec) => codec.close()));
});

describe('a fleet on AWS KMS, through the real client', () => {
  test('10 000 seals and unseals on two instances need no KMS call beyond the first wrap and its unwraps', async () => {
    const { client, counts } = countingClient();
    const ring = memoryRing();
    const a = await start(client, ring);
    const b = await start(client, ring);
    for (let i = 0; i < 5_000; i++) {
      b.unseal(a.seal(payload));
      a.unseal(b.seal(payload));
    }
    // The creator's wrap and its KMS check, and the second instance's unwrap.
    expect(counts).toEqual({ GenerateDataKeyCommand: 1, DecryptCommand: 2 });
  });

  test('an instance that starts later unseals a token from before two rotations', async () => {
    const { client } = countingClient();
    const ring = memoryRing();
    const a = await start(client, ring);
    const b = await start(client, ring);
    const token = a.seal(payload);
    await a.rotate();
    await b.rotate({ emergency: true });
    const c = await start(client, ring);
    await a.refresh();
    for (const instance of [a, b, c]) expect(instance.unseal(token)).toEqual(payload);
    expect(c.health().keys.map(({ state }) => state)).toEqual(['active', 'propagating', 'propagating']);
  });

  test('a token of a ring with another name is refused, even with the same KMS key (F25)', async () => {
    const { client } = countingClient();
    const payments = await start(client, memoryRing(), 'payments');
    const refunds = await start(client, memoryRing(), 'refunds');
    expect(() => refunds.unseal(payments.seal(payload))).toThrow('unknown key');
  });
});
