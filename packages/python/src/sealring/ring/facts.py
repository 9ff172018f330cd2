"""The facts that a process adopts from a document: only authenticated ones. A known fact is never
lost or changed. Pure."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import fields, replace
from itertools import islice
from typing import Any, NamedTuple

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
from .snapshot import RingKey, RingSnapshot, create_snapshot, with_keys

# How far `created` may be ahead of the clocks, because each key of a full ring can be one second
# newer than the one before.
_CREATED_TOLERANCE_MS = MAX_RING_KEYS * 1_000


class Judgement(NamedTuple):
    """The inputs of a check besides the document."""

    now_ms: float
    """The time according to the clock that is checked against service dates."""
    is_unconfirmed: bool
    """Whether that clock is unconfirmed now. If so, nothing has expired."""
    clock_skew_ms: float
    past: Signers
    """Keys that have expired and can still certify."""
    accepts_created_from_ms: float
    over: Container[str] = frozenset()
    """Ids of keys that were known to be revoked when their lifetime ended. They are never unwrapped
    again."""

    def has_ended(self, entry: RingEntry) -> bool:
        return not self.is_unconfirmed and self.now_ms >= entry.opens_until

    def is_pinned_out(self, entry: RingEntry) -> bool:
        """Whether this process refuses a key because of its own pin,
        `accept_keys_created_after`."""
        return entry.created < self.accepts_created_from_ms

    def is_from_the_future(self, entry: RingEntry) -> bool:
        """Whether the creation time of a key is later than any clock in the fleet can show now."""
        return entry.created > self.now_ms + self.clock_skew_ms + _CREATED_TOLERANCE_MS

    def is_plausible(self, entry: RingEntry) -> bool:
        """Whether the times of an entry can belong to a key in use."""
        return not self.has_ended(entry) and not self.is_from_the_future(entry)


def unwrapped_key(
    entry: RingEntry, held: HeldKey, opened: RingWrap | None, seals_from_ms: float
) -> RingKey:
    """A key that was unwrapped. `opened` is the wrap that its bytes came from; the MAC of that wrap
    is recomputed and never taken from the document."""
    proved: tuple[RingWrap, ...] = ()
    if opened is not None:
        mac = wrap_mac_of(opened, opened.signature, held)
        proved = (replace(opened, mac=mac, is_proved=True),)
    facts = {
        **_entry_facts(entry),
        "vouchers": {},
        "ancestors": right_ancestors(entry.ancestors, held),
        "revocation": None,
        "wraps": _more_wraps(proved, entry.wraps, held),
    }
    return RingKey(**facts, held=held, signer=held, seals_from_ms=seals_from_ms)


def tombstone(entry: RingEntry, revocation: Revocation | None) -> RingKey:
    """A key that is known to be revoked and is never unwrapped; without a revocation, one that the
    pin of this process refuses."""
    wraps = tuple(replace(wrap, is_proved=False) for wrap in entry.wraps)
    facts = {**_entry_facts(entry), "ancestors": None, "revocation": revocation, "wraps": wraps}
    return RingKey(**facts, is_revoked=True, seals_from_ms=float("inf"))


def _entry_facts(entry: RingEntry) -> dict[str, Any]:
    return {one.name: getattr(entry, one.name) for one in fields(RingEntry)}


def revocable(known: RingSnapshot) -> list[RingKey]:
    """The keys that can be revoked: known keys, keys that could not be unwrapped, and keys that a
    pin refuses."""
    missing = [entry for entry in known.carried + known.unreadable if entry.id not in known.by_id]
    mine = [key for key in known.keys if not key.is_left and key.revocation is None]
    return [*mine, *(tombstone(entry, None) for entry in missing)]


def belongs(
    key: RingKey,
    entry: RingEntry,
    document: RingDocument,
    known: RingSnapshot,
    judgement: Judgement,
) -> bool:
    """Whether a key that was unwrapped belongs to this ring: it and a known key must be linked in
    both directions, whichever of the two is older."""
    before = known.by_id.get(key.id)
    if before is not None and before.signer is not None:
        return True
    own = replace(entry, ancestors=key.ancestors)
    if is_vouched(own, signers_of(known.keys, judgement.past)):
        return True
    heirs = {
        heir.id: heir.times
        for heir in known.keys
        if not heir.is_left and heir.ancestors is not None and key.id in heir.ancestors.ids
    }
    return any(
        there.times == heirs.get(there.id) and right_vouchers(there, {key.id: key})
        for there in document.entries
    )


def with_unwrapped(
    known: RingSnapshot, keys: Sequence[RingKey], judgement: Judgement
) -> RingSnapshot:
    """The same facts, plus the keys that have been unwrapped since. The revocation of a key that
    was known only by its id is now checked with its bytes."""
    # A signer that is revoked by now was not revoked when the claim was accepted.
    signers = {
        key_id: replace(signer, is_revoked=False)
        for key_id, signer in signers_of([*known.keys, *keys], judgement.past).items()
    }
    judged = []
    for key in keys:
        before = known.by_id.get(key.id)
        claim = None if before is None else before.revocation
        judged.append(_with_revocation(key, claim, signers))
    return with_keys(known, judged)


def learn(
    known: RingSnapshot, document: RingDocument, judgement: Judgement
) -> tuple[RingSnapshot, list[RingEntry]]:
    """The facts that a process with keys adopts before any unwrap: revocations, wraps and vouchers
    of known keys, and tombstones. Also returns the entries to unwrap: those that are vouched for
    but not known, newest first."""
    past = judgement.past
    keys = dict(known.by_id)
    entries = sorted(document.entries, key=birth, reverse=True)
    signers = signers_of(keys.values(), past)
    for entry in entries:
        if entry.id in keys:
            keys[entry.id] = _with_wraps_and_vouchers(keys[entry.id], entry, signers)
    # Newest first, because a key that is known to be revoked certifies only its own revocation.
    for entry in entries:
        if entry.id in keys:
            signers = signers_of(keys.values(), past)
            keys[entry.id] = _with_revocation(keys[entry.id], entry.revocation, signers)
    wanted = _unknown(keys, [*entries, *known.carried, *known.unreadable], judgement)
    # Of the keys that were never unwrapped, keep only as many as fit into a document next to the
    # keys in use.
    room = max(0, MAX_RING_KEYS - sum(key.revocation is None for key in keys.values()))
    tombs = [key for key in keys.values() if key.is_tombstone and not judgement.has_ended(key)]
    for key in sorted(tombs, key=birth, reverse=True)[room:]:
        del keys[key.id]
    if len(keys) != len(known.keys) or any(keys.get(key.id) is not key for key in known.keys):
        known = create_snapshot(keys.values(), known.carried, known.unreadable)
    return known, wanted


def _unknown(
    keys: dict[str, RingKey], entries: Sequence[RingEntry], judgement: Judgement
) -> list[RingEntry]:
    """The entries to unwrap: those that are vouched for. For entries that are revoked or that the
    pin refuses, adds tombstones to `keys` instead."""
    signers = signers_of(keys.values(), judgement.past)
    # A process that started on a document without the older keys learns them from their successors.
    told = [key.ancestors for key in keys.values()]
    ancestors = {key_id for one in told if one is not None for key_id in one.ids}
    # The ids of the keys that new keys name as ancestors. A revoked key can be the only link to
    # them.
    links = {
        key_id
        for entry in entries
        if entry.id not in keys and entry.revocation is None and entry.ancestors is not None
        for key_id in entry.vouchers.keys() & set(entry.ancestors.ids)
    }
    wanted: dict[str, RingEntry] = {}
    for entry in entries:
        key = keys.get(entry.id)
        is_link = (
            key is not None
            and key.is_tombstone
            and key.revocation is not None
            and entry.id in links
        )
        is_known = key is not None and not (is_link or _is_worth_unwrapping(key, entry, signers))
        if is_known or entry.id in wanted or not judgement.is_plausible(entry):
            continue
        claims = (entry.revocation, None if key is None else key.revocation)
        is_revoked = any(is_certified(entry, claim, signers) for claim in claims)
        # An entry that the pin of this process refuses needs no check; it is kept for the other
        # processes.
        is_pinned_out = judgement.is_pinned_out(entry)
        is_ours = (key is not None and key.signer is not None) or entry.id in ancestors
        if key is None and (is_revoked or is_pinned_out):
            keys[entry.id] = tombstone(entry, entry.revocation if is_revoked else None)
        elif is_pinned_out or ((is_revoked or entry.id in judgement.over) and not is_link):
            continue
        elif is_ours or is_vouched(entry, signers):
            wanted[entry.id] = entry
    return list(wanted.values())


def _is_worth_unwrapping(key: RingKey, entry: RingEntry, signers: Signers) -> bool:
    """Whether a key that is known only by its id, or no longer held, should be unwrapped. The times
    of a tombstone were never authenticated, so another entry with the same id may be the right one.
    If all keys that certified the revocation have been revoked since, other processes accept only
    the certificate of the key itself. A key that expired by a clock that was later set back is
    needed again."""
    if not key.is_tombstone:
        return key.held is None and not key.is_revoked and key.times == entry.times
    return key.times != entry.times or (
        key.revocation is not None and not is_certified(key, key.revocation, signers)
    )


def _with_revocation(key: RingKey, claim: Revocation | None, signers: Signers) -> RingKey:
    """`key` with the revocation that a document claims, if that revocation is certified; otherwise
    `key` unchanged."""
    is_pinned_out = key.is_revoked and key.revocation is None and key.is_tombstone
    if claim is None or is_pinned_out:  # The pin needs no certificate.
        return key
    if key.revocation is not None:
        return _with_certificates(key, key.revocation, claim, signers)
    if not is_certified(key, claim, signers):
        return key
    return replace(key, revocation=claim, held=None, is_revoked=True)


def _with_certificates(
    key: RingKey, mine: Revocation, theirs: Revocation, signers: Signers
) -> RingKey:
    """Merges two records of one revocation: prefers the one with the revoked key's own certificate,
    and adds further certificates where there is room."""
    right = right_certificates(key.id, theirs, signers)
    if not right:
        return key
    if mine.at != theirs.at:
        is_better = key.id not in mine.by and key.id in right
        return replace(key, revocation=theirs) if is_better else key
    if right.keys() <= mine.by.keys():
        return key
    return replace(key, revocation=Revocation(mine.at, first_of(MAX_MACS, right, mine.by)))


def _with_wraps_and_vouchers(key: RingKey, entry: RingEntry, signers: Signers) -> RingKey:
    if key.signer is None:
        return key
    wraps = _more_wraps(key.wraps, entry.wraps, key.signer)
    vouchers = key.vouchers
    if key.times == entry.times and not entry.vouchers.keys() <= vouchers.keys():
        vouchers = first_of(MAX_MACS, vouchers, right_vouchers(entry, signers))
    ancestors = key.ancestors or right_ancestors(entry.ancestors, key.signer)
    if (wraps, vouchers, ancestors) == (key.wraps, key.vouchers, key.ancestors):
        return key
    return replace(key, wraps=wraps, vouchers=vouchers, ancestors=ancestors)


def _more_wraps(
    known: tuple[RingWrap, ...], others: Iterable[RingWrap], own: HeldKey
) -> tuple[RingWrap, ...]:
    """`known`, and those of `others` with a valid MAC, up to the limit of an entry."""
    added = (wrap for wrap in others if wrap not in known and is_right_wrap(wrap, own))
    return (*known, *islice(added, max(0, MAX_WRAPS - len(known))))


def first_of(most: int, first: Macs, second: Macs) -> Macs:
    """The first `most` MACs of both, those of `first` before those of `second`."""
    return dict(
        islice({**first, **{k: v for k, v in second.items() if k not in first}}.items(), most)
    )


def lacks(
    document: RingDocument,
    known: RingSnapshot,
    judgement: Judgement,
    keys: Iterable[RingKey] | None = None,
) -> bool:
    """Whether a document lacks a known fact that still matters. `keys` are the keys to look for; by
    default, all known keys."""
    signers = signers_of(known.keys, judgement.past)
    entries = {entry.id: entry for entry in document.entries}
    return any(
        _is_lacking(key, entries.get(key.id), signers)
        for key in (known.keys if keys is None else keys)
        if not key.is_left and judgement.now_ms < key.opens_until
    )


def _is_lacking(key: RingKey, entry: RingEntry | None, signers: Signers) -> bool:
    """Whether an entry lacks something that is known about a key. If the entry is full of vouchers
    or wraps that this process cannot check, one that it can check is enough; otherwise two members
    could overwrite each other endlessly."""
    if key.signer is None:
        # Only the revocation of the key is known, and nothing is lost if the document has no entry
        # for it.
        return entry is not None and _lacks_revocation(key, entry, signers)
    if entry is None or entry.times != key.times:
        return True
    right = right_vouchers(entry, signers)
    # A voucher that is known to be wrong takes no room.
    taken = sum(key_id in right or key_id not in signers for key_id in entry.vouchers)
    lacks_voucher = not key.vouchers.keys() <= right.keys() and (taken < MAX_MACS or not right)
    missing = [wrap for wrap in key.wraps if wrap not in entry.wraps]
    lacks_wrap = any(wrap.is_proved for wrap in missing) or (
        len(missing) > 0 and len(entry.wraps) < MAX_WRAPS
    )
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
    # The document has an invalid revocation in place of a valid one.
    return not is_certified(key, claim, signers) and is_certified(key, key.revocation, signers)


Lineage = tuple[RingEntry, HeldKey]
"""An entry, and the key that was unwrapped from it."""


def lineages_of(keys: Sequence[Lineage]) -> list[list[str]]:
    """Groups of keys, newest first. Within a group, keys are linked by valid vouchers from keys
    that they name as ancestors. The keys of one ring form one group."""
    newest = sorted(keys, key=lambda key: birth(key[0]), reverse=True)
    signers = {entry.id: unwrapped_key(entry, held, None, 0) for entry, held in newest}
    groups: list[set[str]] = []
    for entry, held in newest:
        told = right_ancestors(entry.ancestors, held)
        named = () if told is None else told.ids
        # Both directions are checked, because any key can vouch for the keys of a ring, and any key
        # can name them as ancestors.
        linked = {entry.id, *(right_vouchers(entry, signers).keys() & set(named))}
        apart = [group for group in groups if not group & linked]
        groups = [*apart, linked.union(*(group for group in groups if group & linked))]
    ordered = [[entry.id for entry, _ in newest if entry.id in group] for group in groups]
    rank = {entry.id: at for at, (entry, _) in enumerate(newest)}
    return sorted(ordered, key=lambda group: rank[group[0]])
