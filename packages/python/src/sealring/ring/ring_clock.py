"""The one clock of a process: its time, which is checked against the dates of the KMS and the
store, decides the state of keys and is written into the ring."""

import threading
from typing import Literal

from ..clock import Clock, Moment, moment_of
from .policy import RingPolicy

Service = Literal["kms", "store"]

SERVICE_NAMES: dict[Service, str] = {"kms": "the KMS", "store": "the store"}
"""The name of a service in a sentence."""

# A date in a header is truncated to a whole second.
_RESOLUTION_MS = 1_000
# The largest correction of a running clock, as a fraction of the elapsed time: twice the limit that
# NTP uses.
_SLEW = 0.001


class RingClock:
    """The wall clock is trusted while it agrees with the monotonic clock. A step of more than the
    tolerated skew is unconfirmed until the date of a service matches it or the clock steps back;
    meanwhile, the monotonic clock continues from the last trusted time."""

    def __init__(self, policy: RingPolicy, clock: Clock) -> None:
        self._clock = clock
        self._step_ms = policy.clock_skew_seconds * 1_000 + _RESOLUTION_MS
        # When an answer is evaluated, it can be as old as the deadline of its call.
        self._tolerated_ms = self._step_ms + policy.kms_timeout_seconds * 1_000
        self._lock = threading.Lock()
        # For each service, its date minus the monotonic time. Contains only dates that were noted
        # since the wall clock last stepped.
        self._dates: dict[Service, float] = {}
        self._has_seen_dates = False
        now = moment_of(clock)
        self._ticked_ms = now.steady_ms
        self._believe(now, is_dated=False)

    def time_ms(self, now: Moment) -> float:
        """The time that decides the state of keys, in milliseconds since the epoch."""
        if not self._is_stepped and abs(self._drift_ms(now)) <= self._step_ms:
            return now.wall_ms
        with self._lock:
            return self._judged_ms(now)

    def tick(self, now: Moment) -> None:
        """Follows a clock that is corrected slowly. Must be called from time to time, but never at
        the request of a client."""
        with self._lock:
            self._judged_ms(now)
            most = max(0.0, now.steady_ms - self._ticked_ms) * _SLEW
            self._ticked_ms = now.steady_ms
            if not self._is_stepped:
                self._offset_ms += max(-most, min(most, self._drift_ms(now)))

    def note(self, service: Service, date_ms: float) -> None:
        """Notes the date of an answer that just arrived. An invalid date is ignored."""
        now = moment_of(self._clock)
        if not abs(date_ms) < float("inf"):
            return
        with self._lock:
            self._judged_ms(now)
            self._has_seen_dates = True
            self._dates[service] = date_ms - now.steady_ms
            if abs(now.wall_ms - date_ms) <= self._tolerated_ms:
                self._believe(now, is_dated=True)

    def start_anew(self, now: Moment) -> bool:
        """Accepts the present time of the clock, for a process that knows no other time yet.
        Returns True if the clock had stepped."""
        with self._lock:
            self._judged_ms(now)
            if not self._is_stepped:
                return False
            self._believe(now, is_dated=False)
            return True

    def trouble(self, now: Moment) -> str | None:
        """Why nothing is published, removed or treated as expired now; None when the time is
        confirmed."""
        with self._lock:
            self._judged_ms(now)
            if self._is_stepped:
                step = _seconds(self._drift_ms(now))
                return (
                    f"this machine's clock stepped by {step} s, and no date of the KMS or the "
                    "store confirms it"
                )
            off = self._off(now)
        if not off or any(abs(ms) <= self._tolerated_ms for ms in off.values()):
            return None
        service, ms = next(iter(off.items()))
        direction = "ahead of" if ms > 0 else "behind"
        return (
            f"this machine's clock is {_seconds(ms)} s {direction} the clock of "
            f"{SERVICE_NAMES[service]}"
        )

    def disputed_by(self, now: Moment) -> Service | None:
        """The service whose date disagrees with this machine's clock, while the date of the other
        service agrees."""
        if self.trouble(now) is not None:
            return None
        with self._lock:
            off = self._off(now)
        return next((name for name, ms in off.items() if abs(ms) > self._tolerated_ms), None)

    def _judged_ms(self, now: Moment) -> float:
        if abs(self._drift_ms(now)) <= self._step_ms:
            self._is_stepped = False
        elif not self._is_stepped or self._was_suspended(now):
            # A machine may have been suspended while its clock was wrong.
            self._step(now)
        return now.steady_ms + self._offset_ms if self._is_stepped else now.wall_ms

    def _step(self, now: Moment) -> None:
        # A time that no date has ever matched is replaced at once, because the dates will check the
        # new time as well.
        if (self._dates and not self._is_dated) or self._was_suspended(now):
            self._believe(now, is_dated=False)
            return
        self._is_stepped = True
        # These dates were noted before the step. If the machine was suspended, they no longer
        # match.
        self._dates.clear()

    def _was_suspended(self, now: Moment) -> bool:
        """Whether a forward step only reflects a suspension: the clock advanced by as much as the
        uptime did. Always False once dates have been seen."""
        before_ms, after_ms = self._uptime_offset_ms, self._read_uptime_offset_ms(now)
        if self._has_seen_dates or before_ms is None or after_ms is None:
            return False
        return self._drift_ms(now) > 0 and abs(after_ms - before_ms) <= self._step_ms

    def _believe(self, now: Moment, *, is_dated: bool) -> None:
        # Wall time minus monotonic time when the wall clock was last trusted.
        self._offset_ms = now.wall_ms - now.steady_ms
        self._is_dated = is_dated
        self._is_stepped = False
        self._ticked_ms = now.steady_ms
        self._uptime_offset_ms = self._read_uptime_offset_ms(now)

    def _off(self, now: Moment) -> dict[Service, float]:
        wall_ms = now.wall_ms - now.steady_ms
        return {service: wall_ms - offset for service, offset in self._dates.items()}

    def _drift_ms(self, now: Moment) -> float:
        return now.wall_ms - now.steady_ms - self._offset_ms

    def _read_uptime_offset_ms(self, now: Moment) -> float | None:
        # A custom clock need not report the uptime.
        uptime_ms = getattr(self._clock, "uptime_ms", lambda: None)()
        return None if uptime_ms is None else uptime_ms - now.wall_ms


def _seconds(ms: float) -> int:
    return round(abs(ms) / 1_000)
