"""Seals native tokens so that no token key lives long and no nonce repeats."""

import hashlib
import os
import threading
from collections.abc import Callable

from ..aead import NONCE_BYTES, TAG_BYTES
from ..clock import Moment, RandomSource
from . import native

TOKENS_PER_SALT = 2**20
"""The maximum number of tokens under one salt, limited by the width of the message counter in the
nonce."""
_SALT_LIFETIME_NS = 60_000_000_000
# A longer pause between two seals may mean that the machine was suspended or cloned.
_LONGEST_PAUSE_NS = 1_000_000_000
_LONGEST_PAUSE_MS = 1_000


class SealingState:
    """State that all sealers of one codec share."""

    def __init__(self, random: RandomSource) -> None:
        self.random = random
        self.lock = threading.Lock()
        self.last_tag = bytes(TAG_BYTES)


class TokenSealer:
    """Seals under one data key and purpose, renewing the salt.

    nonce = R xor T xor L. R is random. T is 44 bits of monotonic time, 32 bits of wall time and 20
    bits of message counter. L is the start of the last tag. With a healthy generator, R alone makes
    the nonce uniform (SP 800-38D 8.2.2). With a cloned generator, T keeps one instance from
    repeating a nonce, and L separates the clones, starting with the first token in which they
    differ.
    """

    def __init__(self, derive: Callable[[bytes], native.TokenKey]) -> None:
        self._derive = derive
        self._key: native.TokenKey | None = None
        self._count = 0
        self._salted_at_ns = 0
        self._sealed_at = Moment(0, 0)

    def seal(self, state: SealingState, payload: bytes, now: Moment) -> str:
        """Seals one token. The lock is held meanwhile, because the next nonce uses the tag of this
        token."""
        with state.lock:
            key = self._current_key(state, now)
            time = (now.monotonic_ns % 2**44 << 52) | (now.wall_ms % 2**32 << 20) | self._count
            drawn = int.from_bytes(state.random(NONCE_BYTES), "big")
            last = int.from_bytes(state.last_tag[:NONCE_BYTES], "big")
            nonce = (drawn ^ time ^ last).to_bytes(NONCE_BYTES, "big")
            # The nonce is counted before it is used: whatever happens now, it is used up.
            self._count += 1
            self._sealed_at = now
            token, state.last_tag = native.seal(key, nonce, payload)
            return token

    def _current_key(self, state: SealingState, now: Moment) -> native.TokenKey:
        if (
            self._key is not None
            and self._count < TOKENS_PER_SALT
            and now.monotonic_ns - self._salted_at_ns < _SALT_LIFETIME_NS
            and now.monotonic_ns - self._sealed_at.monotonic_ns <= _LONGEST_PAUSE_NS
            and abs(now.wall_ms - self._sealed_at.wall_ms) <= _LONGEST_PAUSE_MS
        ):
            return self._key
        facts = f"{now.monotonic_ns}/{now.wall_ms}/{os.getpid()}/{threading.get_ident()}/"
        digest = hashlib.sha256(facts.encode("ascii") + state.last_tag).digest()
        drawn = state.random(native.SALT_BYTES)
        self._key = self._derive(bytes(a ^ b for a, b in zip(drawn, digest, strict=False)))
        self._count = 0
        self._salted_at_ns = now.monotonic_ns
        return self._key
