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


class StoredRingDocument:
    """Read and parsed, with a deadline of ours. Every failure is a RingStoreError that holds
    nothing of the vendor's."""

    def __init__(self, view: RingView, calls: Calls, store: RingStore) -> None:
        self._view = view
        self._calls = calls
        self._store = store
        self._last: tuple[str, RingDocument] | None = None

    def read(self) -> RingDocument | None:
        """None when the document is known to be absent. The same object for the same text, so
        that an unchanged ring is recognised without a look inside."""
        note = partial(self._view.ring_clock.note, "store")
        answer = self._calls.run(
            "read",
            lambda: self._store.read(on_service_date=note),
            lambda detail: RingStoreError("unavailable", detail),
        )
        if answer is None:
            return None
        if isinstance(answer, RingStoreError):
            raise answer
        if not isinstance(answer, StoredRing) or not isinstance(answer.document, str):
            raise RingStoreError("corrupt", "the store returned no document")
        if self._last is None or self._last[0] != answer.document:
            self._last = (answer.document, parse_document(answer.document, self._view.ring))
        return self._last[1]
