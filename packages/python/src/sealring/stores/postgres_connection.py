"""Connections that a PostgreSQL store makes for itself, each with a time limit for every
statement."""

import math
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from typing import Any

from ..options import text

Values = Sequence[object] | Mapping[str, object]


class OwnConnection:
    """Ends a statement that gets no answer. libpq waits without a limit, and the server, which has
    a limit, may be stopped or unreachable."""

    def __init__(self, connection: Any, timeout: float) -> None:
        self._connection = connection
        self._timeout = timeout

    def execute(self, statement: str, values: Values = ()) -> Any:
        """Raises TimeoutError if no answer arrives in time; the connection can then no longer be
        used."""
        limit = _Limit(self._connection.fileno(), self._timeout)
        try:
            return self._connection.execute(statement, values)
        except Exception:
            if not limit.has_passed:
                raise
        finally:
            limit.cancel()
        raise TimeoutError

    def notifies(self, *, timeout: float) -> Any:
        return self._connection.notifies(timeout=timeout)


class _Limit:
    """Shuts a socket down when a time has passed, which wakes the thread that waits for it. Uses a
    duplicate of the file descriptor: libpq may close its own at any time, and the number could then
    be that of another file."""

    def __init__(self, fileno: int, seconds: float) -> None:
        self.has_passed = False
        self._socket = socket.fromfd(fileno, socket.AF_INET, socket.SOCK_STREAM)
        self._lock = threading.Lock()
        self._timer = threading.Timer(seconds, self._pass)
        self._timer.daemon = True
        try:
            self._timer.start()
        except RuntimeError:  # The machine has no thread left.
            self._socket.close()
            raise

    def cancel(self) -> None:
        self._timer.cancel()
        with self._lock:
            self._socket.close()

    def _pass(self) -> None:
        with self._lock:
            # Set first, because the waiting thread is awake as soon as the socket is shut down.
            self.has_passed = True
            # Fails if `cancel` has closed the socket, or the server its end.
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)


def postgres_connector(
    owner: str, url: object, timeout: float
) -> Callable[[], AbstractContextManager[OwnConnection]]:
    """Returns a function that connects to a URL. Raises TypeError or ValueError for an invalid URL,
    without showing it."""
    given = text(owner, "url", url, 4_096)
    if not given.startswith(("postgres://", "postgresql://")):
        raise ValueError(f"{owner}: url must be a postgresql:// URL")
    import psycopg  # noqa: PLC0415 - the extra `postgres`.

    settings = _settings_of(given)
    if settings is None:
        raise ValueError(
            f"{owner}: url must be a postgresql:// URL with valid ports and parameters; "
            "percent-encode the user and the password"
        )
    # The last option of a name counts.
    own = f"-c statement_timeout={math.ceil(timeout * 1_000)}"
    options = f"{settings.get('options') or ''} {own}".strip()

    @contextmanager
    def connect() -> Iterator[OwnConnection]:
        connection = psycopg.connect(
            given,
            autocommit=True,
            # libpq takes whole seconds, and at least two.
            connect_timeout=max(2, math.ceil(timeout)),
            options=options,
        )
        with closing(connection):
            yield OwnConnection(connection, timeout)

    return connect


def _settings_of(url: str) -> Mapping[str, object] | None:
    """The settings in a URL; None if libpq rejects it, with an error that can contain parts of the
    password, or if a port is not a number from 1 to 65535."""
    from psycopg import Error  # noqa: PLC0415 - the extra `postgres`.
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415

    try:
        settings: Mapping[str, object] = conninfo_to_dict(url)
    except (Error, ValueError):
        return None
    ports = str(settings.get("port") or "").split(",")
    return settings if all(port == "" or _is_port(port) for port in ports) else None


def _is_port(value: str) -> bool:
    return value.isascii() and value.isdigit() and len(value) <= 5 and 1 <= int(value) <= 65_535
