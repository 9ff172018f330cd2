"""A ring in one object of Amazon S3, as `s3Ring` of @sealring/s3 keeps it."""

import json
import re
from collections.abc import Mapping
from typing import Protocol

from ..errors import RingStoreError, RingStoreErrorKind
from ..foreign import AwsFailure, aws_failure, member, note_aws_date
from ..key_wrapper import OnServiceDate
from ..options import seconds, show, text
from ..ring.document import MAX_DOCUMENT_BYTES
from ..ring.store import StoredRing
from .text import document_text

_OWNER = "S3Ring"
_RIGHTS = "S3 refused the call; for an object that is not there also to who may not list the bucket"
_CREDENTIALS = "the credentials are missing, wrong or expired"
_REQUEST = "S3 does not accept the request: check bucket, key and expected_bucket_owner"
_KMS = "the object's KMS key cannot be used"

# Source: "Error responses" of the Amazon S3 API reference. What is not here is `unavailable`, or
# `denied` by its status: nothing but S3's own NoSuchKey with its 404 is an absent object.
_DENIED: dict[str, str] = {
    **dict.fromkeys("AccessDenied AllAccessDisabled AccountProblem NotSignedUp".split(), _RIGHTS),
    **dict.fromkeys("InvalidAccessKeyId InvalidToken SignatureDoesNotMatch".split(), _CREDENTIALS),
    **dict.fromkeys(
        "InvalidArgument InvalidBucketName InvalidRequest KeyTooLongError MethodNotAllowed".split(),
        _REQUEST,
    ),
    **dict.fromkeys(
        "KMS.DisabledException KMS.KMSInvalidStateException KMS.NotFoundException".split(), _KMS
    ),
}
# Whatever their status: credentials or a clock that lapsed say nothing about the right to the ring.
_LAPSED = frozenset(
    "ExpiredToken ExpiredTokenException TokenRefreshRequired RequestExpired RequestTimeTooSkewed "
    "NoCredentialsError PartialCredentialsError CredentialRetrievalError "
    "TokenRetrievalError".split()
)


class S3Client(Protocol):
    """The part of a boto3 `s3` client that is used."""

    def get_object(
        self,
        *,
        Bucket: str,  # noqa: N803
        Key: str,  # noqa: N803
        **more: str,
    ) -> Mapping[str, object]: ...


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

    Raises:
        TypeError | ValueError: for an option that is wrong, naming it.
    """

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
        timeout = seconds(_OWNER, "timeout_seconds", timeout_seconds, 0.01, 60)
        if client is not None and not callable(getattr(client, "get_object", None)):
            raise TypeError(f"{_OWNER}: client must be a boto3 s3 client, got {show(client)}")
        self._client = client or _own_client(timeout)

    @property
    def kind(self) -> str:
        return "s3"

    def read(self, *, on_service_date: OnServiceDate | None = None) -> StoredRing | None:
        """The document; None when S3 says that there is no such object.

        Raises:
            RingStoreError: with nothing of boto3's in it.
        """
        answer = self._get(on_service_date)
        if not isinstance(answer, AwsFailure):
            return answer
        if "NoSuchKey" in answer.names and answer.status == 404:
            return None
        raise _refusal(answer)

    def _get(self, on_service_date: OnServiceDate | None) -> StoredRing | AwsFailure:
        try:
            answer = self._client.get_object(**self._object)
            note_aws_date(answer, on_service_date)
            length = member(answer, "ContentLength")
            body = member(answer, "Body")
            if isinstance(length, int) and length > MAX_DOCUMENT_BYTES:
                _close(body)
                data = b"\0" * (MAX_DOCUMENT_BYTES + 1)
            else:
                data = body.read(MAX_DOCUMENT_BYTES + 1)  # type: ignore[attr-defined]
        except Exception as error:
            return aws_failure(error, on_service_date)
        document = document_text(data, "the object")
        if isinstance(length, int) and len(data) != length:
            raise RingStoreError("unavailable", "the body ended early")
        return StoredRing(document, _revision(answer))


def _revision(answer: Mapping[str, object]) -> str:
    """What tells this version of the object from every other."""
    etag = member(answer, "ETag")
    if not isinstance(etag, str) or etag == "":
        raise RingStoreError("unavailable", "the answer has no ETag")
    write_id = member(answer, "Metadata", "sealring-write")
    return json.dumps([write_id, member(answer, "VersionId"), etag])


def _refusal(failure: AwsFailure) -> RingStoreError:
    kind: RingStoreErrorKind = "unavailable"
    for name in failure.names:
        if name in _DENIED:
            return RingStoreError("denied", f"{_DENIED[name]} ({name})")
        if name in _LAPSED:
            return RingStoreError("unavailable", f"{_CREDENTIALS}, or the clock is off ({name})")
    if failure.status in (401, 403):
        kind = "denied"
    told = "" if failure.status is None else f" (status {failure.status})"
    return RingStoreError(kind, f"{_RIGHTS if kind == 'denied' else 'the call failed'}{told}")


def _close(body: object) -> None:
    close = getattr(body, "close", None)
    if callable(close):
        close()


def _own_client(timeout: float) -> S3Client:
    import boto3  # noqa: PLC0415 - the extra `s3`.
    from botocore.config import Config  # noqa: PLC0415

    config = Config(
        connect_timeout=timeout, read_timeout=timeout, retries={"total_max_attempts": 1}
    )
    client: S3Client = boto3.client("s3", config=config)
    return client
