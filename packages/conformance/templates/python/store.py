"""A ring store in Python, for the Sealring conformance kit.

    pip install sealring
    npx sealring-conformance ring-store --exec "python store.py"
"""

from backend import find, swap
from sealring import RingConflictError, RingStoreError, StoredRing
from sealring_adapter import serve_ring_store

MAX_DOCUMENT_BYTES = 262_144


class MyRing:
    """Stores a ring document under a name."""

    kind = "my-store"

    def __init__(self, name: str) -> None:
        self._name = name

    def read(self, *, on_service_date=None) -> StoredRing | None:
        stored = _ask(find, self._name)
        if stored is not None and stored.document == "":
            raise RingStoreError("corrupt", "the document is empty", revision=stored.revision)
        if stored is not None and _is_too_large(stored.document):
            raise RingStoreError("too-large", "over 262 144 bytes", revision=stored.revision)
        return stored

    def write(self, document: str, *, expected: str | None, on_service_date=None) -> str:
        if not isinstance(document, str) or document == "":
            raise TypeError("document must be a text that is not empty")
        if _is_too_large(document):
            raise RingStoreError("too-large", "over 262 144 bytes")
        if expected is not None and expected.encode("utf-8", "replace").decode() != expected:
            # No service has such a revision, and a request could not carry it.
            raise RingConflictError()
        revision = _ask(swap, self._name, document, expected)
        if revision is None:
            raise RingConflictError()
        return revision


def _is_too_large(document: str) -> bool:
    return len(document.encode("utf-8", "surrogatepass")) > MAX_DOCUMENT_BYTES


def _ask(call, *arguments):
    """Reports a failure of the service as `unavailable`. Drops its error, which may contain a
    credential or the document."""
    try:
        return call(*arguments)
    except Exception:
        raise RingStoreError("unavailable", "the service did not answer") from None


if __name__ == "__main__":
    # Add remove, plant, break_connection and supports for further checks.
    serve_ring_store(MyRing, name="my store")
