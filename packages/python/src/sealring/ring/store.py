"""The interface of ring stores, and how they are read and written."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple, Protocol, runtime_checkable

from ..errors import RingConflictError, RingStoreError
from ..key_wrapper import OnServiceDate
from ..options import show
from .calls import STORE, Calls
from .document import MAX_DOCUMENT_BYTES, RingDocument, encode_document, parse_document
from .view import RingView


class StoredRing(NamedTuple):
    """A ring document as read."""

    document: str
    revision: str
    """Opaque; equal for equal versions."""


class ReadableRing(Protocol):
    """A store that the ring document can be read from. A store may have a str `location`, which
    messages show: where the ring is stored, without any secret, such as
    `s3://payments-sealring/payments.ring`.
    """

    @property
    def kind(self) -> str:
        """`file`, `redis`, `s3`, or your own name."""
        ...

    def read(self, *, on_service_date: OnServiceDate | None = None) -> StoredRing | None:
        """None only when the document is *known to be absent*: a store that is unreachable,
        forbidden or damaged raises RingStoreError. At most 262 144 bytes are read. A `too-large` or
        `corrupt` error should have the revision of the stored document, with which one write can
        replace it."""
        ...


class RingStore(ReadableRing, Protocol):
    """Where the ring document is stored. A write that returned is durable, and every later read
    sees it."""

    def write(
        self,
        document: str,
        *,
        expected: str | None,
        on_service_date: OnServiceDate | None = None,
    ) -> str:
        """Replaces the version `expected` in one atomic compare-and-swap, and returns the new
        revision; None means "only if absent". Raises RingConflictError if another writer was first,
        and RingStoreError for every other failure."""
        ...


@runtime_checkable
class WatchableRing(Protocol):
    """A store that can notify its callers of writes. This is only an optimization."""

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Calls `changed`, on any thread, soon after each write. Returns a function that ends the
        watch."""
        ...


class Stored(NamedTuple):
    """The content of a store, with its revision."""

    document: RingDocument | None
    """None for content that is not a document of this ring: nothing is learned from it."""
    revision: str
    error: RingStoreError | None = None
    """Why there is no document."""


def document_text(data: bytes, what: str, revision: str | None = None) -> str:
    """Decodes the bytes that a store has read. Raises RingStoreError if they are empty or not
    UTF-8."""
    if len(data) > MAX_DOCUMENT_BYTES:
        raise RingStoreError("too-large", "the document is larger than 256 KiB", revision=revision)
    with suppress(UnicodeDecodeError):
        if data:
            return data.decode("utf-8")
    raise RingStoreError("corrupt", f"{what} is empty or not UTF-8", revision=revision)


def check_write(owner: str, document: object, expected: object) -> None:
    """Checks the arguments of a write for every store. Raises TypeError for a value that is not a
    str, RingStoreError for a text that a store must not write, RingConflictError for a revision
    with a lone surrogate."""
    if not isinstance(document, str):
        raise TypeError(f"{owner}: document must be a str, got {show(document)}")
    if expected is not None and not isinstance(expected, str):
        raise TypeError(f"{owner}: expected must be a str or None, got {show(expected)}")
    if len(document.encode("utf-8", "surrogatepass")) > MAX_DOCUMENT_BYTES:
        raise RingStoreError("too-large", "the ring document is larger than 262144 bytes")
    # No service has a revision with a lone surrogate, so the service is not called.
    if expected is not None and any("\ud800" <= character <= "\udfff" for character in expected):
        raise RingConflictError


_UNREADABLE = RingStoreError("corrupt", "the document cannot be parsed")


class _LostRaceError(RingStoreError):
    """Carries a RingConflictError out of a call."""


class StoredDocument:
    """Reads, parses, prints and writes the ring document. Each call has a deadline, and each
    failure is a RingStoreError without any part of the vendor's error, or a RingConflictError."""

    def __init__(self, view: RingView, calls: Calls, store: ReadableRing) -> None:
        self._view = view
        self._calls = calls
        self._store = store
        self._last: tuple[str, RingDocument] | None = None
        self.latest: Stored | None = None
        """The content as last read or written, which the next write replaces. None if the store
        holds nothing."""

    @property
    def kind(self) -> str:
        return self._store.kind

    @property
    def location(self) -> str | None:
        """Where the ring is, for messages; None if the store has no location."""
        location = getattr(self._store, "location", None)
        return location if isinstance(location, str) else None

    def read(self) -> Stored | None:
        """None when the document is known to be absent."""
        answer = self._run("read", lambda note: self._store.read(on_service_date=note))
        if isinstance(answer, RingStoreError):
            is_junk = answer.kind in ("corrupt", "too-large")
            if not is_junk or answer.revision is None:
                raise answer
            self.latest = Stored(None, answer.revision, answer)
        else:
            self.latest = self._opened(answer)
        return self.latest

    def write(self, document: RingDocument) -> None:
        """Replaces the version that was last read or written. Raises RingConflictError if the store
        no longer holds that version."""
        text = encode_document(self._view.ring, document)
        # Parse the text first: a document that cannot be read back must not be written.
        parsed = self._parsed(text)
        expected = None if self.latest is None else self.latest.revision
        write = getattr(self._store, "write", None)
        if write is None:
            raise RingStoreError("read-only", f"the {self._store.kind} store is read-only")

        def replaced(note: OnServiceDate) -> object:
            try:
                return write(text, expected=expected, on_service_date=note)
            except RingConflictError:
                raise _LostRaceError("unavailable", "another writer was first") from None

        answer = self._run("write", replaced)
        if isinstance(answer, _LostRaceError):
            raise RingConflictError
        if isinstance(answer, RingStoreError):
            raise answer
        if not isinstance(answer, str):
            raise RingStoreError("unavailable", "the store returned no revision")
        self.latest = Stored(parsed, answer)

    def _run(self, name: str, call: Callable[[OnServiceDate], object]) -> object:
        note = partial(self._view.ring_clock.note, "store")
        return self._calls.run(
            STORE, name, lambda: call(note), lambda detail: RingStoreError("unavailable", detail)
        )

    def _opened(self, answer: object) -> Stored | None:
        if answer is None:
            return None
        if not isinstance(answer, StoredRing) or not isinstance(answer.document, str):
            raise RingStoreError("corrupt", "the store returned no document")
        try:
            return Stored(self._parsed(answer.document), answer.revision)
        except Exception as error:  # Whatever a document does to the parser, it is invalid content.
            known = error if isinstance(error, RingStoreError) else _UNREADABLE
            junk = RingStoreError(known.kind, known.detail, revision=answer.revision)
            return Stored(None, answer.revision, junk)

    def _parsed(self, text: str) -> RingDocument:
        """The parsed document. The same text gives the same object, so that an unchanged ring is
        recognized without parsing."""
        if self._last is None or self._last[0] != text:
            self._last = text, parse_document(text, self._view.ring)
        return self._last[1]
