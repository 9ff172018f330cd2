"""The times by which a fleet runs its ring."""

import math
from dataclasses import dataclass, fields

from ..options import seconds

MAX_RING_KEYS = 64
_OWNER = "RingPolicy"
_YEAR = 366 * 86_400
_BOUNDS: dict[str, tuple[float, float]] = {
    "clock_skew_seconds": (0, 86_400),
    "refresh_every_seconds": (0.05, 86_400),
    "backoff_cap_seconds": (0.05, 3_600),
    "token_lifetime_seconds": (1, _YEAR),
    "prove_every_seconds": (0.05, _YEAR),
    "seal_outage_seconds": (0.1, _YEAR),
    "store_outage_seconds": (0.1, _YEAR),
    "propagation_seconds": (0, _YEAR),
    "rotate_every_seconds": (0.1, _YEAR),
    "kms_timeout_seconds": (0.01, 300),
    "start_timeout_seconds": (0.01, 86_400),
    "miss_refresh_seconds": (0, 86_400),
}


@dataclass(frozen=True, kw_only=True)
class RingPolicy:
    """The same as `policy` of the fleet's TypeScript members, in seconds. Every member must be
    given the same.

    Raises:
        TypeError: for an unknown option or no number.
        ValueError: for one out of range, or two that contradict each other, naming both.
    """

    clock_skew_seconds: float = 300
    """Largest difference between the clocks of any two members; within 5 minutes means 600."""
    refresh_every_seconds: float = 300
    """How often the ring is read, minus up to 20 % jitter."""
    backoff_cap_seconds: float = 60
    """Longest pause between attempts while ring or KMS fails: 10 s, doubling up to this."""
    token_lifetime_seconds: float = 3_600
    """How long a key opens after it has stopped sealing, plus twice the clock skew: the `ttl` of a
    boundary must not be longer. It bounds the lives of keys, not the age of a token."""
    prove_every_seconds: float = 900
    """How often the KMS must prove the right to the key, minus up to 20 % jitter."""
    seal_outage_seconds: float = 3_600
    """Longest sealing without such a proof. At least 3 times `prove_every_seconds`."""
    store_outage_seconds: float = 21_600
    """Longest sealing without a good read of the ring: 4 times refresh to rotate_every."""
    propagation_seconds: float | None = None
    """How long a new key only opens. At least, and by default, seal_outage + 2 times refresh +
    clock_skew."""
    rotate_every_seconds: float = 86_400
    """How long a key seals before its successor does. At least 4 times propagation."""
    kms_timeout_seconds: float = 5
    """Deadline of one call to KMS or store."""
    start_timeout_seconds: float = 120
    """How long `start()` tries before it fails."""
    miss_refresh_seconds: float = 10
    """At most one refresh per this long is caused by tokens with unknown keys."""

    def __post_init__(self) -> None:
        if self.propagation_seconds is None:
            self._check("seal_outage_seconds", "refresh_every_seconds", "clock_skew_seconds")
            object.__setattr__(self, "propagation_seconds", self._least_propagation)
        self._check(*(field.name for field in fields(self)))
        self._check_laws()

    @property
    def propagation(self) -> float:
        """`propagation_seconds`, filled in."""
        return self.propagation_seconds or 0

    @property
    def opening_seconds(self) -> float:
        """How much longer than sealing opening goes on: what was sealed last opens for its life."""
        return self.token_lifetime_seconds + 2 * self.clock_skew_seconds

    @property
    def late_wait_seconds(self) -> float:
        """How long a planned key is known before it seals: what the others need to learn it too."""
        return self.propagation - 2 * self.refresh_every_seconds - self.clock_skew_seconds

    @property
    def _least_propagation(self) -> float:
        return self.seal_outage_seconds + 2 * self.refresh_every_seconds + self.clock_skew_seconds

    def _check(self, *names: str) -> None:
        for name in names:
            seconds(_OWNER, name, getattr(self, name), *_BOUNDS[name])

    def _check_laws(self) -> None:
        if self.seal_outage_seconds < 3 * self.prove_every_seconds:
            self._refuse("seal_outage_seconds", "at least 3 times", "prove_every_seconds")
        if self.store_outage_seconds < 4 * self.refresh_every_seconds:
            self._refuse("store_outage_seconds", "at least 4 times", "refresh_every_seconds")
        if self.store_outage_seconds > self.rotate_every_seconds:
            self._refuse("store_outage_seconds", "at most", "rotate_every_seconds")
        if self.propagation < self._least_propagation:
            raise ValueError(
                f"{_OWNER}: propagation_seconds ({self.propagation}) must be at least "
                f"seal_outage_seconds ({self.seal_outage_seconds}) + 2 times "
                f"refresh_every_seconds ({self.refresh_every_seconds}) + clock_skew_seconds "
                f"({self.clock_skew_seconds}) = {self._least_propagation}"
            )
        if self.rotate_every_seconds < 4 * self.propagation:
            self._refuse("rotate_every_seconds", "at least 4 times", "propagation_seconds")

        life = (
            self.propagation
            + self.rotate_every_seconds
            + max(self.seal_outage_seconds, self.store_outage_seconds)
            + self.prove_every_seconds
            + 2 * self.refresh_every_seconds
            + self.token_lifetime_seconds
            + 4 * self.clock_skew_seconds
        )
        keys = math.ceil(life / self.rotate_every_seconds) + 9
        if keys > MAX_RING_KEYS:
            raise ValueError(
                f"{_OWNER}: token_lifetime_seconds ({self.token_lifetime_seconds}) over "
                f"rotate_every_seconds ({self.rotate_every_seconds}) would need {keys} keys in "
                f"the ring, more than {MAX_RING_KEYS}"
            )

    def _refuse(self, name: str, relation: str, other: str) -> None:
        raise ValueError(
            f"{_OWNER}: {name} ({getattr(self, name)}) must be {relation} "
            f"{other} ({getattr(self, other)})"
        )
