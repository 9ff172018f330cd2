"""The failures that a start waits for, and those that end it."""

import os
import socket
import ssl
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from ring_maker import Fleet, Kms

from sealring import (
    AzureBlobRing,
    DynamodbRing,
    FileRing,
    GcsRing,
    KeyWrapperError,
    LocalKeyWrapper,
    PostgresRing,
    RedisRing,
    RingPolicy,
    RingStoreError,
    S3Ring,
)
from sealring.failures import connection_failure, unreachable
from sealring.ring.events import hashed_key_id
from sealring.stores.postgres import postgres_failure

LONG = RingPolicy(start_timeout_seconds=300)


def start_of(fleet: Fleet, **more: object) -> tuple[Exception, float]:
    """The error of a start, and its duration in seconds."""
    codec = fleet.reader(policy=LONG, **more)
    began = fleet.clock.wall
    codec._calls.closing.wait = lambda seconds: fleet.clock.advance(max(seconds or 0, 0.5))  # type: ignore
    with pytest.raises((RingStoreError, KeyWrapperError)) as caught:
        codec.start()
    return caught.value, (fleet.clock.wall - began) / 1_000


@pytest.mark.parametrize(
    "code", ["NoSuchBucket", "3D000", "HOSTNAME_MISMATCH", "ENOENT", "CERT_UNTRUSTED"]
)
def test_a_failure_that_needs_a_change_fails_at_once(fleet: Fleet, code: str) -> None:
    fleet.store.failure = RingStoreError("unavailable", "the test says so", code=code)
    error, seconds = start_of(fleet)
    assert isinstance(error, RingStoreError)
    assert (error.code, seconds, fleet.store.reads) == (code, 0, 1)


@pytest.mark.parametrize("code", ["ENOTFOUND", "NoCredentialsError", "DefaultCredentialsError"])
def test_a_machine_that_is_still_starting_has_ten_seconds(fleet: Fleet, code: str) -> None:
    fleet.kms.failure = KeyWrapperError("unavailable", "local", code=code)
    error, seconds = start_of(fleet)
    assert isinstance(error, KeyWrapperError)
    assert 10 <= seconds < 20


@pytest.mark.parametrize("code", [None, "ECONNREFUSED", "57P03"])
def test_a_start_waits_out_a_temporary_failure(fleet: Fleet, code: str | None) -> None:
    fleet.store.failure = RingStoreError("unavailable", "the test says so", code=code)
    error, seconds = start_of(fleet)
    assert isinstance(error, RingStoreError)
    assert seconds >= 300


def test_the_error_of_a_start_names_the_location_of_the_store(fleet: Fleet) -> None:
    fleet.store.failure = RingStoreError("denied", "the test says so", code="28P01")
    fleet.store.location = "s3://payments-sealring/payments.ring"  # type: ignore[attr-defined]
    error, _ = start_of(fleet)
    assert isinstance(error, RingStoreError)
    assert error.location == "s3://payments-sealring/payments.ring"
    assert error.code == "28P01"
    assert str(error) == (
        "ring store s3://payments-sealring/payments.ring denied: the test says so"
    )


def test_the_error_of_a_start_has_the_last_answer_of_each_key_wrapper_and_its_attempts(
    fleet: Fleet,
) -> None:
    other = Kms(fleet.wrapper)
    other.failure = KeyWrapperError("throttled", "local", code="ThrottlingException", status=400)
    fleet.kms.failure = KeyWrapperError("unavailable", "local", code="ECONNREFUSED")
    error, _ = start_of(fleet, key_wrapper=[fleet.kms, other])
    assert isinstance(error, KeyWrapperError)
    assert error.kind == "throttled"
    assert [cause.code for cause in error.causes] == ["ECONNREFUSED", "ThrottlingException"]
    assert [cause.attempts for cause in error.causes] == [fleet.kms.unwraps, other.unwraps]
    assert fleet.kms.unwraps > 4
    assert str(error) == (
        f"local unwrap: unavailable (ECONNREFUSED, {fleet.kms.unwraps} attempts); "
        f"local unwrap: throttled (ThrottlingException, HTTP 400, {other.unwraps} attempts)"
    )


def test_a_start_waits_while_one_of_several_key_wrappers_may_answer_later(fleet: Fleet) -> None:
    other = Kms(fleet.wrapper)
    other.failure = KeyWrapperError("unavailable", "local", code="HOSTNAME_MISMATCH")
    fleet.kms.failure = KeyWrapperError("unavailable", "local")
    _, seconds = start_of(fleet, key_wrapper=[fleet.kms, other])
    assert seconds >= 300


SECRET = "hunter2"


class Client:
    """A client that is never called."""

    url = f"https://payments.blob.core.windows.net/ring/payments.ring?sig={SECRET}"

    def __getattr__(self, name: str) -> object:
        return lambda *_, **__: None


@pytest.mark.parametrize(
    ("ring", "location"),
    [
        (lambda: FileRing("/var/lib/sealring/payments.ring"), "/var/lib/sealring/payments.ring"),
        (
            lambda: S3Ring(bucket="payments-sealring", key="payments.ring", client=Client()),
            "s3://payments-sealring/payments.ring",
        ),
        (
            lambda: DynamodbRing(table="sealring", name="payments", client=Client()),
            "dynamodb table sealring, item ring#payments",
        ),
        (
            lambda: GcsRing(bucket="payments-sealring", object="payments.ring", client=Client()),
            "gs://payments-sealring/payments.ring",
        ),
        (
            lambda: AzureBlobRing(client=Client()),
            "https://payments.blob.core.windows.net/ring/payments.ring",
        ),
        (
            lambda: RedisRing(url=f"rediss://user:{SECRET}@redis.internal:6380"),
            "rediss://redis.internal:6380, key sealring:ring",
        ),
        (
            lambda: PostgresRing(url=f"postgres://user:{SECRET}@db.internal/app", name="payments"),
            'postgres table "sealring_ring", row payments',
        ),
    ],
)
def test_the_location_of_a_store_names_its_place_and_contains_no_secret(
    ring: object, location: str
) -> None:
    found = ring().location  # type: ignore[operator]
    assert found == location
    assert SECRET not in found


def chained(error: Exception) -> Exception:
    """An error as an SDK raises it."""
    try:
        try:
            raise error
        except Exception:
            raise ValueError("secret of the vendor") from None
    except ValueError as outer:
        return outer


def unverified(code: int) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError()
    error.verify_code = code
    return error


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConnectionRefusedError(111, "refused"), "ECONNREFUSED"),
        (ConnectionResetError(104, "reset"), "ECONNRESET"),
        (TimeoutError("timed out"), "ETIMEDOUT"),
        (socket.gaierror(socket.EAI_NONAME, "unknown"), "ENOTFOUND"),
        (socket.gaierror(socket.EAI_AGAIN, "later"), "EAI_AGAIN"),
        (unverified(18), "DEPTH_ZERO_SELF_SIGNED_CERT"),
        (unverified(62), "HOSTNAME_MISMATCH"),
        (unverified(10), "CERT_HAS_EXPIRED"),
        (ValueError("nothing"), None),
    ],
)
def test_a_failed_connection_is_named_by_a_code_of_the_list(
    error: Exception, code: str | None
) -> None:
    found = connection_failure(chained(error))
    assert (None if found is None else found.code) == code
    assert "secret" not in str(found)


@pytest.mark.parametrize("code", [20, 26, 27, 85])
def test_a_certificate_that_is_not_trusted_ends_a_start_at_once(fleet: Fleet, code: int) -> None:
    fleet.store.failure = unreachable(unverified(code), "the server")
    error, seconds = start_of(fleet)
    assert isinstance(error, RingStoreError)
    assert (seconds, fleet.store.reads) == (0, 1)


def test_the_warning_of_a_slow_start_names_two_lineages_by_hashed_ids(
    fleet: Fleet, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    notices: list[Callable[[], None]] = []

    class Timer:
        def __init__(self, seconds: float, notice: Callable[[], None]) -> None:
            notices.append(notice)

        def start(self) -> None:
            pass

        cancel = start

    monkeypatch.setattr("sealring.ring.start.threading", SimpleNamespace(Timer=Timer))
    stranger = fleet.key(-200, by=())
    fleet.publish([fleet.first, stranger])
    codec = fleet.reader()

    def pause(_: float) -> None:
        notices[0]()
        fleet.publish([fleet.first])

    codec._calls.pause = pause  # type: ignore[method-assign]
    with codec:
        (warning,) = (text for text in caplog.messages if text.startswith("waiting"))
    assert "two lineages of keys" in warning
    for key in (fleet.first, stranger):
        assert key.id not in warning
        assert hashed_key_id(key.id) in warning


def test_a_server_without_tls_is_recognized() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        far, _ = server.accept()
        far.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        with near, far, pytest.raises(ssl.SSLError) as caught:
            ssl.create_default_context().wrap_socket(near, server_hostname="localhost")
    found = connection_failure(caught.value)
    assert found is not None
    assert found.code == "ERR_SSL_WRONG_VERSION_NUMBER"


@pytest.mark.parametrize(
    ("text", "kind", "code"),
    [
        ('FATAL:  password authentication failed for user "app"', "denied", "28P01"),
        ('FATAL:  no pg_hba.conf entry for host "10.0.0.1", user "app"', "denied", "28000"),
        ('FATAL:  role "app" does not exist', "denied", "28000"),
        ('FATAL:  database "app" does not exist', "unavailable", "3D000"),
        ("connection to server failed: Connection refused", "unavailable", "ECONNREFUSED"),
        (
            "server does not support SSL, but SSL was required",
            "unavailable",
            "ERR_POSTGRES_NO_TLS",
        ),
        ("FATAL:  sorry, too many clients already", "unavailable", "53300"),
        ("anything else", "unavailable", None),
    ],
)
def test_a_refused_connection_to_postgresql_has_the_code_that_libpq_does_not_give(
    text: str, kind: str, code: str | None
) -> None:
    error = postgres_failure(Exception(text))
    assert isinstance(error, RingStoreError)
    assert (error.kind, error.code) == (kind, code)
    assert text not in str(error)


def test_only_the_error_of_a_start_contains_the_location(fleet: Fleet) -> None:
    fleet.store.location = "/ring"  # type: ignore[attr-defined]
    with fleet.reader(key_wrapper=[fleet.kms, LocalKeyWrapper(master_key=os.urandom(32))]) as codec:
        fleet.break_store()
        with pytest.raises(RingStoreError) as caught:
            codec.refresh()
    assert caught.value.location is None
