"""A ring in one object of Amazon S3, as `s3Ring` of @sealring/s3 keeps it."""

import json
import re
from collections.abc import Mapping
from typing import Protocol

from ..aws import CREDENTIALS, AwsFailure, aws_client, aws_failure, member, note_aws_date, rows
from ..errors import RingStoreError, RingStoreErrorKind
from ..key_wrapper import OnServiceDate
from ..options import text
from ..ring.document import MAX_DOCUMENT_BYTES
from ..ring.store import StoredRing, document_text

_OWNER = "S3Ring"
_RIGHTS = "S3 refused the call; for an object that is not there also to who may not list the bucket"
_REQUEST = "S3 does not accept the request: check bucket, key and expected_bucket_owner"
_KMS = "the object's KMS key cannot be used"

# Source: "Error responses" of the Amazon S3 API reference. What is not here is `unavailable`, or
# `denied` by its status: nothing but S3's own NoSuchKey with its 404 is an absent object.
_TABLE: dict[str, tuple[RingStoreErrorKind, str]] = {
    **rows(("denied", _RIGHTS), "AccessDenied AllAccessDisabled AccountProblem NotSignedUp"),
    **rows(("denied", CREDENTIALS), "InvalidAccessKeyId InvalidToken SignatureDoesNotMatch"),
    **rows(
        ("denied", _REQUEST),
        "InvalidArgument InvalidBucketName InvalidRequest KeyTooLongError MethodNotAllowed",
    ),
    **rows(
        ("denied", _KMS),
        "KMS.DisabledException KMS.KMSInvalidStateException KMS.NotFoundException",
    ),
    # Whatever their status: credentials or a clock that lapsed say nothing about the right to the
    # ring.
    **rows(
        ("unavailable", f"{CREDENTIALS}, or the clock is off"),
        "ExpiredToken ExpiredTokenException TokenRefreshRequired RequestExpired "
        "RequestTimeTooSkewed NoCredentialsError PartialCredentialsError "
        "CredentialRetrievalError TokenRetrievalError",
    ),
}


class S3Client(Protocol):
    """The part of a boto3 `s3` client that is used."""

    def get_object(self, *, Bucket: str, Key: str, **more: str) -> Mapping[str, object]: ...  # noqa: N803


class S3Ring:
    """Reads a ring from one object. Needs `s3:GetObject` on it, and `s3:ListBucket` on the bucket,
    else S3 says 403 of a ring that is not there yet.

    Args:
        bucket: the bucket's name, or the alias or ARN of an access point in one Region.
        key: the object's key; 1 to 1 024 characters.
        client: a boto3 `s3` client, made with one attempt; stays yours. By default one of its own,
            with credentials and region by boto3's default chain.
        timeout_seconds: of the client of its own, for connecting and for reading; 0.01 to 60.
        expected_bucket_owner: the 12 digits of the account that owns the bucket.

    A wrong option is a TypeError or a ValueError that names it.
    """

    kind = "s3"

    def __init__(
        self,
        *,
        bucket: str,
        key: str,
        client: S3Client | None = None,
        timeout_seconds: float = 5,
        expected_bucket_owner: str | None = None,
    ) -> None:
        self._object = {
            "Bucket": text(_OWNER, "bucket", bucket, 2_048),
            "Key": text(_OWNER, "key", key, 1_024),
        }
        if expected_bucket_owner is not None:
            if re.fullmatch("[0-9]{12}", str(expected_bucket_owner)) is None:
                raise ValueError(f"{_OWNER}: expected_bucket_owner must be 12 digits")
            self._object["ExpectedBucketOwner"] = expected_bucket_owner
        self._client = aws_client(_OWNER, "s3", "get_object", client, timeout_seconds)

    def read(self, *, on_service_date: OnServiceDate | None = None) -> StoredRing | None:
        """The document; None when S3 says that there is no such object. RingStoreError, with
        nothing of boto3's in it, for everything else."""
        answer = self._get(on_service_date)
        if isinstance(answer, RingStoreError):
            raise answer
        return answer

    def _get(self, on_service_date: OnServiceDate | None) -> StoredRing | RingStoreError | None:
        try:
            answer = self._client.get_object(**self._object)
            note_aws_date(answer, on_service_date)
            length = member(answer, "ContentLength")
            body = member(answer, "Body")
            data = body.read(MAX_DOCUMENT_BYTES + 1)  # type: ignore[attr-defined]
            body.close()  # type: ignore[attr-defined]
        except Exception as error:
            failure = aws_failure(error, on_service_date)
            is_absent = "NoSuchKey" in failure.names and failure.status == 404
            return None if is_absent else _refusal(failure)
        document = document_text(data, "the object")
        if isinstance(length, int) and len(data) != length:
            raise RingStoreError("unavailable", "the body ended early")
        etag = member(answer, "ETag")
        if not isinstance(etag, str) or etag == "":
            raise RingStoreError("unavailable", "the answer has no ETag")
        # What tells this version of the object from every other.
        write_id = member(answer, "Metadata", "sealring-write")
        return StoredRing(document, json.dumps([write_id, member(answer, "VersionId"), etag]))


def _refusal(failure: AwsFailure) -> RingStoreError:
    found = failure.row_of(_TABLE)
    if found is not None:
        name, (kind, detail) = found
        return RingStoreError(kind, f"{detail} ({name})")
    told = "" if failure.status is None else f" (status {failure.status})"
    if failure.status in (401, 403):
        return RingStoreError("denied", f"{_RIGHTS}{told}")
    return RingStoreError("unavailable", f"the call failed{told}")
