"""AES-256-GCM (SP 800-38D)."""

import hashlib

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

NONCE_BYTES = 12
TAG_BYTES = 16


def derive_key(secret: bytes | bytearray, info: bytes, label: bytes) -> tuple[bytes, AESGCM]:
    """A key derived with HKDF-SHA256 (RFC 5869) and an empty salt, and the 32-byte fingerprint of
    the key: the SHA-256 hash of `label` and the key."""
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(bytes(secret))
    return hashlib.sha256(label + key).digest(), AESGCM(key)


def decrypt(key: AESGCM, nonce: bytes, sealed: bytes, authenticated: bytes) -> bytes | None:
    """The plaintext of a ciphertext with its tag; None if authentication failed."""
    try:
        return key.decrypt(nonce, sealed, authenticated)
    except InvalidTag:
        return None
