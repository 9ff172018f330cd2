import { type SingleUseStore, SingleUseStoreError } from '@sealring/core';
import { singleUseStorage } from '@sealring/core/adapter';
import { connectionOf } from './connection.ts';
import { type PostgresSingleUseOptions, readSingleUseOptions } from './options.ts';

const OWNER = 'postgresSingleUse';
/**
 * How many expired rows a claim removes: more than the one row that it adds, so that the table shrinks after a peak.
 */
const REMOVED_PER_CLAIM = 16;
const ATTEMPTS = 3;

/**
 * Remembers redeemed tokens in a PostgreSQL table with a unique key, one row each. A claim also removes up to 16
 * expired rows, so no cleanup job is needed. A token is redeemed at most once as long as the server keeps what it
 * committed.
 *
 * @throws {TypeError} for a wrong or unknown option, or if not exactly one of `pool` and `connectionString` is given.
 * @throws {RangeError} for a value outside its bounds.
 *
 * @example
 * ```ts
 * const security = new RequestStateSecurity({ codec, singleUse: postgresSingleUse({ pool }) });
 * ```
 */
export function postgresSingleUse(options: PostgresSingleUseOptions): Required<SingleUseStore> {
  const settings = readSingleUseOptions(options);
  const connection = connectionOf(settings);
  const { table } = settings;
  // Rows that another claim is removing are skipped without waiting.
  const text = `WITH expired AS (DELETE FROM ${table} WHERE id IN (SELECT id FROM ${table}
      WHERE expires_at < now() AND id <> $1 ORDER BY expires_at LIMIT ${REMOVED_PER_CLAIM} FOR UPDATE SKIP LOCKED))
    INSERT INTO ${table} (id, expires_at) VALUES ($1, now() + $2 * interval '1 millisecond')
    ON CONFLICT (id) DO NOTHING RETURNING id`;

  return Object.freeze<Required<SingleUseStore>>({
    clockSkewSeconds: settings.clockSkewMs / 1_000,

    async claim(id, expiresAt) {
      singleUseStorage.checkClaim(OWNER, id, expiresAt);
      if (id.includes('\0')) throw new RangeError(`${OWNER}: id contains a NUL, which PostgreSQL text cannot store`);
      for (let attempt = 1; ; attempt++) {
        // The remaining time according to the caller's clock, which is also used to check the token. The server's clock
        // may differ.
        const leftMs = singleUseStorage.claimLifeMs(expiresAt, settings.clockSkewMs);
        if (leftMs <= 0) return false;
        const outcome = await connection.query(undefined, { text, values: [id, leftMs] });
        if (!('failure' in outcome)) return outcome.answer.length > 0;
        const { kind, detail, serviceCode } = outcome.failure;
        // At an isolation level above READ COMMITTED, the transaction was rolled back, so nothing is claimed yet.
        if (serviceCode !== '40001' || attempt >= ATTEMPTS)
          throw new SingleUseStoreError(kind, detail, { serviceCode });
      }
    },

    async close() {
      await connection.close();
    },
  });
}
