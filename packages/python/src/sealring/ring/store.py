"""The ring in its store: what a store is, as far as a reader is concerned, and how it is read."""

from contextlib import suppress
from functools import partial
from typing import NamedTuple, Protocol

from ..errors import RingStoreError
from ..key_wrapper import OnServiceDate
from .calls import Calls
from .document import MAX_DOCUMENT_BYTES, RingDocument, parse_document
from .view import RingView


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


def document_text(data: bytes, what: str) -> str:
    """The text of the bytes that a store read; a RingStoreError says why there is none."""
    if len(data) > MAX_DOCUMENT_BYTES:
        raise RingStoreError("too-large", "over 256 KiB")
    with suppress(UnicodeDecodeError):
        if data:
            return data.decode("utf-8")
    raise RingStoreError("corrupt", f"{what} is empty or not UTF-8")


def read_ring(view: RingView, calls: Calls, store: RingStore) -> RingDocument | None:
    """The ring in its store; None when it is known to be absent. Every failure is a RingStoreError
    that holds nothing of the vendor's."""
    answer = calls.run(
        "read",
        lambda: store.read(on_service_date=partial(view.ring_clock.note, "store")),
        lambda detail: RingStoreError("unavailable", detail),
    )
    if answer is None:
        return None
    if isinstance(answer, RingStoreError):
        raise answer
    if not isinstance(answer, StoredRing) or not isinstance(answer.document, str):
        raise RingStoreError("corrupt", "the store returned no document")
    return parse_document(answer.document, view.ring)
