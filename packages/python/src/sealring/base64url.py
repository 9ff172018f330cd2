"""Canonical base64url (RFC 4648, section 5, without padding): each byte string has exactly one
encoding."""

import base64


def encode(data: bytes | bytearray) -> str:
    """The only text that is accepted for these bytes."""
    return base64.urlsafe_b64encode(data).decode("ascii").rstrip("=")


def decode(text: str) -> bytes | None:
    """The bytes that a canonical text encodes; None for any other text.

    Python's decoder skips characters outside the alphabet and ignores unused bits, so the decoded
    bytes are encoded again and the result is compared with the text.
    """
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return None
    return data if encode(data) == text else None
