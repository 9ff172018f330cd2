"""The times by which a fleet runs its ring."""

import math
from dataclasses import dataclass, field, fields

from ..options import number

MAX_RING_KEYS = 64
MAX_KEYS_TO_ROTATE = 48
"""If the ring has this many keys or more, `health()` reports a problem and `rotate` refuses,
because revocations need room."""
MAX_KEYS_TO_SCHEDULE = 60
"""If the ring has this many keys or more, no scheduled rotation creates another key."""
_OWNER = "RingPolicy"
_YEAR = 366 * 86_400


def _time(default: float, least: float, most: float) -> float:
    """An option with its bounds."""
    value: float = field(default=default, metadata={"bounds": (least, most)})
    return value


@dataclass(frozen=True, kw_only=True)
class RingPolicy:
    """The same as `policy` of the fleet's TypeScript members, in seconds. Give every member the
    same policy.

    Raises:
        TypeError: for an unknown option or a value that is not a number.
        ValueError: for a value that is out of range, or for two values that contradict each other;
            the message names both.
    """

    clock_skew_seconds: float = _time(300, 0, 86_400)
    """Largest difference between the clocks of any two members: 600 if each clock is within 5
    minutes of the true time."""
    refresh_every_seconds: float = _time(300, 0.05, 86_400)
    """Interval between reads of the ring, minus up to 20 % jitter."""
    backoff_cap_seconds: float = _time(60, 0.05, 3_600)
    """Longest pause between attempts while the store or the KMS fails. The pause is at first at
    most 10 s; that limit doubles with each failure, up to this value. At most
    `seal_outage_seconds`: otherwise, each member would make a new key whenever it reads the
    ring."""
    token_lifetime_seconds: float = _time(3_600, 1, _YEAR)
    """How long a key unseals after it has stopped sealing; twice the clock skew is added. The `ttl`
    of a boundary must not be longer than this. The option limits the lives of keys, not the age of
    a token."""
    kms_check_every_seconds: float = _time(900, 0.05, _YEAR)
    """How often a KMS check must show that the key may still be used, minus up to 20 % jitter."""
    seal_outage_seconds: float = _time(3_600, 0.1, _YEAR)
    """How long sealing continues without a successful KMS check. At least 3 times
    `kms_check_every_seconds`."""
    store_outage_seconds: float = _time(21_600, 0.1, _YEAR)
    """How long sealing continues without a successful read of the ring. At least 4 times
    `refresh_every_seconds`, and at most `rotate_every_seconds`."""
    propagation_seconds: float | None = field(default=None, metadata={"bounds": (0, _YEAR)})
    """How long a new key unseals before it seals. At least, and by default, seal_outage + 2 times
    refresh + clock_skew."""
    rotate_every_seconds: float = _time(86_400, 0.1, _YEAR)
    """How long a key seals before its successor does. At least 4 times propagation."""
    create_after_seconds: float | None = field(default=None, metadata={"bounds": (0, 86_400)})
    """How long a starting member must read *absent* before it creates a ring. By default 0 with
    `create="now"`, otherwise refresh_every + backoff_cap, so that running members can repair a lost
    ring first."""
    key_version_every_seconds: float = _time(3_600, 0, _YEAR)
    """How often a member checks for a new version of the KMS key, minus up to 20 % jitter, if
    wraps name a version. A version that wrapped no key of the ring causes a rotation. 0: never."""
    kms_timeout_seconds: float = _time(5, 0.01, 300)
    """Deadline of one call to the KMS or the store."""
    start_timeout_seconds: float = _time(120, 0.01, 86_400)
    """How long `start()` tries before it fails."""
    miss_refresh_seconds: float = _time(10, 0, 86_400)
    """Shortest time between two refreshes that tokens with unknown keys cause."""

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if value is not None or one.default is not None:
                number(_OWNER, one.name, value, *one.metadata["bounds"])
        least = self.seal_outage_seconds + 2 * self.refresh_every_seconds + self.clock_skew_seconds
        if self.propagation_seconds is None:
            object.__setattr__(self, "propagation_seconds", least)
        if self.propagation < least:
            told = "seal_outage_seconds + 2 times refresh_every_seconds + clock_skew_seconds"
            given = f"{_OWNER}: propagation_seconds ({self.propagation})"
            raise ValueError(f"{given} must be at least {told} ({least})")
        self._check_at_least("seal_outage_seconds", 3, "kms_check_every_seconds")
        self._check_at_least("seal_outage_seconds", 1, "backoff_cap_seconds")
        self._check_at_least("store_outage_seconds", 4, "refresh_every_seconds")
        self._check_at_least("rotate_every_seconds", 1, "store_outage_seconds")
        self._check_at_least("rotate_every_seconds", 4, "propagation_seconds")
        self._check_fits()

    @property
    def propagation(self) -> float:
        """`propagation_seconds`, or its default."""
        return self.propagation_seconds or 0

    @property
    def grace_seconds(self) -> float:
        """How late the successor of a key can be before sealing stops: for this much longer, the
        key still seals."""
        outage = max(self.seal_outage_seconds, self.store_outage_seconds)
        late = self.kms_check_every_seconds + 2 * self.refresh_every_seconds
        return outage + late + self.clock_skew_seconds

    @property
    def opening_seconds(self) -> float:
        """How much longer unsealing continues than sealing, so that the last token can be unsealed
        for its whole life."""
        return self.token_lifetime_seconds + 2 * self.clock_skew_seconds

    def create_after(self, *, at_once: bool) -> float:
        """`create_after_seconds`, or its default."""
        if self.create_after_seconds is not None:
            return self.create_after_seconds
        return 0 if at_once else self.refresh_every_seconds + self.backoff_cap_seconds

    @property
    def emergency_wait_seconds(self) -> float:
        """How long it takes before an emergency key seals: long enough for every process that reads
        the ring to have it."""
        return self.refresh_every_seconds + self.backoff_cap_seconds + self.clock_skew_seconds

    @property
    def late_wait_seconds(self) -> float:
        """How long this process waits before it seals with a planned key that was published late,
        so that the other processes can learn the key as well."""
        return self.propagation - 2 * self.refresh_every_seconds - self.clock_skew_seconds

    def _check_at_least(self, name: str, times: int, other: str) -> None:
        least = times * getattr(self, other)
        if getattr(self, name) < least:
            told = f"at least {times} times {other} ({least})"
            raise ValueError(f"{_OWNER}: {name} ({getattr(self, name)}) must be {told}")

    def _check_fits(self) -> None:
        opens = self.opening_seconds + self.clock_skew_seconds
        life = self.propagation + self.rotate_every_seconds + self.grace_seconds + opens
        keys = math.ceil(life / self.rotate_every_seconds) + 9
        if keys > MAX_RING_KEYS:
            raise ValueError(
                f"{_OWNER}: token_lifetime_seconds ({self.token_lifetime_seconds}) with "
                f"rotate_every_seconds ({self.rotate_every_seconds}) would need {keys} keys in "
                f"the ring, more than {MAX_RING_KEYS}"
            )
