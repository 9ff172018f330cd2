"""A ring in Redis, as `redisRing` of @sealring/redis keeps it: one hash."""

import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from ..errors import RingConflictError, RingStoreError, RingStoreErrorKind
from ..failures import rows, unreachable
from ..key_wrapper import OnServiceDate
from ..options import number, text, with_method
from ..ring.document import MAX_DOCUMENT_BYTES
from ..ring.store import StoredRing, check_write, document_text
from ..urls import parsed_url
from .redis_push import RedisPush

_OWNER = "RedisRing"
_REVISION_BYTES = 16

# The same as in @sealring/redis, word for word. Sets `revision` to the revision of the key's value,
# whose type is `kind`, or to `foreign` if no ring store wrote the value.
_REVISION = """
local revision = 'foreign'
if kind == 'hash' then
  local length = redis.call('HSTRLEN', KEYS[1], 'revision')
  if length > 0 and length <= 64 then revision = redis.call('HMGET', KEYS[1], 'revision')[1] end
end
"""
# Only a primary answers, because a replica can be behind, and a key that it does not have yet is
# not absent. Sizes are checked first, so that a value over the limit is never sent. The script is
# run with the `_RO` command, so that a user without the permission to write can run it. It is sent
# in full, because it is short and reads are rare.
_READ = f"""
if not string.find(redis.call('INFO', 'replication'), 'role:master', 1, true) then return {{'replica'}} end
local kind = redis.call('TYPE', KEYS[1]).ok
local time = redis.pcall('TIME')[1] or ''
if kind == 'none' then return {{'absent', time}} end
{_REVISION}
if revision == 'foreign' then return {{'foreign', time, revision}} end
if redis.call('HSTRLEN', KEYS[1], 'document') > tonumber(ARGV[1]) then return {{'too-large', time, revision}} end
local document = redis.call('HMGET', KEYS[1], 'document')[1]
if not document then return {{'foreign', time, revision}} end
return {{'held', time, revision, document}}
"""  # noqa: E501
# A script runs alone, from the comparison to the write. A value that is not a ring, and was read as
# such, is deleted first. PUBLISH fails if the user lacks the permission. By then the write is done,
# so it must not be reported as failed.
_WRITE = f"""
local kind = redis.call('TYPE', KEYS[1]).ok
{_REVISION}
if ARGV[1] ~= (kind == 'none' and 'absent' or '=' .. revision) then return {{'conflict'}} end
if kind ~= 'none' and revision == 'foreign' then redis.call('DEL', KEYS[1]) end
redis.call('HSET', KEYS[1], 'document', ARGV[2], 'revision', ARGV[3])
redis.pcall('PUBLISH', KEYS[1], ARGV[3])
return {{'written'}}
"""

_REFUSALS: dict[str, tuple[RingStoreErrorKind, str]] = {
    "replica": (
        "unavailable",
        "the server is a replica: a failover is under way, or the address is wrong",
    ),
    "foreign": ("corrupt", "the key holds something other than a ring"),
    "too-large": ("too-large", "the document is larger than 256 KiB"),
}
_LOGIN = "the server refused the login: check user and password"
_DENIED = "the user lacks a permission: check its ACL"
_BUSY = "the server cannot serve requests at the moment"
_REPLICA = (
    "the server is a replica, or has too few replicas: a failover is under way, or the address is"
    " wrong"
)
_CLUSTER = "the server is a node of a cluster that does not hold this key at the moment"
# Maps the prefix of an error reply to a kind (Redis serialization protocol specification, "Simple
# errors").
ERROR_TABLE: dict[str, tuple[RingStoreErrorKind, str]] = {
    **rows(("denied", _LOGIN), "NOAUTH WRONGPASS"),
    "NOPERM": ("denied", _DENIED),
    "DENIED": ("denied", "the server is in protected mode and refuses other machines"),
    "WRONGTYPE": ("corrupt", "the key holds something other than a ring"),
    # Not `read-only`, which means that no server may write through this store: after the failover
    # writes succeed.
    **rows(("unavailable", _REPLICA), "READONLY NOREPLICAS MASTERDOWN UNBLOCKED"),
    "OOM": ("unavailable", "the server is out of memory (maxmemory)"),
    "MISCONF": ("unavailable", "the server cannot persist data, so it refuses writes"),
    **rows(("unavailable", _BUSY), "LOADING BUSY TRYAGAIN"),
    **rows(("unavailable", _CLUSTER), "CLUSTERDOWN MOVED ASK"),
}
# redis-py drops the error code of a reply if it has a class for that code.
_CODES_OF_CLASSES = {
    "AuthenticationError": "NOAUTH",
    "AuthenticationWrongNumberOfArgsError": "NOAUTH",
    "NoPermissionError": "NOPERM",
    "ReadOnlyError": "READONLY",
    "OutOfMemoryError": "OOM",
    "BusyLoadingError": "LOADING",
    "MasterDownError": "MASTERDOWN",
    "TryAgainError": "TRYAGAIN",
    "ClusterDownError": "CLUSTERDOWN",
    "MovedError": "MOVED",
    "AskError": "ASK",
}
# The classes of redis-py for clients of several servers.
_OF_SEVERAL = frozenset({"RedisCluster", "Sentinel"})
_DATABASE = re.compile("(?:/[0-9]*)?", re.ASCII)
_REPLY_CODE = re.compile("([A-Z]{2,32}) ")
_DENIED_IN_SCRIPT = re.compile(
    "(?:ERR )?(?:The user executing the script can't|ACL failure in script)"
)


class RedisClient(Protocol):
    """The part of a `redis.Redis` that is used."""

    def execute_command(self, *args: object) -> object: ...


class RedisRing:
    """A ring in Redis 7.0 or later: one hash, which a script compares and replaces. While the
    script runs, Redis runs no other command. Only a primary is read. Needs the permissions that the
    README of @sealring/redis lists for a member; a reader needs no write access, only `info`,
    `type`, `hstrlen`, `hmget` and `eval_ro`. If the user may subscribe, the process is notified of
    writes at once.

    Args:
        client: a `redis.Redis` of one server, with a socket timeout; the store does not close it.
        url: instead of a client: `redis://` or `rediss://`; the store then creates a client.
        key: where the ring is; 1 to 512 characters.
        call_timeout_seconds: timeout of the client that the store creates, for connecting and for
            reading; 0.01 to 60.

    A wrong option raises TypeError or ValueError; the message names the option, but does not show
    the URL.
    """

    kind = "redis"

    def __init__(
        self,
        *,
        client: RedisClient | None = None,
        url: str | None = None,
        key: str = "sealring:ring",
        call_timeout_seconds: float = 5,
    ) -> None:
        if (client is None) == (url is None):
            raise TypeError(f"{_OWNER}: give either client or url")
        self._key = text(_OWNER, "key", key, 512)
        number(_OWNER, "call_timeout_seconds", call_timeout_seconds, 0.01, 60)
        if client is None:
            client = own_redis_client(_OWNER, url, call_timeout_seconds)
        check_redis_client(_OWNER, client)
        self._client = client
        self.location = _location_of(url, key)

    def read(self, *, on_service_date: OnServiceDate | None = None) -> StoredRing | None:
        """The document; None when a primary answers that the key does not exist. Raises
        RingStoreError, without any part of the server's error, for every other failure."""
        fields = self._run("EVAL_RO", _READ, MAX_DOCUMENT_BYTES)
        status = fields[0].decode("ascii", "replace")
        if len(fields) > 1 and on_service_date is not None:
            with suppress(ValueError):
                on_service_date(float(fields[1]) * 1_000)
        if status == "absent":
            return None
        revision = fields[2].decode("latin-1") if len(fields) > 2 else None
        if status != "held" or len(fields) != 4 or revision is None:
            raise _refusal(status, revision)
        return StoredRing(document_text(fields[3], "the document", revision), revision)

    def write(
        self,
        document: str,
        *,
        expected: str | None,
        on_service_date: OnServiceDate | None = None,  # noqa: ARG002 - a write returns no time.
    ) -> str:
        """Replaces the document, if its revision is `expected`. Raises RingConflictError or
        RingStoreError; a write that fails as `unavailable` may have succeeded."""
        check_write(_OWNER, document, expected)
        revision = secrets.token_urlsafe(_REVISION_BYTES)
        condition = "absent" if expected is None else f"={expected}"
        fields = self._run("EVAL", _WRITE, condition, document, revision)
        status = fields[0].decode("ascii", "replace")
        if status == "conflict":
            raise RingConflictError
        if status != "written":
            raise _refusal(status, None)
        return revision

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Calls `changed` on a separate thread after each write, and after each reconnection
        because writes may have been missed. Never calls it if the client has no `pubsub`."""
        push = RedisPush(self._client, self._key, changed)
        return push.close

    def _run(self, command: str, script: str, *values: object) -> list[bytes]:
        answer = self._answer(command, script, values)
        if isinstance(answer, RingStoreError):
            raise answer
        told = answer if isinstance(answer, list) else []
        fields = [field if isinstance(field, bytes) else str(field).encode() for field in told]
        return fields or [b""]

    def _answer(self, command: str, script: str, values: tuple[object, ...]) -> object:
        try:
            return self._client.execute_command(command, script, 1, self._key, *values)
        except Exception as error:
            return redis_failure(error)


def _refusal(status: str, revision: str | None) -> RingStoreError:
    kind, detail = _REFUSALS.get(
        status, ("unavailable", "the script returned an unexpected answer")
    )
    return RingStoreError(kind, detail, revision=None if kind == "unavailable" else revision)


def redis_failure(error: Exception) -> RingStoreError:
    """Classifies an error by its class, or by the code at the start of its reply. In Redis 7, a
    missing permission inside a script has no separate code (acl.c, script.c)."""
    message = str(error)
    reply = _REPLY_CODE.match(f"{message} ")
    names = [base.__name__ for base in type(error).__mro__]
    codes = [_CODES_OF_CLASSES.get(name) for name in names]
    is_connection = "ConnectionError" in names or "TimeoutError" in names
    if _DENIED_IN_SCRIPT.match(message):
        codes.insert(0, "NOPERM")
    elif reply is not None and not is_connection:
        codes.insert(0, reply[1])
    code = next((one for one in codes if one in ERROR_TABLE), None)
    if code is not None:
        kind, detail = ERROR_TABLE[code]
        return RingStoreError(kind, detail, code=code)
    return unreachable(error, "the server") or RingStoreError("unavailable", "the call failed")


def _location_of(url: str | None, key: str) -> str:
    """Without the user and the password that the URL can contain."""
    parts = None if url is None else parsed_url(url)
    if parts is None:
        return f"redis key {key}"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}, key {key}"


def check_redis_client(owner: str, client: object) -> None:
    """Raises TypeError for anything but the client of one server."""
    with_method(owner, "client", client, "execute_command")
    if _OF_SEVERAL.isdisjoint(base.__name__ for base in type(client).__mro__):
        return
    raise TypeError(
        f"{owner}: client must be the client of one server, not of a cluster or of Sentinel: give "
        "the client of one node, or of the primary"
    )


def own_redis_client(owner: str, url: object, timeout: float) -> RedisClient:
    """Creates a client for a URL. Raises TypeError or ValueError for an invalid URL, without
    showing it."""
    given = text(owner, "url", url, 4_096)
    if not given.startswith(("redis://", "rediss://")):
        raise ValueError(f"{owner}: url must be a redis:// or rediss:// URL")
    parts = parsed_url(given)
    # redis-py ignores any other path.
    is_readable = parts is not None and _DATABASE.fullmatch(parts.path) is not None
    client = _client_of(given, timeout) if is_readable else None
    if client is None:
        raise ValueError(
            f"{owner}: url must be a redis:// or rediss:// URL with a host and a valid port, whose "
            "path is the number of a database; percent-encode the user and the password"
        )
    return client


def _client_of(url: str, timeout: float) -> RedisClient | None:
    """None if redis-py rejects the URL, whose parts its errors contain."""
    import redis  # noqa: PLC0415 - the extra `redis`.

    try:
        client: RedisClient = redis.Redis.from_url(
            url, socket_timeout=timeout, socket_connect_timeout=timeout
        )
    except Exception:
        return None
    return client
