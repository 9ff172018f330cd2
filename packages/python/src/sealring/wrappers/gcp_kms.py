"""Wraps data keys with a symmetric key of Google Cloud KMS: Encrypt and Decrypt, over gRPC."""

import hmac
import re
from collections.abc import Mapping, Sequence
from typing import Protocol

from ..canonical_json import canonical_json
from ..derivation import DATA_KEY_BYTES, overwrite
from ..errors import KeyWrapperError, KeyWrapperErrorKind, KeyWrapperOperation
from ..failures import connection_failure, failure_with, rows
from ..key_wrapper import OnServiceDate, Supports, WrappedKey
from ..options import number, with_method
from .service import (
    check_context,
    check_plaintext,
    matches,
    name_of_key,
    names_of_keys,
    taken_data_key,
)

_OWNER = "GcpKmsKeyWrapper"
_PROVIDER = "gcp-kms"
# This package's own limit: Cloud KMS documents none, and wraps a data key in about 100 bytes.
_MAX_WRAPPED_BYTES = 4_096
_TAG_BYTES = 32
_FORM = "projects/…/locations/…/keyRings/…/cryptoKeys/… (no version)"
# Cloud KMS REST reference, v1: the service has one spelling for each key.
_KEY = (
    "projects/[a-z0-9][a-z0-9.:-]{0,127}/locations/[a-z0-9-]{1,63}"
    "/keyRings/[A-Za-z0-9_-]{1,63}/cryptoKeys/[A-Za-z0-9_-]{1,63}"
)
_key_name = matches(_KEY)
_version_name = matches(f"(?P<key>{_KEY})/cryptoKeyVersions/[1-9][0-9]{{0,18}}")

_CREDENTIALS = "the credentials are missing, wrong or expired"
_RIGHTS = "the caller lacks the permission to use the key, or the key does not exist"
_Row = tuple[KeyWrapperErrorKind, str | None]

# Reasons (`google.api.ErrorReason`) and gRPC's status codes. Anything else is `unavailable`, and so
# is an expired token, which says nothing about the permission to use the key.
ERROR_TABLE: dict[str, _Row] = {
    # Violations of a FAILED_PRECONDITION.
    **rows(
        ("disabled", "the key version is not enabled"),
        "KEY_DISABLED KEY_DESTROY_SCHEDULED KEY_DESTROYED KEY_PENDING_GENERATION",
    ),
    "CREDENTIALS_MISSING": ("denied", _CREDENTIALS),
    "ACCESS_TOKEN_EXPIRED": ("unavailable", _CREDENTIALS),
    "ACCESS_TOKEN_SCOPE_INSUFFICIENT": ("denied", "the access token lacks the cloudkms scope"),
    "IAM_PERMISSION_DENIED": ("denied", _RIGHTS),
    "SECURITY_POLICY_VIOLATED": ("denied", "a VPC Service Controls perimeter blocks the caller"),
    **dict.fromkeys(
        ("SERVICE_DISABLED", "BILLING_DISABLED", "CONSUMER_SUSPENDED"),
        ("denied", "the Cloud KMS API, the project or its billing is disabled"),
    ),
    "EXTERNAL_PERMISSION_DENIED": ("denied", "the external key manager refuses Cloud KMS"),
    "EXTERNAL_NOT_FOUND": ("not-found", "the external key manager has no such key"),
    "PERMISSION_DENIED": ("denied", _RIGHTS),
    "UNAUTHENTICATED": ("denied", _CREDENTIALS),
    "NOT_FOUND": ("not-found", "no such key in this project and location"),
    "RESOURCE_EXHAUSTED": ("throttled", None),
    "FAILED_PRECONDITION": (
        "disabled",
        "the key version is not enabled, or Cloud KMS is disabled",
    ),
    # For an unwrap: the context differs, or the ciphertext was made with another key or was
    # changed.
    "INVALID_ARGUMENT": ("corrupt", None),
    **rows(
        ("unavailable", None),
        "CANCELLED UNKNOWN DEADLINE_EXCEEDED ALREADY_EXISTS ABORTED OUT_OF_RANGE UNIMPLEMENTED "
        "INTERNAL UNAVAILABLE DATA_LOSS",
    ),
}
# How gRPC describes the error of a connection that was never established.
_NO_CONNECTION = (
    ("self.signed certificate in certificate chain", "SELF_SIGNED_CERT_IN_CHAIN"),
    ("self.signed certificate", "DEPTH_ZERO_SELF_SIGNED_CERT"),
    ("unable to get local issuer certificate", "UNABLE_TO_GET_ISSUER_CERT_LOCALLY"),
    ("(?i)hostname verification|host name .* not match|Peer name", "HOSTNAME_MISMATCH"),
    ("CERTIFICATE_VERIFY_FAILED", "UNABLE_TO_VERIFY_LEAF_SIGNATURE"),
    ("WRONG_VERSION_NUMBER", "ERR_SSL_WRONG_VERSION_NUMBER"),
    ("Connection refused", "ECONNREFUSED"),
    ("Connection reset|[Ss]ocket closed", "ECONNRESET"),
    ("No route to host", "EHOSTUNREACH"),
    ("Network is unreachable", "ENETUNREACH"),
    ("Connection timed out|FD shutdown", "ETIMEDOUT"),
    ("(?:DNS|Domain name|address lookup|C-ares).*(?:not found|NXDOMAIN|failed)", "ENOTFOUND"),
)
# Errors of google-auth, which mean that there was no token.
_NO_TOKEN = frozenset({"DefaultCredentialsError", "RefreshError"})
# The service rejected the request to wrap as invalid: a configuration error.
_WRAP_REFUSED: _Row = (
    "denied",
    "key_id must be a key for symmetric encryption (ENCRYPT_DECRYPT)",
)


class GcpKmsClient(Protocol):
    """The part of a `KeyManagementServiceClient` of google-cloud-kms that is used."""

    def encrypt(self, *, request: object, timeout: float, retry: None) -> object: ...
    def decrypt(self, *, request: object, timeout: float, retry: None) -> object: ...


class GcpKmsKeyWrapper:
    """The counterpart of `gcpKmsKeyWrapper` of @sealring/gcp-kms: each unwraps what the other
    wrapped. The context is the additional authenticated data. Every byte string is sent with its
    CRC32C, and the CRC32C of every answer is verified. Needs
    `cloudkms.cryptoKeyVersions.useToDecrypt` on the key and, for a member, `useToEncrypt`.

    A wrapped key never chooses which key is called: a wrapped key that names a version of neither
    `key_id` nor a key in `also_unwrap` is refused before any call. A wrapped key ends with an HMAC
    under the data key. The HMAC binds the name of the version, which Decrypt does not check.

    Args:
        key_id: the resource name of the key, without a version.
        client: a `KeyManagementServiceClient` over gRPC; the wrapper does not close it. By default
            the wrapper creates one, with Application Default Credentials.
        also_unwrap: resource names of replaced keys whose wrapped keys may still be unwrapped; 0
            to 64.
        call_timeout_seconds: timeout of one call; 0.01 to 60.

    A wrong option raises TypeError or ValueError; the message names the option.
    """

    provider = _PROVIDER
    supports = Supports(key_versions=True)

    def __init__(
        self,
        *,
        key_id: str,
        client: GcpKmsClient | None = None,
        also_unwrap: Sequence[str] = (),
        call_timeout_seconds: float = 5,
    ) -> None:
        self.key_id = name_of_key(_OWNER, "key_id", key_id, _key_name, _FORM)
        self._also_unwrap = names_of_keys(_OWNER, "also_unwrap", also_unwrap, _key_name, _FORM)
        number(_OWNER, "call_timeout_seconds", call_timeout_seconds, 0.01, 60)
        self._timeout_seconds = call_timeout_seconds
        import google_crc32c  # noqa: PLC0415 - the extra `gcp`.

        self._crc32c = google_crc32c.value
        self._client = _own_client() if client is None else client
        with_method(_OWNER, "client", self._client, "encrypt")
        with_method(_OWNER, "client", self._client, "decrypt")

    def __repr__(self) -> str:
        return f"GcpKmsKeyWrapper({self.key_id})"

    def owns(self, wrapped: WrappedKey) -> bool:
        return wrapped.provider == _PROVIDER and self._key_to_ask(wrapped.key_id) is not None

    def wrap(
        self,
        data_key: bytes | bytearray,
        context: Mapping[str, str],
        *,
        on_service_date: OnServiceDate | None = None,  # noqa: ARG002 - gRPC returns no date.
    ) -> WrappedKey:
        """Wraps 32 bytes that are not all equal. Raises KeyWrapperError for a failure."""
        check_plaintext(_OWNER, data_key, [DATA_KEY_BYTES])
        check_context(_OWNER, context)
        answer = self._encrypt(data_key, context)
        if isinstance(answer, KeyWrapperError):
            raise answer
        return answer

    def unwrap(
        self,
        wrapped: WrappedKey,
        context: Mapping[str, str],
        *,
        on_service_date: OnServiceDate | None = None,  # noqa: ARG002 - gRPC returns no date.
    ) -> bytearray:
        """The data key, 32 bytes. Raises KeyWrapperError, without any part of the SDK's error, for
        a failure."""
        check_context(_OWNER, context)
        asked = self._key_to_ask(wrapped.key_id)
        if wrapped.provider != _PROVIDER or asked is None:
            raise _corrupt("the wrapped key names another provider or key")
        if not _TAG_BYTES < len(wrapped.wrapped) <= _MAX_WRAPPED_BYTES:
            raise _corrupt(f"the wrapped key is not 33 to {_MAX_WRAPPED_BYTES} bytes long")
        answer = self._decrypt(asked, wrapped, context)
        if isinstance(answer, KeyWrapperError):
            raise answer
        return answer

    def _key_to_ask(self, version: str) -> str | None:
        """The configured key to which a version belongs; None if there is none."""
        found = _version_name(version)
        known = (self.key_id, *self._also_unwrap)
        return found["key"] if found and found["key"] in known else None

    def _authenticated(self, context: Mapping[str, str]) -> dict[str, object]:
        data = canonical_json(dict(context)).encode("utf-8")
        return {
            "additional_authenticated_data": data,
            "additional_authenticated_data_crc32c": self._crc32c(data),
        }

    def _encrypt(
        self, data_key: bytes | bytearray, context: Mapping[str, str]
    ) -> WrappedKey | KeyWrapperError:
        plaintext = bytes(data_key)
        request = {
            "name": self.key_id,
            "plaintext": plaintext,
            "plaintext_crc32c": self._crc32c(plaintext),
            **self._authenticated(context),
        }
        try:
            answer = self._client.encrypt(
                request=request, timeout=self._timeout_seconds, retry=None
            )
        except Exception as error:
            return _failure(error, "wrap")
        version = getattr(answer, "name", None)
        found = _version_name(version) if isinstance(version, str) else None
        if found is None or found["key"] != self.key_id:
            return _corrupt("Cloud KMS answered for a key other than key_id", "wrap")
        if (
            getattr(answer, "verified_plaintext_crc32c", None) is not True
            or getattr(answer, "verified_additional_authenticated_data_crc32c", None) is not True
        ):
            return _corrupt("Cloud KMS did not verify the checksums of the request", "wrap")
        ciphertext = getattr(answer, "ciphertext", None)
        if not self._holds(ciphertext, getattr(answer, "ciphertext_crc32c", None)):
            return _corrupt("the checksum of the answer does not match", "wrap")
        made = bytes(ciphertext)  # type: ignore[arg-type]
        if not 1 <= len(made) <= _MAX_WRAPPED_BYTES - _TAG_BYTES:
            return _corrupt("the answer has no wrapped key", "wrap")
        return WrappedKey(_PROVIDER, found[0], made + _version_tag(data_key, found[0]))

    def _decrypt(
        self, asked: str, wrapped: WrappedKey, context: Mapping[str, str]
    ) -> bytearray | KeyWrapperError:
        """Runs in a separate frame, so that no traceback references an answer."""
        ciphertext, tag = wrapped.wrapped[:-_TAG_BYTES], wrapped.wrapped[-_TAG_BYTES:]
        request = {
            # Decrypt takes the name of the key, and finds its version in the ciphertext.
            "name": asked,
            "ciphertext": ciphertext,
            "ciphertext_crc32c": self._crc32c(ciphertext),
            **self._authenticated(context),
        }
        try:
            answer = self._client.decrypt(
                request=request, timeout=self._timeout_seconds, retry=None
            )
        except Exception as error:
            return _failure(error, "unwrap")
        plaintext = getattr(answer, "plaintext", None)
        data_key = taken_data_key(_PROVIDER, plaintext, [DATA_KEY_BYTES])
        if isinstance(data_key, KeyWrapperError):
            return data_key
        if not self._holds(plaintext, getattr(answer, "plaintext_crc32c", None)):
            overwrite(data_key)
            return _corrupt("the checksum of the answer does not match")
        if not hmac.compare_digest(tag, _version_tag(data_key, wrapped.key_id)):
            overwrite(data_key)
            return _corrupt(
                "the wrapped key was made with a key version other than the one that it names"
            )
        return data_key

    def _holds(self, data: object, checksum: object) -> bool:
        """Whether bytes exist and match the checksum that came with them. A missing checksum does
        not match."""
        value = getattr(checksum, "value", checksum)
        return isinstance(data, bytes) and isinstance(value, int) and value == self._crc32c(data)


def _version_tag(data_key: bytes | bytearray, version: str) -> bytes:
    """A tag that binds the name of the key version to a wrapped data key. Someone who can only move
    wrapped keys, without the data key, cannot compute it."""
    told = f"sealring/gcp-kms/version/1\n{version}"
    return hmac.digest(bytes(data_key), told.encode("utf-8"), "sha256")


def _corrupt(hint: str, operation: KeyWrapperOperation = "unwrap") -> KeyWrapperError:
    return KeyWrapperError("corrupt", _PROVIDER, operation=operation, hint=hint)


def _failure(error: Exception, operation: KeyWrapperOperation) -> KeyWrapperError:
    """Classifies an error by status, reason and violations only, because a message can contain
    parts of the request."""
    status = getattr(getattr(error, "grpc_status_code", None), "name", None)
    reason = getattr(error, "reason", None)
    names = [*_violations(error), reason, status]
    if operation == "wrap" and status == "INVALID_ARGUMENT":
        kind, hint = _WRAP_REFUSED
        return KeyWrapperError(kind, _PROVIDER, operation=operation, code=status, hint=hint)
    code = next((name for name in names if isinstance(name, str) and name in ERROR_TABLE), None)
    is_external = any(name.startswith("EXTERNAL_") for name in names if isinstance(name, str))
    if is_external and code == "FAILED_PRECONDITION":
        hint = "the external key manager failed"
        return KeyWrapperError("unavailable", _PROVIDER, operation=operation, hint=hint)
    kind, hint = ERROR_TABLE[code] if code is not None else ("unavailable", None)
    if code in (None, "UNAVAILABLE"):
        code, hint = _no_answer(error, code)
    return KeyWrapperError(kind, _PROVIDER, operation=operation, code=code, hint=hint)


def _no_answer(error: Exception, code: str | None) -> tuple[str | None, str | None]:
    """Why there was no answer: the connection, or the credentials of google-auth."""
    # gRPC reports UNAVAILABLE for every connection that was never established. The message is
    # searched for known texts, and never copied.
    text = str(getattr(error, "message", ""))
    found = (one for pattern, one in _NO_CONNECTION if re.search(pattern, text))
    told = next(found, None)
    failure = connection_failure(error) if told is None else failure_with(told)
    if failure is not None:
        return failure
    names = [base.__name__ for base in type(error).__mro__]
    name = next((one for one in names if one in _NO_TOKEN), None)
    return (code, None) if name is None else (name, _CREDENTIALS)


def _violations(error: Exception) -> list[object]:
    """Of a FAILED_PRECONDITION (`google.rpc.PreconditionFailure`)."""
    details = getattr(error, "details", None)
    return [
        getattr(violation, "type", None)
        for detail in (list(details)[:8] if isinstance(details, (list, tuple)) else ())
        for violation in list(getattr(detail, "violations", ()))[:8]
    ]


def _own_client() -> GcpKmsClient:
    from google.cloud.kms import KeyManagementServiceClient  # noqa: PLC0415 - the extra `gcp`.

    client: GcpKmsClient = KeyManagementServiceClient()
    return client
