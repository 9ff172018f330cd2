"""What every store checks of the bytes it read."""

from contextlib import suppress

from ..errors import RingStoreError
from ..ring.document import MAX_DOCUMENT_BYTES


def document_text(data: bytes, what: str) -> str:
    """The text of a document; a RingStoreError says why there is none."""
    if len(data) > MAX_DOCUMENT_BYTES:
        raise RingStoreError("too-large", "over 256 KiB")
    with suppress(UnicodeDecodeError):
        if data:
            return data.decode("utf-8")
    raise RingStoreError("corrupt", f"{what} is empty or not UTF-8")
