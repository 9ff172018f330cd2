"""The one thread that runs the keeper's passes: one flight at a time, an older result never
replaces a newer one."""

import threading
from concurrent.futures import Future
from contextlib import suppress

from ..errors import CodecClosedError
from .keeper import RingKeeper


class Background:
    """A daemon thread: it does not keep the process alive."""

    def __init__(self, keeper: RingKeeper) -> None:
        self._keeper = keeper
        self._condition = threading.Condition()
        # A refresh that somebody waits for, and what went wrong with it.
        self._wish: Future[Exception | None] | None = None
        self._is_woken = False
        self._is_stopped = False
        self._thread = threading.Thread(target=self._loop, name="sealring-refresh", daemon=True)

    def start(self) -> None:
        self._keeper.wake = self._wake
        self._thread.start()

    def refresh(self) -> None:
        """Waits for a pass that begins after this call, and raises what went wrong; calls at the
        same time share one."""
        with self._condition:
            if self._is_stopped:
                raise CodecClosedError
            wish = self._wish = self._wish or Future()
            self._condition.notify_all()
        failure = wish.result()
        if failure is not None:
            raise failure.with_traceback(None)

    def stop(self) -> None:
        with self._condition:
            self._is_stopped = True
            self._condition.notify_all()
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _wake(self) -> None:
        with self._condition:
            self._is_woken = True
            self._condition.notify_all()

    def _loop(self) -> None:
        is_stopped = False
        while not is_stopped:
            with self._condition:
                self._condition.wait_for(self._is_called, self._keeper.ms_until_next / 1_000)
                wish, self._wish = self._wish, None
                self._is_woken, is_stopped = False, self._is_stopped
            failure: Exception | None = CodecClosedError()
            # It may be closed at any moment of a turn.
            with suppress(CodecClosedError):
                failure = failure if is_stopped else self._keeper.turn(is_wished=wish is not None)
            if wish is not None:
                wish.set_result(failure)

    def _is_called(self) -> bool:
        return self._is_stopped or self._is_woken or self._wish is not None
