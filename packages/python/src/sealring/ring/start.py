"""Makes a member ready: it learns the ring from the store, or creates a ring if there is none."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Literal

from ..clock import Deadline, Moment, age_ms, later
from ..errors import KeyWrapperError, RingConflictError, RingStoreError
from .calls import BACKGROUND, FOREGROUND, CallOptions, Calls
from .founding import Founding
from .learn_anew import LineageError, is_dead
from .patience import patience_with
from .snapshot import RingSnapshot, create_snapshot
from .store import Stored, StoredDocument
from .sync import RingSync
from .view import RingView
from .wraps import KeyWraps
from .writer import RingWriter

_MS = 1_000
_ABSENT_POLL_MS = 3_000
_BACKOFF_BASE_MS = 200
_BACKOFF_CAP_MS = 5_000
_LONGEST_CONFLICT_WAIT_MS = 1_000
# If the store did not answer *absent* for longer than this, the wait begins again.
_LONGEST_SILENCE_MS = 60_000
# How long failures of the name resolution and the credentials are tolerated on a machine that is
# still starting.
_STARTING_MACHINE_MS = 10_000
# A start that takes longer than this logs a warning that says what it is waiting for.
_SILENT_SECONDS = 2.0
_NO_RING = 'no ring yet: run `sealring init`, or set create="now"'

Role = Literal["member", "reader"]
Create = Literal["if-absent", "now", "never"]

logger = logging.getLogger("sealring")


@dataclass(frozen=True, kw_only=True)
class RingStart:
    """Starts a member or a reader. A store counts as empty only if it has answered *absent*, or has
    held no live key, for long enough. Every other failure is retried or raised, and never taken for
    an empty store."""

    view: RingView
    calls: Calls
    wraps: KeyWraps
    stored: StoredDocument
    sync: RingSync
    writer: RingWriter
    founding: Founding
    role: Role
    create: Create

    def run(self) -> None:
        """Raises RingStoreError or KeyWrapperError: at once for a refusal, or for a failure that
        lasts until someone changes something; after `start_timeout_seconds` for a failure that may
        pass, with the last answer of each key wrapper that failed. Raises CodecClosedError if the
        codec is closed meanwhile."""
        progress = _Progress(self, self.view.now())
        with _notice_after_two_seconds(progress):
            failure = self._run(progress)
        if failure is not None:
            raise self._with_answers(failure)

    def _with_answers(self, error: RingStoreError | KeyWrapperError) -> Exception:
        """The error with what the services last answered; a call that was cut short when the start
        ended does not count."""
        if isinstance(error, KeyWrapperError):
            is_lasting = patience_with(error) == "none"
            return error if is_lasting else self.wraps.last_failure(error)
        location = self.stored.location
        if location is None:
            return error
        return RingStoreError(
            error.kind,
            error.detail,
            revision=error.revision,
            code=error.code,
            location=location,
        )

    def _run(self, progress: "_Progress") -> RingStoreError | KeyWrapperError | None:
        """None once the member is ready; otherwise its failure."""
        view = self.view
        conflicts = failures = 0
        while True:
            self.calls.assert_open()
            # Decisions that are based on the time before the step no longer count.
            if view.ring_clock.start_anew(view.now()):
                progress.absent_since = None
            try:
                if progress.attempt():
                    return None
            except RingConflictError:
                wait_ms = min(_LONGEST_CONFLICT_WAIT_MS, 2.0**conflicts) * view.uniform()
                conflicts = min(conflicts + 1, 32)
                self.calls.pause(wait_ms / _MS)
            except (RingStoreError, KeyWrapperError) as error:
                left_ms = progress.deadline_for(error).ms_left(view.now())
                if left_ms <= 0 or patience_with(error) == "none":
                    return error
                progress.last_failure = error
                progress.has_read_failed = progress.is_reading
                longest_ms = min(_BACKOFF_CAP_MS, _BACKOFF_BASE_MS * 2.0 ** min(failures, 32))
                failures += 1
                self.calls.pause(min(left_ms, longest_ms * view.uniform()) / _MS)


@contextmanager
def _notice_after_two_seconds(progress: "_Progress") -> Iterator[None]:
    """Logs one warning to `sealring`: what a start waits for, and for how long."""
    timer = threading.Timer(_SILENT_SECONDS, lambda: logger.warning("%s", progress.notice()))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class _Progress:
    """The progress of a start."""

    def __init__(self, start: RingStart, started_at: Moment) -> None:
        self._start = start
        self.started_at = started_at
        # When the store was first, and when last, seen to hold no live key.
        self.absent_since: Moment | None = None
        self.last_absent: Moment | None = None
        self.last_failure: RingStoreError | KeyWrapperError | None = None
        self.is_reading = False
        # Whether the last failure was a failed read; the next successful read ends it.
        self.has_read_failed = False

    def deadline(self) -> Deadline:
        """The time limit of this start. It is longer for a member that saw no ring, which must
        first wait to be sure that the ring is absent."""
        is_waiting = self.last_absent is not None and self._may_create
        seconds = self._start.view.policy.start_timeout_seconds
        seconds += self._create_after_seconds if is_waiting else 0
        return later(self.started_at, seconds * _MS)

    def deadline_for(self, error: RingStoreError | KeyWrapperError) -> Deadline:
        """The time limit for retrying after `error`."""
        if patience_with(error) != "short":
            return self.deadline()
        now = self._start.view.now()
        starting = later(self.started_at, _STARTING_MACHINE_MS)
        return min(self.deadline(), starting, key=lambda each: each.ms_left(now))

    def notice(self) -> str:
        start, failure = self._start, self.last_failure
        deadline = self.deadline() if failure is None else self.deadline_for(failure)
        until = datetime.fromtimestamp(deadline.wall_ms / _MS, tz=timezone.utc)
        retrying = f"retrying until {until:%Y-%m-%dT%H:%M:%SZ}"
        absent_since = self.absent_since
        where = f"ring store {start.stored.location or start.stored.kind}"
        if isinstance(failure, KeyWrapperError):
            return f"waiting for the KMS: {start.wraps.last_failure(failure)}, {retrying}"
        if isinstance(failure, RingStoreError):
            detail = failure.detail
            if isinstance(failure, LineageError):
                detail = failure.detail_for_logs
            return f"waiting for {where}: {detail}, {retrying}"
        if absent_since is None:
            return f"waiting for {where} or the KMS: no answer yet, {retrying}"
        if not self._may_create:
            return f"waiting for {where}: {_NO_RING}; {retrying}"
        left_ms = self._create_after_seconds * _MS - age_ms(absent_since, start.view.now())
        if left_ms <= 0:
            return f"waiting for the first key of the ring: no answer yet, {retrying}"
        seconds = f"{left_ms / _MS:.0f} s, if the ring is still absent"
        return f"waiting for {where}: {_NO_RING}; otherwise this process creates it in {seconds}"

    @property
    def _may_create(self) -> bool:
        return self._start.role == "member" and self._start.create != "never"

    @property
    def _create_after_seconds(self) -> float:
        return self._start.view.policy.create_after(at_once=self._start.create == "now")

    def attempt(self) -> bool:
        """Reads the store once. Returns False if the ring must be read again."""
        start, view = self._start, self._start.view
        self.is_reading = True
        there = start.stored.read()
        if self.has_read_failed:
            self.last_failure, self.has_read_failed = None, False
        self.is_reading = False
        if there is not None and there.error is not None:
            raise there.error
        document = None if there is None else there.document
        known = create_snapshot(())
        if document is not None:
            options = CallOptions(is_foreground=True, until=self.deadline())
            known = start.sync.anew(document, options)
            if not is_dead(known, view.wall_ms()):
                start.sync.begin(known, document)
                # Known keys are not unwrapped again while another member creates the key.
                while start.role == "member" and start.writer.is_dead and not self._is_founded():
                    start.sync.read(FOREGROUND)
                return True
            if start.role == "reader" and document.entries:
                raise RingStoreError("corrupt", "the ring holds no live key that may be used")
        now = view.now()
        # A store that was unreachable for a long time may have changed meanwhile.
        is_silent = self.last_absent is None or age_ms(self.last_absent, now) > _LONGEST_SILENCE_MS
        if self.absent_since is None or is_silent:
            self.absent_since = now
        self.last_absent = now
        if not self._may_create:
            self.last_failure = None
        if self.deadline().ms_left(now) <= 0:
            # The error that prevented the creation is more informative than the absence.
            raise self.last_failure or RingStoreError("absent", _NO_RING)
        return self._create_or_wait(self.absent_since, there, known)

    def _create_or_wait(
        self, absent_since: Moment, there: Stored | None, known: RingSnapshot
    ) -> bool:
        """Creates the ring once it has been absent for long enough. Returns False if the ring must
        be read again."""
        start, view = self._start, self._start.view
        if start.create == "never" and start.role == "member" and there is not None:
            raise RingStoreError("corrupt", 'the ring has no live key, and create is "never"')
        missing_ms: float = _ABSENT_POLL_MS
        if self._may_create:
            missing_ms = self._create_after_seconds * _MS - age_ms(absent_since, view.now())
        if missing_ms > 0:
            wait_ms = min(_ABSENT_POLL_MS * (1 + view.uniform()), missing_ms)
            start.calls.pause(wait_ms / _MS)
            return False
        start.sync.begin(known, None)
        if there is not None and there.document is not None:
            start.sync.remember_past(there.document, BACKGROUND)
        return self._is_founded()

    def _is_founded(self) -> bool:
        """Whether the key was created. Waits and returns False if another member is creating it;
        the ring must then be read again."""
        wait_ms = self._start.founding.attempt()
        if wait_ms > 0:
            self._start.calls.pause(wait_ms / _MS)
        return wait_ms <= 0
