"""The clocks of the machine, and ages by the clock that has advanced further."""

import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

RandomSource = Callable[[int], bytes]
"""Returns the given number of unpredictable bytes. `os.urandom` asks the kernel each time, so a
forked process shares no bytes with its parent."""


class Clock(Protocol):
    """The source of time. Replaced in tests."""

    def wall_ms(self) -> int:
        """Milliseconds since the Unix epoch; may step."""
        ...

    def monotonic_ns(self) -> int:
        """Nanoseconds since an arbitrary fixed point. The clock never steps back, but may stop
        while the machine is suspended."""
        ...


class SystemClock:
    """The clocks of the machine."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()

    def uptime_ms(self) -> float | None:
        """Milliseconds since the machine started, including the time it was suspended; None if
        unknown. Distinguishes a suspension from a wrong clock when no service reports dates."""
        clock = getattr(time, "CLOCK_BOOTTIME", None)
        return None if clock is None else time.clock_gettime(clock) * 1_000


class Moment(NamedTuple):
    """One reading of both clocks."""

    wall_ms: int
    monotonic_ns: int

    @property
    def steady_ms(self) -> float:
        return self.monotonic_ns / 1e6


class Deadline(NamedTuple):
    """A future moment, in milliseconds of both clocks."""

    wall_ms: float
    steady_ms: float

    def ms_left(self, now: Moment) -> float:
        """Milliseconds left, by the clock that leaves less; 0 once either clock has reached the
        deadline."""
        return max(0.0, min(self.wall_ms - now.wall_ms, self.steady_ms - now.steady_ms))


def moment_of(clock: Clock) -> Moment:
    return Moment(clock.wall_ms(), clock.monotonic_ns())


def age_ms(then: Moment, now: Moment) -> float:
    """Milliseconds since `then`, by the clock that has advanced further, because a monotonic clock
    stops while the machine is suspended."""
    return max(now.steady_ms - then.steady_ms, now.wall_ms - then.wall_ms)


def later(moment: Moment, ms: float) -> Deadline:
    return Deadline(moment.wall_ms + ms, moment.steady_ms + ms)


def earlier(one: Deadline, other: Deadline) -> Deadline:
    """A deadline that passes as soon as either of two deadlines passes."""
    return Deadline(min(one.wall_ms, other.wall_ms), min(one.steady_ms, other.steady_ms))


def uniform(random: RandomSource) -> float:
    """A random number in [0, 1) with 32 bits, for jitter."""
    return int.from_bytes(random(4), "little") / 2.0**32
