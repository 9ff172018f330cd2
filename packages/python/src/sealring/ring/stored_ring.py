"""The ring in its store: read and parsed, with a deadline of ours."""

from ..errors import RingStoreError, bare
from ..key_wrapper import OnServiceDate
from .calls import Calls
from .document import RingDocument, parse_document
from .store import RingStore, StoredRing


class StoredRingDocument:
    """Every failure is a RingStoreError that holds nothing of the vendor's."""

    def __init__(
        self, store: RingStore, ring: str, calls: Calls, on_service_date: OnServiceDate
    ) -> None:
        self._store = store
        self._ring = ring
        self._calls = calls
        self._on_service_date = on_service_date
        self._last: tuple[str, RingDocument] | None = None

    def read(self) -> RingDocument | None:
        """None when the document is known to be absent. The same object for the same text, so
        that an unchanged ring is recognised without a look inside."""
        answer = self._ask()
        if answer is None:
            return None
        if isinstance(answer, RingStoreError):
            raise answer
        if self._last is None or self._last[0] != answer.document:
            self._last = (answer.document, parse_document(answer.document, self._ring))
        return self._last[1]

    def _ask(self) -> StoredRing | RingStoreError | None:
        try:
            answer = self._calls.run(
                "read",
                lambda: self._store.read(on_service_date=self._on_service_date),
                late=lambda: RingStoreError("unavailable", "no answer in time"),
            )
        except RingStoreError as error:
            return bare(error)
        except Exception:  # A stranger's text may hold credentials.
            return RingStoreError("unavailable", "the store raised an error of another class")
        if answer is None:
            return None
        if not isinstance(answer, StoredRing) or not isinstance(answer.document, str):
            return RingStoreError("corrupt", "the store returned no document")
        return answer
