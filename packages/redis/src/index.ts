/**
 * Keeps a ring in Redis or Valkey, with push: {@link redisRing}. Remembers which single-use tokens were redeemed:
 * {@link redisSingleUse}.
 *
 * @packageDocumentation
 */

export type { RedisClient, RedisReplyTypes, RedisSendOptions, RedisSubscriber } from './client.ts';
export type { RedisRingOptions, RedisSingleUseOptions, RedisSource } from './options.ts';
export { redisRing } from './ring.ts';
export { redisSingleUse } from './single-use.ts';
