"""A member that creates, rotates, revokes and repairs, on real services and real keys."""

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

import pytest
from ring_maker import (
    DAY,
    RING,
    TIMES,
    Fleet,
    Kms,
    MadeKey,
    Store,
    ms_until_next,
    naming,
    run_pass,
    wait_until,
)

from sealring import (
    CodecClosedError,
    FileRing,
    InvalidRequestState,
    KeyWrapperError,
    KmsCodec,
    LocalKeyWrapper,
    RingConflictError,
    RingPolicy,
    RingStoreError,
    SealUnavailableError,
    WrappedKey,
    base64url,
)
from sealring.held_key import HeldKey, KeyOverwrittenError
from sealring.ring.document import RingDocument, parse_document


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


def test_a_member_creates_the_ring_and_another_one_unseals_its_tokens(
    tmp_path: Path, wrapper: LocalKeyWrapper
) -> None:
    with member_of(tmp_path / "r", wrapper) as first:
        token = first.seal(b"x")
        with member_of(tmp_path / "r", wrapper) as second:
            assert second.unseal(token) == b"x"
            assert first.health().sealing_key == second.health().sealing_key
            assert len(second.health().keys) == 1


def test_members_that_start_at_the_same_time_create_one_key(
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


def test_a_requested_rotation_publishes_a_key_that_seals_after_propagation(fleet: Fleet) -> None:
    with fleet.member() as codec:
        codec.rotate()
        assert [key.state for key in codec.health().keys] == ["active", "propagating"]
        for _ in range(3):
            fleet.clock.advance(1_501)
            run_pass(codec, reads=True)
        assert codec.seal(b"x")[4:16] == codec.health().keys[1].id
        codec.rotate(emergency=True)
        assert len(codec.health().keys) == 3


@pytest.mark.parametrize(
    ("seconds", "cap", "emergency", "is_published"),
    [(30, 60, True, True), (30.5, 60, True, False), (1.5, 3, True, True), (2, 3, True, False)]
    + [(2, 3, False, True)],
)
def test_a_key_that_a_slow_kms_delayed_is_published_only_if_the_others_can_still_read_it_in_time(
    fleet: Fleet, seconds: float, cap: float, emergency: bool, is_published: bool
) -> None:
    class Slow(Kms):
        def wrap(self, *args: object, **more: object) -> WrappedKey:
            fleet.clock.advance(seconds)
            return super().wrap(*args, **more)  # type: ignore[arg-type]

        def unwrap(self, *args: object, **more: object) -> bytearray:
            fleet.clock.advance(seconds)
            return super().unwrap(*args, **more)  # type: ignore[arg-type]

    policy = RingPolicy(backoff_cap_seconds=cap, kms_timeout_seconds=100)
    with fleet.member(key_wrapper=Slow(fleet.wrapper), policy=policy) as codec:
        with suppress(RingStoreError):
            codec.rotate(emergency=emergency)
        assert len(codec.health().keys) == 1 + is_published


def test_a_due_rotation_is_made_in_two_turns(fleet: Fleet) -> None:
    with fleet.member() as codec:
        fleet.clock.advance(86_400 - 4_500)
        run_pass(codec, reads=True)
        codec._keeper._rotate_if_due(is_last=False)
        assert len(codec.health().keys) == 1
        codec._keeper._rotate_if_due(is_last=True)
        assert [key.state for key in codec.health().keys] == ["active", "propagating"]


def test_a_revoked_key_unseals_nothing_and_has_a_successor(fleet: Fleet) -> None:
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


def test_a_revocation_succeeds_while_the_kms_is_unavailable(fleet: Fleet) -> None:
    with fleet.member() as codec:
        fleet.kms.refuse("denied")
        codec.revoke(fleet.first.id)
        with pytest.raises(SealUnavailableError):
            codec.seal(b"x")
        assert "no-sealing-key" in [problem.kind for problem in codec.health().problems]
        fleet.kms.failure = None
        run_pass(codec, reads=True)
        assert codec.unseal(codec.seal(b"x")) == b"x"


def unreadable(key: MadeKey, fleet: Fleet) -> MadeKey:
    """A key with the wraps of another one."""
    return key.edited(wraps=fleet.first.entry["wraps"])


def test_a_successor_revokes_keys_that_are_not_unwrapped_and_newer_than_all_known_ones(
    fleet: Fleet,
) -> None:
    second, third = fleet.key(4_500), fleet.key(9_000)
    fleet.publish([fleet.first, second, third])
    with fleet.reader() as reader:
        fleet.clock.advance(2)
        fleet.publish([fleet.first, unreadable(second, fleet), unreadable(third, fleet)])
        with fleet.member() as codec:
            for key in (third, second):
                codec.revoke(key.id)
            reader.refresh()
            for one in (codec, reader):
                shown = {key.id: key.state for key in one.health().keys}
                assert (shown[second.id], shown[third.id]) == ("revoked", "revoked")
                assert codec.health().sealing_key not in {fleet.first.id, second.id, third.id}


def test_a_new_key_is_newer_than_an_entry_that_is_not_unwrapped(fleet: Fleet) -> None:
    second = fleet.key(4_500)
    fleet.publish([fleet.first, unreadable(second, fleet)])
    with fleet.member() as codec:
        codec.refresh()
        codec.rotate()
        newest = max(codec.health().keys, key=lambda key: key.created)
        assert newest.id not in {fleet.first.id, second.id}
        assert newest.created.timestamp() * 1_000 == fleet.created + 1_000


@pytest.mark.parametrize("reason", ["the KMS fails", "the key is newer than a successor"])
def test_nothing_is_written_if_no_key_can_certify_a_revocation(fleet: Fleet, reason: str) -> None:
    kms_fails = reason == "the KMS fails"
    ahead_ms = 0 if kms_fails else 50_000
    second = fleet.key(4_500, created_ms=fleet.clock.wall + ahead_ms)
    fleet.publish([fleet.first, unreadable(second, fleet)])
    with fleet.member() as codec:
        codec._calls.pause = fleet.clock.advance  # type: ignore[method-assign]
        if kms_fails:
            fleet.kms.refuse("unavailable")
        text, generate = fleet.store.text, codec._keeper._wraps._generate
        made: list[object] = []
        codec._keeper._wraps._generate = lambda *args: made.append(args) or generate(*args)  # type: ignore
        with pytest.raises(RingStoreError, match=f"key {second.id} could not be unwrapped yet"):
            codec.revoke(second.id)
        assert fleet.store.text == text
        # A successor that cannot certify the revocation is not made.
        assert bool(made) is kms_fails
        fleet.kms.failure = None
        fleet.clock.advance(60)
        codec.revoke(second.id)
        assert {key.id: key.state for key in codec.health().keys}[second.id] == "revoked"


def test_a_key_that_nothing_certifies_does_not_prevent_the_other_revocations(fleet: Fleet) -> None:
    second = fleet.key(4_500)
    fleet.publish([fleet.first, unreadable(second, fleet)])
    with fleet.member() as codec:
        codec._calls.pause = fleet.clock.advance  # type: ignore[method-assign]
        fleet.kms.refuse("unavailable")
        now = datetime.fromtimestamp(fleet.clock.wall / 1_000, tz=timezone.utc)
        with pytest.raises(RingStoreError, match=second.id):
            codec.revoke_all_before(now)
        shown = {key.id: key.state for key in codec.health().keys}
        assert shown == {fleet.first.id: "revoked", second.id: "propagating"}


def test_a_key_of_a_ring_that_was_left_is_revoked_here_and_the_others_must_be_restarted(
    fleet: Fleet,
) -> None:
    old = fleet.key(-400, created_ms=fleet.clock.wall - 3_600_000, by=())
    fleet.publish([naming(fleet.first, ())])
    with fleet.member() as codec:
        token = codec.seal(b"young")
        fleet.publish([old])
        codec.refresh()
        assert codec.unseal(token) == b"young"
        writes = fleet.store.writes
        with pytest.raises(RingStoreError) as caught:
            codec.revoke(fleet.first.id)
        assert caught.value.kind == "unavailable"
        assert caught.value.detail == (
            f"key {fleet.first.id} belongs to a ring that this member has left: it was revoked "
            "only here, so restart the other members"
        )
        with pytest.raises(InvalidRequestState):
            codec.unseal(token)
        (left,) = [key for key in codec._view.snapshot.keys if key.id == fleet.first.id]
        assert (left.is_left, left.held) == (True, None)
        codec.revoke(fleet.first.id)
        assert fleet.store.writes == writes
        assert codec.seal(b"x")[4:16] == old.id


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


def test_no_copy_of_a_data_key_is_left_after_close(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies: list[bytearray] = []
    copy_data_key = HeldKey.copy_data_key

    def copied(held: HeldKey) -> bytearray:
        copies.append(copy_data_key(held))
        return copies[-1]

    class Throttled(Kms):
        provider = "other"

        def wrap(self, data_key: bytearray, *_: object, **more: object) -> WrappedKey:
            copies.append(data_key)
            raise KeyWrapperError("throttled", "other", operation="wrap")

    monkeypatch.setattr(HeldKey, "copy_data_key", copied)
    with fleet.member(key_wrapper=[fleet.kms, Throttled(fleet.wrapper)], wrap_quorum=1) as codec:

        def closed(_: float) -> None:
            raise CodecClosedError

        # Closing the codec ends the wait before a retry.
        codec._calls.pause = closed  # type: ignore[method-assign]
        with pytest.raises(CodecClosedError):
            codec.refresh()
        assert [bytes(one) for one in copies] == [bytes(32)] * 2


def test_a_key_that_a_kms_check_returned_is_overwritten_although_the_codec_closes(
    fleet: Fleet,
) -> None:
    returned: list[bytearray] = []
    with fleet.member() as codec:
        unwrap = fleet.kms.unwrap

        def closing(*args: object, **more: object) -> bytearray:
            returned.append(unwrap(*args, **more))  # type: ignore[arg-type]
            codec._view.close()
            return returned[-1]

        fleet.clock.advance(1_000)
        fleet.kms.unwrap = closing  # type: ignore[method-assign]
        with pytest.raises((CodecClosedError, KeyOverwrittenError)):
            codec._keeper.refresh().result(10)
    assert [bytes(one) for one in returned] == [bytes(32)]


def test_a_new_key_that_no_key_can_vouch_for_is_overwritten(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[HeldKey] = []
    create = HeldKey.__init__

    def created(held: HeldKey, data_key: bytearray, ring: str) -> None:
        create(held, data_key, ring)
        made.append(held)

    def fail(*_: object) -> None:
        # As if the codec were closed before the vouchers are made.
        raise KeyOverwrittenError("key")

    with fleet.member() as codec:
        monkeypatch.setattr(HeldKey, "__init__", created)
        monkeypatch.setattr("sealring.ring.writer.vouchers_by", fail)
        with pytest.raises(KeyOverwrittenError):
            codec.rotate()
        assert [held.is_overwritten for held in made] == [True]


def test_a_start_that_is_closed_meanwhile_leaves_no_subscription(fleet: Fleet) -> None:
    entered, may_go_on = threading.Event(), threading.Event()
    subscriptions: list[Callable[[], None]] = []

    class Watched(Store):
        def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
            entered.set()
            assert may_go_on.wait(10)
            subscriptions.append(changed)
            return lambda: subscriptions.remove(changed)

    store = Watched()
    store.text = fleet.store.text
    codec = fleet.member(ring=store)
    failures: list[Exception] = []

    def start() -> None:
        try:
            codec.start()
        except CodecClosedError as error:
            failures.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    assert entered.wait(10)
    codec.close()
    may_go_on.set()
    thread.join(10)
    assert len(failures) == 1
    assert subscriptions == []
    assert not codec._thread.is_alive()


def test_close_ends_the_thread_although_the_end_of_a_subscription_fails(fleet: Fleet) -> None:
    class Watched(Store):
        def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
            def fail() -> None:
                raise ValueError("the test says so")

            return fail

    store = Watched()
    store.text = fleet.store.text
    codec = fleet.member(ring=store)
    codec.start()
    (key,) = codec._view.snapshot.keys
    with pytest.raises(ValueError, match="the test says so"):
        codec.close()
    assert not codec._thread.is_alive()
    assert key.held is not None
    assert key.held.is_overwritten


def test_a_closed_codec_keeps_no_notification(fleet: Fleet) -> None:
    with fleet.member() as codec:
        turns = codec._keeper.turns
    for _ in range(10):
        turns.post(codec._keeper.pushed)
    assert len(turns._posted) == 0


def test_an_entry_of_the_year_0_is_shown_with_the_earliest_datetime(fleet: Fleet) -> None:
    pin = datetime.fromtimestamp(fleet.clock.wall / 1_000 - DAY, tz=timezone.utc)
    with fleet.member(accept_keys_created_after=pin) as codec:
        # While the clock is not confirmed, no key of the document has expired.
        fleet.clock.wall += 3_600_000
        assert [one.kind for one in codec.health().problems] == ["clock"]
        year_0 = ["0000-01-01T00:00:00Z"] * 2 + ["0000-01-02T00:00:00Z", "0000-01-03T00:00:00Z"]
        junk = {"id": "A" * 12, **dict(zip(TIMES, year_0, strict=True)), "vouchers": {}}
        fleet.publish([fleet.first, fleet.first.edited(**junk)])
        codec.refresh()
        (shown,) = [key for key in codec.health().keys if key.id == "A" * 12]
        assert shown.created == datetime.min.replace(tzinfo=timezone.utc)


def old_junk(fleet: Fleet) -> list[MadeKey]:
    """Entries of a writer without any key, as many as a pinned member remembers beside two keys.
    They are dated before its pin, live for years, and are large."""

    def text(length: int) -> str:
        return base64url.encode(os.urandom(length))

    made = fleet.key(-2 * DAY, created_ms=fleet.clock.wall - 2 * DAY * 1_000, seals=1_000 * DAY)
    wrap = {
        "provider": "local",
        "keyId": "k" * 2_048,
        "wrapped": text(2_048),
        "signature": text(2_048),
        "mac": text(32),
    }
    fleet.made.remove(made)
    more = {"vouchers": {text(9): text(32) for _ in range(8)}, "wraps": [wrap]}
    return [made.edited(id=text(9), **more) for _ in range(31)]


def test_entries_that_only_a_pin_refuses_are_removed_by_the_next_write_if_no_key_names_them(
    fleet: Fleet,
) -> None:
    named = fleet.key(-400, created_ms=fleet.clock.wall - DAY * 1_000, by=())
    later = naming(fleet.key(-100, by=[named]), [named])
    fleet.publish([named, later])
    pin = datetime.fromtimestamp(fleet.clock.wall / 1_000 - DAY / 2, tz=timezone.utc)
    with fleet.member(accept_keys_created_after=pin) as codec:
        fleet.publish([named, later, *old_junk(fleet)])
        codec.refresh()
        assert len(codec.health().keys) > 30
        for _ in range(3):
            codec.rotate()
        codec.revoke(later.id)
        assert fleet.store.text is not None
        ids = {entry.id for entry in parse_document(fleet.store.text, RING).entries}
        assert {named.id, later.id} <= ids
        assert len(ids) == 6


def test_a_wrap_that_was_missing_is_added_later(fleet: Fleet) -> None:
    second = LocalKeyWrapper(master_key=os.urandom(32))
    with fleet.member(key_wrapper=[fleet.kms, second]) as codec:
        codec.refresh()
        (key,) = codec._view.snapshot.keys
        assert {wrap.key_id for wrap in key.wraps} == {fleet.wrapper.key_id, second.key_id}
    with fleet.reader(key_wrapper=second) as codec:
        assert codec.seal(b"x")


def test_one_pass_adds_missing_wraps_for_a_limited_time_and_the_next_one_continues(
    fleet: Fleet,
) -> None:
    class Slow(Kms):
        def wrap(self, *args: object, **more: object) -> WrappedKey:
            fleet.clock.advance(5)
            return super().wrap(*args, **more)  # type: ignore[arg-type]

    slow = Slow(LocalKeyWrapper(master_key=os.urandom(32)))
    fleet.publish([fleet.first, *(fleet.key(4_500) for _ in range(9))])
    with fleet.member(key_wrapper=[fleet.kms, slow], wrap_quorum=1) as codec:
        for count in (4, 8, 10, 10):
            run_pass(codec, reads=True)
            wraps = [len(key.wraps) for key in codec._view.snapshot.keys]
            assert sum(wraps) == 10 + count


@pytest.mark.parametrize(
    "value", ['{"toString":1}', '["2026-11-21T03:00:00Z"]', "1", "null", "[" * 900 + "]" * 900]
)
def test_a_ring_with_a_time_that_is_not_a_string_is_repaired(fleet: Fleet, value: str) -> None:
    good = fleet.store.text
    assert good is not None
    with fleet.member() as codec:
        fleet.store.text = good.replace(f'"created":"{fleet.first.times[0]}"', f'"created":{value}')
        assert fleet.store.text != good
        with pytest.raises(RingStoreError, match="corrupt"):
            codec.refresh()
        fleet.clock.advance(60)
        run_pass(codec, reads=True)
        # The keeper's own thread may be the one that writes.
        wait_until(lambda: fleet.store.writes == 1)
        codec.refresh()


def test_content_that_the_parser_fails_on_is_corrupt_and_repaired(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parse(text: str, ring: str) -> RingDocument:
        if text == "surprise":
            raise KeyError("secret")
        return parse_document(text, ring)

    monkeypatch.setattr("sealring.ring.store.parse_document", parse)
    with fleet.member() as codec:
        fleet.store.text = "surprise"
        with pytest.raises(RingStoreError, match="corrupt: the document cannot be parsed"):
            codec.refresh()
        fleet.clock.advance(60)
        run_pass(codec, reads=True)
        # The keeper's own thread may be the one that writes.
        wait_until(lambda: fleet.store.writes == 1)
        codec.refresh()


def test_a_due_rotation_does_nothing_after_close(fleet: Fleet) -> None:
    with fleet.member() as codec:
        fleet.clock.advance(86_400 - 4_500)
    reads = fleet.store.reads
    for is_last in (False, True):
        codec._keeper._rotate_if_due(is_last=is_last)
    assert fleet.store.reads == reads


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


def test_f32_exactly_one_concurrent_writer_of_a_file_wins(tmp_path: Path) -> None:
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


def test_a_member_that_read_junk_in_a_ring_file_overwrites_it(tmp_path: Path) -> None:
    (tmp_path / "r").write_bytes(b"")
    ring = FileRing(tmp_path / "r")
    with pytest.raises(RingStoreError) as caught:
        ring.read()
    assert caught.value.kind == "corrupt"
    ring.write("x", expected=caught.value.revision)
    stored = ring.read()
    assert stored is not None
    assert stored.document == "x"


def test_importing_the_package_loads_no_vendor_sdk() -> None:
    program = (
        "import sys, sealring\n"
        "loaded = {name.split('.')[0] for name in sys.modules}\n"
        "print(sorted(loaded & {'mcp', 'mcp_types', 'pydantic', 'boto3', 'botocore', 'redis'}))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stdout == "[]\n"


def test_create_after_has_a_default_that_depends_on_at_once() -> None:
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
