"""Refusals by the services that provide credentials of AWS: they are not refusals by KMS, S3 or
DynamoDB, which were not called."""

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.credentials import SSOProvider
from botocore.exceptions import ClientError
from ring_maker import RING
from test_wrappers import ARN, CONTEXT, REGION

from sealring import (
    AwsKmsKeyWrapper,
    DynamodbRing,
    DynamodbSingleUse,
    KeyWrapperError,
    RingStoreError,
    S3Ring,
    SingleUseStoreError,
    WrappedKey,
)

START_URL = "https://shop.awsapps.com/start"
REQUEST_ID = "12345678-1234-1234-1234-123456789012"


class Refusing:
    """A server that refuses every request, as AWS STS and SSO do, and no other service may get a
    request."""

    def __init__(self) -> None:
        stub = self
        self.paths: list[str] = []
        xml = (
            "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code>"
            f"<Message>secret</Message></Error><RequestId>{REQUEST_ID}</RequestId></ErrorResponse>"
        )

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                stub.paths.append("STS" if "AssumeRole" in body else self.path)
                self.refuse("text/xml", xml)

            def do_GET(self) -> None:
                stub.paths.append("SSO" if "role_name" in self.path else self.path)
                self.refuse("application/json", json.dumps({"message": "secret"}))

            def refuse(self, kind: str, body: str) -> None:
                self.send_response(403)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.send_header("x-amzn-errortype", "ForbiddenException")
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,)).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def refusing() -> Iterator[Refusing]:
    made = Refusing()
    yield made
    made.close()


def set_up_sts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "token").write_text("token")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(folder / "token"))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::111122223333:role/payments")


def set_up_sso(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "config").write_text(
        f"[default]\nsso_start_url = {START_URL}\nsso_region = {REGION}\n"
        "sso_account_id = 111122223333\nsso_role_name = payments\n"
    )
    # botocore reads HOME when it is imported.
    monkeypatch.setattr(SSOProvider, "_SSO_TOKEN_CACHE_DIR", str(folder))
    end = datetime.now(timezone.utc) + timedelta(hours=8)
    token = {"accessToken": "token", "expiresAt": end.strftime("%Y-%m-%dT%H:%M:%SZ")}
    name = hashlib.sha1(START_URL.encode(), usedforsecurity=False).hexdigest()
    (folder / f"{name}.json").write_text(json.dumps(token))


def calls_with(client_of: Callable[[str], Any]) -> list[Callable[[Any], object]]:
    """A call to each adapter, as a function of `on_service_date`."""
    kms = AwsKmsKeyWrapper(key_id=ARN, client=client_of("kms"))
    wrapped = WrappedKey("aws-kms", ARN, b"blob")
    s3 = S3Ring(bucket="rings", key="payments.ring", client=client_of("s3"))
    dynamodb = DynamodbRing(table="rings", client=client_of("dynamodb"))
    used = DynamodbSingleUse(table="used", client=client_of("dynamodb"))
    soon = datetime.now(timezone.utc) + timedelta(seconds=60)
    return [
        lambda date: kms.unwrap(wrapped, CONTEXT, on_service_date=date),
        lambda date: kms.wrap(bytes(range(32)), CONTEXT, on_service_date=date),
        lambda date: kms.generate(CONTEXT, on_service_date=date),
        lambda date: s3.read(on_service_date=date),
        lambda date: s3.write("{}", expected=None, on_service_date=date),
        lambda date: dynamodb.read(on_service_date=date),
        lambda date: dynamodb.write("{}", expected=None, on_service_date=date),
        lambda date: used.claim("id", soon),
    ]


def failure_of(call: Callable[[Any], object]) -> tuple[str, str, str | None]:
    dates: list[float] = []
    with pytest.raises((KeyWrapperError, RingStoreError, SingleUseStoreError)) as caught:
        call(dates.append)
    error = caught.value
    # The date, the status and the id of the request would be those of another service.
    assert dates == []
    assert getattr(error, "status", None) is None
    assert getattr(error, "request_id", None) is None
    assert "secret" not in str(error)
    return error.kind, str(error), getattr(error, "code", None)


@pytest.mark.parametrize(("set_up", "service"), [(set_up_sts, "STS"), (set_up_sso, "SSO")])
def test_a_refusal_by_the_service_that_provides_credentials_is_unavailable(
    refusing: Refusing,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    set_up: Callable[[Path, pytest.MonkeyPatch], None],
    service: str,
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_ENDPOINT_URL", refusing.url)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    set_up(tmp_path, monkeypatch)
    config = Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"})
    session = boto3.Session(region_name=REGION)
    clients: list[Any] = []

    def client_of(name: str) -> Any:
        clients.append(session.client(name, config=config))  # type: ignore[call-overload]
        return clients[-1]

    calls = calls_with(client_of)
    for call in calls:
        kind, text, code = failure_of(call)
        assert kind == "unavailable"
        assert "the credentials are missing, wrong or expired" in text
        assert code == "CredentialRetrievalError"
    assert refusing.paths == [service] * len(calls)
    for client in clients:
        client.close()


class Raising:
    """A client whose every call raises the error that another service answered with."""

    def __init__(self, operation: str) -> None:
        self.operation = operation

    def __getattr__(self, name: str) -> Callable[..., object]:
        def call(**_: object) -> object:
            answer: Any = {
                "Error": {"Code": "AccessDeniedException", "Message": "secret"},
                "ResponseMetadata": {
                    "HTTPStatusCode": 403,
                    "RequestId": REQUEST_ID,
                    "HTTPHeaders": {"date": "Sat, 21 Nov 2026 03:00:00 GMT"},
                },
            }
            raise ClientError(answer, self.operation)

        return call


@pytest.mark.parametrize(
    "operation",
    [
        "AssumeRole",
        "AssumeRoleWithWebIdentity",
        "GetRoleCredentials",
        "CreateToken",
        "GetSecretValue",
    ],
)
def test_only_the_answers_of_its_own_service_count_as_refusals(operation: str) -> None:
    for call in calls_with(lambda _: Raising(operation)):
        assert failure_of(call)[0] == "unavailable"


@pytest.mark.parametrize(
    ("make", "operation"),
    [
        (lambda client: S3Ring(bucket="rings", key=RING, client=client), "CreateSession"),
        (lambda client: DynamodbRing(table="rings", client=client), "DescribeEndpoints"),
    ],
)
def test_the_first_call_of_a_service_to_itself_can_be_refused(
    make: Callable[[Any], S3Ring | DynamodbRing], operation: str
) -> None:
    with pytest.raises(RingStoreError) as caught:
        make(Raising(operation)).read()
    assert caught.value.kind == "denied"
