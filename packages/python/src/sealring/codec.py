"""The codec that servers hold."""

import os
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime

from .clock import Clock, Moment, SystemClock
from .errors import CodecClosedError, InvalidRequestState
from .formats import native
from .formats.sealer import RandomSource, SealingState
from .formats.tokens import NativeTokens, PythonTokens, TokenFormat, Tokens, format_of
from .health import CodecHealth
from .key_wrapper import KeyWrapper
from .options import label, number, one_of, sequence, show, with_method
from .ring.background import Background
from .ring.calls import Calls
from .ring.keeper import RingKeeper
from .ring.policy import RingPolicy
from .ring.store import RingStore
from .ring.sync import RingSync
from .ring.view import RingView
from .ring.wraps import KeyWraps

_OWNER = "KmsCodec"
_FORMATS = ("sealring", "python")
_MAX_KEY_WRAPPERS = 8
_MAX_TOKEN_LENGTH = 256 * 1024
# The longest `max_token_length`: never unlimited.
_MOST_TOKEN_LENGTH = 16 * 1024 * 1024


class KmsCodec:
    """Seals and opens MCP `requestState` under the data keys of a Sealring ring.

    A `RequestStateCodec` of the MCP Python SDK 2.3.0. `seal` and `unseal` are synchronous and do no
    I/O: a thread reads the ring and asks the KMS, beside them. The ring itself is only read: a
    TypeScript member founds, rotates, revokes and heals it. Safe for threads; after a fork the
    child needs a codec of its own.

    Args:
        key_wrapper: unwraps data keys; of several, 1 to 8, any one can open a key.
        ring: where the ring document is.
        ring_name: bound into every wrap and every derived key; 1 to 64 of `[A-Za-z0-9._-]`.
        format: what new tokens look like.
        accept: what may be opened; by default `format` alone.
        policy: times of the ring; the same on every member.
        accept_keys_created_after: keys created before count as revoked: a pin for starts after a
            leak. With a time zone.
        max_token_length: longest token opened or sealed, characters; 102 to 16 777 216.
        clock: injected in tests.
        random: injected in tests; returns so many unpredictable bytes.

    Raises:
        TypeError: for an option of a wrong type.
        ValueError: for one out of range, naming it.
    """

    def __init__(
        self,
        *,
        key_wrapper: KeyWrapper | Sequence[KeyWrapper],
        ring: RingStore,
        ring_name: str = "default",
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
        with_method(_OWNER, "ring", ring, "read")
        self._state = threading.Lock()
        self._pid: int | None = None
        clock = clock or SystemClock()
        name = label(_OWNER, "ring_name", ring_name)
        pin_ms = _milliseconds(accept_keys_created_after)
        self._view = RingView(name, self._policy, clock, pin_ms)
        self._calls = Calls(clock, self._policy.kms_timeout_seconds)
        wraps = KeyWraps(self._view, self._calls, _wrappers(key_wrapper))
        self._sync = RingSync(self._view, self._calls, wraps, ring)
        self._keeper = RingKeeper(self._view, self._sync)
        self._background = Background(self._keeper)
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
        """How long a key opens after it has stopped sealing: the `ttl` of a boundary must not be
        longer. The codec opens a token until its key ends, whatever its age."""
        return self._policy.token_lifetime_seconds

    def start(self) -> None:
        """Reads the ring and unwraps its keys, in this thread, then goes on in one of its own.
        Blocks for up to `start_timeout_seconds`; in asynchronous code, `await
        asyncio.to_thread(...)`. A codec whose start failed is closed: make another.

        Raises:
            RingStoreError | KeyWrapperError: what kept it from starting.
            CodecClosedError: when it was started or closed before.
        """
        with self._state:
            if self._pid is not None:
                raise CodecClosedError("the codec was started or closed before")
            self._pid = os.getpid()
        try:
            self._sync.start()
        except BaseException:
            self.close()
            raise
        self._keeper.started()
        self._background.start()

    def close(self) -> None:
        """Stops the thread and overwrites the data keys; later calls raise CodecClosedError. The
        keys inside `cryptography`, and copies that Python made of bytes, go with the garbage
        collector. Stores and key wrappers stay open."""
        with self._state:
            started_in, self._pid = self._pid, -1
        if started_in not in (None, -1, os.getpid()):
            # The thread, and whoever held a lock, are in the process that was forked.
            return
        self._view.close()
        self._calls.close()
        self._background.stop()
        # A call that was under way may have unwrapped a key after the first clearing.
        self._view.close()

    def __enter__(self) -> "KmsCodec":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def seal(self, payload: bytes) -> str:
        """A token for `payload`, which is neither kept nor changed.

        Raises:
            SealUnavailableError: no key may seal now; `reason` says why.
            ValueError: the token would be too long.
            CodecClosedError: closed, or not started.
        """
        return self._seal(self._tokens, payload)

    def unseal(self, token: str) -> bytes:
        """The bytes given to `seal`.

        Raises:
            InvalidRequestState: for every token that this ring's keys did not seal, unmodified.
            CodecClosedError: closed, or not started.
        """
        return self._open(self._accepted, token)

    def for_purpose(self, purpose: str) -> "PurposeCodec":
        """A codec over the same ring with token keys of its own, for data of yours: its tokens and
        those of this codec never open each other. Always in the native format. TypeError or
        ValueError unless `purpose` is 1 to 64 of `[A-Za-z0-9._-]`."""
        return PurposeCodec(self, self._native_tokens(label("for_purpose", "purpose", purpose)))

    def health(self) -> CodecHealth:
        """For readiness, never for liveness; CodecClosedError when closed, or not started."""
        self._now()
        return self._keeper.health()

    def refresh(self) -> None:
        """Reads the ring now, and waits for it. RingStoreError or KeyWrapperError for what went
        wrong; it is tried again in the background."""
        self._now()
        self._background.refresh()

    def _native_tokens(self, purpose: str | None) -> NativeTokens:
        return NativeTokens(self._view, self._sealing, purpose, self._max_token_length)

    def _seal(self, tokens: Tokens, payload: bytes) -> str:
        now = self._now()
        if not isinstance(payload, (bytes, bytearray, memoryview)):
            raise TypeError(f"payload must be bytes, got {show(payload)}")
        return tokens.seal(bytes(payload), now)

    def _open(self, accepted: Mapping[str | None, Tokens], token: object) -> bytes:
        now = self._now()
        # Length before anything else: a token is chosen by an attacker.
        if not isinstance(token, str) or len(token) > self._max_token_length:
            raise InvalidRequestState("malformed")
        tokens = accepted.get(format_of(token))
        if tokens is None:
            raise InvalidRequestState("malformed")
        return tokens.open(token, now)

    def _now(self) -> Moment:
        if self._pid != os.getpid():
            raise CodecClosedError(_NOT_HERE.get(self._pid, "the codec was started before a fork"))
        return self._view.now()


_NOT_HERE = {None: "the codec is not started", -1: "the codec is closed"}


class PurposeCodec:
    """See `KmsCodec.for_purpose`. Closed along with its codec."""

    def __init__(self, codec: KmsCodec, tokens: NativeTokens) -> None:
        self._codec = codec
        self._tokens = tokens

    def seal(self, payload: bytes) -> str:
        """As `KmsCodec.seal`."""
        return self._codec._seal(self._tokens, payload)

    def unseal(self, token: str) -> bytes:
        """As `KmsCodec.unseal`."""
        return self._codec._open({"sealring": self._tokens}, token)


def _wrappers(value: KeyWrapper | Sequence[KeyWrapper]) -> tuple[KeyWrapper, ...]:
    wrappers = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    if not 1 <= len(wrappers) <= _MAX_KEY_WRAPPERS:
        raise ValueError(f"{_OWNER}: key_wrapper must be 1 to {_MAX_KEY_WRAPPERS} key wrappers")
    for wrapper in wrappers:
        with_method(_OWNER, "key_wrapper", wrapper, "unwrap")
    return wrappers


def _milliseconds(time: datetime | None) -> float:
    if time is None:
        return -float("inf")
    if not isinstance(time, datetime):
        raise TypeError(f"{_OWNER}: accept_keys_created_after must be a datetime, got {show(time)}")
    if time.tzinfo is None:
        raise ValueError(f"{_OWNER}: accept_keys_created_after must have a time zone")
    return time.timestamp() * 1_000
