"""The lock of a ring file, beside files that other processes have left."""

import os
import time
from pathlib import Path

import pytest

from sealring import FileRing, RingStoreError
from sealring.stores import file_lock
from sealring.stores.file_lock import try_file_lock

YEAR = 366 * 86_400
# Of another machine, and of another version of the package.
NAMES = (f"{'a' * 16}.1.1.{'b' * 12}", "foreign")


def leave(path: Path, ahead: float) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"")
    os.utime(path, (time.time() + ahead,) * 2)


@pytest.fixture
def no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("it waits"))


@pytest.mark.usefixtures("no_wait")
def test_a_lock_file_that_a_wrong_clock_dated_a_year_ahead_does_not_delay_a_write(
    tmp_path: Path,
) -> None:
    for name in NAMES:
        leave(tmp_path / "r.lock" / name, YEAR)
    FileRing(tmp_path / "r").write("x", expected=None)
    assert list((tmp_path / "r.lock").iterdir()) == []


@pytest.mark.usefixtures("no_wait")
def test_a_running_holder_from_before_the_clock_was_set_back_does_not_delay_a_write(
    tmp_path: Path,
) -> None:
    held = try_file_lock(str(tmp_path / "r.lock"))
    assert held is not None
    (own,) = (tmp_path / "r.lock").iterdir()
    leave(own, YEAR)
    FileRing(tmp_path / "r").write("x", expected=None)


@pytest.mark.parametrize(
    ("ahead_ms", "is_free"), [(10_000, False), (10_001, True), (-10_000, False), (-10_001, True)]
)
def test_a_lock_file_that_is_more_than_10_s_older_or_newer_than_the_next_one_is_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead_ms: int, is_free: bool
) -> None:
    leave(tmp_path / "foreign", 0)
    os.utime(tmp_path / "foreign", (1_000, 1_000))
    create = file_lock._create
    monkeypatch.setattr(file_lock, "_create", lambda path: create(path) and 1_000_000.0 - ahead_ms)
    assert (try_file_lock(str(tmp_path)) is not None) is is_free


def test_a_lock_file_that_appears_later_is_never_taken_for_one_from_the_future(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed, lists = os.listdir, []

    def listdir(path: str) -> list[str]:
        # This process was stopped before it looked at the others, and another one came meanwhile.
        lists.append(path)
        if len(lists) == 2:
            leave(tmp_path / "foreign", 3_600)
        return listed(path)

    monkeypatch.setattr(os, "listdir", listdir)
    assert try_file_lock(str(tmp_path)) is None
    assert listed(tmp_path) == ["foreign"]


@pytest.mark.parametrize(("set_by", "is_written"), [(-4.9, True), (-5, False), (5, False)])
def test_a_holder_whose_clock_was_set_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, set_by: float, is_written: bool
) -> None:
    ring = FileRing(tmp_path / "r")
    now = [1e12, 0.0]
    monkeypatch.setattr(file_lock, "_now", lambda: tuple(now))

    def fsync(handle: int) -> None:
        now[0] = 1e12 + set_by * 1_000

    monkeypatch.setattr(os, "fsync", fsync)
    if is_written:
        ring.write("x", expected=None)
    else:
        with pytest.raises(RingStoreError, match="too slow"):
            ring.write("x", expected=None)
    assert (tmp_path / "r").exists() is is_written
