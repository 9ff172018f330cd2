"""Redeemed tokens in PostgreSQL, as `postgresSingleUse` of @sealring/postgres keeps them: one row
each."""

from datetime import datetime

from ..errors import RingConflictError, RingStoreError, SingleUseStoreError
from ..options import number, with_method
from ..stores.postgres import PostgresPool, postgres_failure, table_sql
from ..stores.postgres_connection import postgres_connector
from .store import (
    DEFAULT_CLOCK_SKEW_SECONDS,
    check_claim,
    check_clock_skew,
    claim_life_ms,
)

_OWNER = "PostgresSingleUse"
# Number of expired rows that a claim removes: more than the one row that it adds, so that the table
# shrinks after a peak.
_REMOVED_PER_CLAIM = 16
_ATTEMPTS = 3


class PostgresSingleUse:
    """Remembers redeemed tokens in a PostgreSQL table with a unique key, one row each. A claim also
    removes up to 16 expired rows, so no cleanup job is needed. A token is redeemed at most once,
    provided that the database server loses nothing that it has committed. `schema.sql` of
    @sealring/postgres creates the table; the store never does. Needs `SELECT`, `INSERT`, `UPDATE`
    and `DELETE` on it.

    Args:
        pool: a `psycopg_pool.ConnectionPool`; the store does not close it.
        url: instead of a pool: `postgresql://user:password@host/database`; each claim then makes
            its own connection.
        table: `table` or `schema.table`, each 1 to 48 characters of `[a-z0-9_]`.
        clock_skew_seconds: how long a token is remembered after it expires; give the value of the
            ring's policy; 0 to 86 400.
        call_timeout_seconds: with a `url`, the timeout for a statement and for connecting, which is
            given at least 2 seconds; 0.01 to 60.

    A wrong option raises TypeError or ValueError; the message names the option, but does not show
    the URL.
    """

    def __init__(
        self,
        *,
        pool: PostgresPool | None = None,
        url: str | None = None,
        table: str = "sealring_single_use",
        clock_skew_seconds: float = DEFAULT_CLOCK_SKEW_SECONDS,
        call_timeout_seconds: float = 5,
    ) -> None:
        if (pool is None) == (url is None):
            raise TypeError(f"{_OWNER}: give either pool or url")
        sql = table_sql(_OWNER, table)
        self._skew = check_clock_skew(_OWNER, clock_skew_seconds)
        number(_OWNER, "call_timeout_seconds", call_timeout_seconds, 0.01, 60)
        if pool is not None:
            with_method(_OWNER, "pool", pool, "connection")
            self._connect = pool.connection
        else:
            self._connect = postgres_connector(_OWNER, url, call_timeout_seconds)
        # Rows that another claim is removing are skipped without waiting.
        self._statement = (
            f"WITH expired AS (DELETE FROM {sql} WHERE id IN (SELECT id FROM {sql}"
            " WHERE expires_at < now() AND id <> %(id)s ORDER BY expires_at"
            f" LIMIT {_REMOVED_PER_CLAIM} FOR UPDATE SKIP LOCKED))"
            f" INSERT INTO {sql} (id, expires_at)"
            " VALUES (%(id)s, now() + %(left)s * interval '1 millisecond')"
            " ON CONFLICT (id) DO NOTHING RETURNING id"
        )

    @property
    def clock_skew_seconds(self) -> float:
        return self._skew

    def claim(self, id: str, expires_at: datetime) -> bool:  # noqa: A002
        """See SingleUseStore.claim."""
        end = check_claim(_OWNER, id, expires_at)
        if "\0" in id:
            raise ValueError(f"{_OWNER}: id contains a NUL, which PostgreSQL text cannot store")
        for _ in range(_ATTEMPTS):
            # The caller's clock determines the remaining time, because it also decides whether the
            # token has expired; the clock of the database server may differ.
            left_ms = claim_life_ms(end, self._skew)
            if left_ms <= 0:
                return False
            answer = self._answer(id, left_ms)
            if isinstance(answer, bool):
                return answer
            # At an isolation level above READ COMMITTED, the transaction was rolled back, so
            # nothing is claimed yet.
            if not isinstance(answer, RingConflictError):
                raise SingleUseStoreError.like(answer)
        raise SingleUseStoreError("unavailable", "other claims came first", code="40001")

    def _answer(
        self,
        id: str,  # noqa: A002
        left_ms: int,
    ) -> bool | RingStoreError | RingConflictError:
        try:
            with self._connect() as connection:
                values = {"id": id, "left": left_ms}
                return connection.execute(self._statement, values).fetchone() is not None
        except Exception as error:
            return postgres_failure(error)
