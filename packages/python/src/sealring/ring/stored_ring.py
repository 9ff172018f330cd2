"""The ring in its store: read and parsed, with a deadline of ours."""

from functools import partial

from ..errors import RingStoreError
from .calls import Calls
from .document import RingDocument, parse_document
from .store import RingStore, StoredRing
from .view import RingView


class StoredRingDocument:
    """Every failure is a RingStoreError that holds nothing of the vendor's."""

    def __init__(self, view: RingView, calls: Calls, store: RingStore) -> None:
        self._view = view
        self._calls = calls
        self._store = store
        self._last: tuple[str, RingDocument] | None = None

    def read(self) -> RingDocument | None:
        """None when the document is known to be absent. The same object for the same text, so
        that an unchanged ring is recognised without a look inside."""
        on_service_date = partial(self._view.ring_clock.note, "store")
        answer = self._calls.run(
            "read",
            lambda: self._store.read(on_service_date=on_service_date),
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
