"""Data keys and the KMS: unwraps those of a document with any key wrapper. What an unwrap returned
is believed only after its id was recomputed."""

import hashlib
from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import NamedTuple, get_args

from .. import base64url
from ..clock import Deadline, Moment, age_ms, backoff
from ..derivation import DATA_KEY_BYTES, key_id_of, overwrite
from ..errors import KeyWrapperError, KeyWrapperErrorKind, may_pass
from ..held_key import HeldKey
from ..key_wrapper import KeyWrapper
from ..options import is_constant
from .calls import Calls
from .document import RingEntry, RingWrap, wrap_context
from .view import RingView

# Retries of a call that somebody waits for; background calls have none: the next refresh is theirs.
_RETRIES = 3
_RETRY_BASE_SECONDS = 0.1
_RETRY_CAP_SECONDS = 2.0
# How long a wrap that the KMS called corrupt is not asked about again, and how many of them.
_CORRUPT_FOR_MS = 3_600_000
_MAX_CORRUPT = 4_096
# Of several answers, the first of these counts.
_MILDEST_FIRST: tuple[KeyWrapperErrorKind, ...] = get_args(KeyWrapperErrorKind)


class CallOptions(NamedTuple):
    is_foreground: bool = False
    """Whether somebody waits for it: then three retries with full jitter."""
    until: Deadline | None = None
    """When whoever waits gives up."""
    for_token: bool = False
    """Because of a token, which is attacker-chosen: only what was never tried is unwrapped."""


class KeyWraps:
    """Unwraps data keys, which the view holds. Only here the KMS is asked, so only here its proofs
    and refusals are noted."""

    def __init__(self, view: RingView, calls: Calls, wrappers: Sequence[KeyWrapper]) -> None:
        self._view = view
        self._calls = calls
        self._wrappers = wrappers
        # A wrap is corrupt for one entry, not for a key id. Oldest first.
        self._corrupt: dict[bytes, Moment] = {}

    def unwrap(self, entry: RingEntry, options: CallOptions) -> tuple[HeldKey, RingWrap]:
        """Unwraps an entry with the first key wrapper that can; with the wrap it came from.
        KeyWrapperError is the mildest of those that were asked; `corrupt`, without a call, if no
        wrap is one of theirs, or all of those were found to be corrupt before."""
        data_key, wrap = self._unwrap_any(entry, options)
        held = self._view.hold(HeldKey(data_key, self._view.ring))
        self._view.limits.proved(self._view.now())
        return held, wrap

    def prove(self, entry: RingEntry, held: HeldKey, options: CallOptions) -> None:
        """Unwraps an entry whose key is held once more, at the KMS. A refusal counts for the kill
        switch as the answer to this alone. KeyWrapperError, also `corrupt` for another key."""
        try:
            data_key, wrap = self._unwrap_any(entry, options)
            is_same = held.equals(data_key)
            overwrite(data_key)
            if not is_same:
                raise KeyWrapperError("corrupt", wrap.provider)
        except KeyWrapperError as error:
            self._view.limits.failed(error.kind, self._view.now())
            raise
        self._view.limits.proved(self._view.now())

    def note_corrupt(self, entry: RingEntry, wrap: RingWrap) -> None:
        """Also of one that was refused though the key may be used: it is no better than corrupt."""
        self._corrupt[self._identity(entry, wrap)] = self._view.now()
        if len(self._corrupt) > _MAX_CORRUPT:
            del self._corrupt[next(iter(self._corrupt))]

    def _is_corrupt(self, entry: RingEntry, wrap: RingWrap) -> bool:
        # Where the key is held a wrap was opened before: what is said of it later does not count.
        is_held = self._view.holds(entry.id)
        since = None if is_held else self._corrupt.get(self._identity(entry, wrap))
        return since is not None and age_ms(since, self._view.now()) < _CORRUPT_FOR_MS

    def _identity(self, entry: RingEntry, wrap: RingWrap) -> bytes:
        """Of what the KMS is asked: neither signature nor MAC of the wrap is part of it."""
        question = (entry.id, entry.times, wrap.provider, wrap.key_id, wrap.wrapped)
        return hashlib.sha256(repr(question).encode("ascii", "backslashreplace")).digest()

    def _unwrap_any(self, entry: RingEntry, options: CallOptions) -> tuple[bytearray, RingWrap]:
        retries = _RETRIES if options.is_foreground else 0
        failures = 0
        while True:
            answer = self._unwrap_with_each(entry, options)
            if not isinstance(answer, KeyWrapperError):
                return answer
            failures += 1
            wait = backoff(_RETRY_BASE_SECONDS, _RETRY_CAP_SECONDS, failures)
            is_last = failures > retries or wait >= self._calls.seconds_left(options.until)
            if is_last or not may_pass(answer) or self._calls.closing.wait(wait):
                raise answer

    def _unwrap_with_each(
        self, entry: RingEntry, options: CallOptions
    ) -> tuple[bytearray, RingWrap] | KeyWrapperError:
        failures: list[KeyWrapperError] = []
        for wrapper, wrap in product(self._wrappers, entry.wraps):
            if wrap.provider != wrapper.provider or not wrapper.owns(wrap):
                continue
            if self._is_corrupt(entry, wrap):
                continue
            answer = self._unwrap_with(wrapper, wrap, entry, options)
            if not isinstance(answer, KeyWrapperError):
                return answer, wrap
            failures.append(answer)
            if answer.kind == "corrupt":
                self.note_corrupt(entry, wrap)
        if not failures:
            asked = " or ".join(wrapper.provider for wrapper in self._wrappers)
            hint = "the ring holds no wrap by this key wrapper"
            return KeyWrapperError("corrupt", asked, hint=hint)
        # A refusal only when all refuse: one that was out of reach may still allow it.
        return min(failures, key=lambda failure: _MILDEST_FIRST.index(failure.kind))

    def _unwrap_with(
        self, wrapper: KeyWrapper, wrap: RingWrap, entry: RingEntry, options: CallOptions
    ) -> bytearray | KeyWrapperError:
        """Returns a failure instead of raising it: no frame with a key in it is part of an
        error."""
        provider, context = wrapper.provider, wrap_context(self._view.ring, entry)
        note = partial(self._view.ring_clock.note, "kms")
        data_key = self._calls.run(
            "unwrap",
            lambda: wrapper.unwrap(wrap, context, on_service_date=note),
            lambda hint: KeyWrapperError("unavailable", provider, hint=hint),
            discard=overwrite,
            until=options.until,
        )
        if isinstance(data_key, KeyWrapperError):
            return data_key
        is_whole = isinstance(data_key, bytearray) and len(data_key) == DATA_KEY_BYTES
        if not is_whole or is_constant(data_key):
            return KeyWrapperError("corrupt", provider, hint="no data key of 32 bytes")
        # The id is recomputed: a document cannot give a key another name.
        if base64url.encode(key_id_of(data_key)) != entry.id:
            overwrite(data_key)
            return KeyWrapperError("corrupt", provider)
        return data_key
