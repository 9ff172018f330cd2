"""The codec that servers hold."""

import os
import re
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, TimeoutError
from contextlib import suppress
from datetime import datetime

from .clock import Clock, Moment, RandomSource, SystemClock
from .errors import CodecClosedError, refused
from .formats import native
from .formats.sealer import SealingState
from .formats.tokens import NativeTokens, PythonTokens, TokenFormat, Tokens, format_of
from .health import CodecHealth
from .key_wrapper import EntrySigner, KeyWrapper, Supports
from .options import flag, label, number, one_of, sequence, show, text, with_method
from .ring.calls import FOREGROUND, Calls
from .ring.create_keeper import create_keeper
from .ring.keeper import RingKeeper
from .ring.policy import RingPolicy
from .ring.start import Create, Role
from .ring.store import ReadableRing
from .ring.view import RingView
from .ring.wraps import KeyWraps

_OWNER = "KmsCodec"
_FORMATS = ("sealring", "python")
_ROLES = ("member", "reader")
_CREATE = ("if-absent", "now", "never")
# Longest wait of `prepare`.
_PREPARE_SECONDS = 2.0
_MAX_KEY_WRAPPERS = 8
_PROVIDER = re.compile("[a-z0-9-]{1,64}", re.ASCII)
_MAX_TOKEN_LENGTH = 256 * 1024
# The largest value of `max_token_length`, which cannot be unlimited.
_MOST_TOKEN_LENGTH = 16 * 1024 * 1024


class KmsCodec:
    """Seals and unseals MCP `requestState` under the data keys of a Sealring ring.

    A `RequestStateCodec` of the MCP Python SDK 2.3.0. `seal` and `unseal` are synchronous and do no
    I/O: a thread reads and writes the ring, and calls the KMS. A member creates, rotates and
    repairs the ring, as TypeScript members do; a reader seals and unseals, but writes nothing to
    the store. Thread-safe; after a fork, create a new codec in the child.

    Args:
        key_wrapper: what wraps data keys: one key wrapper or a list of 1 to 8. Each of them wraps
            every data key, and any one of them can unwrap it.
        ring: where the ring document is stored.
        ring_name: bound into every wrap and every derived key; 1 to 64 characters of
            `[A-Za-z0-9._-]`.
        role: `member` or `reader`; a reader needs no permission to wrap or to write to the store.
        create: when a starting member creates a ring. `if-absent`: once the ring has been absent
            for `create_after_seconds`.
        wrap_quorum: how many key wrappers must answer to publish a key; missing wraps are added
            later. By default all.
        dangerously_trust_store: accept wraps that do not authenticate their origin. Anyone who can
            write to the store can then mint tokens.
        format: the token format to seal with.
        accept: what may be unsealed; by default only `format`.
        policy: the times of the ring; they must be the same on every member.
        accept_keys_created_after: keys created before this time count as revoked; use it for a
            start after a leak. The time must have a time zone.
        max_token_length: length in characters of the longest token that is sealed or unsealed; 102
            to 16 777 216.
        clock: injected in tests.
        random: injected in tests; returns the given number of unpredictable bytes.

    Raises:
        TypeError: for an option of the wrong type.
        ValueError: for an option that is out of range; the message names the option.
    """

    def __init__(
        self,
        *,
        key_wrapper: KeyWrapper | Sequence[KeyWrapper],
        ring: ReadableRing,
        ring_name: str = "default",
        role: Role = "member",
        create: Create = "if-absent",
        wrap_quorum: int | None = None,
        dangerously_trust_store: bool = False,
        format: TokenFormat = "sealring",
        accept: Sequence[TokenFormat] | None = None,
        policy: RingPolicy | None = None,
        accept_keys_created_after: datetime | None = None,
        max_token_length: int = _MAX_TOKEN_LENGTH,
        clock: Clock | None = None,
        random: RandomSource = os.urandom,
    ) -> None:
        if policy is not None and not isinstance(policy, RingPolicy):
            raise TypeError(f"{_OWNER}: policy must be a RingPolicy, got {show(policy)}")
        self._policy = policy or RingPolicy()
        bounds = native.SHORTEST_TOKEN, _MOST_TOKEN_LENGTH
        number(_OWNER, "max_token_length", max_token_length, *bounds, whole=True)
        self._max_token_length = max_token_length
        self._role: Role = one_of(_OWNER, "role", role, _ROLES)  # type: ignore[assignment]
        one_of(_OWNER, "create", create, _CREATE)
        is_member = role == "member"
        with_method(_OWNER, "ring", ring, "read")
        if is_member:
            with_method(_OWNER, "ring", ring, "write")
        flag(_OWNER, "dangerously_trust_store", dangerously_trust_store)
        wrappers = _wrappers(key_wrapper, is_member=is_member, trusts=dangerously_trust_store)
        if wrap_quorum is not None:
            number(_OWNER, "wrap_quorum", wrap_quorum, 1, len(wrappers), whole=True)
        self._state = threading.Lock()
        self._pid: int | None = None
        clock = SystemClock() if clock is None else clock
        with_method(_OWNER, "clock", clock, "wall_ms")
        with_method(_OWNER, "clock", clock, "monotonic_ns")
        if not callable(random):
            raise TypeError(f"{_OWNER}: random must be a function, got {show(random)}")
        name = label(_OWNER, "ring_name", ring_name)
        pin_ms = _milliseconds(accept_keys_created_after)
        self._view = RingView(name, self._policy, clock, pin_ms, random)
        self._calls = Calls(clock, self._policy.kms_timeout_seconds, random)
        wraps = KeyWraps(
            self._view,
            self._calls,
            wrappers,
            quorum=wrap_quorum,
            trusts_store=dangerously_trust_store,
        )
        self._keeper: RingKeeper = create_keeper(
            self._view, self._calls, wraps, ring, role=self._role, create=create
        )
        self._thread = threading.Thread(
            target=self._keeper.turns.loop, name="sealring-refresh", daemon=True
        )
        self._sealing = SealingState(random)
        python = PythonTokens(self._view, random, max_token_length)
        formats: dict[str, Tokens] = {"sealring": self._native_tokens(None), "python": python}
        self._format = one_of(_OWNER, "format", format, _FORMATS)
        self._tokens = formats[self._format]
        accept = [format] if accept is None else accept
        sequence(_OWNER, "accept", accept)
        if not accept:
            raise ValueError(f"{_OWNER}: accept must not be empty")
        self._accepted: dict[str | None, Tokens] = {
            name: formats[one_of(_OWNER, "accept", name, _FORMATS)] for name in accept
        }

    def __repr__(self) -> str:
        return f"KmsCodec(format={self._format!r})"

    @property
    def token_lifetime_seconds(self) -> float:
        """How long a key unseals after it has stopped sealing. The `ttl` of a boundary must not be
        longer than this. The codec unseals a token until its key expires, whatever its age."""
        return self._policy.token_lifetime_seconds

    @property
    def clock_skew_seconds(self) -> float:
        """The clock skew of the ring's policy, in seconds."""
        return self._policy.clock_skew_seconds

    def start(self) -> None:
        """Reads the ring and unwraps its keys, or creates the ring, in the calling thread; then
        starts a background thread. Blocks for up to `start_timeout_seconds`, and
        `create_after_seconds` longer if there is no ring. In asynchronous code, use
        `await asyncio.to_thread(...)`, and call `close` in a `finally` clause that covers it. A
        codec whose start failed is closed: create another one.

        Raises:
            RingStoreError | KeyWrapperError: what prevented the start.
            CodecClosedError: if the codec has already been started or closed, or is closed
                meanwhile.
        """
        with self._state:
            if self._pid is not None:
                raise CodecClosedError("the codec has already been started or closed")
            self._pid = os.getpid()
        try:
            self._keeper.start()
            with self._state:
                if self._pid == -1:
                    raise CodecClosedError(_NOT_HERE[-1])
                self._thread.start()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stops the thread and overwrites the data keys; later calls raise CodecClosedError. The
        keys inside `cryptography`, and copies that Python made of bytes, are freed by the garbage
        collector. Stores and key wrappers are not closed."""
        with self._state:
            started_in, self._pid = self._pid, -1
        if started_in not in (None, -1, os.getpid()):
            # After a fork, the thread and any lock holder exist only in the parent process.
            return
        self._view.close()
        self._calls.close()
        try:
            self._keeper.close()
        finally:
            if self._thread.ident is not None and self._thread is not threading.current_thread():
                self._thread.join()
            # A call that was in progress may have unwrapped a key after the keys were first
            # cleared.
            self._view.close()

    def __enter__(self) -> "KmsCodec":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def seal(self, payload: bytes) -> str:
        """Seals `payload` and returns the token. The payload is neither kept nor changed.

        Raises:
            SealUnavailableError: no key may seal now; `reason` says why.
            ValueError: the token would be too long.
            CodecClosedError: closed, or not started.
        """
        return self._seal(self._tokens, payload)

    def unseal(self, token: str) -> bytes:
        """Unseals a token and returns the payload that was passed to `seal`.

        Raises:
            InvalidRequestState: for a token that no key of this ring sealed, or that was modified.
            CodecClosedError: closed, or not started.
        """
        return self._open(self._accepted, token)

    def for_purpose(self, purpose: str) -> "PurposeCodec":
        """A codec over the same ring with its own token keys, for your own data: neither codec
        unseals the tokens of the other. The new codec always uses the native format. Raises
        TypeError or ValueError unless `purpose` has 1 to 64 characters of `[A-Za-z0-9._-]`."""
        return PurposeCodec(self, self._native_tokens(label("for_purpose", "purpose", purpose)))

    def health(self) -> CodecHealth:
        """The state of the codec, for readiness probes; never use it for liveness probes. Raises
        CodecClosedError when the codec is closed or not started."""
        self._now()
        return self._keeper.health()

    def prepare(self, token: str | None = None) -> None:
        """Prepares a synchronous `unseal`: when this process's view of the ring is old or lacks the
        token's key, reads the ring, for 2 s at most and at most once per `miss_refresh_seconds`. A
        failed read raises nothing: `unseal` then decides with the keys that are held. Blocks; in
        asynchronous code, `await asyncio.to_thread(...)`."""
        now = self._now()
        is_native = isinstance(token, str) and format_of(token) == "sealring"
        key_id = native.key_id_of_token(token) if is_native and token is not None else None
        if not self._keeper.needs_refresh_for(key_id, now):
            return
        refresh = self._keeper.refresh_for_token(now, FOREGROUND)
        if refresh is not None:
            with suppress(TimeoutError):
                refresh.exception(_PREPARE_SECONDS)

    def refresh(self) -> None:
        """Reads the ring now, and waits for the result. Raises RingStoreError or KeyWrapperError;
        the background thread then tries again."""
        self._now()
        _waited(self._keeper.refresh())

    def rotate(self, *, emergency: bool = False) -> None:
        """Publishes a successor of the sealing key, and waits until it is published. The successor
        seals once every member can have it: after the propagation time, or with `emergency` after
        the refresh interval, the backoff cap and the clock skew.

        Raises:
            RingStoreError | KeyWrapperError: what failed; a RingStoreError `too-large` if the ring
            has 48 keys or more, because revocations need room.
        """
        self._now()
        flag("rotate", "emergency", emergency)
        _waited(self._keeper.rotate("emergency" if emergency else "requested"))

    def revoke(self, key_id: str) -> None:
        """Revokes a key, and activates a successor in the same write if the ring has room and the
        KMS answers; otherwise as soon as possible. Neither a failing KMS nor a wrong clock of this
        machine prevents it.

        Raises:
            ValueError: when the ring has no such key.
            RingStoreError: when the write to the store failed; nothing is then revoked. For a key
                of a ring that this member has left, it was revoked here, but not in the store:
                restart the other members.
        """
        self._now()
        text("revoke", "key_id", key_id, 4_096)
        _waited(self._keeper.revoke(lambda key: key.id == key_id, key_id))

    def revoke_all_before(self, time: datetime) -> None:
        """Revokes, as `revoke` does, every key that may have been created at or before `time` by
        any clock of the fleet. This includes keys whose recorded creation time is later by up to
        the clock skew. `time` needs a time zone."""
        self._now()
        latest_ms = _time_ms("revoke_all_before", "time", time)
        latest_ms += self._policy.clock_skew_seconds * 1_000
        _waited(self._keeper.revoke(lambda key: key.created <= latest_ms))

    def _native_tokens(self, purpose: str | None) -> NativeTokens:
        return NativeTokens(self._view, self._sealing, purpose, self._max_token_length)

    def _seal(self, tokens: Tokens, payload: bytes) -> str:
        now = self._now()
        if not isinstance(payload, (bytes, bytearray, memoryview)):
            raise TypeError(f"payload must be bytes, got {show(payload)}")
        return tokens.seal(bytes(payload), now)

    def _open(self, accepted: Mapping[str | None, Tokens], token: object) -> bytes:
        now = self._now()
        # The length is checked first, because an attacker may have chosen the token.
        if not isinstance(token, str) or len(token) > self._max_token_length:
            raise refused("malformed")
        tokens = accepted.get(format_of(token))
        if tokens is None:
            raise refused("malformed")
        return tokens.open(token, now)

    def _now(self) -> Moment:
        if self._pid != os.getpid():
            raise CodecClosedError(_NOT_HERE.get(self._pid, "the codec was started before a fork"))
        return self._view.now()


_NOT_HERE = {None: "the codec is not started", -1: "the codec is closed"}


class PurposeCodec:
    """See `KmsCodec.for_purpose`. It is closed together with the codec that it came from."""

    def __init__(self, codec: KmsCodec, tokens: NativeTokens) -> None:
        self._codec = codec
        self._tokens = tokens

    @property
    def token_lifetime_seconds(self) -> float:
        """See `KmsCodec.token_lifetime_seconds`."""
        return self._codec.token_lifetime_seconds

    @property
    def clock_skew_seconds(self) -> float:
        """See `KmsCodec.clock_skew_seconds`."""
        return self._codec.clock_skew_seconds

    def seal(self, payload: bytes) -> str:
        """See `KmsCodec.seal`."""
        return self._codec._seal(self._tokens, payload)

    def unseal(self, token: str) -> bytes:
        """See `KmsCodec.unseal`."""
        return self._codec._open({"sealring": self._tokens}, token)


def _waited(answer: "Future[None]") -> None:
    failure = answer.exception()
    if failure is not None:
        # The frames of its traceback belong to another thread, and can reference a key.
        failure.__cause__ = failure.__context__ = None
        raise failure.with_traceback(None)


def _wrappers(
    value: KeyWrapper | Sequence[KeyWrapper], *, is_member: bool, trusts: bool
) -> tuple[KeyWrapper, ...]:
    wrappers = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    if not 1 <= len(wrappers) <= _MAX_KEY_WRAPPERS:
        raise ValueError(f"{_OWNER}: key_wrapper must be 1 to {_MAX_KEY_WRAPPERS} key wrappers")
    for wrapper in wrappers:
        for method in ("owns", "unwrap", "wrap") if is_member else ("owns", "unwrap"):
            with_method(_OWNER, "key_wrapper", wrapper, method)
        if not isinstance(getattr(wrapper, "supports", None), Supports):
            raise TypeError(f"{_OWNER}: key_wrapper must have Supports as supports")
        provider: object = getattr(wrapper, "provider", None)
        if not isinstance(provider, str) or _PROVIDER.fullmatch(provider) is None:
            given = ascii(provider[:80]) if isinstance(provider, str) else show(provider)
            wanted = "1 to 64 characters of [a-z0-9-]"
            raise TypeError(f"{_OWNER}: key_wrapper.provider must be {wanted}, got {given}")
        is_proved = wrapper.supports.authenticated or isinstance(wrapper, EntrySigner)
        if not is_proved and not trusts:
            raise TypeError(
                f"{_OWNER}: an unwrap by {wrapper.provider} does not authenticate the origin of a "
                "wrap, so it must have sign and verify; if you set dangerously_trust_store "
                "instead, anyone who can write to the store can mint tokens"
            )
    return wrappers


def _milliseconds(time: datetime | None) -> float:
    none = -float("inf")
    return none if time is None else _time_ms(_OWNER, "accept_keys_created_after", time)


def _time_ms(owner: str, name: str, time: datetime) -> float:
    if not isinstance(time, datetime):
        raise TypeError(f"{owner}: {name} must be a datetime, got {show(time)}")
    if time.tzinfo is None:
        raise ValueError(f"{owner}: {name} must have a time zone")
    return time.timestamp() * 1_000
