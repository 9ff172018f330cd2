"""A ring in one blob of Azure Blob Storage, as `azureBlobRing` of @sealring/azure-blob keeps it."""

import re
from collections.abc import Callable
from typing import Any, Protocol
from urllib.parse import SplitResult

from ..errors import RingConflictError, RingStoreError, RingStoreErrorKind
from ..failures import rows, unreachable
from ..key_wrapper import OnServiceDate
from ..options import number, text, with_method
from ..ring.document import MAX_DOCUMENT_BYTES
from ..ring.store import StoredRing, check_write, document_text
from ..urls import parsed_url
from ..wrappers.service import note_date

_OWNER = "AzureBlobRing"
# An ETag is quoted, and is never the `*` that matches everything. As a condition, anything else
# could match any version.
_ETAG = re.compile(r'"[\x21\x23-\x29\x2b-\x7e]{1,128}"', re.ASCII)
_RIGHTS = "Blob Storage refused the call"
_CREDENTIALS = "the credentials are missing, wrong or expired, or this machine's clock is wrong"
_KEPT = "the blob is under an immutability policy or a legal hold"
_LEASED = "another client holds a lease on the blob"
_CONFLICTS = frozenset(
    {"BlobAlreadyExists", "ConditionNotMet", "TargetConditionNotMet", "BlobNotFound"}
)
_REQUEST = "Blob Storage does not accept the request: check the container and the blob"
_BUSY = "Blob Storage cannot serve requests at the moment"
# Storage services REST API reference, "Blob service error codes" and "Common REST API error codes";
# error names of azure-core and azure-identity. For any other error, the status decides.
ERROR_TABLE: dict[str, tuple[RingStoreErrorKind, str]] = {
    # A missing container must not look like a ring that does not exist yet.
    **rows(
        ("unavailable", "the container does not exist"),
        "ContainerNotFound ContainerBeingDeleted ResourceNotFound",
    ),
    **rows(
        ("denied", _RIGHTS),
        "AccountIsDisabled AuthorizationFailure AuthorizationPermissionMismatch "
        "AuthorizationProtocolMismatch AuthorizationResourceTypeMismatch "
        "AuthorizationServiceMismatch AuthorizationSourceIPMismatch ContainerDisabled "
        "InsufficientAccountPermissions KeyBasedAuthenticationNotPermitted "
        "PublicAccessNotPermitted UnauthorizedBlobOverwrite",
    ),
    **rows(
        ("denied", _CREDENTIALS),
        "AuthenticationFailed InvalidAuthenticationInfo NoAuthenticationInformation",
    ),
    # Invalid requests have no separate kind: they count as denied, and a retry does not help.
    **rows(
        ("denied", _REQUEST),
        "FeatureVersionMismatch InvalidBlobType InvalidHeaderValue InvalidInput "
        "InvalidQueryParameterValue InvalidResourceName InvalidUri OutOfRangeInput "
        "UnsupportedHeader UnsupportedHttpVerb",
    ),
    **rows(
        ("denied", "the storage account's encryption key cannot be used"),
        "KeyVaultAccessTokenCannotBeAcquired KeyVaultEncryptionKeyNotFound KeyVaultVaultNotFound",
    ),
    **rows(("read-only", _KEPT), "BlobImmutableDueToLegalHold BlobImmutableDueToPolicy"),
    "ConditionHeadersNotSupported": ("read-only", "this service has no conditional writes"),
    "RequestBodyTooLarge": ("too-large", "the service does not accept a blob of this size"),
    **rows(
        ("unavailable", "the blob is archived: rehydrate it, and exclude it from lifecycle rules"),
        "BlobArchived BlobBeingRehydrated",
    ),
    # These come with the status of a conflict, but reading again does not help: the lease must end
    # first.
    **rows(("unavailable", _LEASED), "LeaseIdMissing LeaseIdMismatchWithBlobOperation LeaseLost"),
    # These are not `denied`, whatever their status, because a missing token says nothing about the
    # permission to use the ring.
    **rows(("unavailable", _CREDENTIALS), "ClientAuthenticationError CredentialUnavailableError"),
    **rows(("unavailable", "the document was damaged in transit"), "Crc64Mismatch Md5Mismatch"),
    **rows(("unavailable", _BUSY), "InternalError OperationTimedOut ServerBusy"),
}


class BlobClient(Protocol):
    """The part of a `BlobClient` of azure-storage-blob that is used."""

    def download_blob(self, **more: Any) -> Any: ...
    def upload_blob(self, data: bytes, **more: Any) -> Any: ...


class AzureBlobRing:
    """A ring in one block blob, created with `If-None-Match: *` and replaced with `If-Match`; the
    ETag is the revision. Only Blob Storage's own 404 BlobNotFound means an absent ring. Needs the
    permission to read the blob and, for a member, to write it.

    Args:
        container: the container's URL, `https://ACCOUNT.blob.core.windows.net/CONTAINER`.
        blob: the blob's name; 1 to 1 024 characters.
        credential: what azure-storage-blob accepts: a `TokenCredential`, for an `https://` URL, or
            a shared key. None for a `container` with a shared access signature.
        client: instead of these three: a `BlobClient`, made with `retry_total=0`; the store does
            not close it.
        call_timeout_seconds: timeout of the client that the store creates, for connecting and for
            reading; 0.01 to 60.

    A wrong option raises TypeError or ValueError; the message names the option, but does not show
    the URL.
    """

    kind = "azure-blob"

    def __init__(
        self,
        *,
        container: str | None = None,
        blob: str | None = None,
        credential: object = None,
        client: BlobClient | None = None,
        call_timeout_seconds: float = 5,
    ) -> None:
        number(_OWNER, "call_timeout_seconds", call_timeout_seconds, 0.01, 60)
        if (client is None) != (container is not None and blob is not None):
            raise TypeError(f"{_OWNER}: give either client, or container and blob")
        if client is None:
            self._client = _own_client(container, blob, credential, call_timeout_seconds)
        else:
            with_method(_OWNER, "client", client, "download_blob")
            with_method(_OWNER, "client", client, "upload_blob")
            self._client = client
        self.location = _location_of(self._client)

    def read(self, *, on_service_date: OnServiceDate | None = None) -> StoredRing | None:
        """The document; None when Blob Storage answers that the blob does not exist.
        Raises RingStoreError, without any part of the SDK's error, for every other failure."""
        answer = self._get(on_service_date)
        if isinstance(answer, RingStoreError):
            raise answer
        return answer

    def write(
        self, document: str, *, expected: str | None, on_service_date: OnServiceDate | None = None
    ) -> str:
        """Replaces the blob, if its revision is `expected`. Raises RingConflictError or
        RingStoreError; a write that fails as `unavailable` may have succeeded."""
        check_write(_OWNER, document, expected)
        # No read can have returned such a revision, so the stored revision must be a different one.
        if expected is not None and _ETAG.fullmatch(expected) is None:
            raise RingConflictError
        answer = self._put(document, expected, on_service_date)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _get(self, on_service_date: OnServiceDate | None) -> StoredRing | RingStoreError | None:
        try:
            try:
                answer = self._download(on_service_date, offset=0, length=MAX_DOCUMENT_BYTES + 1)
            except Exception as error:
                # An empty blob has no range at all.
                if _code_of(error) != "InvalidRange":
                    raise
                answer = self._download(on_service_date)
            data, etag = answer.readall(), answer.properties.etag
        except Exception as error:
            return None if _is_absent(error) else _failure(error)
        if not isinstance(etag, str) or _ETAG.fullmatch(etag) is None:
            return RingStoreError("unavailable", "the answer has no ETag")
        try:
            return StoredRing(document_text(data, "the blob", etag), etag)
        except RingStoreError as error:
            return error

    def _download(self, on_service_date: OnServiceDate | None, **part: int) -> Any:
        return self._client.download_blob(
            validate_content=True,
            max_concurrency=1,
            raw_response_hook=_dates(on_service_date),
            **part,
        )

    def _put(
        self, document: str, expected: str | None, on_service_date: OnServiceDate | None
    ) -> str | RingStoreError | RingConflictError:
        from azure.core import MatchConditions  # noqa: PLC0415 - the extra `azure-blob`.
        from azure.storage.blob import ContentSettings  # noqa: PLC0415

        condition: dict[str, object] = {"overwrite": False}
        if expected is not None:
            condition = {
                "overwrite": True,
                "etag": expected,
                "match_condition": MatchConditions.IfNotModified,
            }
        try:
            answer = self._client.upload_blob(
                document.encode("utf-8"),
                # A cache in between would return an outdated ring.
                content_settings=ContentSettings(
                    content_type="text/plain; charset=utf-8", cache_control="no-store"
                ),
                validate_content=True,
                max_concurrency=1,
                raw_response_hook=_dates(on_service_date),
                **condition,
            )
            etag = answer["etag"]
        except Exception as error:
            # The blob that was to be replaced has been deleted.
            is_conflict = _code_of(error) in _CONFLICTS
            return RingConflictError() if is_conflict else _failure(error)
        if not isinstance(etag, str) or _ETAG.fullmatch(etag) is None:
            return RingStoreError("unavailable", "the answer did not come from Blob Storage")
        return etag


def _dates(on_service_date: OnServiceDate | None) -> Callable[[Any], None]:
    def hook(response: Any) -> None:
        note_date(response.http_response.headers.get("date"), on_service_date)

    return hook


def _code_of(error: Exception) -> str | None:
    code = getattr(error, "error_code", None)
    # The code is a member of an enum of the SDK or, if the SDK does not know it, a str.
    told = getattr(code, "value", code)
    return told if isinstance(told, str) else None


def _is_absent(error: Exception) -> bool:
    return _code_of(error) == "BlobNotFound" and getattr(error, "status_code", None) == 404


def _failure(error: Exception) -> RingStoreError:
    """Classifies an error by code and status only, because a message can contain parts of the
    request."""
    code, status = _code_of(error), getattr(error, "status_code", None)
    # A refusal by the service has a status. If there is no status, the credential failed.
    classes = () if status is not None else (one.__name__ for one in type(error).__mro__)
    found = next((one for one in (code, *classes) if one in ERROR_TABLE), None)
    if found is not None:
        kind, detail = ERROR_TABLE[found]
        return RingStoreError(kind, f"{detail} ({found})", code=found)
    if status in (401, 403):
        return RingStoreError("denied", f"{_RIGHTS} (status {status})")
    if isinstance(status, int):
        return RingStoreError("unavailable", f"the call failed (status {status})")
    failure = unreachable(error, "Blob Storage")
    return failure or RingStoreError("unavailable", "the call failed")


def _location_of(client: BlobClient) -> str:
    """The address of the blob, without its query, which can contain a signature."""
    url = getattr(client, "url", None)
    parts = parsed_url(url) if isinstance(url, str) else None
    if parts is None:
        return "azure-blob"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _own_client(container: object, blob: object, credential: object, timeout: float) -> BlobClient:
    given = text(_OWNER, "container", container, 4_096)
    name = text(_OWNER, "blob", blob, 1_024)
    parts = parsed_url(given)
    if parts is None or not _is_container_url(parts):
        raise ValueError(f"{_OWNER}: container must be the https:// URL of a container")
    # The SDK refuses to send a token over http://, with an error that does not show the cause.
    if parts.scheme == "http" and callable(getattr(credential, "get_token", None)):
        raise ValueError(
            f"{_OWNER}: credential cannot be a token credential for an http:// container"
        )
    client = _client_of(given, name, credential, timeout)
    if client is None:
        raise ValueError(
            f"{_OWNER}: azure-storage-blob rejects container, blob or credential: container must "
            "be the https:// URL of a container"
        )
    return client


def _is_container_url(parts: SplitResult) -> bool:
    if parts.username is not None or parts.fragment:
        return False
    is_local = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost", "::1")
    return (parts.scheme == "https" or is_local) and parts.path.strip("/") != ""


def _client_of(container: str, blob: str, credential: object, timeout: float) -> BlobClient | None:
    """None if the SDK rejects an argument: its errors contain the URL with its signature."""
    from azure.storage.blob import ContainerClient  # noqa: PLC0415 - the extra `azure-blob`.

    try:
        owner = ContainerClient.from_container_url(
            container,
            credential=credential,
            retry_total=0,
            connection_timeout=timeout,
            read_timeout=timeout,
        )
        client: BlobClient = owner.get_blob_client(blob)
    except Exception:
        return None
    return client
