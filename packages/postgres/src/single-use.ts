import type { RingStoreErrorKind } from '@sealring/core';
import { checkClaim, claimLifeMs } from '@sealring/core/adapter';
import { connectionOf } from './connection.ts';
import { type PostgresSingleUseOptions, readSingleUseOptions } from './options.ts';

const OWNER = 'postgresSingleUse';
/** Expired rows a claim removes: more than the one it adds, so that the table shrinks back after a peak. */
const REMOVED_PER_CLAIM = 16;
const ATTEMPTS = 3;

/** Where redeemed tokens are remembered: a `SingleUseStore` of `@sealring/mcp`. */
export interface PostgresSingleUse {
  /** For how much longer than it lives a token is remembered: `RequestStateSecurity` refuses less than the ring's. Seconds. */
  readonly clockSkewSeconds: number;
  /**
   * True for exactly one caller per `id`, false for every other, until `expiresAt` and `clockSkewSeconds` longer; false
   * for everybody once that has passed.
   * @throws {TypeError | RangeError} for an `id` that is no text of 1 to 256 characters, or an invalid date.
   * @throws {SingleUseStoreError} when the store cannot tell: the token must then be refused.
   */
  claim(id: string, expiresAt: Date): Promise<boolean>;
  /** Ends the pool that was made from `connectionString`; one that was given stays open. */
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
 * Remembers redeemed tokens in a PostgreSQL table with a unique key, one row each. A claim also removes up to 16 expired
 * rows, so no job has to. At most once holds as long as the server keeps what it committed.
 *
 * @throws {TypeError} for a wrong or unknown option, and unless exactly one of `pool` and `connectionString` is given.
 * @throws {RangeError} for a value outside its bounds.
 *
 * @example
 * ```ts
 * const security = new RequestStateSecurity({ codec, singleUse: postgresSingleUse({ pool }) });
 * ```
 */
export function postgresSingleUse(options: PostgresSingleUseOptions): PostgresSingleUse {
  const settings = readSingleUseOptions(options);
  const connection = connectionOf(settings);
  const { sql } = settings.table;
  // What is being removed by another claim is skipped, not waited for.
  const text = `WITH expired AS (DELETE FROM ${sql} WHERE id IN (SELECT id FROM ${sql}
      WHERE expires_at < now() AND id <> $1 ORDER BY expires_at LIMIT ${REMOVED_PER_CLAIM} FOR UPDATE SKIP LOCKED))
    INSERT INTO ${sql} (id, expires_at) VALUES ($1, now() + $2 * interval '1 millisecond')
    ON CONFLICT (id) DO NOTHING RETURNING id`;

  return Object.freeze<PostgresSingleUse>({
    clockSkewSeconds: settings.clockSkewMs / 1_000,

    async claim(id, expiresAt) {
      checkClaim(OWNER, id, expiresAt);
      if (id.includes('\0')) throw new RangeError(`${OWNER}: id has a NUL, which PostgreSQL text cannot hold`);
      for (let attempt = 1; ; attempt++) {
        // What is left by the caller's clock, which judges the token too; the server's may differ.
        const leftMs = claimLifeMs(expiresAt, settings.clockSkewMs);
        if (leftMs <= 0) return false;
        const outcome = await connection.query(undefined, { text, values: [id, leftMs] });
        if (!('failure' in outcome)) return outcome.answer.length > 0;
        const { kind, detail, code } = outcome.failure;
        // Above READ COMMITTED: it was rolled back, so that nothing is claimed yet.
        if (code !== '40001' || attempt >= ATTEMPTS) throw new SingleUseStoreError(kind, detail);
      }
    },

    async close() {
      await connection.close();
    },
  });
}
