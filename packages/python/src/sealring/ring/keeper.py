"""Keeps the ring: decides when to read it, when to make a KMS check, when to rotate and when to
try again, one operation at a time. The parts sync and writer perform the operations."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from typing import Literal, TypeVar

from ..clock import Deadline, Moment, age_ms, later
from ..errors import CodecClosedError, KeyWrapperError, RingConflictError, RingStoreError
from ..health import CodecHealth, Failure, FailureSource, Standing, Status, health_of
from .calls import BACKGROUND, FOREGROUND, CallOptions, Calls
from .facts import revocable
from .founding import Founding
from .limits import REFUSAL_PROBE_MS
from .policy import MAX_KEYS_TO_ROTATE, MAX_KEYS_TO_SCHEDULE
from .schedule import RotationReason, rotate_at, rotation_delay_ms, times_of_new_key
from .snapshot import RingKey, age, with_keys
from .start import RingStart, Role
from .store import ReadableRing, WatchableRing
from .sync import RingSync
from .turns import Turns
from .view import RingView
from .wraps import KeyVersion, KeyWraps
from .writer import RingWriter

_MS = 1_000
_BACKOFF_BASE_MS = 10_000
_CONFLICT_WAIT_MS = 5_000
_PUSH_WAIT_CAP_MS = 60_000
_ROTATION_BACKOFF_MS = 60_000
# Work that is due within this time is done at once.
_EARLY_MS = 1
# How long a revocation keeps calling a store that does not answer, as a multiple of the deadline of
# one call.
_CALLS_OF_A_REVOCATION = 4
# Rounds after which a writer that loses every race gives up.
_MAX_CONFLICTS = 64
_NEVER_MS = float("inf")

logger = logging.getLogger("sealring")

T = TypeVar("T")
# The source and the kind of a failure.
_Failed = tuple[FailureSource, str]


class RingKeeper:
    """Starts no thread. One thread runs `turns`, where requests of other threads are queued."""

    def __init__(
        self,
        view: RingView,
        calls: Calls,
        wraps: KeyWraps,
        store: ReadableRing,
        start: RingStart,
        founding: Founding,
    ) -> None:
        self.view = view
        self.turns = Turns(lambda: view.now().steady_ms)
        self.last_failure: Failure | None = None
        self._calls = calls
        self._wraps = wraps
        self._store = store
        self._start = start
        self._founding = founding
        self._sync: RingSync = start.sync
        self._writer: RingWriter = start.writer
        self._role: Role = start.role
        self._policy = policy = view.policy
        # No loop repeats faster than this, whatever the state.
        fastest = min(policy.refresh_every_seconds, policy.kms_check_every_seconds)
        self._floor_ms = min(1.0, fastest / 2) * _MS
        self._failures = 0
        self._failed_at: Moment | None = None
        self._last_pass_ms = -_NEVER_MS
        self._last_status: Status | None = None
        self._cancel_timer: Callable[[], None] = _nothing
        self._next_read_at: Deadline | None = None
        self._soon_at: Deadline | None = None
        self._is_proof_wanted = False
        # When a token or a notification can next cause a read of the ring.
        self._next_caused_read_at: Deadline | None = None
        self._caused = threading.RLock()
        self._miss_pass: Future[None] | None = None
        # Whether a read that a token caused waits for its turn. While the store hangs, no further
        # ones may queue up.
        self._is_miss_pending = False
        self._pending_refresh: Future[None] | None = None
        self._is_push_pending = False
        self._cancel_rotation: Callable[[], None] | None = None
        self._rotation_failures = 0
        self._version_due_at: Deadline | None = None
        # A version of the KMS key that had wrapped no key of the ring when it was noticed.
        self._new_version: KeyVersion | None = None
        # Guards `_unwatch`, because a codec can be closed while it starts.
        self._watching = threading.Lock()
        self._unwatch: Callable[[], None] = _nothing
        view.on_overdue = lambda: self.turns.post(self._overdue)
        view.on_unknown_key = self.note_unknown_key

    def health(self) -> CodecHealth:
        """Makes no call. Raises CodecClosedError after close."""
        is_failing = self._failures > 0 or self._rotation_failures > 0
        standing = Standing(
            is_failing=is_failing or self._sync.is_repairing,
            is_foreign=self._sync.is_foreign,
            is_contested=self._sync.is_contested(self.view.now()),
            is_dead=self._writer.is_dead,
            key_count=self._writer.key_count,
            last_error=self.last_failure,
        )
        return health_of(self.view, standing)

    def start(self) -> None:
        """Returns once all live keys are held and, for a member, one of them may seal."""
        self._start.run()
        self._completed()
        self._consider_rotation()
        self._schedule_next(self._ms_until_due())
        self._announce_status()
        self._watch()

    def close(self) -> None:
        """Ends notifications, and every task that waits for its turn. The view is closed before
        this method is called."""
        with self._watching:
            unwatch, self._unwatch = self._unwatch, _nothing
        self.turns.close()
        # This comes last, because it runs code of the store, which may raise an error.
        unwatch()

    def _watch(self) -> None:
        if not isinstance(self._store, WatchableRing):
            return
        unwatch = self._store.watch(lambda: self.turns.post(self.pushed))
        with self._watching:
            is_closed = self.view.is_closed
            if not is_closed:
                self._unwatch = unwatch
        if is_closed:
            unwatch()

    def refresh(self) -> "Future[None]":
        """Reads the ring now. Concurrent calls share one pass, which begins after all of them."""

        def run() -> None:
            with self._caused:
                self._pending_refresh = None
            self._pass(FOREGROUND, reads=True)

        self._assert_open()
        with self._caused:
            if self._pending_refresh is None:
                self._pending_refresh = self.turns.asked(run)
            return self._pending_refresh

    def rotate(self, reason: Literal["requested", "emergency"]) -> "Future[None]":
        """Publishes a successor. After a lost race, tries again only if the winner's key does not
        satisfy the request."""
        self._assert_member("rotate")
        skew_ms = self._policy.clock_skew_seconds * _MS
        wished = times_of_new_key(reason, self.view.wall_ms(), self._policy)
        run = partial(self._rotate, reason, wished.activates + skew_ms)
        return self.turns.asked(lambda: self._publishing(reason, run))

    def revoke(
        self, is_meant: Callable[[RingKey], bool], must_exist: str | None = None
    ) -> "Future[None]":
        """Revokes the keys that `is_meant` selects when the ring is read. Keys that appear in the
        meantime and are active at once are successors for the same request, so they are not
        revoked. Neither a failing KMS nor a wrong clock prevents the revocation. Raises ValueError
        when the ring lacks `must_exist`."""
        self._assert_member("revoke")
        wait_ms = _CALLS_OF_A_REVOCATION * self._policy.kms_timeout_seconds * _MS
        patience = later(self.view.now(), wait_ms)

        def run() -> None:
            with self._calls.urgent():
                self._revoke(is_meant, must_exist, patience)

        def revoke() -> None:
            self._publishing("revocation", run)
            self._revoke_left(is_meant)
            self._schedule_next(self._ms_until_due())

        return self.turns.asked(revoke)

    def note_unknown_key(self, now: Moment) -> None:
        """A token named a key that is not in the ring: reads the ring soon."""
        self.refresh_for_token(now, BACKGROUND)

    def refresh_for_token(self, now: Moment, options: CallOptions) -> "Future[None] | None":
        """Reads the ring because of a token, at most once per `miss_refresh_seconds`, because an
        attacker can choose tokens. The future completes when that read, or a pending one that
        another token caused, has ended; `health()` shows its failure."""

        def run() -> None:
            with self._caused:
                self._is_miss_pending = False
                miss_ms = self._policy.miss_refresh_seconds * _MS
                self._next_caused_read_at = later(self.view.now(), miss_ms)
            self._missed(options)

        with self._caused:
            due = self._next_caused_read_at
            is_due = due is None or due.ms_left(now) <= 0
            if is_due and not self._is_miss_pending:
                self._is_miss_pending = True
                self._miss_pass = self.turns.background(run)
            return self._miss_pass

    def needs_refresh_for(self, key_id: str | None, now: Moment) -> bool:
        """Whether a refresh could change the result for a token. While passes fail, the age of the
        view is ignored; otherwise every token would wait for a service that hangs."""
        if key_id is not None and key_id not in self.view.snapshot.by_id:
            return True
        return self._is_overdue(now)

    def pushed(self) -> None:
        """Handles a notification. Anyone who can write to the channel can send one, so at most one
        pass is pending, and passes are at least `miss_refresh_seconds` apart."""
        if self.view.is_closed or self._is_push_pending:
            return
        miss_ms, now = self._policy.miss_refresh_seconds * _MS, self.view.now()
        due = self._next_caused_read_at
        left_ms = 0 if due is None else due.ms_left(now)
        wait_ms = left_ms + miss_ms * 0.2 * self.view.uniform() if left_ms > 0 else 0
        self._is_push_pending = True

        def begin() -> None:
            self._is_push_pending = False
            self._next_caused_read_at = later(self.view.now(), miss_ms)

        options = CallOptions(defer_unwraps=True)
        self.turns.later(lambda: self._background(options, reads=True, begin=begin), wait_ms)

    def _rotate(self, reason: Literal["requested", "emergency"], wished_ms: float) -> None:
        known: set[str] | None = None

        def attempt() -> None:
            nonlocal known
            self._read_to_write(FOREGROUND)
            keys, before = self.view.snapshot.keys, known
            is_fulfilled = before is not None and any(
                key.id not in before and not key.is_revoked and key.activates <= wished_ms
                for key in keys
            )
            if is_fulfilled:
                return
            known = {key.id for key in keys}
            self._writer.publish(reason)

        self._retry_conflicts(attempt)

    def _revoke(
        self, is_meant: Callable[[RingKey], bool], must_exist: str | None, patience: Deadline
    ) -> None:
        before: set[str] | None = None

        def attempt() -> None:
            nonlocal before
            self._read_to_revoke()
            snapshot = self.view.snapshot
            missing = (entry.id for entry in snapshot.carried + snapshot.unreadable)
            if must_exist is not None and must_exist not in {*snapshot.by_id, *missing}:
                raise ValueError(f"revoke: the ring has no key {must_exist[:80]!r}")
            keys = revocable(snapshot)
            known = before = {key.id for key in keys} if before is None else before

            def is_successor(key: RingKey) -> bool:
                return key.id not in known and key.activates <= key.created

            meant = [key for key in keys if is_meant(key) and not is_successor(key)]
            if meant:
                self._writer.revoke(meant)

        self._retry_conflicts(attempt, patience)

    def _revoke_left(self, is_meant: Callable[[RingKey], bool]) -> None:
        """Revokes keys of a ring that this member left. The current ring cannot hold their
        revocations. Raises RingStoreError if there are such keys, because other members may still
        unseal their tokens."""
        known = self.view.snapshot
        left = [key for key in known.keys if key.is_left and not key.is_revoked and is_meant(key)]
        if not left:
            return
        revoked = [replace(key, is_revoked=True, held=None) for key in left]
        self.view.install(with_keys(known, revoked))
        detail = (
            f"key {left[0].id} belongs to a ring that this member has left: it was revoked only "
            "here, so restart the other members"
        )
        raise RingStoreError("unavailable", detail)

    def _read_to_revoke(self) -> None:
        """Reads the ring before a revocation. An absent ring, or junk in its place, does not
        prevent the revocation, which overwrites it; entries that the KMS does not unwrap are
        kept."""
        try:
            self._sync.read(FOREGROUND)
        except (RingStoreError, KeyWrapperError):
            if not self._sync.was_answered:
                raise

    def _missed(self, options: CallOptions) -> None:
        """Handles a token with an unknown key: one read of the ring, and unwraps of its new
        entries. Overdue work is done too, because timers do not run while a process is frozen."""
        self._assert_open()
        if self._is_overdue(self.view.now()):
            self._pass(options, reads=True)
            return
        failure: Exception | None = None
        try:
            self._sync.read(CallOptions(for_token=True))
        except (RingStoreError, KeyWrapperError) as error:
            failure = error
            logger.debug("read for a token: %s", _text_of(error))
        self._announce_status()
        # A separate pass completes the work that a token caused, unless the next one waits for
        # services that fail.
        is_unfinished = bool(self.view.snapshot.carried) or self._writer.is_dead
        if is_unfinished and self._soon_at is None:
            self._soon_at = later(self.view.now(), _BACKOFF_BASE_MS * self.view.uniform())
        if (is_unfinished or self._sync.is_repairing) and self._failures == 0:
            self._schedule_next(self._ms_until_due())
        if failure is not None:
            raise failure

    def _is_overdue(self, now: Moment) -> bool:
        """Whether a read or a KMS check is overdue, and neither is known to fail."""
        policy, limits = self._policy, self.view.limits
        # If the failure is older than that, this machine was suspended or the next pass is overdue.
        recent_ms = (policy.backoff_cap_seconds + 4 * policy.kms_timeout_seconds) * _MS
        if self._failed_at is not None and age_ms(self._failed_at, now) <= recent_ms:
            return False
        last_read, last_kms_check = limits.last_read, limits.last_kms_check
        if last_read is None or age_ms(last_read, now) > policy.refresh_every_seconds * _MS:
            return True
        return (
            last_kms_check is None
            or age_ms(last_kms_check, now) > policy.kms_check_every_seconds * _MS
        )

    def _pass(self, options: CallOptions, *, reads: bool) -> None:
        """One pass: reads the ring and makes the KMS check, each only if it is due. A failing store
        must not prevent the KMS check, and a failing KMS must not prevent the read; while one of
        them fails, the other is not called more often than usual."""
        self._assert_open()
        began = self.view.now()
        self._last_pass_ms = began.steady_ms
        self.view.ring_clock.tick(began)
        self.view.retire(began)
        failure: Exception | None = None
        try:
            if reads or self._ms_until_read() <= _EARLY_MS:
                self._read(options)
        except Exception as error:  # The only thread that refreshes must not end.
            failure, self._next_read_at = error, None
        if options.defer_unwraps and self._failures > 0:
            # A notification does not repeat what failed recently; the timer is set to do that.
            self._announce_status()
            if failure is not None:
                raise failure
            return
        try:
            self._prove(options)
        except Exception as error:
            failure = error
        self._assert_open()
        self._note(failure)
        self._schedule_next(self._next_delay_ms(failure))
        self._announce_status()
        if failure is not None:
            raise failure

    def _note(self, failure: Exception | None) -> None:
        if failure is None:
            self._failures, self._failed_at = 0, None
            if self._clock_trouble() is not None:
                self.last_failure = self._failure_now(("clock", "unconfirmed"))
            # A rotation that is overdue and keeps failing stays visible.
            elif self._rotation_failures == 0:
                self.last_failure = None
        elif not isinstance(failure, RingConflictError):
            # A lost race is not a failure: the next read learns what the winner wrote.
            self._failures += 1
            self._failed_at = self.view.now()
            self.last_failure = self._failure_now(_failure_of(failure))
            logger.debug("pass: %s", _text_of(failure))

    def _read(self, options: CallOptions) -> None:
        """Reads the ring; without `defer_unwraps` also does the work that needs the whole ring."""
        failure: Exception | None = None
        try:
            self._sync.read(options)
        except (RingStoreError, KeyWrapperError, RingConflictError) as error:
            failure = error
        is_member = self._role == "member"
        if is_member and self._sync.take_repair():
            self._repair()
            failure = failure if isinstance(failure, KeyWrapperError) else None
        # One key that cannot be unwrapped yet, possibly an attacker's, does not prevent the other
        # work of this member.
        if failure is not None and not isinstance(failure, KeyWrapperError):
            raise failure
        if options.defer_unwraps and self.view.snapshot.carried:
            if self._soon_at is None:
                self._soon_at = later(self.view.now(), self._push_delay_ms())
            return
        if failure is None:
            self._completed()
        if is_member:
            self._make_needed_key()
            if failure is None:
                self._writer.add_missing_wraps(options)
            self._consider_rotation()
        if failure is not None:
            raise failure

    def _repair(self) -> None:
        try:
            self._writer.restore()
        except RingStoreError as error:
            if error.kind == "unavailable":
                self._sync.repair_was_lost()
            raise

    def _read_to_write(self, options: CallOptions) -> None:
        """Reads the ring before a write. Entries that cannot be unwrapped yet do not prevent the
        write."""
        try:
            self._sync.read(options)
        except KeyWrapperError as error:
            logger.debug("read before a write: %s", _text_of(error))

    def _make_needed_key(self) -> None:
        """Creates a key for a ring that has no key to seal with, or soon will have none. If another
        member is creating it, schedules another read."""
        needed = self._writer.needed_key
        if needed is None:
            return
        wait_ms = self._founding.attempt(needed)
        if wait_ms > 0:
            self._soon_at = later(self.view.now(), wait_ms)

    def _prove(self, options: CallOptions) -> None:
        # A timer may fire a moment early: a KMS check that is almost due is made now, not in a
        # separate pass.
        if not self._is_proof_wanted and self._sync.ms_until_proof() > _EARLY_MS:
            return
        self._sync.prove(options)
        self._is_proof_wanted = False
        self._look_for_new_version()

    def _look_for_new_version(self) -> None:
        """Looks for a new version of the KMS key, if that is due. Runs after a successful KMS
        check, so that a failing KMS gets no further call."""
        every_ms = self._policy.key_version_every_seconds * _MS
        if self._role == "reader" or every_ms == 0:
            return
        now = self.view.now()
        if self._version_due_at is None:
            # The first time is random, so that members that start together do not check together.
            self._version_due_at = later(now, every_ms * self.view.uniform())
        if self._version_due_at.ms_left(now) > 0:
            return
        self._version_due_at = later(now, every_ms * (1 - 0.2 * self.view.uniform()))
        try:
            found = self._wraps.new_version(self.view.known_wraps())
        except KeyWrapperError as error:
            # Only a rotation depends on the version, and it would fail as well.
            logger.debug("look for a new version: %s", _text_of(error))
            return
        if found is not None:
            self._new_version = found
            logger.info("the KMS key has a new version (%s)", found.provider)
            self._consider_rotation()

    def _is_version_new(self) -> bool:
        """Whether a new version was noticed, and no member has rotated since."""
        found = self._new_version
        if found is None:
            return False
        wraps = self.view.known_wraps()
        if any((wrap.provider, wrap.key_id) == found for wrap in wraps):
            self._new_version = None
        return self._new_version is not None

    def _completed(self) -> None:
        self.view.limits.last_complete = now = self.view.now()
        self._soon_at = None
        jitter = 1 - 0.2 * self.view.uniform()
        self._next_read_at = later(now, self._policy.refresh_every_seconds * _MS * jitter)

    def _ms_until_read(self) -> float:
        if self._next_read_at is None:
            return 0
        now = self.view.now()
        repair_at = self._sync.repair_at if self._role == "member" else None
        dues = (self._next_read_at, self._soon_at, repair_at)
        return min(due.ms_left(now) for due in dues if due is not None)

    def _ms_until_due(self) -> float:
        due_ms = min(self._ms_until_read(), self._sync.ms_until_proof())
        return min(due_ms, self.view.ms_until_end(self.view.now()))

    def _consider_rotation(self) -> None:
        if self._role == "reader":
            return
        if not self._is_rotation_due():
            # Another member has rotated, or this member must not rotate now, so nothing is overdue
            # here.
            self._rotation_failures = 0
            return
        if self._cancel_rotation is not None:
            return
        if self._rotation_failures == 0:
            self._wait_turn(is_last=False)
            return
        cap_ms = self._policy.kms_check_every_seconds * _MS
        backoff_ms = min(cap_ms, _ROTATION_BACKOFF_MS * 2.0 ** min(self._rotation_failures, 32))
        self._rotate_after(backoff_ms * (0.5 + self.view.uniform() / 2), is_last=False)

    def _wait_turn(self, *, is_last: bool) -> None:
        """Waits one turn before a rotation: half of `rotation_delay_ms`."""
        wait_ms = rotation_delay_ms(self.view.uniform(), self._policy) / 2
        self._rotate_after(wait_ms, is_last=is_last)

    def _rotate_after(self, wait_ms: float, *, is_last: bool) -> None:
        def turn() -> None:
            self._cancel_rotation = None
            if not self.view.is_closed:
                self.turns.background(lambda: self._rotate_if_due(is_last=is_last))

        self._cancel_rotation = self.turns.later(turn, wait_ms)

    def _rotate_if_due(self, *, is_last: bool) -> None:
        """At the end of its first turn, a member makes a KMS check; only if the check passes does
        it wait a second turn, and then it creates a key. When an outage ends, members of a large
        fleet reach the end of a turn continually. With only one turn, each of them would create a
        key until the first key is stored."""
        # The codec may have been closed while this task waited behind others.
        if self.view.is_closed:
            return
        reason: RotationReason = "scheduled" if self._is_age_due() else "key-version"
        try:
            self._read_to_write(BACKGROUND)
            if not is_last and self._is_rotation_due():
                self._sync.prove(BACKGROUND)
                self._wait_turn(is_last=True)
                return
            if self._is_rotation_due():
                self._writer.publish(reason)
            self._rotation_failures = 0
        except RingConflictError:
            return
        except Exception as error:
            if self.view.is_closed:
                return
            self._rotation_failures += 1
            self.last_failure = self._failure_now(_failure_of(error))
            logger.warning("a rotation failed (%s): %s", reason, _text_of(error))
            self._consider_rotation()
        self._announce_status()

    def _is_rotation_due(self) -> bool:
        if self.view.is_closed:
            return False
        is_blocked = self.view.limits.seal_block(self.view.now()) is not None
        if is_blocked or self._clock_trouble() is not None:
            return False
        if self._writer.key_count >= MAX_KEYS_TO_SCHEDULE:
            return False
        return self._is_age_due() or self._is_version_due()

    def _is_version_due(self) -> bool:
        """Whether a new version requires a rotation: one for all members, and at most one per
        interval, because a service can name a new version and still wrap with an old one."""
        if not self._is_version_new() or self._writer.key_count >= MAX_KEYS_TO_ROTATE:
            return False
        known = self.view.snapshot
        created = [key.created for key in known.keys if not key.is_left]
        created += [entry.created for entry in known.carried]
        every_ms = self._policy.key_version_every_seconds * _MS
        return self.view.wall_ms() >= max(created, default=-_NEVER_MS) + every_ms

    def _is_age_due(self) -> bool:
        known = self.view.snapshot
        mine = [key for key in known.keys if not key.is_revoked and not key.is_left]
        newest = max([*mine, *known.carried], key=age, default=None)
        if newest is None:
            return False
        return self.view.wall_ms() >= rotate_at(newest.activates, self._policy)

    def _publishing(self, reason: RotationReason, run: Callable[[], None]) -> None:
        """Runs a requested publication, and reports its failure."""
        self._assert_open()
        try:
            run()
        except Exception as error:
            if not self.view.is_closed:
                logger.warning("could not publish (%s): %s", reason, _text_of(error))
            raise

    def _retry_conflicts(
        self, attempt: Callable[[], None], patience: Deadline | None = None
    ) -> None:
        """Tries again after a lost race, and, until `patience` has passed, when the store does not
        answer."""
        rounds = 0
        while True:
            try:
                attempt()
                return
            except (RingConflictError, RingStoreError) as error:
                is_silent = isinstance(error, RingStoreError) and error.kind == "unavailable"
                is_patient = patience is not None and patience.ms_left(self.view.now()) > 0
                may_try = isinstance(error, RingConflictError) or (is_silent and is_patient)
                if not may_try or rounds >= _MAX_CONFLICTS:
                    raise
            wait_ms = min(float(_MS), 10 * 2.0 ** min(rounds, 32)) * self.view.uniform()
            rounds += 1
            self._calls.pause(wait_ms / _MS)

    def _schedule_next(self, delay_ms: float) -> None:
        if self.view.is_closed:
            return
        self._cancel_timer()
        now = self.view.now()
        least_ms = self._floor_ms - (now.steady_ms - self._last_pass_ms)
        wait_ms = min(max(delay_ms, least_ms), self._policy.refresh_every_seconds * _MS)
        run = lambda: self._background(BACKGROUND, reads=False)  # noqa: E731
        self._cancel_timer = self.turns.later(run, wait_ms)
        self.view.overdue_at = later(now, wait_ms + self._policy.backoff_cap_seconds * _MS)

    def _overdue(self) -> None:
        """Timers do not run while a machine is suspended: the first call afterwards notices
        the delay."""
        self._is_proof_wanted = True
        self._next_read_at = None
        self._schedule_next(0)

    def _background(
        self, options: CallOptions, *, reads: bool, begin: Callable[[], None] | None = None
    ) -> None:
        def run() -> None:
            (begin or _nothing)()
            # The failure is in health(); no caller waits for a background pass.
            self._pass(options, reads=reads)

        if not self.view.is_closed:
            self.turns.background(run)

    def _next_delay_ms(self, failure: Exception | None) -> float:
        if isinstance(failure, RingConflictError):
            return _CONFLICT_WAIT_MS * self.view.uniform()
        if failure is None:
            return self._ms_until_due()
        until_repair_ms = self._ms_until_repair()
        limits = self.view.limits
        # The next call follows soon while refusals are being counted; once sealing is stopped, a
        # fleet must not hammer a disabled key.
        if limits.is_refused(self.view.now()) and not limits.is_stopped:
            return min(REFUSAL_PROBE_MS, until_repair_ms)
        cap_ms = self._policy.backoff_cap_seconds * _MS
        longest_ms = min(cap_ms, _BACKOFF_BASE_MS * 2.0 ** min(max(0, self._failures - 1), 32))
        spread_ms = max(0.0, longest_ms - self._floor_ms) * self.view.uniform()
        return min(self._floor_ms + spread_ms, until_repair_ms)

    def _ms_until_repair(self) -> float:
        repair_at = self._sync.repair_at
        # A ring in a store that does not answer cannot be repaired either, so the backoff
        # determines the wait.
        may_repair = self._sync.was_answered and self._role == "member"
        if repair_at is None or not may_repair:
            return _NEVER_MS
        return repair_at.ms_left(self.view.now())

    def _push_delay_ms(self) -> float:
        """A random delay: after a push, the whole fleet reads the ring at once, but must not call
        the KMS at once."""
        wall_ms = self.view.wall_ms()
        carried = self.view.snapshot.carried
        soonest = min(max(entry.activates - wall_ms, 0) / 4 for entry in carried)
        refresh_ms = self._policy.refresh_every_seconds * _MS
        return min(_PUSH_WAIT_CAP_MS, soonest, refresh_ms) * self.view.uniform()

    def _clock_trouble(self) -> str | None:
        return self.view.ring_clock.trouble(self.view.now())

    def _failure_now(self, failed: _Failed) -> Failure:
        at = datetime.fromtimestamp(self.view.now().wall_ms / _MS, timezone.utc)
        return Failure(*failed, at)

    def _announce_status(self) -> None:
        if self.view.is_closed:
            return
        status = self.health().status
        if status == self._last_status:
            return
        self._last_status = status
        last = self.last_failure
        cause = "" if last is None else f" ({last.source} {last.kind})"
        level = logging.INFO if status == "ok" else logging.WARNING
        logger.log(level, "ring is %s%s", status, cause)

    def _assert_open(self) -> None:
        if self.view.is_closed:
            raise CodecClosedError

    def _assert_member(self, operation: str) -> None:
        self._assert_open()
        if self._role == "reader":
            raise RingStoreError("read-only", f"a reader does not {operation}")


def _nothing() -> None:
    pass


def _failure_of(error: Exception) -> _Failed:
    if isinstance(error, RingStoreError):
        return "store", error.kind
    if isinstance(error, KeyWrapperError):
        return "kms", error.kind
    return ("store", "conflict") if isinstance(error, RingConflictError) else ("internal", "error")


def _text_of(error: Exception) -> str:
    return " ".join(_failure_of(error))
