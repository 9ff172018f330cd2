"""What needs an operator."""

from dataclasses import dataclass
from typing import Literal

from ..clock import Moment
from .policy import MAX_RING_KEYS
from .view import RingView

ProblemKind = Literal[
    "clock", "service-clock", "foreign-ring", "unreadable-key", "no-sealing-key", "nearly-full"
]
"""
* `clock`: this machine's time is not confirmed.
* `service-clock`: the date of the KMS or the store disagrees with the other's and this machine's.
* `foreign-ring`: the store holds no key that a known one vouches for.
* `unreadable-key`: no key wrapper of this process can unwrap a key of the ring; its tokens are
  refused here.
* `no-sealing-key`: every key is revoked or has ended.
* `nearly-full`: the ring has 48 keys or more of 64, so no rotation can be asked for.
"""

_NEARLY_FULL = 48


@dataclass(frozen=True)
class RingProblem:
    """One problem, and what to do about it."""

    kind: ProblemKind
    detail: str
    """What it is, in one sentence; nothing secret."""
    remedy: str


def problems_of(view: RingView, now: Moment, *, is_foreign: bool) -> tuple[RingProblem, ...]:
    found: list[tuple[ProblemKind, str, str]] = []
    clock, known, now_ms = view.ring_clock, view.snapshot, view.wall_ms(now)
    trouble, disputed = clock.trouble(now), clock.disputed_by(now)
    if trouble is not None:
        remedy = "set the clock of this machine by NTP, then restart it"
        found.append(("clock", trouble, remedy))
    if disputed is not None:
        detail = f"the date of the {disputed} is not that of this machine"
        found.append(("service-clock", detail, f"compare the clock of the {disputed} with NTP"))
    if is_foreign and not known.usable_keys(now_ms):
        detail = "the store holds keys that no known key vouches for, and no usable key is left"
        remedy = (
            "if that is the ring to go on with, restart this process; else have a member import a "
            "copy of the right one"
        )
        found.append(("foreign-ring", detail, remedy))
    if known.unreadable:
        key_id = known.unreadable[0].id
        detail = f"no key wrapper of this process can unwrap the key {key_id} of the ring"
        remedy = (
            "give this process the key wrappers of the others; if it has them, somebody wrote a "
            "false key: see incidents"
        )
        found.append(("unreadable-key", detail, remedy))
    if not known.has_sealing_key(now_ms):
        remedy = "a member makes one as soon as it can; without any running, start one"
        found.append(("no-sealing-key", "all keys have ended or are revoked", remedy))
    count = sum(not key.is_left and not key.is_tombstone for key in known.keys)
    if count >= _NEARLY_FULL:
        remedy = "stop asking for rotations until the oldest keys have ended; revoking still works"
        found.append(("nearly-full", f"the ring has {count} of {MAX_RING_KEYS} keys", remedy))
    return tuple(RingProblem(*problem) for problem in found)
