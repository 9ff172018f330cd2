"""Makes the calls to the KMS and the store, each with a deadline and at most four at once, so that
a service that hangs ties up only a few threads and delays a caller only until the deadline."""

import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, InvalidStateError, TimeoutError
from contextlib import suppress
from typing import NamedTuple, TypeVar

from ..clock import Clock, Deadline, RandomSource, moment_of, uniform
from ..errors import CodecClosedError, KeyWrapperError, may_pass

_MAX_IN_FLIGHT = 4
# Number of retries of a call that a caller waits for. Background calls are not retried: the next
# refresh repeats them.
_RETRIES = 3
_RETRY_BASE_SECONDS = 0.1
_RETRY_CAP_SECONDS = 2.0

TOO_LATE = "no answer in time"
"""The message for a call that was abandoned at its deadline."""

T = TypeVar("T")
E = TypeVar("E", bound=Exception)


class CallOptions(NamedTuple):
    """How a call to the KMS or the store is made."""

    is_foreground: bool = False
    """Whether a caller waits for the call. If so, the call is retried up to three times, with full
    jitter."""
    until: Deadline | None = None
    """When the waiting caller gives up."""
    for_token: bool = False
    """Whether a token caused the call. An attacker may have chosen the token, so only entries that
    have never been tried are unwrapped."""
    defer_unwraps: bool = False
    """Whether unwraps that are not urgent are deferred, because the whole fleet reads at once after
    a notification."""


FOREGROUND = CallOptions(is_foreground=True)
BACKGROUND = CallOptions()


class Calls:
    """Makes each call on a daemon thread and abandons the thread if the call hangs, because Python
    cannot end a thread."""

    def __init__(self, clock: Clock, timeout_seconds: float, random: RandomSource) -> None:
        self._clock = clock
        self._random = random
        self._timeout_seconds = timeout_seconds
        self._slots = threading.BoundedSemaphore(_MAX_IN_FLIGHT)
        self.closing = threading.Event()
        self._waited_for: set[Future[object]] = set()

    def run(
        self,
        name: str,
        call: Callable[[], T],
        failure: Callable[[str], E],
        *,
        discard: Callable[[T], object] = lambda _: None,
        until: Deadline | None = None,
    ) -> T | E:
        """The result of `call`, or its failure. An error of the class that `failure` creates is
        kept, without its traceback; any other error is dropped, because its text may be secret.

        An answer that arrives after the deadline, or after close, is passed to `discard`, which
        overwrites a key in it.
        """
        late = failure(TOO_LATE)
        seconds = min(self._timeout_seconds, self.seconds_left(until))
        if self.closing.is_set() or not self._slots.acquire(timeout=seconds):
            return late
        answer: Future[T] = Future()
        self._waited_for.add(answer)  # type: ignore[arg-type]
        made, name = (answer, call, discard), f"sealring-{name}"
        try:
            threading.Thread(target=self._make, args=made, name=name, daemon=True).start()
        except RuntimeError:  # The machine has no thread left: the same as no answer.
            self._slots.release()
            answer.cancel()
        if self.closing.is_set():
            answer.cancel()
        with suppress(CancelledError, TimeoutError):
            answer.exception(seconds)
        self._waited_for.discard(answer)
        if answer.cancel():
            return late
        error = answer.exception()
        if error is None:
            return answer.result()
        if isinstance(error, type(late)):
            # Its traceback, and errors chained to it, can hold a vendor's answer and so a key.
            error.__cause__ = error.__context__ = None
            return error.with_traceback(None)
        return failure(f"an error that is not a {type(late).__name__}")

    def seconds_left(self, until: Deadline | None) -> float:
        return 1e6 if until is None else until.ms_left(moment_of(self._clock)) / 1_000

    def assert_open(self) -> None:
        """Raises CodecClosedError once the codec is closed."""
        if self.closing.is_set():
            raise CodecClosedError

    def pause(self, seconds: float) -> None:
        """Waits for the given time. Raises CodecClosedError as soon as the codec is closed."""
        if self.closing.wait(max(0.0, seconds)):
            raise CodecClosedError

    def wait_to_retry(self, failure: KeyWrapperError, attempt: int, options: CallOptions) -> bool:
        """Waits until the next attempt is due, and returns True; returns False at once if the call
        must not be retried."""
        is_last = not options.is_foreground or attempt > _RETRIES
        if is_last or not may_pass(failure) or self.closing.is_set():
            return False
        longest = min(_RETRY_CAP_SECONDS, _RETRY_BASE_SECONDS * 2**attempt)
        seconds = longest * uniform(self._random)
        if seconds >= self.seconds_left(options.until):
            return False
        self.pause(seconds)
        return True

    def close(self) -> None:
        """Stops waiting for calls in progress, and ends all later calls."""
        self.closing.set()
        for answer in list(self._waited_for):
            answer.cancel()

    def _make(
        self, answer: Future[T], call: Callable[[], T], discard: Callable[[T], object]
    ) -> None:
        try:
            value = call()
        except Exception as error:  # Handed to the waiting thread, if it still waits.
            with suppress(InvalidStateError):
                answer.set_exception(error)
        else:
            try:
                answer.set_result(value)
            except InvalidStateError:
                discard(value)
        finally:
            # A slot is freed when its call ends, not at the deadline.
            self._slots.release()
