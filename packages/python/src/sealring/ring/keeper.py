"""Keeps the ring: decides when to read, prove and try again. Has no thread of its own; whoever runs
its passes runs one at a time."""

import logging
import random
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Literal, NamedTuple

from ..clock import Deadline, Moment, later
from ..errors import CodecClosedError, KeyWrapperError, RingStoreError
from .kill_switch import REFUSAL_PROBE_MS
from .policy import RingPolicy
from .sync import RingSync
from .view import RingView
from .wraps import CallOptions

Status = Literal["ok", "degraded", "failing"]

_MS = 1_000
_BACKOFF_BASE_MS = 10_000
# What is due so soon is done now.
_EARLY_MS = 1

logger = logging.getLogger("sealring")


class Failure(NamedTuple):
    """What last went wrong."""

    kind: str
    """Whose answer, of which kind: `kms denied`, `store unavailable`, `clock`, `internal`."""
    at: datetime


class RingKeeper:
    """What is due, and when the next is."""

    def __init__(
        self,
        policy: RingPolicy,
        view: RingView,
        sync: RingSync,
        uniform: Callable[[], float] = random.random,
    ) -> None:
        self.view = view
        self._policy = policy
        self._sync = sync
        self._uniform = uniform
        self._failures = 0
        self._retry_ms = 0.0
        self._last_failure: Failure | None = None
        self._last_status: Status | None = None
        self._next_read_at: Deadline | None = None
        self._is_proof_wanted = False
        self._miss_refresh_at: Deadline | None = None
        self.wake: Callable[[], None] = lambda: None
        """Set by who runs the passes: something is due now."""

    @property
    def last_failure(self) -> Failure | None:
        return self._last_failure

    def status(self, now: Moment) -> Status:
        """`failing`: send it no requests. `degraded`: works, but something needs a look."""
        if not self.view.is_ready(now):
            return "failing"
        return "degraded" if self._failures or self.view.limits.is_refused else "ok"

    def started(self) -> None:
        """The ring was adopted for the first time."""
        self._completed()
        self._expect(self._ms_until_due())
        self._announce()

    def run(self, *, reads: bool, is_foreground: bool) -> Exception | None:
        """One pass: what is due of reading the ring and of proving the key. A store that fails must
        not keep the KMS from proving, nor the other way round. Returns what went wrong."""
        failure: Exception | None = None
        options = CallOptions(is_foreground)
        try:
            if reads or self._ms_until_read() <= _EARLY_MS:
                self._read(options)
        except Exception as error:  # The one thread that refreshes must not end.
            failure = error
            self._next_read_at = None
        try:
            self._prove(options)
        except Exception as error:
            failure = error
        if self.view.is_closed:
            return CodecClosedError()
        self._note(failure)
        self._expect(self.ms_until_next)
        self._announce()
        return failure

    @property
    def ms_until_next(self) -> float:
        """Milliseconds until the next pass is due."""
        if self._failures == 0:
            return self._ms_until_due()
        return self._retry_ms

    def note_unknown_key(self, now: Moment) -> None:
        """A token named a key that is not in the ring: reads the ring soon, at most once per
        `miss_refresh_seconds`, since tokens are chosen by attackers."""
        at = self._miss_refresh_at
        if at is None or at.has_passed(now):
            self._miss_refresh_at = later(now, self._policy.miss_refresh_seconds * _MS)
            self._next_read_at = None
            self.wake()

    def _read(self, options: CallOptions) -> None:
        self._sync.read(options)
        self._completed()

    def _prove(self, options: CallOptions) -> None:
        if self._is_proof_wanted or self._sync.ms_until_proof() <= _EARLY_MS:
            self._sync.prove(options)
            self._is_proof_wanted = False

    def _completed(self) -> None:
        now = self.view.now()
        self.view.drop_ended()
        self.view.limits.completed(now)
        jitter = 1 - 0.2 * self._uniform()
        self._next_read_at = later(now, self._policy.refresh_every_seconds * _MS * jitter)

    def _note(self, failure: Exception | None) -> None:
        if failure is not None:
            self._failures += 1
            self._last_failure = self._failure_now(_kind_of(failure))
            self._retry_ms = self._draw_retry_ms()
            return
        self._failures = 0
        self._last_failure = self._failure_now("clock") if self.view.is_clock_off else None

    def _draw_retry_ms(self) -> float:
        limits = self.view.limits
        # Asked again soon while refusals are being counted; once they count, a fleet must not
        # hammer a disabled key.
        if limits.is_refused and not limits.is_stopped:
            return REFUSAL_PROBE_MS
        cap = self._policy.backoff_cap_seconds * _MS
        longest = min(cap, _BACKOFF_BASE_MS * 2.0 ** min(self._failures - 1, 32))
        return longest * self._uniform()

    def _ms_until_read(self) -> float:
        at = self._next_read_at
        return 0 if at is None else at.ms_left(self.view.now())

    def _ms_until_due(self) -> float:
        return min(self._ms_until_read(), self._sync.ms_until_proof())

    def _expect(self, delay_ms: float) -> None:
        longest = delay_ms + self._policy.backoff_cap_seconds * _MS
        self.view.expect_refresh_before(later(self.view.now(), longest), self._overdue)

    def _overdue(self) -> None:
        self._is_proof_wanted = True
        self._next_read_at = None
        self.wake()

    def _failure_now(self, kind: str) -> Failure:
        wall_seconds = self.view.now().wall_ms / _MS
        return Failure(kind, datetime.fromtimestamp(wall_seconds, tz=timezone.utc))

    def _announce(self) -> None:
        status = self.status(self.view.now())
        if status == self._last_status:
            return
        self._last_status = status
        cause = "" if self._last_failure is None else f" ({self._last_failure.kind})"
        level = logging.INFO if status == "ok" else logging.WARNING
        logger.log(level, "ring is %s%s", status, cause)


def _kind_of(error: Exception) -> str:
    if isinstance(error, RingStoreError):
        return f"store {error.kind}"
    if isinstance(error, KeyWrapperError):
        return f"kms {error.kind}"
    return "internal"
