"""The token of AESGCMRequestStateCodec in the MCP Python SDK 2.3.0: "v1." b64url(kid[4] nonce[12]
ciphertext tag[16])."""

from typing import NamedTuple

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from .. import aead, base64url
from ..aead import NONCE_BYTES, TAG_BYTES
from ..errors import refused

PREFIX = "v1."
_KEY_INFO = b"mcp/request-state/v1/aes-256-gcm"
_KID_LABEL = b"mcp/request-state/v1/kid:"
_KID_BYTES = 4


class PythonKey(NamedTuple):
    """The keys derived from one secret for this token format."""

    kid: bytes
    """Fingerprint of the derived key: 4 bytes."""
    aead: AESGCM


def derive_key(secret: bytes | bytearray) -> PythonKey:
    fingerprint, key = aead.derive_key(secret, _KEY_INFO, _KID_LABEL)
    return PythonKey(fingerprint[:_KID_BYTES], key)


def max_payload_bytes(max_token_length: int) -> int:
    """The length of the longest payload whose token is not too long, in bytes."""
    whole = (max_token_length - len(PREFIX)) * 3 // 4
    return whole - _KID_BYTES - NONCE_BYTES - TAG_BYTES


def seal(key: PythonKey, nonce: bytes, payload: bytes) -> str:
    """Seals a payload. The nonce of 12 bytes must never repeat under one key (SP 800-38D section
    8)."""
    sealed = key.aead.encrypt(nonce, payload, PREFIX.encode("ascii") + key.kid)
    return PREFIX + base64url.encode(key.kid + nonce + sealed)


def parse(token: str) -> tuple[bytes, bytes]:
    """Returns the fingerprint that a token names, and the remaining bytes. Raises
    InvalidRequestState, `malformed`, for anything but the canonical text of 32 bytes or more."""
    body = base64url.decode(token[len(PREFIX) :]) if token.startswith(PREFIX) else None
    if body is None or len(body) < _KID_BYTES + NONCE_BYTES + TAG_BYTES:
        raise refused("malformed")
    return body[:_KID_BYTES], body[_KID_BYTES:]


def open_token(key: PythonKey, rest: bytes) -> bytes:
    """Unseals a token with the key that has its fingerprint. Raises InvalidRequestState, `seal`,
    for a token that this key did not seal."""
    aad = PREFIX.encode("ascii") + key.kid
    payload = aead.decrypt(key.aead, rest[:NONCE_BYTES], rest[NONCE_BYTES:], aad)
    if payload is None:
        raise refused("seal")
    return payload
