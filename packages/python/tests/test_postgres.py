"""PostgreSQL stores that make their own connections, with a server that stops answering."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from ring_maker import wait_until

from sealring import PostgresRing, PostgresSingleUse, RingStoreError, SingleUseStoreError
from sealring.stores.postgres import _PostgresPush
from sealring.stores.postgres_connection import postgres_connector

SSL_REQUEST, GSS_REQUEST = 80877103, 80877104


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


class SilentServer:
    """Accepts every login, answers the first `answers` statements of each connection, and no
    other."""

    def __init__(self, path: str | None = None) -> None:
        """`path`: the path of a socket to listen on; by default, listens on a port."""
        self.answers = 0
        self.settings: list[dict[str, str]] = []
        self.statements: list[bytes] = []
        self.ended = 0
        if path is None:
            self._server = socket.create_server(("127.0.0.1", 0))
        else:
            self._server = socket.socket(socket.AF_UNIX)
            self._server.bind(path)
            self._server.listen()
        self._connections: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, query: str = "") -> str:
        port = self._server.getsockname()[1]
        return f"postgresql://user:password@127.0.0.1:{port}/rings?sslmode=disable{query}"

    def close(self) -> None:
        self._server.close()
        for connection in self._connections:
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self._connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            self._log_in(connection)
            left = self.answers
            while kind := connection.recv(1):
                (length,) = struct.unpack("!I", connection.recv(4))
                body = connection.recv(length - 4) if length > 4 else b""
                if kind in b"QP":
                    self.statements.append(body)
                if kind in b"QS" and left > 0:
                    left -= 1
                    done = message(b"C", b"LISTEN\0") + message(b"Z", b"I")
                    parsed = message(b"1", b"") + message(b"2", b"") + message(b"n", b"")
                    connection.sendall((parsed if kind == b"S" else b"") + done)
        except OSError:
            pass
        self.ended += 1

    def _log_in(self, connection: socket.socket) -> None:
        while True:
            (length,) = struct.unpack("!I", connection.recv(4))
            body = connection.recv(length - 4)
            if struct.unpack("!I", body[:4])[0] not in (SSL_REQUEST, GSS_REQUEST):
                break
            connection.sendall(b"N")
        texts = [text.decode() for text in body[4:].split(b"\0")]
        self.settings.append(dict(zip(texts[::2], texts[1::2], strict=False)))
        parameters = b"client_encoding\0UTF8\0", b"server_version\x0016.0\0"
        connection.sendall(
            message(b"R", struct.pack("!I", 0))
            + b"".join(message(b"S", one) for one in parameters)
            + message(b"K", struct.pack("!II", 1, 2))
            + message(b"Z", b"I")
        )


@pytest.fixture
def server() -> Iterator[SilentServer]:
    made = SilentServer()
    yield made
    made.close()


def failure_of(run: Callable[[], object]) -> Exception:
    """The error that `run` raises. Fails if it does not end in time."""
    failures: list[Exception] = []

    def caught() -> None:
        try:
            run()
        except Exception as error:
            failures.append(error)

    threading.Thread(target=caught, daemon=True).start()
    wait_until(lambda: len(failures) > 0)
    return failures[0]


def test_a_statement_that_gets_no_answer_ends_at_the_timeout(server: SilentServer) -> None:
    ring = PostgresRing(url=server.url(), call_timeout_seconds=0.2)
    used = PostgresSingleUse(url=server.url(), call_timeout_seconds=0.2)
    end = datetime.now(timezone.utc) + timedelta(seconds=60)
    for error in (failure_of(ring.read), failure_of(lambda: used.claim("id", end))):
        assert isinstance(error, (RingStoreError, SingleUseStoreError))
        assert (error.kind, error.code) == ("unavailable", "ETIMEDOUT")
        assert "no answer in time" in str(error)
    # The connections were closed as well.
    wait_until(lambda: server.ended == 2)


def test_the_statements_of_a_connection_for_notifications_have_the_same_timeout(
    server: SilentServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sealring.stores.postgres._LOOK_SECONDS", 0.02)
    monkeypatch.setattr("sealring.stores.postgres._HEARTBEAT_SECONDS", 0.02)
    connect = postgres_connector("test", server.url(), 0.2)
    heard: list[int] = []
    push = _PostgresPush(connect, "channel", lambda: heard.append(1))
    assert isinstance(failure_of(push.listen), TimeoutError)
    assert (server.statements[-1][:6], heard) == (b"LISTEN", [])
    server.answers = 1
    assert isinstance(failure_of(push.listen), TimeoutError)
    # The heartbeat got no answer.
    assert heard == [1]
    wait_until(lambda: server.ended == 2)


def test_a_url_without_a_host_connects_to_a_socket(tmp_path: Path) -> None:
    server = SilentServer(str(tmp_path / ".s.PGSQL.5432"))
    url = f"postgresql://user:password@/rings?host={tmp_path}"
    error = failure_of(PostgresRing(url=url, call_timeout_seconds=0.2).read)
    server.close()
    assert isinstance(error, RingStoreError)
    assert error.code == "ETIMEDOUT"
    assert [one["database"] for one in server.settings] == ["rings"]


def test_options_in_a_url_are_kept_along_with_the_statement_timeout(server: SilentServer) -> None:
    given = "&options=-c%20search_path%3Dsealring%20-c%20statement_timeout%3D0"
    for query in (given, ""):
        with pytest.raises(RingStoreError):
            PostgresRing(url=server.url(query), call_timeout_seconds=0.2).read()
    assert [one["options"] for one in server.settings] == [
        "-c search_path=sealring -c statement_timeout=0 -c statement_timeout=200",
        "-c statement_timeout=200",
    ]
