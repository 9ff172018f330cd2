"""What a key may do at a moment: a pure function of its times and the clock."""

from collections.abc import Iterable
from typing import Literal, Protocol, TypeVar

KeyState = Literal["propagating", "active", "verify-only", "retired", "revoked"]


class Aged(Protocol):
    """What has an age: keys are ordered by (activates, id), the later is the newer."""

    @property
    def id(self) -> str: ...
    @property
    def activates(self) -> int: ...


class Scheduled(Aged, Protocol):
    """A key as far as the schedule is concerned. Times in milliseconds since the epoch."""

    @property
    def seals_until(self) -> int: ...
    @property
    def opens_until(self) -> int: ...
    @property
    def is_revoked(self) -> bool: ...


_K = TypeVar("_K", bound=Aged)


def age(key: Aged) -> tuple[int, str]:
    return key.activates, key.id


def newest(keys: Iterable[_K]) -> _K | None:
    return max(keys, key=age, default=None)


def may_seal(key: Scheduled, now_ms: float) -> bool:
    return not key.is_revoked and key.activates <= now_ms < key.seals_until


def may_open(key: Scheduled, now_ms: float) -> bool:
    return not key.is_revoked and now_ms < key.opens_until


def state_of(key: Scheduled, now_ms: float, sealing: Aged | None) -> KeyState:
    """The state of a key; `sealing` is the one that seals. What is newer waits for its turn."""
    if key.is_revoked:
        return "revoked"
    if now_ms >= key.opens_until:
        return "retired"
    if sealing is not None and key.id == sealing.id:
        return "active"
    is_waiting = now_ms < key.activates if sealing is None else age(key) > age(sealing)
    return "propagating" if is_waiting and now_ms < key.seals_until else "verify-only"
