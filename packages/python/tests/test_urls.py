"""URLs with a password or a signature: no error of an option contains a part of them."""

from collections.abc import Callable
from typing import Any

import pytest
from azure.core.credentials import AzureSasCredential
from google.auth.credentials import AnonymousCredentials
from google.oauth2.credentials import Credentials as GoogleCredentials

from sealring import (
    AwsKmsKeyWrapper,
    AzureBlobRing,
    GcsRing,
    PostgresRing,
    PostgresSingleUse,
    RedisRing,
    RedisSingleUse,
    S3Ring,
    VaultTransitKeyWrapper,
)

SECRET = "hunter2"
# The full-width slash becomes a slash when a host name is normalized.
USERS = [
    f"app:{SECRET}/abc=@",
    f"app:{SECRET}?abc@",
    f"app:{SECRET}#abc@",
    f"app:{SECRET}\uff0fabc@",
    f"app:[{SECRET}@",
    f"app:123/{SECRET}@",
    f"app:123?{SECRET}@",
    f"app:123#{SECRET}@",
]


def blob(container: str) -> AzureBlobRing:
    return AzureBlobRing(container=container, blob="payments.ring")


def vault(address: str) -> VaultTransitKeyWrapper:
    return VaultTransitKeyWrapper(key_id="payments", address=address, token="t")


def refused(make: Callable[[str], object], url: str, option: str) -> None:
    with pytest.raises(ValueError, match=f": {option} must be |rejects {option}") as caught:
        make(url)
    error = caught.value
    assert SECRET not in str(error)
    assert error.__context__ is None
    assert error.__cause__ is None


@pytest.mark.parametrize("user", USERS)
def test_a_password_that_is_not_percent_encoded_is_refused_and_not_shown(user: str) -> None:
    for single in (RedisRing, RedisSingleUse):
        refused(lambda url, of=single: of(url=url), f"rediss://{user}redis.internal:6379", "url")  # type: ignore[misc]
    refused(blob, f"https://{user}acct.blob.core.windows.net/rings", "container")
    refused(vault, f"https://{user}vault.internal:8200", "address")


@pytest.mark.parametrize("user", [f"app:{SECRET}/abc@", f"app:{SECRET}%zz@"])
@pytest.mark.parametrize("store", [PostgresRing, PostgresSingleUse])
def test_a_url_that_libpq_rejects_is_refused_and_not_shown(
    user: str, store: Callable[..., object]
) -> None:
    refused(lambda url: store(url=url), f"postgresql://{user}db.internal:5432/app", "url")


@pytest.mark.parametrize(
    "url",
    [
        "redis://",
        "redis:///0",
        "redis://h:0",
        "redis://h:65536",
        "redis://h:x",
        "redis://[h",
        "redis://h/name",
        "redis://h/0/1",
    ],
)
def test_a_redis_url_has_a_host_a_valid_port_and_a_valid_database(url: str) -> None:
    refused(lambda given: RedisRing(url=given), url, "url")


def test_a_redis_url_with_a_parameter_that_redis_py_rejects_is_not_shown() -> None:
    url = f"redis://app:{SECRET}@h?socket_timeout={SECRET}"
    refused(lambda given: RedisRing(url=given), url, "url")


@pytest.mark.parametrize("port", ["0", "65536", "x", "5432,h2:x", "1e3"])
def test_a_postgresql_url_has_valid_ports(port: str) -> None:
    refused(lambda given: PostgresRing(url=given), f"postgresql://app:{SECRET}@h:{port}/app", "url")


@pytest.mark.parametrize(
    "container",
    [
        f"https:/acct.blob.core.windows.net/rings?sv=2024&sig={SECRET}",
        f"https:acct/rings?sig={SECRET}",
        f"https://acct.blob.core.windows.net?sig={SECRET}",
        f"https://acct.blob.core.windows.net:x/rings?sig={SECRET}",
        f"https:///rings?sig={SECRET}",
    ],
)
def test_text_that_is_not_a_container_url_is_refused_and_not_shown(container: str) -> None:
    refused(blob, container, "container")


def test_an_option_that_azure_storage_blob_rejects_is_not_shown() -> None:
    def make(container: str) -> object:
        signature = AzureSasCredential(SECRET)
        return AzureBlobRing(container=container, blob="b", credential=signature)

    refused(make, f"https://acct.blob.core.windows.net/rings?sig={SECRET}", "container")


class TokenCredential:
    def get_token(self, *scopes: str, **more: object) -> object:
        raise AssertionError


def test_a_token_credential_is_not_sent_over_http() -> None:
    def make(container: str, credential: object = None) -> AzureBlobRing:
        credential = credential or TokenCredential()
        return AzureBlobRing(container=container, blob="b", credential=credential)

    emulator = "http://127.0.0.1:10000/account/rings"
    for url in (emulator, emulator.replace("http", "HTTP")):
        with pytest.raises(ValueError, match="credential cannot be a token credential for an http"):
            make(url)
    assert make(emulator, {"account_name": "account", "account_key": "AAAA"}).location
    assert make("https://acct.blob.core.windows.net/rings").location


@pytest.mark.parametrize(
    "host",
    [
        "http://emulator.example:4443",
        f"http://app:{SECRET}@127.0.0.1:4443",
        "http://127.0.0.1.example:4443",
        "127.0.0.1:4443",
        "https://storage.internal?x=1",
    ],
)
def test_an_emulator_of_cloud_storage_is_on_this_machine(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", host)
    with pytest.raises(ValueError, match="STORAGE_EMULATOR_HOST must be an https:// URL") as caught:
        GcsRing(bucket="rings", object="payments.ring")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "is_anonymous"),
    [
        ("http://127.0.0.1:4443", True),
        ("http://localhost:4443", True),
        ("http://[::1]:4443", True),
        ("https://storage.internal", False),
        ("", False),
    ],
)
def test_only_an_https_endpoint_of_cloud_storage_gets_credentials(
    host: str, is_anonymous: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    credentials = GoogleCredentials("token")
    for module in ("google.auth", "google.auth._default"):
        monkeypatch.setattr(f"{module}.default", lambda *_, **__: (credentials, "shop"))
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", host)
    client: Any = GcsRing(bucket="rings", object="payments.ring")._client
    assert isinstance(client._credentials, AnonymousCredentials) is is_anonymous
    assert (client._credentials is credentials) is not is_anonymous
    expected = host or "https://storage.googleapis.com"
    assert expected == client._connection.API_BASE_URL
    client.close()


def test_the_location_of_a_client_whose_url_cannot_be_parsed_shows_no_part_of_it() -> None:
    class Client:
        url = f"https://app:{SECRET}\uff0fx@acct.blob.core.windows.net/rings/payments.ring"
        download_blob = upload_blob = print

    assert AzureBlobRing(client=Client()).location == "azure-blob"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make",
    [
        lambda: S3Ring(bucket="rings", key="payments.ring"),
        lambda: AwsKmsKeyWrapper(key_id="alias/ring"),
    ],
)
def test_an_endpoint_from_the_environment_that_boto3_rejects_is_not_shown(
    make: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"app:{SECRET}@proxy.internal")
    with pytest.raises(ValueError, match="AWS_ENDPOINT_URL") as caught:
        make()
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("url", "location"),
    [
        (f"redis://app:{SECRET}@redis.internal:6379/3", "redis://redis.internal:6379, key k"),
        (f"rediss://:{SECRET}%2Fabc%40@[::1]", "rediss://[::1], key k"),
    ],
)
def test_a_percent_encoded_password_is_accepted(url: str, location: str) -> None:
    assert RedisRing(url=url, key="k").location == location
    PostgresRing(url=f"postgresql://app:{SECRET}%2Fabc%40@h1:5432,h2/app?target_session_attrs=any")
    for user in ("", f"app:{SECRET}%2F@"):
        PostgresRing(url=f"postgresql://{user}/app?host=/cloudsql/shop:europe-west1:db")
    blob(f"https://acct.blob.core.windows.net/rings?sv=2024&sig={SECRET}%2Fabc%3D")
