"""Holds this machine's clock against the dates that KMS and store put on their answers."""

import math
from collections.abc import Callable
from typing import Literal

from .policy import RingPolicy

# A date in a header is a whole second, cut off.
_RESOLUTION_MS = 1_000


class ServiceClock:
    """A clock that is further off than any two may be judges keys by the wrong time."""

    def __init__(self, policy: RingPolicy, wall_ms: Callable[[], int]) -> None:
        # An answer may be as old as its deadline when it is looked at.
        seconds = policy.clock_skew_seconds + policy.kms_timeout_seconds
        self._tolerated_ms = seconds * 1_000 + _RESOLUTION_MS
        self._wall_ms = wall_ms
        self._off_by_ms: dict[str, float] = {}

    def note(self, service: Literal["kms", "store"], date_ms: float) -> None:
        """Notes the date of an answer that came just now. What is no date says nothing."""
        if math.isfinite(date_ms):
            self._off_by_ms[service] = self._wall_ms() - date_ms

    @property
    def is_off(self) -> bool:
        return any(abs(off) > self._tolerated_ms for off in list(self._off_by_ms.values()))
