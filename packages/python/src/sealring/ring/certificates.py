"""Authenticates the facts of a ring document with HMACs under sub-keys of the ring's own keys,
over canonical JSON. Pure."""

import hmac
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from .. import base64url
from ..held_key import HeldKey
from ..key_wrapper import WrappedKey
from .document import MAX_MACS, Ancestors, Macs, Revocation, RingEntry, RingWrap
from .snapshot import RingKey

Signers = Mapping[str, RingKey]
"""The keys that can certify something, by id: live, revoked or expired."""


def birth(key: RingEntry) -> tuple[int, str]:
    """The sort key by which one key is newer than another: never the activation, which is earlier
    for an emergency key than for a planned one."""
    return key.created, key.id


def signers_of(keys: Iterable[RingKey], past: Signers) -> dict[str, RingKey]:
    """All keys that can certify something; `past` are keys that have expired."""
    return {**past, **{key.id: key for key in keys if key.signer is not None}}


def voucher_of(key_id: str, times: Iterable[str], signer: HeldKey) -> bytes:
    """The MAC with which a key vouches for a new one."""
    return signer.certify("key", key_id, *times)


def vouchers_by(
    key_id: str, created: int, times: Iterable[str], signers: Signers, known: Macs
) -> Macs:
    """`known`, and as many vouchers of keys older than this one as there is room for, newest
    first."""
    older = [
        signer
        for signer in signers.values()
        if not signer.is_left and (created, key_id) > birth(signer) and signer.id not in known
    ]
    added = sorted(older, key=birth, reverse=True)[: max(0, MAX_MACS - len(known))]
    times = tuple(times)
    made = {one.id: voucher_of(key_id, times, one.signer) for one in added if one.signer}
    return {**known, **made}


def wrap_mac_of(wrap: WrappedKey, signed: bytes | None, own: HeldKey) -> bytes:
    """The MAC, under an entry's own key, over one of the entry's wraps and the signature of that
    wrap."""
    wrapped = base64url.encode(wrap.wrapped)
    signature = None if signed is None else base64url.encode(signed)
    return own.certify("wrap", own.id, wrap.provider, wrap.key_id, wrapped, signature)


def ancestors_mac_of(ids: Iterable[str], own: HeldKey) -> bytes:
    """The MAC, under an entry's own key, over the ids of the keys that vouch for it."""
    return own.certify("ancestors", own.id, *ids)


def certificate_of(key_id: str, at: str, signer: HeldKey) -> bytes:
    """The MAC with which a key certifies the revocation of another key, or its own."""
    return signer.certify("revoked", key_id, at)


def is_right_wrap(wrap: RingWrap, own: HeldKey) -> bool:
    return hmac.compare_digest(wrap.mac, wrap_mac_of(wrap, wrap.signature, own))


def right_ancestors(told: Ancestors | None, own: HeldKey) -> Ancestors | None:
    """The claimed ancestors, if the MAC shows that the key itself named them; otherwise None."""
    is_right = told and hmac.compare_digest(told.mac, ancestors_mac_of(told.ids, own))
    return told if is_right else None


def right_vouchers(entry: RingEntry, signers: Signers) -> Macs:
    """The vouchers that are valid under a known key of this ring."""
    right = _right_ones(entry.vouchers, signers, partial(voucher_of, entry.id, entry.times))
    return {key_id: mac for key_id, mac in right.items() if not signers[key_id].is_left}


def is_vouched(entry: RingEntry, signers: Signers) -> bool:
    """Whether a known key vouches for an entry, and the entry names that key as its ancestor. Both
    are required, because an attacker can vouch for the keys of a ring with a key of theirs."""
    named = () if entry.ancestors is None else entry.ancestors.ids
    return any(key_id in named for key_id in right_vouchers(entry, signers))


def right_certificates(key_id: str, claim: Revocation, signers: Signers) -> Macs:
    """The certificates that are valid under a known key, whether or not that key is allowed to
    certify the revocation."""
    return _right_ones(claim.by, signers, partial(certificate_of, key_id, claim.at))


def is_certified(key: RingEntry, claim: Revocation | None, signers: Signers) -> bool:
    """Whether the revocation of a key is certified: by the key itself, or by a newer known key that
    is not revoked. A revoked key certifies only its own revocation."""
    right = {} if claim is None else right_certificates(key.id, claim, signers)
    return any(key_id == key.id or may_revoke(signers[key_id], key) for key_id in right)


def may_revoke(signer: RingKey, key: RingEntry) -> bool:
    """Whether `signer` may certify the revocation of `key`."""
    return not signer.is_revoked and birth(signer) > birth(key)


def _right_ones(macs: Macs, signers: Signers, expected: Callable[[HeldKey], bytes]) -> Macs:
    right = {}
    for key_id, mac in macs.items():
        signer = signers[key_id].signer if key_id in signers else None
        if signer is not None and hmac.compare_digest(mac, expected(signer)):
            right[key_id] = mac
    return right
