"""The state of a codec: for readiness probes, never for liveness. A restart would drop the only
cached keys."""

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Literal, NamedTuple

from .clock import Moment
from .ring.policy import MAX_KEYS_TO_ROTATE, MAX_RING_KEYS
from .ring.snapshot import KeyState, RingKey
from .ring.view import RingView

Status = Literal["ok", "degraded", "failing"]
FailureSource = Literal["kms", "store", "clock", "internal"]


class Failure(NamedTuple):
    """The last failure in the background."""

    source: FailureSource
    """What failed. `internal`: a key wrapper or a store raised an error of another class."""
    kind: str
    """Of `kms`, the kind of a `KeyWrapperError`; of `store`, that of a `RingStoreError`, or
    `conflict`; of `clock`, `unconfirmed`; of `internal`, `error`."""
    at: datetime


ProblemKind = Literal[
    "clock",
    "service-clock",
    "contested",
    "foreign-ring",
    "unreadable-key",
    "no-sealing-key",
    "nearly-full",
]
"""
* `clock`: this machine's time is not confirmed; it publishes nothing.
* `service-clock`: the date of the KMS or the store disagrees with the other's and this machine's.
* `contested`: something else keeps writing to the place of this ring in the store.
* `foreign-ring`: the store holds no key that a known one vouches for.
* `unreadable-key`: no key wrapper of this process can unwrap a key of the ring; its tokens are
  refused here.
* `no-sealing-key`: every key is revoked or has expired, and no new one could be created yet.
* `nearly-full`: the ring has 48 keys or more of 64, so no rotation can be requested.
"""


@dataclass(frozen=True)
class RingProblem:
    """One problem and its remedy."""

    kind: ProblemKind
    detail: str
    """What it is, in one sentence; nothing secret."""
    remedy: str


@dataclass(frozen=True)
class KeyHealth:
    """One key of the ring."""

    id: str
    state: KeyState
    held: bool
    """Whether this process has its bytes."""
    created: datetime
    activates: datetime
    seals_until: datetime
    unseals_until: datetime


@dataclass(frozen=True)
class CodecHealth:
    """The state of a codec. All times are UTC."""

    status: Status
    """`degraded`: works, but needs attention. `failing`: send it no requests."""
    ready: bool
    can_seal: bool
    can_unseal: bool
    seal_until: datetime | None
    """How long sealing continues if neither the KMS nor the store answers again."""
    sealing_key: str | None
    """Id of the key that seals now."""
    keys: tuple[KeyHealth, ...]
    """All keys of the ring, oldest first."""
    last_refresh: datetime | None
    """The last refresh that succeeded completely."""
    last_kms_check: datetime | None
    """The last unwrap by the KMS that returned the right bytes."""
    last_error: Failure | None
    """The last failure, until a refresh succeeds."""
    problems: tuple[RingProblem, ...]
    """What needs an operator, each with its remedy."""


class Standing(NamedTuple):
    """The condition of a process, in addition to its view."""

    is_failing: bool
    """Whether its passes or rotations fail, or the store lacks facts that this process knows."""
    is_foreign: bool
    is_contested: bool
    is_dead: bool
    key_count: int
    last_error: Failure | None


def health_of(view: RingView, standing: Standing) -> CodecHealth:
    """The health of a process. Raises CodecClosedError after close."""
    now, limits = view.now(), view.limits
    wall_ms, states = view.wall_ms(now), view.states(now)
    active = next((key.id for key, state in states if state == "active"), None)
    sealing_key = None if limits.seal_block(now) else active
    can_unseal = limits.may_open(now) and bool(view.snapshot.usable_keys(wall_ms))
    opening_ms = view.policy.opening_seconds * 1_000
    skew_ms = view.policy.clock_skew_seconds * 1_000
    ready = (
        sealing_key is not None
        and can_unseal
        and limits.is_current(now)
        and view.ring_clock.trouble(now) is None
        and view.snapshot.holds_newest(wall_ms, opening_ms, skew_ms)
    )
    problems = _problems(view, now, standing)
    is_off = standing.is_failing or limits.is_refused(now) or len(problems) > 0
    return CodecHealth(
        status="failing" if not ready else "degraded" if is_off else "ok",
        ready=ready,
        can_seal=sealing_key is not None,
        can_unseal=can_unseal,
        seal_until=_seal_until(limits.seal_until_ms(), states),
        sealing_key=sealing_key,
        keys=tuple(_key_health(key, state) for key, state in states),
        last_refresh=None if limits.last_complete is None else _date(limits.last_complete.wall_ms),
        last_kms_check=None
        if limits.last_kms_check is None
        else _date(limits.last_kms_check.wall_ms),
        last_error=standing.last_error,
        problems=problems,
    )


def _seal_until(limit_ms: float | None, states: list[tuple[RingKey, KeyState]]) -> datetime | None:
    """The limits, or the end of the last key that may seal, if that comes first."""
    usable = ("active", "propagating")
    ends = [key.seals_until for key, state in states if key.held and state in usable]
    return None if limit_ms is None else _date(min(limit_ms, max(ends, default=limit_ms)))


def _key_health(key: RingKey, state: KeyState) -> KeyHealth:
    times = (key.created, key.activates, key.seals_until, key.opens_until)
    return KeyHealth(key.id, state, key.held is not None, *map(_date, times))


def _date(ms: float) -> datetime:
    return datetime.fromtimestamp(ms / 1_000, tz=timezone.utc)


def _problems(view: RingView, now: Moment, standing: Standing) -> tuple[RingProblem, ...]:
    found: list[tuple[ProblemKind, str, str]] = []
    clock, known, now_ms = view.ring_clock, view.snapshot, view.wall_ms(now)
    trouble, disputed = clock.trouble(now), clock.disputed_by(now)
    if trouble is not None:
        remedy = "set the clock of this machine by NTP, then restart it"
        found.append(("clock", trouble, remedy))
    if disputed is not None:
        detail = f"the clock of the {disputed} disagrees with the clock of this machine"
        found.append(("service-clock", detail, f"compare the clock of the {disputed} with NTP"))
    if standing.is_contested:
        detail = "something else keeps writing to the place of this ring in the store"
        remedy = "give each fleet its own place in the store, and check who can write to this one"
        found.append(("contested", detail, remedy))
    if standing.is_foreign and not known.usable_keys(now_ms):
        detail = (
            "the store holds keys that no known key vouches for, and this process has no usable "
            "key left"
        )
        remedy = (
            "if that ring is the right one, restart this process; otherwise import a copy of "
            "the right one"
        )
        found.append(("foreign-ring", detail, remedy))
    if known.unreadable:
        key_id = known.unreadable[0].id
        detail = f"no key wrapper of this process can unwrap the key {key_id} of the ring"
        remedy = (
            "give this process the same key wrappers as the others; if it has them, someone wrote "
            "a forged key to the store: see the guide on incidents"
        )
        found.append(("unreadable-key", detail, remedy))
    if standing.is_dead:
        remedy = (
            "a member creates a key as soon as the KMS answers, the clock is right and the ring has "
            "room"
        )
        detail = "no key can seal: all have expired or are revoked"
        found.append(("no-sealing-key", detail, remedy))
    if standing.key_count >= MAX_KEYS_TO_ROTATE:
        remedy = "request no rotations until the oldest keys have expired; revocation still works"
        detail = f"the ring has {standing.key_count} of {MAX_RING_KEYS} keys"
        found.append(("nearly-full", detail, remedy))
    return tuple(RingProblem(*problem) for problem in found)
