"""What a key may be used for over time, given its times and the policy. Pure functions."""

import math
from typing import Literal, NamedTuple

from .policy import RingPolicy

RotationReason = Literal[
    "scheduled", "key-version", "requested", "initial", "emergency", "revocation"
]
"""Why a key is created, which decides when it becomes active. `initial` and `revocation`: at once
on every clock, since no other key can seal. `emergency`: as soon as every member that reads the
ring can have it. `scheduled`, `requested` and `key-version` (the KMS key has a new version): after
propagation."""

_MS = 1_000
# How old a key that does not wait for the propagation time may be when it is written.
_LONGEST_HASTY_DELAY_MS = 60_000
_NEVER_MS = -float("inf")


class KeyTimes(NamedTuple):
    """The times of a key, in milliseconds since the epoch, rounded to whole seconds. They are
    written once and never change."""

    created: int
    activates: int
    seals_until: int
    opens_until: int


def times_of_new_key(
    reason: RotationReason, now_ms: float, policy: RingPolicy, newest_ms: float = _NEVER_MS
) -> KeyTimes:
    """The times of a key created at `now_ms`, rounded in the safe direction: activation and both
    ends are late. `newest_ms` is the latest known `created`: a new key must be newer than every
    other key, whatever the clocks of their creators showed."""
    skew_ms = policy.clock_skew_seconds * _MS
    created = max(_floor_second(now_ms), newest_ms + _MS)
    base_ms = max(now_ms, created)
    if reason in ("initial", "revocation"):
        activates = _floor_second(now_ms - skew_ms)
    elif reason == "emergency":
        activates = _ceil_second(base_ms + policy.emergency_wait_seconds * _MS)
    else:
        activates = _ceil_second(base_ms + policy.propagation * _MS)
    seals_until = _ceil_second(
        activates + (policy.rotate_every_seconds + policy.grace_seconds) * _MS
    )
    opens_until = _ceil_second(seals_until + policy.token_lifetime_seconds * _MS + 2 * skew_ms)
    return KeyTimes(int(created), activates, seals_until, opens_until)


def is_planned(created: float, activates: float, policy: RingPolicy) -> bool:
    """Whether the times of a key let it reach all members before it seals."""
    return activates - created >= policy.propagation * _MS


def longest_delay_ms(created: float, activates: float, policy: RingPolicy) -> float:
    """How old a new key may be when it is written. An older one could seal before the other members
    have read it: an emergency key waits for a refresh, the backoff cap and the skew, so it may use
    up the backoff cap."""
    if is_planned(created, activates, policy):
        return policy.refresh_every_seconds * _MS
    if activates <= created:
        return _LONGEST_HASTY_DELAY_MS
    return min(_LONGEST_HASTY_DELAY_MS, policy.backoff_cap_seconds * _MS)


def rotate_at(activates: float, policy: RingPolicy) -> float:
    """When the successor of a key becomes due, in milliseconds since the epoch."""
    return activates + (policy.rotate_every_seconds - policy.propagation) * _MS


def removable_from(opens_until: float, policy: RingPolicy) -> float:
    """When a writer may drop a key from the document, in milliseconds since the epoch."""
    return opens_until + policy.clock_skew_seconds * _MS


def rotation_delay_ms(uniform: float, policy: RingPolicy) -> float:
    """How long a member waits before it publishes a due successor. Most members draw a wait close
    to the time between two refreshes, so that only one to three out of ten thousand publish
    first."""
    spread = math.log(1 + uniform * (math.e**10 - 1))
    return policy.refresh_every_seconds * _MS * spread / 10


def _floor_second(ms: float) -> int:
    return math.floor(ms / _MS) * _MS


def _ceil_second(ms: float) -> int:
    return math.ceil(ms / _MS) * _MS
