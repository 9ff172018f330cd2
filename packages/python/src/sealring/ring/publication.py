"""The documents that a member writes, with all facts and revocations that it knows. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from .certificates import (
    Signers,
    birth,
    certificate_of,
    is_certified,
    is_right_wrap,
    right_vouchers,
    signers_of,
    vouchers_by,
)
from .document import (
    MAX_DOCUMENT_BYTES,
    MAX_MACS,
    MAX_WRAPS,
    Macs,
    Revocation,
    RingDocument,
    RingEntry,
    RingWrap,
    encode_document,
    format_time,
    time_ms,
)
from .facts import first_of, tombstone
from .policy import MAX_RING_KEYS
from .snapshot import RingKey, RingSnapshot, age

# The number of the last round of `document_of`. Round 0 keeps everything; the next rounds also
# leave out carried entries, tombstones, some of the wraps and, last, some of the certificates and
# the keys that only the pin refuses.
_MOST_SPARED = 4
_NO_MACS: Macs = {}


class Publisher(NamedTuple):
    """The inputs of a write besides the facts."""

    ring: str
    past: Signers
    """Keys that have expired and can still certify."""
    removable_until_ms: float
    """Keys that unseal until this moment or earlier may leave the document."""

    def is_removable(self, key: RingEntry) -> bool:
        return key.opens_until <= self.removable_until_ms


def revoked_key(key: RingKey, at_ms: float, signers: Signers) -> RingKey | None:
    """The known key as a revoked key, with its own certificate if this process can make it, and
    with the certificate of the newest key that may certify the revocation. None if there is no
    certificate at all."""
    at = format_time(at_ms) if key.revocation is None else key.revocation.at
    known = _NO_MACS if key.revocation is None else key.revocation.by
    by = _certificates_for(key, at, signers, known)
    return replace(key, is_revoked=True, held=None, revocation=Revocation(at, by)) if by else None


def written_keys(known: RingSnapshot, publisher: Publisher) -> list[RingKey]:
    """The keys that this process writes: not those of a ring that it has left, and not those whose
    life is over. A key that only its pin refuses is in use elsewhere, but a writer without any key
    can invent such entries: they are written only if a known key names them as ancestors or vouches
    for them."""
    signers = signers_of(known.keys, publisher.past)
    told = [key.ancestors for key in known.keys if not key.is_left]
    named = {key_id for one in told if one is not None for key_id in one.ids}

    def may_be_junk(key: RingKey) -> bool:
        return _is_only_pinned_out(key) and not (key.id in named or right_vouchers(key, signers))

    kept = (key for key in known.keys if not key.is_left and not publisher.is_removable(key))
    return [key for key in kept if not may_be_junk(key)]


def _is_only_pinned_out(key: RingKey) -> bool:
    return key.is_tombstone and key.revocation is None


def document_of(
    known: RingSnapshot, read: RingDocument | None, publisher: Publisher
) -> RingDocument:
    """The document with all known facts, which replaces `read`. While there is room, it keeps the
    certificates in `read` that only other processes can check. If the document exceeds a limit, the
    oldest revocations are left out first; then entries that are merely carried, then all
    tombstones, then wraps that this process neither made nor unwrapped, then further certificates
    and keys that only the pin of this process refuses. A key that it may use is never left out."""
    signers = signers_of(known.keys, publisher.past)
    there = {} if read is None else {entry.id: entry for entry in read.entries}
    kept = written_keys(known, publisher)
    current = signers_of(kept, {})
    # A key that only the pin of this process refuses is in use elsewhere.
    in_use = [key for key in kept if key.revocation is None]
    links = _links_between(in_use, known.by_id)
    spared = 0
    while True:
        if spared >= _MOST_SPARED:
            in_use = [key for key in in_use if not _is_only_pinned_out(key)]
            links = _links_between(in_use, known.by_id)
        carried = () if spared >= 1 else known.carried + known.unreadable
        revoked = [key for key in kept if key.revocation and (spared < 2 or not key.is_tombstone)]
        room = max(0, MAX_RING_KEYS - len(in_use) - len(carried))
        told = sorted(revoked, key=birth, reverse=True)
        told.sort(key=_revoked_at, reverse=True)
        told.sort(key=lambda key: _need_of(key, links, there, current), reverse=True)
        entries = []
        for key in sorted([*in_use, *told[:room]], key=age):
            rest = next((entry for entry in carried if entry.id == key.id), there.get(key.id))
            entries.append(_entry_of(_with_rest(key, rest), there.get(key.id), signers, spared))
        mine = {entry.id for entry in entries}
        entries += [entry for entry in carried if entry.id not in mine]
        document = RingDocument(tuple(entries))
        fits = len(entries) <= MAX_RING_KEYS and (
            len(encode_document(publisher.ring, document)) <= MAX_DOCUMENT_BYTES
        )
        if fits or spared >= _MOST_SPARED:
            return document
        spared += 1


def _certificates_for(key: RingKey, at: str, signers: Signers, known: Macs) -> Macs:
    certifiers = [
        signer
        for signer in signers.values()
        if not signer.is_revoked and signer.id != key.id and birth(signer) > birth(key)
    ]
    made = {}
    if key.signer is not None:
        made[key.id] = certificate_of(key.id, at, key.signer)
    newest = max(certifiers, key=birth, default=None)
    if newest is not None and newest.signer is not None:
        made[newest.id] = certificate_of(key.id, at, newest.signer)
    return first_of(MAX_MACS, made, known)


def _need_of(key: RingKey, links: set[str], read: Mapping[str, RingEntry], current: Signers) -> int:
    """The priority of a revoked key in a full document: highest if a starting member needs the key
    to see that the keys in use belong to one ring; next if another writer wrote the key as live and
    must read its revocation; next if the document already has the key, so that members do not
    overwrite each other. If every member knows that a key is revoked, or no member knows the key,
    no member uses it, so leaving it out does not matter. Any other key comes before a doubtful one,
    which was never unwrapped and is certified only by keys that have expired. An attacker who stole
    an expired key can make any number of those; members that started later ignore them."""
    if key.id in links:
        return 5
    there = read.get(key.id)
    if there is not None and there.revocation is None:
        return 4
    is_doubtful = key.is_tombstone and not is_certified(key, key.revocation, current)
    return (0 if is_doubtful else 2) + (0 if there is None else 1)


def _revoked_at(key: RingKey) -> int:
    return 0 if key.revocation is None else time_ms(key.revocation.at)


def _links_between(in_use: list[RingKey], known: Mapping[str, RingKey]) -> set[str]:
    """The revoked ancestors that link keys in use whose ancestors include no other key in use: only
    as many as are needed to reach the next key in use. The oldest key in use needs none."""
    used = {key.id for key in in_use}
    links: set[str] = set()
    for key in sorted(in_use, key=birth, reverse=True)[:-1]:
        origin: RingKey | None = key
        while origin is not None and origin.ancestors and used.isdisjoint(origin.ancestors.ids):
            named = (known[key_id] for key_id in origin.ancestors.ids if key_id in known)
            origin = min(named, key=birth, default=None)
            if origin is None or origin.id in links:
                break
            links.add(origin.id)
    return links


def _with_rest(key: RingKey, read: RingEntry | None) -> RingKey:
    """If only the revocation of a key is known, the rest of its entry stays as another member wrote
    it."""
    return tombstone(read, key.revocation) if key.is_tombstone and read is not None else key


def _entry_of(key: RingKey, read: RingEntry | None, signers: Signers, spared: int) -> RingEntry:
    theirs = read if read is not None and read.times == key.times else None
    is_sparing = spared >= _MOST_SPARED
    others = _NO_MACS if theirs is None or is_sparing else theirs.vouchers
    vouchers = first_of(MAX_MACS, key.vouchers, others)
    if not is_sparing and not key.is_tombstone:
        # Vouchers that were removed from the store are put back.
        named = () if key.ancestors is None else key.ancestors.ids
        ancestral = {key_id: one for key_id, one in signers.items() if key_id in named}
        vouchers = vouchers_by(key.id, key.created, key.times, ancestral, vouchers)
    return RingEntry(
        key.id,
        key.created,
        key.activates,
        key.seals_until,
        key.opens_until,
        key.times,
        _in_order_of(None if theirs is None else theirs.vouchers, vouchers),
        # Other members may know an entry that no key known here vouches for.
        key.ancestors or (None if theirs is None else theirs.ancestors),
        _revocation_of(key, None if theirs is None else theirs.revocation, signers, is_sparing),
        _without_unproved(key.wraps) if spared >= 3 else _wraps_of(key, theirs),
    )


def _revocation_of(
    key: RingKey, theirs: Revocation | None, signers: Signers, is_sparing: bool
) -> Revocation | None:
    """The revocation of a key to write in place of `theirs`."""
    mine = key.revocation
    if mine is None:
        # A claim that only other processes can check is kept.
        is_unchecked = theirs is not None and any(key_id not in signers for key_id in theirs.by)
        return theirs if is_unchecked else None
    others = theirs.by if theirs is not None and theirs.at == mine.at else _NO_MACS
    known = first_of(MAX_MACS, mine.by, others)
    if key.is_tombstone:
        # The times of a tombstone are not authenticated, but they decide whether its certifier is
        # newer. No certificate is added, because it would be valid for any times. The certificate
        # of the key itself cannot be checked either.
        holds = theirs is not None and is_certified(key, theirs, signers)
        return theirs if holds else Revocation(mine.at, known)
    certificates = _certificates_for(key, mine.at, signers, known)
    if is_sparing:
        certificates = first_of(2, certificates, _NO_MACS)
    return Revocation(mine.at, _in_order_of(None if theirs is None else theirs.by, certificates))


def _in_order_of(read: Macs | None, macs: Macs) -> Macs:
    """Keeps the order of the document; otherwise members would keep rewriting the same set in
    another order."""
    there = {key_id: macs[key_id] for key_id in read or () if key_id in macs}
    return {**there, **macs}


def _wraps_of(key: RingKey, read: RingEntry | None) -> tuple[RingWrap, ...]:
    """The wraps to write. If there is no room for all, first those that this process made or
    unwrapped, then valid wraps in the order of the document. Each member moves its own wraps to the
    front, so those that other members unwrapped stay, and no two members keep overwriting each
    other."""
    wraps, signer = key.wraps, key.signer
    if signer is None or len(wraps) < MAX_WRAPS:
        return wraps
    there = () if read is None else read.wraps
    proved = (wrap for wrap in wraps if wrap.is_proved)
    right = (wrap for wrap in there if is_right_wrap(wrap, signer))
    unproved = (wrap for wrap in wraps if not wrap.is_proved)
    kept: list[RingWrap] = []
    for wrap in (*proved, *right, *unproved):
        if len(kept) < MAX_WRAPS and wrap not in kept:
            kept.append(wrap)
    return tuple(kept)


def _without_unproved(wraps: tuple[RingWrap, ...]) -> tuple[RingWrap, ...]:
    """The wraps that this process made or unwrapped. If there are none, the first wrap, because an
    entry must have at least one."""
    return tuple(wrap for wrap in wraps if wrap.is_proved) or wraps[:1]
