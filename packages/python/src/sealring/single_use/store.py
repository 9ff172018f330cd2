"""Where the ids of redeemed tokens are kept, and the common code of such stores."""

import math
import time
from datetime import datetime
from typing import Protocol

from ..options import number, show, text

MAX_CLAIM_ID_LENGTH = 256
DEFAULT_CLOCK_SKEW_SECONDS = 300


class SingleUseStore(Protocol):
    """Where the ids of redeemed tokens are kept, shared by the fleet.

    Ids are SHA-256 hashes of 16 random bytes, 43 characters in base64url; they reveal nothing about
    the state. Every store remembers an id for the same margin after the token expires: the
    `clock_skew_seconds` of the ring's policy. A server whose clock is behind accepts the token for
    up to that much longer than the server that redeemed it.
    """

    @property
    def clock_skew_seconds(self) -> float:
        """The margin."""
        ...

    def claim(self, id: str, expires_at: datetime) -> bool:  # noqa: A002
        """True for exactly one caller per `id`, and False for every other caller, at least until
        `expires_at` plus the margin has passed by the caller's clock. From then on, False for every
        caller. Blocks. Raises SingleUseStoreError when the store cannot determine whether `id` was
        claimed: the token is then refused."""
        ...


def check_claim(owner: str, id: object, expires_at: object) -> float:  # noqa: A002
    """Checks the arguments of a claim, and returns its end in Unix seconds. Raises TypeError or
    ValueError for invalid arguments."""
    text(owner, "id", id, MAX_CLAIM_ID_LENGTH)
    if not isinstance(expires_at, datetime):
        raise TypeError(f"{owner}: expires_at must be a datetime, got {show(expires_at)}")
    if expires_at.tzinfo is None:
        raise ValueError(f"{owner}: expires_at must have a time zone")
    return expires_at.timestamp()


def check_clock_skew(owner: str, value: float) -> float:
    """Checks the option `clock_skew_seconds`, which has the same meaning and default as in the
    ring's policy."""
    number(owner, "clock_skew_seconds", value, 0, 86_400)
    return value


def claim_life_ms(expires_at: float, clock_skew_seconds: float, now: float | None = None) -> int:
    """How many milliseconds from now a claim is remembered: until its end plus the clock skew. If
    the result is 0 or less, no server accepts the token any longer."""
    now = time.time() if now is None else now
    return math.ceil((expires_at + clock_skew_seconds - now) * 1_000)
