"""This process's view of the ring: everything that sealing and unsealing use. No I/O and no
timers."""

import threading
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import replace

from ..clock import Clock, Deadline, Moment, RandomSource, age_ms, moment_of, uniform
from ..errors import CodecClosedError, SealUnavailableError
from ..held_key import HeldKey
from .certificates import Signers, birth, signers_of
from .document import RingEntry, RingWrap
from .facts import Judgement
from .limits import Limits
from .policy import MAX_RING_KEYS, RingPolicy
from .publication import Publisher
from .ring_clock import RingClock
from .schedule import is_planned, removable_from
from .snapshot import KeyState, RingKey, RingSnapshot, create_snapshot


class RingView:
    """What this process knows about the ring. The snapshot is swapped by one assignment; the lock
    is held while a key is chosen, never during I/O."""

    def __init__(
        self,
        ring: str,
        policy: RingPolicy,
        clock: Clock,
        accepts_created_from_ms: float,
        random: RandomSource,
    ) -> None:
        self.ring = ring
        self.policy = policy
        self.random = random
        self.limits = Limits(policy)
        self.ring_clock = RingClock(policy, clock)
        self.is_closed = False
        self.overdue_at: Deadline | None = None
        """The time from which a refresh is late. No thread runs while a machine is suspended, so
        the first call after it resumes calls `on_overdue`."""
        self.on_overdue: Callable[[], None] = lambda: None
        self.on_unknown_key: Callable[[Moment], None] = lambda _: None
        self._clock = clock
        self._accepts_created_from_ms = accepts_created_from_ms
        self._lock = threading.Lock()
        self._snapshot = create_snapshot(())
        self._sealed_with: str | None = None
        # Any key that was ever known may vouch for the next key, even an expired one.
        self._past: dict[str, RingKey] = {}
        # Ids of revoked keys whose life is over, newest last. If the clock steps back, such a key
        # must not return.
        self._over: dict[str, None] = {}
        # Keys that this process tried to publish, newest last. If such a key appears later, it was
        # written late.
        self._attempted: dict[str, None] = {}
        # All keys that were unwrapped, until a snapshot without them is installed.
        self._held: dict[str, HeldKey] = {}

    @property
    def snapshot(self) -> RingSnapshot:
        """The current snapshot. Raises CodecClosedError after close."""
        snapshot = self._snapshot
        if self.is_closed:
            raise CodecClosedError
        return snapshot

    def now(self) -> Moment:
        return moment_of(self._clock)

    def wall_ms(self, now: Moment | None = None) -> float:
        """The time that decides the state of keys: see `RingClock`."""
        return self.ring_clock.time_ms(now or self.now())

    def uniform(self) -> float:
        """In [0, 1), for jitter."""
        return uniform(self.random)

    def sealing_key(self, now: Moment) -> HeldKey:
        """The key that seals now. Raises SealUnavailableError when no key may seal."""
        self._notice_gap(now)
        with self._lock:
            snapshot = self.snapshot
            block = self.limits.seal_block(now)
            if block is not None:
                raise SealUnavailableError(block)
            key = snapshot.sealing_key(self.wall_ms(now), now.steady_ms, self._sealed_with)
            if key is None or key.held is None:
                raise SealUnavailableError("no active key")
            self._sealed_with = key.id
            return key.held

    def opening_key(self, key_id: str, now: Moment) -> HeldKey | None:
        self._notice_gap(now)
        key = self.snapshot.by_id.get(key_id)
        if key is None or not key.may_open(self.wall_ms(now)) or not self.limits.may_open(now):
            return None
        return key.held

    def opening_keys(self, now: Moment) -> list[HeldKey]:
        """All keys that may unseal now, newest first."""
        self._notice_gap(now)
        keys = self.snapshot.usable_keys(self.wall_ms(now)) if self.limits.may_open(now) else []
        return [key.held for key in reversed(keys) if key.held]

    def note_unknown_key(self, key_id: str | None, now: Moment) -> None:
        """Called for a token that names a key that may not unseal. If the key is known, reading the
        ring again would not help."""
        if key_id is None or key_id not in self.snapshot.by_id:
            self.on_unknown_key(now)

    def states(self, now: Moment) -> list[tuple[RingKey, KeyState]]:
        return self.snapshot.states(self.wall_ms(now), now.steady_ms, self._sealed_with)

    def known_wraps(self) -> list[RingWrap]:
        """The wraps of all entries of the ring, whether the entries were unwrapped or not."""
        known = self.snapshot
        keys = [key for key in known.keys if not key.is_left]
        return [wrap for one in (*keys, *known.carried, *known.unreadable) for wrap in one.wraps]

    def note_attempt(self, key_id: str) -> None:
        """Notes that this process is about to publish a key."""
        _remember_id(self._attempted, key_id)

    def seals_from_ms(self, entry: RingEntry, now: Moment) -> float:
        """The monotonic time from which this process seals with a newly read key. A planned key
        was written late if this process sees it only now although it has read the ring without a
        gap, or if this process tried to publish it. This process then waits, so that the other
        members can read the key before it seals. Emergency keys are not delayed: their times show
        that they are not planned."""
        last_read, policy = self.limits.last_read, self.policy
        had_gap = last_read is None or (
            age_ms(last_read, now) > 2 * policy.refresh_every_seconds * 1_000
        )
        is_late = not had_gap or entry.id in self._attempted
        if not is_late or not is_planned(entry.created, entry.activates, policy):
            return 0
        return now.steady_ms + policy.late_wait_seconds * 1_000

    def hold(self, held: HeldKey) -> HeldKey:
        """Returns the key that is already held under this id, and destroys `held`; otherwise holds
        `held` and returns it."""
        known = self._held.get(held.id)
        if known is None or known.is_overwritten:
            self._held[held.id] = held
            return held
        held.destroy()
        return known

    def holds(self, key_id: str) -> bool:
        return key_id in self._held

    def install(self, snapshot: RingSnapshot) -> None:
        """Swaps the snapshot, and overwrites every key that is no longer used."""
        with self._lock:
            if not self.is_closed:
                self._install(snapshot)

    def begin(self, snapshot: RingSnapshot) -> None:
        """Like `install`, but for another ring: the key that sealed last sets no lower limit, and
        expired keys no longer vouch."""
        with self._lock:
            if not self.is_closed:
                self._sealed_with = None
                self._past = {}
                self._install(snapshot)

    def retire(self, now: Moment) -> None:
        """Overwrites the data keys that have expired, and drops the keys whose life is over on
        every clock; their authenticators can still certify. While the time is unconfirmed, no key
        has expired."""
        wall_ms = self.wall_ms(now)
        with self._lock:
            snapshot = self._snapshot
            if self.ring_clock.trouble(now) is not None:
                return
            kept = [key for key in snapshot.keys if not self._is_over(key, wall_ms)]
            held = [
                replace(key, held=None) if key.held and wall_ms >= key.opens_until else key
                for key in kept
            ]
            if tuple(held) == snapshot.keys:
                return
            over = [key for key in snapshot.keys if self._is_over(key, wall_ms)]
            for key in over:
                if key.is_revoked:
                    _remember_id(self._over, key.id)
            self._remember(signers_of((key for key in over if not key.is_left), self._past))
            self._install(create_snapshot(held, snapshot.carried, snapshot.unreadable))

    def remember_past(self, keys: Iterable[RingKey]) -> None:
        """Remembers what expired keys can certify."""
        with self._lock:
            self._remember(signers_of(keys, self._past))

    @property
    def past(self) -> Signers:
        """Keys that have expired and can still certify."""
        return self._past

    @property
    def signers(self) -> Signers:
        """All keys that can certify something to this process."""
        return signers_of(self._snapshot.keys, self._past)

    def publisher(self, now: Moment) -> Publisher:
        """The inputs of a document that is written now. A key may leave the document when its life
        is over on every clock. While the time is unconfirmed, no key may leave."""
        is_confirmed = self.ring_clock.trouble(now) is None
        until_ms = self.wall_ms(now) - removable_from(0, self.policy)
        return Publisher(self.ring, self._past, until_ms if is_confirmed else -float("inf"))

    def ms_until_end(self, now: Moment) -> float:
        """Milliseconds until `retire` must be called again because a data key expires."""
        if self.ring_clock.trouble(now) is not None:
            return float("inf")
        ends = [key.opens_until for key in self.snapshot.keys if key.held is not None]
        return max(0, min(ends, default=float("inf")) - self.wall_ms(now))

    def judgement(self) -> Judgement:
        """The state that documents are checked against now."""
        now = self.now()
        return Judgement(
            now_ms=self.wall_ms(now),
            is_unconfirmed=self.ring_clock.trouble(now) is not None,
            clock_skew_ms=self.policy.clock_skew_seconds * 1_000,
            past=self._past,
            over=self._over,
            accepts_created_from_ms=self._accepts_created_from_ms,
        )

    def close(self) -> None:
        """Overwrites the data keys. Every later use of the view raises an error."""
        with self._lock:
            self.is_closed = True
            self._snapshot = create_snapshot(())
            self._past = {}
            self._prune(())

    def _is_over(self, key: RingKey, wall_ms: float) -> bool:
        return wall_ms >= removable_from(key.opens_until, self.policy)

    def _remember(self, past: Mapping[str, RingKey]) -> None:
        newest = sorted(past.values(), key=birth, reverse=True)[:MAX_RING_KEYS]
        self._past = {key.id: replace(key, held=None) for key in newest}
        for key in newest:
            if key.signer is not None:
                key.signer.limit_to_ring()

    def _install(self, snapshot: RingSnapshot) -> None:
        self._snapshot = snapshot
        for key in snapshot.keys:
            if key.held is None and key.signer is not None:
                key.signer.limit_to_ring()
        self._prune(signers_of(snapshot.keys, self._past))

    def _prune(self, keep: Container[str]) -> None:
        for key_id in [key_id for key_id in self._held if key_id not in keep]:
            self._held.pop(key_id).destroy()

    def _notice_gap(self, now: Moment) -> None:
        if self.overdue_at is not None and self.overdue_at.ms_left(now) <= 0:
            self.overdue_at = None
            self.on_overdue()


def _remember_id(ids: dict[str, None], key_id: str) -> None:
    """Remembers an id; if there are too many, forgets the oldest one."""
    ids[key_id] = None
    if len(ids) > MAX_RING_KEYS:
        del ids[next(iter(ids))]
