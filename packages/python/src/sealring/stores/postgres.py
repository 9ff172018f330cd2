"""A ring in PostgreSQL, as `postgresRing` of @sealring/postgres keeps it: one row."""

import hashlib
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ..errors import RingConflictError, RingStoreError, RingStoreErrorKind
from ..failures import failure_with, rows, unreachable, unreachable_by
from ..key_wrapper import OnServiceDate
from ..options import label, number, text, with_method
from ..ring.document import MAX_DOCUMENT_BYTES
from ..ring.store import StoredRing, check_write
from .postgres_connection import postgres_connector
from .push import Push

_OWNER = "PostgresRing"
_LOOK_SECONDS = 1.0
_HEARTBEAT_SECONDS = 15.0
# Identifiers cannot be passed as parameters of a statement, so only the listed characters are
# allowed.
_TABLE_NAME = re.compile(r"(?:([a-z_][a-z0-9_]{0,47})\.)?([a-z_][a-z0-9_]{0,47})", re.ASCII)
_UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_SERIALIZATION_FAILURE = "40001"
_UNKNOWN = "the statement returned an unexpected answer"

_TABLE = "the table is missing: run the migration"
_SHAPE = "the table does not match the migration"
_LOGIN = "the server refused the login: check the user and the password"
_BUSY = "the server cannot serve requests at the moment"
_OTHER = "another transaction changed the row first"
# Maps an SQLSTATE to a kind (PostgreSQL documentation, appendix A). Any other code is
# `unavailable`.
ERROR_TABLE: dict[str, tuple[RingStoreErrorKind, str]] = {
    **rows(("denied", _LOGIN), "28000 28P01"),
    "42501": ("denied", "the user lacks a permission on the table"),
    # A missing table does not mean an absent ring: a ring may be created only if its table exists
    # and has no row for it.
    **rows(("unavailable", _TABLE), "42P01 3F000"),
    "3D000": ("unavailable", "the database is missing"),
    **rows(("corrupt", _SHAPE), "42703 42804 42883 42P10 23502"),
    "23514": ("too-large", "the document exceeds the size limit of the table"),
    # This is not `read-only`, because writes succeed after the failover.
    "25006": (
        "unavailable",
        "the server is read-only: a failover is under way, or the address is wrong",
    ),
    **rows(("unavailable", _OTHER), "40001 40P01"),
    "53100": ("unavailable", "the disk of the server is full"),
    "53200": ("unavailable", "the server is out of memory"),
    "53300": ("unavailable", "the server has too many connections"),
    "55P03": ("unavailable", "another transaction held the row for too long"),
    "57014": ("unavailable", "the server ended the statement (statement_timeout)"),
    **rows(("unavailable", _BUSY), "57P01 57P02 57P03 08000 08003 08006"),
}
# libpq gives no code for a connection that was refused. The error is searched for the texts of
# libpq and of a server whose messages are in English. The texts are never copied, and an error with
# any other text is `unavailable`.
_NO_CONNECTION: tuple[tuple[str, str], ...] = (
    (r"FATAL:  (?:password|\S{1,20}) authentication failed for user ", "28P01"),
    ("fe_sendauth: no password supplied", "28P01"),
    ("FATAL:  no pg_hba\\.conf entry for ", "28000"),
    ("FATAL:  pg_hba\\.conf rejects ", "28000"),
    ('FATAL:  role ".*" (?:does not exist|is not permitted to log in)', "28000"),
    ('FATAL:  database ".*" does not exist', "3D000"),
    ("FATAL:  sorry, too many clients already", "53300"),
    ("FATAL:  the database system is (?:starting up|shutting down)", "57P03"),
    ("server does not support SSL, but SSL was required", "ERR_POSTGRES_NO_TLS"),
    ("could not translate host name .*: Temporary failure", "EAI_AGAIN"),
    ("could not translate host name ", "ENOTFOUND"),
    ("Connection refused", "ECONNREFUSED"),
    ("timeout expired|Connection timed out", "ETIMEDOUT"),
    ("No route to host", "EHOSTUNREACH"),
    ("Network is unreachable", "ENETUNREACH"),
    ("server closed the connection unexpectedly|Connection reset by peer", "ECONNRESET"),
    ("server certificate for .* does not match host name ", "HOSTNAME_MISMATCH"),
    ("certificate verify failed", "UNABLE_TO_VERIFY_LEAF_SIGNATURE"),
)


class PostgresPool(Protocol):
    """The part of a `psycopg_pool.ConnectionPool` that is used."""

    def connection(self) -> AbstractContextManager[Any]: ...


class PostgresRing:
    """A ring in one row of a table in PostgreSQL 13 or later. A single statement compares and
    replaces the row. `schema.sql` of @sealring/postgres creates the table; the store never does.
    Only a primary is read. Needs `SELECT`, `INSERT` and `UPDATE` on the table; a reader needs
    `SELECT`.

    Args:
        pool: a `psycopg_pool.ConnectionPool`; the store does not close it. With a pool, the store
            receives no notifications of writes.
        url: instead of a pool: `postgresql://user:password@host/database`; each call then makes
            its own connection, and one more receives notifications of writes.
        table: `table` or `schema.table`, each 1 to 48 characters of `[a-z0-9_]`.
        name: the ring's row; 1 to 64 characters of `[A-Za-z0-9._-]`.
        call_timeout_seconds: with a `url`, the timeout for a statement and for connecting, which is
            given at least 2 seconds; 0.01 to 60.

    A wrong option raises TypeError or ValueError; the message names the option, but does not show
    the URL.
    """

    kind = "postgres"

    def __init__(
        self,
        *,
        pool: PostgresPool | None = None,
        url: str | None = None,
        table: str = "sealring_ring",
        name: str = "default",
        call_timeout_seconds: float = 5,
    ) -> None:
        if (pool is None) == (url is None):
            raise TypeError(f"{_OWNER}: give either pool or url")
        sql = table_sql(_OWNER, table)
        self._name = label(_OWNER, "name", name)
        self.location = f"postgres table {sql}, row {name}"
        number(_OWNER, "call_timeout_seconds", call_timeout_seconds, 0.01, 60)
        digest = hashlib.sha256(f"{sql}\0{name}".encode()).hexdigest()
        self._channel = f"sealring_{digest[:32]}"
        self._connect: Callable[[], AbstractContextManager[Any]]
        if pool is not None:
            with_method(_OWNER, "pool", pool, "connection")
            self._connect = pool.connection
        else:
            self._connect = postgres_connector(_OWNER, url, call_timeout_seconds)
        self._has_push = pool is None
        # The statement returns one row in any case, because an answer without a row would not show
        # that the ring is absent. The size is checked before the document is read, so that a
        # document over the limit is never sent.
        self._read = (
            "SELECT pg_is_in_recovery(), ring.revision::text,"
            " floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint,"
            " octet_length(ring.document) > %s,"
            " CASE WHEN octet_length(ring.document) <= %s THEN ring.document END"
            f" FROM (VALUES (1)) AS one LEFT JOIN {sql} AS ring ON ring.name = %s"
        )
        # The notification is part of the statement, so that it is sent when the write is committed,
        # and never without a write.
        told = " SELECT revision::text, pg_notify(%s, '') FROM written"
        self._create = (
            f"WITH written AS (INSERT INTO {sql} (name, document, revision)"
            " VALUES (%s, %s, gen_random_uuid()) ON CONFLICT (name) DO NOTHING"
            f" RETURNING revision){told}"
        )
        # Revisions are compared as text, because a revision from another store need not be a UUID;
        # it then simply does not match.
        self._replace = (
            f"WITH written AS (UPDATE {sql} SET document = %s, revision = gen_random_uuid()"
            f" WHERE name = %s AND revision::text = %s RETURNING revision){told}"
        )

    def read(self, *, on_service_date: OnServiceDate | None = None) -> StoredRing | None:
        """The document; None when a primary answers that there is no row. Raises RingStoreError,
        without any part of the server's error, for every other failure."""
        most = MAX_DOCUMENT_BYTES
        row = self._row(self._read, (most, most, self._name))
        if isinstance(row, Exception):
            raise row
        if row is None or len(row) != 5:
            raise RingStoreError("unavailable", _UNKNOWN)
        is_standby, revision, server_ms, is_too_large, document = row
        if on_service_date is not None and isinstance(server_ms, int):
            on_service_date(server_ms)
        if is_standby is not False:
            detail = "the server is a standby: a failover is under way, or the address is wrong"
            raise RingStoreError("unavailable", detail)
        if revision is None:
            return None
        if not isinstance(revision, str):
            raise RingStoreError("unavailable", _UNKNOWN)
        if is_too_large is not False or not isinstance(document, str):
            raise RingStoreError(
                "too-large", "the document is larger than 256 KiB", revision=revision
            )
        if document == "":
            raise RingStoreError("corrupt", "the document is empty", revision=revision)
        return StoredRing(document, revision)

    def write(
        self,
        document: str,
        *,
        expected: str | None,
        on_service_date: OnServiceDate | None = None,  # noqa: ARG002 - a write returns no time.
    ) -> str:
        """Replaces the row, if its revision is `expected`. Raises RingConflictError or
        RingStoreError; a write that fails as `unavailable` may have succeeded."""
        check_write(_OWNER, document, expected)
        # No read can have returned such a revision, and PostgreSQL refuses text with a NUL.
        if expected is not None and _UUID.fullmatch(expected) is None:
            raise RingConflictError
        if expected is None:
            row = self._row(self._create, (self._name, document, self._channel))
        else:
            row = self._row(self._replace, (document, self._name, expected, self._channel))
        if isinstance(row, Exception):
            raise row
        if row is None:
            raise RingConflictError
        if not isinstance(row[0], str):
            raise RingStoreError("unavailable", _UNKNOWN)
        return row[0]

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Calls `changed` on a separate thread after each write, and after each reconnection
        because writes may have been missed. With a pool, `changed` is never called."""
        push = _PostgresPush(self._connect, self._channel, changed)
        if self._has_push:
            push.start()
        return push.close

    def _row(
        self, statement: str, values: tuple[object, ...]
    ) -> Sequence[object] | RingStoreError | RingConflictError | None:
        """The only row, or none."""
        try:
            with self._connect() as connection:
                row: Sequence[object] | None = connection.execute(statement, values).fetchone()
                return row
        except Exception as error:
            return postgres_failure(error)


class _PostgresPush(Push):
    def __init__(
        self,
        connect: Callable[[], AbstractContextManager[Any]],
        channel: str,
        changed: Callable[[], None],
    ) -> None:
        super().__init__(changed)
        self._connect = connect
        self._channel = channel

    def listen(self) -> None:
        with self._connect() as connection:
            connection.execute(f'LISTEN "{self._channel}"')
            # There may have been writes before.
            self.heard()
            looks = 0
            while not self._closing.is_set():
                for _ in connection.notifies(timeout=_LOOK_SECONDS):
                    self.heard()
                looks += 1
                if looks * _LOOK_SECONDS >= _HEARTBEAT_SECONDS:
                    # Detects a connection that the other end dropped without closing it.
                    looks = 0
                    connection.execute("SELECT 1")


def postgres_failure(error: Exception) -> RingStoreError | RingConflictError:
    """Classifies an error by its SQLSTATE. Of two transactions at an isolation level above READ
    COMMITTED, the one that lost gets 40001."""
    state = getattr(error, "sqlstate", None)
    if state == _SERIALIZATION_FAILURE:
        return RingConflictError()
    code = state if isinstance(state, str) else _code_of_connection(str(error))
    if code in ERROR_TABLE:
        kind, detail = ERROR_TABLE[code]
        return RingStoreError(kind, f"{detail} ({code})", code=code)
    if code is not None and state is None:
        return unreachable_by(failure_with(code), "the server")
    failure = unreachable(error, "the server")
    return failure or RingStoreError("unavailable", "the call failed")


def _code_of_connection(text: str) -> str | None:
    found = (code for pattern, code in _NO_CONNECTION if re.search(pattern, text))
    return next(found, None)


def table_sql(owner: str, table: object) -> str:
    """The name of a table, quoted for a statement. Raises TypeError or ValueError for an invalid
    name."""
    found = _TABLE_NAME.fullmatch(text(owner, "table", table, 97))
    if found is None:
        told = f"{owner}: table must be table or schema.table of [a-z0-9_]"
        raise ValueError(f"{told}, got {ascii(table)}")
    return ".".join(f'"{part}"' for part in found.groups() if part is not None)
