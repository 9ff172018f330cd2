"""The state of a codec: for readiness probes, never for liveness. A restart would drop the only
cached keys."""

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Literal, NamedTuple

from .ring.problems import RingProblem, problems_of
from .ring.snapshot import KeyState, RingKey
from .ring.view import RingView

Status = Literal["ok", "degraded", "failing"]


class Failure(NamedTuple):
    """What last went wrong."""

    kind: str
    """Whose answer, of which kind: `kms denied`, `store unavailable`, `clock`, `internal`."""
    at: datetime


@dataclass(frozen=True)
class KeyHealth:
    """One key of the ring."""

    id: str
    state: KeyState
    held: bool
    """Whether its bytes are here."""
    created: datetime
    activates: datetime
    seals_until: datetime
    opens_until: datetime


@dataclass(frozen=True)
class CodecHealth:
    """What a codec says of itself. All times are UTC."""

    status: Status
    """`degraded`: works, but something needs a look. `failing`: send it no requests."""
    ready: bool
    can_seal: bool
    can_unseal: bool
    seal_until: datetime | None
    """Until when sealing goes on if neither the KMS nor the store answers any more."""
    sealing_key: str | None
    """Id of the key that seals now."""
    keys: tuple[KeyHealth, ...]
    """All keys of the ring, oldest first."""
    last_refresh: datetime | None
    """The last refresh that went through whole."""
    last_proof: datetime | None
    """The last unwrap by the KMS that returned the right bytes."""
    last_error: Failure | None
    """What last went wrong, until a refresh goes through."""
    problems: tuple[RingProblem, ...]
    """What needs an operator, with what to do about it."""


def health_of(
    view: RingView, *, is_failing: bool, is_foreign: bool, last_error: Failure | None
) -> CodecHealth:
    """The health of a reader whose passes fail, or whose store holds another ring.
    CodecClosedError after close."""
    now, limits = view.now(), view.limits
    wall_ms, states = view.wall_ms(now), view.states(now)
    active = next((key.id for key, state in states if state == "active"), None)
    sealing_key = None if limits.seal_block(now) else active
    can_unseal = limits.may_open(now) and bool(view.snapshot.usable_keys(wall_ms))
    ready = (
        sealing_key is not None
        and can_unseal
        and limits.is_current(now)
        and view.ring_clock.trouble(now) is None
        and view.snapshot.holds_newest(wall_ms)
    )
    problems = problems_of(view, now, is_foreign=is_foreign)
    is_off = is_failing or limits.is_refused(now) or len(problems) > 0
    return CodecHealth(
        status="failing" if not ready else "degraded" if is_off else "ok",
        ready=ready,
        can_seal=sealing_key is not None,
        can_unseal=can_unseal,
        seal_until=_seal_until(limits.seal_until_ms(), states),
        sealing_key=sealing_key,
        keys=tuple(_key_health(key, state) for key, state in states),
        last_refresh=None if limits.last_complete is None else _date(limits.last_complete.wall_ms),
        last_proof=None if limits.last_proof is None else _date(limits.last_proof.wall_ms),
        last_error=last_error,
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
