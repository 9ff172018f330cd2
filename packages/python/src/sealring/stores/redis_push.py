"""Receives notifications of writes to a ring in Redis."""

from collections.abc import Callable
from contextlib import closing
from typing import Any

from .push import Push

# The longest wait for one message, in seconds. Closing can take as long.
_LOOK_SECONDS = 1.0
_HEARTBEAT_SECONDS = 15.0


class RedisPush(Push):
    """Uses a `pubsub` of the client. With a client that has none, nothing is received."""

    def __init__(self, client: object, channel: str, changed: Callable[[], None]) -> None:
        super().__init__(changed)
        self._client: Any = client
        self._channel = channel
        if callable(getattr(client, "pubsub", None)):
            self.start()

    def listen(self) -> None:
        with closing(self._client.pubsub()) as pubsub:
            pubsub.subscribe(self._channel)
            looks = 0
            while not self._closing.is_set():
                message = pubsub.get_message(timeout=_LOOK_SECONDS)
                # The confirmation of the subscription also counts, because there may have been
                # writes before it.
                if message is not None and message["type"] in ("message", "subscribe"):
                    self.heard()
                looks += 1
                if looks * _LOOK_SECONDS >= _HEARTBEAT_SECONDS:
                    # Detects a connection that the other end dropped without closing it.
                    looks = 0
                    pubsub.ping()
