"""A ring in one file, as `fileRing` of @sealring/core keeps it."""

import errno
import hashlib
import os
import random
import secrets
import stat
import time
from contextlib import suppress

from ..errors import RingConflictError, RingStoreError
from ..key_wrapper import OnServiceDate
from ..options import show
from ..ring.document import MAX_DOCUMENT_BYTES
from ..ring.store import StoredRing, check_write, document_text
from .file_lock import LOCK_USABLE_MS, FileLock, remove_if_present, try_file_lock

_OWNER = "FileRing"
_WRITE_DEADLINE_SECONDS = 10.0
_FIRST_BACKOFF_SECONDS = 0.004
_LONGEST_BACKOFF_SECONDS = 0.25


class FileRing:
    """A ring in one file, for the processes of one machine, or of several that share a file system
    with atomic rename, exclusive create and directory listings that are never out of date. If the
    machines date their files themselves, their clocks must agree within 5 s. The file is replaced
    as a whole, so a reader never sees half a document. Once a write has returned, the document is
    on the disk. Next to the file are a directory `<path>.lock` and, during a write, a temporary
    file. A write that cannot get the lock within 10 s changes nothing and is `unavailable`.

    A write through a symbolic link is refused as `read-only`, because the rename would replace the
    link. The directory must exist, because a volume that is not mounted must not look like a ring
    that does not exist yet. For the same reason, an empty file is `corrupt`, and a symbolic link to
    nothing is `unavailable`.

    Raises TypeError or ValueError for a path that is not text, is empty, or contains a NUL.
    """

    kind = "file"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"{_OWNER}: path must be a str or a path, got {show(path)}")
        name = os.fspath(path)
        if not isinstance(name, str) or name == "" or "\0" in name:
            raise ValueError(f"{_OWNER}: path must be non-empty text without a NUL")
        self._path = os.path.abspath(name)
        self.location = self._path

    def read(
        self,
        *,
        on_service_date: OnServiceDate | None = None,  # noqa: ARG002 - a file system has no date.
    ) -> StoredRing | None:
        """The document; None if the file does not exist. Raises RingStoreError for every other
        failure."""
        answer = self._read()
        if isinstance(answer, RingStoreError):
            raise answer
        return answer

    def write(
        self,
        document: str,
        *,
        expected: str | None,
        on_service_date: OnServiceDate | None = None,  # noqa: ARG002 - a file system has no date.
    ) -> str:
        """Replaces the file, if its revision is `expected`. Raises RingConflictError or
        RingStoreError."""
        check_write(_OWNER, document, expected)
        until = time.monotonic() + _WRITE_DEADLINE_SECONDS
        if os.path.islink(self._path):
            detail = "the path is a symbolic link: name the file itself"
            raise RingStoreError("read-only", detail)
        attempt = 0
        while True:
            # The revision is also checked before the lock, so that a writer that has already lost
            # does not wait for it.
            self._expect(expected)
            answer = self._try_to_replace(document, expected)
            if isinstance(answer, RingStoreError):
                raise answer
            if answer is not None:
                return answer
            left = until - time.monotonic()
            if left <= 0:
                raise RingStoreError("unavailable", "other writers held the lock for 10 s")
            longest = min(
                _LONGEST_BACKOFF_SECONDS, _FIRST_BACKOFF_SECONDS * 2.0 ** min(attempt, 16)
            )
            time.sleep(min(left, random.random() * longest))
            attempt += 1

    def _try_to_replace(self, document: str, expected: str | None) -> str | RingStoreError | None:
        """The new revision; None if another process holds the lock."""
        try:
            lock = try_file_lock(f"{self._path}.lock")
            if lock is None:
                return None
            try:
                return self._replace(document, expected, lock)
            finally:
                lock.release()
        except OSError as error:
            return _refusal(error)

    def _replace(self, document: str, expected: str | None, lock: FileLock) -> str:
        """The steps under the lock. Before the rename, nothing has changed; after the rename,
        nothing can be undone."""
        directory, name = os.path.split(self._path)
        # Files left behind by processes that were killed. If such a process was only suspended, its
        # rename now fails, as it must.
        for other in os.listdir(directory):
            if other.startswith(f"{name}.tmp-"):
                remove_if_present(os.path.join(directory, other))
        self._expect(expected)
        data = document.encode("utf-8")
        temporary = f"{self._path}.tmp-{secrets.token_urlsafe(9)}"
        try:
            _write_durably(temporary, data)
            if lock.age_ms() >= LOCK_USABLE_MS:
                raise RingStoreError("unavailable", "the file system is too slow")
            os.rename(temporary, self._path)
        except BaseException:
            with suppress(OSError):
                remove_if_present(temporary)
            raise
        _sync_directory(directory)
        return _revision_of(data)

    def _expect(self, expected: str | None) -> None:
        answer = self._read()
        # A file that is not a document can be replaced by a writer that has read exactly that file.
        if isinstance(answer, RingStoreError) and answer.revision is None:
            raise answer
        if (None if answer is None else answer.revision) != expected:
            raise RingConflictError

    def _read(self) -> StoredRing | RingStoreError | None:
        try:
            with open(self._path, "rb", opener=_open_at_once) as file:
                facts = os.fstat(file.fileno())
                if not stat.S_ISREG(facts.st_mode):
                    raise OSError(errno.EISDIR, "")
                data = file.read(MAX_DOCUMENT_BYTES + 1)
        except OSError as error:
            return self._failure(error)
        version = f"{facts.st_ino}/{facts.st_size}/{facts.st_mtime_ns}"
        try:
            text = document_text(data, "the file", _revision_of(version.encode("ascii")))
        except RingStoreError as error:
            return error
        return StoredRing(text, _revision_of(data))

    def _failure(self, error: OSError) -> RingStoreError | None:
        """The failure; None for a file that is known to be absent. Only the system's error code is
        shown, because its text names paths."""
        code = errno.errorcode.get(error.errno or 0, "unknown")
        if code == "ENOENT":
            if not os.path.isdir(os.path.dirname(self._path)):
                return RingStoreError("unavailable", "the directory does not exist", code="ENOENT")
            if os.path.islink(self._path):
                return RingStoreError("unavailable", "the symbolic link points to nothing")
            return None
        return _refusal(error)


def _refusal(error: OSError) -> RingStoreError:
    code = errno.errorcode.get(error.errno or 0, "unknown")
    if code == "EISDIR":
        return RingStoreError("corrupt", "not a regular file")
    if code in ("EACCES", "EPERM"):
        return RingStoreError("denied", f"the file system denied access ({code})")
    if code == "ENOTDIR":
        detail = "a part of the path is a file, not a directory (ENOTDIR)"
        return RingStoreError("unavailable", detail, code=code)
    if code == "EROFS":
        return RingStoreError("read-only", "the file system is mounted read-only")
    return RingStoreError("unavailable", f"the file system failed ({code})")


def _revision_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _write_durably(path: str, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_directory(path: str) -> None:
    """Makes the rename durable (fsync(2)). Windows cannot open a directory and needs no such
    call."""
    if os.name != "nt":
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _open_at_once(path: str, flags: int) -> int:
    # Without O_NONBLOCK, which Windows lacks, `open` of a pipe waits forever for its writer.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
