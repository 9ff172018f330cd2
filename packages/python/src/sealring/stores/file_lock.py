"""The lock of a ring file: the same as in @sealring/core, so that processes of both languages
respect it.

It is a directory with one file per contender. Each makes its own file first and then checks the
others, so at least one of two sees the other and withdraws. A contender counts as dead after 10 s,
or, on this machine, as soon as its process has ended. It also counts as dead if it is dated more
than 10 s after a file that is created later: its clock was wrong. Names are unique, so removing the
file of a dead contender never removes the file of a live one."""

import hashlib
import os
import re
import secrets
import socket
import time
from contextlib import suppress
from typing import NamedTuple

from .. import base64url
from ..canonical_json import canonical_json

LOCK_USABLE_MS = 5_000
"""Age of a lock, in milliseconds, from which its holder must no longer change what the lock
guards."""

# Age from which a contender counts as dead even if it is running, because a suspended process must
# not block the others. A contender whose date is further than this in the future was dated by a
# wrong clock, and is dead, too.
_DEAD_MS = 10_000
_NAME = re.compile(r"([A-Za-z0-9_-]{16})\.([0-9]{1,10})\.([0-9]{1,20})\.[A-Za-z0-9_-]{12}")
_UNKNOWN = "0"


class FileLock:
    """A lock that is held."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._wall_ms, self._steady_ms = _now()

    def age_ms(self) -> float:
        """How long the lock has been held, by the clock that has advanced further, because a
        monotonic clock stops while the machine is suspended. A wall clock that was set back counts
        in the same way as one that was set forward: to the others, the lock seems to be from the
        future."""
        wall_ms, steady_ms = _now()
        return max(abs(wall_ms - self._wall_ms), steady_ms - self._steady_ms)

    def release(self) -> None:
        remove_if_present(self._path)


class _Contender(NamedTuple):
    machine: str
    pid: int
    start: str


def try_file_lock(directory: str) -> FileLock | None:
    """Tries once to become the only holder of the lock, across threads, processes and machines.
    Returns None when another contender holds it or tries at the same moment: wait for a random time
    and try again. An OSError is raised unchanged."""
    with suppress(FileExistsError):
        os.mkdir(directory, 0o700)
    machine, start = _who_am_i()
    # This check avoids creating a file while another contender holds the lock. The time of the file
    # system's clock, which ages need, is not known yet. Only a date that is read here can be from
    # the future: a contender that comes later is dated later.
    before: dict[str, float] = {}
    if _is_any_alive(directory, os.listdir(directory), machine, before, None):
        return None
    own = f"{machine}.{os.getpid()}.{start}.{secrets.token_urlsafe(9)}"
    lock = FileLock(os.path.join(directory, own))
    is_alone = False
    # The time of the file system's clock, which also dates the files of other machines.
    now_ms = _create(os.path.join(directory, own))
    try:
        others = [name for name in os.listdir(directory) if name != own]
        is_alone = not _is_any_alive(directory, others, machine, before, now_ms)
    finally:
        if not is_alone:
            lock.release()
    return lock if is_alone else None


def remove_if_present(path: str) -> None:
    """Removes a file; a file that is already gone is not an error."""
    with suppress(FileNotFoundError):
        os.unlink(path)


def _now() -> tuple[float, float]:
    return time.time() * 1_000, time.monotonic() * 1_000


def _create(path: str) -> float:
    """Creates the file, and returns its modification time. Leaves no file behind if that fails."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        try:
            return os.fstat(handle).st_mtime_ns / 1e6
        finally:
            os.close(handle)
    except OSError:
        remove_if_present(path)
        raise


def _is_any_alive(
    directory: str,
    names: list[str],
    machine: str,
    before: dict[str, float],
    now_ms: float | None,
) -> bool:
    """Whether any contender is alive. Removes the files of dead ones. `now_ms` is the time by the
    file system's clock, if this contender knows it; until then, the dates of the others are added
    to `before`."""
    is_alive = False
    for name in names:
        path = os.path.join(directory, name)
        contender = _contender_of(name)
        is_here = contender is not None and contender.machine == machine
        is_gone = contender is not None and is_here and not _is_running(contender)
        dated_ms = None if is_gone else _date_of(path)
        if now_ms is None:
            if is_gone:
                remove_if_present(path)
            elif dated_ms is not None:
                before[name] = dated_ms
                is_near = abs(time.time() * 1_000 - dated_ms) <= _DEAD_MS
                is_alive = is_alive or (is_here and is_near)
        elif (
            dated_ms is None
            or now_ms - dated_ms > _DEAD_MS
            or before.get(name, now_ms) - now_ms > _DEAD_MS
        ):
            remove_if_present(path)
        else:
            is_alive = True
    return is_alive


def _contender_of(name: str) -> _Contender | None:
    """The contender that a file name describes; None for a name that another version of this code
    may have written. Its age then decides whether it still counts."""
    found = _NAME.fullmatch(name)
    return None if found is None else _Contender(found[1], int(found[2]), found[3])


def _date_of(path: str) -> float | None:
    """The modification time of a file, in milliseconds; None if it is gone."""
    try:
        return os.stat(path).st_mtime_ns / 1e6
    except FileNotFoundError:
        return None


def _is_running(contender: _Contender) -> bool:
    try:
        os.kill(contender.pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        # The process runs as another user. /proc can hide the processes of other users; if it does,
        # the result of the signal decides.
        pass
    found = _process_stat(str(contender.pid))
    if found is None or contender.start == _UNKNOWN:
        return True
    start, has_ended = found
    return start == contender.start and not has_ended


def _who_am_i() -> tuple[str, str]:
    """A hash for the namespace in which the id of this process is valid, and the start time of the
    process. Both are determined at each call, because a process that is restored from a snapshot
    has another identity."""
    namespace = boot = ""
    with suppress(OSError):
        namespace = os.readlink("/proc/self/ns/pid")
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="latin-1") as file:
        boot = file.read()
    names = canonical_json([socket.gethostname(), namespace, boot])
    machine = base64url.encode(hashlib.sha256(names.encode("utf-8")).digest()[:12])
    own = _process_stat("self")
    return machine, _UNKNOWN if own is None else own[0]


def _process_stat(pid: str) -> tuple[str, bool] | None:
    """The start time in clock ticks since boot, and whether the process has ended and only its
    entry in the process table is left (proc(5): state Z or X, field 22)."""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
            text = file.read()
    except OSError:
        return None
    # The second field is the program's name in parentheses; the name itself can contain spaces and
    # parentheses.
    fields = text[text.rindex(")") + 2 :].split(" ")
    return fields[19], fields[0] in ("Z", "X")
