"""A member that creates, rotates, revokes and repairs, on real services and real keys."""

import logging
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from ring_maker import Fleet, ms_until_next, run_pass, wait_until

from sealring import (
    FileRing,
    InvalidRequestState,
    KeyWrapperError,
    KmsCodec,
    LocalKeyWrapper,
    RingConflictError,
    RingPolicy,
    RingStoreError,
    SealUnavailableError,
)


def member_of(path: Path, wrapper: LocalKeyWrapper, **more: object) -> KmsCodec:
    options: dict[str, object] = {
        "key_wrapper": wrapper,
        "ring": FileRing(path),
        "create": "now",
        **more,
    }
    return KmsCodec(**options)  # type: ignore[arg-type]


def next_pass(codec: KmsCodec, fleet: Fleet) -> None:
    """The next pass, a moment early: one that is due begins by itself."""
    turns = codec._keeper.turns
    turns.background(lambda: None).result(10)
    fleet.clock.advance(max(0, ms_until_next(codec) - 1) / 1_000)
    turns.background(lambda: run_pass(codec)).result(10)


@pytest.fixture
def wrapper() -> LocalKeyWrapper:
    return LocalKeyWrapper(master_key=os.urandom(32))


def test_a_member_creates_the_ring_and_another_one_opens_its_tokens(
    tmp_path: Path, wrapper: LocalKeyWrapper
) -> None:
    with member_of(tmp_path / "r", wrapper) as first:
        token = first.seal(b"x")
        with member_of(tmp_path / "r", wrapper) as second:
            assert second.unseal(token) == b"x"
            assert first.health().sealing_key == second.health().sealing_key
            assert len(second.health().keys) == 1


def test_members_that_start_at_once_create_one_key(
    tmp_path: Path, wrapper: LocalKeyWrapper
) -> None:
    members = [member_of(tmp_path / "r", wrapper) for _ in range(8)]
    threads = [threading.Thread(target=one.start) for one in members]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    keys = {tuple(key.id for key in one.health().keys) for one in members}
    for one in members:
        one.close()
    assert len(keys) == 1
    assert len(next(iter(keys))) == 1


def test_create_never_refuses_an_empty_store(tmp_path: Path, wrapper: LocalKeyWrapper) -> None:
    policy = RingPolicy(start_timeout_seconds=1)
    with pytest.raises(RingStoreError, match="no ring yet") as caught:
        member_of(tmp_path / "r", wrapper, create="never", policy=policy).start()
    assert caught.value.kind == "absent"
    assert not (tmp_path / "r").exists()


def test_an_asked_rotation_publishes_a_key_that_seals_after_propagation(fleet: Fleet) -> None:
    with fleet.member() as codec:
        codec.rotate()
        assert [key.state for key in codec.health().keys] == ["active", "propagating"]
        for _ in range(3):
            fleet.clock.advance(1_501)
            run_pass(codec, reads=True)
        assert codec.seal(b"x")[4:16] == codec.health().keys[1].id
        codec.rotate(emergency=True)
        assert len(codec.health().keys) == 3


def test_a_due_rotation_is_made_in_two_turns(fleet: Fleet) -> None:
    with fleet.member() as codec:
        fleet.clock.advance(86_400 - 4_500)
        run_pass(codec, reads=True)
        codec._keeper._rotate_if_due(is_last=False)
        assert len(codec.health().keys) == 1
        codec._keeper._rotate_if_due(is_last=True)
        assert [key.state for key in codec.health().keys] == ["active", "propagating"]


def test_a_revoked_key_opens_nothing_and_has_a_successor(fleet: Fleet) -> None:
    with fleet.member() as codec, fleet.reader() as reader:
        token = codec.seal(b"x")
        codec.revoke(token[4:16])
        with pytest.raises(InvalidRequestState):
            codec.unseal(token)
        assert codec.unseal(codec.seal(b"y")) == b"y"
        reader.refresh()
        with pytest.raises(InvalidRequestState):
            reader.unseal(token)
        assert reader.unseal(codec.seal(b"y")) == b"y"
        with pytest.raises(ValueError, match="no key"):
            codec.revoke("A" * 12)


def test_a_revocation_goes_through_while_the_kms_is_away(fleet: Fleet) -> None:
    with fleet.member() as codec:
        fleet.kms.refuse("denied")
        codec.revoke(fleet.first.id)
        with pytest.raises(SealUnavailableError):
            codec.seal(b"x")
        assert "no-sealing-key" in [problem.kind for problem in codec.health().problems]
        fleet.kms.failure = None
        run_pass(codec, reads=True)
        assert codec.unseal(codec.seal(b"x")) == b"x"


def test_everything_before_a_time_is_revoked_but_not_the_successor(fleet: Fleet) -> None:
    with fleet.member() as codec:
        codec.rotate()
        health = codec.health()
        codec.revoke_all_before(health.keys[1].created)
        states = sorted(key.state for key in codec.health().keys)
        assert states == ["active", "revoked", "revoked"]


def test_a_store_that_lost_the_ring_is_repaired_after_a_wait(fleet: Fleet) -> None:
    with fleet.member() as codec:
        codec.rotate()
        document, fleet.store.text = fleet.store.text, None
        run_pass(codec, reads=True)
        assert fleet.store.text is None
        assert codec.health().status == "degraded"
        assert ms_until_next(codec) <= 5_000
        fleet.clock.advance(5)
        run_pass(codec, reads=True)
        # The keeper's own thread may be the one that writes.
        wait_until(lambda: fleet.store.text == document)
        run_pass(codec, reads=True)
        wait_until(lambda: codec.health().status == "ok")


def test_a_wrap_that_was_missing_is_added_later(fleet: Fleet) -> None:
    second = LocalKeyWrapper(master_key=os.urandom(32))
    with fleet.member(key_wrapper=[fleet.kms, second]) as codec:
        codec.refresh()
        (key,) = codec._view.snapshot.keys
        assert {wrap.key_id for wrap in key.wraps} == {fleet.wrapper.key_id, second.key_id}
    with fleet.reader(key_wrapper=second) as codec:
        assert codec.seal(b"x")


def test_a_reader_writes_nothing(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        for call in (codec.rotate, lambda: codec.revoke(fleet.first.id)):
            with pytest.raises(RingStoreError) as caught:
                call()
            assert caught.value.kind == "read-only"
        fleet.store.text = None
        fleet.clock.advance(20)
        run_pass(codec, reads=True)
        assert (fleet.store.writes, fleet.store.text) == (0, None)


def test_what_a_member_cannot_do_is_an_error_at_once(fleet: Fleet) -> None:
    class Reading:
        kind = "test"
        read = fleet.store.read

    with pytest.raises(TypeError, match="write"):
        fleet.member(ring=Reading())
    with pytest.raises(ValueError, match="wrap_quorum"):
        fleet.member(wrap_quorum=2)
    with pytest.raises(ValueError, match="role"):
        fleet.reader(role="leader")


def test_a_failed_rotation_is_raised_without_the_frames_of_the_thread(fleet: Fleet) -> None:
    with fleet.member() as codec:
        fleet.kms.refuse("denied")
        with pytest.raises(KeyWrapperError) as caught:
            codec.rotate()
        assert all("wraps.py" not in str(entry.path) for entry in caught.traceback)


def test_what_a_member_writes_is_logged_by_hashed_ids(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "sealring")
    with fleet.member() as codec:
        codec.rotate()
        codec.revoke(fleet.first.id)
        ids = [key.id for key in codec.health().keys]
    assert "published a key" in caplog.text
    assert "revoked a key" in caplog.text
    assert not any(key_id in caplog.text for key_id in ids)


def test_prepare_learns_a_key_that_a_token_names(fleet: Fleet) -> None:
    with fleet.member() as codec, fleet.member() as other:
        other.revoke(fleet.first.id)
        token = other.seal(b"x")
        codec.prepare(token)
        assert codec.unseal(token) == b"x"


def test_f32_one_of_many_writers_of_a_file_wins_each_round(tmp_path: Path) -> None:
    ring, wins = FileRing(tmp_path / "r"), []

    def write(expected: str | None, text: str) -> None:
        with suppress(RingConflictError):
            wins.append(ring.write(text, expected=expected))

    for round_ in range(5):
        stored = ring.read()
        expected = None if stored is None else stored.revision
        threads = [
            threading.Thread(target=write, args=(expected, f"{round_}/{i}")) for i in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(wins) == round_ + 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r", "r.lock"]
    assert list((tmp_path / "r.lock").iterdir()) == []


def test_junk_in_a_ring_file_is_written_over_by_who_saw_it(tmp_path: Path) -> None:
    (tmp_path / "r").write_bytes(b"")
    ring = FileRing(tmp_path / "r")
    with pytest.raises(RingStoreError) as caught:
        ring.read()
    assert caught.value.kind == "corrupt"
    ring.write("x", expected=caught.value.revision)
    stored = ring.read()
    assert stored is not None
    assert stored.document == "x"


def test_importing_the_package_loads_no_sdk_of_anybody() -> None:
    program = (
        "import sys, sealring\n"
        "loaded = {name.split('.')[0] for name in sys.modules}\n"
        "print(sorted(loaded & {'mcp', 'mcp_types', 'pydantic', 'boto3', 'botocore', 'redis'}))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stdout == "[]\n"


def test_create_after_is_waited_for_unless_told_otherwise() -> None:
    assert RingPolicy().create_after(at_once=False) == 360
    assert RingPolicy().create_after(at_once=True) == 0
    assert RingPolicy(create_after_seconds=5).create_after(at_once=True) == 5


def test_an_overdue_repair_waits_for_the_backoff_while_the_store_does_not_answer(
    fleet: Fleet,
) -> None:
    with fleet.member() as codec:
        fleet.store.text = None
        with pytest.raises(RingStoreError):
            codec.refresh()
        fleet.break_store()
        reads, until = fleet.store.reads, fleet.clock.wall + 3_600_000
        while fleet.clock.wall < until:
            next_pass(codec, fleet)
        # A minute apart at most, half a minute on average.
        assert fleet.store.reads - reads < 200
        fleet.store.failure = None
        for _ in range(2):
            next_pass(codec, fleet)
        assert fleet.store.text is not None
        assert fleet.first.id in fleet.store.text


def test_a_ring_without_a_key_that_seals_is_not_written_while_the_kms_refuses(fleet: Fleet) -> None:
    with fleet.member() as codec:
        fleet.kms.refuse("denied")
        codec.revoke(fleet.first.id)
        next_pass(codec, fleet)
        writes = fleet.store.writes
        for _ in range(10):
            next_pass(codec, fleet)
        assert fleet.store.writes == writes
        fleet.kms.failure = None
        next_pass(codec, fleet)
        assert codec.health().can_seal
