import type { RingStoreErrorKind } from '@sealring/core';
import { checkClaim, claimLifeMs } from '@sealring/core/adapter';
import { connectionOf } from './connection.ts';
import { type RedisSingleUseOptions, readSingleUseOptions } from './options.ts';

const OWNER = 'redisSingleUse';

/** Where redeemed tokens are remembered: a `SingleUseStore` of `@sealring/mcp`. */
export interface RedisSingleUse {
  /** For how much longer than it lives a token is remembered: `RequestStateSecurity` refuses less than the ring's. Seconds. */
  readonly clockSkewSeconds: number;
  /**
   * True for exactly one caller per `id`, false for every other, until `expiresAt` and `clockSkewSeconds` longer; false
   * for everybody once that has passed.
   * @throws {TypeError | RangeError} for an `id` that is no text of 1 to 256 characters, or an invalid date.
   * @throws {SingleUseStoreError} when the store cannot tell: the token must then be refused.
   */
  claim(id: string, expiresAt: Date): Promise<boolean>;
  /** Closes the client that was made from `url`; one that was given stays open. */
  close(): Promise<void>;
}

/** The store cannot tell whether a token was redeemed. `kind` is as in `RingStoreError`; the text is fixed and ours. */
export class SingleUseStoreError extends Error {
  override readonly name = 'SingleUseStoreError';
  /** As that of a `RingStoreError`. */
  readonly kind: RingStoreErrorKind;
  constructor(kind: RingStoreErrorKind, detail: string) {
    super(`single-use store ${kind}: ${detail}`);
    this.kind = kind;
  }

  /** The section of the documentation on this kind, a path in Sealring's repository. */
  get help(): string {
    return `docs/errors.md#singleusestoreerror-${this.kind}`;
  }
}

/**
 * Remembers redeemed tokens in Redis, one key each (`SET NX PX`), until they expire by themselves.
 *
 * At most once holds as long as the server keeps what it acknowledged: not across a failover that loses writes, a
 * restart without persistence, or an eviction. See the README.
 *
 * @throws {TypeError} for a wrong or unknown option, and unless exactly one of `client` and `url` is given.
 * @throws {RangeError} for a value outside its bounds.
 *
 * @example
 * ```ts
 * const security = new RequestStateSecurity({ codec, singleUse: redisSingleUse({ client }) });
 * ```
 */
export function redisSingleUse(options: RedisSingleUseOptions): RedisSingleUse {
  const settings = readSingleUseOptions(options);
  const connection = connectionOf(settings);
  return Object.freeze<RedisSingleUse>({
    clockSkewSeconds: settings.clockSkewMs / 1_000,

    async claim(id, expiresAt) {
      checkClaim(OWNER, id, expiresAt);
      // What is left by the caller's clock, which judges the token too; the server's may differ.
      const leftMs = claimLifeMs(expiresAt, settings.clockSkewMs);
      if (leftMs <= 0) return false;
      const command = ['SET', settings.name + id, '', 'NX', 'PX', String(leftMs)];
      const outcome = await connection.run(undefined, (client, abortSignal) =>
        client.sendCommand(command, { abortSignal }),
      );
      if ('failure' in outcome) throw new SingleUseStoreError(outcome.failure.kind, outcome.failure.detail);
      const { answer } = outcome;
      if (answer !== null && answer !== 'OK') {
        throw new SingleUseStoreError('unavailable', 'the answer was not one of SET');
      }
      return answer !== null;
    },

    async close() {
      connection.close();
    },
  });
}
