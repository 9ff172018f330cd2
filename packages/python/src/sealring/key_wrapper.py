"""What a key wrapper is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

OnServiceDate = Callable[[float], None]
"""Is told the service's own time, milliseconds since the epoch, where it puts one on its answer."""


@dataclass(frozen=True)
class WrappedKey:
    """Ciphertext of a data key, and the exact KMS key version that made it. Not secret."""

    provider: str
    key_id: str
    """The exact key version, in the provider's own spelling."""
    wrapped: bytes


class KeyWrapper(Protocol):
    """Unwraps 32-byte data keys with one KMS key.

    1. `unwrap` returns the bytes in a fresh bytearray that the caller overwrites.
    2. A wrapped key under another context, or with one bit changed, is refused as `corrupt`.
    3. A wrapped key that names another provider, or a KMS key outside of the wrapper's allow-list,
       is refused as `corrupt` before any call.
    4. Every failure is a KeyWrapperError that holds nothing of the vendor's.
    5. A successful unwrap proves that somebody with the right to wrap made it, and the service
       itself binds the context. What cannot say so is no key wrapper for this package.
    """

    @property
    def provider(self) -> str:
        """`aws-kms`, `local`, or a name of your own: 1 to 64 of `[a-z0-9-]`."""
        ...

    def owns(self, wrapped: WrappedKey) -> bool:
        """Whether a wrapped key is of this provider and of a KMS key it may ask. No call."""
        ...

    def unwrap(
        self,
        wrapped: WrappedKey,
        context: Mapping[str, str],
        *,
        on_service_date: OnServiceDate | None = None,
    ) -> bytearray:
        """The data key, 32 bytes."""
        ...
