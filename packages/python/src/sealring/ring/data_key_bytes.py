"""The bytes of a data key, in the form in which a KMS receives and returns them."""

import hashlib
import hmac
from collections.abc import Mapping

from ..canonical_json import canonical_json
from ..derivation import DATA_KEY_BYTES, overwrite
from ..options import is_constant


def checked_data_key(data: object) -> bytearray | None:
    """The bytes that a key wrapper returned, if they are a 32-byte data key; otherwise None."""
    is_whole = isinstance(data, bytearray) and len(data) == DATA_KEY_BYTES
    return data if is_whole and not is_constant(data) else None  # type: ignore[arg-type, return-value]


def bound_plaintext(data_key: bytearray, context: Mapping[str, str]) -> bytearray:
    """The data key followed by the SHA-256 hash of the context: the plaintext to wrap with a
    service that binds no context. The caller overwrites it."""
    return bytearray(data_key) + _hash_of(context)


def unbound_plaintext(plaintext: object, context: Mapping[str, str]) -> bytearray | None:
    """The data key in such a plaintext; None if the context differs. Overwrites the plaintext."""
    data = plaintext if isinstance(plaintext, bytearray) else bytearray()
    is_bound = hmac.compare_digest(data[DATA_KEY_BYTES:], _hash_of(context))
    data_key = bytearray(data[:DATA_KEY_BYTES]) if is_bound else None
    overwrite(data)
    return checked_data_key(data_key)


def _hash_of(context: Mapping[str, str]) -> bytes:
    return hashlib.sha256(canonical_json(dict(context)).encode("ascii")).digest()
