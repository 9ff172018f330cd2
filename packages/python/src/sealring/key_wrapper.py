"""The interface of key wrappers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

OnServiceDate = Callable[[float], None]
"""Receives the date of the service's answer, in milliseconds since the epoch, if it has one."""


@dataclass(frozen=True)
class WrappedKey:
    """The ciphertext of a data key, with the exact KMS key version that made it. Neither is
    secret."""

    provider: str
    key_id: str
    """The exact key version, in the provider's spelling."""
    wrapped: bytes


class Supports(NamedTuple):
    """The capabilities of a KMS."""

    context: bool = True
    """Whether the service itself binds the context. If not, the ring binds the context inside the
    plaintext: it then passes 64 bytes, the data key and the SHA-256 hash of the context."""
    authenticated: bool = True
    """Whether an unwrap shows that the wrap was made with the permission to wrap. False for
    wrapping with a public RSA key, which requires `sign` and `verify`."""
    key_versions: bool = False
    """Whether the KMS key has versions and the `key_id` of a wrapped key names the version that
    made it. If so, members notice a new version of the KMS key."""


class KeyWrapper(Protocol):
    """Wraps and unwraps 32-byte data keys with one KMS key.

    1. `unwrap` returns what was wrapped, in a new bytearray that the caller overwrites.
    2. A wrapped key that is passed with another context, or has one bit changed, is refused as
       `corrupt`.
    3. A wrapped key that names another provider, or a KMS key outside of the wrapper's allow-list,
       is refused as `corrupt` before any call.
    4. Every failure is a KeyWrapperError without any part of the vendor's error.

    A codec makes up to four calls to a key wrapper at the same time, each in its own thread.

    If the service generates data keys or signs, the wrapper also has the methods of
    `DataKeyGenerator` or `EntrySigner`, respectively.
    """

    @property
    def provider(self) -> str:
        """`aws-kms`, `local` or another provider name, 1 to 64 characters of `[a-z0-9-]`."""
        ...

    @property
    def supports(self) -> Supports:
        """The capabilities of the KMS."""
        ...

    def owns(self, wrapped: WrappedKey) -> bool:
        """Whether a wrapped key names this provider and a KMS key that the wrapper may call. Makes
        no call to the KMS."""
        ...

    def wrap(
        self,
        data_key: bytearray,
        context: Mapping[str, str],
        *,
        on_service_date: OnServiceDate | None = None,
    ) -> WrappedKey:
        """Wraps 32 bytes, or 64 if `supports.context` is false. Readers never call this method."""
        ...

    def unwrap(
        self,
        wrapped: WrappedKey,
        context: Mapping[str, str],
        *,
        on_service_date: OnServiceDate | None = None,
    ) -> bytearray:
        """The wrapped data key."""
        ...


@runtime_checkable
class DataKeyGenerator(Protocol):
    """A key wrapper whose service creates a data key and wraps it in one call."""

    def generate(
        self, context: Mapping[str, str], *, on_service_date: OnServiceDate | None = None
    ) -> tuple[bytearray, WrappedKey]:
        """A new 32-byte data key and its wrapped key."""
        ...


@runtime_checkable
class EntrySigner(Protocol):
    """A key wrapper whose `unwrap` does not authenticate the origin of a wrapped key, so it signs
    ring entries instead."""

    def sign(self, entry: bytes) -> bytes:
        """Signs a ring entry in the KMS."""
        ...

    def verify(self, entry: bytes, signature: bytes) -> bool:
        """Checks such a signature locally, against the pinned public keys."""
        ...
