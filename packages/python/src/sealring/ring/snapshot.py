"""The view of the ring at one moment, with what each key may be used for. A snapshot is immutable,
and is replaced by a single assignment."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from ..held_key import HeldKey
from .document import RingEntry

KeyState = Literal["propagating", "active", "verify-only", "expired", "revoked"]

# The maximum number of entries that are remembered although they could not be unwrapped.
_MAX_CARRIED = 4


@dataclass(frozen=True)
class RingKey(RingEntry):
    """A key of the ring as this process knows it. Its vouchers, ancestors, revocation and wraps are
    authenticated. If the key was never unwrapped, only its revocation is known."""

    held: HeldKey | None = None
    """The key that seals and unseals; None if it is revoked or has expired."""
    signer: HeldKey | None = None
    """The key that authenticates for it: the held key, or what remains of it after its data key was
    overwritten."""
    is_revoked: bool = False
    seals_from_ms: float = 0
    """The monotonic time from which this process seals with the key. If a planned key arrived late,
    this process also starts to seal with it late."""
    is_left: bool = False
    """Whether the key belongs to a ring that this process left for an older ring. Such a key only
    unseals tokens that were sealed with it."""

    @property
    def is_tombstone(self) -> bool:
        """Whether only its revocation is known."""
        return self.signer is None

    def may_seal(self, now_ms: float) -> bool:
        return self.held is not None and not self.is_left and is_in_use(self, now_ms)

    def may_open(self, now_ms: float) -> bool:
        return self.held is not None and now_ms < self.opens_until

    def state(self, now_ms: float, sealing: RingEntry | None) -> KeyState:
        """The state of the key at `now_ms`. `sealing` is the key that seals now; a newer key may
        exist that is not active yet."""
        if self.is_revoked:
            return "revoked"
        if now_ms >= self.opens_until:
            return "expired"
        if sealing is not None and self.id == sealing.id:
            return "active"
        is_waiting = now_ms < self.activates if sealing is None else age(self) > age(sealing)
        return "propagating" if is_waiting and now_ms < self.seals_until else "verify-only"


def age(key: RingEntry) -> tuple[int, str]:
    """The sort key for the order in which keys become active: a later key is newer."""
    return key.activates, key.id


def is_in_use(key: RingEntry, now_ms: float) -> bool:
    """Whether the times of the key allow other members to seal with it."""
    return key.activates <= now_ms < key.seals_until


@dataclass(frozen=True, eq=False)
class RingSnapshot:
    """The known keys and entries of the ring at one moment."""

    keys: tuple[RingKey, ...]
    """Oldest first by (activates, id)."""
    by_id: Mapping[str, RingKey]
    carried: tuple[RingEntry, ...]
    """Entries that are vouched for but not unwrapped yet; they are not used."""
    unreadable: tuple[RingEntry, ...]
    """Entries that are vouched for, and are corrupt or have no wrap by this process's key wrappers;
    at most 4 with those."""

    def sealing_key(self, now_ms: float, steady_ms: float, last: str | None) -> RingKey | None:
        """The newest key that is held and whose times allow it to seal, but never one older than
        `last`, the key that sealed last: a clock that stepped back must not bring an old key back.
        So `last` keeps sealing even if such a clock shows that it is not active yet. Once `last` is
        revoked, this limit ends: by its times, the successor may be older. A planned key that
        arrived late waits as long as another key may seal."""
        not_before = None if last is None else self.by_id.get(last)
        if not_before is not None and not_before.is_revoked:
            not_before = None
        late: RingKey | None = None
        for key in reversed(self.keys):
            if not_before is not None and age(key) < age(not_before):
                break
            if not key.may_seal(max(now_ms, key.activates) if key is not_before else now_ms):
                continue
            if steady_ms >= key.seals_from_ms or key is not_before:
                return key
            late = late or key
        return late

    def usable_keys(self, now_ms: float) -> list[RingKey]:
        """The keys that may unseal. Without such a key, no process could use this ring."""
        return [key for key in self.keys if key.may_open(now_ms)]

    def holds_newest(self, now_ms: float, opening_ms: float, skew_ms: float) -> bool:
        """Whether this process can unseal both the tokens that other members may seal now and the
        unexpired tokens that they have sealed. `opening_ms` is how much longer a key unseals than
        it seals; the clocks of the other members are at most `skew_ms` ahead."""
        held = [key for key in self.keys if key.held is not None and not key.is_left]

        def is_missed(entry: RingEntry) -> bool:
            newer = [key.activates for key in held if key.activates > entry.activates]
            last_seal_ms = min([entry.seals_until, *newer])
            return entry.activates - skew_ms <= now_ms < last_seal_ms + opening_ms

        is_here = any(key.may_seal(now_ms) for key in self.keys)
        return is_here and not any(is_missed(entry) for entry in self.carried)

    def states(
        self, now_ms: float, steady_ms: float, last: str | None
    ) -> list[tuple[RingKey, KeyState]]:
        """The states of all keys, oldest first, including those that are not unwrapped."""
        sealing = self.sealing_key(now_ms, steady_ms, last)
        missing = (RingKey(**vars(entry)) for entry in self.carried + self.unreadable)
        keys = [*self.keys, *(key for key in missing if key.id not in self.by_id)]
        return [(key, key.state(now_ms, sealing)) for key in sorted(keys, key=age)]


def create_snapshot(
    keys: Iterable[RingKey], carried: Iterable[RingEntry] = (), unreadable: Iterable[RingEntry] = ()
) -> RingSnapshot:
    ordered = tuple(sorted(keys, key=age))
    waited = tuple(carried)[:_MAX_CARRIED]
    others = tuple(unreadable)[: _MAX_CARRIED - len(waited)]
    return RingSnapshot(ordered, {key.id: key for key in ordered}, waited, others)


def with_keys(known: RingSnapshot, keys: Iterable[RingKey]) -> RingSnapshot:
    """A snapshot with `keys` added to those of `known`; a key with a known id replaces the known
    key."""
    by_id = {**known.by_id, **{key.id: key for key in keys}}
    return create_snapshot(by_id.values(), known.carried, known.unreadable)


def with_revoked(known: RingSnapshot, revoked: Collection[RingKey]) -> RingSnapshot:
    """The snapshot after revocations; entries that were not unwrapped are replaced by them."""
    ids = {key.id for key in revoked}
    return create_snapshot(
        with_keys(known, revoked).keys,
        [entry for entry in known.carried if entry.id not in ids],
        [entry for entry in known.unreadable if entry.id not in ids],
    )
