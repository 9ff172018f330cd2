"""A ring that tests write, with real keys and real wraps, and a clock that stands still until
told."""

import hmac
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone

from sealring import (
    KeyWrapperError,
    KmsCodec,
    LocalKeyWrapper,
    RingStoreError,
    StoredRing,
    base64url,
)
from sealring.derivation import key_id_of, sub_key
from sealring.key_wrapper import OnServiceDate, WrappedKey

RING = "payments"
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


def made_key(
    wrapper: LocalKeyWrapper,
    activates_ms: float,
    *,
    ring: str = RING,
    seals: float = DAY,
    opens: float = 4_200,
    created_ms: float | None = None,
    data_key: bytes | None = None,
) -> MadeKey:
    """A data key, wrapped under its own times."""
    data_key = data_key or os.urandom(32)
    created_ms = activates_ms if created_ms is None else created_ms
    seals_until_ms = activates_ms + seals * 1_000
    ends = (created_ms, activates_ms, seals_until_ms, seals_until_ms + opens * 1_000)
    times = dict(
        zip(("created", "activates", "sealsUntil", "opensUntil"), map(time_text, ends), strict=True)
    )
    context = {
        "sealring:ring": ring,
        "sealring:purpose": "data-key",
        "sealring:times": "/".join(times.values()),
    }
    wrap = wrapper.wrap(data_key, context)
    wraps = [{"provider": "local", "keyId": wrap.key_id, "wrapped": base64url.encode(wrap.wrapped)}]
    return MadeKey(data_key, {"id": base64url.encode(key_id_of(data_key)), **times, "wraps": wraps})


def mac(body: str, data_key: bytes, ring: str = RING) -> str:
    key = sub_key(data_key, "ring-mac", ring)[:32]
    return base64url.encode(hmac.digest(key, body.encode(), "sha256"))


def document(
    keys: list[MadeKey],
    *,
    epoch: int = 1,
    ring: str = RING,
    signers: list[MadeKey] | None = None,
    **more: object,
) -> str:
    """The text of a document; by default every key signs it."""
    first = {
        "format": "sealring/ring/1",
        "ring": ring,
        "epoch": epoch,
        "critical": [],
        "keys": [key.entry for key in keys],
        **more,
    }
    body = json.dumps(first, separators=(",", ":"))
    macs = {key.id: mac(body, key.data_key, ring) for key in (keys if signers is None else signers)}
    return f"{body}\n{json.dumps({'macs': macs}, separators=(',', ':'))}"


class Store:
    """A ring store with knobs."""

    kind = "test"

    def __init__(self) -> None:
        self.text: str | None = None
        self.failure: Exception | None = None
        self.reads = 0
        self.date_ms: float | None = None

    def read(self, *, on_service_date: OnServiceDate | None = None) -> StoredRing | None:
        self.reads += 1
        if on_service_date is not None and self.date_ms is not None:
            on_service_date(self.date_ms)
        if self.failure is not None:
            raise self.failure
        return None if self.text is None else StoredRing(self.text, f"{hash(self.text)}")


class Kms:
    """A local key wrapper with knobs."""

    provider = "local"

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
        self.first = self.key(-300)
        self.publish([self.first])

    def key(self, activates_in: float, **more: float) -> MadeKey:
        """A key that activates so many seconds from now."""
        return made_key(self.wrapper, self.clock.wall + activates_in * 1_000, **more)  # type: ignore[arg-type]

    def publish(self, keys: list[MadeKey], **more: object) -> None:
        self.store.text = document(keys, **more)  # type: ignore[arg-type]

    def reader(self, **more: object) -> KmsCodec:
        options: dict[str, object] = {
            "key_wrapper": self.kms,
            "ring": self.store,
            "ring_name": RING,
            "clock": self.clock,
            **more,
        }
        return KmsCodec(**options)  # type: ignore[arg-type]

    def break_store(self) -> None:
        self.store.failure = RingStoreError("unavailable", "the test says so")


def revoked(key: MadeKey, at_ms: float) -> MadeKey:
    return MadeKey(key.data_key, {**key.entry, "revoked": time_text(at_ms)})
