"""What a reader learns of a document: facts that prove themselves, and nothing else. Monotone:
nothing that is known is ever lost or changed. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from ..held_key import HeldKey
from .certificates import (
    Signers,
    birth,
    is_certified,
    is_right_wrap,
    is_vouched,
    right_ancestors,
    right_certificates,
    right_vouchers,
    signers_of,
    wrap_mac_of,
)
from .document import MAX_MACS, MAX_WRAPS, Macs, Revocation, RingDocument, RingEntry, RingWrap
from .policy import MAX_RING_KEYS
from .snapshot import RingKey, RingSnapshot, create_snapshot

# How far `created` may be ahead of the clocks: each key of a full ring is a second newer.
_CREATED_TOLERANCE_MS = MAX_RING_KEYS * 1_000


class Judgement(NamedTuple):
    """What judging a document needs to know beside the document."""

    now_ms: float
    """By the reader's checked clock."""
    clock_skew_ms: float
    past: Signers
    """Keys that have ended and can still certify."""
    accepts_created_from_ms: float

    def is_live(self, entry: RingEntry) -> bool:
        return self.now_ms < entry.opens_until

    def is_pinned_out(self, entry: RingEntry) -> bool:
        """Whether this reader's own pin refuses a key."""
        return entry.created < self.accepts_created_from_ms

    def may_be_used(self, entry: RingEntry) -> bool:
        is_accepted = not self.is_pinned_out(entry) and not self.is_from_the_future(entry)
        return is_accepted and self.is_live(entry)

    def is_from_the_future(self, entry: RingEntry) -> bool:
        return entry.created - self.now_ms > self.clock_skew_ms + _CREATED_TOLERANCE_MS


def unwrapped_key(
    entry: RingEntry, held: HeldKey, opened: RingWrap, seals_from_ms: float
) -> RingKey:
    """A key that was unwrapped; `opened` is the wrap that its bytes came from, whose MAC is made
    anew, whatever the document says."""
    proved = replace(opened, mac=wrap_mac_of(opened, held))
    facts: dict[str, object] = {
        "vouchers": {},
        "ancestors": right_ancestors(entry.ancestors, held),
        "revocation": None,
        "wraps": _more_wraps((proved,), entry.wraps, held),
    }
    return RingKey(**{**vars(entry), **facts}, held=held, signer=held, seals_from_ms=seals_from_ms)


def belongs(
    key: RingKey, document: RingDocument, known: RingSnapshot, judgement: Judgement
) -> bool:
    """Whether a key that was unwrapped is one of this ring: linked to a known one by what the two
    say of each other, whichever is the older."""
    before = known.by_id.get(key.id)
    if before is not None and before.signer is not None:
        return True
    heirs = {
        heir.id: heir.times
        for heir in known.keys
        if not heir.is_left and heir.ancestors is not None and key.id in heir.ancestors.ids
    }
    return is_vouched(key, signers_of(known.keys, judgement.past)) or any(
        entry.times == heirs.get(entry.id) and right_vouchers(entry, {key.id: key})
        for entry in document
    )


def with_unwrapped(known: RingSnapshot, key: RingKey, judgement: Judgement) -> RingSnapshot:
    """The same with a key that was unwrapped since. What was known to be revoked by its id is
    judged by its bytes."""
    keys = {**known.by_id, key.id: key}
    tomb = known.by_id.get(key.id)
    if tomb is not None:
        # Who is revoked by now was not when it was learned.
        signers = {
            key_id: replace(signer, is_revoked=False)
            for key_id, signer in signers_of(keys.values(), judgement.past).items()
        }
        keys[key.id] = _with_revocation(key, tomb.revocation, signers)
    return create_snapshot(keys.values(), known.carried, known.unreadable)


def learn(
    known: RingSnapshot, document: RingDocument, judgement: Judgement
) -> tuple[RingSnapshot, list[RingEntry]]:
    """What a reader that knows keys learns by itself, before any unwrap: revocations, wraps and
    vouchers of what it knows, and tombstones. With the entries that are worth an unwrap: vouched
    for and not known, newest first."""
    past = judgement.past
    keys = dict(known.by_id)
    entries = sorted(document, key=birth, reverse=True)
    signers = signers_of(keys.values(), past)
    for entry in entries:
        if entry.id in keys:
            keys[entry.id] = _with_wraps_and_vouchers(keys[entry.id], entry, signers)
    # Newest first: once a key is known to be revoked it certifies its own revocation only.
    for entry in entries:
        if entry.id in keys:
            signers = signers_of(keys.values(), past)
            keys[entry.id] = _with_revocation(keys[entry.id], entry.revocation, signers)
    wanted = _unknown(keys, [*entries, *known.carried, *known.unreadable], judgement)
    # Of keys that were never unwrapped, as many as a document has room for beside those in use.
    room = max(0, MAX_RING_KEYS - sum(key.revocation is None for key in keys.values()))
    tombs = [key for key in keys.values() if key.is_tombstone and judgement.is_live(key)]
    for key in sorted(tombs, key=birth, reverse=True)[room:]:
        del keys[key.id]
    if len(keys) != len(known.keys) or any(keys.get(key.id) is not key for key in known.keys):
        known = create_snapshot(keys.values(), known.carried, known.unreadable)
    return known, wanted


def _unknown(
    keys: dict[str, RingKey], entries: Sequence[RingEntry], judgement: Judgement
) -> list[RingEntry]:
    """The entries that are vouched for; of those that are revoked or that the pin refuses,
    tombstones into `keys`."""
    signers = signers_of(keys.values(), judgement.past)
    # Who started on a document without the older keys learns them by what their successors say.
    told = [key.ancestors for key in keys.values()]
    ancestors = {key_id for one in told if one is not None for key_id in one.ids}
    # Whom new keys come after: a revoked one may be the only link.
    links = {
        key_id
        for entry in entries
        if entry.id not in keys and entry.revocation is None and entry.ancestors is not None
        for key_id in entry.vouchers.keys() & set(entry.ancestors.ids)
    }
    wanted: dict[str, RingEntry] = {}
    for entry in entries:
        key = keys.get(entry.id)
        is_tomb = key is not None and key.is_tombstone and key.revocation is not None
        is_link = is_tomb and entry.id in links
        is_known = key is not None and not (is_link or _is_worth_unwrapping(key, entry, signers))
        is_in_time = judgement.is_live(entry) and not judgement.is_from_the_future(entry)
        if is_known or entry.id in wanted or not is_in_time:
            continue
        claims = (entry.revocation, None if key is None else key.revocation)
        is_revoked = any(is_certified(entry, claim, signers) for claim in claims)
        # What this reader's own pin refuses needs no proof.
        if (is_revoked and not is_link) or judgement.is_pinned_out(entry):
            if key is None:
                claim = entry.revocation if is_revoked else None
                facts = {**vars(entry), "ancestors": None, "revocation": claim}
                keys[entry.id] = RingKey(**facts, is_revoked=True)
        elif entry.id in ancestors or is_vouched(entry, signers):
            wanted[entry.id] = entry
    return list(wanted.values())


def _is_worth_unwrapping(key: RingKey, entry: RingEntry, signers: Signers) -> bool:
    """The times of a tombstone were never proved: another entry of that id may be the right one.
    And where all who certified it are revoked since, only its own certificate tells the others."""
    return key.is_tombstone and (
        key.times != entry.times
        or (key.revocation is not None and not is_certified(key, key.revocation, signers))
    )


def _with_revocation(key: RingKey, claim: Revocation | None, signers: Signers) -> RingKey:
    """With a revocation that a document claims, where that is certified; else `key` itself. Further
    certificates of one that is known are added where they fit."""
    mine = key.revocation
    if claim is None or (mine is None and key.is_revoked):  # The pin needs no certificate.
        return key
    if mine is None:
        is_revoked = is_certified(key, claim, signers)
        return replace(key, revocation=claim, held=None, is_revoked=True) if is_revoked else key
    right = right_certificates(key.id, claim, signers)
    if mine.at == claim.at and not right.keys() <= mine.by.keys():
        return replace(key, revocation=replace(mine, by=_first_of(right, mine.by)))
    return key


def _with_wraps_and_vouchers(key: RingKey, entry: RingEntry, signers: Signers) -> RingKey:
    if key.signer is None:
        return key
    wraps = _more_wraps(key.wraps, entry.wraps, key.signer)
    vouchers = key.vouchers
    if key.times == entry.times and not entry.vouchers.keys() <= vouchers.keys():
        vouchers = _first_of(vouchers, right_vouchers(entry, signers))
    ancestors = key.ancestors or right_ancestors(entry.ancestors, key.signer)
    if (wraps, vouchers, ancestors) == (key.wraps, key.vouchers, key.ancestors):
        return key
    return replace(key, wraps=wraps, vouchers=vouchers, ancestors=ancestors)


def _more_wraps(
    known: tuple[RingWrap, ...], others: Iterable[RingWrap], own: HeldKey
) -> tuple[RingWrap, ...]:
    """`known` and those of `others` whose MAC is right, as many as an entry may have."""
    added = (wrap for wrap in others if wrap not in known and is_right_wrap(wrap, own))
    return (*known, *islice(added, MAX_WRAPS - len(known)))


def _first_of(first: Macs, second: Macs) -> Macs:
    """As many of both as there may be, `first` before `second`."""
    return dict(islice({**first, **second, **first}.items(), MAX_MACS))


def lacks(read: Iterable[RingEntry], known: RingSnapshot, judgement: Judgement) -> bool:
    """Whether what was read lacks a fact that is known and has not ended."""
    signers = signers_of(known.keys, judgement.past)
    entries = {entry.id: entry for entry in read}
    return any(
        _is_lacking(key, entries.get(key.id), signers)
        for key in known.keys
        if not key.is_left and judgement.is_live(key)
    )


def _is_lacking(key: RingKey, entry: RingEntry | None, signers: Signers) -> bool:
    """Where an entry is full of vouchers or wraps that cannot be judged here, one that can be is
    enough."""
    if key.signer is None:
        # Its revocation is all there is to it.
        return entry is not None and _lacks_revocation(key, entry, signers)
    if entry is None or entry.times != key.times:
        return True
    right = right_vouchers(entry, signers)
    # One that is known to be wrong takes no place.
    taken = sum(key_id in right or key_id not in signers for key_id in entry.vouchers)
    lacks_voucher = not key.vouchers.keys() <= right.keys() and (taken < MAX_MACS or not right)
    missing = [wrap for wrap in key.wraps if wrap not in entry.wraps]
    # The first one is that which was opened here.
    lacks_wrap = key.wraps[0] in missing or (missing and len(entry.wraps) < MAX_WRAPS)
    return bool(
        lacks_voucher
        or lacks_wrap
        or _lacks_revocation(key, entry, signers)
        or (key.ancestors and not right_ancestors(entry.ancestors, key.signer))
    )


def _lacks_revocation(key: RingKey, entry: RingEntry, signers: Signers) -> bool:
    claim = entry.revocation
    if key.revocation is None or claim is None:
        return key.revocation is not None
    if key.signer is not None:
        return key.id not in right_certificates(key.id, claim, signers)
    # One that does not hold, put there in place of one that does.
    return not is_certified(key, claim, signers) and is_certified(key, key.revocation, signers)


def lineages_of(keys: Iterable[RingKey]) -> list[list[str]]:
    """Keys that hang together by right vouchers of those they name as ancestors, newest first: a
    ring is one such group."""
    newest = sorted(keys, key=birth, reverse=True)
    groups: list[set[str]] = []
    for key in newest:
        named = () if key.ancestors is None else key.ancestors.ids
        # Both ways: anybody's key can vouch for those of a ring, or name them.
        linked = {key.id, *(key.vouchers.keys() & set(named))}
        apart = [group for group in groups if not group & linked]
        groups = [*apart, linked.union(*(group for group in groups if group & linked))]
    return [[key.id for key in newest if key.id in group] for group in groups]
