"""Redeemed tokens in the memory of this process."""

import threading
from datetime import datetime

from ..clock import Clock, SystemClock
from ..errors import SingleUseStoreFullError
from ..options import number
from .store import (
    DEFAULT_CLOCK_SKEW_SECONDS,
    check_claim,
    check_clock_skew,
    claim_life_ms,
)

_OWNER = "MemorySingleUse"
_LARGEST_MAX_TOKENS = 10_000_000
# The shortest time in seconds between two removals of expired tokens from a full store.
_SWEEP_EVERY_SECONDS = 1.0


class MemorySingleUse:
    """Remembers redeemed tokens in the memory of this process. Use it only for a server with a
    single process: other processes, and this process after a restart, do not know which tokens were
    redeemed. The store evicts nothing: a full store raises SingleUseStoreFullError, and the token
    is refused. Thread-safe.

    Args:
        max_tokens: largest number of redeemed tokens to remember; 1 to 10 000 000.
        clock_skew_seconds: how long a token is remembered after it expires: give the value of the
            ring's policy; 0 to 86 400.
        clock: injected in tests.

    A wrong option raises TypeError or ValueError; the message names the option.
    """

    def __init__(
        self,
        *,
        max_tokens: int = 100_000,
        clock_skew_seconds: float = DEFAULT_CLOCK_SKEW_SECONDS,
        clock: Clock | None = None,
    ) -> None:
        number(_OWNER, "max_tokens", max_tokens, 1, _LARGEST_MAX_TOKENS, whole=True)
        self._max = max_tokens
        self._skew = check_clock_skew(_OWNER, clock_skew_seconds)
        self._clock = clock or SystemClock()
        # For each id, the time from which it may be forgotten, in Unix seconds.
        self._used: dict[str, float] = {}
        self._lock = threading.Lock()
        self._sweep_at_size = min(1_024, max_tokens)
        self._swept_at = float("-inf")

    @property
    def clock_skew_seconds(self) -> float:
        return self._skew

    def claim(self, id: str, expires_at: datetime) -> bool:  # noqa: A002
        """See SingleUseStore.claim. Raises SingleUseStoreFullError if the store is full."""
        end = check_claim(_OWNER, id, expires_at)
        with self._lock:
            now = self._clock.wall_ms() / 1_000
            life_ms = claim_life_ms(end, self._skew, now)
            if life_ms <= 0 or id in self._used:
                return False
            size = len(self._used)
            is_due = size < self._max or abs(now - self._swept_at) >= _SWEEP_EVERY_SECONDS
            if size >= self._sweep_at_size and is_due:
                self._sweep(now)
            if len(self._used) >= self._max:
                told = f"the store holds {self._max} tokens, and none of them has expired"
                raise SingleUseStoreFullError(f"{_OWNER}: {told}")
            self._used[id] = now + life_ms / 1_000
            return True

    def _sweep(self, now: float) -> None:
        self._used = {key: until for key, until in self._used.items() if until > now}
        self._swept_at = now
        # The next sweep is at twice the size that is left, so that the average cost of a claim
        # stays constant.
        self._sweep_at_size = min(2 * max(len(self._used), 512), self._max)
