"""A ring that tests write, with real keys and real wraps, and a clock that the test advances."""

import hmac
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone

from sealring import (
    KeyWrapperError,
    KmsCodec,
    LocalKeyWrapper,
    RingConflictError,
    RingStoreError,
    StoredRing,
    base64url,
)
from sealring.derivation import key_id_of, sub_key
from sealring.key_wrapper import OnServiceDate, Supports, WrappedKey
from sealring.ring.calls import BACKGROUND

RING = "payments"
TIMES = ("created", "activates", "sealsUntil", "opensUntil")
START_MS = 1_795_000_000_000
DAY = 86_400


class StillClock:
    """Both clocks, in milliseconds."""

    def __init__(self) -> None:
        self.wall = START_MS
        self.steady = 5_000_000

    def wall_ms(self) -> int:
        return self.wall

    def monotonic_ns(self) -> int:
        return self.steady * 1_000_000

    def advance(self, seconds: float) -> None:
        self.wall += round(seconds * 1_000)
        self.steady += round(seconds * 1_000)


def time_text(ms: float) -> str:
    return datetime.fromtimestamp(ms // 1_000, tz=timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class MadeKey:
    """A data key with its entry in the document."""

    data_key: bytes
    entry: dict[str, object]

    @property
    def id(self) -> str:
        return str(self.entry["id"])

    @property
    def times(self) -> list[str]:
        return [str(self.entry[name]) for name in TIMES]

    def certify(self, facts: list[object], ring: str = RING) -> str:
        key = sub_key(self.data_key, "ring-mac", ring)[:32]
        text = json.dumps(facts, separators=(",", ":"))
        return base64url.encode(hmac.digest(key, text.encode(), "sha256"))

    def edited(self, **changes: object) -> "MadeKey":
        return MadeKey(self.data_key, {**self.entry, **changes})

    def wrapped_too(self, other: "MadeKey") -> "MadeKey":
        """With the wraps of another entry of the same data key."""
        return self.edited(wraps=[*self.entry["wraps"], *other.entry["wraps"]])  # type: ignore[misc]


def made_key(
    wrapper: LocalKeyWrapper,
    activates_ms: float,
    *,
    ring: str = RING,
    seals: float = DAY,
    opens: float = 4_200,
    created_ms: float | None = None,
    data_key: bytes | None = None,
    by: Sequence[MadeKey] = (),
) -> MadeKey:
    """A data key, wrapped under its own times, that the keys `by` vouch for."""
    data_key = data_key or os.urandom(32)
    created_ms = activates_ms if created_ms is None else created_ms
    seals_until_ms = activates_ms + seals * 1_000
    ends = (created_ms, activates_ms, seals_until_ms, seals_until_ms + opens * 1_000)
    times = dict(zip(TIMES, map(time_text, ends), strict=True))
    key = MadeKey(data_key, {"id": base64url.encode(key_id_of(data_key)), **times})
    vouchers = {one.id: one.certify(["key", ring, key.id, *key.times], ring) for one in by}
    context = {
        "sealring:ring": ring,
        "sealring:purpose": "data-key",
        "sealring:times": "/".join(key.times),
    }
    wrap = wrapper.wrap(data_key, context)
    wrapped = base64url.encode(wrap.wrapped)
    mac = key.certify(["wrap", ring, key.id, "local", wrap.key_id, wrapped, None], ring)
    wraps = [{"provider": "local", "keyId": wrap.key_id, "wrapped": wrapped, "mac": mac}]
    return naming(key.edited(vouchers=vouchers, wraps=wraps), by, ring)


def naming(key: MadeKey, ancestors: Sequence[MadeKey], ring: str = RING) -> MadeKey:
    """A key that names these ancestors, oldest first."""
    ids = [one.id for one in reversed(ancestors)]
    mac = key.certify(["ancestors", ring, key.id, *ids], ring)
    return key.edited(ancestors={"ids": ids, "mac": mac})


def document(keys: Sequence[MadeKey], *, ring: str = RING, **more: object) -> str:
    """The text of a document."""
    entries = [key.entry for key in keys]
    first = {"format": "sealring/ring/1", "ring": ring, **more, "keys": entries}
    return json.dumps(first, separators=(",", ":"))


class Store:
    """A ring store with settings for faults."""

    kind = "test"

    def __init__(self) -> None:
        self.text: str | None = None
        self.failure: Exception | None = None
        self.reads = self.writes = 0
        self.date_ms: float | None = None
        self.on_read: Callable[[], object] = lambda: None

    def read(self, *, on_service_date: OnServiceDate | None = None) -> StoredRing | None:
        self.reads += 1
        self.on_read()
        if on_service_date is not None and self.date_ms is not None:
            on_service_date(self.date_ms)
        if self.failure is not None:
            raise self.failure
        return None if self.text is None else StoredRing(self.text, f"{hash(self.text)}")

    def write(
        self, document: str, *, expected: str | None, on_service_date: OnServiceDate | None = None
    ) -> str:
        if self.failure is not None:
            raise self.failure
        if (None if self.text is None else f"{hash(self.text)}") != expected:
            raise RingConflictError
        self.text = document
        self.writes += 1
        return f"{hash(document)}"


class Kms:
    """A local key wrapper with settings for faults."""

    provider = "local"
    supports = Supports()

    def __init__(self, wrapper: LocalKeyWrapper) -> None:
        self.wrapper = wrapper
        self.failure: Exception | None = None
        self.unwraps = 0

    def owns(self, wrapped: WrappedKey) -> bool:
        return self.wrapper.owns(wrapped)

    def unwrap(
        self,
        wrapped: WrappedKey,
        context: Mapping[str, str],
        *,
        on_service_date: OnServiceDate | None = None,
    ) -> bytearray:
        self.unwraps += 1
        if self.failure is not None:
            raise self.failure
        return self.wrapper.unwrap(wrapped, context, on_service_date=on_service_date)

    def wrap(
        self,
        data_key: bytearray,
        context: Mapping[str, str],
        *,
        on_service_date: OnServiceDate | None = None,
    ) -> WrappedKey:
        if self.failure is not None:
            raise self.failure
        return self.wrapper.wrap(data_key, context)

    def refuse(self, kind: str) -> None:
        self.failure = KeyWrapperError(kind, "local")  # type: ignore[arg-type]


@dataclass
class Fleet:
    """One ring with one key, its store and KMS, and readers of it."""

    clock: StillClock = field(default_factory=StillClock)
    store: Store = field(default_factory=Store)
    wrapper: LocalKeyWrapper = field(
        default_factory=lambda: LocalKeyWrapper(master_key=os.urandom(32))
    )

    def __post_init__(self) -> None:
        self.kms = Kms(self.wrapper)
        self.made: list[MadeKey] = []
        self.created = self.clock.wall - 300_000
        self.first = self.key(-300)
        self.publish([self.first])

    def key(self, activates_in: float, **more: object) -> MadeKey:
        """A key that activates this many seconds from now, newer than all before, with vouchers of
        the last eight."""
        if self.made:
            self.created = max(self.clock.wall, self.created + 1_000)
        activates_ms = self.clock.wall + activates_in * 1_000
        options: dict[str, object] = {"created_ms": self.created, "by": self.made[-8:], **more}
        key = made_key(self.wrapper, activates_ms, **options)  # type: ignore[arg-type]
        self.made.append(key)
        return key

    def publish(self, keys: list[MadeKey], **more: object) -> None:
        self.store.text = document(keys, **more)  # type: ignore[arg-type]

    def reader(self, **more: object) -> KmsCodec:
        options: dict[str, object] = {
            "key_wrapper": self.kms,
            "ring": self.store,
            "ring_name": RING,
            "clock": self.clock,
            "role": "reader",
            **more,
        }
        return KmsCodec(**options)  # type: ignore[arg-type]

    def member(self, **more: object) -> KmsCodec:
        return self.reader(role="member", **more)

    def break_store(self) -> None:
        self.store.failure = RingStoreError("unavailable", "the test says so")


def revoked(key: MadeKey, at_ms: float, *, by: Sequence[MadeKey] | None = None) -> MadeKey:
    """A key with its revocation, which by default the key itself certifies."""
    at = time_text(at_ms)
    signers = (key,) if by is None else by
    macs = {one.id: one.certify(["revoked", RING, key.id, at]) for one in signers}
    return key.edited(revoked={"at": at, "by": macs})


def run_pass(codec: KmsCodec, *, reads: bool = False) -> None:
    """One pass of the keeper, in this thread."""
    with suppress(KeyWrapperError, RingStoreError):
        codec._keeper._pass(BACKGROUND, reads=reads)


def wait_until(condition: Callable[[], bool], seconds: float = 10) -> None:
    """Waits for another thread."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "not in time"
        time.sleep(0.01)


def miss(codec: KmsCodec) -> None:
    """Waits for the read that a token of an unknown key causes."""
    caused = codec._keeper.refresh_for_token(codec._view.now(), BACKGROUND)
    if caused is not None:
        caused.exception(10)


def ms_until_next(codec: KmsCodec) -> float:
    """The time until the next pass."""
    due = codec._keeper.turns.next_timer_ms
    assert due is not None
    return due - codec._view.now().steady_ms
