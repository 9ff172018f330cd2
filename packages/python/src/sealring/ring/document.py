"""The ring document: one line of JSON, as short as possible. A parsed document is well-formed, but
no fact in it is trusted merely because it is in the store. Pure."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple, NoReturn

from .. import base64url
from ..canonical_json import canonical_json
from ..derivation import KEY_ID_BYTES
from ..errors import RingStoreError
from ..key_wrapper import WrappedKey
from .policy import MAX_RING_KEYS

MAX_DOCUMENT_BYTES = 256 * 1024
# These bounds belong to the format, not to a policy: every reader of the format refuses values
# outside them.
_FORMAT = "sealring/ring/1"
MAX_WRAPS = 16
MAX_MACS = 8
_MAX_WRAPPED_BYTES = 2_048
_MAX_KEY_ID_UNITS = 2_048
_DAY_MS = 86_400_000
_MAX_LIFE_MS = 5 * 366 * _DAY_MS
_MAX_LEAD_MS = 366 * _DAY_MS
_CYCLE_MS = 146_097 * _DAY_MS  # The calendar repeats every 400 years.
_CYCLE_START_MS = 946_684_800_000  # 2000-01-01T00:00:00Z.
_EPOCH = datetime(1970, 1, 1)  # Naive: every time of a document is UTC.
_ONE_LINE = re.compile(r"[\x20-\x7e]+")
_CLAIM = re.compile(r"[A-Za-z0-9_-]{22}")
# Each second can be written in only one way.
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_PROVIDER = re.compile(r"[a-z0-9-]{1,64}")
_TIMES = ("created", "activates", "sealsUntil", "opensUntil")

Macs = Mapping[str, bytes]
"""32-byte HMACs, keyed by the id of the key that made each."""


@dataclass(frozen=True)
class Revocation:
    """A revocation, with its certificates."""

    at: str
    """Shown to operators, and used to decide which entries a full ring leaves out; never used to
    decide which key is revoked."""
    by: Macs
    """At most 8 certificates, made by the revoked key itself or by newer keys."""


@dataclass(frozen=True)
class RingWrap(WrappedKey):
    signature: bytes | None
    mac: bytes
    """Made with the entry's own key, which shows that the process that added the wrap held that
    key."""
    is_proved: bool = field(default=False, compare=False)
    """Whether this process made or unwrapped the wrap. If so, it is never dropped."""


@dataclass(frozen=True)
class Ancestors:
    """The keys that vouch for a key, as authenticated by that key itself."""

    ids: tuple[str, ...]
    """At most 8, newest first."""
    mac: bytes


@dataclass(frozen=True)
class RingEntry:
    """One key of the ring, as stored. Times are in milliseconds since the epoch and always whole
    seconds."""

    id: str
    created: int
    activates: int
    """From this time on it may seal."""
    seals_until: int
    """From this time on it only unseals."""
    opens_until: int
    """From this time on it has expired."""
    times: tuple[str, ...]
    """All four times, as they are written in the document."""
    vouchers: Macs
    """At most 8 vouchers, made by keys that the publisher of this key could sign with."""
    ancestors: Ancestors | None
    """None if the ancestors are not known."""
    revocation: Revocation | None
    wraps: tuple[RingWrap, ...]


class RingDocument(NamedTuple):
    """A parsed document: well-formed, but not trusted."""

    entries: tuple[RingEntry, ...]
    """At most 64, each with a different id."""
    claim: str | None = None
    """The claim of a member that is about to create a key, because no key may seal; 16 bytes in
    base64url."""


def parse_document(text: str, ring: str) -> RingDocument:
    """Parses the document of a ring. Raises RingStoreError `too-large` for a document over a limit,
    and `corrupt` for one that has an unknown property, lacks a property, or is longer than
    necessary. No future members are tolerated: a new format would use another place in the
    store."""
    if len(text) > MAX_DOCUMENT_BYTES:
        raise RingStoreError("too-large", "the document is larger than 256 KiB")
    if _ONE_LINE.fullmatch(text) is None:
        _refuse("not one line of ASCII")
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        _refuse("not JSON")
    document = _members(parsed, "document", ("format", "ring", "keys"), ("claim",))
    if document["format"] != _FORMAT:
        _refuse("unknown format")
    if document["ring"] != ring:
        _refuse("the ring has a different name")
    claim = _text(document["claim"], "claim", _CLAIM) if "claim" in document else None
    keys = _items(document["keys"], "keys", 0, MAX_DOCUMENT_BYTES)
    if len(keys) > MAX_RING_KEYS:
        raise RingStoreError("too-large", f"the ring has more than {MAX_RING_KEYS} keys")
    entries = tuple(map(_entry, keys))
    if len({entry.id for entry in entries}) != len(entries):
        _refuse("two keys have the same id")
    # JSON members may be in any order. A repeated name, white space or an unusual escape makes the
    # document longer than necessary.
    if len(canonical_json(document, sort_keys=False)) != len(text):
        _refuse("not in canonical form")
    return RingDocument(entries, claim)


def encode_document(ring: str, document: RingDocument) -> str:
    """The text of a document: one line of ASCII. Its length is not checked against the bound of 256
    KiB."""
    head: dict[str, object] = {"format": _FORMAT, "ring": ring}
    claim = {} if document.claim is None else {"claim": document.claim}
    keys = [_encoded(entry) for entry in document.entries]
    return canonical_json({**head, **claim, "keys": keys}, sort_keys=False)


def wrap_context(ring: str, times: tuple[str, ...]) -> dict[str, str]:
    """The context of every wrap of a key: the ring, the purpose and the key's times as they are in
    the document."""
    return {
        "sealring:ring": ring,
        "sealring:purpose": "data-key",
        "sealring:times": "/".join(times),
    }


def signed_bytes(ring: str, key_id: str, times: tuple[str, ...], wrap: WrappedKey) -> bytes:
    """The bytes that the signature of a wrap covers. Signatures are needed if an unwrap does not
    authenticate the origin of the wrap."""
    facts = {
        "ring": ring,
        "id": key_id,
        **dict(zip(_TIMES, times, strict=True)),
        "provider": wrap.provider,
        "keyId": wrap.key_id,
        "wrapped": base64url.encode(wrap.wrapped),
    }
    return canonical_json(facts).encode("ascii")


def format_time(ms: float) -> str:
    """A time in the form `YYYY-MM-DDTHH:MM:SSZ`. Each second has only one such text."""
    cycles, rest_ms = divmod(int(ms // 1_000) * 1_000 - _CYCLE_START_MS, _CYCLE_MS)
    time = datetime(2000, 1, 1) + timedelta(milliseconds=rest_ms)
    return f"{time.year + 400 * cycles:04}-{time:%m-%dT%H:%M:%S}Z"


def time_ms(text: str) -> int:
    """Parses a time in the form that `format_time` writes, into milliseconds since the epoch.
    Raises RingStoreError for any other text."""
    return _ms(_text(text, "time", _TIME))


def _encoded(entry: RingEntry) -> dict[str, object]:
    key: dict[str, object] = {"id": entry.id, **dict(zip(_TIMES, entry.times, strict=True))}
    key["vouchers"] = _encoded_macs(entry.vouchers)
    if entry.ancestors is not None:
        mac = base64url.encode(entry.ancestors.mac)
        key["ancestors"] = {"ids": list(entry.ancestors.ids), "mac": mac}
    if entry.revocation is not None:
        key["revoked"] = {"at": entry.revocation.at, "by": _encoded_macs(entry.revocation.by)}
    key["wraps"] = [_encoded_wrap(wrap) for wrap in entry.wraps]
    return key


def _encoded_wrap(wrap: RingWrap) -> dict[str, str]:
    wrapped = base64url.encode(wrap.wrapped)
    names = {"provider": wrap.provider, "keyId": wrap.key_id, "wrapped": wrapped}
    if wrap.signature is not None:
        names["signature"] = base64url.encode(wrap.signature)
    return {**names, "mac": base64url.encode(wrap.mac)}


def _encoded_macs(macs: Macs) -> dict[str, str]:
    return {key_id: base64url.encode(mac) for key_id, mac in macs.items()}


def _entry(value: object) -> RingEntry:
    key = _members(value, "key", ("id", *_TIMES, "vouchers", "wraps"), ("ancestors", "revoked"))
    times = tuple(_text(key[name], name, _TIME) for name in _TIMES)
    created, activates, seals_until, opens_until = map(_ms, times)
    if not activates < seals_until < opens_until:
        _refuse("the times of a key are out of order")
    if opens_until - created > _MAX_LIFE_MS:
        _refuse("the life of a key is too long")
    if abs(activates - created) > _MAX_LEAD_MS:
        _refuse("a key becomes active too early or too late")
    return RingEntry(
        _key_id(key["id"]),
        created,
        activates,
        seals_until,
        opens_until,
        times,
        _macs(key["vouchers"], "vouchers"),
        _ancestors(key["ancestors"]) if "ancestors" in key else None,
        _revocation(key["revoked"]) if "revoked" in key else None,
        tuple(map(_wrap, _items(key["wraps"], "wraps", 1, MAX_WRAPS))),
    )


def _ancestors(value: object) -> Ancestors:
    ancestors = _members(value, "ancestors", ("ids", "mac"))
    ids = _items(ancestors["ids"], "ancestors.ids", 0, MAX_MACS)
    return Ancestors(tuple(map(_key_id, ids)), _mac(ancestors["mac"]))


def _revocation(value: object) -> Revocation:
    revoked = _members(value, "revoked", ("at", "by"))
    at = _text(revoked["at"], "revoked.at", _TIME)
    _ms(at)
    return Revocation(at, _macs(revoked["by"], "certificates"))


def _wrap(value: object) -> RingWrap:
    wrap = _members(value, "wrap", ("provider", "keyId", "wrapped", "mac"), ("signature",))
    key_id = wrap["keyId"]
    units = len(key_id.encode("utf-16-le", "surrogatepass")) // 2 if isinstance(key_id, str) else 0
    if not isinstance(key_id, str) or not 1 <= units <= _MAX_KEY_ID_UNITS:
        _refuse("keyId is invalid")
    return RingWrap(
        _text(wrap["provider"], "provider", _PROVIDER),
        key_id,
        _bytes(wrap["wrapped"], "wrapped"),
        _bytes(wrap["signature"], "signature") if "signature" in wrap else None,
        _mac(wrap["mac"]),
    )


def _macs(value: object, what: str) -> Macs:
    if not isinstance(value, dict) or len(value) > MAX_MACS:
        _refuse(f"{what} is invalid")
    return {_key_id(key_id): _mac(mac) for key_id, mac in value.items()}


def _key_id(value: object) -> str:
    return base64url.encode(_bytes(value, "key id", KEY_ID_BYTES, KEY_ID_BYTES))


def _mac(value: object) -> bytes:
    return _bytes(value, "mac", 32, 32)


def _ms(text: str) -> int:
    # Python has no year 0; TypeScript does.
    cycle, year = divmod(int(text[:4]), 400)
    try:
        parsed = datetime.strptime(f"{2000 + year}{text[4:]}", "%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        _refuse("a time does not exist")
    return (parsed - _EPOCH) // timedelta(milliseconds=1) + (cycle - 5) * _CYCLE_MS


def _bytes(value: object, what: str, least: int = 1, most: int = _MAX_WRAPPED_BYTES) -> bytes:
    data = base64url.decode(value) if isinstance(value, str) else None
    if data is None or not least <= len(data) <= most:
        _refuse(f"{what} is invalid")
    return data


def _text(value: object, what: str, form: re.Pattern[str]) -> str:
    if not isinstance(value, str) or form.fullmatch(value) is None:
        _refuse(f"{what} is invalid")
    return value


def _items(value: object, what: str, least: int, most: int) -> list[object]:
    if not isinstance(value, list) or not least <= len(value) <= most:
        _refuse(f"{what} is invalid")
    return value


def _members(
    value: object, what: str, names: tuple[str, ...], optional: tuple[str, ...] = ()
) -> dict[str, object]:
    if not isinstance(value, dict):
        _refuse(f"{what} is not an object")
    if not set(names) <= value.keys() <= {*names, *optional}:
        _refuse(f"{what} lacks a property or has an unknown one")
    return value


def _refuse(detail: str) -> NoReturn:
    raise RingStoreError("corrupt", detail)
