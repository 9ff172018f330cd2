"""The state of a codec: for readiness probes, never for liveness. A restart would drop the only
cached keys."""

from dataclasses import dataclass
from datetime import datetime, timezone

from .ring.keeper import Failure, RingKeeper, Status
from .ring.problems import RingProblem
from .ring.snapshot import KeyState, RingKey


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


def health_of(keeper: RingKeeper) -> CodecHealth:
    """Raises CodecClosedError after close, and before the start."""
    view, now = keeper.view, keeper.view.now()
    states = view.states(now)
    can_seal = view.can_seal(now)
    limits = view.limits
    return CodecHealth(
        status=keeper.status(now),
        ready=view.is_ready(now),
        can_seal=can_seal,
        can_unseal=view.can_open(now),
        seal_until=_seal_until(limits.seal_until_ms(), states),
        sealing_key=next((key.id for key, state in states if state == "active" and can_seal), None),
        keys=tuple(_key_health(key, state) for key, state in states),
        last_refresh=None if limits.last_complete is None else _date(limits.last_complete.wall_ms),
        last_proof=None if limits.last_proof is None else _date(limits.last_proof.wall_ms),
        last_error=keeper.last_failure,
        problems=keeper.problems(now),
    )


def _seal_until(limit_ms: float | None, states: list[tuple[RingKey, KeyState]]) -> datetime | None:
    """The limits, or the end of the last key that may seal, if that comes first."""
    if limit_ms is None:
        return None
    ends = [key.seals_until for key, state in states if key.held and state in _MAY_SEAL_YET]
    return _date(min([limit_ms, max(ends)] if ends else [limit_ms]))


_MAY_SEAL_YET: tuple[KeyState, ...] = ("active", "propagating")


def _key_health(key: RingKey, state: KeyState) -> KeyHealth:
    times = (key.created, key.activates, key.seals_until, key.opens_until)
    return KeyHealth(key.id, state, key.held is not None, *map(_date, times))


def _date(ms: float) -> datetime:
    return datetime.fromtimestamp(ms / 1_000, tz=timezone.utc)
