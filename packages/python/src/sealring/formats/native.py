"""The native token: "sr1." b64url(keyId[9] salt[18] commitment[18]) b64url(nonce[12] ciphertext
tag[16]). The header is 45 bytes, a multiple of 3, so its 60 characters can be decoded alone."""

import hmac
from typing import NamedTuple

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from .. import base64url
from ..aead import NONCE_BYTES, TAG_BYTES, decrypt
from ..derivation import KEY_ID_BYTES
from ..errors import refused

PREFIX = "sr1."
SALT_BYTES = 18
SHORTEST_TOKEN = 102
_COMMITMENT_BYTES = 18
_HEADER_BYTES = KEY_ID_BYTES + SALT_BYTES + _COMMITMENT_BYTES
_BODY_START = len(PREFIX) + 60


class TokenKey(NamedTuple):
    """The key that seals tokens of one data key, one salt and one purpose."""

    header: bytes
    """keyId, salt and commitment: 45 bytes."""
    aead: AESGCM


class NativeToken(NamedTuple):
    """The parts of a token, none of them authenticated."""

    key_id: str
    header: bytes
    nonce: bytes
    sealed: bytes
    """Ciphertext and tag."""

    @property
    def salt(self) -> bytes:
        return self.header[KEY_ID_BYTES : KEY_ID_BYTES + SALT_BYTES]


def token_key(key_id: bytes, salt: bytes, block: bytes) -> TokenKey:
    """The token key for a salt, from its block of 64 bytes: sub_key under `token`, salt,
    purpose."""
    commitment = block[32 : 32 + _COMMITMENT_BYTES]
    return TokenKey(key_id + salt + commitment, AESGCM(block[:32]))


def max_payload_bytes(max_token_length: int) -> int:
    """The maximum payload length, in bytes, for which the token does not exceed
    `max_token_length`."""
    return (max_token_length - _BODY_START) * 3 // 4 - NONCE_BYTES - TAG_BYTES


def seal(key: TokenKey, nonce: bytes, payload: bytes) -> tuple[str, bytes]:
    """Returns the token and its tag. The nonce of 12 bytes must never repeat under one token
    key."""
    sealed = key.aead.encrypt(nonce, payload, PREFIX.encode("ascii") + key.header)
    token = PREFIX + base64url.encode(key.header) + base64url.encode(nonce + sealed)
    return token, sealed[-TAG_BYTES:]


def key_id_of_token(token: str) -> str | None:
    """The key id that a token names; None if the text contains none. The id is not
    authenticated."""
    key_id = token[len(PREFIX) : len(PREFIX) + 12]
    data = base64url.decode(key_id)
    return key_id if data is not None and len(data) == KEY_ID_BYTES else None


def parse(token: str) -> NativeToken:
    """Parses a token. Raises InvalidRequestState, `malformed`, for anything but canonical text."""
    header = base64url.decode(token[len(PREFIX) : _BODY_START])
    body = base64url.decode(token[_BODY_START:])
    if header is None or len(header) != _HEADER_BYTES:
        raise refused("malformed")
    if body is None or len(body) < NONCE_BYTES + TAG_BYTES:
        raise refused("malformed")
    key_id = token[len(PREFIX) : len(PREFIX) + 12]
    return NativeToken(key_id, header, body[:NONCE_BYTES], body[NONCE_BYTES:])


def open_token(key: TokenKey, token: NativeToken) -> bytes:
    """Unseals a token. Compares the commitment before decrypting, so that one ciphertext cannot
    unseal under two keys. Raises InvalidRequestState, `seal`, for a token that this key did not
    seal."""
    payload = None
    if hmac.compare_digest(key.header, token.header):
        aad = PREFIX.encode("ascii") + key.header
        payload = decrypt(key.aead, token.nonce, token.sealed, aad)
    if payload is None:
        raise refused("seal")
    return payload
