"""Keeps the ring: decides when to read, prove and try again. Has no thread of its own; whoever runs
its passes runs one at a time."""

import logging
import random
from collections.abc import Callable
from datetime import datetime, timezone

from ..clock import Deadline, Moment, backoff, later
from ..errors import KeyWrapperError, RingStoreError
from ..health import CodecHealth, Failure, Status, health_of
from .limits import REFUSAL_PROBE_MS
from .sync import RingSync
from .view import RingView
from .wraps import CallOptions

_MS = 1_000
_BACKOFF_BASE_MS = 10_000
# What is due so soon is done now.
_EARLY_MS = 1
_DUE = Deadline(0, 0)
_NEVER = Deadline(float("inf"), float("inf"))

logger = logging.getLogger("sealring")


class RingKeeper:
    """What is due, and when the next is."""

    def __init__(self, view: RingView, sync: RingSync) -> None:
        self.view = view
        self.last_failure: Failure | None = None
        self.wake: Callable[[], None] = lambda: None
        """Set by who takes the turns: one is to be taken."""
        self._policy = policy = view.policy
        self._sync = sync
        # No loop is faster than this, whatever state it is in.
        fastest = min(policy.refresh_every_seconds, policy.prove_every_seconds)
        self._floor_ms = min(1.0, fastest / 2) * _MS
        self._failures = 0
        self._next_pass_at = _DUE
        self._last_pass_ms = -float("inf")
        self._soon_at = _NEVER
        self._last_status: Status | None = None
        self._next_read_at = _DUE
        self._is_proof_wanted = False
        self._miss_refresh_at = _DUE
        self._is_missed = False
        view.on_overdue = self._overdue
        view.on_unknown_key = self.note_unknown_key

    def health(self) -> CodecHealth:
        return health_of(
            self.view,
            is_failing=self._failures > 0 or self._sync.is_incomplete,
            is_foreign=self._sync.is_foreign,
            last_error=self.last_failure,
        )

    def started(self) -> None:
        self._completed()
        self._schedule(self._ms_until_due())
        self._announce()

    def run(self, *, is_wished: bool = False) -> Exception | None:
        """One pass: what is due of reading the ring and of proving the key, or a read that somebody
        waits for. A store that fails must not keep the KMS from proving, nor the other way round.
        Returns what went wrong; CodecClosedError where it was closed meanwhile."""
        failure: Exception | None = None
        began = self.view.now()
        self._last_pass_ms = began.steady_ms
        self.view.ring_clock.tick(began)
        for step in (self._read, self._prove):
            try:
                step(CallOptions(is_wished))
            except Exception as error:  # The one thread that refreshes must not end.
                failure = error
        self.view.retire(self.view.now())
        self._note(failure)
        self._schedule(self._ms_until_due() if failure is None else self._draw_retry_ms())
        self._announce()
        return failure

    def turn(self, *, is_wished: bool = False) -> Exception | None:
        """What there is to do now: a pass, where one is due or somebody waits for it; else, because
        of a token, one read of the ring, and unwraps of what is new in it, with no check of the KMS
        and no change of what is due."""
        is_missed, self._is_missed = self._is_missed, False
        if is_wished or self.ms_until_next <= 0:
            if is_missed:
                self._next_read_at = _DUE
            return self.run(is_wished=is_wished)
        if is_missed:
            self._read_for_token()
        return None

    @property
    def ms_until_next(self) -> float:
        return self._next_pass_at.ms_left(self.view.now())

    def note_unknown_key(self, now: Moment) -> None:
        """A token named a key that is not in the ring: reads the ring soon, at most once per
        `miss_refresh_seconds`, since tokens are chosen by attackers."""
        if self._miss_refresh_at.ms_left(now) <= 0:
            self._miss_refresh_at = later(now, self._policy.miss_refresh_seconds * _MS)
            self._is_missed = True
            self.wake()

    def _read_for_token(self) -> None:
        try:
            self._sync.read(CallOptions(for_token=True))
        except Exception as error:
            # Everything that is due is done, and told, by the next pass.
            logger.debug("read for a token: %s", _kind_of(error))
        # What a token brought to light is done by a pass of its own, unless services fail.
        known = self.view.snapshot
        is_wanting = known.carried or not known.has_sealing_key(self.view.wall_ms())
        if self._failures == 0 and is_wanting:
            if self._soon_at is _NEVER:
                self._soon_at = later(self.view.now(), _BACKOFF_BASE_MS * random.random())
            self._schedule(self._ms_until_due())
        self._announce()

    def _read(self, options: CallOptions) -> None:
        if options.is_foreground or self._ms_until_read() <= _EARLY_MS:
            self._next_read_at = _DUE
            self._sync.read(options)
            self._completed()

    def _prove(self, options: CallOptions) -> None:
        if self._is_proof_wanted or self._sync.ms_until_proof() <= _EARLY_MS:
            self._sync.prove(options)
            self._is_proof_wanted = False

    def _completed(self) -> None:
        self._soon_at = _NEVER
        self.view.limits.last_complete = now = self.view.now()
        jitter = 1 - 0.2 * random.random()
        self._next_read_at = later(now, self._policy.refresh_every_seconds * _MS * jitter)

    def _note(self, failure: Exception | None) -> None:
        now = self.view.now()
        at = datetime.fromtimestamp(now.wall_ms / _MS, timezone.utc)
        if failure is not None:
            self._failures += 1
            self.last_failure = Failure(_kind_of(failure), at)
        else:
            self._failures = 0
            is_off = self.view.ring_clock.trouble(now) is not None
            self.last_failure = Failure("clock", at) if is_off else None

    def _draw_retry_ms(self) -> float:
        limits = self.view.limits
        # Asked again soon while refusals are being counted; once they count, a fleet must not
        # hammer a disabled key.
        if limits.is_refused(self.view.now()) and not limits.is_stopped:
            return REFUSAL_PROBE_MS
        cap_ms = self._policy.backoff_cap_seconds * _MS - self._floor_ms
        base_ms = _BACKOFF_BASE_MS - self._floor_ms
        return self._floor_ms + backoff(base_ms, max(0, cap_ms), self._failures - 1)

    def _ms_until_read(self) -> float:
        now = self.view.now()
        return min(self._next_read_at.ms_left(now), self._soon_at.ms_left(now))

    def _ms_until_due(self) -> float:
        due_ms = min(self._ms_until_read(), self._sync.ms_until_proof())
        return min(due_ms, self.view.ms_until_end(self.view.now()))

    def _schedule(self, delay_ms: float) -> None:
        most_ms, now = self._policy.refresh_every_seconds * _MS, self.view.now()
        least_ms = self._last_pass_ms + self._floor_ms - now.steady_ms
        wait_ms = min(max(delay_ms, least_ms, 0), most_ms)
        self._next_pass_at = later(now, wait_ms)
        self.view.overdue_at = later(now, wait_ms + self._policy.backoff_cap_seconds * _MS)

    def _overdue(self) -> None:
        self._is_proof_wanted = True
        self._next_read_at = _DUE
        self._schedule(0)
        self.wake()

    def _announce(self) -> None:
        status = self.health().status
        if status == self._last_status:
            return
        self._last_status = status
        cause = "" if self.last_failure is None else f" ({self.last_failure.kind})"
        level = logging.INFO if status == "ok" else logging.WARNING
        logger.log(level, "ring is %s%s", status, cause)


def _kind_of(error: Exception) -> str:
    if isinstance(error, RingStoreError):
        return f"store {error.kind}"
    if isinstance(error, KeyWrapperError):
        return f"kms {error.kind}"
    return "internal"
