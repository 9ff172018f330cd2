"""Calls to KMS and store: each with a deadline of ours, at most four at once, so that a service
that hangs costs neither threads nor latency."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from ..clock import Clock, Deadline, moment_of

_MAX_IN_FLIGHT = 4

T = TypeVar("T")


class _Call(Generic[T]):
    """One call on a thread of its own."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.ended = threading.Event()
        self.is_given_up = False
        self.answer: list[T] = []
        self.error: Exception | None = None


class Calls:
    """Python cannot end a call that hangs, so it is made on a daemon thread and left behind."""

    def __init__(self, clock: Clock, timeout_seconds: float) -> None:
        self._clock = clock
        self._timeout_seconds = timeout_seconds
        self._slots = threading.BoundedSemaphore(_MAX_IN_FLIGHT)
        self.closing = threading.Event()
        self._waiting: set[threading.Event] = set()

    def run(
        self,
        name: str,
        call: Callable[[], T],
        *,
        late: Callable[[], Exception],
        discard: Callable[[T], object] = lambda _: None,
        until: Deadline | None = None,
    ) -> T:
        """What `call` returns or raises; `late()` after the deadline and on close.

        An answer that comes later is given to `discard`: for overwriting a key in it.
        """
        seconds = min(self._timeout_seconds, self.seconds_left(until))
        if self.closing.is_set() or not self._slots.acquire(timeout=seconds):
            raise late()
        this: _Call[T] = _Call()
        self._waiting.add(this.ended)
        try:
            self._begin(name, this, call, discard)
            if not self.closing.is_set():
                this.ended.wait(seconds)
        finally:
            self._waiting.discard(this.ended)
        with this.lock:
            this.is_given_up = True
            if this.answer:
                return this.answer.pop()
            error = this.error
        raise late() if error is None else error

    def seconds_left(self, until: Deadline | None) -> float:
        """Seconds until whoever waits gives up."""
        return 1e6 if until is None else until.ms_left(moment_of(self._clock)) / 1_000

    def close(self) -> None:
        """Ends the waiting for calls under way, and all later calls."""
        self.closing.set()
        for event in list(self._waiting):
            event.set()

    def _begin(
        self, name: str, this: _Call[T], call: Callable[[], T], discard: Callable[[T], object]
    ) -> None:
        thread = threading.Thread(
            target=self._make, args=(this, call, discard), name=f"sealring-{name}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:  # The machine has no thread left: as if nobody had answered.
            self._slots.release()
            this.ended.set()

    def _make(self, this: _Call[T], call: Callable[[], T], discard: Callable[[T], object]) -> None:
        try:
            answer = call()
        except Exception as error:  # Handed to the thread that waits.
            this.error = error
        else:
            with this.lock:
                if this.is_given_up:
                    discard(answer)
                else:
                    this.answer.append(answer)
        finally:
            # Not the deadline but the call's own end frees its slot.
            self._slots.release()
            this.ended.set()
