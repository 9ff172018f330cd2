"""Receives notifications of writes, over a separate connection and on a separate thread."""

import random
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress

_FIRST_BACKOFF_SECONDS = 0.1
_LONGEST_BACKOFF_SECONDS = 30.0


class Push(ABC):
    """Reconnects after every failure. Push is only an optimization, so failures are silent."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._closing = threading.Event()
        self._failures = 0

    def start(self) -> None:
        threading.Thread(target=self._loop, name="sealring-push", daemon=True).start()

    def close(self) -> None:
        """Ends the notifications: nothing is called afterwards, and the thread ends within a
        second."""
        self._closing.set()

    @abstractmethod
    def listen(self) -> None:
        """Listens on one connection until `close`; every failure is raised. Calls `heard` once
        connected, because there may have been earlier writes, and then for every write."""

    def heard(self) -> None:
        self._failures = 0
        if not self._closing.is_set():
            self._changed()

    def _loop(self) -> None:
        while not self._closing.is_set():
            # Every error of the client is ignored: push is only an optimization.
            with suppress(Exception):
                self.listen()
            longest = min(
                _LONGEST_BACKOFF_SECONDS, _FIRST_BACKOFF_SECONDS * 2.0 ** min(self._failures, 16)
            )
            self._failures += 1
            self._closing.wait(longest * random.random())
