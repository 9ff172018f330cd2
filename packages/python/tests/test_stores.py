"""Ring stores with answers that live servers do not give. The answers of servers
are in test/python of the repository."""

import errno
import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import BytesIO
from pathlib import Path
from typing import ClassVar

import boto3
import pytest
from botocore.config import Config
from botocore.response import StreamingBody
from botocore.stub import Stubber
from redis import Redis as RealRedis
from redis import RedisCluster, Sentinel, exceptions

from sealring import FileRing, RedisRing, RedisSingleUse, RingStore, RingStoreError, S3Ring

MOST = 262_144
DATE = {"ResponseMetadata": {"HTTPHeaders": {"date": "Sat, 21 Nov 2026 03:00:00 GMT"}}}


def kind_of(ring: RingStore) -> str:
    with pytest.raises(RingStoreError) as caught:
        ring.read()
    assert caught.value.__cause__ is None
    return caught.value.kind


def test_a_file_is_read_whole_and_revisions_differ(tmp_path: Path) -> None:
    path = tmp_path / "r.ring"
    ring = FileRing(path)
    assert ring.read() is None
    path.write_bytes(b"x" * MOST)
    first = ring.read()
    assert first is not None
    assert first.document == "x" * MOST
    path.write_text("é")
    second = ring.read()
    assert second is not None
    assert second.document == "é"
    assert first.revision != second.revision


def link(path: Path) -> None:
    path.symlink_to("nowhere")


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda path: path.write_bytes(b"x" * (MOST + 1)), "too-large"),
        (lambda path: path.write_bytes(b""), "corrupt"),
        (lambda path: path.write_bytes(b"\xff"), "corrupt"),
        (lambda path: path.mkdir(), "corrupt"),
        (os.mkfifo, "corrupt"),
        (link, "unavailable"),
    ],
)
def test_a_file_that_is_not_a_ring_is_refused(
    tmp_path: Path, make: Callable[[Path], None], kind: str
) -> None:
    make(tmp_path / "r.ring")
    assert kind_of(FileRing(tmp_path / "r.ring")) == kind


def test_a_missing_directory_does_not_count_as_an_absent_ring(tmp_path: Path) -> None:
    assert kind_of(FileRing(tmp_path / "volume" / "r.ring")) == "unavailable"
    (tmp_path / "file").write_text("x")
    assert kind_of(FileRing(tmp_path / "file" / "r.ring")) == "unavailable"


@pytest.mark.parametrize(
    ("code", "kind"), [("EACCES", "denied"), ("EPERM", "denied"), ("EIO", "unavailable")]
)
def test_errors_of_the_file_system_are_classified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, kind: str
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(getattr(errno, code), "secret")

    monkeypatch.setattr(os, "open", refuse)
    assert kind_of(FileRing(tmp_path / "r.ring")) == kind


@pytest.mark.parametrize(("path", "error"), [(5, TypeError), ("", ValueError), ("a\0", ValueError)])
def test_wrong_paths_are_refused(path: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        FileRing(path)  # type: ignore[arg-type]


class S3:
    """The vendor's client with prepared answers."""

    def __init__(self) -> None:
        self.client = boto3.client(
            "s3", region_name="eu-west-1", aws_access_key_id="a", aws_secret_access_key="b"
        )
        self.stubber = Stubber(self.client)
        self.stubber.activate()
        self.ring = S3Ring(bucket="rings", key="payments.ring", client=self.client)

    def answers(self, data: bytes, **more: object) -> None:
        answer = {
            "Body": StreamingBody(BytesIO(data), None),
            "ContentLength": len(data),
            "ETag": '"e"',
            **DATE,
            **more,
        }
        asked = {"Bucket": "rings", "Key": "payments.ring", "ChecksumMode": "ENABLED"}
        self.stubber.add_response("get_object", answer, asked)

    def fails(self, code: str, status: int) -> None:
        self.stubber.add_client_error("get_object", code, "secret", status)


@pytest.fixture
def s3() -> Iterator[S3]:
    made = S3()
    yield made
    made.stubber.assert_no_pending_responses()
    made.client.close()


def test_an_object_is_read_whole_and_its_date_is_reported(s3: S3) -> None:
    dates: list[float] = []
    s3.answers(b"x" * MOST)
    first = s3.ring.read(on_service_date=dates.append)
    s3.answers(b"y", Metadata={"sealring-write": "1"})
    second = s3.ring.read(on_service_date=dates.append)
    assert first is not None
    assert second is not None
    assert first.document == "x" * MOST
    assert first.revision != second.revision
    assert dates == [1_795_230_000_000] * 2


@pytest.mark.parametrize(
    ("data", "more", "kind"),
    [
        (b"x" * (MOST + 1), {}, "too-large"),
        (b"x" * (MOST + 1), {"ContentLength": 5}, "too-large"),
        (b"", {}, "corrupt"),
        (b"\xff", {}, "corrupt"),
        (b"x", {"ContentLength": 2}, "unavailable"),
        (b"x", {"ETag": ""}, "unavailable"),
    ],
)
def test_an_object_that_is_not_a_ring_is_refused(
    s3: S3, data: bytes, more: dict[str, object], kind: str
) -> None:
    s3.answers(data, **more)
    assert kind_of(s3.ring) == kind


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("NoSuchKey", 500, "unavailable"),
        ("NoSuchBucket", 404, "unavailable"),
        ("404", 404, "unavailable"),
        ("AccessDenied", 403, "denied"),
        ("x", 403, "denied"),
        ("InvalidAccessKeyId", 403, "denied"),
        ("KMS.DisabledException", 400, "denied"),
        ("ExpiredToken", 400, "unavailable"),
        ("RequestTimeTooSkewed", 403, "unavailable"),
        ("SlowDown", 503, "unavailable"),
        ("x", 400, "unavailable"),
    ],
)
def test_failures_of_s3_are_classified(s3: S3, code: str, status: int, kind: str) -> None:
    s3.fails(code, status)
    assert kind_of(s3.ring) == kind


def test_only_an_answer_of_s3_itself_means_absence(s3: S3) -> None:
    s3.fails("NoSuchKey", 404)
    assert s3.ring.read() is None


class S3Server(BaseHTTPRequestHandler):
    """Answers every request with the body `x` and a checksum that does not match it."""

    sent: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "1")
        self.send_header("etag", '"e"')
        self.send_header("x-amz-checksum-crc32", "AAAAAA==")
        self.end_headers()
        self.wfile.write(b"x")

    def do_PUT(self) -> None:
        self.sent.append(self.headers["x-amz-checksum-crc32"])
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.send_header("etag", '"e"')
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("when", ["when_supported", "when_required"])
def test_a_checksum_is_sent_and_checked_by_every_version_of_boto3(when: str) -> None:
    server = HTTPServer(("127.0.0.1", 0), S3Server)
    threading.Thread(target=server.serve_forever, args=(0.01,)).start()
    # Versions before 1.36 behave as with `when_required`.
    config = Config(
        retries={"total_max_attempts": 1},
        s3={"addressing_style": "path"},
        request_checksum_calculation=when,
        response_checksum_validation=when,
    )
    client = boto3.client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{server.server_port}",
        region_name="eu-west-1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
        config=config,
    )
    try:
        ring = S3Ring(bucket="rings", key="payments.ring", client=client)
        S3Server.sent.clear()
        ring.write("x", expected=None)
        assert S3Server.sent == ["jNwWgw=="]
        assert kind_of(ring) == "unavailable"
    finally:
        client.close()
        server.shutdown()
        server.server_close()


class Redis:
    """Prepared answers: a failure is raised, and anything else is returned."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[object, ...]] = []

    def execute_command(self, *args: object) -> object:
        self.asked.append(args)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_the_read_script_is_sent_as_read_only_and_its_time_is_reported() -> None:
    client = Redis([b"held", b"5", b"r1", b"text"])
    dates: list[float] = []
    stored = RedisRing(client=client, key="k").read(on_service_date=dates.append)
    assert stored == ("text", "r1")
    assert dates == [5_000]
    assert [asked[0] for asked in client.asked] == ["EVAL_RO"]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ([b"replica"], "unavailable"),
        ([b"foreign"], "corrupt"),
        ([b"too-large"], "too-large"),
        ([b"held", b"5"], "unavailable"),
        ([b"held", b"5", b"r", b""], "corrupt"),
        ([b"held", b"5", b"r", b"\xff"], "corrupt"),
        ([], "unavailable"),
        (None, "unavailable"),
        (exceptions.ConnectionError("x"), "unavailable"),
        (exceptions.TimeoutError("x"), "unavailable"),
        (exceptions.ReadOnlyError("x"), "unavailable"),
        (exceptions.BusyLoadingError("x"), "unavailable"),
        (exceptions.ResponseError("CLUSTERDOWN x"), "unavailable"),
        (exceptions.AuthenticationError("x"), "denied"),
        (exceptions.NoPermissionError("x"), "denied"),
        (exceptions.ResponseError("NOPERM x"), "denied"),
        (exceptions.ResponseError("ACL failure in script: x"), "denied"),
        (ValueError("x"), "unavailable"),
    ],
)
def test_answers_of_redis_are_classified(answer: object, kind: str) -> None:
    assert kind_of(RedisRing(client=Redis(answer))) == kind


def test_only_an_answer_of_the_primary_means_absence() -> None:
    assert RedisRing(client=Redis([b"absent", b"5"])).read() is None
    assert RedisRing(client=Redis(["absent", "x"])).read(on_service_date=print) is None


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (RedisRing, TypeError),
        (lambda: RedisRing(url="redis://x", client=Redis()), TypeError),
        (lambda: RedisRing(url="http://secret@x"), ValueError),
        (lambda: RedisRing(client=object()), TypeError),  # type: ignore[arg-type]
        (lambda: RedisRing(url="redis://x", key=""), ValueError),
        (lambda: S3Ring(bucket="", key="k"), ValueError),
        (lambda: S3Ring(bucket="b", key=5), TypeError),  # type: ignore[arg-type]
        (lambda: S3Ring(bucket="b", key="k", expected_bucket_owner="x"), ValueError),
        (lambda: S3Ring(bucket="b", key="k", expected_bucket_owner=111122223333), TypeError),  # type: ignore[arg-type]
        (lambda: S3Ring(bucket="b", key="k", client=object()), TypeError),  # type: ignore[arg-type]
    ],
)
def test_wrong_options_of_stores_are_refused(
    make: Callable[[], object], error: type[Exception]
) -> None:
    with pytest.raises(error) as caught:
        make()
    assert "secret" not in str(caught.value)


class OwnCluster(RedisCluster):
    pass


@pytest.mark.parametrize("store", [RedisRing, RedisSingleUse])
def test_only_the_client_of_one_redis_server_is_accepted(store: Callable[..., object]) -> None:
    sentinel = Sentinel([("127.0.0.1", 1)])
    # A cluster connects when it is created.
    for client in (RedisCluster.__new__(RedisCluster), OwnCluster.__new__(OwnCluster), sentinel):
        with pytest.raises(TypeError, match="client must be the client of one server, not of a"):
            store(client=client)
    for client in (RealRedis(), sentinel.master_for("payments")):
        store(client=client)
