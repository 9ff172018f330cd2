"""Data keys and the KMS: unwraps those of a document with any key wrapper. What an unwrap returned
is believed only after its id was recomputed."""

import hashlib
import random
from collections.abc import Callable, Container, Sequence
from typing import NamedTuple

from .. import base64url
from ..canonical_json import canonical_json
from ..clock import Clock, Deadline, Moment, age_ms, moment_of
from ..derivation import DATA_KEY_BYTES, key_id_of
from ..errors import KeyWrapperError, KeyWrapperErrorKind, bare
from ..held_key import HeldKey
from ..key_wrapper import KeyWrapper, OnServiceDate
from ..options import is_constant
from .calls import Calls
from .document import RingEntry, RingWrap, wrap_context

# Retries of a call that somebody waits for; background calls have none: the next refresh is theirs.
_RETRIES = 3
_RETRY_BASE_SECONDS = 0.1
_RETRY_CAP_SECONDS = 2.0
# How long a wrap that the KMS called corrupt is not asked about again, and how many of them.
_CORRUPT_FOR_MS = 3_600_000
_MAX_CORRUPT = 4_096
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
    for_token: bool = False
    """Because of a token, which is attacker-chosen: only what was never tried is unwrapped."""


class Unwrapped(NamedTuple):
    """A data key, and the wrap that it came from."""

    held: HeldKey
    wrap: RingWrap


class KeyWraps:
    """Unwraps data keys, and holds them by their ids until they are pruned."""

    def __init__(
        self,
        ring: str,
        wrappers: Sequence[KeyWrapper],
        calls: Calls,
        clock: Clock,
        on_service_date: OnServiceDate,
        uniform: Callable[[], float] = random.random,
    ) -> None:
        self._ring = ring
        self._wrappers = wrappers
        self._calls = calls
        self._clock = clock
        self._on_service_date = on_service_date
        self._uniform = uniform
        self._held: dict[str, HeldKey] = {}
        # A wrap is corrupt for one entry, not for a key id. Oldest first.
        self._corrupt: dict[str, Moment] = {}

    def unwrap(self, entry: RingEntry, options: CallOptions) -> Unwrapped:
        """Unwraps an entry with the first key wrapper that can, and holds its key.

        Raises:
            KeyWrapperError: of every wrapper that was asked; `corrupt`, without a call, if no wrap
                is one of theirs, or all of those were found to be corrupt before.
        """
        data_key, wrap = self._unwrap_any(entry, options)
        held = HeldKey(data_key, self._ring)
        known = self._held.setdefault(held.id, held)
        if known is not held:
            held.destroy()
        return Unwrapped(known, wrap)

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

    def note_corrupt(self, entry: RingEntry) -> None:
        """Of an entry that was refused though the key may be used: no better than corrupt."""
        for wrap in entry.wraps:
            self._note_corrupt(entry, wrap)

    def prune(self, keep: Container[str]) -> None:
        """Drops and overwrites every key but these."""
        for key_id in [key_id for key_id in self._held if key_id not in keep]:
            self._held.pop(key_id).destroy()

    def _note_corrupt(self, entry: RingEntry, wrap: RingWrap) -> None:
        self._corrupt[self._identity(wrap, entry)] = moment_of(self._clock)
        if len(self._corrupt) > _MAX_CORRUPT:
            del self._corrupt[next(iter(self._corrupt))]

    def _is_corrupt(self, entry: RingEntry, wrap: RingWrap) -> bool:
        # Where the key is held a wrap was opened before: what is said of it later does not count.
        since = None if entry.id in self._held else self._corrupt.get(self._identity(wrap, entry))
        return since is not None and age_ms(since, moment_of(self._clock)) < _CORRUPT_FOR_MS

    def _identity(self, wrap: RingWrap, entry: RingEntry) -> str:
        question = [entry.id, wrap.provider, wrap.key_id, wrap_context(self._ring, entry)]
        text = canonical_json(question).encode("ascii")
        return hashlib.sha256(text + b"\0" + wrap.wrapped).hexdigest()

    def _unwrap_any(self, entry: RingEntry, options: CallOptions) -> tuple[bytearray, RingWrap]:
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
    ) -> tuple[bytearray, RingWrap] | KeyWrapperError:
        failures: list[KeyWrapperError] = []
        for wrapper in self._wrappers:
            for wrap in entry.wraps:
                if wrap.provider != wrapper.provider or not wrapper.owns(wrap):
                    continue
                if self._is_corrupt(entry, wrap):
                    continue
                answer = self._unwrap_with(wrapper, wrap, entry, options)
                if not isinstance(answer, KeyWrapperError):
                    return answer, wrap
                failures.append(answer)
                if answer.kind == "corrupt":
                    self._note_corrupt(entry, wrap)
        if not failures:
            asked = " or ".join(wrapper.provider for wrapper in self._wrappers)
            return KeyWrapperError(
                "corrupt", asked, hint="the ring holds no wrap by this key wrapper"
            )
        # A refusal only when all refuse: one that was out of reach may still allow it.
        return min(failures, key=lambda failure: _MILDEST_FIRST.index(failure.kind))

    def _unwrap_with(
        self, wrapper: KeyWrapper, wrap: RingWrap, entry: RingEntry, options: CallOptions
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
