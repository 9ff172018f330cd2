"""Reads what vendors' clients return and raise, without ever keeping it."""

import math
import re
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from .key_wrapper import OnServiceDate

_REQUEST_ID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class AwsFailure(NamedTuple):
    """The facts of an error of boto3 that may be told."""

    names: tuple[str, ...]
    """Its code, and the names of its class: for looking up in a table, not for showing."""
    status: int | None
    request_id: str | None


def aws_failure(error: BaseException, on_service_date: OnServiceDate | None) -> AwsFailure:
    """What an error of boto3 says: `response` of a ClientError, class names of others. The message
    is not looked at: it can hold what the request or the answer held."""
    response = getattr(error, "response", None)
    note_aws_date(response, on_service_date)
    code = member(response, "Error", "Code")
    status = member(response, "ResponseMetadata", "HTTPStatusCode")
    request_id = member(response, "ResponseMetadata", "RequestId")
    names = tuple(base.__name__ for base in type(error).__mro__)
    return AwsFailure(
        names=(code, *names) if isinstance(code, str) else names,
        status=status if isinstance(status, int) and 100 <= status <= 599 else None,
        request_id=_request_id(request_id),
    )


def note_aws_date(response: object, on_service_date: OnServiceDate | None) -> None:
    """Tells of the `Date` header of an answer (RFC 9110, section 6.6.1). What is no date is not
    told."""
    header = member(response, "ResponseMetadata", "HTTPHeaders", "date")
    if on_service_date is None or not isinstance(header, str):
        return
    try:
        ms = parsedate_to_datetime(header).timestamp() * 1_000
    except (ValueError, OverflowError):
        return
    if math.isfinite(ms):
        on_service_date(ms)


def member(value: object, *names: str) -> object:
    """A member of nested dicts; None where there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _request_id(value: object) -> str | None:
    # It comes in a header that anybody on the way can fill, and this form has no room for a key.
    return value if isinstance(value, str) and _REQUEST_ID.fullmatch(value) else None
