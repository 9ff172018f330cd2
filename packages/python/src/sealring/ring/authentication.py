"""Whether a ring document comes from somebody who holds the ring's keys."""

import hmac
from collections.abc import Sequence
from typing import Literal

from ..held_key import HeldKey
from .document import RingDocument
from .schedule import newest
from .snapshot import RingKey

Authenticity = Literal["accepted", "older branch", "ended branch", "forged"]
"""
* `accepted`: from somebody who holds this reader's newest key.
* `older branch`: from somebody who holds one of its keys, not the newest: a store rolled back, or a
  second lineage. Not adopted as it is.
* `ended branch`: from somebody who holds only keys that have ended or were revoked since. Nothing
  is taken from it.
* `forged`: anything else.
"""


def judge(document: RingDocument, own: Sequence[RingKey], past: Sequence[HeldKey]) -> Authenticity:
    """Judges a document by the live keys this reader holds, at least one, and by past signers.

    The newest of its own that the document does not list as revoked must have signed it. One that
    revokes all of them must still be signed by the newest: who may merely wrap and write the store
    cannot revoke a fleet into a ring of his own.
    """
    signers = [key.held for key in own if key.held is not None]
    if any(contradicts(document, signer) for signer in signers):
        return "forged"
    listed = {entry.id for entry in document.entries if entry.revoked is not None}
    decisive = newest(key for key in own if key.id not in listed) or newest(own)
    if decisive is not None and is_signed_by(document, decisive.held):
        return "accepted"
    if any(is_signed_by(document, signer) for signer in signers):
        return "older branch"
    return "ended branch" if any(is_signed_by(document, key) for key in past) else "forged"


def is_signed_by(document: RingDocument, key: HeldKey | None) -> bool:
    """Whether the document carries a right MAC under a key."""
    if key is None:
        return False
    mac = document.macs.get(key.id)
    return mac is not None and _is_mac(mac, document, key)


def contradicts(document: RingDocument, key: HeldKey) -> bool:
    """Whether the document carries a wrong MAC under a key."""
    mac = document.macs.get(key.id)
    return mac is not None and not _is_mac(mac, document, key)


def _is_mac(mac: bytes, document: RingDocument, key: HeldKey) -> bool:
    right = hmac.digest(key.ring_mac_key(), document.body.encode("ascii"), "sha256")
    return hmac.compare_digest(mac, right)
