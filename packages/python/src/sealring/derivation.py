"""All derivations from a data key."""

import hashlib
import hmac

DATA_KEY_BYTES = 32
KEY_ID_BYTES = 9


def overwrite(data: object) -> None:
    """Overwrites a bytearray with zeros; nothing is done to other types, which cannot be
    overwritten."""
    if isinstance(data, bytearray):
        data[:] = bytes(len(data))


def key_id_of(data_key: bytes | bytearray) -> bytes:
    """The 9-byte id of a data key: derived from the key, never chosen."""
    digest = hashlib.sha256(b"sealring/v1/key-id")
    digest.update(data_key)
    return digest.digest()[:KEY_ID_BYTES]


def sub_key(data_key: bytes | bytearray, label: str, ring: str, tail: bytes = b"") -> bytes:
    """A 64-byte sub-key: HMAC-SHA-512 over the label, 0x00, the length of the ring's name, the name
    and the tail.

    The length before the name makes every (label, ring, tail) unambiguous, whatever the tail
    contains.
    """
    name = ring.encode("ascii")
    message = f"sealring/v1/{label}\0".encode("ascii") + len(name).to_bytes(2, "big") + name + tail
    return hmac.digest(data_key, message, "sha512")
