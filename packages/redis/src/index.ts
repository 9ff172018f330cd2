export type { RedisClient, RedisReplyTypes, RedisSendOptions, RedisSubscriber } from './client.ts';
export type { RedisRingOptions, RedisSingleUseOptions, RedisSource } from './options.ts';
export { redisRing } from './ring.ts';
export { type RedisSingleUse, redisSingleUse, SingleUseStoreError } from './single-use.ts';
