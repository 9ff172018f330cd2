"""The state of a codec, for readiness probes. Never use it for liveness probes: a restart would
drop the only keys that are cached."""

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Literal, NamedTuple

from .clock import Moment
from .ring.policy import MAX_KEYS_TO_ROTATE, MAX_RING_KEYS
from .ring.ring_clock import SERVICE_NAMES
from .ring.snapshot import KeyState, RingKey
from .ring.view import RingView

# The years 1 and 9999.
_FIRST_MS = datetime.min.replace(tzinfo=timezone.utc).timestamp() * 1_000
_LAST_MS = datetime.max.replace(tzinfo=timezone.utc, microsecond=0).timestamp() * 1_000

Status = Literal["ok", "degraded", "failing"]
FailureSource = Literal["kms", "store", "clock", "internal"]


class Failure(NamedTuple):
    """The last failure of background work."""

    source: FailureSource
    """What failed. `internal`: a key wrapper or a store raised an error
    that its contract does not allow."""
    kind: str
    """For the source `kms`, the kind of a `KeyWrapperError`; for `store`, the kind of a
    `RingStoreError`, or `conflict`; for `clock`, `unconfirmed`; for `internal`, `error`."""
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
* `clock`: this machine's time is not confirmed, so this process publishes nothing.
* `service-clock`: the date of one service, the KMS or the store, disagrees with the date of the
  other service and with this machine's clock.
* `contested`: something else keeps writing to this ring's place in the store.
* `foreign-ring`: the store holds no key that a key known to this process vouches for, and this
  process has no usable key left.
* `unreadable-key`: no key wrapper of this process can unwrap one of the keys of the ring, so this
  process refuses tokens sealed with that key.
* `no-sealing-key`: no key may seal, because each has expired, is revoked or does not seal yet,
  and no new key could be created.
* `nearly-full`: the ring has 48 or more of at most 64 keys, so no rotation can be requested.
"""


@dataclass(frozen=True)
class RingProblem:
    """One problem and its remedy."""

    kind: ProblemKind
    detail: str
    """A description of the problem in one sentence, without secrets."""
    remedy: str


@dataclass(frozen=True)
class KeyHealth:
    """One key of the ring."""

    id: str
    state: KeyState
    held: bool
    """Whether this process holds the unwrapped key."""
    created: datetime
    activates: datetime
    seals_until: datetime
    unseals_until: datetime


@dataclass(frozen=True)
class CodecHealth:
    """The state of a codec. All times are UTC."""

    status: Status
    """`degraded`: the codec works, but needs attention. `failing`: send this process no
    requests."""
    ready: bool
    can_seal: bool
    can_unseal: bool
    seal_until: datetime | None
    """The time until which sealing continues if neither the KMS nor the store answers again."""
    sealing_key: str | None
    """Id of the key that seals now."""
    keys: tuple[KeyHealth, ...]
    """All keys of the ring, oldest first."""
    last_refresh: datetime | None
    """When a refresh last succeeded completely."""
    last_kms_check: datetime | None
    """When an unwrap by the KMS last returned the right bytes."""
    last_error: Failure | None
    """The last failure, until a refresh succeeds."""
    problems: tuple[RingProblem, ...]
    """Problems that an operator must solve, each with its remedy."""


class Standing(NamedTuple):
    """The condition of a process, in addition to its view."""

    is_failing: bool
    """Whether passes or rotations of this process fail, or the store lacks facts that this process
    knows."""
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
    """The earlier of two times: the limit, and the end of the last key that may seal."""
    usable = ("active", "propagating")
    ends = [key.seals_until for key, state in states if key.held and state in usable]
    return None if limit_ms is None else _date(min(limit_ms, max(ends, default=limit_ms)))


def _key_health(key: RingKey, state: KeyState) -> KeyHealth:
    times = (key.created, key.activates, key.seals_until, key.opens_until)
    return KeyHealth(key.id, state, key.held is not None, *map(_date, times))


def _date(ms: float) -> datetime:
    """The nearest time that a datetime can represent: a ring document can also name the year 0."""
    return datetime.fromtimestamp(min(max(ms, _FIRST_MS), _LAST_MS) / 1_000, tz=timezone.utc)


def _problems(view: RingView, now: Moment, standing: Standing) -> tuple[RingProblem, ...]:
    found: list[tuple[ProblemKind, str, str]] = []
    clock, known, now_ms = view.ring_clock, view.snapshot, view.wall_ms(now)
    trouble, disputed = clock.trouble(now), clock.disputed_by(now)
    if trouble is not None:
        remedy = "synchronize the clock of this machine with NTP, then restart this process"
        found.append(("clock", trouble, remedy))
    if disputed is not None:
        service = SERVICE_NAMES[disputed]
        detail = f"the clock of {service} disagrees with the clock of this machine"
        found.append(("service-clock", detail, f"compare the clock of {service} with NTP"))
    if standing.is_contested:
        detail = "something else keeps writing to this ring's place in the store"
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
            "give this process the same key wrappers as the other members; if it already has them, "
            "someone wrote a forged key to the store: see the guide on incidents"
        )
        found.append(("unreadable-key", detail, remedy))
    if standing.is_dead:
        remedy = (
            "a member creates a key as soon as the KMS answers, the clock is right and the ring "
            "has room"
        )
        detail = "no key can seal: each has expired, is revoked or does not seal yet"
        found.append(("no-sealing-key", detail, remedy))
    if standing.key_count >= MAX_KEYS_TO_ROTATE:
        remedy = "request no rotations until the oldest keys have expired; revocation still works"
        detail = f"the ring has {standing.key_count} of {MAX_RING_KEYS} keys"
        found.append(("nearly-full", detail, remedy))
    return tuple(RingProblem(*problem) for problem in found)
