"""The one thread that runs the keeper's passes: one flight at a time, an older result never
replaces a newer one."""

import threading

from ..errors import CodecClosedError
from .keeper import RingKeeper


class _Wish:
    """A refresh that somebody waits for."""

    def __init__(self) -> None:
        self.is_done = threading.Event()
        self.failure: Exception | None = None


class Background:
    """A daemon thread: it does not keep the process alive."""

    def __init__(self, keeper: RingKeeper) -> None:
        self._keeper = keeper
        self._condition = threading.Condition(threading.Lock())
        self._wish: _Wish | None = None
        self._is_woken = False
        self._is_stopped = False
        self._thread = threading.Thread(target=self._loop, name="sealring-refresh", daemon=True)

    def start(self) -> None:
        self._keeper.wake = self._wake
        self._thread.start()

    def refresh(self) -> None:
        """Waits for a pass that begins after this call; calls at the same time share one.

        Raises:
            RingStoreError | KeyWrapperError | CodecClosedError: what went wrong.
        """
        with self._condition:
            if self._is_stopped:
                raise CodecClosedError
            wish = self._wish = self._wish or _Wish()
            self._condition.notify_all()
        wish.is_done.wait()
        if wish.failure is not None:
            raise wish.failure.with_traceback(None)

    def stop(self) -> None:
        """Ends the thread, and waits for it."""
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
        while True:
            with self._condition:
                seconds = self._keeper.ms_until_next / 1_000
                self._condition.wait_for(self._is_called, seconds)
                wish, self._wish = self._wish, None
                is_woken, self._is_woken = self._is_woken, False
                is_stopped = self._is_stopped
            if is_stopped:
                _end(wish, CodecClosedError())
                return
            if wish is None and is_woken:
                self._keeper.run_woken()
                continue
            is_wished = wish is not None
            _end(wish, self._keeper.run(reads=is_wished, is_foreground=is_wished))

    def _is_called(self) -> bool:
        return self._is_stopped or self._is_woken or self._wish is not None


def _end(wish: _Wish | None, failure: Exception | None) -> None:
    if wish is not None:
        wish.failure = failure
        wish.is_done.set()
