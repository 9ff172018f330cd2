"""Wraps data keys in this process, under a master key that you keep: for development, tests and
machines without a KMS."""

import os
import re
from collections.abc import Mapping, Sequence
from functools import partial

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from .. import base64url
from ..aead import NONCE_BYTES, TAG_BYTES, decrypt, derive_key
from ..canonical_json import canonical_json
from ..derivation import DATA_KEY_BYTES, overwrite
from ..errors import KeyWrapperError
from ..key_wrapper import OnServiceDate, Supports, WrappedKey
from ..options import is_constant, sequence, show
from .service import check_context, check_plaintext

_OWNER = "LocalKeyWrapper"
_PROVIDER = "local"
_corrupt = partial(KeyWrapperError, "corrupt", _PROVIDER)
_KEY_INFO = b"sealring/v1/local-key-wrapper"
_KEY_ID_LABEL = b"sealring/v1/local-key-wrapper/key-id"
_KEY_ID_BYTES = 9
_LEAST_SECRET_BYTES = 32
_PRINTS_A_KEY = '"openssl rand -base64 32"'
_WRAPPED_BYTES = NONCE_BYTES + DATA_KEY_BYTES + TAG_BYTES


class LocalKeyWrapper:
    """The counterpart of `localKeyWrapper` of @sealring/core: each unwraps what the other wrapped.

    A wrapped key has 60 bytes: nonce (12), ciphertext (32) and tag (16) of AES-256-GCM, under a key
    derived from the master key with HKDF-SHA256 (RFC 5869). The context, the provider and the key
    id are authenticated.

    Args:
        master_key: at least 32 random bytes, or their base64 or base64url text.
        also_unwrap: earlier master keys that unwrap only.

    Raises:
        TypeError: for a master key that is neither bytes nor text.
        ValueError: for a key that is too short, repeats one byte, is readable text, or was given
            twice.
    """

    provider = _PROVIDER
    supports = Supports()

    def __init__(self, *, master_key: bytes | str, also_unwrap: Sequence[bytes | str] = ()) -> None:
        sequence(_OWNER, "also_unwrap", also_unwrap)
        self.key_id, own = _derive("master_key", master_key)
        self._keys = {self.key_id: own}
        for index, retired in enumerate(also_unwrap):
            key_id, key = _derive(f"also_unwrap[{index}]", retired)
            if key_id in self._keys:
                raise ValueError(f"{_OWNER}: also_unwrap[{index}] repeats another master key")
            self._keys[key_id] = key

    def __repr__(self) -> str:
        return f"LocalKeyWrapper({self.key_id})"

    def owns(self, wrapped: WrappedKey) -> bool:
        return wrapped.provider == _PROVIDER and wrapped.key_id in self._keys

    def unwrap(
        self,
        wrapped: WrappedKey,
        context: Mapping[str, str],
        *,
        on_service_date: OnServiceDate | None = None,  # noqa: ARG002 - there is no service.
    ) -> bytearray:
        """The data key, 32 bytes. Raises KeyWrapperError `corrupt` for anything that this provider
        did not wrap under one of the master keys with this context."""
        check_context(_OWNER, context)
        if not self.owns(wrapped):
            raise _corrupt(hint="wrapped by another provider or master key")
        if len(wrapped.wrapped) != _WRAPPED_BYTES:
            raise _corrupt(hint=f"the wrapped key is not {_WRAPPED_BYTES} bytes long")
        nonce, sealed = wrapped.wrapped[:NONCE_BYTES], wrapped.wrapped[NONCE_BYTES:]
        aad = _authenticated(wrapped.key_id, context)
        data_key = decrypt(self._keys[wrapped.key_id], nonce, sealed, aad)
        if data_key is None:
            raise _corrupt(hint="wrapped key or context changed")
        if is_constant(data_key):
            raise _corrupt(hint="the data key is one byte repeated")
        return bytearray(data_key)

    def wrap(
        self,
        data_key: bytes | bytearray,
        context: Mapping[str, str],
        *,
        on_service_date: OnServiceDate | None = None,  # noqa: ARG002 - there is no service.
    ) -> WrappedKey:
        """Wraps 32 bytes that are not all equal."""
        check_plaintext(_OWNER, data_key, [DATA_KEY_BYTES])
        check_context(_OWNER, context)
        nonce = os.urandom(NONCE_BYTES)
        aad = _authenticated(self.key_id, context)
        sealed = self._keys[self.key_id].encrypt(nonce, bytes(data_key), aad)
        return WrappedKey(_PROVIDER, self.key_id, nonce + sealed)


def _derive(name: str, value: object) -> tuple[str, AESGCM]:
    # The value is never coerced: bytearray(32) would silently create a key of zeros.
    if not isinstance(value, (str, bytes, bytearray)):
        raise TypeError(f"{_OWNER}: {name} must be bytes or a str, got {show(value)}")
    secret = _decoded(name, value) if isinstance(value, str) else bytearray(value)
    if len(secret) < _LEAST_SECRET_BYTES:
        least = f"at least {_LEAST_SECRET_BYTES} bytes of secret randomness"
        raise ValueError(
            f"{_OWNER}: {name} must be {least}, got {len(secret)}: "
            f"pass the output of {_PRINTS_A_KEY}"
        )
    if all(0x20 <= byte <= 0x7E or 0x09 <= byte <= 0x0D for byte in secret):
        raise ValueError(
            f"{_OWNER}: {name} is printable text, not random bytes: pass the output of "
            f"{_PRINTS_A_KEY}, as a str, or decode it"
        )
    if is_constant(secret):
        told = f"{_OWNER}: {name} consists of one repeated byte"
        raise ValueError(f"{told}, like a buffer that was never filled")
    fingerprint, key = derive_key(secret, _KEY_INFO, _KEY_ID_LABEL)
    overwrite(secret)
    return f"{_PROVIDER}:{base64url.encode(fingerprint[:_KEY_ID_BYTES])}", key


def _decoded(name: str, text: str) -> bytearray:
    """The bytes that base64 or base64url text encodes. Other text is refused, because text that a
    person can remember has too little randomness."""
    # Hexadecimal text is also valid base64, but would decode to bytes other than those that its
    # author meant.
    if re.fullmatch(r"(?:[0-9a-fA-F]{2}){32,}", text):
        raise ValueError(
            f"{_OWNER}: {name} is hexadecimal text: decode it with bytes.fromhex(text), or "
            f"pass the output of {_PRINTS_A_KEY}"
        )
    padding = len(text) - len(text.rstrip("="))
    data = base64url.decode(text.rstrip("=").replace("+", "-").replace("/", "_"))
    if data is None or padding > 2:  # noqa: PLR2004 - of three bytes.
        raise ValueError(
            f"{_OWNER}: {name} is text that is not base64: pass 32 random bytes, or "
            f"the output of {_PRINTS_A_KEY}"
        )
    return bytearray(data)


def _authenticated(key_id: str, context: Mapping[str, str]) -> bytes:
    """The additional authenticated data of a wrap."""
    names = {"context": dict(context), "keyId": key_id, "provider": _PROVIDER}
    return canonical_json(names).encode("ascii")
