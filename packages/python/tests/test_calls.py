"""Calls with a deadline, calls that hang, and late answers."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from types import SimpleNamespace

import pytest
from ring_maker import Fleet, Kms, StillClock, run_pass, wait_until

from sealring import (
    InvalidRequestState,
    KeyWrapperError,
    KmsCodec,
    LocalKeyWrapper,
    RingPolicy,
    RingStoreError,
    StoredRing,
    WrappedKey,
)
from sealring.clock import SystemClock
from sealring.derivation import overwrite
from sealring.ring.calls import Calls

late = partial(RingStoreError, "unavailable")
# Long enough that no call of a test reaches this deadline.
LONG = 60.0
# A deadline that hanging calls are meant to reach.
SHORT = 0.02


class Hanging:
    """A service whose calls hang, each until `release` is called."""

    def __init__(self) -> None:
        self.gates: list[threading.Event] = []

    def __call__(self) -> str:
        gate = threading.Event()
        self.gates.append(gate)
        gate.wait()
        return "late"

    def release(self) -> None:
        for gate in self.gates:
            gate.set()


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    made = Hanging()
    yield made
    made.release()


def hang(calls: Calls, service: str, hanging: Hanging, count: int) -> None:
    """Makes calls that hang beyond their deadline."""
    for _ in range(count):
        assert isinstance(calls.run(service, "x", hanging, late), RingStoreError)


def in_thread(run: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def waits_for_a_slot(calls: Calls) -> bool:
    return len(calls._changed._waiters) == 1  # type: ignore[attr-defined]


def test_a_key_that_comes_after_the_deadline_is_overwritten() -> None:
    gate, key = threading.Event(), bytearray(b"k" * 32)

    def call() -> bytearray:
        gate.wait(10)
        return key

    calls = Calls(SystemClock(), 0.05, os.urandom)
    answer = calls.run("kms", "unwrap", call, late, discard=overwrite)
    assert isinstance(answer, RingStoreError)
    assert key == b"k" * 32
    gate.set()
    wait_until(lambda: key == bytes(32))


def test_no_call_is_made_after_close() -> None:
    calls, made = Calls(SystemClock(), 10, os.urandom), []
    calls.close()
    assert isinstance(calls.run("store", "read", partial(made.append, 1), late), RingStoreError)
    assert made == []


def test_close_does_not_wait_for_a_call_that_begins_meanwhile(
    hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, start = Calls(SystemClock(), LONG, os.urandom), threading.Thread.start

    def close_first(thread: threading.Thread) -> None:
        calls.close()
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", close_first)
    began = time.monotonic()
    assert isinstance(calls.run("store", "read", hanging, late), RingStoreError)
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("service", "other"), [("kms 0", "store"), ("store", "kms 0"), ("kms 0", "kms 1")]
)
def test_hanging_calls_to_one_service_take_no_slot_of_the_other(
    hanging: Hanging, service: str, other: str
) -> None:
    calls = Calls(StillClock(), SHORT, os.urandom)
    hang(calls, service, hanging, 5)
    assert len(hanging.gates) == 4
    assert calls.run(other, "x", lambda: "answer", late) == "answer"


def test_a_service_whose_calls_never_return_is_called_again_after_growing_pauses(
    hanging: Hanging,
) -> None:
    clock = StillClock()
    calls = Calls(clock, SHORT, os.urandom)
    hang(calls, "store", hanging, 5)
    assert len(hanging.gates) == 4
    clock.advance(100)
    hang(calls, "store", hanging, 1)
    assert len(hanging.gates) == 5
    # The service has been silent for 100 seconds, and later for 150.
    for made, seconds in ((6, 50), (7, 75)):
        clock.advance(seconds - 1)
        hang(calls, "store", hanging, 1)
        assert len(hanging.gates) == made - 1
        clock.advance(1)
        hang(calls, "store", hanging, 1)
        assert len(hanging.gates) == made


def test_once_a_service_answers_calls_are_made_at_once_although_old_calls_hang(
    hanging: Hanging,
) -> None:
    clock = StillClock()
    calls = Calls(clock, SHORT, os.urandom)
    hang(calls, "store", hanging, 5)
    clock.advance(1)
    for n in range(3):
        assert calls.run("store", "x", lambda n=n: n, late) == n  # type: ignore[misc]
    assert len(hanging.gates) == 4
    # While they hang, one call is made at a time.
    gate, entered = threading.Event(), threading.Event()
    calls._timeout_seconds = LONG

    def call() -> None:
        entered.set()
        gate.wait()

    first = in_thread(lambda: calls.run("store", "x", call, late))
    assert entered.wait(10)
    answers: list[object] = []
    second = in_thread(lambda: answers.append(calls.run("store", "x", lambda: "second", late)))
    wait_until(lambda: waits_for_a_slot(calls))
    gate.set()
    first.join(10)
    second.join(10)
    assert answers == ["second"]


def test_the_number_of_threads_that_calls_tie_up_is_limited(hanging: Hanging) -> None:
    clock = StillClock()
    calls = Calls(clock, 0.001, os.urandom)
    for n in range(60):
        hang(calls, "kms", hanging, 1)
        clock.advance(2**n)
    assert len(hanging.gates) == 32
    hanging.release()
    wait_until(lambda: calls._slots["kms"].seconds_until_free(is_urgent=False) == 0)
    calls._timeout_seconds = LONG
    assert calls.run("kms", "x", lambda: "answer", late) == "answer"


def test_a_revocation_does_not_wait_for_the_pause_between_calls_to_a_store_that_hangs(
    hanging: Hanging,
) -> None:
    calls = Calls(StillClock(), SHORT, os.urandom)
    for service in ("store", "kms"):
        hang(calls, service, hanging, 5)
    with calls.urgent():
        assert isinstance(calls.run("kms", "x", lambda: "answer", late), RingStoreError)
        assert calls.run("store", "x", lambda: "answer", late) == "answer"
        hanging.release()
        wait_until(lambda: calls._slots["store"]._hanging == 0)
        hanging.gates.clear()
        # But it leaves threads for the calls that find out whether the store answers again.
        hang(calls, "store", hanging, 20)
    assert len(hanging.gates) == 16


def test_close_ends_a_wait_for_a_slot(hanging: Hanging) -> None:
    clock = StillClock()
    calls = Calls(clock, SHORT, os.urandom)
    hang(calls, "store", hanging, 4)
    # The next call is due only after a long pause.
    clock.advance(1_000)
    hang(calls, "store", hanging, 1)
    calls._timeout_seconds = LONG
    answers: list[object] = []
    waiting = in_thread(lambda: answers.append(calls.run("store", "read", hanging, late)))
    wait_until(lambda: waits_for_a_slot(calls))
    calls.close()
    waiting.join(10)
    assert [type(answer) for answer in answers] == [RingStoreError]


def test_one_deadline_covers_the_wait_for_a_slot_and_the_call(
    hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, waits = [1_000.0], []
    wait = Future.exception

    def recorded(answer: "Future[object]", timeout: float | None = None) -> BaseException | None:
        if timeout is not None:
            waits.append(timeout)
        return wait(answer, timeout)

    monkeypatch.setattr("sealring.ring.calls.time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(Future, "exception", recorded)
    calls = Calls(StillClock(), LONG, os.urandom)
    for _ in range(4):
        in_thread(lambda: calls.run("store", "x", hanging, late))
    wait_until(lambda: len(waits) == 4)
    answers: list[object] = []
    fifth = in_thread(lambda: answers.append(calls.run("store", "x", lambda: "answer", late)))
    wait_until(lambda: waits_for_a_slot(calls))
    now[0] += 40
    hanging.gates[0].set()
    fifth.join(10)
    assert answers == ["answer"]
    assert waits == [60, 60, 60, 60, 20]


@pytest.mark.parametrize("clock_of", ["wall", "steady"])
def test_an_answer_from_before_the_process_was_stopped_is_late_and_its_key_is_overwritten(
    clock_of: str,
) -> None:
    clock, key = StillClock(), bytearray(b"k" * 32)
    calls = Calls(clock, LONG, os.urandom)

    def call(seconds: int) -> bytearray:
        setattr(clock, clock_of, getattr(clock, clock_of) + seconds * 1_000)
        return key

    assert calls.run("kms", "unwrap", partial(call, 60), late, discard=overwrite) is key
    answer = calls.run("kms", "unwrap", partial(call, 61), late, discard=overwrite)
    assert isinstance(answer, RingStoreError)
    assert answer.detail == "no answer in time"
    assert key == bytes(32)


def test_a_refusal_from_before_the_process_was_stopped_still_counts() -> None:
    clock = StillClock()
    calls = Calls(clock, LONG, os.urandom)

    def call() -> None:
        clock.advance(3_600)
        raise RingStoreError("denied", "the test says so")

    answer = calls.run("store", "read", call, late)
    assert isinstance(answer, RingStoreError)
    assert answer.kind == "denied"


def test_a_kms_check_from_before_the_process_was_stopped_does_not_count(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        before = codec.health().last_kms_check
        fleet.clock.advance(1_000)
        unwrap = fleet.kms.unwrap

        def stopped(wrapped: WrappedKey, *args: object, **more: object) -> bytearray:
            data_key = unwrap(wrapped, *args, **more)  # type: ignore[arg-type]
            fleet.clock.advance(7_200)
            return data_key

        fleet.kms.unwrap = stopped  # type: ignore[method-assign]
        with pytest.raises(KeyWrapperError, match="no answer in time"):
            codec.refresh()
        assert codec.health().last_kms_check == before
        assert not codec.health().can_seal


def test_a_read_from_before_the_process_was_stopped_does_not_count(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        before = codec.health().last_refresh
        fleet.store.on_read = lambda: fleet.clock.advance(7 * 3_600)
        with pytest.raises(RingStoreError, match="no answer in time"):
            codec.refresh()
        assert codec.health().last_refresh == before
        assert not codec.health().can_seal


POLICY = RingPolicy(kms_timeout_seconds=SHORT)


class HangingStore:
    """The store of a fleet, whose reads can hang."""

    kind = "test"

    def __init__(self, fleet: Fleet, hanging: Hanging) -> None:
        self.inner = fleet.store
        self.hanging = hanging
        self.hangs = False

    def read(self, **more: object) -> StoredRing | None:
        if self.hangs:
            self.hanging()
        return self.inner.read()

    def write(self, document: str, *, expected: str | None, **more: object) -> str:
        return self.inner.write(document, expected=expected)


def passes(codec: KmsCodec, count: int) -> None:
    """Passes of the keeper, as its thread makes them."""
    for _ in range(count):
        codec._keeper.turns.background(lambda: run_pass(codec, reads=True)).result(60)


def test_while_the_store_hangs_kms_checks_are_made_and_the_ring_is_read_again_afterwards(
    fleet: Fleet, hanging: Hanging
) -> None:
    store = HangingStore(fleet, hanging)
    with fleet.member(ring=store, policy=POLICY) as codec:
        store.hangs = True
        for _ in range(6):
            fleet.clock.advance(900)
            before = codec.health().last_kms_check
            passes(codec, 1)
            health = codec.health()
            assert health.last_kms_check != before
            assert health.last_error is not None
            assert health.last_error.source == "store"
        # The old calls never return.
        store.hangs = False
        fleet.clock.advance(3_600)
        passes(codec, 1)
        assert codec.health().last_error is None
        reads = fleet.store.reads
        passes(codec, 3)
        assert fleet.store.reads == reads + 3


def test_while_the_kms_hangs_the_ring_is_read_and_keys_are_revoked(
    fleet: Fleet, hanging: Hanging
) -> None:
    with fleet.member(policy=POLICY) as codec, fleet.member(key_wrapper=fleet.wrapper) as other:
        unwrap = fleet.kms.unwrap

        def unwrapped(*args: object, **more: object) -> bytearray:
            hanging()
            return unwrap(*args, **more)  # type: ignore[arg-type]

        other.rotate()
        codec.refresh()
        second = other.health().keys[-1].id
        fleet.kms.unwrap = unwrapped  # type: ignore[method-assign]
        fleet.clock.advance(1_000)
        passes(codec, 5)
        assert len(hanging.gates) == 4
        token = codec.seal(b"x")
        other.revoke(fleet.first.id)
        passes(codec, 1)
        with pytest.raises(InvalidRequestState):
            codec.unseal(token)
        codec.revoke(second)
        other.refresh()
        states = {key.id: key.state for key in other.health().keys}
        assert states[second] == "revoked"


def test_a_kms_that_hangs_does_not_prevent_checks_by_another_one(
    fleet: Fleet, hanging: Hanging
) -> None:
    wrapper = LocalKeyWrapper(master_key=os.urandom(32))
    second, policy = Kms(wrapper), RingPolicy(kms_timeout_seconds=SHORT)
    with fleet.member(key_wrapper=[fleet.kms, second], policy=policy) as codec:
        codec.refresh()
        fleet.kms.unwrap = lambda *_, **__: hanging()  # type: ignore[assignment, method-assign, return-value]
        for _ in range(40):
            fleet.clock.advance(1_000)
            before = codec.health().last_kms_check
            passes(codec, 1)
            assert codec.health().last_kms_check != before


def test_a_key_is_revoked_as_soon_as_the_store_answers_again_although_old_calls_hang(
    fleet: Fleet, hanging: Hanging
) -> None:
    store = HangingStore(fleet, hanging)
    with fleet.member(ring=store, policy=POLICY) as codec:
        store.hangs = True
        passes(codec, 5)
        store.hangs = False
        with pytest.raises(RingStoreError):
            codec.refresh()
        codec.revoke(fleet.first.id)
        assert fleet.first.id in [key.id for key in codec.health().keys if key.state == "revoked"]
