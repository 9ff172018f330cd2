import { type SingleUseStore, SingleUseStoreError } from '@sealring/core';
import { singleUseStorage } from '@sealring/core/adapter';
import { connectionOf } from './connection.ts';
import { type RedisSingleUseOptions, readSingleUseOptions } from './options.ts';

const OWNER = 'redisSingleUse';

/**
 * Remembers redeemed tokens in Redis, one key each (`SET NX PX`), until they expire by themselves.
 *
 * A token is redeemed at most once as long as the server keeps what it acknowledged. A failover that loses writes, a
 * restart without persistence, or an eviction breaks this guarantee: see the README.
 *
 * @throws {TypeError} for a wrong or unknown option, or if not exactly one of `client` and `url` is given.
 * @throws {RangeError} for a value outside its bounds.
 *
 * @example
 * ```ts
 * const security = new RequestStateSecurity({ codec, singleUse: redisSingleUse({ client }) });
 * ```
 */
export function redisSingleUse(options: RedisSingleUseOptions): Required<SingleUseStore> {
  const settings = readSingleUseOptions(options);
  const connection = connectionOf(settings);
  return Object.freeze<Required<SingleUseStore>>({
    clockSkewSeconds: settings.clockSkewMs / 1_000,

    async claim(id, expiresAt) {
      singleUseStorage.checkClaim(OWNER, id, expiresAt);
      // The remaining time according to the caller's clock, which is also used to check the token. The server's clock
      // may differ.
      const leftMs = singleUseStorage.claimLifeMs(expiresAt, settings.clockSkewMs);
      if (leftMs <= 0) return false;
      const command = ['SET', settings.name + id, '', 'NX', 'PX', String(leftMs)];
      const outcome = await connection.run(undefined, (client, abortSignal) =>
        client.sendCommand(command, { abortSignal }),
      );
      if ('failure' in outcome)
        throw new SingleUseStoreError(outcome.failure.kind, outcome.failure.detail, outcome.failure);
      const { answer } = outcome;
      if (answer !== null && answer !== 'OK') {
        throw new SingleUseStoreError('unavailable', 'SET returned an unexpected answer');
      }
      return answer !== null;
    },

    async close() {
      connection.close();
    },
  });
}
