"""One unwrapped data key, and the derived values that are kept with it."""

import hmac
import threading

from . import base64url
from .canonical_json import canonical_json
from .derivation import key_id_of, overwrite, sub_key
from .formats import native, python_sdk
from .formats.sealer import TokenSealer
from .options import is_constant

# Purposes are constants in a program, not data, so few are expected.
_MAX_SEALERS = 256


class KeyOverwrittenError(Exception):
    """The data key was revoked or dropped while it was about to be used."""


class HeldKey:
    """Holds a data key until it is overwritten. Thread-safe: no derivation uses a partly
    overwritten key. Derived values are kept here so that they are dropped with the key. The data
    key and the secrets derived from it are overwritten. The keys inside `cryptography` and the
    copies that Python makes of bytes cannot be overwritten; the garbage collector frees them.
    """

    def __init__(self, data_key: bytearray, ring: str) -> None:
        """Takes over `data_key`, 32 bytes."""
        if len(data_key) != 32 or is_constant(data_key):
            raise ValueError("a data key has 32 bytes that are not all equal")
        self._lock = threading.Lock()
        self._data_key = data_key
        self._ring = ring
        self._key_id = key_id_of(data_key)
        self._ring_mac = bytearray(sub_key(data_key, "ring-mac", ring)[:32])
        self._sealers: dict[str | None, TokenSealer] = {}
        self._python_key: python_sdk.PythonKey | None = None
        self._python_sealed = 0
        self._is_overwritten = False
        self.id = base64url.encode(self._key_id)
        """The id of the key, 12 characters; computed from the data key, never taken from a
        document."""

    def __repr__(self) -> str:
        return f"HeldKey({self.id})"

    def __reduce__(self) -> str:
        raise TypeError("a data key must not be serialized")

    def equals(self, data_key: bytearray) -> bool:
        with self._lock:
            return hmac.compare_digest(self._live(), data_key)

    def token_key(self, salt: bytes, purpose: str | None) -> native.TokenKey:
        tail = salt if purpose is None else salt + b"\0" + purpose.encode("ascii")
        with self._lock:
            block = sub_key(self._live(), "token", self._ring, tail)
        return native.token_key(self._key_id, salt, block)

    def sealer(self, purpose: str | None) -> TokenSealer:
        with self._lock:
            self._live()
            sealer = self._sealers.get(purpose)
            if sealer is None:
                if len(self._sealers) >= _MAX_SEALERS:
                    del self._sealers[next(iter(self._sealers))]
                sealer = TokenSealer(lambda salt: self.token_key(salt, purpose))
                self._sealers[purpose] = sealer
            return sealer

    def python_key(self) -> python_sdk.PythonKey:
        """The key for `v1.` tokens; derived once, then kept."""
        with self._lock:
            data_key = self._live()
            if self._python_key is None:
                secret = sub_key(data_key, "python", self._ring)[:32]
                self._python_key = python_sdk.derive_key(secret)
            return self._python_key

    def count_python_token(self) -> int:
        """Counts one more `v1.` token; returns how many this process has sealed with this key,
        including that one."""
        with self._lock:
            self._python_sealed += 1
            return self._python_sealed

    def certify(self, kind: str, *facts: str | None) -> bytes:
        """The 32-byte HMAC-SHA-256 of kind, ring and facts as canonical JSON, under the sub-key
        that certifies facts about the ring."""
        text = canonical_json([kind, self._ring, *facts]).encode("ascii")
        with self._lock:
            if not self._ring_mac:
                raise KeyOverwrittenError(self.id)
            return hmac.digest(bytes(self._ring_mac), text, "sha256")

    @property
    def is_overwritten(self) -> bool:
        """Whether the key was overwritten and can neither seal nor unseal."""
        return self._is_overwritten

    def copy_data_key(self) -> bytearray:
        """The data key for a further wrap; the caller overwrites the copy."""
        with self._lock:
            return bytearray(self._live())

    def limit_to_ring(self) -> None:
        """Overwrites the data key, and drops every derived value that could seal or unseal a token;
        the rest can only certify facts of the ring. For a revoked or expired key: it may be the
        only key by which another process knows the ring."""
        with self._lock:
            self._is_overwritten = True
            overwrite(self._data_key)
            self._sealers.clear()
            self._python_key = None

    def destroy(self) -> None:
        self.limit_to_ring()
        with self._lock:
            overwrite(self._ring_mac)
            self._ring_mac = bytearray()

    def _live(self) -> bytearray:
        # An overwritten data key is 32 zeros: anyone could unseal what it seals.
        if self._is_overwritten:
            raise KeyOverwrittenError(self.id)
        return self._data_key
