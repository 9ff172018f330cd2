"""What is known of the ring at one moment: immutable, and swapped by a single assignment."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..held_key import HeldKey
from .document import RingEntry
from .schedule import KeyState, age, may_open, may_seal, state_of

# Entries that are remembered though they could not be unwrapped.
_MAX_CARRIED = 4


@dataclass(frozen=True)
class RingKey:
    """A key of the ring as this reader knows it: facts that proved themselves."""

    entry: RingEntry
    """What of it could be checked here: vouchers, ancestors, its revocation, wraps. Of a key that
    was never unwrapped, its revocation alone."""
    held: HeldKey | None
    """What seals and opens; None for a key that is revoked or has ended."""
    signer: HeldKey | None
    """What certifies: the held key, or what is left of it."""
    is_revoked: bool
    seals_from_ms: float = 0
    """From when on it seals here, by the monotonic clock: a planned key that came late seals
    late."""
    is_left: bool = False
    """Of a ring that was left for an older one: opens what it sealed, and nothing else."""

    @property
    def id(self) -> str:
        return self.entry.id

    @property
    def created(self) -> int:
        return self.entry.created

    @property
    def activates(self) -> int:
        return self.entry.activates

    @property
    def seals_until(self) -> int:
        return self.entry.seals_until

    @property
    def opens_until(self) -> int:
        return self.entry.opens_until

    @property
    def is_tombstone(self) -> bool:
        """Whether it is known only for being revoked."""
        return self.signer is None


@dataclass(frozen=True)
class RingSnapshot:
    """The keys that are known."""

    keys: tuple[RingKey, ...]
    """Oldest first by (activates, id)."""
    by_id: Mapping[str, RingKey]
    carried: tuple[RingEntry, ...]
    """Vouched for and not unwrapped yet: not used."""
    unreadable: tuple[RingEntry, ...]
    """Vouched for, and corrupt or without a wrap of ours; at most 4 with those."""

    def sealing_key(self, now_ms: float, steady_ms: float, last: str | None) -> RingKey | None:
        """The newest key that is held and whose times allow it, but never an older one than `last`,
        the one that sealed last: a clock that stepped back must not bring an old key back. So the
        last one goes on sealing though such a clock says that it is not active yet. A key that was
        revoked since binds nothing: its successor may well be the older by its times. A planned key
        that came late waits, as long as another one may seal meanwhile."""
        not_before = None if last is None else self.by_id.get(last)
        if not_before is not None and not_before.is_revoked:
            not_before = None
        late: RingKey | None = None
        for key in reversed(self.keys):
            if not_before is not None and age(key) < age(not_before):
                break
            at = max(now_ms, key.activates) if key is not_before else now_ms
            if key.held is None or key.is_left or not may_seal(key, at):
                continue
            if steady_ms >= key.seals_from_ms or key is not_before:
                return key
            late = late or key
        return late

    def usable_keys(self, now_ms: float) -> list[RingKey]:
        """Those that are held and may open."""
        return [key for key in self.keys if key.held is not None and may_open(key, now_ms)]

    def is_dead(self, now_ms: float) -> bool:
        """Whether nobody could use this ring: every key has ended or is revoked."""
        return not self.usable_keys(now_ms)

    def has_sealing_key(self, now_ms: float) -> bool:
        """Whether a key may seal by its times, or one that is waited for."""
        is_here = any(key.held and not key.is_left and may_seal(key, now_ms) for key in self.keys)
        return is_here or any(is_in_use(entry, now_ms) for entry in self.carried)

    def holds_newest(self, now_ms: float) -> bool:
        """Whether what others may seal with by now can be opened here."""
        held = [key for key in self.keys if key.held and not key.is_left]
        newest = max((key.activates for key in held if is_in_use(key, now_ms)), default=None)
        missing = [entry.activates for entry in self.carried if is_in_use(entry, now_ms)]
        return newest is not None and all(activates < newest for activates in missing)

    def states(
        self, now_ms: float, steady_ms: float, last: str | None
    ) -> list[tuple[RingKey, KeyState]]:
        """The states of all keys, oldest first, of those that are not unwrapped too."""
        sealing = self.sealing_key(now_ms, steady_ms, last)
        missing = (RingKey(entry, None, None, False) for entry in self.carried + self.unreadable)
        keys = [*self.keys, *(key for key in missing if key.id not in self.by_id)]
        return [(key, state_of(key, now_ms, sealing)) for key in sorted(keys, key=age)]


def is_in_use(key: RingKey | RingEntry, now_ms: float) -> bool:
    return key.activates <= now_ms < key.seals_until


def create_snapshot(
    keys: Iterable[RingKey],
    carried: Iterable[RingEntry] = (),
    unreadable: Iterable[RingEntry] = (),
) -> RingSnapshot:
    ordered = tuple(sorted(keys, key=age))
    waited = tuple(carried)[:_MAX_CARRIED]
    others = tuple(unreadable)[: _MAX_CARRIED - len(waited)]
    return RingSnapshot(ordered, {key.id: key for key in ordered}, waited, others)
