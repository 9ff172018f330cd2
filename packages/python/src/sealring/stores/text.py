"""What every store checks of the bytes it read."""

from ..errors import RingStoreError
from ..ring.document import MAX_DOCUMENT_BYTES


def document_text(data: bytes, what: str) -> str:
    """The text of a document.

    Raises:
        RingStoreError: `too-large`, or `corrupt` for no bytes and for what is not UTF-8.
    """
    if len(data) > MAX_DOCUMENT_BYTES:
        raise RingStoreError("too-large", "over 256 KiB")
    if not data:
        raise RingStoreError("corrupt", f"{what} is empty")
    try:
        document = data.decode("utf-8")
    except UnicodeDecodeError:
        document = ""
    if not document:
        raise RingStoreError("corrupt", f"{what} is not UTF-8")
    return document
