"""Wraps data keys with a symmetric key of AWS KMS: GenerateDataKey, Encrypt, Decrypt."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

from ..aws import aws_client, member, note_aws_date
from ..derivation import DATA_KEY_BYTES
from ..errors import KeyWrapperError, KeyWrapperOperation
from ..key_wrapper import OnServiceDate, Supports, WrappedKey
from ..options import is_constant, sequence, show, text
from .aws_errors import kms_error
from .aws_key_name import KeyName, may_mean, parse_key_arn, parse_key_name
from .service import check_context, check_plaintext

_OWNER = "AwsKmsKeyWrapper"
_PROVIDER = "aws-kms"
_corrupt = partial(KeyWrapperError, "corrupt", _PROVIDER)
# Length of the longest CiphertextBlob that Decrypt accepts (AWS KMS API reference, Decrypt).
_MAX_WRAPPED_BYTES = 6_144
_MAX_ALSO_UNWRAP = 64


class KmsClient(Protocol):
    """The part of a boto3 `kms` client that is used."""

    def decrypt(
        self,
        *,
        KeyId: str,  # noqa: N803
        CiphertextBlob: bytes,  # noqa: N803
        EncryptionContext: dict[str, str],  # noqa: N803
    ) -> Mapping[str, object]: ...

    def encrypt(
        self,
        *,
        KeyId: str,  # noqa: N803
        Plaintext: bytes,  # noqa: N803
        EncryptionContext: dict[str, str],  # noqa: N803
    ) -> Mapping[str, object]: ...

    def generate_data_key(
        self,
        *,
        KeyId: str,  # noqa: N803
        KeySpec: str,  # noqa: N803
        EncryptionContext: dict[str, str],  # noqa: N803
    ) -> Mapping[str, object]: ...


class AwsKmsKeyWrapper:
    """The counterpart of `awsKmsKeyWrapper` of @sealring/aws-kms: each unwraps what the other
    wrapped, under the same encryption context. Needs `kms:Decrypt` on the key and, for a member,
    `kms:GenerateDataKey` and `kms:Encrypt`.

    A wrapped key never chooses which KMS key is called: a wrapped key that names neither the key of
    `key_id` nor a key in `also_unwrap` is refused before any call. If `key_id` is an alias, only
    the answer from KMS shows which key it means; that key must be the one that the wrapped key
    names.

    Args:
        key_id: a key ARN, a key id, an alias ARN or `alias/...`.
        client: a boto3 `kms` client, configured for one attempt per call; the wrapper does not
            close it. By default the wrapper creates one, with the credentials of
            boto3's default chain; the region also comes from that chain unless `key_id`
            is an ARN.
        also_unwrap: full ARNs of replaced KMS keys whose wrapped keys may still be unwrapped, in
            the region of `key_id` if that is an ARN; 0 to 64.
        multi_region: whether to unwrap wrapped keys that any replica made; only for an `mrk-` key
            or an alias.
        call_timeout_seconds: timeout of the client that the wrapper creates, for connecting and for
            reading; 0.01 to 60.

    A wrong option raises TypeError or ValueError; the message names the option.
    """

    provider = _PROVIDER
    supports = Supports()

    def __init__(
        self,
        *,
        key_id: str,
        client: KmsClient | None = None,
        also_unwrap: Sequence[str] = (),
        multi_region: bool = False,
        call_timeout_seconds: float = 5,
    ) -> None:
        self.key_id = text(_OWNER, "key_id", key_id, 2_048)
        self._key_name = _key_name(self.key_id, multi_region)
        self._multi_region = multi_region
        self._also_unwrap = _replaced(also_unwrap, self._key_name, multi_region)
        region = self._key_name.region
        self._client = aws_client(_OWNER, "kms", "decrypt", client, call_timeout_seconds, region)

    def __repr__(self) -> str:
        return f"AwsKmsKeyWrapper({self.key_id})"

    def owns(self, wrapped: WrappedKey) -> bool:
        is_known = wrapped.key_id in self._also_unwrap
        may_be = is_known or may_mean(self._key_name, wrapped.key_id, self._multi_region)
        return wrapped.provider == _PROVIDER and may_be

    def generate(
        self, context: Mapping[str, str], *, on_service_date: OnServiceDate | None = None
    ) -> tuple[bytearray, WrappedKey]:
        """A data key of 32 bytes that KMS made, and its wrap. Raises KeyWrapperError for a
        failure."""
        answer = self._generate(context, on_service_date)
        if isinstance(answer, KeyWrapperError):
            raise answer
        return answer

    def wrap(
        self,
        data_key: bytes | bytearray,
        context: Mapping[str, str],
        *,
        on_service_date: OnServiceDate | None = None,
    ) -> WrappedKey:
        """Wraps 32 bytes that are not all equal. Raises KeyWrapperError for a failure."""
        check_plaintext(_OWNER, data_key, [DATA_KEY_BYTES])
        check_context(_OWNER, context)
        answer = self._encrypt(data_key, context, on_service_date)
        if isinstance(answer, KeyWrapperError):
            raise answer
        return answer

    def unwrap(
        self,
        wrapped: WrappedKey,
        context: Mapping[str, str],
        *,
        on_service_date: OnServiceDate | None = None,
    ) -> bytearray:
        """The data key, 32 bytes. Raises KeyWrapperError, without any part of boto3's error, for a
        failure."""
        check_context(_OWNER, context)
        if not self.owns(wrapped):
            raise _corrupt(hint="the wrapped key names another provider or KMS key")
        if not 1 <= len(wrapped.wrapped) <= _MAX_WRAPPED_BYTES:
            raise _corrupt(hint=f"the wrapped key is not 1 to {_MAX_WRAPPED_BYTES} bytes long")
        answer = self._decrypt(wrapped, context, on_service_date)
        if isinstance(answer, KeyWrapperError):
            raise answer
        return answer

    def _decrypt(
        self, wrapped: WrappedKey, context: Mapping[str, str], on_service_date: OnServiceDate | None
    ) -> bytearray | KeyWrapperError:
        """The data key, or the reason why there is none. Runs in a separate frame, so that no
        traceback references an answer from KMS."""
        asked = self._key_to_ask(wrapped.key_id)
        try:
            answer = self._client.decrypt(
                KeyId=asked, CiphertextBlob=wrapped.wrapped, EncryptionContext=dict(context)
            )
        except Exception as error:
            return kms_error(_PROVIDER, error, on_service_date)
        note_aws_date(answer, on_service_date)
        plaintext = member(answer, "Plaintext")
        if not isinstance(plaintext, (bytes, bytearray)) or len(plaintext) != DATA_KEY_BYTES:
            return _corrupt(hint=f"the answer has no data key of {DATA_KEY_BYTES} bytes")
        if is_constant(plaintext):
            return _corrupt(hint="the data key is one byte repeated")
        if not self._is_answer_for(wrapped.key_id, asked, member(answer, "KeyId")):
            return _corrupt(
                hint="KMS answered for a key other than the one that the wrapped key names"
            )
        return bytearray(plaintext)

    def _key_to_ask(self, recorded: str) -> str:
        """The key as it was configured, never text from the wrapped key."""
        # KMS finds an ARN only in its own Region, so a replica of the key in key_id is asked for by
        # key_id. An alias may mean any key, so for a listed key it is not asked.
        is_definite = self._key_name.id is not None
        if is_definite and may_mean(self._key_name, recorded, self._multi_region):
            return self.key_id
        return next((arn for arn in self._also_unwrap if arn == recorded), self.key_id)

    def _encrypt(
        self,
        data_key: bytes | bytearray,
        context: Mapping[str, str],
        on_service_date: OnServiceDate | None,
    ) -> WrappedKey | KeyWrapperError:
        try:
            answer = self._client.encrypt(
                KeyId=self.key_id, Plaintext=bytes(data_key), EncryptionContext=dict(context)
            )
        except Exception as error:
            return kms_error(_PROVIDER, error, on_service_date, "wrap")
        note_aws_date(answer, on_service_date)
        return self._wrapped_of("wrap", answer)

    def _generate(
        self, context: Mapping[str, str], on_service_date: OnServiceDate | None
    ) -> tuple[bytearray, WrappedKey] | KeyWrapperError:
        try:
            answer = self._client.generate_data_key(
                KeyId=self.key_id, KeySpec="AES_256", EncryptionContext=dict(context)
            )
        except Exception as error:
            return kms_error(_PROVIDER, error, on_service_date, "generate")
        note_aws_date(answer, on_service_date)
        plaintext = member(answer, "Plaintext")
        if not isinstance(plaintext, (bytes, bytearray)) or len(plaintext) != DATA_KEY_BYTES:
            hint = f"the answer has no data key of {DATA_KEY_BYTES} bytes"
            return _corrupt(operation="generate", hint=hint)
        wrapped = self._wrapped_of("generate", answer)
        if isinstance(wrapped, KeyWrapperError):
            return wrapped
        return bytearray(plaintext), wrapped

    def _wrapped_of(
        self, operation: KeyWrapperOperation, answer: object
    ) -> WrappedKey | KeyWrapperError:
        key_id, blob = member(answer, "KeyId"), member(answer, "CiphertextBlob")
        if not isinstance(key_id, str) or not may_mean(self._key_name, key_id, any_region=False):
            hint = "KMS answered for a key other than key_id"
            return _corrupt(operation=operation, hint=hint)
        if not isinstance(blob, bytes) or not 1 <= len(blob) <= _MAX_WRAPPED_BYTES:
            hint = f"the wrapped key is not 1 to {_MAX_WRAPPED_BYTES} bytes long"
            return _corrupt(operation=operation, hint=hint)
        return WrappedKey(_PROVIDER, key_id, blob)

    def _is_answer_for(self, recorded: str, asked: str, answered: object) -> bool:
        if asked != self.key_id:
            return answered == asked
        name = parse_key_arn(recorded)
        is_right = name is not None and may_mean(name, answered, self._multi_region)
        return is_right and may_mean(self._key_name, answered, any_region=False)


def _key_name(key_id: str, multi_region: bool) -> KeyName:
    name = parse_key_name(key_id)
    if name is None:
        raise ValueError(
            f"{_OWNER}: key_id must be a key ARN, a key id, an alias ARN or alias/..., "
            f"got {ascii(key_id[:120])}"
        )
    if not isinstance(multi_region, bool):
        raise TypeError(f"{_OWNER}: multi_region must be a bool, got {show(multi_region)}")
    if multi_region and name.id is not None and not name.is_multi_region:
        raise ValueError(f"{_OWNER}: multi_region needs a multi-Region key (mrk-...) as key_id")
    return name


def _replaced(also_unwrap: Sequence[str], key_name: KeyName, multi_region: bool) -> frozenset[str]:
    sequence(_OWNER, "also_unwrap", also_unwrap)
    if len(also_unwrap) > _MAX_ALSO_UNWRAP:
        raise ValueError(f"{_OWNER}: also_unwrap must be 0 to {_MAX_ALSO_UNWRAP} key ARNs")
    for index, arn in enumerate(also_unwrap):
        # An alias could later point to another key, and a bare id does not determine the account.
        key = parse_key_arn(arn)
        if key is None:
            raise ValueError(f"{_OWNER}: also_unwrap[{index}] must be a key ARN")
        # KMS finds an ARN only in its own Region, and this wrapper calls only the Region of key_id.
        is_replica = key_name.id is not None and may_mean(key_name, arn, multi_region)
        if key_name.region not in (None, key.region) and not is_replica:
            raise ValueError(
                f"{_OWNER}: also_unwrap[{index}] must be a key in the region of key_id, "
                f"{key_name.region}, got {ascii(arn)}; for a key of another region, pass KmsCodec "
                "a key wrapper for each key: key_wrapper=[old, new]"
            )
    return frozenset(also_unwrap)
