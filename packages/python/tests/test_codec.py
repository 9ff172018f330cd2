"""The codec's life: options, threads, start, close, fork."""

import copy
import gc
import os
import pickle
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import pytest
from ring_maker import DAY, Fleet, Store, revoked

from sealring import (
    CodecClosedError,
    InvalidRequestState,
    KeyWrapperError,
    KmsCodec,
    LocalKeyWrapper,
    RingConflictError,
    RingPolicy,
    RingStoreError,
    SealUnavailableError,
)
from sealring.held_key import HeldKey, KeyOverwrittenError

FAST = RingPolicy(
    clock_skew_seconds=0,
    refresh_every_seconds=0.1,
    backoff_cap_seconds=0.1,
    token_lifetime_seconds=60,
    kms_check_every_seconds=0.1,
    seal_outage_seconds=1,
    store_outage_seconds=1,
    rotate_every_seconds=60,
    kms_timeout_seconds=0.2,
    start_timeout_seconds=1,
    miss_refresh_seconds=0,
)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"colour": 1}, TypeError),
        ({"ring": None}, TypeError),
        ({"key_wrapper": None}, TypeError),
        ({"key_wrapper": []}, ValueError),
        ({"ring_name": 5}, TypeError),
        ({"ring_name": ""}, ValueError),
        ({"ring_name": "a/b"}, ValueError),
        ({"format": "typescript"}, ValueError),
        ({"format": None}, TypeError),
        ({"accept": "python"}, TypeError),
        ({"accept": []}, ValueError),
        ({"accept": ["jwt"]}, ValueError),
        ({"policy": {"refresh_every_seconds": 1}}, TypeError),
        ({"accept_keys_created_after": 5}, TypeError),
        ({"max_token_length": 101}, ValueError),
        ({"max_token_length": True}, TypeError),
        ({"clock": 5}, TypeError),
        ({"clock": object()}, TypeError),
        ({"random": None}, TypeError),
        ({"random": 5}, TypeError),
    ],
)
def test_wrong_options_are_refused(
    fleet: Fleet, options: dict[str, object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        fleet.reader(**options)


@pytest.mark.parametrize("provider", [None, 5, "", "my_kms", "My-kms", "k" * 65, "kms\n"])
def test_the_provider_of_a_key_wrapper_must_fit_the_ring_document(
    fleet: Fleet, provider: object
) -> None:
    fleet.kms.provider = provider  # type: ignore[assignment]
    with pytest.raises(TypeError, match=r"key_wrapper.provider must be 1 to 64 characters"):
        fleet.reader()


def test_a_pin_needs_a_time_zone(fleet: Fleet) -> None:
    with pytest.raises(ValueError, match="time zone"):
        fleet.reader(accept_keys_created_after=datetime(2026, 1, 1))  # noqa: DTZ001


def test_every_call_raises_before_start_and_after_close(fleet: Fleet) -> None:
    codec = fleet.reader()
    purpose = codec.for_purpose("cart")
    calls: list[Callable[[], object]] = [
        lambda: codec.seal(b"x"),
        lambda: codec.unseal("x"),
        lambda: purpose.seal(b"x"),
        lambda: purpose.unseal("x"),
        codec.health,
        codec.refresh,
    ]
    for call in calls:
        with pytest.raises(CodecClosedError, match="not started"):
            call()
    codec.start()
    assert codec.unseal(codec.seal(b"x")) == b"x"
    codec.close()
    codec.close()
    for call in [*calls, codec.start]:
        with pytest.raises(CodecClosedError, match="closed"):
            call()


def test_a_codec_can_be_started_only_once(fleet: Fleet) -> None:
    with fleet.reader() as codec, pytest.raises(CodecClosedError):
        codec.start()


def test_f22_close_overwrites_the_data_keys(fleet: Fleet) -> None:
    codec = fleet.reader()
    codec.start()
    held = codec._view.sealing_key(codec._view.now())
    data_key = held._data_key
    assert bytes(data_key) == fleet.first.data_key
    codec.close()
    assert bytes(data_key) == bytes(32)
    with pytest.raises(KeyOverwrittenError):
        held.token_key(bytes(18), None)
    gc.collect()
    alive = [one for one in gc.get_objects() if isinstance(one, HeldKey)]
    assert all(bytes(one._data_key) == bytes(32) for one in alive)


def test_f22_an_expired_or_revoked_key_is_overwritten(fleet: Fleet) -> None:
    second = fleet.key(4_500, seals=3 * DAY)
    fleet.publish([fleet.first, second])
    with fleet.reader() as codec:
        keys = [key.held for key in codec._view.snapshot.keys if key.held is not None]
        fleet.clock.advance(DAY + 4_200 + 300)
        codec.refresh()
        assert [bytes(key._data_key) == bytes(32) for key in keys] == [True, False]
        third = fleet.key(-300)
        fleet.publish([revoked(second, fleet.clock.wall), third])
        codec.refresh()
        assert [bytes(key._data_key) == bytes(32) for key in keys] == [True, True]
        held = {key.id: key.held for key in codec.health().keys}
        assert held == {second.id: False, third.id: True}


def test_a_data_key_cannot_be_copied_or_serialized(fleet: Fleet) -> None:
    held = HeldKey(bytearray(os.urandom(32)), "r")
    for call in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            call(held)
    for wrong in (bytes(32), bytes(31), b"\1" * 32):
        with pytest.raises(ValueError, match="32 bytes"):
            HeldKey(bytearray(wrong), "r")


def test_a_key_that_is_revoked_between_choice_and_use_does_not_seal(fleet: Fleet) -> None:
    with fleet.reader(accept=["sealring", "python"]) as codec:
        token = codec.seal(b"x")
        codec._view.sealing_key(codec._view.now()).limit_to_ring()
        for call in (codec.seal, codec.for_purpose("cart").seal):
            with pytest.raises(SealUnavailableError):
                call(b"x")
        with pytest.raises(InvalidRequestState):
            codec.unseal(token)


def test_many_threads_seal_and_unseal_during_rotations(fleet: Fleet) -> None:
    keys = [fleet.first]
    errors: list[Exception] = []
    sealed = [0]
    with fleet.reader(accept=["sealring", "python"]) as codec:
        is_over = threading.Event()

        def work(number: int) -> None:
            cart = codec.for_purpose("cart")
            try:
                while not is_over.is_set():
                    payload = os.urandom(20)
                    for one in (codec, cart):
                        assert one.unseal(one.seal(payload)) == payload
                    sealed[0] += 1
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for number in range(2, 20):
            keys.append(fleet.key(-300 + number))
            fleet.publish(keys)
            codec.refresh()
        is_over.set()
        for thread in threads:
            thread.join()
    assert errors == []
    assert sealed[0] > 100


def test_a_start_waits_for_a_ring_and_then_reports_its_absence(fleet: Fleet) -> None:
    fleet.store.text = None
    codec = fleet.reader(policy=FAST, clock=None)
    with pytest.raises(RingStoreError, match="no ring yet") as caught:
        codec.start()
    assert caught.value.kind == "absent"
    assert fleet.store.reads > 1


def _warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.levelname == "WARNING"]


SLOW = replace(FAST, start_timeout_seconds=3)


def test_a_start_warns_once_after_two_seconds(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    fleet.store.text = None
    with pytest.raises(RingStoreError):
        fleet.reader(policy=SLOW, clock=None).start()
    (warning,) = _warnings(caplog)
    assert "no ring yet: run `sealring init`, or set create=" in warning
    assert "retrying until 20" in warning


def test_a_start_warns_with_the_failure_that_it_waits_for(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    fleet.break_store()
    with pytest.raises(RingStoreError) as caught:
        fleet.reader(policy=SLOW, clock=None).start()
    (warning,) = _warnings(caplog)
    assert warning.startswith(f"waiting for ring store test: {caught.value.detail}, retry")


def test_a_quick_start_does_not_warn(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    with fleet.reader():
        time.sleep(2.2)
    assert _warnings(caplog) == []


@pytest.mark.parametrize("kind", ["denied", "disabled", "not-found", "corrupt"])
def test_a_refused_start_fails_at_once(fleet: Fleet, kind: str) -> None:
    fleet.kms.refuse(kind)
    with pytest.raises(KeyWrapperError) as caught:
        fleet.reader().start()
    assert caught.value.kind == kind
    assert fleet.kms.unwraps == 1


def test_a_start_succeeds_after_a_short_outage(fleet: Fleet) -> None:
    fleet.break_store()
    codec = fleet.reader(clock=None)
    timer = threading.Timer(0.3, lambda: setattr(fleet.store, "failure", None))
    timer.start()
    fleet_is_here = time.time() * 1_000
    fleet.clock.wall = round(fleet_is_here)
    fleet.publish([fleet.key(-300)])
    with codec:
        assert codec.health().ready
    timer.join()


def test_a_start_that_retries_for_a_day_raises_the_last_error(fleet: Fleet) -> None:
    fleet.break_store()
    codec = fleet.reader(policy=RingPolicy(start_timeout_seconds=86_400))
    codec._calls.closing.wait = lambda _: fleet.clock.advance(60)  # type: ignore
    with pytest.raises(RingStoreError):
        codec.start()
    assert fleet.store.reads > 1_400


def live(fleet: Fleet) -> None:
    """A codec on the real clock."""
    fleet.clock.wall = round(time.time() * 1_000)
    fleet.publish([fleet.key(-5)])


def test_the_ring_is_read_and_the_kms_checked_in_the_background(fleet: Fleet) -> None:
    live(fleet)
    with fleet.reader(policy=FAST, clock=None):
        reads, unwraps = fleet.store.reads, fleet.kms.unwraps
        until(lambda: fleet.store.reads > reads + 3 and fleet.kms.unwraps > unwraps + 3)
    reads = fleet.store.reads
    time.sleep(0.3)
    assert fleet.store.reads == reads


def test_concurrent_refreshes_share_one_pass(fleet: Fleet) -> None:
    gate = threading.Event()

    class SlowStore(Store):
        at_once = most = 0

        def read(self, **more: object) -> object:  # type: ignore[override]
            self.at_once += 1
            self.most = max(self.most, self.at_once)
            gate.wait(3)
            self.at_once -= 1
            return super().read()

    gate.set()
    slow = SlowStore()
    slow.text = fleet.store.text
    with fleet.reader(ring=slow) as codec:
        gate.clear()
        threads = [threading.Thread(target=codec.refresh) for _ in range(20)]
        for thread in threads:
            thread.start()
        time.sleep(0.1)
        gate.set()
        for thread in threads:
            thread.join()
        assert slow.most == 1
        assert slow.reads <= 4


def test_an_unknown_key_refreshes_at_most_once_per_miss_refresh(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        second = fleet.key(4_500)
        stranger = HeldKey(bytearray(second.data_key), "payments")
        sealer = stranger.sealer(None)
        token = sealer.seal(codec._sealing, b"x", codec._view.now())
        reads = fleet.store.reads
        fleet.publish([fleet.first, second])
        with pytest.raises(InvalidRequestState):
            codec.unseal(token)
        until(lambda: len(codec.health().keys) == 2)
        assert codec.unseal(token) == b"x"
        for _ in range(1_000):
            with pytest.raises(InvalidRequestState):
                codec.unseal("sr1." + "A" * 98)
        time.sleep(0.1)
        assert fleet.store.reads == reads + 1


def test_f29_a_hanging_kms_ties_up_few_threads_and_blocks_no_seal(fleet: Fleet) -> None:
    live(fleet)
    gate = threading.Event()
    policy = RingPolicy(
        clock_skew_seconds=0,
        refresh_every_seconds=0.05,
        backoff_cap_seconds=0.05,
        kms_check_every_seconds=0.05,
        seal_outage_seconds=30,
        store_outage_seconds=30,
        kms_timeout_seconds=0.02,
    )
    with fleet.reader(policy=policy, clock=None) as codec:
        unwrap = fleet.kms.unwrap

        def hang(*given: object, **more: object) -> bytearray:
            gate.wait(20)
            return unwrap(*given, **more)  # type: ignore[arg-type]

        fleet.kms.unwrap = hang  # type: ignore[method-assign, assignment]
        until(lambda: calls_under_way() >= 4)
        time.sleep(0.5)
        # In that time, a call could have reached its deadline 25 times.
        assert calls_under_way() <= 14
        assert codec.unseal(codec.seal(b"x")) == b"x"
        assert codec.health().status == "degraded"
        gate.set()
        until(lambda: codec.health().status == "ok")


def calls_under_way() -> int:
    return sum(thread.name == "sealring-unwrap" for thread in threading.enumerate())


def test_a_machine_without_free_threads_is_reported_as_unavailable(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fleet.reader() as codec:
        with monkeypatch.context() as patched:

            def refuse(_: threading.Thread) -> None:
                raise RuntimeError("can't start new thread")

            patched.setattr(threading.Thread, "start", refuse)
            for _ in range(6):
                with pytest.raises(RingStoreError) as caught:
                    codec.refresh()
                assert caught.value.kind == "unavailable"
        codec.refresh()
        assert codec.health().status == "ok"


def test_close_does_not_wait_for_a_store_that_hangs(fleet: Fleet) -> None:
    gate = threading.Event()
    codec = fleet.reader(policy=RingPolicy(kms_timeout_seconds=300))
    codec.start()
    read = fleet.store.read

    def hang(**more: object) -> object:
        gate.wait(20)
        return read()

    fleet.store.read = hang  # type: ignore[method-assign, assignment]
    failures: list[Exception] = []

    def refresh() -> None:
        try:
            codec.refresh()
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=refresh)
    thread.start()
    until(lambda: any(one.name == "sealring-read" for one in threading.enumerate()))
    codec.close()
    thread.join()
    assert any(one.name == "sealring-read" for one in threading.enumerate())
    assert [type(failure) for failure in failures] == [CodecClosedError]
    gate.set()


def test_a_refresh_ends_even_if_the_codec_is_closed_during_its_pass(
    fleet: Fleet,
) -> None:
    codec = fleet.reader()
    codec.start()
    codec._view.retire = lambda _: codec._view.close()  # type: ignore[method-assign]
    failures: list[Exception] = []

    def refresh() -> None:
        try:
            codec.refresh()
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=refresh, daemon=True)
    thread.start()
    thread.join(10)
    codec.close()
    assert [type(failure) for failure in failures] == [CodecClosedError]


def test_foreign_errors_are_converted_and_the_thread_continues(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        fleet.store.failure = ZeroDivisionError("secret-canary")
        with pytest.raises(RingStoreError) as caught:
            codec.refresh()
        assert caught.value.kind == "unavailable"
        assert "canary" not in repr(caught.value)
        fleet.store.failure = None
        fleet.kms.failure = ZeroDivisionError("secret-canary")
        fleet.clock.advance(900)
        with pytest.raises(KeyWrapperError) as denied:
            codec.refresh()
        assert denied.value.kind == "unavailable"
        assert denied.value.__context__ is None
        fleet.kms.refuse("denied")
        assert fleet.kms.failure is not None
        fleet.kms.failure.__cause__ = ValueError("secret-canary")
        with pytest.raises(KeyWrapperError) as denied:
            codec.refresh()
        assert (denied.value.kind, denied.value.__cause__) == ("denied", None)
        fleet.kms.failure = None
        codec.refresh()
        assert codec.health().status == "ok"


@pytest.mark.parametrize("answer", [b"k" * 32, bytearray(31), bytearray(32), None])
def test_a_result_of_unwrap_that_is_not_a_data_key_is_corrupt(fleet: Fleet, answer: object) -> None:
    fleet.kms.unwrap = lambda *_, **__: answer  # type: ignore[method-assign, assignment, return-value]
    with pytest.raises(KeyWrapperError) as caught:
        fleet.reader().start()
    assert caught.value.kind == "corrupt"


@pytest.mark.parametrize("answer", ["{}", ("{}", "1"), {"document": "{}"}])
def test_a_result_of_read_that_is_not_a_stored_ring_is_refused(
    fleet: Fleet, answer: object
) -> None:
    fleet.store.read = lambda **_: answer  # type: ignore[method-assign, assignment, return-value]
    with pytest.raises(RingStoreError, match="no document"):
        fleet.reader().start()


def test_a_forked_child_needs_its_own_codec(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                codec.seal(b"x")
            except CodecClosedError as error:
                codec.close()
                code = 7 if "fork" in str(error) else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert codec.unseal(codec.seal(b"x")) == b"x"


def test_the_state_is_logged_when_it_changes(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    with fleet.reader() as codec, caplog.at_level("INFO", "sealring"):
        fleet.break_store()
        for _ in range(3):
            with pytest.raises(RingStoreError):
                codec.refresh()
        fleet.store.failure = None
        codec.refresh()
    told = [record.getMessage() for record in caplog.records]
    assert told == ["ring is degraded (store unavailable)", "ring is ok"]


def test_a_custom_key_wrapper_works(fleet: Fleet) -> None:
    assert isinstance(fleet.wrapper, LocalKeyWrapper)
    assert isinstance(fleet.reader(key_wrapper=[fleet.kms]), KmsCodec)


@pytest.mark.parametrize(
    ("error", "anchor"),
    [
        (InvalidRequestState("seal"), "invalidrequeststate-authentication-failed"),
        (InvalidRequestState("unknown key"), "invalidrequeststate-unknown-key"),
        (SealUnavailableError("KMS check too old"), "sealunavailableerror-kms-check-too-old"),
        (CodecClosedError(), "codecclosederror"),
        (KeyWrapperError("not-found", "local"), "keywrappererror-not-found"),
        (RingStoreError("denied", "no"), "ringstoreerror-denied"),
        (RingConflictError(), "ringconflicterror"),
    ],
)
def test_an_error_contains_the_url_of_its_documentation(error: Exception, anchor: str) -> None:
    page = "https://github.com/sealring/sealring/blob/main/docs/errors.md"
    assert vars(error)["help"] == f"{page}#{anchor}"
