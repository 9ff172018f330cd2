"""What two documents of one ring know together. Pure."""

from dataclasses import replace

from .document import RingDocument, RingEntry


def lacks(seen: RingDocument, known: RingDocument, now_ms: float) -> bool:
    """Whether `seen` lacks a live key or a revocation that `known` has: it was lost, not
    removed."""
    by_id = {entry.id: entry for entry in seen.entries}
    for entry in known.entries:
        if now_ms >= entry.opens_until:
            continue
        there = by_id.get(entry.id)
        if there is None or (entry.revoked is not None and there.revoked is None):
            return True
    return False


def union(known: RingDocument, seen: RingDocument) -> RingDocument:
    """All keys, revocations and wraps of both; not stored anywhere, so without text and MACs. Times
    of one key cannot differ, since they are bound into its wraps: those of `known` are taken."""
    entries = {entry.id: entry for entry in known.entries}
    for entry in seen.entries:
        mine = entries.get(entry.id)
        entries[entry.id] = entry if mine is None else _merged(mine, entry)
    epoch = max(known.epoch, seen.epoch)
    return RingDocument(known.ring, epoch, tuple(entries.values()), body="", macs={})


def _merged(mine: RingEntry, theirs: RingEntry) -> RingEntry:
    revocations = [one for one in (mine.revoked, theirs.revoked) if one is not None]
    wraps = mine.wraps + tuple(wrap for wrap in theirs.wraps if wrap not in mine.wraps)
    return replace(mine, revoked=min(revocations, default=None), wraps=wraps)
