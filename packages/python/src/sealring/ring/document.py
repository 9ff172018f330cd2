"""The ring document: two lines of ASCII, a JSON object and the MACs of its bytes. Parsed here;
authenticity is another step. Pure."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NoReturn

from .. import base64url
from ..derivation import KEY_ID_BYTES
from ..errors import RingStoreError
from ..key_wrapper import WrappedKey
from .policy import MAX_RING_KEYS

MAX_DOCUMENT_BYTES = 256 * 1024
MAX_EPOCH = 2**53 - 2**20
_FORMAT = "sealring/ring/1"
_MAX_WRAPS = 16
_MAX_KEY_ID_UNITS = 2_048
_MAX_DEPTH = 512
_EPOCH = datetime(1970, 1, 1)  # Naive: every time of a document is UTC.
_TWO_LINES = re.compile(r"[\x20-\x7e]+\n[\x20-\x7e]+")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_PROVIDER = re.compile(r"[a-z0-9-]{1,64}")


@dataclass(frozen=True)
class RingEntry:
    """One key of the ring, as stored. Times in milliseconds since the epoch, whole seconds."""

    id: str
    created: int
    activates: int
    """From here on it may seal."""
    seals_until: int
    """From here on it opens only."""
    opens_until: int
    """From here on it does nothing."""
    revoked: int | None
    wraps: tuple[WrappedKey, ...]


@dataclass(frozen=True)
class RingDocument:
    """A parsed ring document. Well-formed, not yet authentic."""

    ring: str
    epoch: int
    entries: tuple[RingEntry, ...]
    body: str
    """The first line, whose bytes the MACs authenticate; empty for what is not stored."""
    macs: Mapping[str, bytes]
    """By key id, 32 bytes each."""

    @property
    def is_unfounded(self) -> bool:
        """A document without keys is no ring yet: somebody may be founding one."""
        return not self.entries


def parse_document(text: str, ring: str) -> RingDocument:
    """Parses the text of a document of a ring.

    Raises:
        RingStoreError: `too-large` or `corrupt`. What is unknown or unexpected is refused, except
            members that a newer version may have added.
    """
    if len(text) > MAX_DOCUMENT_BYTES:
        raise RingStoreError("too-large", "over 256 KiB")
    if _TWO_LINES.fullmatch(text) is None:
        _refuse("not two lines of ASCII")
    body, _, second = text.partition("\n")
    first = _object(_parsed(body, "first line"), "first line")
    _check_depth(first)
    if first.get("format") != _FORMAT:
        _refuse("unknown format")
    if first.get("ring") != ring:
        _refuse("the ring has another name")
    # Nothing is critical in this version: every name in the list is one that we do not know.
    if first.get("critical") != []:
        _refuse("unknown critical member")
    keys = first.get("keys")
    if not isinstance(keys, list):
        _refuse("keys is not an array")
    if len(keys) > MAX_RING_KEYS:
        raise RingStoreError("too-large", f"more than {MAX_RING_KEYS} keys")
    entries = tuple(_entry(key) for key in keys)
    if len({entry.id for entry in entries}) != len(entries):
        _refuse("two keys with one id")
    macs = _macs(_object(_parsed(second, "second line"), "second line").get("macs"))
    return RingDocument(ring, _epoch(first.get("epoch")), entries, body, macs)


def wrap_context(ring: str, entry: RingEntry) -> dict[str, str]:
    """What every wrap of a key is bound to: ring, purpose and the key's times."""
    times = (entry.created, entry.activates, entry.seals_until, entry.opens_until)
    return {
        "sealring:ring": ring,
        "sealring:purpose": "data-key",
        "sealring:times": "/".join(_format_time(time) for time in times),
    }


def _epoch(value: object) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_EPOCH:
        _refuse("epoch out of range")
    return value


def _entry(value: object) -> RingEntry:
    key = _object(value, "key")
    key_id = key.get("id")
    if not isinstance(key_id, str) or len(base64url.decode(key_id) or b"") != KEY_ID_BYTES:
        _refuse("key id")
    created, activates, seals_until, opens_until = (
        _time(key.get(name), name) for name in ("created", "activates", "sealsUntil", "opensUntil")
    )
    if not activates < seals_until < opens_until:
        _refuse("times out of order")
    revoked = _time(key["revoked"], "revoked") if "revoked" in key else None
    wraps = key.get("wraps")
    if not isinstance(wraps, list) or not 1 <= len(wraps) <= _MAX_WRAPS:
        _refuse("wraps")
    return RingEntry(
        key_id, created, activates, seals_until, opens_until, revoked, tuple(map(_wrap, wraps))
    )


def _wrap(value: object) -> WrappedKey:
    wrap = _object(value, "wrap")
    provider, key_id = wrap.get("provider"), wrap.get("keyId")
    if not isinstance(provider, str) or _PROVIDER.fullmatch(provider) is None:
        _refuse("provider")
    if not isinstance(key_id, str) or not 1 <= _utf16_units(key_id) <= _MAX_KEY_ID_UNITS:
        _refuse("KMS key id")
    if "signature" in wrap:
        _bytes(wrap["signature"], "signature")
    return WrappedKey(provider, key_id, _bytes(wrap.get("wrapped"), "wrapped"))


def _macs(value: object) -> dict[str, bytes]:
    macs = {name: _bytes(mac, "mac") for name, mac in _object(value, "macs").items()}
    if len(macs) > MAX_RING_KEYS or any(len(mac) != 32 for mac in macs.values()):
        _refuse("macs")
    return macs


def _format_time(ms: int) -> str:
    return f"{(_EPOCH + timedelta(milliseconds=ms)).isoformat()}Z"


def _time(value: object, what: str) -> int:
    """Exactly `YYYY-MM-DDTHH:MM:SSZ`: one spelling for one second."""
    if not isinstance(value, str) or _TIME.fullmatch(value) is None:
        _refuse(what)
    try:
        parsed = datetime.strptime(value, "%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        _refuse(what)
    return (parsed - _EPOCH) // timedelta(milliseconds=1)


def _bytes(value: object, what: str) -> bytes:
    data = base64url.decode(value) if isinstance(value, str) else None
    if not data:
        _refuse(what)
    return data


def _utf16_units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _parsed(line: str, what: str) -> object:
    try:
        return json.loads(line, parse_constant=_no_constant, parse_int=_number, parse_float=_number)
    except (ValueError, RecursionError):
        return _refuse(f"{what} is not JSON")


def _no_constant(text: str) -> NoReturn:
    raise ValueError(text)


def _number(text: str) -> int | float:
    """As a TypeScript member reads it: what it could not write again, `1e400`, it refuses."""
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError("too large")
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _check_depth(first: dict[str, object]) -> None:
    layer: list[object] = [first]
    for _ in range(_MAX_DEPTH):
        layer = [inner for value in layer for inner in _inner(value)]
        if not layer:
            return
    _refuse("nested too deeply")


def _inner(value: object) -> list[object]:
    values = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(values, list):
        return []
    return [inner for inner in values if isinstance(inner, (dict, list))]


def _object(value: object, what: str) -> dict[str, object]:
    if not isinstance(value, dict):
        _refuse(f"{what} is not an object")
    return value


def _refuse(detail: str) -> NoReturn:
    raise RingStoreError("corrupt", detail)
