"""What a ring store is, as far as a reader is concerned."""

from typing import NamedTuple, Protocol

from ..key_wrapper import OnServiceDate


class StoredRing(NamedTuple):
    """A ring document as read."""

    document: str
    revision: str
    """Opaque; equal for equal versions."""


class RingStore(Protocol):
    """Where the ring document lives."""

    @property
    def kind(self) -> str:
        """`file`, `redis`, `s3`, or a name of your own."""
        ...

    def read(self, *, on_service_date: OnServiceDate | None = None) -> StoredRing | None:
        """None only when the document is *known to be absent*: what cannot be reached, may not be
        read or is damaged is a RingStoreError. At most 262 144 bytes are read."""
        ...
