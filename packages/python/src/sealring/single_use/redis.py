"""Redeemed tokens in Redis, as `redisSingleUse` of @sealring/redis keeps them: one key each."""

from datetime import datetime

from ..errors import RingStoreError, SingleUseStoreError
from ..options import number, text
from ..stores.redis import RedisClient, check_redis_client, own_redis_client, redis_failure
from .store import (
    DEFAULT_CLOCK_SKEW_SECONDS,
    check_claim,
    check_clock_skew,
    claim_life_ms,
)

_OWNER = "RedisSingleUse"


class RedisSingleUse:
    """Remembers redeemed tokens in Redis, one key each (`SET NX PX`), until they expire by
    themselves. A token is redeemed at most once as long as the server keeps what it acknowledged. A
    failover that loses writes, a restart without persistence, or an eviction breaks this guarantee.
    Needs `set` on `<prefix>*`.

    Args:
        client: a `redis.Redis` of one server, with a socket timeout; the store does not close it.
        url: instead of a client: `redis://` or `rediss://`; the store then creates a client.
        prefix: the beginning of every key; 1 to 512 characters.
        clock_skew_seconds: how long a token is remembered after it expires; give the value of the
            ring's policy; 0 to 86 400.
        call_timeout_seconds: timeout of the client that the store creates, for connecting and for
            reading; 0.01 to 60.

    A wrong option raises TypeError or ValueError; the message names the option, but does not show
    the URL.
    """

    def __init__(
        self,
        *,
        client: RedisClient | None = None,
        url: str | None = None,
        prefix: str = "sealring:used:",
        clock_skew_seconds: float = DEFAULT_CLOCK_SKEW_SECONDS,
        call_timeout_seconds: float = 5,
    ) -> None:
        if (client is None) == (url is None):
            raise TypeError(f"{_OWNER}: give either client or url")
        self._prefix = text(_OWNER, "prefix", prefix, 512)
        self._skew = check_clock_skew(_OWNER, clock_skew_seconds)
        number(_OWNER, "call_timeout_seconds", call_timeout_seconds, 0.01, 60)
        if client is None:
            client = own_redis_client(_OWNER, url, call_timeout_seconds)
        check_redis_client(_OWNER, client)
        self._client = client

    @property
    def clock_skew_seconds(self) -> float:
        return self._skew

    def claim(self, id: str, expires_at: datetime) -> bool:  # noqa: A002
        """See SingleUseStore.claim."""
        # The caller's clock determines the remaining time, because it also decides whether the
        # token has expired; the clock of the Redis server may differ.
        left_ms = claim_life_ms(check_claim(_OWNER, id, expires_at), self._skew)
        if left_ms <= 0:
            return False
        answer = self._answer(id, left_ms)
        if isinstance(answer, RingStoreError):
            raise SingleUseStoreError.like(answer)
        if answer is not None and answer not in (True, "OK", b"OK"):
            raise SingleUseStoreError("unavailable", "SET returned an unexpected answer")
        return answer is not None

    def _answer(self, id: str, left_ms: int) -> object:  # noqa: A002
        try:
            command = ("SET", self._prefix + id, "", "NX", "PX", str(left_ms))
            return self._client.execute_command(*command)
        except Exception as error:
            return redis_failure(error)
