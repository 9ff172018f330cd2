"""What a reader learns of a document: facts that prove themselves, and nothing else. Monotone:
nothing that is known is ever lost or changed. Pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from ..held_key import HeldKey
from .certificates import (
    Signer,
    Signers,
    are_right_ancestors,
    birth,
    is_certified,
    is_right_wrap,
    right_certificates,
    right_vouchers,
    wrap_mac_of,
)
from .document import MAX_MACS, MAX_WRAPS, Macs, Revocation, RingDocument, RingEntry, RingWrap
from .policy import MAX_RING_KEYS
from .snapshot import RingKey, RingSnapshot, create_snapshot

# Revoked keys that were never unwrapped here and are remembered all the same, the newest.
_MAX_TOMBSTONES = 16
# How far `created` may be ahead of the clocks: each key of a full ring is a second newer.
_CREATED_TOLERANCE_MS = MAX_RING_KEYS * 1_000


class Judgement(NamedTuple):
    """What judging a document needs to know beside the document."""

    ring: str
    now_ms: float
    """By the reader's checked clock."""
    clock_skew_ms: float
    past: Signers
    """Keys that have ended and can still certify."""
    is_pinned_out: Callable[[RingEntry], bool]


class Learned(NamedTuple):
    """What is known after a document."""

    known: RingSnapshot
    wanted: list[RingEntry]
    """Vouched for and not known, newest first: worth an unwrap."""


def signers_of(keys: Iterable[RingKey], past: Signers) -> dict[str, Signer]:
    """Everybody who can certify something."""
    signers = dict(past)
    for key in keys:
        if key.signer is not None:
            signers[key.id] = Signer(key.id, key.created, key.is_revoked, key.signer)
    return signers


def unwrapped_key(
    ring: str, entry: RingEntry, held: HeldKey, opened: RingWrap, seals_from_ms: float
) -> RingKey:
    """A key that was unwrapped; `opened` is the wrap that its bytes came from, whose MAC is made
    anew, whatever the document says."""
    proved = replace(opened, mac=wrap_mac_of(ring, opened, held))
    known = replace(
        entry,
        vouchers={},
        ancestors=entry.ancestors if are_right_ancestors(ring, entry.ancestors, held) else None,
        revocation=None,
        wraps=_more_wraps(ring, (proved,), entry.wraps, held),
    )
    return RingKey(known, held, held, False, seals_from_ms)


def _tombstone(entry: RingEntry, revocation: Revocation | None) -> RingKey:
    """A key that is known to be revoked and is never unwrapped; without `revocation`, one that this
    reader's pin refuses."""
    told = replace(entry, ancestors=None, revocation=revocation)
    return RingKey(told, None, None, is_revoked=True)


def with_unwrapped(known: RingSnapshot, key: RingKey, judgement: Judgement) -> RingSnapshot:
    """The same with a key that was unwrapped since. What was known to be revoked by its id is
    judged by its bytes."""
    keys = {**known.by_id, key.id: key}
    tomb = known.by_id.get(key.id)
    if tomb is not None and tomb.entry.revocation is not None:
        # Who is revoked by now was not when it was learned.
        signers = {
            key_id: signer._replace(is_revoked=False)
            for key_id, signer in signers_of(keys.values(), judgement.past).items()
        }
        keys[key.id] = _with_revocation(judgement.ring, key, tomb.entry.revocation, signers)
    return create_snapshot(keys.values(), known.carried, known.unreadable)


def learn(known: RingSnapshot, document: RingDocument, judgement: Judgement) -> Learned:
    """What a reader that knows keys learns by itself, before any unwrap: revocations, wraps and
    vouchers of what it knows, and tombstones."""
    ring, past = judgement.ring, judgement.past
    keys = dict(known.by_id)
    entries = sorted(document.entries, key=birth, reverse=True)
    for entry in entries:
        key = keys.get(entry.id)
        if key is not None and key.signer is not None:
            keys[key.id] = _with_wraps_and_vouchers(
                ring, key, key.signer, entry, signers_of(keys.values(), past)
            )
    # Newest first: once a key is known to be revoked it certifies its own revocation only.
    for entry in entries:
        key, claim = keys.get(entry.id), entry.revocation
        if key is not None and claim is not None:
            signers = signers_of(keys.values(), past)
            keys[key.id] = _with_revocation(ring, key, claim, signers)
    wanted = _unknown(keys, [*entries, *known.carried, *known.unreadable], judgement)
    _bury(keys, judgement.now_ms)
    is_same = len(keys) == len(known.keys) and all(keys.get(key.id) is key for key in known.keys)
    if not is_same:
        known = create_snapshot(keys.values(), known.carried, known.unreadable)
    return Learned(known, wanted)


def _unknown(
    keys: dict[str, RingKey], entries: Sequence[RingEntry], judgement: Judgement
) -> list[RingEntry]:
    """The entries that are vouched for; of those that are revoked or that the pin refuses,
    tombstones into `keys`."""
    ring, signers = judgement.ring, signers_of(keys.values(), judgement.past)
    # Who started on a document without the older keys learns them by what their successors say.
    told = [key.entry.ancestors for key in keys.values()]
    ancestors = {key_id for one in told if one is not None for key_id in one.ids}
    wanted: dict[str, RingEntry] = {}
    for entry in entries:
        key = keys.get(entry.id)
        is_known = key is not None and not _is_worth_unwrapping(ring, key, entry, signers)
        has_ended = judgement.now_ms >= entry.opens_until
        if is_known or entry.id in wanted or has_ended or is_from_the_future(entry, judgement):
            continue
        claims = (entry.revocation, None if key is None else key.entry.revocation)
        is_revoked = any(
            claim is not None and is_certified(ring, entry, claim, signers) for claim in claims
        )
        # What this reader's own pin refuses needs no proof.
        is_pinned_out = judgement.is_pinned_out(entry)
        if key is None and (is_revoked or is_pinned_out):
            keys[entry.id] = _tombstone(entry, entry.revocation if is_revoked else None)
        elif is_revoked or is_pinned_out:
            continue
        elif entry.id in ancestors or right_vouchers(ring, entry, signers):
            wanted[entry.id] = entry
    return list(wanted.values())


def _is_worth_unwrapping(ring: str, key: RingKey, entry: RingEntry, signers: Signers) -> bool:
    """The times of a tombstone were never proved: another entry of that id may be the right one.
    And where all who certified it are revoked since, only its own certificate tells the others."""
    claim = key.entry.revocation
    return key.is_tombstone and (
        key.entry.times != entry.times
        or (claim is not None and not is_certified(ring, key, claim, signers))
    )


def _bury(keys: dict[str, RingKey], now_ms: float) -> None:
    tombs = [key for key in keys.values() if key.is_tombstone and now_ms < key.opens_until]
    for key in sorted(tombs, key=birth, reverse=True)[_MAX_TOMBSTONES:]:
        del keys[key.id]


def is_from_the_future(entry: RingEntry, judgement: Judgement) -> bool:
    """Whether a key was made later than any clock of the fleet can say."""
    ahead_ms = entry.created - judgement.now_ms
    return ahead_ms > judgement.clock_skew_ms + _CREATED_TOLERANCE_MS


def _with_revocation(ring: str, key: RingKey, claim: Revocation, signers: Signers) -> RingKey:
    """With a revocation that a document claims, where that is certified; else `key` itself."""
    mine = key.entry.revocation
    if mine is not None:
        better = _better_revocation(ring, key.id, mine, claim, signers)
        if better is mine:
            return key
        return replace(key, entry=replace(key.entry, revocation=better))
    is_pinned_out = key.is_revoked and key.is_tombstone
    if is_pinned_out or not is_certified(ring, key, claim, signers):
        return key
    return replace(key, entry=replace(key.entry, revocation=claim), held=None, is_revoked=True)


def _better_revocation(
    ring: str, key_id: str, mine: Revocation, theirs: Revocation, signers: Signers
) -> Revocation:
    """Of two statements of one revocation that with the revoked key's own certificate; further
    certificates where they fit."""
    right = right_certificates(ring, key_id, theirs, signers)
    if right and mine.at != theirs.at:
        return theirs if key_id in right and key_id not in mine.by else mine
    return mine if right.keys() <= mine.by.keys() else replace(mine, by=_first_of(right, mine.by))


def _with_wraps_and_vouchers(
    ring: str, key: RingKey, own: HeldKey, entry: RingEntry, signers: Signers
) -> RingKey:
    known = key.entry
    wraps = _more_wraps(ring, known.wraps, entry.wraps, own)
    vouchers, ancestors = known.vouchers, known.ancestors
    if known.times == entry.times and not entry.vouchers.keys() <= vouchers.keys():
        right = right_vouchers(ring, entry, signers)
        if not right.keys() <= vouchers.keys():
            vouchers = _first_of(vouchers, right)
    if ancestors is None and are_right_ancestors(ring, entry.ancestors, own):
        ancestors = entry.ancestors
    if (wraps, vouchers, ancestors) == (known.wraps, known.vouchers, known.ancestors):
        return key
    return replace(key, entry=replace(known, wraps=wraps, vouchers=vouchers, ancestors=ancestors))


def _more_wraps(
    ring: str, known: tuple[RingWrap, ...], others: Iterable[RingWrap], own: HeldKey
) -> tuple[RingWrap, ...]:
    """`known` and those of `others` whose MAC is right, as many as an entry may have."""
    added = [wrap for wrap in others if wrap not in known and is_right_wrap(ring, wrap, own)]
    return (*known, *added)[:MAX_WRAPS] if added and len(known) < MAX_WRAPS else known


def _first_of(first: Macs, second: Macs) -> Macs:
    """As many of both as there may be, `first` before `second`."""
    return dict(islice({**first, **second, **first}.items(), MAX_MACS))


def lacks(read: Iterable[RingEntry], known: RingSnapshot, judgement: Judgement) -> bool:
    """Whether what was read lacks a fact that is known and has not ended. Where an entry is full of
    vouchers or wraps that cannot be judged here, one that can be is enough."""
    ring, signers = judgement.ring, signers_of(known.keys, judgement.past)
    entries = {entry.id: entry for entry in read}
    for key in known.keys:
        if key.is_left or judgement.now_ms >= key.opens_until:
            continue
        entry = entries.get(key.id)
        if key.is_tombstone:
            # Its revocation is all there is to it.
            is_lacking = entry is not None and _lacks_revocation(ring, key, entry, signers)
        elif entry is None or entry.times != key.entry.times:
            is_lacking = True
        else:
            is_lacking = (
                _lacks_revocation(ring, key, entry, signers)
                or _lacks_vouchers(ring, key, entry, signers)
                or _lacks_ancestors(ring, key, entry)
                or _lacks_wrap(key, entry)
            )
        if is_lacking:
            return True
    return False


def _lacks_revocation(ring: str, key: RingKey, entry: RingEntry, signers: Signers) -> bool:
    claim = entry.revocation
    if key.entry.revocation is None or claim is None:
        return key.entry.revocation is not None
    if key.signer is not None:
        return key.id not in right_certificates(ring, key.id, claim, signers)
    # Who certified it may be revoked since; who may certify it makes that good.
    may_certify = any(
        not signer.is_revoked and birth(signer) > birth(entry) for signer in signers.values()
    )
    return may_certify and not is_certified(ring, entry, claim, signers)


def _lacks_vouchers(ring: str, key: RingKey, entry: RingEntry, signers: Signers) -> bool:
    right = right_vouchers(ring, entry, signers)
    # One that is known to be wrong takes no place.
    taken = sum(key_id in right or key_id not in signers for key_id in entry.vouchers)
    return not key.entry.vouchers.keys() <= right.keys() and (taken < MAX_MACS or not right)


def _lacks_ancestors(ring: str, key: RingKey, entry: RingEntry) -> bool:
    if key.entry.ancestors is None or key.signer is None:
        return False
    return not are_right_ancestors(ring, entry.ancestors, key.signer)


def _lacks_wrap(key: RingKey, entry: RingEntry) -> bool:
    missing = [wrap for wrap in key.entry.wraps if wrap not in entry.wraps]
    # The first one is that which was opened here.
    is_proved = key.entry.wraps[0] in missing
    return is_proved or (len(missing) > 0 and len(entry.wraps) < MAX_WRAPS)


def lineages_of(ring: str, keys: Sequence[tuple[RingEntry, HeldKey]]) -> list[list[str]]:
    """Keys that hang together by right vouchers of those they name as ancestors, newest first: a
    ring is one such group."""
    newest = sorted(keys, key=lambda key: birth(key[0]), reverse=True)
    signers = {entry.id: Signer(entry.id, entry.created, False, held) for entry, held in newest}
    groups: list[set[str]] = []
    for entry, held in newest:
        told = entry.ancestors
        is_right = told is not None and are_right_ancestors(ring, told, held)
        named = told.ids if told is not None and is_right else ()
        # Both ways: anybody's key can vouch for those of a ring, or name them.
        linked = {entry.id, *(right_vouchers(ring, entry, signers).keys() & set(named))}
        apart = [group for group in groups if not group & linked]
        groups = [*apart, linked.union(*(group for group in groups if group & linked))]
    return [[entry.id for entry, _ in newest if entry.id in group] for group in groups]
