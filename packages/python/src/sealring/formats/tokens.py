"""Seals and unseals tokens with the keys of a ring, whatever the source of the keys."""

from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Literal, Protocol

from ..aead import NONCE_BYTES
from ..clock import Moment, RandomSource
from ..errors import InvalidRequestState, SealUnavailableError, refused
from ..held_key import HeldKey, KeyOverwrittenError
from . import native, python_sdk
from .sealer import SealingState

TokenFormat = Literal["sealring", "python"]

# The number of tokens in the format of the Python SDK that one data key may seal; the limit exists
# because their nonces are random (SP 800-38D 8.3).
_PYTHON_TOKENS_PER_KEY = 2**32
# The number of attempts to seal if a key is revoked between its choice and its use.
_ATTEMPTS = 3


class KeySource(Protocol):
    """The source of keys. Synchronous, and independent of formats."""

    def sealing_key(self, now: Moment) -> HeldKey: ...
    def opening_key(self, key_id: str, now: Moment) -> HeldKey | None: ...
    def opening_keys(self, now: Moment) -> list[HeldKey]: ...
    def note_unknown_key(self, key_id: str | None, now: Moment) -> None: ...


def format_of(token: str) -> TokenFormat | None:
    """The format that the prefix and the dots of a token indicate, without decoding the token."""
    if token.startswith(native.PREFIX):
        return "sealring"
    is_python = token.startswith(python_sdk.PREFIX) and "." not in token[len(python_sdk.PREFIX) :]
    return "python" if is_python else None


class Tokens(ABC):
    """A format of tokens."""

    def __init__(self, source: KeySource, max_payload_bytes: int) -> None:
        self._source = source
        self._most = max_payload_bytes

    def seal(self, payload: bytes, now: Moment) -> str:
        if len(payload) > self._most:
            told = f"payload must be at most {self._most} bytes, got {len(payload)}"
            raise ValueError(f"{told}: its token would be refused")
        for _ in range(_ATTEMPTS):
            with suppress(KeyOverwrittenError):
                return self._sealed(self._source.sealing_key(now), payload, now)
        raise SealUnavailableError("no active key")

    @abstractmethod
    def _sealed(self, held: HeldKey, payload: bytes, now: Moment) -> str: ...

    @abstractmethod
    def open(self, token: str, now: Moment) -> bytes: ...


class NativeTokens(Tokens):
    """Native tokens: one object per purpose, each with separate token keys."""

    def __init__(
        self, source: KeySource, state: SealingState, purpose: str | None, max_token_length: int
    ) -> None:
        super().__init__(source, native.max_payload_bytes(max_token_length))
        self._state = state
        self._purpose = purpose

    def _sealed(self, held: HeldKey, payload: bytes, now: Moment) -> str:
        return held.sealer(self._purpose).seal(self._state, payload, now)

    def open(self, token: str, now: Moment) -> bytes:
        parsed = native.parse(token)
        held = self._source.opening_key(parsed.key_id, now)
        if held is not None:
            with suppress(KeyOverwrittenError):
                return native.open_token(held.token_key(parsed.salt, self._purpose), parsed)
        self._source.note_unknown_key(parsed.key_id, now)
        raise refused("unknown key")


class PythonTokens(Tokens):
    """Seals and unseals the tokens of the Python SDK, with the secret that each data key derives
    for them."""

    def __init__(self, source: KeySource, random: RandomSource, max_token_length: int) -> None:
        super().__init__(source, python_sdk.max_payload_bytes(max_token_length))
        self._random = random

    def _sealed(self, held: HeldKey, payload: bytes, now: Moment) -> str:  # noqa: ARG002
        key = held.python_key()
        if held.count_python_token() > _PYTHON_TOKENS_PER_KEY:
            raise SealUnavailableError("token limit of the key reached")
        return python_sdk.seal(key, self._random(NONCE_BYTES), payload)

    def open(self, token: str, now: Moment) -> bytes:
        kid, rest = python_sdk.parse(token)
        # A fingerprint of four bytes may collide within a ring, so every key that has the
        # fingerprint is tried.
        refusal = refused("unknown key")
        for held in self._source.opening_keys(now):
            try:
                key = held.python_key()
                if key.kid == kid:
                    return python_sdk.open_token(key, rest)
            except KeyOverwrittenError:
                continue
            except InvalidRequestState as error:
                refusal = error
        if refusal.reason == "unknown key":
            self._source.note_unknown_key(None, now)
        raise refusal
