"""A codec in Python, for the Sealring conformance kit.

    npx sealring-conformance codec --exec "python codec.py"
"""

import base64
import secrets

from cipher import seal, unseal
from sealring_codec import serve


class InvalidRequestState(Exception):
    """The error for a refused token, recognized by its name."""


class MyCodec:
    """Seals with the first key and unseals with any of them."""

    def __init__(self, *keys: bytes) -> None:
        self._keys = keys

    def seal(self, payload: bytes) -> str:
        return _encode(seal(self._keys[0], payload))

    def unseal(self, token: str) -> bytes:
        sealed = _decode(token)
        for key in self._keys:
            payload = unseal(key, sealed)
            if payload is not None:
                return payload
        raise InvalidRequestState("seal")


def _encode(sealed: bytes) -> str:
    return base64.urlsafe_b64encode(sealed).rstrip(b"=").decode()


def _decode(token: str) -> bytes:
    try:
        padding = "=" * (-len(token) % 4)
        sealed = base64.b64decode(token + padding, altchars=b"-_", validate=True)
    except ValueError:
        raise InvalidRequestState("malformed") from None
    # Decoders are lenient, but a token must have exactly one valid encoding.
    if _encode(sealed) != token:
        raise InvalidRequestState("malformed")
    return sealed


if __name__ == "__main__":
    a, b, others = (secrets.token_bytes(32) for _ in range(3))
    keys = {
        "self": [a],
        "peer": [a],  # Another process of your fleet.
        "stranger": [others],  # Another service.
        "rotated": [b, a],  # Seals with B and still unseals tokens of A.
    }
    serve(lambda role: MyCodec(*keys[role]))
