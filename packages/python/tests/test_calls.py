"""Calls with a deadline, and late answers to them."""

import os
import threading
import time
from collections.abc import Callable
from functools import partial

from sealring import RingStoreError
from sealring.clock import SystemClock
from sealring.derivation import overwrite
from sealring.ring.calls import Calls

late = partial(RingStoreError, "unavailable")


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_key_that_comes_after_the_deadline_is_overwritten() -> None:
    gate, key = threading.Event(), bytearray(b"k" * 32)

    def call() -> bytearray:
        gate.wait(10)
        return key

    answer = Calls(SystemClock(), 0.05, os.urandom).run("unwrap", call, late, discard=overwrite)
    assert isinstance(answer, RingStoreError)
    assert key == b"k" * 32
    gate.set()
    until(lambda: key == bytes(32))


def test_after_close_no_call_is_made() -> None:
    calls, made = Calls(SystemClock(), 10, os.urandom), []
    calls.close()
    assert isinstance(calls.run("read", partial(made.append, 1), late), RingStoreError)
    assert made == []


def test_a_call_that_begins_while_the_codec_closes_is_not_waited_for() -> None:
    calls, gate = Calls(SystemClock(), 60, os.urandom), threading.Event()
    acquire = calls._slots.acquire

    def close_first(**more: float) -> bool:
        calls.close()
        return acquire(**more)

    calls._slots.acquire = close_first  # type: ignore[method-assign, assignment]
    began = time.monotonic()
    assert isinstance(calls.run("read", partial(gate.wait, 10), late), RingStoreError)
    assert time.monotonic() - began < 5
    gate.set()
