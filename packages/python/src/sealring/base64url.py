"""Canonical base64url (RFC 4648 section 5, no padding): one spelling for one byte string."""

import base64


def encode(data: bytes | bytearray) -> str:
    """The only accepted text of some bytes."""
    return base64.urlsafe_b64encode(data).decode("ascii").rstrip("=")


def decode(text: str) -> bytes | None:
    """The bytes of a canonical text; None for anything else.

    Python's decoder skips foreign characters and ignores unused bits, so the bytes are encoded
    again and compared.
    """
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return None
    return data if encode(data) == text else None
