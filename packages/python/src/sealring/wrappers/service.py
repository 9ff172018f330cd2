"""Code that the key wrappers for KMS services share."""

import re
from collections.abc import Callable, Mapping, Sequence
from email.utils import parsedate_to_datetime

from ..derivation import overwrite
from ..errors import KeyWrapperError, KeyWrapperErrorKind
from ..key_wrapper import OnServiceDate
from ..options import is_constant, sequence, show, text

MAX_ALSO_UNWRAP = 64

_BY_STATUS: dict[int | None, KeyWrapperErrorKind] = {
    401: "denied",
    403: "denied",
    404: "not-found",
    429: "throttled",
}


def kind_of_status(status: int | None) -> KeyWrapperErrorKind:
    """The kind of failure that an HTTP status alone means. An unknown status is `unavailable`, so
    it never ends the use of a key."""
    return _BY_STATUS.get(status, "unavailable")


def check_plaintext(owner: str, data_key: bytes | bytearray, lengths: Sequence[int]) -> None:
    """Raises TypeError or ValueError for a value that is not a data key."""
    if not isinstance(data_key, (bytes, bytearray)):
        raise TypeError(f"{owner}: a data key must be bytes, got {show(data_key)}")
    if len(data_key) not in lengths or is_constant(data_key[:32]):
        told = " or ".join(map(str, lengths))
        raise ValueError(f"{owner}: a data key must have {told} bytes that are not all equal")


def check_context(owner: str, context: Mapping[str, str]) -> None:
    """Raises TypeError unless the value is a context."""
    if not isinstance(context, Mapping):
        raise TypeError(f"{owner}: context must be a mapping, got {show(context)}")
    if not all(isinstance(text, str) for item in context.items() for text in item):
        raise TypeError(f"{owner}: context must have str names and values")


def taken_data_key(
    provider: str, data: object, lengths: Sequence[int]
) -> bytearray | KeyWrapperError:
    """The data key in an answer, or the error that says why it is not one."""
    if not isinstance(data, (bytes, bytearray)) or len(data) not in lengths:
        told = " or ".join(map(str, lengths))
        return KeyWrapperError(
            "corrupt", provider, hint=f"the answer has no data key of {told} bytes"
        )
    if is_constant(data[:32]):
        return KeyWrapperError("corrupt", provider, hint="the data key is one byte repeated")
    taken = bytearray(data)
    if isinstance(data, bytearray):
        overwrite(data)
    return taken


def names_of_keys(
    owner: str, name: str, values: Sequence[str], parse: Callable[[str], object], form: str
) -> tuple[str, ...]:
    """Checks the names of replaced keys, and returns them."""
    sequence(owner, name, values)
    if len(values) > MAX_ALSO_UNWRAP:
        raise ValueError(f"{owner}: {name} must be 0 to {MAX_ALSO_UNWRAP} keys")
    return tuple(
        name_of_key(owner, f"{name}[{index}]", value, parse, form)
        for index, value in enumerate(values)
    )


def name_of_key(
    owner: str, name: str, value: str, parse: Callable[[str], object], form: str
) -> str:
    """Checks the name of one key, and returns it."""
    if parse(text(owner, name, value, 2_048)) is None:
        raise ValueError(f"{owner}: {name} must be {form}, got {ascii(value[:120])}")
    return value


def matches(pattern: str) -> Callable[[str], re.Match[str] | None]:
    """A function that matches a whole text against `pattern`."""
    return re.compile(pattern, re.ASCII).fullmatch


def note_date(header: object, on_service_date: OnServiceDate | None) -> None:
    """Reports a `Date` header (RFC 9110, section 6.6.1). An invalid date is not reported."""
    if on_service_date is None or not isinstance(header, str):
        return
    try:
        ms = parsedate_to_datetime(header).timestamp() * 1_000
    except (ValueError, OverflowError):
        return
    on_service_date(ms)
