"""The ring at one moment: immutable, and swapped by a single assignment."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..held_key import HeldKey
from .document import RingDocument, RingEntry
from .schedule import KeyState, age, may_open, may_seal, state_of


@dataclass(frozen=True)
class RingKey:
    """A key of the ring as this reader sees it."""

    entry: RingEntry
    is_revoked: bool
    held: HeldKey | None
    """What seals and opens; None while it could not be unwrapped, and for a revoked key."""
    signer: HeldKey | None
    """What checks ring documents: the held key, or what is left of a revoked one."""

    @property
    def id(self) -> str:
        return self.entry.id

    @property
    def activates(self) -> int:
        return self.entry.activates

    @property
    def seals_until(self) -> int:
        return self.entry.seals_until

    @property
    def opens_until(self) -> int:
        return self.entry.opens_until


@dataclass(frozen=True)
class RingSnapshot:
    """A ring document with the keys that are held."""

    document: RingDocument
    keys: tuple[RingKey, ...]
    """Oldest first."""
    by_id: Mapping[str, RingKey]

    def sealing_key(self, now_ms: float, last_sealed: str | None) -> RingKey | None:
        """The newest key that is held and whose times allow it, but never an older one than the one
        that sealed last: a clock that stepped back must not bring an old key back. So the last one
        goes on sealing though such a clock says that it is not active yet. A key that was revoked
        since binds nothing: its successor may well be the older by its times."""
        last = None if last_sealed is None else self.by_id.get(last_sealed)
        if last is not None and last.is_revoked:
            last = None
        for key in reversed(self.keys):
            if last is not None and age(key) < age(last):
                return None
            at = max(now_ms, key.activates) if key is last else now_ms
            if key.held is not None and may_seal(key, at):
                return key
        return None

    def live_keys(self, now_ms: float) -> list[RingKey]:
        """The keys that must be held to open whatever the fleet sealed."""
        return [key for key in self.keys if may_open(key, now_ms)]

    def states(self, now_ms: float, last_sealed: str | None) -> list[tuple[RingKey, KeyState]]:
        """The states of all keys, oldest first."""
        sealing = self.sealing_key(now_ms, last_sealed)
        sealing_id = None if sealing is None else sealing.id
        return [(key, state_of(key, now_ms, sealing_id)) for key in self.keys]


def create_snapshot(
    document: RingDocument,
    held_of: Callable[[RingEntry], HeldKey | None],
    is_revoked: Callable[[RingEntry], bool],
) -> RingSnapshot:
    """A snapshot of a document; overwrites the data keys that it revokes."""
    keys = []
    for entry in document.entries:
        signer, revoked = held_of(entry), is_revoked(entry)
        if revoked and signer is not None:
            signer.limit_to_ring()
        keys.append(RingKey(entry, revoked, None if revoked else signer, signer))
    ordered = tuple(sorted(keys, key=age))
    return RingSnapshot(document, ordered, {key.id: key for key in ordered})
