import { CreateKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import { awsKmsKeyWrapper } from '@sealring/aws-kms';
import { createKmsCodec, type KmsCodec } from '@sealring/core';
import { redisRing } from '@sealring/redis';
import { afterAll, beforeAll, inject } from 'vitest';
import { fleetPolicy } from '../fleet/fleet-policy.ts';
import { pythonWithPackage } from '../python/python-package.ts';
import { pythonPolicyOf } from '../python/python-policy.ts';
import { startRedis } from '../support/redis.ts';
import { type Language, type ServerProcess, startServer } from './processes.ts';
import type { ServerSettings } from './settings.ts';

const ringName = 'refunds';
const redisKey = 'sealring:{refunds}';

/** A ring in Redis whose keys a KMS wraps, for servers of both languages. */
export interface PeerFleet {
  /** The interpreter that has the Python package. */
  readonly python: string;
  /** Keeps the ring and rotates it; serves no requests. */
  readonly operator: KmsCodec;
  /** Resources to close at the end, the last one first. */
  readonly atEnd: (close: () => unknown) => void;
  readonly serve: (language: Language, name: string, audience?: string) => Promise<ServerProcess>;
}

/** Sets a fleet up before the tests of a file, and takes it down after them. */
export function peerFleet(): () => PeerFleet {
  let fleet: PeerFleet | undefined;
  const closing: (() => unknown)[] = [];
  beforeAll(async () => {
    fleet = await start((close) => closing.push(close));
  });
  afterAll(async () => {
    for (const close of closing.toReversed()) await close();
  });
  return () => {
    if (fleet === undefined) throw new Error('the fleet is not up');
    return fleet;
  };
}

async function start(atEnd: (close: () => unknown) => void): Promise<PeerFleet> {
  const python = await pythonWithPackage();
  const redis = await startRedis();
  atEnd(() => redis.stop());
  const endpoint = inject('moto');
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  const kms = new KMSClient({ endpoint, region: 'us-east-1', maxAttempts: 1, credentials });
  atEnd(() => kms.destroy());
  const { KeyMetadata } = await kms.send(new CreateKeyCommand({}));
  const keyId = KeyMetadata?.Arn ?? '';
  const ring = redisRing({ url: redis.address, key: redisKey });
  atEnd(() => ring.close?.());
  const keyWrapper = awsKmsKeyWrapper({ keyId, client: kms });
  const operator = await createKmsCodec({ keyWrapper, ring, ringName, policy: fleetPolicy, create: 'now' });
  atEnd(() => operator.close());
  const settings: Omit<ServerSettings, 'name'> = {
    audience: 'refund-desk',
    issuer: 'https://idp.example',
    ttlSeconds: fleetPolicy.tokenLifetimeSeconds,
    ringName,
    redis: redis.address,
    redisKey,
    kms: { endpoint, keyId },
    policy: fleetPolicy,
    pythonPolicy: pythonPolicyOf(fleetPolicy),
  };
  return {
    python,
    operator,
    atEnd,
    async serve(language, name, audience = settings.audience) {
      const server = await startServer(python, language, { ...settings, name, audience });
      atEnd(() => server.kill());
      return server;
    },
  };
}
