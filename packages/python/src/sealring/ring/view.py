"""What this reader knows of the ring, and what it may do with it: everything that sealing and
opening look at. No I/O and no timers."""

import threading
from collections.abc import Callable
from typing import NamedTuple

from ..clock import Clock, Deadline, Moment, moment_of
from ..errors import CodecClosedError, SealUnavailableError
from ..held_key import HeldKey
from .document import RingDocument, RingEntry
from .limits import Limits
from .policy import RingPolicy
from .schedule import KeyState, may_open
from .service_clock import ServiceClock
from .snapshot import RingKey, RingSnapshot, create_snapshot
from .wraps import KeyWraps

# Keys that are remembered for what they signed: twice a full ring.
_MAX_PAST_SIGNERS = 128


class Usable(NamedTuple):
    """A key that may be used now."""

    id: str
    held: HeldKey


class RingView:
    """The snapshot is swapped by one assignment; the lock is held for choices, never for I/O."""

    def __init__(
        self,
        policy: RingPolicy,
        clock: Clock,
        wraps: KeyWraps,
        service_clock: ServiceClock,
        accept_created_from_ms: float | None,
    ) -> None:
        self.limits = Limits(policy)
        self._policy = policy
        self._clock = clock
        self._wraps = wraps
        self._service_clock = service_clock
        self._accept_created_from_ms = accept_created_from_ms
        self._lock = threading.Lock()
        self._snapshot: RingSnapshot | None = None
        self._is_closed = False
        self._sealed_with: str | None = None
        self._highest_wall_ms = 0
        self._overdue_at: Deadline | None = None
        self._on_overdue: Callable[[], None] = lambda: None
        # Oldest first. A store that fails over to an older copy must be known for what it is when
        # the keys of that copy have ended meanwhile.
        self._signers: dict[str, HeldKey] = {}

    @property
    def snapshot(self) -> RingSnapshot:
        """The ring as last adopted.

        Raises:
            CodecClosedError: after close, and before the ring was first read.
        """
        snapshot = self._snapshot
        if self._is_closed:
            raise CodecClosedError
        if snapshot is None:
            raise CodecClosedError("the codec is not started")
        return snapshot

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    @property
    def is_clock_off(self) -> bool:
        """Whether this machine's clock is too far from that of KMS or store."""
        return self._service_clock.is_off

    def now(self) -> Moment:
        return moment_of(self._clock)

    def wall_ms(self, now: Moment | None = None) -> float:
        """The time that keys are judged by: never further back than the highest seen minus the
        tolerated skew."""
        wall_ms = (now or self.now()).wall_ms
        self._highest_wall_ms = max(wall_ms, self._highest_wall_ms)
        return max(wall_ms, self._highest_wall_ms - self._policy.clock_skew_seconds * 1_000)

    def sealing_key(self, now: Moment) -> Usable:
        """The key that seals now.

        Raises:
            SealUnavailableError: when none may.
        """
        self._notice_gap(now)
        with self._lock:
            snapshot = self.snapshot
            block = self.limits.seal_block(now)
            if block is not None:
                raise SealUnavailableError(block)
            key = snapshot.sealing_key(self.wall_ms(now), self._sealed_with)
            if key is None or key.held is None:
                raise SealUnavailableError("no active key")
            self._sealed_with = key.id
            return Usable(key.id, key.held)

    def opening_key(self, key_id: str, now: Moment) -> HeldKey | None:
        """The key with this id, if it may open now."""
        self._notice_gap(now)
        key = self.snapshot.by_id.get(key_id)
        if key is None or not self._may_open(key, now) or not self.limits.may_open(now):
            return None
        return key.held

    def opening_keys(self, now: Moment) -> list[HeldKey]:
        """All keys that may open now, newest first."""
        self._notice_gap(now)
        keys = self.snapshot.keys
        if not self.limits.may_open(now):
            return []
        return [key.held for key in reversed(keys) if key.held and self._may_open(key, now)]

    def can_seal(self, now: Moment) -> bool:
        snapshot = self._snapshot
        if self._is_closed or snapshot is None or self.limits.seal_block(now) is not None:
            return False
        return snapshot.sealing_key(self.wall_ms(now), self._sealed_with) is not None

    def is_ready(self, now: Moment) -> bool:
        opens = self.limits.may_open(now) and self.limits.is_current(now)
        return self.can_seal(now) and opens and not self.is_clock_off

    def states(self, now: Moment) -> list[tuple[RingKey, KeyState]]:
        return self.snapshot.states(self.wall_ms(now), self._sealed_with)

    def install(self, document: RingDocument) -> None:
        """Swaps the snapshot for one of `document`; overwrites the keys that it does not name."""
        with self._lock:
            if self._is_closed:
                return
            snapshot = create_snapshot(document, self._wraps.cached, self.is_revoked)
            self._snapshot = snapshot
            self._remember_signers(snapshot)
            self._prune(snapshot)

    def drop_ended(self) -> None:
        """Overwrites the keys whose life is over."""
        with self._lock:
            if self._snapshot is not None:
                self._prune(self._snapshot)

    def past_signers(self) -> list[HeldKey]:
        """What can check documents that were signed with keys this reader held once, revoked and
        ended ones included."""
        return list(self._signers.values())

    def is_revoked(self, entry: RingEntry) -> bool:
        """Revoked in the ring, or by this reader's own pin."""
        accepted_from_ms = self._accept_created_from_ms
        is_pinned_out = accepted_from_ms is not None and entry.created < accepted_from_ms
        return entry.revoked is not None or is_pinned_out

    def expect_refresh_before(self, deadline: Deadline, on_overdue: Callable[[], None]) -> None:
        """No thread runs while a machine is suspended: the first call after `deadline` tells."""
        self._on_overdue = on_overdue
        self._overdue_at = deadline

    def close(self) -> None:
        """Overwrites the data keys; every later use raises."""
        with self._lock:
            self._is_closed = True
            self._snapshot = None
            self._wraps.prune(())
            for signer in self._signers.values():
                signer.destroy()
            self._signers.clear()

    def _may_open(self, key: RingKey, now: Moment) -> bool:
        return key.held is not None and may_open(key, self.wall_ms(now))

    def _prune(self, snapshot: RingSnapshot) -> None:
        now_ms = self.wall_ms()
        self._wraps.prune(
            key.signer for key in snapshot.keys if key.signer and now_ms < key.opens_until
        )

    def _remember_signers(self, snapshot: RingSnapshot) -> None:
        for key in snapshot.keys:
            if key.held is None or key.id in self._signers:
                continue
            self._signers[key.id] = key.held.as_ring_signer()
            if len(self._signers) > _MAX_PAST_SIGNERS:
                self._signers.pop(next(iter(self._signers))).destroy()

    def _notice_gap(self, now: Moment) -> None:
        overdue_at = self._overdue_at
        if overdue_at is not None and overdue_at.has_passed(now):
            self._overdue_at = None
            self._on_overdue()
