"""Calls to several key wrappers, of which one takes long."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

import pytest
from ring_maker import Fleet, Kms, made_key, wait_until

from sealring import KeyWrapperError, LocalKeyWrapper, RingPolicy
from sealring.ring.calls import BACKGROUND, FOREGROUND
from sealring.ring.hedges import Answer, Hedges


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    made = threading.Event()
    yield made
    made.set()


def answering(answer: Answer) -> Callable[[], Answer]:
    return lambda: answer


def after(gate: threading.Event, answer: Answer) -> Callable[[], Answer]:
    def ask() -> Answer:
        gate.wait(10)
        return answer

    return ask


def failing(kind: str) -> KeyWrapperError:
    return KeyWrapperError(kind, "local")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "is_refused", "is_overtaken"),
    [(BACKGROUND, False, False), (FOREGROUND, False, True), (BACKGROUND, True, True)],
    ids=["in turn", "at once if a caller waits", "at once while refusals are counted"],
)
def test_a_kms_check_calls_several_key_wrappers(
    fleet: Fleet, options: object, is_refused: bool, is_overtaken: bool
) -> None:
    was_called, overtaken = threading.Event(), []

    class Slow(Kms):
        def unwrap(self, *args: object, **more: object) -> bytearray:
            overtaken.append(was_called.wait(2))
            raise failing("denied")

    class Quick(Kms):
        def unwrap(self, *args: object, **more: object) -> bytearray:
            was_called.set()
            return super().unwrap(*args, **more)  # type: ignore[arg-type]

    quick = Quick(LocalKeyWrapper(master_key=os.urandom(32)))
    twin = made_key(quick.wrapper, fleet.clock.wall - 300_000, data_key=fleet.first.data_key)
    fleet.publish([fleet.first.wrapped_too(twin)])
    policy = RingPolicy(kms_timeout_seconds=60)
    was_called.set()
    with fleet.reader(key_wrapper=[Slow(fleet.wrapper), quick], policy=policy) as codec:
        was_called.clear()
        overtaken.clear()
        if is_refused:
            codec._view.limits.failed("denied", codec._view.now())
        wrap = codec._keeper._sync.prove(options)  # type: ignore[arg-type]
        assert wrap is not None
        assert wrap.key_id == quick.wrapper.key_id
        wait_until(lambda: overtaken == [is_overtaken])
        assert not codec._view.limits.is_refused(codec._view.now())


def test_a_quick_answer_is_the_only_call() -> None:
    key = bytearray(b"k" * 32)
    assert Hedges().answers([answering(key), lambda: pytest.fail("called")]) == [key]
    assert key == b"k" * 32


def test_the_key_of_a_call_that_was_overtaken_is_overwritten(gate: threading.Event) -> None:
    late, first = bytearray(b"l" * 32), bytearray(b"f" * 32)
    assert Hedges().answers([after(gate, late), answering(first)]) == [None, first]
    gate.set()
    wait_until(lambda: late == bytes(32))
    assert first == b"f" * 32


def test_failures_keep_the_order_of_the_key_wrappers(gate: threading.Event) -> None:
    slow, quick = failing("denied"), failing("disabled")

    def last() -> Answer:
        gate.set()
        return quick

    assert Hedges().answers([after(gate, slow), last]) == [slow, quick]


def test_an_error_counts_only_if_no_call_is_answered() -> None:
    def fail() -> Answer:
        raise ValueError("the test says so")

    key = bytearray(32)
    assert Hedges().answers([fail, answering(key)]) == [None, key]
    with pytest.raises(ValueError, match="the test says so"):
        Hedges().answers([fail, answering(failing("denied"))])


def test_calls_that_are_made_together_are_all_under_way_at_once_and_keep_their_order() -> None:
    meeting = threading.Barrier(4, timeout=10)

    def ask(number: int) -> int:
        meeting.wait()
        return number

    asks = [partial(ask, number) for number in range(4)]
    assert Hedges().together(asks, pytest.fail) == [0, 1, 2, 3]


def test_if_one_of_the_calls_together_raises_an_error_the_other_results_are_discarded() -> None:
    def fail() -> int:
        raise ValueError("the test says so")

    for asks in ([lambda: 1, fail, lambda: 3], [fail, lambda: 3], [lambda: 1, fail]):
        discarded: list[int] = []
        with pytest.raises(ValueError, match="the test says so"):
            Hedges().together(asks, discarded.append)
        assert discarded == [ask() for ask in asks if ask is not fail]


def test_calls_that_were_overtaken_tie_up_a_bounded_number_of_threads(
    gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sealring.ring.hedges._HEDGE_SECONDS", 0.001)
    hedges, key = Hedges(), bytearray(32)
    before = threading.active_count()
    for _ in range(15):
        hedges.answers([after(gate, failing("denied")), answering(key)])
    ends = threading.Timer(0.2, gate.set)
    ends.start()
    for _ in range(5):
        hedges.answers([after(gate, failing("denied")), answering(key)])
        assert threading.active_count() - before <= 16 + 1
    wait_until(lambda: hedges._threads == 0)


def test_without_a_free_thread_the_calls_are_made_in_sequence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    hedges, key = Hedges(), bytearray(32)
    with suppress(RuntimeError):
        assert hedges.answers([answering(failing("denied")), answering(key)]) == [None, key]
    with suppress(RuntimeError):
        assert hedges.together([answering(key), answering(key)], pytest.fail) == [key, key]
    assert hedges._threads == 0
