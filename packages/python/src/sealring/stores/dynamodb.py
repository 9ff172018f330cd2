"""A ring in DynamoDB, as `dynamodbRing` of @sealring/dynamodb keeps it: one item."""

import re
import secrets
from collections.abc import Mapping
from typing import Protocol

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
from ..options import label, text
from ..ring.document import MAX_DOCUMENT_BYTES
from ..ring.store import StoredRing, check_write

_OWNER = "DynamodbRing"
_REVISION_BYTES = 16
# The revision reported for an item that has none, because something else was written in the ring's
# place.
_NO_REVISION = "foreign"
_TABLE_NAME = re.compile(
    r"(?:arn:[a-z0-9-]{3,20}:dynamodb:[a-z0-9-]{1,32}:[0-9]{12}:table/)?[A-Za-z0-9._-]{3,255}",
    re.ASCII,
)
_RIGHTS = "DynamoDB refused the call: check the permissions of the caller"
_REQUEST = "DynamoDB does not accept the request: the table's only key must be a string named pk"
_TABLE = "the table does not exist in this account and region, or is not ready yet"
_THROTTLED = "DynamoDB throttled the call: the table or the account is over its capacity"
# boto3 may ask DynamoDB for its endpoint first.
_OPERATIONS = ("GetItem", "PutItem", "DescribeEndpoints")
CONDITION_FAILED = "ConditionalCheckFailedException"
_CONFLICTS = frozenset(
    {CONDITION_FAILED, "ReplicatedWriteConflictException", "TransactionConflictException"}
)
# boto3 treats any empty 200, even one from a proxy, as the answer that the item does not exist or
# that it was written. Only DynamoDB itself can report the capacity that a call consumed.
_CAPACITY = {"ReturnConsumedCapacity": "TOTAL"}
# Sources: the "Errors" of GetItem and PutItem and the "Common errors" of the Amazon DynamoDB API
# reference. Anything else is `unavailable`, or `denied` if its status says so.
ERROR_TABLE: dict[str, tuple[RingStoreErrorKind, str]] = {
    # A missing table must not look like a ring that does not exist yet.
    **rows(("unavailable", _TABLE), "ResourceNotFoundException ResourceInUseException"),
    **aws_error_rows(
        denied=("denied", _RIGHTS),
        credentials=("denied", CREDENTIALS),
        expired=("unavailable", CREDENTIALS),
        clock=("unavailable", CLOCK),
        request=("denied", _REQUEST),
        throttled=("unavailable", _THROTTLED),
        busy=("unavailable", "DynamoDB cannot serve requests at the moment"),
    ),
    "SerializationException": ("denied", _REQUEST),
    "InvalidEndpointException": ("unavailable", "DynamoDB refused the endpoint: check the region"),
    "ItemCollectionSizeLimitExceededException": ("too-large", "a local index of the table is full"),
    "ProvisionedThroughputExceededException": ("unavailable", _THROTTLED),
}


class DynamodbWriter(Protocol):
    """The part of a boto3 `dynamodb` client that writes."""

    def put_item(self, **asked: object) -> Mapping[str, object]: ...


class DynamodbClient(DynamodbWriter, Protocol):
    """The part of a boto3 `dynamodb` client that is used."""

    def get_item(self, **asked: object) -> Mapping[str, object]: ...


class DynamodbRing:
    """A ring in one item, `{ pk: "ring#<name>", document, revision }`, replaced by one PutItem with
    a condition and read consistently. Needs `dynamodb:GetItem` and, for a member,
    `dynamodb:PutItem` on the table.

    Args:
        table: the table's name or ARN; its partition key is `pk`, a string.
        name: the ring's item; 1 to 64 characters of `[A-Za-z0-9._-]`.
        client: a boto3 `dynamodb` client, configured for one attempt per call; the store does not
            close it. By default the store creates one, with the credentials and the
            region from boto3's default chain.
        call_timeout_seconds: timeout of the client that the store creates, for connecting and for
            reading; 0.01 to 60.

    A wrong option raises TypeError or ValueError; the message names the option.
    """

    kind = "dynamodb"

    def __init__(
        self,
        *,
        table: str,
        name: str = "default",
        client: DynamodbClient | None = None,
        call_timeout_seconds: float = 5,
    ) -> None:
        self._table = table_name(_OWNER, table)
        self._pk = {"S": f"ring#{label(_OWNER, 'name', name)}"}
        self.location = f"dynamodb table {table}, item ring#{name}"
        self._client = aws_client(_OWNER, "dynamodb", "get_item", client, call_timeout_seconds)

    def read(self, *, on_service_date: OnServiceDate | None = None) -> StoredRing | None:
        """The document; None when DynamoDB answers that the item does not exist. Raises
        RingStoreError, without any part of boto3's error, for every other failure."""
        answer = self._get(on_service_date)
        if isinstance(answer, RingStoreError):
            raise answer
        return answer

    def write(
        self, document: str, *, expected: str | None, on_service_date: OnServiceDate | None = None
    ) -> str:
        """Replaces the item, if its revision is `expected`. Raises RingConflictError or
        RingStoreError; a write that fails as `unavailable` may have succeeded."""
        check_write(_OWNER, document, expected)
        revision = secrets.token_urlsafe(_REVISION_BYTES)
        failure = self._put(document, revision, expected, on_service_date)
        if failure is not None:
            raise failure
        return revision

    def _get(self, on_service_date: OnServiceDate | None) -> StoredRing | RingStoreError | None:
        try:
            answer = self._client.get_item(
                TableName=self._table, Key={"pk": self._pk}, ConsistentRead=True, **_CAPACITY
            )
        except Exception as error:
            return dynamodb_refusal(aws_failure(error, _OPERATIONS, on_service_date))
        note_aws_date(answer, on_service_date)
        return _stored_in(answer) if _is_of_dynamodb(answer) else _foreign()

    def _put(
        self,
        document: str,
        revision: str,
        expected: str | None,
        on_service_date: OnServiceDate | None,
    ) -> RingStoreError | RingConflictError | None:
        item = {"pk": self._pk, "document": {"S": document}, "revision": {"S": revision}}
        failure = put_item(self._client, self._table, item, _condition(expected), on_service_date)
        if not isinstance(failure, AwsFailure):
            return failure
        if not _CONFLICTS.isdisjoint(failure.names):
            return RingConflictError()
        return dynamodb_refusal(failure)


def table_name(owner: str, table: str) -> str:
    """Checks the option `table`. Raises TypeError or ValueError for anything but a name or an
    ARN."""
    if _TABLE_NAME.fullmatch(text(owner, "table", table, 400)) is None:
        raise ValueError(f"{owner}: table must be a name or an ARN, got {ascii(table[:120])}")
    return table


def put_item(
    client: DynamodbWriter,
    table: str,
    item: Mapping[str, object],
    condition: Mapping[str, object],
    on_service_date: OnServiceDate | None = None,
) -> AwsFailure | RingStoreError | None:
    """Writes an item if a condition holds. Returns the failure, or None if the item was written."""
    try:
        answer = client.put_item(TableName=table, Item=item, **condition, **_CAPACITY)
    except Exception as error:
        return aws_failure(error, _OPERATIONS, on_service_date)
    note_aws_date(answer, on_service_date)
    return None if _is_of_dynamodb(answer) else _foreign()


def _stored_in(answer: object) -> StoredRing | RingStoreError | None:
    """The item in the answer to a read."""
    if member(answer, "Item") is None:
        return None
    document = member(answer, "Item", "document", "S")
    given = member(answer, "Item", "revision", "S")
    revision = given if isinstance(given, str) and given else _NO_REVISION
    if not isinstance(document, str) or not isinstance(given, str):
        detail = "the item has no document and revision that are strings"
        return RingStoreError("corrupt", detail, revision=revision)
    if document == "" or given == "":
        detail = "the document or revision is empty"
        return RingStoreError("corrupt", detail, revision=revision)
    if len(document.encode("utf-8", "surrogatepass")) > MAX_DOCUMENT_BYTES:
        return RingStoreError("too-large", "the document is larger than 256 KiB", revision=revision)
    return StoredRing(document, revision)


def _is_of_dynamodb(answer: object) -> bool:
    return isinstance(member(answer, "ConsumedCapacity"), dict)


def _foreign() -> RingStoreError:
    return RingStoreError("unavailable", "the answer did not come from DynamoDB")


def _condition(expected: str | None) -> dict[str, object]:
    if expected is None:
        return {"ConditionExpression": "attribute_not_exists(pk)"}
    names = {"#revision": "revision"}
    values = {":expected": {"S": expected}}
    told = "#revision = :expected"
    if expected == _NO_REVISION:
        told = (
            "attribute_exists(pk) AND (NOT attribute_type(#revision, :string)"
            " OR #revision IN (:expected, :empty))"
        )
        values = {**values, ":string": {"S": "S"}, ":empty": {"S": ""}}
    return {
        "ConditionExpression": told,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
    }


def dynamodb_refusal(failure: AwsFailure) -> RingStoreError:
    """What a failed call means for a store."""
    return store_refusal(failure, ERROR_TABLE, "DynamoDB", _RIGHTS)
