import { randomBytes } from 'node:crypto';
import { createKmsCodec, localKeyWrapper } from '@sealring/core';
import { redisRing, redisSingleUse } from '@sealring/redis';
import { createClient } from 'redis';

const client = createClient({ url: 'rediss://redis.internal:6379', username: 'payments', password: 'from your vault' });
client.on('error', (error) => console.error('redis', error));
await client.connect();

export const codec = await createKmsCodec({
  keyWrapper: localKeyWrapper({ masterKey: randomBytes(32) }), // in production: the key wrapper of your KMS
  ring: redisRing({ client, key: 'sealring:payments' }),
  ringName: 'payments',
});
export const singleUse = redisSingleUse({ client, prefix: 'sealring:payments:used:' });
