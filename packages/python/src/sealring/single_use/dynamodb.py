"""Redeemed tokens in DynamoDB, as `dynamodbSingleUse` of @sealring/dynamodb keeps them: one item
each."""

import math
import time
from datetime import datetime

from ..aws import AwsFailure, aws_client
from ..errors import SingleUseStoreError
from ..stores.dynamodb import (
    CONDITION_FAILED,
    DynamodbWriter,
    dynamodb_refusal,
    put_item,
    table_name,
)
from .store import (
    DEFAULT_CLOCK_SKEW_SECONDS,
    check_claim,
    check_clock_skew,
    claim_life_ms,
)

_OWNER = "DynamodbSingleUse"


class DynamodbSingleUse:
    """Remembers redeemed tokens in a DynamoDB table, one item each, `{ pk: "used#<id>", expires }`.
    A claim is one PutItem on the condition that the item does not exist or has expired. Make
    `expires` the table's time-to-live attribute, so that DynamoDB removes expired items; otherwise
    the table only grows. Needs `dynamodb:PutItem` on the table.

    Args:
        table: the table's name or ARN; its partition key is `pk`, a string.
        client: a boto3 `dynamodb` client, configured for one attempt per call; the store does not
            close it. By default the store creates one, with the credentials and the
            region from boto3's default chain.
        clock_skew_seconds: how long a token is remembered after it expires; give the value of the
            ring's policy; 0 to 86 400.
        call_timeout_seconds: timeout of the client that the store creates, for connecting and for
            reading; 0.01 to 60.

    A wrong option raises TypeError or ValueError; the message names the option.
    """

    def __init__(
        self,
        *,
        table: str,
        client: DynamodbWriter | None = None,
        clock_skew_seconds: float = DEFAULT_CLOCK_SKEW_SECONDS,
        call_timeout_seconds: float = 5,
    ) -> None:
        self._table = table_name(_OWNER, table)
        self._skew = check_clock_skew(_OWNER, clock_skew_seconds)
        self._client = aws_client(_OWNER, "dynamodb", "put_item", client, call_timeout_seconds)

    @property
    def clock_skew_seconds(self) -> float:
        return self._skew

    def claim(self, id: str, expires_at: datetime) -> bool:  # noqa: A002
        """See SingleUseStore.claim."""
        end = check_claim(_OWNER, id, expires_at)
        now = time.time()
        left_ms = claim_life_ms(end, self._skew, now)
        if left_ms <= 0:
            return False
        item = {
            "pk": {"S": f"used#{id}"},
            "expires": {"N": str(math.ceil(now + left_ms / 1_000))},
        }
        condition = {
            "ConditionExpression": "attribute_not_exists(pk) OR #expires < :now",
            "ExpressionAttributeNames": {"#expires": "expires"},
            "ExpressionAttributeValues": {":now": {"N": str(math.floor(now))}},
        }
        failure = put_item(self._client, self._table, item, condition)
        if failure is None:
            return True
        if not isinstance(failure, AwsFailure):
            raise SingleUseStoreError.like(failure)
        if CONDITION_FAILED in failure.names:
            return False
        raise SingleUseStoreError.like(dynamodb_refusal(failure))
