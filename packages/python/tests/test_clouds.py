"""Key wrappers and ring stores of other clouds, with clients whose answers no emulator gives."""

import base64
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace
from typing import Any

import boto3
import google_crc32c
import pytest
from botocore.config import Config
from test_wrappers import CONTEXT, all_that_an_error_holds, spellings

from sealring import (
    AzureBlobRing,
    AzureKeyVaultKeyWrapper,
    DynamodbRing,
    DynamodbSingleUse,
    GcpKmsKeyWrapper,
    GcsRing,
    KeyWrapperError,
    PostgresRing,
    RingConflictError,
    RingStoreError,
    SingleUseStoreError,
    VaultTransitKeyWrapper,
    WrappedKey,
    base64url,
)

KEY = "projects/shop/locations/europe-west1/keyRings/mcp/cryptoKeys/sealring"
VERSION = f"{KEY}/cryptoKeyVersions/1"
VAULT = "https://payments.vault.azure.net"
AZURE_KEY = f"{VAULT}/keys/ring-wrapping"
AZURE_VERSION = f"{AZURE_KEY}/{'a' * 32}"
CANARY = bytes(range(100, 132))


class Raising:
    """A client of a vendor whose error contains secrets."""

    def __init__(self, **more: object) -> None:
        self.more = more

    def __getattr__(self, name: str) -> Callable[..., object]:
        if name.startswith("_"):
            raise AttributeError(name)

        def call(*_: object, **asked: object) -> object:
            error = RuntimeError(CANARY, repr(CANARY), asked)
            for key, value in self.more.items():
                setattr(error, key, value)
            raise error

        return call


class GcpKms:
    """Answers like Cloud KMS; `change` spoils an answer."""

    def __init__(self) -> None:
        self.kept: dict[bytes, bytes] = {}
        self.change: dict[str, object] = {}
        self.calls = 0

    def encrypt(self, *, request: Any, timeout: float, retry: None) -> object:
        self.calls += 1
        made = os.urandom(80)
        self.kept[made] = request["plaintext"]
        answer = {
            "name": VERSION,
            "ciphertext": made,
            "ciphertext_crc32c": google_crc32c.value(made),
            "verified_plaintext_crc32c": True,
            "verified_additional_authenticated_data_crc32c": True,
        }
        return SimpleNamespace(**{**answer, **self.change})

    def decrypt(self, *, request: Any, timeout: float, retry: None) -> object:
        self.calls += 1
        plaintext = self.kept[request["ciphertext"]]
        answer = {"plaintext": plaintext, "plaintext_crc32c": google_crc32c.value(plaintext)}
        return SimpleNamespace(**{**answer, **self.change})


class Vault:
    """The adapter of a client of hvac that answers with one status and body."""

    def __init__(self, status: int, body: object) -> None:
        self.status, self.body = status, body
        self.calls = 0
        self.adapter = self

    def request(self, method: str, url: str, **more: object) -> object:
        self.calls += 1
        content = json.dumps(self.body).encode()
        return SimpleNamespace(status_code=self.status, content=content, headers={})


class KeyVault:
    """A client of azure-keyvault-keys that answers with one status and body."""

    def __init__(self, status: int, body: object) -> None:
        self.status, self.body = status, body
        self.calls = 0

    def send_request(self, request: object, **more: object) -> object:
        self.calls += 1
        return SimpleNamespace(status_code=self.status, headers={}, json=lambda: self.body)


def gcp(client: object) -> GcpKmsKeyWrapper:
    return GcpKmsKeyWrapper(key_id=KEY, client=client)  # type: ignore[arg-type]


def vault(client: object) -> VaultTransitKeyWrapper:
    return VaultTransitKeyWrapper(key_id="payments", client=client)  # type: ignore[arg-type]


def azure(client: object, **more: Any) -> AzureKeyVaultKeyWrapper:
    return AzureKeyVaultKeyWrapper(key_id=AZURE_KEY, clients=lambda _: client, **more)  # type: ignore[arg-type,return-value]


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(KeyWrapperError) as caught:
        call()
    return caught.value.kind


def test_a_wrap_of_cloud_kms_is_bound_to_the_version_that_it_names() -> None:
    client, data_key = GcpKms(), os.urandom(32)
    wrapper = gcp(client)
    wrapped = wrapper.wrap(data_key, CONTEXT)
    assert wrapped.key_id == VERSION
    assert wrapper.unwrap(wrapped, CONTEXT) == data_key
    moved = WrappedKey("gcp-kms", f"{KEY}/cryptoKeyVersions/2", wrapped.wrapped)
    assert refusal(lambda: wrapper.unwrap(moved, CONTEXT)) == "corrupt"


@pytest.mark.parametrize(
    "change",
    [
        {"ciphertext_crc32c": 1},
        {"ciphertext_crc32c": None},
        {"verified_plaintext_crc32c": False},
        {"verified_additional_authenticated_data_crc32c": False},
        {"name": f"{KEY}2/cryptoKeyVersions/1"},
    ],
)
def test_an_answer_of_cloud_kms_that_fails_a_check_is_corrupt(change: dict[str, object]) -> None:
    client = GcpKms()
    client.change = change
    assert refusal(lambda: gcp(client).wrap(os.urandom(32), CONTEXT)) == "corrupt"


def test_an_answer_of_cloud_kms_with_a_wrong_checksum_is_corrupt() -> None:
    client = GcpKms()
    wrapper = gcp(client)
    wrapped = wrapper.wrap(os.urandom(32), CONTEXT)
    for change in ({"plaintext_crc32c": 1}, {"plaintext_crc32c": None}, {"plaintext": bytes(32)}):
        client.change = change
        assert refusal(lambda: wrapper.unwrap(wrapped, CONTEXT)) == "corrupt"


def test_a_wrapped_key_cannot_choose_which_kms_key_is_called() -> None:
    clients = GcpKms(), Vault(200, {}), KeyVault(200, {})
    wrappers = gcp(clients[0]), vault(clients[1]), azure(clients[2])
    for wrapper, key_id in (
        (wrappers[0], VERSION.replace("shop", "other")),
        (wrappers[0], KEY),
        (wrappers[1], "transit/keys/other:v1"),
        (wrappers[1], "transit/keys/payments"),
        (wrappers[2], AZURE_VERSION.replace("payments", "other")),
        (wrappers[2], AZURE_VERSION.replace("ring-wrapping", "other")),
        (wrappers[2], AZURE_KEY),
    ):
        wrapped = WrappedKey(wrapper.provider, key_id, os.urandom(100))
        assert not wrapper.owns(wrapped)
        assert refusal(lambda w=wrapper, k=wrapped: w.unwrap(k, CONTEXT)) == "corrupt"  # type: ignore[misc]
    assert [client.calls for client in clients] == [0, 0, 0]


@pytest.mark.parametrize(
    ("status", "errors", "kind"),
    [
        (400, ["cipher: message authentication failed"], "corrupt"),
        (400, ["invalid ciphertext: no prefix"], "corrupt"),
        (400, ["invalid ciphertext: version is too new"], "unavailable"),
        (400, ["something else: cipher: message authentication failed"], "unavailable"),
        (
            400,
            ["ciphertext or signature version is disallowed by policy (too old)"],
            "disabled",
        ),
        (400, ["encryption key not found"], "not-found"),
        (307, [], "unavailable"),
        (403, ["permission denied"], "denied"),
        (429, [], "throttled"),
        (503, ["Vault is sealed"], "unavailable"),
    ],
)
def test_refusals_by_vault_are_classified(status: int, errors: list[str], kind: str) -> None:
    wrapper = vault(Vault(status, {"errors": errors}))
    body = base64.b64encode(os.urandom(60)).decode()
    wrapped = WrappedKey("vault-transit", "transit/keys/payments:v1", f"vault:v1:{body}".encode())
    assert refusal(lambda: wrapper.unwrap(wrapped, CONTEXT)) == kind


def test_a_vault_that_ignores_the_context_is_not_used() -> None:
    warnings = ["Endpoint ignored these unrecognized parameters: [associated_data]"]
    wrapper = vault(Vault(200, {"data": {"ciphertext": "x"}, "warnings": warnings}))
    assert refusal(lambda: wrapper.wrap(os.urandom(32), CONTEXT)) == "denied"


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (403, {"code": "Forbidden", "innererror": {"code": "KeyDisabled"}}, "disabled"),
        (403, {"code": "Forbidden", "innererror": {"code": "ForbiddenByRbac"}}, "denied"),
        (404, {"code": "KeyNotFound"}, "not-found"),
        (400, {"code": "BadParameter"}, "corrupt"),
        (409, {"code": "Conflict"}, "disabled"),
        (429, {"code": "Throttled"}, "throttled"),
        (500, None, "unavailable"),
    ],
)
def test_refusals_by_key_vault_are_classified(status: int, error: object, kind: str) -> None:
    wrapper = azure(KeyVault(status, {"error": error}))
    wrapped = WrappedKey("azure-key-vault", AZURE_VERSION, os.urandom(256))
    assert refusal(lambda: wrapper.unwrap(wrapped, CONTEXT)) == kind


def test_an_answer_of_key_vault_by_another_version_is_corrupt() -> None:
    value = base64url.encode(os.urandom(64))
    wrapped = WrappedKey("azure-key-vault", AZURE_VERSION, os.urandom(256))
    for kid, kind in ((AZURE_VERSION, None), (f"{AZURE_KEY}/{'b' * 32}", "corrupt")):
        wrapper = azure(KeyVault(200, {"kid": kid, "value": value}))
        if kind is None:
            assert base64url.encode(bytes(wrapper.unwrap(wrapped, CONTEXT))) == value
        else:
            assert refusal(lambda w=wrapper: w.unwrap(wrapped, CONTEXT)) == kind  # type: ignore[misc]


def test_all_signing_keys_are_checked_before_the_first_request() -> None:
    client = KeyVault(403, {})
    ids = [AZURE_VERSION, AZURE_KEY]
    with pytest.raises(ValueError, match=r"sign_key_ids\[1\]"):
        AzureKeyVaultKeyWrapper.fetch_sign_public_keys(ids, clients=lambda _: client)  # type: ignore[return-value,arg-type]
    assert client.calls == 0


def test_no_error_contains_the_text_of_a_cloud_vendor() -> None:
    body = base64.b64encode(os.urandom(60)).decode()
    vault_wrap = WrappedKey(
        "vault-transit", "transit/keys/payments:v1", f"vault:v1:{body}".encode()
    )
    client = Raising()
    calls: list[Callable[[], object]] = [
        lambda: gcp(client).wrap(CANARY, CONTEXT),
        lambda: gcp(client).unwrap(WrappedKey("gcp-kms", VERSION, os.urandom(100)), CONTEXT),
        lambda: vault(SimpleNamespace(adapter=client)).unwrap(vault_wrap, CONTEXT),
        lambda: azure(client).unwrap(
            WrappedKey("azure-key-vault", AZURE_VERSION, os.urandom(256)), CONTEXT
        ),
        lambda: DynamodbRing(table="rings", client=client).read(),  # type: ignore[arg-type]
        lambda: DynamodbSingleUse(table="used", client=client).claim("id", soon()),  # type: ignore[arg-type]
        lambda: AzureBlobRing(client=client).read(),  # type: ignore[arg-type]
        lambda: PostgresRing(pool=client).read(),  # type: ignore[arg-type]
    ]
    for call in calls[1:]:
        with pytest.raises((KeyWrapperError, RingStoreError, SingleUseStoreError)) as caught:
            call()
        assert caught.value.kind == "unavailable"
        told = all_that_an_error_holds(caught.value)
        assert not any(spelling in told for spelling in spellings(CANARY))
    with pytest.raises(KeyWrapperError) as wrapping:
        calls[0]()
    assert wrapping.value.__context__ is None


def soon() -> datetime:
    return datetime.now(timezone.utc) + timedelta(seconds=60)


class Dynamodb:
    """The vendor's client, at a server whose answers the test sets."""

    status = 200
    body = b""

    def __init__(self) -> None:
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(stub.status)
                self.send_header("content-length", str(len(stub.body)))
                self.end_headers()
                self.wfile.write(stub.body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,)).start()
        self.client = boto3.client(
            "dynamodb",
            endpoint_url=f"http://127.0.0.1:{self.server.server_port}",
            region_name="eu-west-1",
            aws_access_key_id="a",
            aws_secret_access_key="b",
            config=Config(retries={"total_max_attempts": 1}),
        )
        self.ring = DynamodbRing(table="rings", client=self.client)
        self.used = DynamodbSingleUse(table="rings", client=self.client)

    def close(self) -> None:
        self.client.close()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def dynamodb() -> Iterator[Dynamodb]:
    made = Dynamodb()
    yield made
    made.close()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"null",
        b"<html>welcome</html>",
        b'{"Item":{"document":{"S":"x"},"revision":{"S":"y"}}}',
    ],
)
def test_a_200_by_a_proxy_is_unavailable_for_reads_writes_and_claims(
    dynamodb: Dynamodb, body: bytes
) -> None:
    dynamodb.body = body
    for call in (dynamodb.ring.read, lambda: dynamodb.ring.write("{}", expected=None)):
        with pytest.raises(RingStoreError) as caught:
            call()
        assert caught.value.kind == "unavailable"
    with pytest.raises(SingleUseStoreError) as refused:
        dynamodb.used.claim("id", soon())
    assert refused.value.kind == "unavailable"


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "ConditionalCheckFailedException", None),
        (400, "TransactionConflictException", "unavailable"),
        (400, "ReplicatedWriteConflictException", "unavailable"),
        (400, "ResourceNotFoundException", "unavailable"),
        (400, "AccessDeniedException", "denied"),
        (400, "Novelty", "unavailable"),
        (403, "Novelty", "denied"),
        (500, "InternalServerError", "unavailable"),
    ],
)
def test_a_claim_is_false_only_for_an_item_that_exists(
    dynamodb: Dynamodb, status: int, code: str, kind: str | None
) -> None:
    dynamodb.status = status
    dynamodb.body = json.dumps({"__type": f"com.amazonaws.dynamodb#{code}"}).encode()
    if kind is None:
        assert dynamodb.used.claim("id", soon()) is False
        return
    with pytest.raises(SingleUseStoreError) as caught:
        dynamodb.used.claim("id", soon())
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    ("message", "kind", "detail"),
    [
        ("Signature expired: 20261121T030000Z is now earlier than", "unavailable", "clock"),
        ("Signature not yet current: 20261121T031500Z is still", "unavailable", "clock"),
        ("The request signature we calculated does not match", "denied", "credentials"),
    ],
)
def test_a_signature_that_dynamodb_refuses_because_of_a_wrong_clock_is_unavailable(
    dynamodb: Dynamodb, message: str, kind: str, detail: str
) -> None:
    dynamodb.status = 400
    error = {"__type": "com.amazon.coral.service#InvalidSignatureException", "message": message}
    dynamodb.body = json.dumps(error).encode()
    for call in (dynamodb.ring.read, lambda: dynamodb.used.claim("id", soon())):
        with pytest.raises((RingStoreError, SingleUseStoreError)) as caught:
            call()
        assert caught.value.kind == kind
        assert detail in str(caught.value)
        assert message not in str(caught.value)


def test_a_claim_after_the_end_and_the_margin_makes_no_call() -> None:
    used = DynamodbSingleUse(table="used", client=Raising(), clock_skew_seconds=0)  # type: ignore[arg-type]
    assert used.claim("id", datetime.now(timezone.utc) - timedelta(seconds=1)) is False


def test_a_lost_race_is_a_conflict_in_every_store() -> None:
    response = {"Error": {"Code": "ConditionalCheckFailedException"}}
    stores = [
        DynamodbRing(table="rings", client=Raising(response=response)),  # type: ignore[arg-type]
        AzureBlobRing(client=Raising(error_code="ConditionNotMet")),  # type: ignore[arg-type]
        PostgresRing(pool=Raising(sqlstate="40001")),  # type: ignore[arg-type]
    ]
    for store in stores:
        with pytest.raises(RingConflictError):
            store.write("{}", expected=None)


@pytest.mark.parametrize(
    ("make", "options", "error"),
    [
        (GcpKmsKeyWrapper, {"key_id": VERSION}, ValueError),
        (GcpKmsKeyWrapper, {"key_id": KEY, "also_unwrap": KEY}, TypeError),
        (GcpKmsKeyWrapper, {"key_id": KEY, "client": object()}, TypeError),
        (
            VaultTransitKeyWrapper,
            {"key_id": "a/b", "address": "https://v", "token": "t"},
            ValueError,
        ),
        (VaultTransitKeyWrapper, {"key_id": "a", "address": "http://v", "token": "t"}, ValueError),
        (VaultTransitKeyWrapper, {"key_id": "a", "address": "https://v"}, TypeError),
        (
            VaultTransitKeyWrapper,
            {"key_id": "a", "address": "https://v", "token": "a b"},
            ValueError,
        ),
        (AzureKeyVaultKeyWrapper, {"key_id": AZURE_KEY}, TypeError),
        (AzureKeyVaultKeyWrapper, {"key_id": "https://v/secrets/x", "clients": print}, ValueError),
        (
            AzureKeyVaultKeyWrapper,
            {"key_id": AZURE_KEY, "clients": print, "sign_key_id": AZURE_VERSION},
            TypeError,
        ),
        (
            AzureKeyVaultKeyWrapper,
            {"key_id": AZURE_KEY, "clients": print, "sign_public_keys": [{"crv": "P-384"}]},
            ValueError,
        ),
        (PostgresRing, {}, TypeError),
        (PostgresRing, {"url": "mysql://host"}, ValueError),
        (PostgresRing, {"url": "postgresql://host", "table": 'a"b'}, ValueError),
        (DynamodbRing, {"table": "a b"}, ValueError),
        (DynamodbSingleUse, {"table": "a b"}, ValueError),
        (DynamodbSingleUse, {"table": "used", "client": object()}, TypeError),
        (DynamodbSingleUse, {"table": "used", "clock_skew_seconds": 86_401}, ValueError),
        (GcsRing, {"bucket": "A", "object": "o"}, ValueError),
        (AzureBlobRing, {"container": "http://account/c", "blob": "b"}, ValueError),
        (AzureBlobRing, {"container": "https://account/c"}, TypeError),
    ],
)
def test_wrong_options_of_cloud_adapters_are_refused(
    make: Callable[..., object], options: dict[str, object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        make(**options)


def test_importing_sealring_loads_no_cloud_sdk() -> None:
    program = (
        "import sys, sealring;"
        "names = {name.partition('.')[0] for name in sys.modules};"
        "print(sorted(names & {'azure', 'boto3', 'botocore', 'google', 'google_crc32c', 'grpc',"
        " 'hvac', 'mcp', 'psycopg', 'redis', 'requests'}))"
    )
    # Without the files that packages leave for the start of every interpreter.
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stdout == "[]\n"
