"""Data keys and the KMS: unwraps those of a document with any key wrapper. What an unwrap returned
is believed only after its id was recomputed."""

import hashlib
import random
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from .. import base64url
from ..canonical_json import canonical_json
from ..clock import Deadline
from ..derivation import DATA_KEY_BYTES, key_id_of
from ..errors import KeyWrapperError, KeyWrapperErrorKind, bare
from ..held_key import HeldKey
from ..key_wrapper import KeyWrapper, OnServiceDate, WrappedKey
from ..options import is_constant
from .calls import Calls
from .document import RingEntry, wrap_context

# Retries of a call that somebody waits for; background calls have none: the next refresh is theirs.
_RETRIES = 3
_RETRY_BASE_SECONDS = 0.1
_RETRY_CAP_SECONDS = 2.0
# Which kind speaks for several.
_MILDEST_FIRST: tuple[KeyWrapperErrorKind, ...] = (
    "throttled",
    "unavailable",
    "denied",
    "disabled",
    "not-found",
    "corrupt",
)


class CallOptions(NamedTuple):
    """How a call is made."""

    is_foreground: bool
    """Whether somebody waits for it: then three retries with full jitter."""
    until: Deadline | None = None
    """When whoever waits gives up."""


class KeyWraps:
    """Unwraps data keys, and remembers them by everything that the unwrap depended on."""

    def __init__(
        self,
        ring: str,
        wrappers: Sequence[KeyWrapper],
        calls: Calls,
        on_service_date: OnServiceDate,
        uniform: Callable[[], float] = random.random,
    ) -> None:
        self._ring = ring
        self._wrappers = wrappers
        self._calls = calls
        self._on_service_date = on_service_date
        self._uniform = uniform
        self._cache: dict[str, HeldKey] = {}

    def cached(self, entry: RingEntry) -> HeldKey | None:
        """The key of an entry if it was unwrapped before: no call."""
        for wrap in entry.wraps:
            held = self._cache.get(self._identity(wrap, entry))
            # The same ciphertext under another key id is another entry.
            if held is not None and held.id == entry.id:
                return held
        return None

    def unwrap(self, entry: RingEntry, options: CallOptions) -> HeldKey:
        """Unwraps an entry with the first key wrapper that can, and remembers it.

        Raises:
            KeyWrapperError: of every wrapper that was asked; `corrupt` if no wrap is one of theirs.
        """
        known = self.cached(entry)
        if known is not None:
            return known
        data_key, wrap = self._unwrap_any(entry, options)
        held = HeldKey(data_key, self._ring)
        self._cache[self._identity(wrap, entry)] = held
        return held

    def prove(self, entry: RingEntry, held: HeldKey, options: CallOptions) -> None:
        """Unwraps an entry again, at the KMS.

        Raises:
            KeyWrapperError: also `corrupt`, if that gave another key.
        """
        data_key, wrap = self._unwrap_any(entry, options)
        is_same = held.equals(data_key)
        _zero(data_key)
        if not is_same:
            raise KeyWrapperError("corrupt", wrap.provider)

    def prune(self, keep: Iterable[HeldKey]) -> None:
        """Drops and overwrites every key but these."""
        kept = {id(held) for held in keep}
        for identity, held in list(self._cache.items()):
            if id(held) not in kept:
                held.destroy()
                self._cache.pop(identity, None)

    def _identity(self, wrap: WrappedKey, entry: RingEntry) -> str:
        context = wrap_context(self._ring, entry)
        question = canonical_json([wrap.provider, wrap.key_id, context]).encode("ascii")
        return hashlib.sha256(question + b"\0" + wrap.wrapped).hexdigest()

    def _unwrap_any(self, entry: RingEntry, options: CallOptions) -> tuple[bytearray, WrappedKey]:
        attempt = 0
        while True:
            attempt += 1
            answer = self._unwrap_with_each(entry, options)
            if not isinstance(answer, KeyWrapperError):
                return answer
            if not self._waits_to_retry(answer, attempt, options):
                raise answer

    def _waits_to_retry(self, error: KeyWrapperError, attempt: int, options: CallOptions) -> bool:
        if not options.is_foreground or attempt > _RETRIES:
            return False
        if error.kind not in ("throttled", "unavailable"):
            return False
        wait = min(_RETRY_CAP_SECONDS, _RETRY_BASE_SECONDS * 2**attempt) * self._uniform()
        if wait >= self._calls.seconds_left(options.until):
            return False
        return not self._calls.closing.wait(wait)

    def _unwrap_with_each(
        self, entry: RingEntry, options: CallOptions
    ) -> tuple[bytearray, WrappedKey] | KeyWrapperError:
        failures: list[KeyWrapperError] = []
        for wrapper in self._wrappers:
            for wrap in entry.wraps:
                if wrap.provider != wrapper.provider or not wrapper.owns(wrap):
                    continue
                answer = self._unwrap_with(wrapper, wrap, entry, options)
                if not isinstance(answer, KeyWrapperError):
                    return answer, wrap
                failures.append(answer)
        if not failures:
            asked = " or ".join(wrapper.provider for wrapper in self._wrappers)
            return KeyWrapperError(
                "corrupt", asked, hint="the ring holds no wrap by this key wrapper"
            )
        # A refusal only when all refuse: one that was out of reach may still allow it.
        return min(failures, key=lambda failure: _MILDEST_FIRST.index(failure.kind))

    def _unwrap_with(
        self, wrapper: KeyWrapper, wrap: WrappedKey, entry: RingEntry, options: CallOptions
    ) -> bytearray | KeyWrapperError:
        """Returns a failure instead of raising it: no frame with a key in it is part of an
        error."""
        provider = wrapper.provider
        context = wrap_context(self._ring, entry)
        try:
            data_key = self._calls.run(
                "unwrap",
                lambda: wrapper.unwrap(wrap, context, on_service_date=self._on_service_date),
                late=lambda: KeyWrapperError("unavailable", provider, hint="no answer in time"),
                discard=_zero,
                until=options.until,
            )
        except KeyWrapperError as error:
            return bare(error)
        except Exception:  # A stranger's error may hold the key, and its class says nothing.
            return KeyWrapperError(
                "unavailable", provider, hint="the key wrapper raised another error"
            )
        # The id is recomputed: a document cannot give a key another name.
        if not _is_data_key(data_key):
            return KeyWrapperError(
                "corrupt", provider, hint="the answer is no data key of 32 bytes"
            )
        if base64url.encode(key_id_of(data_key)) != entry.id:
            _zero(data_key)
            return KeyWrapperError("corrupt", provider)
        return data_key


def _is_data_key(data: object) -> bool:
    return isinstance(data, bytearray) and len(data) == DATA_KEY_BYTES and not is_constant(data)


def _zero(data: object) -> None:
    if isinstance(data, bytearray):
        data[:] = bytes(len(data))
