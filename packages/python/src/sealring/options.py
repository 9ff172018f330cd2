"""Checks options. Messages name the option, and its value unless that could be a secret."""

import re
from collections.abc import Sequence

_LABEL = re.compile(r"[A-Za-z0-9._-]{1,64}")


def show(value: object) -> str:
    """Describes a wrong value for a message: the value itself if it cannot be a secret, otherwise
    its type or its length."""
    if value is None or isinstance(value, (bool, int, float)):
        return str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"{len(value)} bytes"
    return f"a {type(value).__name__}"


def number(
    owner: str, name: str, value: object, least: float, most: float, *, whole: bool = False
) -> None:
    """Raises TypeError unless the value is a number, and ValueError if it is NaN or outside the
    range `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        what = "an int" if whole else "a number"
        raise TypeError(f"{owner}: {name} must be {what}, got {show(value)}")
    if not least <= value <= most:
        raise ValueError(f"{owner}: {name} must be from {least} to {most}, got {value}")


def flag(owner: str, name: str, value: object) -> None:
    """Raises TypeError unless the value is a bool."""
    if not isinstance(value, bool):
        raise TypeError(f"{owner}: {name} must be a bool, got {show(value)}")


def text(owner: str, name: str, value: object, most: int) -> str:
    """1 to `most` characters."""
    if not isinstance(value, str):
        raise TypeError(f"{owner}: {name} must be a str, got {show(value)}")
    if not 1 <= len(value) <= most:
        raise ValueError(f"{owner}: {name} must have 1 to {most} characters, got {len(value)}")
    return value


def one_of(owner: str, name: str, value: object, choices: Sequence[str]) -> str:
    """One of several strings."""
    told = f"{owner}: {name} must be one of {', '.join(choices)}, got"
    if not isinstance(value, str):
        raise TypeError(f"{told} {show(value)}")
    if value not in choices:
        raise ValueError(f"{told} {value[:80]!r}")
    return value


def label(owner: str, name: str, value: object) -> str:
    """Checks a ring name or purpose. Keys are derived from it, so its characters are restricted."""
    if _LABEL.fullmatch(text(owner, name, value, 64)) is None:
        wanted = "1 to 64 characters of [A-Za-z0-9._-]"
        raise ValueError(f"{owner}: {name} must be {wanted}, got {ascii(value)}")
    return str(value)


def sequence(owner: str, name: str, value: object) -> None:
    """Raises TypeError unless the value is a sequence; text and bytes do not count as one."""
    if isinstance(value, (str, bytes, bytearray)) or not isinstance(value, Sequence):
        raise TypeError(f"{owner}: {name} must be a list, got {show(value)}")


def with_method(owner: str, name: str, value: object, method: str) -> None:
    """Raises TypeError if the value lacks the method."""
    if not callable(getattr(value, method, None)):
        raise TypeError(f"{owner}: {name} must have a method {method}, got {show(value)}")


def is_constant(data: bytes | bytearray) -> bool:
    """Whether all bytes are the same, as in a buffer that was never filled."""
    return len(set(data)) <= 1
