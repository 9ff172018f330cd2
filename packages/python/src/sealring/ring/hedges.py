"""Calls that are made at the same time: those to several key wrappers, of which the next one is
called before a slow one has failed, and those for several entries."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import TypeVar

from ..derivation import overwrite
from ..errors import KeyWrapperError

# How long one key wrapper may take before the next one is called in parallel.
_HEDGE_SECONDS = 0.5
# Number of threads that may wait for calls, those included that were overtaken.
_MOST_THREADS = 16

Answer = bytearray | KeyWrapperError

T = TypeVar("T")


class Hedges:
    """Waits for each call on its own thread. A call that was overtaken ends at its own deadline,
    and its answer is overwritten."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads = 0

    def answers(self, asks: Sequence[Callable[[], Answer]]) -> list[Answer | None]:
        """The answer of each call, in order. As soon as one is a data key, no further call is made,
        and every other answer is None."""
        begun: list[Future[Answer]] = []
        for ask in asks:
            begun.append(self._begin(ask))
            wait(begun[-1:], _HEDGE_SECONDS)
            if any(map(_is_good, begun)):
                break
        pending = set(begun)
        while pending and not any(map(_is_good, begun)):
            pending = wait(pending, return_when=FIRST_COMPLETED).not_done
        return _with_first(begun)

    def together(self, asks: Sequence[Callable[[], T]], discard: Callable[[T], object]) -> list[T]:
        """The results of all calls, in order, which are made at the same time. If one of them
        raises an error, the results of the others are passed to `discard`."""
        *others, last = asks
        # This thread makes one of them itself.
        begun = [*map(self._begin, others), _done(last)]
        wait(begun)
        failed = next((one for one in begun if one.exception() is not None), None)
        if failed is None:
            return [one.result() for one in begun]
        for one in begun:
            if one.exception() is None:
                discard(one.result())
        # Raises the error.
        return [failed.result()]

    def _begin(self, ask: Callable[[], T]) -> "Future[T]":
        answer: Future[T] = Future()

        def run_counted() -> None:
            try:
                _run(ask, answer)
            finally:
                with self._lock:
                    self._threads -= 1

        with self._lock:
            has_room = self._threads < _MOST_THREADS
            self._threads += has_room
        if not has_room:
            _run(ask, answer)
            return answer
        try:
            threading.Thread(target=run_counted, name="sealring-hedge", daemon=True).start()
        except RuntimeError:  # The machine has no thread left.
            run_counted()
        return answer


def _done(ask: Callable[[], T]) -> "Future[T]":
    answer: Future[T] = Future()
    _run(ask, answer)
    return answer


def _run(ask: Callable[[], T], answer: "Future[T]") -> None:
    try:
        answer.set_result(ask())
    except BaseException as error:  # Passed to the waiting thread.
        answer.set_exception(error)


def _is_good(answer: "Future[Answer]") -> bool:
    """Whether a call has ended with a data key."""
    if not answer.done() or answer.exception() is not None:
        return False
    return isinstance(answer.result(), bytearray)


def _with_first(begun: Sequence["Future[Answer]"]) -> list[Answer | None]:
    first = next((answer for answer in begun if _is_good(answer)), None)
    if first is None:
        return [answer.result() for answer in begun]
    for answer in begun:
        if answer is not first:
            answer.add_done_callback(_discard)
    return [first.result() if answer is first else None for answer in begun]


def _discard(answer: "Future[Answer]") -> None:
    if _is_good(answer):
        overwrite(answer.result())
