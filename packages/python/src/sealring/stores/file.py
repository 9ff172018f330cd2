"""A ring in one file, as `fileRing` of @sealring/core keeps it."""

import errno
import hashlib
import os
import stat

from .. import base64url
from ..errors import RingStoreError
from ..key_wrapper import OnServiceDate
from ..options import show
from ..ring.document import MAX_DOCUMENT_BYTES
from ..ring.store import StoredRing
from .text import document_text

_OWNER = "FileRing"


class FileRing:
    """Reads a ring from one file, which writers replace whole.

    The directory must exist: a volume that is not mounted must not look like a ring that is not
    there yet. For the same reason an empty file is `corrupt`, and a symbolic link to nothing
    `unavailable`.

    Raises:
        TypeError | ValueError: for a path that is no text, is empty, or has a NUL.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"{_OWNER}: path must be a str or a path, got {show(path)}")
        name = os.fspath(path)
        if not isinstance(name, str) or name == "" or "\0" in name:
            raise ValueError(f"{_OWNER}: path must be text, not empty, and have no NUL")
        self._path = os.path.abspath(name)

    @property
    def kind(self) -> str:
        return "file"

    def read(
        self,
        *,
        on_service_date: OnServiceDate | None = None,  # noqa: ARG002 - a file system has no date.
    ) -> StoredRing | None:
        """The document; None when there is no such file.

        Raises:
            RingStoreError: for everything else.
        """
        try:
            data = self._bytes()
        except OSError as error:
            failure = _failure(error)
        else:
            if data is None:
                return None
            revision = base64url.encode(hashlib.sha256(data).digest())
            return StoredRing(document_text(data, "the file"), revision)
        raise failure

    def _bytes(self) -> bytes | None:
        try:
            # Without O_NONBLOCK (Windows has none) opening a pipe waits for its writer for ever.
            flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
            handle = os.open(self._path, flags)
        except FileNotFoundError:
            handle = -1
        if handle == -1:
            self._prove_absent()
            return None
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise RingStoreError("corrupt", "not a regular file")
            with os.fdopen(handle, "rb", closefd=False) as file:
                return file.read(MAX_DOCUMENT_BYTES + 1)
        finally:
            os.close(handle)

    def _prove_absent(self) -> None:
        if not os.path.isdir(os.path.dirname(self._path)):
            raise RingStoreError("unavailable", "the directory does not exist")
        if os.path.islink(self._path):
            raise RingStoreError("unavailable", "the symbolic link leads nowhere")


def _failure(error: OSError) -> RingStoreError:
    """The system's text names paths; its code does not."""
    code = errno.errorcode.get(error.errno or 0, "unknown")
    if code in ("EACCES", "EPERM"):
        return RingStoreError("denied", f"the file system refused ({code})")
    return RingStoreError("unavailable", f"the file system failed ({code})")
