"""A ring in one file, as `fileRing` of @sealring/core keeps it."""

import errno
import hashlib
import os
import stat

from ..errors import RingStoreError
from ..key_wrapper import OnServiceDate
from ..options import show
from ..ring.document import MAX_DOCUMENT_BYTES
from ..ring.store import StoredRing, document_text

_OWNER = "FileRing"


class FileRing:
    """Reads a ring from one file, which writers replace whole.

    The directory must exist: a volume that is not mounted must not look like a ring that is not
    there yet. For the same reason an empty file is `corrupt`, and a symbolic link to nothing
    `unavailable`.

    TypeError or ValueError for a path that is no text, is empty, or has a NUL.
    """

    kind = "file"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"{_OWNER}: path must be a str or a path, got {show(path)}")
        name = os.fspath(path)
        if not isinstance(name, str) or name == "" or "\0" in name:
            raise ValueError(f"{_OWNER}: path must be text, not empty, and have no NUL")
        self._path = os.path.abspath(name)

    def read(
        self,
        *,
        on_service_date: OnServiceDate | None = None,  # noqa: ARG002 - a file system has no date.
    ) -> StoredRing | None:
        """The document; None when there is no such file. RingStoreError for everything else."""
        try:
            with open(self._path, "rb", opener=_open_at_once) as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise OSError(errno.EISDIR, "")
                data = file.read(MAX_DOCUMENT_BYTES + 1)
        except OSError as error:
            failure = self._failure(error)
        else:
            return StoredRing(document_text(data, "the file"), hashlib.sha256(data).hexdigest())
        if failure is not None:
            raise failure
        return None

    def _failure(self, error: OSError) -> RingStoreError | None:
        """None for a file that is known to be absent. The system's text names paths; its code does
        not."""
        code = errno.errorcode.get(error.errno or 0, "unknown")
        if code == "ENOENT":
            if not os.path.isdir(os.path.dirname(self._path)):
                return RingStoreError("unavailable", "the directory does not exist")
            is_dangling = os.path.islink(self._path)
            return RingStoreError("unavailable", "the link leads nowhere") if is_dangling else None
        if code == "EISDIR":
            return RingStoreError("corrupt", "not a regular file")
        if code in ("EACCES", "EPERM"):
            return RingStoreError("denied", f"the file system refused ({code})")
        return RingStoreError("unavailable", f"the file system failed ({code})")


def _open_at_once(path: str, flags: int) -> int:
    # Without O_NONBLOCK (Windows has none) opening a pipe waits for its writer for ever.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
