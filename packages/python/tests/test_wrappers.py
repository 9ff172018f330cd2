"""Tests of key wrappers, and of the secrecy of their keys."""

import base64
import json
import logging
import os
import traceback
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from botocore.config import Config
from botocore.stub import Stubber
from ring_maker import RING, Fleet

from sealring import AwsKmsKeyWrapper, KeyWrapperError, LocalKeyWrapper, WrappedKey, base64url

CONTEXT = {"sealring:ring": RING, "sealring:purpose": "data-key", "sealring:times": "a/b/c/d"}
REGION, ACCOUNT = "eu-west-1", "111122223333"
ID = "1234abcd-12ab-34cd-56ef-1234567890ab"
ARN = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/{ID}"
OTHER_ARN = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/{ID[:-1]}c"
DATE = {"ResponseMetadata": {"HTTPHeaders": {"date": "Sat, 21 Nov 2026 03:00:00 GMT"}}}


def test_a_local_wrap_can_be_unwrapped_only_under_its_context() -> None:
    wrapper, data_key = LocalKeyWrapper(master_key=os.urandom(32)), os.urandom(32)
    wrapped = wrapper.wrap(data_key, CONTEXT)
    assert len(wrapped.wrapped) == 60
    assert wrapper.unwrap(wrapped, CONTEXT) == data_key
    assert wrapper.unwrap(wrapped, dict(reversed(CONTEXT.items()))) == data_key
    for context in ({}, {**CONTEXT, "sealring:ring": "orders"}, {**CONTEXT, "more": ""}):
        assert refusal(wrapper, wrapped, context) == "corrupt"
    for bit in range(480):
        changed = bytearray(wrapped.wrapped)
        changed[bit // 8] ^= 1 << bit % 8
        assert refusal(wrapper, WrappedKey("local", wrapped.key_id, bytes(changed))) == "corrupt"
    for other in (
        WrappedKey("aws-kms", wrapped.key_id, wrapped.wrapped),
        WrappedKey("local", "local:AAAAAAAAAAAA", wrapped.wrapped),
        WrappedKey("local", wrapped.key_id, wrapped.wrapped[:-4]),
    ):
        assert refusal(wrapper, other) == "corrupt"


def test_one_master_key_has_one_key_id() -> None:
    key = os.urandom(32)
    forms = [
        key,
        base64.b64encode(key).decode(),
        base64.urlsafe_b64encode(key).decode().rstrip("="),
    ]
    assert len({LocalKeyWrapper(master_key=form).key_id for form in forms}) == 1


def test_a_master_key_in_also_unwrap_only_unwraps() -> None:
    old, new = os.urandom(32), os.urandom(32)
    wrapped = LocalKeyWrapper(master_key=old).wrap(bytes(range(32)), CONTEXT)
    both = LocalKeyWrapper(master_key=new, also_unwrap=[old])
    assert both.unwrap(wrapped, CONTEXT) == bytes(range(32))
    assert both.wrap(bytes(range(32)), CONTEXT).key_id == LocalKeyWrapper(master_key=new).key_id


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({}, TypeError),
        ({"master_key": None}, TypeError),
        ({"master_key": 32}, TypeError),
        ({"master_key": "\ud800" * 40}, ValueError),
        ({"master_key": "a sentence that is long enough to be a key"}, ValueError),
        ({"master_key": b"a sentence that is long enough to be a key"}, ValueError),
        ({"master_key": base64.b64encode(os.urandom(32)).decode()[:-2]}, ValueError),
        ({"master_key": base64.b64encode(os.urandom(32))}, ValueError),
        ({"master_key": base64.b64encode(os.urandom(31)).decode()}, ValueError),
        ({"master_key": b"x" * 31}, ValueError),
        ({"master_key": bytes(32)}, ValueError),
        ({"master_key": bytes(range(32)), "also_unwrap": bytes(range(32))}, TypeError),
        ({"master_key": bytes(range(32)), "also_unwrap": [bytes(range(32))]}, ValueError),
        ({"master_key": bytes(range(32)), "colour": 1}, TypeError),
    ],
)
def test_wrong_master_keys_are_refused(options: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        LocalKeyWrapper(**options)  # type: ignore[arg-type]
    assert "\\x" not in str(caught.value)


def refusal(
    wrapper: LocalKeyWrapper | AwsKmsKeyWrapper, wrapped: WrappedKey, context: object = None
) -> str:
    with pytest.raises(KeyWrapperError) as caught:
        wrapper.unwrap(wrapped, CONTEXT if context is None else context)  # type: ignore[arg-type]
    return caught.value.kind


class Kms:
    """The vendor's client with a prepared answer: its own checks of request and answer run."""

    def __init__(self) -> None:
        self.client = boto3.client(
            "kms",
            region_name=REGION,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(retries={"total_max_attempts": 1}),
        )
        self.stubber = Stubber(self.client)
        self.stubber.activate()

    def answers(self, key_id: str = ARN, plaintext: bytes | None = None) -> bytes:
        plaintext = os.urandom(32) if plaintext is None else plaintext
        answer = {"KeyId": key_id, "Plaintext": plaintext, **DATE}
        self.stubber.add_response("decrypt", answer)
        return plaintext

    def fails(self, code: str, status: int = 400, message: str = "") -> None:
        self.stubber.add_client_error(
            "decrypt", service_error_code=code, http_status_code=status, service_message=message
        )


@pytest.fixture
def kms() -> Iterator[Kms]:
    made = Kms()
    yield made
    made.stubber.assert_no_pending_responses()
    made.client.close()


def wrap(key_id: str = ARN, wrapped: bytes = b"blob") -> WrappedKey:
    return WrappedKey("aws-kms", key_id, wrapped)


def test_decrypt_gets_the_key_and_context_and_its_date_is_reported(kms: Kms) -> None:
    wrapper = AwsKmsKeyWrapper(key_id=ARN, client=kms.client)
    data_key, dates = os.urandom(32), []  # type: ignore[var-annotated]
    asked = {"KeyId": ARN, "CiphertextBlob": b"blob", "EncryptionContext": CONTEXT}
    kms.stubber.add_response("decrypt", {"KeyId": ARN, "Plaintext": data_key, **DATE}, asked)
    opened = wrapper.unwrap(wrap(), CONTEXT, on_service_date=dates.append)
    assert isinstance(opened, bytearray)
    assert opened == data_key
    assert dates == [1_795_230_000_000]


@pytest.mark.parametrize(
    ("options", "recorded"),
    [
        ({"key_id": ARN}, ARN),
        ({"key_id": ID}, ARN),
        ({"key_id": "alias/ring"}, ARN),
        ({"key_id": f"arn:aws:kms:{REGION}:{ACCOUNT}:alias/ring"}, ARN),
        ({"key_id": OTHER_ARN, "also_unwrap": [ARN]}, ARN),
    ],
)
def test_owns_accepts_every_name_of_its_keys(
    kms: Kms, options: dict[str, object], recorded: str
) -> None:
    wrapper = AwsKmsKeyWrapper(client=kms.client, **options)  # type: ignore[arg-type]
    assert wrapper.owns(wrap(recorded))
    data_key = kms.answers()
    assert wrapper.unwrap(wrap(recorded), CONTEXT) == data_key


@pytest.mark.parametrize(
    ("key_id", "recorded"),
    [
        (ARN, OTHER_ARN),
        (ARN, ARN.replace(REGION, "us-east-1")),
        (ARN, ID),
        (ID, OTHER_ARN),
        ("alias/ring", "alias/ring"),
        (f"arn:aws:kms:{REGION}:{ACCOUNT}:alias/ring", ARN.replace(ACCOUNT, "999999999999")),
        (ARN, ""),
        (ARN, ARN + "\n"),
    ],
)
def test_a_wrap_of_another_key_is_refused_before_any_call(
    kms: Kms, key_id: str, recorded: str
) -> None:
    wrapper = AwsKmsKeyWrapper(key_id=key_id, client=kms.client)
    assert not wrapper.owns(wrap(recorded))
    assert refusal(wrapper, wrap(recorded)) == "corrupt"
    assert refusal(wrapper, wrap(ARN, b"")) == "corrupt"
    assert refusal(wrapper, wrap(ARN, b"x" * 6_145)) == "corrupt"
    assert refusal(wrapper, WrappedKey("local", ARN, b"x")) == "corrupt"


def test_multi_region_accepts_replicas_of_the_key() -> None:
    mrk = "mrk-" + "a" * 32
    here, there = (f"arn:aws:kms:{region}:{ACCOUNT}:key/{mrk}" for region in (REGION, "us-east-1"))
    kms = Kms()
    assert not AwsKmsKeyWrapper(key_id=here, client=kms.client).owns(wrap(there))
    wrapper = AwsKmsKeyWrapper(key_id=here, client=kms.client, multi_region=True)
    data_key = kms.answers(here)
    assert wrapper.unwrap(wrap(there), CONTEXT) == data_key
    # A key of one Region has no replicas.
    alias = f"arn:aws:kms:{REGION}:{ACCOUNT}:alias/ring"
    either = AwsKmsKeyWrapper(key_id=alias, client=kms.client, multi_region=True)
    assert either.owns(wrap(there))
    assert not either.owns(wrap(ARN.replace(REGION, "us-east-1")))
    kms.client.close()


def test_f34_an_answer_for_another_key_or_with_another_length_is_corrupt(kms: Kms) -> None:
    wrapper = AwsKmsKeyWrapper(key_id="alias/ring", client=kms.client)
    kms.answers(OTHER_ARN)
    assert refusal(wrapper, wrap()) == "corrupt"
    for plaintext in (b"", os.urandom(31), os.urandom(33), bytes(32)):
        kms.answers(plaintext=plaintext)
        assert refusal(wrapper, wrap()) == "corrupt"


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("ThrottlingException", 400, "throttled"),
        ("x", 429, "throttled"),
        ("DisabledException", 400, "disabled"),
        ("KMSInvalidStateException", 400, "unavailable"),
        ("AccessDeniedException", 400, "denied"),
        ("UnrecognizedClientException", 400, "denied"),
        ("403", 403, "denied"),
        ("NotFoundException", 400, "not-found"),
        ("InvalidCiphertextException", 400, "corrupt"),
        ("IncorrectKeyException", 400, "corrupt"),
        ("ValidationException", 400, "denied"),
        ("ExpiredTokenException", 403, "unavailable"),
        ("RequestExpired", 403, "unavailable"),
        ("KeyUnavailableException", 500, "unavailable"),
        ("KMSInternalException", 500, "unavailable"),
        ("XksProxyUriUnreachableException", 400, "unavailable"),
        ("SomethingNew", 400, "unavailable"),
    ],
)
def test_failures_of_aws_kms_are_classified(kms: Kms, code: str, status: int, kind: str) -> None:
    kms.fails(code, status)
    assert refusal(AwsKmsKeyWrapper(key_id=ARN, client=kms.client), wrap()) == kind


def failure(kms: Kms, code: str, message: str) -> KeyWrapperError:
    kms.fails(code, 400, message)
    with pytest.raises(KeyWrapperError) as caught:
        AwsKmsKeyWrapper(key_id=ARN, client=kms.client).unwrap(wrap(), CONTEXT)
    assert caught.value.code == code
    assert caught.value.hint is not None
    assert message == "" or message not in all_that_an_error_holds(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (f"{ARN} is pending deletion.", "disabled"),
        (f"{ARN} is pending replica deletion.", "disabled"),
        (f"{ARN} is pending import.", "disabled"),
        (f"{ARN} is unavailable.", "unavailable"),
        (f"{ARN} is creating.", "unavailable"),
        (f"{ARN} is pending deletions", "unavailable"),
        ("AWS KMS cannot communicate with your external key store proxy.", "unavailable"),
        ("", "unavailable"),
    ],
)
def test_only_a_key_state_that_an_operator_chose_counts_as_disabled(
    kms: Kms, message: str, kind: str
) -> None:
    error = failure(kms, "KMSInvalidStateException", message)
    assert error.kind == kind
    assert error.hint == (
        "the KMS key is pending deletion or pending import"
        if kind == "disabled"
        else "the KMS key is not usable at the moment: check its state, and its key store if it has"
        " a custom one"
    )


def test_no_other_error_counts_as_disabled_because_of_its_message(kms: Kms) -> None:
    for code in ("KMSInternalException", "Novelty"):
        kms.fails(code, 500, f"{ARN} is pending deletion.")
        assert refusal(AwsKmsKeyWrapper(key_id=ARN, client=kms.client), wrap()) == "unavailable"


@pytest.mark.parametrize(
    ("message", "kind", "hint"),
    [
        ("Signature expired: 20261121T030000Z is now earlier than", "unavailable", "clock"),
        ("Signature not yet current: 20261121T031500Z is still", "unavailable", "clock"),
        ("Signature expiredly", "denied", "credentials"),
        ("The request signature does not match. Signature expired", "denied", "credentials"),
    ],
)
def test_a_signature_that_is_refused_because_of_a_wrong_clock_is_unavailable(
    kms: Kms, message: str, kind: str, hint: str
) -> None:
    error = failure(kms, "InvalidSignatureException", message)
    assert error.kind == kind
    assert hint in str(error.hint)


MRK = "mrk-" + "0f" * 16


def in_virginia(id: str) -> str:
    return f"arn:aws:kms:us-east-1:{ACCOUNT}:key/{id}"


@pytest.mark.parametrize("key_id", [ARN.replace(ID, MRK), MRK])
def test_a_replica_in_also_unwrap_is_called_in_the_region_of_the_wrapper(
    kms: Kms, key_id: str
) -> None:
    listed = in_virginia(MRK)
    wrapper = AwsKmsKeyWrapper(
        key_id=key_id, client=kms.client, multi_region=True, also_unwrap=[listed]
    )
    data_key = os.urandom(32)
    answer = {"KeyId": ARN.replace(ID, MRK), "Plaintext": data_key, **DATE}
    asked = {"KeyId": key_id, "CiphertextBlob": b"blob", "EncryptionContext": CONTEXT}
    kms.stubber.add_response("decrypt", answer, asked)
    assert wrapper.unwrap(wrap(listed), CONTEXT) == data_key


@pytest.mark.parametrize(
    "options",
    [
        {"key_id": ARN, "also_unwrap": [in_virginia(ID)]},
        {"key_id": ARN.replace(f"key/{ID}", "alias/x"), "also_unwrap": [in_virginia(ID)]},
        {"key_id": ARN.replace(ID, MRK), "also_unwrap": [in_virginia(MRK)]},
        {
            "key_id": ARN.replace(ID, MRK),
            "also_unwrap": [in_virginia(MRK.replace("0f", "0e"))],
            "multi_region": True,
        },
    ],
)
def test_also_unwrap_refuses_a_key_of_another_region_where_kms_would_not_find_it(
    kms: Kms, options: dict[str, object]
) -> None:
    wanted = rf"also_unwrap\[0\] .* {REGION}, .* key_wrapper=\[old, new\]"
    with pytest.raises(ValueError, match=wanted):
        AwsKmsKeyWrapper(client=kms.client, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        {"key_id": ARN, "also_unwrap": [ARN.replace("1111", "9999")]},
        {
            "key_id": ARN.replace(ID, MRK),
            "also_unwrap": [in_virginia(MRK)],
            "multi_region": True,
        },
        {"key_id": "alias/x", "also_unwrap": [in_virginia(ID)]},
        {"key_id": ID, "also_unwrap": [in_virginia(ID)]},
    ],
)
def test_also_unwrap_accepts_keys_that_kms_can_find(kms: Kms, options: dict[str, object]) -> None:
    wrapper = AwsKmsKeyWrapper(client=kms.client, **options)  # type: ignore[arg-type]
    assert wrapper.key_id == options["key_id"]


def test_no_connection_and_no_credentials_are_unavailable() -> None:
    options: dict[str, object] = {
        "region_name": REGION,
        "endpoint_url": "http://127.0.0.1:9",
        "config": Config(connect_timeout=1, retries={"total_max_attempts": 1}),
    }
    session = boto3.Session()
    session._session.get_component("credential_provider").providers.clear()
    for secrets in ({"aws_access_key_id": "a", "aws_secret_access_key": "b"}, {}):
        client = session.client("kms", **options, **secrets)  # type: ignore[call-overload]
        assert refusal(AwsKmsKeyWrapper(key_id=ARN, client=client), wrap()) == "unavailable"
        client.close()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"key_id": "my-key"}, ValueError),
        ({"key_id": ARN.replace(ID, "alias/ring")}, ValueError),
        ({"key_id": ARN.replace("key/", "")}, ValueError),
        ({"key_id": "alias/"}, ValueError),
        ({"key_id": 5}, TypeError),
        ({"key_id": ARN, "client": object()}, TypeError),
        ({"key_id": ARN, "also_unwrap": ARN}, TypeError),
        ({"key_id": ARN, "also_unwrap": ["alias/old"]}, ValueError),
        ({"key_id": ARN, "multi_region": True}, ValueError),
        ({"key_id": ARN, "call_timeout_seconds": 61}, ValueError),
        ({"key_id": ARN, "max_attempts": 3}, TypeError),
    ],
)
def test_wrong_options_of_aws_kms_are_refused(
    options: dict[str, object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        AwsKmsKeyWrapper(**options)  # type: ignore[arg-type]


def all_that_an_error_holds(error: BaseException) -> str:
    """Texts, attributes, chained errors, and what the frames of its traceback hold."""
    told: list[str] = []
    seen: set[int] = set()
    queue: list[BaseException] = [error]
    while queue:
        one = queue.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        told += [repr(one), str(one), repr(vars(one)), *traceback.format_exception(one)]
        told += [
            repr(value)
            for frame, _ in traceback.walk_tb(one.__traceback__)
            if "sealring" in frame.f_code.co_filename
            for value in frame.f_locals.values()
        ]
        queue += [chained for chained in (one.__cause__, one.__context__) if chained is not None]
    return "\n".join(told)


def spellings(secret: bytes) -> list[str]:
    return [base64url.encode(secret), secret.hex(), repr(secret)[2:-1], repr(bytearray(secret))]


def test_f21_f33_no_error_contains_a_key(kms: Kms, caplog: pytest.LogCaptureFixture) -> None:
    canary = bytes(range(100, 132))
    text = canary.decode("ascii", "replace")
    wrapper = AwsKmsKeyWrapper(key_id="alias/ring", client=kms.client)
    errors: list[BaseException] = []
    with caplog.at_level(logging.DEBUG, "sealring"):
        kms.answers(OTHER_ARN, canary)
        errors += failures(wrapper)
        kms.answers(plaintext=canary + b"x")
        errors += failures(wrapper)
        for code in ("AccessDeniedException", text):
            kms.fails(code, message=text)
            errors += failures(wrapper)
    told = "\n".join(map(all_that_an_error_holds, errors)) + caplog.text
    assert len(errors) == 4
    for spelling in [*spellings(canary), text]:
        assert spelling not in told


def failures(wrapper: AwsKmsKeyWrapper) -> list[BaseException]:
    with pytest.raises(KeyWrapperError) as caught:
        wrapper.unwrap(wrap(), CONTEXT)
    return [caught.value]


def test_f21_a_codec_shows_neither_keys_nor_payloads(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    payload = b"canary-payload-0123456789"
    with fleet.reader() as codec:
        told = []
        token = codec.seal(payload)
        held = codec._view.sealing_key(codec._view.now())
        for one in (codec, held, codec.health(), codec.for_purpose("x"), fleet.wrapper):
            told.append(repr(one) + str(one))
        for call in (
            lambda: codec.unseal(token[:-2] + "AA"),
            lambda: codec.unseal("sr1." + "A" * 98),
            lambda: codec.seal("x"),  # type: ignore[arg-type]
            lambda: codec.seal(payload * 100_000),
            codec.start,
        ):
            with pytest.raises(Exception) as caught:  # noqa: PT011, B017
                call()
            error = caught.value
            told += [repr(error), repr(vars(error)), repr(error.__cause__), str(error)]
        fleet.break_store()
        with pytest.raises(Exception) as caught:  # noqa: PT011, B017
            codec.refresh()
        told.append(all_that_an_error_holds(caught.value))
    everything = "\n".join(told) + caplog.text
    for spelling in [*spellings(fleet.first.data_key), *spellings(payload), "canary-payload"]:
        assert spelling not in everything
    assert json.dumps(everything)


@pytest.mark.parametrize("data_key", [b"", b"\1" + bytes(30), b"\1" + bytes(32), bytes(32)])
def test_a_value_that_is_not_a_data_key_is_not_wrapped(kms: Kms, data_key: bytes) -> None:
    # The stub has no answer, so a call of the service would fail in another way.
    aws = AwsKmsKeyWrapper(key_id=ARN, client=kms.client)
    for wrapper in (LocalKeyWrapper(master_key=os.urandom(32)), aws):
        with pytest.raises(
            ValueError, match="a data key must have 32 bytes that are not all equal"
        ):
            wrapper.wrap(data_key, CONTEXT)


def test_a_missing_region_names_the_variable_that_boto3_reads(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(ValueError, match="AwsKmsKeyWrapper: no AWS Region .* AWS_DEFAULT_REGION"):
        AwsKmsKeyWrapper(key_id="alias/payments")


@pytest.mark.parametrize("key", [bytes(range(31)), os.urandom(32).hex(), "a sentence", b"x" * 40])
def test_the_error_for_a_wrong_master_key_names_the_command_that_prints_one(
    key: bytes | str,
) -> None:
    with pytest.raises(ValueError, match='pass .*"openssl rand -base64 32"'):
        LocalKeyWrapper(master_key=key)
