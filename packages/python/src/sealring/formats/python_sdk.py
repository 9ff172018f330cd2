"""The token of AESGCMRequestStateCodec in the MCP Python SDK 2.3.0: "v1." b64url(kid[4] nonce[12]
ciphertext tag[16])."""

import hashlib
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from .. import base64url
from ..errors import InvalidRequestState

PREFIX = "v1."
NONCE_BYTES = 12
_KEY_INFO = b"mcp/request-state/v1/aes-256-gcm"
_KID_LABEL = b"mcp/request-state/v1/kid:"
_KID_BYTES = 4
_TAG_BYTES = 16


class PythonKey(NamedTuple):
    """What one secret comes to on this wire."""

    kid: bytes
    """Fingerprint of the derived key: 4 bytes."""
    aead: AESGCM


class PythonToken(NamedTuple):
    """The parts of a token, none of them authenticated."""

    kid: bytes
    nonce: bytes
    sealed: bytes
    """Ciphertext and tag."""


def derive_key(secret: bytes | bytearray) -> PythonKey:
    """Derives key and fingerprint: HKDF-SHA256 (RFC 5869) with an empty salt."""
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=_KEY_INFO).derive(bytes(secret))
    return PythonKey(hashlib.sha256(_KID_LABEL + key).digest()[:_KID_BYTES], AESGCM(key))


def max_payload_bytes(max_token_length: int) -> int:
    """Bytes a payload may have so that its token has at most so many characters."""
    whole = (max_token_length - len(PREFIX)) * 3 // 4
    return whole - _KID_BYTES - NONCE_BYTES - _TAG_BYTES


def seal(key: PythonKey, nonce: bytes, payload: bytes) -> str:
    """The nonce, 12 bytes, must never repeat under one key (SP 800-38D section 8)."""
    sealed = key.aead.encrypt(nonce, payload, PREFIX.encode("ascii") + key.kid)
    return PREFIX + base64url.encode(key.kid + nonce + sealed)


def parse(token: str) -> PythonToken:
    """Takes a token apart.

    Raises:
        InvalidRequestState: `malformed`, for anything but the canonical text of 32 bytes or more.
    """
    body = base64url.decode(token[len(PREFIX) :]) if token.startswith(PREFIX) else None
    if body is None or len(body) < _KID_BYTES + NONCE_BYTES + _TAG_BYTES:
        raise InvalidRequestState("malformed")
    end = _KID_BYTES + NONCE_BYTES
    return PythonToken(body[:_KID_BYTES], body[_KID_BYTES:end], body[end:])


def open_token(key: PythonKey, token: PythonToken) -> bytes:
    """Opens a token under the key that has its fingerprint.

    Raises:
        InvalidRequestState: `seal`.
    """
    try:
        return key.aead.decrypt(token.nonce, token.sealed, PREFIX.encode("ascii") + key.kid)
    except InvalidTag:
        raise InvalidRequestState("seal") from None
