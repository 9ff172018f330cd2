"""Hears of writes to a ring in Redis, over a connection and a thread of its own."""

import random
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

# How long one look for a message takes at most: closing waits for it.
_LOOK_SECONDS = 1.0
_HEARTBEAT_SECONDS = 15.0
_FIRST_BACKOFF_SECONDS = 0.1
_LONGEST_BACKOFF_SECONDS = 30.0


class RedisPush:
    """Connects anew after every failure; an optimisation only, so it fails without a word."""

    def __init__(self, client: object, channel: str, changed: Callable[[], None]) -> None:
        self._client = client
        self._channel = channel
        self._changed = changed
        self._closing = threading.Event()
        if callable(getattr(client, "pubsub", None)):
            threading.Thread(target=self._loop, name="sealring-push", daemon=True).start()

    def close(self) -> None:
        """Ends it; the thread goes within a second."""
        self._closing.set()

    def _loop(self) -> None:
        failures = 0
        while not self._closing.is_set():
            pubsub: Any = None
            # Whatever the client raises: nothing depends on push.
            with suppress(Exception):
                pubsub = self._client.pubsub()  # type: ignore[attr-defined]
                pubsub.subscribe(self._channel)
                failures = self._listen(pubsub)
            if pubsub is not None:
                with suppress(Exception):
                    pubsub.close()
            longest = min(
                _LONGEST_BACKOFF_SECONDS, _FIRST_BACKOFF_SECONDS * 2.0 ** min(failures, 16)
            )
            failures += 1
            self._closing.wait(longest * random.random())

    def _listen(self, pubsub: Any) -> int:
        """Until it is closed; whatever goes wrong is raised."""
        looks = 0
        while not self._closing.is_set():
            message = pubsub.get_message(timeout=_LOOK_SECONDS)
            # The confirmation counts too: for what was written before the subscription.
            if message is not None and message["type"] in ("message", "subscribe"):
                self._changed()
            looks += 1
            if looks * _LOOK_SECONDS >= _HEARTBEAT_SECONDS:
                # Finds a connection whose other end is gone without a word.
                looks = 0
                pubsub.ping()
        return 0
