"""Creates boto3 clients, and reads their results and errors without keeping either."""

import re
from collections.abc import Collection, Mapping
from email.utils import parsedate_to_datetime
from typing import NamedTuple, TypeVar

from .errors import RingStoreError, RingStoreErrorKind
from .failures import ConnectionFailure, connection_failure, rows, unreachable_by
from .key_wrapper import OnServiceDate
from .options import number, with_method

CREDENTIALS = "the credentials are missing, wrong or expired"
BOTOCORE_CREDENTIALS = (
    "NoCredentialsError PartialCredentialsError CredentialRetrievalError TokenRetrievalError "
    "SSOError"
)
"""The errors of botocore for credentials that are missing or expired."""
CLOCK = "this machine's clock differs from the service's"
_SIGNATURE_REFUSED = "InvalidSignatureException"
_CLOCK_MESSAGE = re.compile(r"Signature (?:expired|not yet current)\b", re.ASCII)
_CLOCK_NAME = "RequestTimeTooSkewed"
_REQUEST_ID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

Row = TypeVar("Row")
Client = TypeVar("Client")


class AwsFailure(NamedTuple):
    """What may be reported about an error of boto3."""

    names: tuple[str, ...]
    """The code and the class names of the error, for lookups in a table; never shown."""
    status: int | None
    request_id: str | None
    connection: ConnectionFailure | None
    """Why no answer arrived."""
    is_clock_error: bool = False
    """Whether the service refused the signature because of this machine's clock."""

    def row_of(self, table: Mapping[str, Row]) -> tuple[str, Row] | None:
        """The first of the names that the table has, with the row for it."""
        name = next((name for name in self.names if name in table), None)
        if name is None:
            return None
        is_clock_error = self.is_clock_error and name == _SIGNATURE_REFUSED
        return name, table[_CLOCK_NAME if is_clock_error else name]


_NO_CREDENTIALS = AwsFailure(("CredentialRetrievalError",), None, None, None)


def aws_error_rows(
    *,
    denied: Row,
    credentials: Row,
    expired: Row,
    clock: Row,
    request: Row,
    throttled: Row,
    busy: Row,
) -> dict[str, Row]:
    """The rows of an error table for the error names that all AWS services share. The row `expired`
    also covers credentials that are temporarily unavailable. Its kind must never be `denied`,
    because such an error says nothing about the permission.

    Sources: the "Common errors" of the AWS KMS, Amazon S3 and Amazon DynamoDB API references; the
    exceptions of botocore.
    """
    return {
        **rows(denied, "AccessDenied AccessDeniedException NotAuthorized OptInRequired"),
        **rows(
            credentials,
            "IncompleteSignature IncompleteSignatureException InvalidClientTokenId "
            "InvalidSignatureException MissingAuthenticationToken "
            "MissingAuthenticationTokenException UnrecognizedClientException",
        ),
        **rows(expired, f"ExpiredToken ExpiredTokenException {BOTOCORE_CREDENTIALS}"),
        **rows(clock, "RequestExpired RequestTimeTooSkewed"),
        **rows(request, "ValidationError ValidationException"),
        **rows(
            throttled,
            "LimitExceededException RequestLimitExceeded RequestThrottled "
            "RequestThrottledException Throttling ThrottledException ThrottlingException "
            "TooManyRequestsException",
        ),
        **rows(
            busy,
            "InternalFailure InternalServerError RequestTimeout RequestTimeoutException "
            "ServiceUnavailable ServiceUnavailableException",
        ),
    }


def aws_failure(
    error: BaseException, operations: Collection[str], on_service_date: OnServiceDate | None
) -> AwsFailure:
    """What may be reported about an error of boto3: from the `response` of a ClientError, and from
    the class names of any other error. The message is only compared with fixed texts, to recognize
    a wrong clock, and never copied, because it can contain parts of the request or the answer.

    If the ClientError is not about one of `operations`, the operations of the service that was
    called, it is the answer of another service, such as AWS STS, which boto3 asked for credentials.
    It then counts as an error of botocore for credentials, because it says nothing about the
    permissions on the key or the store.
    """
    operation = getattr(error, "operation_name", None)
    if isinstance(operation, str) and operation not in operations:
        return _NO_CREDENTIALS
    response = getattr(error, "response", None)
    note_aws_date(response, on_service_date)
    code = member(response, "Error", "Code")
    message = member(response, "Error", "Message")
    status = member(response, "ResponseMetadata", "HTTPStatusCode")
    request_id = member(response, "ResponseMetadata", "RequestId")
    # Any proxy can set that header, but a text of this form is too short to hold a key.
    is_id = isinstance(request_id, str) and _REQUEST_ID.fullmatch(request_id)
    names = tuple(base.__name__ for base in type(error).__mro__)
    # A wrong secret key has the same code.
    is_clock = isinstance(message, str) and _CLOCK_MESSAGE.match(message) is not None
    return AwsFailure(
        names=(code, *names) if isinstance(code, str) else names,
        status=status if isinstance(status, int) and 100 <= status <= 599 else None,
        request_id=str(request_id) if is_id else None,
        connection=connection_failure(error) if status is None else None,
        is_clock_error=is_clock and code == _SIGNATURE_REFUSED,
    )


def store_refusal(
    failure: AwsFailure,
    table: Mapping[str, tuple[RingStoreErrorKind, str]],
    service: str,
    denied: str,
) -> RingStoreError:
    """What a failure means for a store: decided by a name in the table or, if the table has none of
    the names, by the status. Anything else is `unavailable`."""
    found = failure.row_of(table)
    if found is not None:
        name, (kind, detail) = found
        return RingStoreError(kind, f"{detail} ({name})", code=name)
    told = "" if failure.status is None else f" (status {failure.status})"
    if failure.status in (401, 403):
        return RingStoreError("denied", f"{denied}{told}")
    if failure.connection is not None:
        return unreachable_by(failure.connection, service)
    return RingStoreError("unavailable", f"the call failed{told}")


def note_aws_date(response: object, on_service_date: OnServiceDate | None) -> None:
    """Reports the `Date` header of an answer (RFC 9110, section 6.6.1). An invalid date is not
    reported."""
    header = member(response, "ResponseMetadata", "HTTPHeaders", "date")
    if on_service_date is None or not isinstance(header, str):
        return
    try:
        ms = parsedate_to_datetime(header).timestamp() * 1_000
    except (ValueError, OverflowError):
        return
    on_service_date(ms)


def member(value: object, *names: str) -> object:
    """A member of nested dicts; None if it is missing."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def aws_client(
    owner: str,
    service: str,
    method: str,
    given: Client | None,
    call_timeout_seconds: float,
    region: str | None = None,
) -> Client:
    """The client that was passed, which must have the method `method`, or a new client that makes
    one attempt per call. Raises TypeError or ValueError for a wrong client or timeout."""
    number(owner, "call_timeout_seconds", call_timeout_seconds, 0.01, 60)
    if given is not None:
        with_method(owner, "client", given, method)
        return given
    import boto3  # noqa: PLC0415 - the extras `aws` and `s3`.
    from botocore.config import Config  # noqa: PLC0415
    from botocore.exceptions import NoRegionError  # noqa: PLC0415

    config = Config(
        connect_timeout=call_timeout_seconds,
        read_timeout=call_timeout_seconds,
        retries={"total_max_attempts": 1},
    )
    try:
        client: Client = boto3.client(service, region_name=region, config=config)
    except NoRegionError:
        # boto3 reads AWS_DEFAULT_REGION but not AWS_REGION, which the other SDKs read.
        hint = "no AWS Region is set: set AWS_DEFAULT_REGION, or give a client"
    except ValueError:
        # The message of boto3 can contain an endpoint from the environment, and so a password.
        hint = "boto3 rejects the AWS Region or AWS_ENDPOINT_URL: check both, or give a client"
    else:
        return client
    raise ValueError(f"{owner}: {hint}")
