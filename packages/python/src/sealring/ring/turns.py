"""Runs one task at a time, on one thread: requested tasks first, each in order."""

import heapq
import itertools
import math
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from ..errors import CodecClosedError

T = TypeVar("T")


class Turns:
    """Jobs and timers of a keeper. Other threads only add jobs and timers; the caller of `run_jobs`
    runs the jobs."""

    def __init__(self, steady_ms: Callable[[], float]) -> None:
        self._steady_ms = steady_ms
        self._condition = threading.Condition()
        self._posted: deque[Callable[[], None]] = deque()
        self._asked: deque[Callable[[], None]] = deque()
        self._background: deque[Callable[[], None]] = deque()
        self._timers: list[tuple[int, int, Callable[[], None]]] = []
        self._cancelled: set[int] = set()
        self._order = itertools.count()
        self._is_closed = False

    def asked(self, run: Callable[[], T]) -> "Future[T]":
        """Runs `run` before all background tasks."""
        return self._add(self._asked, run)

    def background(self, run: Callable[[], T]) -> "Future[T]":
        """Runs `run` when no requested task is waiting."""
        return self._add(self._background, run)

    def post(self, run: Callable[[], None]) -> None:
        """Runs `run` before the next job; safe to call from any thread. `run` must be short, and
        must not fail. Does nothing after `close`."""
        with self._condition:
            if not self._is_closed:
                self._posted.append(run)
                self._condition.notify_all()

    def later(self, run: Callable[[], None], delay_ms: float) -> Callable[[], None]:
        """Runs `run` after a delay; it must be short, and must not fail. Returns a function that
        cancels it."""
        due = math.ceil(self._steady_ms() + max(0.0, delay_ms))
        with self._condition:
            order = next(self._order)
            heapq.heappush(self._timers, (due, order, run))
            self._condition.notify_all()

        def cancel() -> None:
            with self._condition:
                if any(timer[1] == order for timer in self._timers):
                    self._cancelled.add(order)

        return cancel

    @property
    def next_timer_ms(self) -> int | None:
        """When the next timer is due, by the monotonic clock."""
        with self._condition:
            while self._timers and self._timers[0][1] in self._cancelled:
                self._cancelled.discard(heapq.heappop(self._timers)[1])
            return self._timers[0][0] if self._timers else None

    def fire_timer(self) -> None:
        """Runs the timer that is due next."""
        if self.next_timer_ms is not None:
            with self._condition:
                run = heapq.heappop(self._timers)[2]
            run()

    def run_posted(self) -> None:
        while (run := self._next_posted()) is not None:
            run()

    def run_jobs(self) -> None:
        """Runs jobs until there is none."""
        self.run_posted()
        while (job := self._next_job()) is not None:
            job()
            self.run_posted()

    def loop(self) -> None:
        """Runs jobs and timers until `close`."""
        while not self._is_closed:
            self.run_jobs()
            due = self.next_timer_ms
            wait_ms = math.inf if due is None else due - self._steady_ms()
            if wait_ms <= 0:
                self.fire_timer()
                continue
            with self._condition:
                seconds = min(wait_ms / 1_000, threading.TIMEOUT_MAX)
                self._condition.wait_for(self._is_called, seconds)

    def close(self) -> None:
        """Ends the loop. Tasks that have not started fail with CodecClosedError."""
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()
            left = [*self._asked, *self._background]
            self._posted.clear()
            self._asked.clear()
            self._background.clear()
        for run in left:
            run()

    def _next_posted(self) -> Callable[[], None] | None:
        with self._condition:
            return self._posted.popleft() if self._posted else None

    def _next_job(self) -> Callable[[], None] | None:
        with self._condition:
            queue = self._asked or self._background
            return queue.popleft() if queue else None

    def _is_called(self) -> bool:
        due = self._timers[0][0] if self._timers else math.inf
        is_due = due <= self._steady_ms()
        return bool(self._is_closed or self._posted or self._asked or self._background or is_due)

    def _add(self, queue: "deque[Callable[[], None]]", run: Callable[[], T]) -> "Future[T]":
        answer: Future[T] = Future()

        def turn() -> None:
            try:
                if self._is_closed:
                    raise CodecClosedError
                answer.set_result(run())
            except Exception as error:  # Passed to the waiting caller, if there is one.
                answer.set_exception(error)

        with self._condition:
            if not self._is_closed:
                queue.append(turn)
                self._condition.notify_all()
                return answer
        turn()
        return answer
