"""What proves the facts of a ring document: HMACs under sub-keys of the ring's own keys, over
canonical JSON. Pure."""

import hmac
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple, Protocol

from .. import base64url
from ..canonical_json import canonical_json
from ..held_key import HeldKey
from .document import Ancestors, Macs, Revocation, RingEntry, RingWrap


class Made(Protocol):
    """What was made at a time: the newer is the later by (created, id), never by activation, which
    a hasty key has before a planned one."""

    @property
    def id(self) -> str: ...
    @property
    def created(self) -> int: ...


class Signer(NamedTuple):
    """A key as far as it certifies facts: live, revoked or ended."""

    id: str
    created: int
    is_revoked: bool
    key: HeldKey


Signers = Mapping[str, Signer]
"""By key id."""


def birth(key: Made) -> tuple[int, str]:
    return key.created, key.id


def voucher_of(ring: str, entry: RingEntry, signer: HeldKey) -> bytes:
    """By which a key vouches for a new one."""
    return signer.certify(canonical_json(["key", ring, entry.id, *entry.times]))


def wrap_mac_of(ring: str, wrap: RingWrap, own: HeldKey) -> bytes:
    """Under an entry's own key, over one of its wraps."""
    wrapped = base64url.encode(wrap.wrapped)
    signature = None if wrap.signature is None else base64url.encode(wrap.signature)
    facts = ["wrap", ring, own.id, wrap.provider, wrap.key_id, wrapped, signature]
    return own.certify(canonical_json(facts))


def ancestors_mac_of(ring: str, ids: Iterable[str], own: HeldKey) -> bytes:
    """Under an entry's own key, over the ids of those that vouch for it."""
    return own.certify(canonical_json(["ancestors", ring, own.id, *ids]))


def are_right_ancestors(ring: str, ancestors: Ancestors | None, own: HeldKey) -> bool:
    return ancestors is not None and hmac.compare_digest(
        ancestors.mac, ancestors_mac_of(ring, ancestors.ids, own)
    )


def certificate_of(ring: str, key_id: str, at: str, signer: HeldKey) -> bytes:
    """By which a key certifies that another, or itself, is revoked."""
    return signer.certify(canonical_json(["revoked", ring, key_id, at]))


def right_vouchers(ring: str, entry: RingEntry, signers: Signers) -> Macs:
    """The vouchers that are right under a known key."""
    return _right_ones(entry.vouchers, signers, lambda key: voucher_of(ring, entry, key))


def is_right_wrap(ring: str, wrap: RingWrap, own: HeldKey) -> bool:
    return hmac.compare_digest(wrap.mac, wrap_mac_of(ring, wrap, own))


def right_certificates(ring: str, key_id: str, claim: Revocation, signers: Signers) -> Macs:
    """The certificates that are right under a known key, whatever that may certify."""
    expected = partial(certificate_of, ring, key_id, claim.at)
    return _right_ones(claim.by, signers, expected)


def is_certified(ring: str, key: Made, revocation: Revocation, signers: Signers) -> bool:
    """Whether a key is revoked: certified by the key itself, or by a newer known one that is not
    revoked. A revoked key certifies only its own revocation."""
    right = right_certificates(ring, key.id, revocation, signers)
    return any(
        key_id == key.id or (not signers[key_id].is_revoked and birth(signers[key_id]) > birth(key))
        for key_id in right
    )


def _right_ones(macs: Macs, signers: Signers, expected: Callable[[HeldKey], bytes]) -> Macs:
    return {
        key_id: mac
        for key_id, mac in macs.items()
        if key_id in signers and hmac.compare_digest(mac, expected(signers[key_id].key))
    }
