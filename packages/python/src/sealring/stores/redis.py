"""A ring in Redis, as `redisRing` of @sealring/redis keeps it: one hash."""

import re
from contextlib import suppress
from typing import Protocol

from ..errors import RingStoreError, RingStoreErrorKind
from ..key_wrapper import OnServiceDate
from ..options import number, text, with_method
from ..ring.document import MAX_DOCUMENT_BYTES
from ..ring.store import StoredRing, document_text

_OWNER = "RedisRing"
_MAX_REVISION_BYTES = 64

# As in @sealring/redis. A replica may be behind, and what it does not have yet is not absent: only
# a primary answers. Sizes are looked at first, so that an over-long value is never sent. Run as
# `_RO`: a user who may not write may run it; and whole, since it is short and reads are rare.
_READ = """
if not string.find(redis.call('INFO', 'replication'), 'role:master', 1, true) then return {'replica'} end
local kind = redis.call('TYPE', KEYS[1]).ok
local time = redis.pcall('TIME')[1] or ''
if kind == 'none' then return {'absent', time} end
if kind ~= 'hash' then return {'foreign'} end
if redis.call('HSTRLEN', KEYS[1], 'document') > tonumber(ARGV[1]) then return {'too-large'} end
if redis.call('HSTRLEN', KEYS[1], 'revision') > tonumber(ARGV[2]) then return {'foreign'} end
local held = redis.call('HMGET', KEYS[1], 'document', 'revision')
if not held[1] or not held[2] then return {'foreign'} end
return {'held', time, held[1], held[2]}
"""  # noqa: E501

_REFUSALS: dict[str, tuple[RingStoreErrorKind, str]] = {
    "replica": ("unavailable", "the server is a replica: a failover, or a wrong address"),
    "foreign": ("corrupt", "the key holds something that is no ring"),
    "too-large": ("too-large", "over 256 KiB"),
}
# By class, since redis-py drops the code of the replies it knows; a code where it is left.
_DENIED = frozenset(
    "AuthenticationError AuthenticationWrongNumberOfArgsError NoPermissionError "
    "NOAUTH WRONGPASS NOPERM DENIED".split()
)
_DENIED_IN_SCRIPT = re.compile(
    "(?:ERR )?(?:The user executing the script can't|ACL failure in script)"
)


class RedisClient(Protocol):
    """The part of a `redis.Redis` that is used."""

    def execute_command(self, *args: object) -> object: ...


class RedisRing:
    """Reads a ring from Redis 7.0 or later. Needs the rights of a reader in the README of
    @sealring/redis: no write, and `info`, `type`, `hstrlen`, `hmget`, `eval_ro`.

    Args:
        client: a `redis.Redis` of one server, with a socket timeout; stays yours.
        url: instead of a client: `redis://` or `rediss://`; one of its own is then made.
        key: where the ring is; 1 to 512 characters.
        timeout_seconds: of the client of its own, for connecting and for reading; 0.01 to 60.

    A wrong option is a TypeError or a ValueError that names it; the URL is not shown.
    """

    kind = "redis"

    def __init__(
        self,
        *,
        client: RedisClient | None = None,
        url: str | None = None,
        key: str = "sealring:ring",
        timeout_seconds: float = 5,
    ) -> None:
        if (client is None) == (url is None):
            raise TypeError(f"{_OWNER}: give either client or url")
        self._key = text(_OWNER, "key", key, 512)
        number(_OWNER, "timeout_seconds", timeout_seconds, 0.01, 60)
        self._client = _own_client(url, timeout_seconds) if client is None else client
        with_method(_OWNER, "client", self._client, "execute_command")

    def read(self, *, on_service_date: OnServiceDate | None = None) -> StoredRing | None:
        """The document; None when a primary says that the key does not exist. RingStoreError, with
        nothing of the server's in it, for everything else."""
        answer = self._run()
        if isinstance(answer, RingStoreError):
            raise answer
        told = answer if isinstance(answer, list) else []
        fields = [field if isinstance(field, bytes) else str(field).encode() for field in told]
        status = fields[0].decode("ascii", "replace") if fields else ""
        if len(fields) > 1 and on_service_date is not None:
            with suppress(ValueError):
                on_service_date(float(fields[1]) * 1_000)
        if status == "absent":
            return None
        if status != "held" or len(fields) != 4:
            kind, detail = _REFUSALS.get(status, ("unavailable", "not an answer of the script"))
            raise RingStoreError(kind, detail)
        return StoredRing(document_text(fields[2], "the document"), fields[3].decode("latin-1"))

    def _run(self) -> object:
        arguments = (1, self._key, MAX_DOCUMENT_BYTES, _MAX_REVISION_BYTES)
        try:
            return self._client.execute_command("EVAL_RO", _READ, *arguments)
        except Exception as error:
            return _failure(error)


def _failure(error: Exception) -> RingStoreError:
    """By its class, or by the code its reply begins with. What a user may not do inside a script
    has no code of its own in Redis 7 (acl.c, script.c)."""
    message = str(error)
    names = {message.split(" ", 1)[0], *(base.__name__ for base in type(error).__mro__)}
    if names & _DENIED or _DENIED_IN_SCRIPT.match(message):
        return RingStoreError("denied", "the server refused the user, or what it asked for")
    return RingStoreError("unavailable", "the server cannot be reached, or cannot serve now")


def _own_client(url: object, timeout: float) -> RedisClient:
    if not text(_OWNER, "url", url, 4_096).startswith(("redis://", "rediss://")):
        raise ValueError(f"{_OWNER}: url must be a redis:// or rediss:// URL")
    import redis  # noqa: PLC0415 - the extra `redis`.

    client: RedisClient = redis.Redis.from_url(
        url, socket_timeout=timeout, socket_connect_timeout=timeout
    )
    return client
