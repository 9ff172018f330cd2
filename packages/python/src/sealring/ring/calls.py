"""Makes the calls to the store and to each KMS, each with a deadline. Each service has separate
slots, so a service that hangs delays no call to the others, ties up a bounded number of threads,
and delays a caller only until the deadline."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, InvalidStateError, TimeoutError
from contextlib import contextmanager, suppress
from typing import Generic, NamedTuple, TypeVar

from ..clock import Clock, Deadline, Moment, RandomSource, age_ms, later, moment_of, uniform
from ..errors import CodecClosedError, KeyWrapperError, may_pass

# Number of calls to one service at the same time. Calls that hang count too.
_SLOTS = 4
# While that many calls hang, further calls are made one at a time, with growing pauses. These are
# the numbers of threads from which on a call has to wait: a call of a revocation, which otherwise
# does not wait for a pause, and every other call.
_MOST_THREADS_OF_REVOCATIONS = 16
_MOST_THREADS = 32
# Number of retries of a call that a caller waits for. Background calls are not retried: the next
# refresh repeats them.
_RETRIES = 3
_RETRY_BASE_SECONDS = 0.1
_RETRY_CAP_SECONDS = 2.0
_NEVER = float("inf")

TOO_LATE = "no answer in time"
"""The message for a call that was abandoned at its deadline."""

STORE = "store"
"""The name of the store among the services; every other name is that of a KMS."""

T = TypeVar("T")
E = TypeVar("E", bound=Exception)


class CallOptions(NamedTuple):
    """How a call to the KMS or the store is made."""

    is_foreground: bool = False
    """Whether a caller waits for the call. If so, the call is retried up to three times, with full
    jitter."""
    is_hedged: bool = False
    """Whether a KMS check calls the next key wrapper before the one before it has failed, if that
    takes long."""
    until: Deadline | None = None
    """When the caller gives up."""
    for_token: bool = False
    """Whether a token caused the call. An attacker may have chosen the token, so only entries that
    have never been tried are unwrapped."""
    defer_unwraps: bool = False
    """Whether unwraps that are not urgent are deferred, because the whole fleet reads at once after
    a notification."""

    @property
    def is_caused(self) -> bool:
        """Whether a token or a notification caused the call: an attacker can send either to every
        process at the same time."""
        return self.for_token or self.defer_unwraps


FOREGROUND = CallOptions(is_foreground=True)
BACKGROUND = CallOptions()


class _Slots:
    """The slots of one service. A slot is freed when its call ends, not at the deadline.

    A call may never return, even after the service has recovered. So while four calls hang, further
    calls are made with pauses, each half as long as the service has been silent: the number of
    threads grows only with the logarithm of the outage. As soon as any call ends, the next one is
    made at once."""

    def __init__(self, clock: Clock, timeout_seconds: float) -> None:
        self._clock = clock
        self._timeout_ms = timeout_seconds * 1_000
        # Calls that a caller waits for, and calls that were abandoned and have not ended.
        self._waited_for = 0
        self._hanging = 0
        # When the first call since the last answer was abandoned.
        self._silent_since: Moment | None = None
        self._next_at: Deadline | None = None

    def seconds_until_free(self, *, is_urgent: bool) -> float:
        """0 if a call may be made now; infinite if a call must end first."""
        threads = self._waited_for + self._hanging
        if threads < _SLOTS:
            return 0
        if self._waited_for > 0 or threads >= _MOST_THREADS:
            return _NEVER
        if self._next_at is None or (is_urgent and threads < _MOST_THREADS_OF_REVOCATIONS):
            return 0
        return self._next_at.ms_left(moment_of(self._clock)) / 1_000

    def take(self) -> None:
        self._waited_for += 1

    def abandoned(self) -> None:
        """A call that was waited for until now is abandoned at its deadline."""
        now = moment_of(self._clock)
        self._waited_for -= 1
        self._hanging += 1
        if self._silent_since is None:
            self._silent_since = now
        silent_ms = age_ms(self._silent_since, now)
        self._next_at = later(now, max(self._timeout_ms, silent_ms / 2))

    def ended(self, *, was_abandoned: bool) -> None:
        if was_abandoned:
            self._hanging -= 1
        else:
            self._waited_for -= 1

    def answered(self) -> None:
        """The service answers, so the next call need not wait."""
        self._silent_since = self._next_at = None


class _Call(Generic[T]):
    """A call in progress."""

    def __init__(self, slots: _Slots) -> None:
        self.slots = slots
        self.answer: Future[T] = Future()
        self.is_abandoned = False
        self.has_ended = False


class Calls:
    """Makes each call on a daemon thread and abandons the thread if the call hangs, because Python
    cannot end a thread."""

    def __init__(self, clock: Clock, timeout_seconds: float, random: RandomSource) -> None:
        self._clock = clock
        self._random = random
        self._timeout_seconds = timeout_seconds
        self._slots: dict[str, _Slots] = {}
        # Guards the slots and `_waited_for`; notified when a slot may be free, and on close.
        self._changed = threading.Condition()
        self._is_urgent = False
        self.closing = threading.Event()
        self._waited_for: set[Future[object]] = set()

    def run(
        self,
        service: str,
        name: str,
        call: Callable[[], T],
        failure: Callable[[str], E],
        *,
        discard: Callable[[T], object] = lambda _: None,
        until: Deadline | None = None,
    ) -> T | E:
        """The result of `call`, or its failure. An error of the class that `failure` creates is
        kept, without its traceback; any other error is dropped, because its text may be secret.

        One deadline covers the wait for a slot and the call. An answer that arrives after the
        deadline, or after close, is passed to `discard`, which overwrites a key in it. So is an
        answer that this process sees too late, because it was stopped meanwhile: it no longer shows
        the present state of the service.
        """
        late = failure(TOO_LATE)
        asked = moment_of(self._clock)
        seconds = min(self._timeout_seconds, self.seconds_left(until))
        end = time.monotonic() + seconds
        made: _Call[T] | None = self._taken(service, end)
        if made is None:
            return late
        answer: Future[T] = made.answer
        work = (made, call, discard)
        try:
            threading.Thread(
                target=self._make, args=work, name=f"sealring-{name}", daemon=True
            ).start()
        except RuntimeError:  # The machine has no thread left: the same as no answer.
            self._ended(made, was_made=False)
            answer.cancel()
        with suppress(CancelledError, TimeoutError):
            answer.exception(max(0.0, end - time.monotonic()))
        self._no_longer_waited_for(made)
        if answer.cancelled():
            return late
        error = answer.exception()
        if error is None:
            if age_ms(asked, moment_of(self._clock)) > seconds * 1_000:
                discard(answer.result())
                return late
            return answer.result()
        if isinstance(error, type(late)):
            # Its traceback, and errors chained to it, can hold a vendor's answer and so a key.
            error.__cause__ = error.__context__ = None
            return error.with_traceback(None)
        return failure(f"an error that is not a {type(late).__name__}")

    @contextmanager
    def urgent(self) -> Iterator[None]:
        """While a revocation runs, calls to the store do not wait for the pause between calls to a
        service that hangs. For the keeper's thread, which makes one call at a time."""
        self._is_urgent = True
        try:
            yield
        finally:
            self._is_urgent = False

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
        """Stops waiting for slots and for calls in progress, and ends all later calls."""
        with self._changed:
            self.closing.set()
            waited_for = list(self._waited_for)
            self._changed.notify_all()
        for answer in waited_for:
            answer.cancel()

    def _taken(self, service: str, end: float) -> "_Call[T] | None":
        """A call with a slot, once one is free; None at the deadline and on close."""
        with self._changed:
            if service not in self._slots:
                self._slots[service] = _Slots(self._clock, self._timeout_seconds)
            slots = self._slots[service]
            while not self.closing.is_set():
                left = end - time.monotonic()
                if left <= 0:
                    return None
                is_urgent = self._is_urgent and service == STORE
                wait = slots.seconds_until_free(is_urgent=is_urgent)
                if wait <= 0:
                    made: _Call[T] = _Call(slots)
                    slots.take()
                    self._waited_for.add(made.answer)  # type: ignore[arg-type]
                    return made
                self._changed.wait(min(wait, left))
        return None

    def _no_longer_waited_for(self, made: "_Call[T]") -> None:
        with self._changed:
            self._waited_for.discard(made.answer)
            # Has no effect on an answer that has arrived.
            if made.answer.cancel() and not made.has_ended:
                made.is_abandoned = True
                made.slots.abandoned()
                self._changed.notify_all()

    def _ended(self, made: "_Call[T]", *, was_made: bool) -> None:
        with self._changed:
            made.has_ended = True
            made.slots.ended(was_abandoned=made.is_abandoned)
            if was_made:
                made.slots.answered()
            self._changed.notify_all()

    def _make(
        self, made: "_Call[T]", call: Callable[[], T], discard: Callable[[T], object]
    ) -> None:
        try:
            value = call()
        except Exception as error:  # Handed to the waiting thread, if it still waits.
            with suppress(InvalidStateError):
                made.answer.set_exception(error)
        else:
            try:
                made.answer.set_result(value)
            except InvalidStateError:
                discard(value)
        finally:
            self._ended(made, was_made=True)
