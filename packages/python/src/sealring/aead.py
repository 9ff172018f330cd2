"""AES-256-GCM (SP 800-38D)."""

import hashlib

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

NONCE_BYTES = 12
TAG_BYTES = 16


def derive_key(secret: bytes | bytearray, info: bytes, label: bytes) -> tuple[bytes, AESGCM]:
    """A key derived by HKDF-SHA256 (RFC 5869) with an empty salt, and its fingerprint: SHA-256 of
    `label` and the key, 32 bytes."""
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(bytes(secret))
    return hashlib.sha256(label + key).digest(), AESGCM(key)


def decrypt(key: AESGCM, nonce: bytes, sealed: bytes, authenticated: bytes) -> bytes | None:
    """The plaintext of a ciphertext with its tag; None if authentication failed."""
    try:
        return key.decrypt(nonce, sealed, authenticated)
    except InvalidTag:
        return None
