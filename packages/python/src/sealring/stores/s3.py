"""A ring in one object of Amazon S3, as `s3Ring` of @sealring/s3 keeps it."""

import base64
import json
import re
import secrets
import zlib
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from ..aws import (
    CLOCK,
    CREDENTIALS,
    AwsFailure,
    aws_client,
    aws_error_rows,
    aws_failure,
    member,
    note_aws_date,
    store_refusal,
)
from ..errors import RingConflictError, RingStoreError, RingStoreErrorKind
from ..failures import rows
from ..key_wrapper import OnServiceDate
from ..options import one_of, text
from ..ring.document import MAX_DOCUMENT_BYTES
from ..ring.store import StoredRing, check_write, document_text

_OWNER = "S3Ring"
_RIGHTS = (
    "S3 refused the call; without the permission to list the bucket, it also does so for an object "
    "that does not exist"
)
_REQUEST = "S3 does not accept the request: check the bucket, the key and expected_bucket_owner"
_KMS = "the object's KMS key cannot be used"
_BUSY = "S3 cannot serve requests at the moment"
# For a directory bucket, boto3 creates a session in S3 first.
_OPERATIONS = ("GetObject", "PutObject", "CreateSession")
_ENCRYPTIONS = ("AES256", "aws:kms", "aws:kms:dsse")
_WRITE_ID = "sealring-write"
_WRITE_ID_BYTES = 9
# The codes for 409 and 412, and for the 404 of an object that was deleted in the meantime.
_CONFLICTS = frozenset({"PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey"})

# Source: "Error responses" of the Amazon S3 API reference. Anything else is `unavailable`, or
# `denied` if its status says so. Only S3's own NoSuchKey with its 404 means an absent object.
ERROR_TABLE: dict[str, tuple[RingStoreErrorKind, str]] = {
    # A missing bucket must not look like an absent ring; the bucket may be created in a moment.
    "NoSuchBucket": ("unavailable", "the bucket does not exist"),
    **aws_error_rows(
        denied=("denied", _RIGHTS),
        credentials=("denied", CREDENTIALS),
        expired=("unavailable", CREDENTIALS),
        clock=("unavailable", CLOCK),
        request=("denied", _REQUEST),
        throttled=("unavailable", _BUSY),
        busy=("unavailable", _BUSY),
    ),
    **rows(("denied", _RIGHTS), "AllAccessDisabled AccountProblem NotSignedUp"),
    **rows(("denied", CREDENTIALS), "InvalidAccessKeyId InvalidToken SignatureDoesNotMatch"),
    **rows(
        ("denied", _REQUEST),
        "InvalidArgument InvalidBucketName InvalidRequest KeyTooLongError MethodNotAllowed",
    ),
    **rows(
        ("denied", _KMS),
        "KMS.DisabledException KMS.KMSInvalidStateException KMS.NotFoundException",
    ),
    "NotImplemented": ("read-only", "this service has no conditional writes"),
    "EntityTooLarge": ("too-large", "the service does not accept an object of this size"),
    "InvalidObjectState": (
        "unavailable",
        "the object is archived: restore it, and exclude it from lifecycle rules",
    ),
    **rows(
        ("unavailable", "the client's region differs from the bucket's"),
        "AuthorizationHeaderMalformed IllegalLocationConstraintException PermanentRedirect "
        "Redirect TemporaryRedirect",
    ),
    "TokenRefreshRequired": ("unavailable", CREDENTIALS),
    **rows(
        ("unavailable", "the document was damaged in transit"),
        "BadDigest XAmzContentChecksumMismatch IncompleteBody",
    ),
    **rows(("unavailable", _BUSY), "InternalError OperationAborted SlowDown"),
}


class S3Client(Protocol):
    """The part of a boto3 `s3` client that is used."""

    def get_object(self, *, Bucket: str, Key: str, **more: str) -> Mapping[str, object]: ...  # noqa: N803
    def put_object(self, *, Bucket: str, Key: str, **more: object) -> Mapping[str, object]: ...  # noqa: N803


class _Object(NamedTuple):
    """The stored document."""

    document: str | RingStoreError
    """Or the reason why it is not a document."""
    etag: str
    revision: str


class S3Ring:
    """A ring in one object, created with `If-None-Match` and replaced with `If-Match`. Needs
    `s3:GetObject` and, for a member, `s3:PutObject` on it, and `s3:ListBucket` on the bucket,
    because S3 otherwise answers 403 for a ring that does not exist yet.

    Args:
        bucket: the bucket's name, or the alias or ARN of an access point in one Region.
        key: the object's key; 1 to 1 024 characters.
        client: a boto3 `s3` client, configured for one attempt per call; the store does not close
            it. By default the store creates one, with the credentials and the region
            from boto3's default chain.
        call_timeout_seconds: timeout of the client that the store creates, for connecting and for
            reading; 0.01 to 60.
        expected_bucket_owner: the 12 digits of the account that owns the bucket.
        server_side_encryption: `AES256`, `aws:kms` or `aws:kms:dsse`. By default the bucket's
            setting.
        sse_kms_key_id: the KMS key for `aws:kms` and `aws:kms:dsse`.

    A wrong option raises TypeError or ValueError; the message names the option.
    """

    kind = "s3"

    def __init__(
        self,
        *,
        bucket: str,
        key: str,
        client: S3Client | None = None,
        call_timeout_seconds: float = 5,
        expected_bucket_owner: str | None = None,
        server_side_encryption: str | None = None,
        sse_kms_key_id: str | None = None,
    ) -> None:
        self._object = {
            "Bucket": text(_OWNER, "bucket", bucket, 2_048),
            "Key": text(_OWNER, "key", key, 1_024),
        }
        self.location = f"s3://{bucket}/{key}"
        if expected_bucket_owner is not None:
            owner = text(_OWNER, "expected_bucket_owner", expected_bucket_owner, 12)
            if re.fullmatch("[0-9]{12}", owner) is None:
                raise ValueError(f"{_OWNER}: expected_bucket_owner must be 12 digits")
            self._object["ExpectedBucketOwner"] = owner
        self._encryption: dict[str, str] = {}
        if server_side_encryption is not None:
            name = one_of(_OWNER, "server_side_encryption", server_side_encryption, _ENCRYPTIONS)
            self._encryption["ServerSideEncryption"] = name
        if sse_kms_key_id is not None:
            self._encryption["SSEKMSKeyId"] = text(_OWNER, "sse_kms_key_id", sse_kms_key_id, 2_048)
        self._client = aws_client(_OWNER, "s3", "get_object", client, call_timeout_seconds)

    def read(self, *, on_service_date: OnServiceDate | None = None) -> StoredRing | None:
        """The document; None when S3 answers that the object does not exist. Raises RingStoreError,
        without any part of boto3's error, for every other failure."""
        answer = self._get(on_service_date)
        if answer is None:
            return None
        if isinstance(answer, RingStoreError):
            raise answer
        document, _, revision = answer
        if isinstance(document, RingStoreError):
            raise document
        return StoredRing(document, revision)

    def write(
        self, document: str, *, expected: str | None, on_service_date: OnServiceDate | None = None
    ) -> str:
        """Replaces the object, if its revision is `expected`. Raises RingConflictError or
        RingStoreError; a write that fails as `unavailable` may have succeeded."""
        check_write(_OWNER, document, expected)
        condition = {"IfNoneMatch": "*"}
        if expected is not None:
            # The ETag only identifies bytes; the revision also changes when the same bytes are
            # written again.
            stored = self._get(on_service_date)
            if isinstance(stored, RingStoreError):
                raise stored
            if stored is None or stored.revision != expected:
                raise RingConflictError
            condition = {"IfMatch": stored.etag}
        answer = self._put(document, condition, on_service_date)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _put(
        self, document: str, condition: dict[str, str], on_service_date: OnServiceDate | None
    ) -> str | RingStoreError | RingConflictError:
        write_id = secrets.token_urlsafe(_WRITE_ID_BYTES)
        body = document.encode("utf-8")
        try:
            answer = self._client.put_object(
                **self._object,
                **condition,
                **self._encryption,
                Body=body,
                # Older versions of boto3 send no checksum by default.
                ChecksumCRC32=base64.b64encode(zlib.crc32(body).to_bytes(4, "big")).decode(),
                ContentType="text/plain; charset=utf-8",
                # A cache in between would return an outdated ring.
                CacheControl="no-store",
                Metadata={_WRITE_ID: write_id},
            )
            note_aws_date(answer, on_service_date)
        except Exception as error:
            failure = aws_failure(error, _OPERATIONS, on_service_date)
            # This is also a conflict if the object that was to be replaced has been deleted.
            is_conflict = not _CONFLICTS.isdisjoint(failure.names) or failure.status in (409, 412)
            return RingConflictError() if is_conflict else _refusal(failure)
        found = _identity_of(answer, write_id)
        if found is None:
            return RingStoreError("unavailable", "the answer to the write did not come from S3")
        return found[1]

    def _get(self, on_service_date: OnServiceDate | None) -> _Object | RingStoreError | None:
        try:
            answer = self._client.get_object(**self._object, ChecksumMode="ENABLED")
            note_aws_date(answer, on_service_date)
            length = member(answer, "ContentLength")
            body = member(answer, "Body")
            data = body.read(MAX_DOCUMENT_BYTES + 1)  # type: ignore[attr-defined]
            if len(data) <= MAX_DOCUMENT_BYTES:
                # boto3 checks the checksum only when it reads at the end.
                body.read(1)  # type: ignore[attr-defined]
            body.close()  # type: ignore[attr-defined]
        except Exception as error:
            failure = aws_failure(error, _OPERATIONS, on_service_date)
            is_absent = "NoSuchKey" in failure.names and failure.status == 404
            return None if is_absent else _refusal(failure)
        found = _identity_of(answer, member(answer, "Metadata", _WRITE_ID))
        if found is None:
            return RingStoreError("unavailable", "the answer has no ETag")
        is_short = isinstance(length, int) and len(data) != length
        if is_short and len(data) <= MAX_DOCUMENT_BYTES:
            return RingStoreError("unavailable", "the body ended early")
        document: str | RingStoreError
        try:
            document = document_text(data, "the object", found[1])
        except RingStoreError as error:
            document = error
        return _Object(document, *found)


def _identity_of(answer: object, write_id: object) -> tuple[str, str] | None:
    """ETag and revision, which identify this version of the object."""
    etag, version = member(answer, "ETag"), member(answer, "VersionId")
    if not isinstance(etag, str) or etag == "":
        return None
    # S3 names the version of an object without versions `null`, but only in answers to reads.
    version_id = version if isinstance(version, str) and version != "null" else ""
    # A document put there with another tool has no id.
    return etag, json.dumps([write_id if isinstance(write_id, str) else "", version_id, etag])


def _refusal(failure: AwsFailure) -> RingStoreError:
    return store_refusal(failure, ERROR_TABLE, "S3", _RIGHTS)
