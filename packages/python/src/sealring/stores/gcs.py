"""A ring in one object of Google Cloud Storage, as `gcsRing` of @sealring/gcs keeps it."""

import os
import re
from typing import Any, Protocol

from ..errors import RingConflictError, RingStoreError, RingStoreErrorKind
from ..failures import rows, unreachable
from ..key_wrapper import OnServiceDate
from ..options import number, text, with_method
from ..ring.document import MAX_DOCUMENT_BYTES
from ..ring.store import StoredRing, check_write, document_text
from ..urls import endpoint_url

_OWNER = "GcsRing"
_EMULATOR = "STORAGE_EMULATOR_HOST"
_BUCKET_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]", re.ASCII)
# A generation as the service writes it: a positive 64-bit number.
_GENERATION = re.compile("[1-9][0-9]{0,18}", re.ASCII)
_MAX_OBJECT_BYTES = 1_024
_CONFLICTS = (409, 412)
_NOT_FOUND = 404
_RIGHTS = "Cloud Storage refused the call"
_CREDENTIALS = "the credentials are missing, wrong or expired"
_KEPT = "the object is under a retention policy or a hold, and cannot be replaced"
_COMPRESSED: tuple[RingStoreErrorKind, str] = ("corrupt", "the object is stored compressed")
_TOO_LARGE: tuple[RingStoreErrorKind, str] = ("too-large", "the document is larger than 256 KiB")
_BUSY = "Cloud Storage cannot serve requests at the moment"
_REQUEST = "Cloud Storage does not accept the request: check the bucket and the object"
# Reasons of the JSON API ("HTTP status and error codes for JSON"). For any other error, the status
# decides.
ERROR_TABLE: dict[str, tuple[RingStoreErrorKind, str]] = {
    # This concerns the bucket: a 404 for the object is not a failure.
    "notFound": ("unavailable", "the bucket does not exist"),
    **rows(("denied", _RIGHTS), "forbidden insufficientPermissions accountDisabled countryBlocked"),
    "orgPolicyConstraintFailed": ("denied", "an organization policy forbids the call"),
    "authError": ("denied", _CREDENTIALS),
    # They have no separate kind: the caller may not do this, and a retry does not help.
    **rows(
        ("denied", _REQUEST),
        "badRequest invalidArgument invalidParameter methodNotAllowed parseError sslRequired "
        "turnedDown",
    ),
    **rows(
        ("denied", "the bucket is set to Requester Pays, which a ring store does not support"),
        "AuthenticationRequiredRequesterPays UserProjectAccessDenied UserProjectAccountProblem "
        "userProjectInvalid userProjectMissing",
    ),
    **rows(
        ("denied", "the object's Cloud KMS key cannot be used"),
        "cloudKmsBadKey cloudKmsDecryptionKeyNotFound cloudKmsDisabledKey "
        "cloudKmsEncryptionKeyNotFound cloudKmsKeyLocationNotAllowed "
        "resourceIsEncryptedWithCustomerEncryptionKey",
    ),
    **rows(("read-only", _KEPT), "objectUnderActiveHold retentionPolicyNotMet"),
    "uploadTooLarge": ("too-large", "the service does not accept an object of this size"),
    # The service also gives this reason when a checksum does not match.
    "invalid": (
        "unavailable",
        "the document was damaged in transit, or the request is not accepted",
    ),
    # These are not `denied`, although some come with a 403, because a rate was exceeded and no
    # permission is missing.
    **rows(
        ("unavailable", _BUSY),
        "backendError internalError uploadBrokenConnection quotaExceeded rateLimitExceeded "
        "userRateLimitExceeded",
    ),
}
# Errors of google-auth, which mean that there was no token. They say nothing about the permission
# to use the ring.
_NO_TOKEN = frozenset({"DefaultCredentialsError", "RefreshError"})


class GcsClient(Protocol):
    """The part of a `Client` of google-cloud-storage that is used."""

    def bucket(self, bucket_name: str) -> Any: ...
    def list_blobs(self, bucket_or_name: Any, **more: Any) -> Any: ...


class GcsRing:
    """A ring in one object. The generation of the object is the revision, and writes use
    `ifGenerationMatch`. Checksums are verified for reads and for writes. A 404 does not distinguish
    a missing object from a missing bucket, so a ring is absent only if the bucket can be listed and
    does not contain the object. Needs `storage.objects.get` and `storage.objects.list` and, for a
    member, `storage.objects.create` and `storage.objects.delete`.

    Args:
        bucket: the bucket's name.
        object: the object's name; 1 to 1 024 bytes.
        client: a `storage.Client`; the store does not close it. By default the store creates one,
            with Application Default Credentials. If the environment variable
            `STORAGE_EMULATOR_HOST` is set, that client calls the server that it names: an
            `https://` URL, or, for an emulator, an `http://` URL of this machine, to which no
            credentials are sent.
        call_timeout_seconds: timeout of one request; 0.01 to 60.

    A wrong option raises TypeError or ValueError; the message names the option.
    """

    kind = "gcs"

    def __init__(
        self,
        *,
        bucket: str,
        object: str,  # noqa: A002 - as the service calls it.
        client: GcsClient | None = None,
        call_timeout_seconds: float = 5,
    ) -> None:
        if _BUCKET_NAME.fullmatch(text(_OWNER, "bucket", bucket, 222)) is None:
            raise ValueError(f"{_OWNER}: bucket must be a bucket's name, got {ascii(bucket)}")
        if len(text(_OWNER, "object", object, _MAX_OBJECT_BYTES).encode()) > _MAX_OBJECT_BYTES:
            raise ValueError(f"{_OWNER}: object must have 1 to {_MAX_OBJECT_BYTES} bytes")
        number(_OWNER, "call_timeout_seconds", call_timeout_seconds, 0.01, 60)
        self._name = object
        self.location = f"gs://{bucket}/{object}"
        self._once = {"timeout": call_timeout_seconds, "retry": None}
        self._client = _own_client() if client is None else client
        with_method(_OWNER, "client", self._client, "bucket")
        with_method(_OWNER, "client", self._client, "list_blobs")
        self._bucket = self._client.bucket(bucket)

    def read(
        self,
        *,
        on_service_date: OnServiceDate | None = None,  # noqa: ARG002 - the SDK keeps no headers.
    ) -> StoredRing | None:
        """The document; None if the bucket exists but the object does not. Raises RingStoreError,
        without any part of the SDK's error, for every other failure."""
        answer = self._get()
        if answer is None and not self._is_listed():
            return None
        # The object was created between the two requests.
        answer = answer or self._get()
        if answer is None:
            raise RingStoreError("unavailable", "the object is in the listing but cannot be read")
        if isinstance(answer, RingStoreError):
            raise answer
        return answer

    def write(
        self,
        document: str,
        *,
        expected: str | None,
        on_service_date: OnServiceDate | None = None,  # noqa: ARG002 - the SDK keeps no headers.
    ) -> str:
        """Replaces the object, if its generation is `expected`. Raises RingConflictError or
        RingStoreError; a write that fails as `unavailable` may have succeeded."""
        check_write(_OWNER, document, expected)
        # No read can have returned such a revision, so a different revision is stored.
        if expected is not None and not _is_generation(expected):
            raise RingConflictError
        answer = self._put(document, int(expected or 0))
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _get(self) -> StoredRing | RingStoreError | None:
        """None for any 404. The generation ensures that both requests read the same version of the
        object."""
        try:
            blob = self._bucket.get_blob(self._name, **self._once)
            if blob is None:
                return None
            generation, size, encoding = blob.generation, blob.size, blob.content_encoding
            revision = str(generation)
            if not _is_generation(revision) or not isinstance(size, int):
                return RingStoreError("unavailable", "the answer has no generation")
            is_compressed = (encoding or "identity") != "identity"
            if size > MAX_DOCUMENT_BYTES or is_compressed:
                junk = _COMPRESSED if is_compressed else _TOO_LARGE
                return RingStoreError(*junk, revision=revision)
            data = blob.download_as_bytes(
                if_generation_match=generation, raw_download=True, checksum="crc32c", **self._once
            )
        except Exception as error:
            return _failure(error)
        try:
            return StoredRing(document_text(data, "the object", revision), revision)
        except RingStoreError as error:
            return error

    def _is_listed(self) -> bool:
        """Whether the bucket exists and has the object."""
        answer = self._first_name()
        if isinstance(answer, RingStoreError):
            raise answer
        return answer == self._name

    def _first_name(self) -> str | RingStoreError | None:
        try:
            found = self._client.list_blobs(
                self._bucket, prefix=self._name, max_results=1, **self._once
            )
            return next((str(blob.name) for blob in found), None)
        except Exception as error:
            return _failure(error)

    def _put(self, document: str, generation: int) -> str | RingStoreError | RingConflictError:
        try:
            blob = self._bucket.blob(self._name)
            # A cache in between would return an outdated ring.
            blob.cache_control = "no-store"
            blob.upload_from_string(
                document.encode("utf-8"),
                content_type="text/plain; charset=utf-8",
                if_generation_match=generation,
                checksum="crc32c",
                **self._once,
            )
            revision = str(blob.generation)
        except Exception as error:
            is_conflict = getattr(error, "code", None) in _CONFLICTS
            return RingConflictError() if is_conflict else _failure(error)
        if not _is_generation(revision):
            return RingStoreError("unavailable", "the answer did not come from Cloud Storage")
        return revision


def _is_generation(value: str) -> bool:
    return _GENERATION.fullmatch(value) is not None and int(value) < 2**63


def _failure(error: Exception) -> RingStoreError:
    """Classifies an error by status and reason only, because a message can contain parts of the
    request."""
    code, errors = getattr(error, "code", None), getattr(error, "errors", None)
    first = errors[0] if isinstance(errors, (list, tuple)) and errors else None
    reason = first.get("reason") if isinstance(first, dict) else None
    if isinstance(reason, str) and reason in ERROR_TABLE:
        kind, detail = ERROR_TABLE[reason]
        return RingStoreError(kind, f"{detail} ({reason})", code=reason)
    if code in (401, 403):
        return RingStoreError("denied", f"{_RIGHTS} (status {int(code)})")
    if code == _NOT_FOUND:
        return RingStoreError(
            "unavailable", "the bucket does not exist (status 404)", code="notFound"
        )
    if isinstance(code, int):
        return RingStoreError("unavailable", f"the call failed (status {int(code)})")
    name = next((one.__name__ for one in type(error).__mro__ if one.__name__ in _NO_TOKEN), None)
    failure = unreachable(error, "Cloud Storage")
    detail = "the call failed: no connection, or no credentials"
    return failure or RingStoreError("unavailable", detail, code=name)


def _own_client() -> GcsClient:
    # The SDK treats an empty value as none.
    value = os.environ.get(_EMULATOR, "")
    endpoint = endpoint_url(value)
    if value != "" and endpoint is None:
        raise ValueError(
            f"{_OWNER}: {_EMULATOR} must be an https:// URL, or an http:// URL of this machine, "
            "without a user, password, query or fragment; for an emulator on another machine, give "
            "a client"
        )
    from google.cloud import storage  # noqa: PLC0415 - the extra `gcs`.

    client: GcsClient
    if endpoint is None or endpoint.scheme == "http":
        # To a server that this variable names, the SDK sends no credentials.
        client = storage.Client()
        return client
    import google.auth  # noqa: PLC0415 - part of the extra `gcs`.

    credentials, project = google.auth.default()
    client = storage.Client(credentials=credentials, project=project)
    return client
