"""Data keys and the KMS: wraps new data keys with every key wrapper, and unwraps the keys of a
document with any of them. The result of an unwrap is trusted only after the key id has been
recomputed from it."""

import hashlib
import hmac
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import product
from typing import NamedTuple, TypeVar

from .. import base64url
from ..clock import Moment, age_ms
from ..derivation import DATA_KEY_BYTES, key_id_of, overwrite
from ..errors import KeyWrapperError, KeyWrapperOperation, all_of, attempted, may_pass
from ..held_key import HeldKey
from ..key_wrapper import DataKeyGenerator, EntrySigner, KeyWrapper, WrappedKey
from ..options import is_constant
from .calls import BACKGROUND, FOREGROUND, TOO_LATE, CallOptions, Calls
from .certificates import ancestors_mac_of, wrap_mac_of
from .data_key_bytes import bound_plaintext, checked_data_key, unbound_plaintext
from .document import (
    Ancestors,
    Macs,
    RingEntry,
    RingWrap,
    format_time,
    signed_bytes,
    wrap_context,
)
from .hedges import Hedges
from .schedule import KeyTimes
from .view import RingView

# After the KMS reports a wrap as corrupt, it is not unwrapped again for this long. At most this
# many such wraps are remembered.
_CORRUPT_FOR_MS = 3_600_000
_MAX_CORRUPT = 4_096

T = TypeVar("T")


class KeyVersion(NamedTuple):
    """The KMS key version of a wrap."""

    provider: str
    key_id: str


class Unwrapped(NamedTuple):
    """A data key and the wrap that it came from."""

    held: HeldKey
    wrap: RingWrap


class _Named(NamedTuple):
    """A key that has no entry yet."""

    id: str
    times: tuple[str, ...]


class _LastAnswer:
    """The last failure that a key wrapper answered with, and the number of its attempts since it
    last succeeded."""

    def __init__(self) -> None:
        self._last: KeyWrapperError | None = None
        self._attempts = 0

    @property
    def failure(self) -> KeyWrapperError | None:
        """None if the last call succeeded, or there was no call."""
        return None if self._last is None else attempted(self._last, self._attempts)

    def note(self, failure: KeyWrapperError | None, *, is_cut: bool) -> None:
        if failure is None:
            self._last, self._attempts = None, 0
        elif not is_cut or self._last is None:
            self._last = failure
            self._attempts += failure.attempts or 1


class KeyWraps:
    """Wraps and unwraps data keys; the view holds them. Only this class calls the KMS, so only this
    class records KMS checks that passed, and refusals."""

    def __init__(
        self,
        view: RingView,
        calls: Calls,
        wrappers: Sequence[KeyWrapper],
        *,
        quorum: int | None = None,
        trusts_store: bool = False,
    ) -> None:
        self._view = view
        self._calls = calls
        self.wrappers = wrappers
        self._quorum = len(wrappers) if quorum is None else quorum
        self._trusts_store = trusts_store
        # When each corrupt wrap was noted, oldest first. A wrap is corrupt for one entry, not for a
        # key id.
        self._corrupt: dict[bytes, Moment] = {}
        self._last_answers: dict[int, _LastAnswer] = defaultdict(_LastAnswer)
        # Guards these two, because several entries are unwrapped at the same time.
        self._lock = threading.Lock()
        self._hedges = Hedges()

    def last_failure(self, otherwise: KeyWrapperError) -> KeyWrapperError:
        """The last failures of key wrappers, and the number of their attempts;
        `otherwise` if none is known."""
        with self._lock:
            known = [self._last_answers[id(wrapper)].failure for wrapper in self.wrappers]
        failures = [failure for failure in known if failure is not None]
        return all_of(failures) if failures else otherwise

    def unwrap(
        self, entries: Sequence[RingEntry], options: CallOptions
    ) -> list[Unwrapped | KeyWrapperError]:
        """Unwraps all entries at the same time, each with the first key wrapper that can unwrap it.
        A KeyWrapperError is the mildest error of the key wrappers that were called. It is
        `corrupt`, without a call, if no wrap belongs to these key wrappers, or if all of their
        wraps were already noted as corrupt. Failures that may pass are retried together."""
        answers: dict[str, Unwrapped | KeyWrapperError] = {}
        attempt, left = 1, list(entries)
        while left:
            asks = [partial(self._unwrap_with_each, entry, options) for entry in left]
            for entry, answer in zip(left, self._hedges.together(asks, _discard), strict=True):
                answers[entry.id] = self._unwrapped(answer)
            failed = [one for one in left if isinstance(answers[one.id], KeyWrapperError)]
            left = [one for one in failed if may_pass(answers[one.id])]  # type: ignore[arg-type]
            waited_for = answers[left[0].id] if left else None
            if not isinstance(waited_for, KeyWrapperError) or not self._calls.wait_to_retry(
                waited_for, attempt, options
            ):
                break
            attempt += 1
        return [answers[entry.id] for entry in entries]

    def prove(self, entry: RingEntry, held: HeldKey, options: CallOptions) -> RingWrap:
        """Calls the KMS to unwrap an entry again, although its key is held, and returns the wrap
        that was unwrapped. Only a refusal of this call counts for the kill switch. Raises
        KeyWrapperError if the unwrap fails, and with the kind `corrupt` if the result is another
        key."""
        try:
            data_key, wrap = self._unwrap_any(entry, options)
            try:
                # Raises an error if the codec was closed meanwhile.
                is_same = held.equals(data_key)
            finally:
                overwrite(data_key)
            if not is_same:
                raise KeyWrapperError("corrupt", wrap.provider)
        except KeyWrapperError as error:
            self._view.limits.failed(error.kind, self._view.now())
            raise
        self._view.limits.proved(self._view.now())
        return wrap

    def note_refused(self, entry: RingEntry, other: RingWrap) -> bool:
        """Treats the wraps of an entry that the KMS refused as corrupt, because the same key
        wrapper unwrapped `other`. Returns whether the entry has no wrap left that may be
        unwrapped."""
        own = []
        for wrap in entry.wraps:
            owner = next((one for one in self.wrappers if _is_own(one, wrap)), None)
            if owner is None:
                continue
            own.append(wrap)
            if _is_own(owner, other):
                self._note_corrupt(entry, wrap)
        return all(self._was_corrupt(entry, wrap) for wrap in own)

    def create(
        self,
        times: KeyTimes,
        is_taken: Callable[[str], bool],
        vouch: Callable[[str, tuple[str, ...]], Macs],
        options: CallOptions = FOREGROUND,
    ) -> tuple[RingEntry, HeldKey]:
        """Creates a data key with these times, wraps it with every key wrapper, and checks each
        wrap by unwrapping it. `vouch` makes the vouchers for a key id and its times. Raises
        KeyWrapperError if too few key wrappers could wrap it."""
        spelt = tuple(map(format_time, times))
        context = wrap_context(self._view.ring, spelt)
        while True:
            data_key, first = self._generate(context, options)
            try:
                held = HeldKey(bytearray(data_key), self._view.ring)
                if is_taken(held.id):
                    held.destroy()
                    continue
                try:
                    wraps = self._wrap_with_all(data_key, _Named(held.id, spelt), first, options)
                    vouchers = vouch(held.id, spelt)
                    ids = tuple(vouchers)
                    ancestors = Ancestors(ids, ancestors_mac_of(ids, held))
                    certified = tuple(_certified(*wrap, held) for wrap in wraps)
                except BaseException:
                    held.destroy()
                    raise
            finally:
                overwrite(data_key)
            entry = RingEntry(held.id, *times, spelt, vouchers, ancestors, None, certified)
            self._view.limits.proved(self._view.now())
            return entry, self._view.hold(held)

    def lacks_wraps(self, entry: RingEntry) -> bool:
        """Whether an entry lacks a wrap by one of the key wrappers."""
        return len(self._missing(entry)) > 0

    def missing_wraps(
        self, entry: RingEntry, held: HeldKey, options: CallOptions
    ) -> tuple[RingWrap, ...]:
        """New wraps by the key wrappers that have no wrap in the entry yet. A wrap that cannot be
        made is left out."""
        data_key = held.copy_data_key()
        named, added = _Named(entry.id, entry.times), []
        try:
            for wrapper in self._missing(entry):
                with suppress(KeyWrapperError):
                    added.append(self._wrap_one(wrapper, data_key, named, None, options))
        finally:
            # Closing the codec ends a wait for a retry with an error.
            overwrite(data_key)
        return tuple(_certified(wrap, signature, held) for wrap, signature in added)

    def new_version(self, known: Iterable[RingWrap]) -> KeyVersion | None:
        """The KMS key version that a key wrapper now uses, if no wrap in `known` was made with it.
        To learn the version, this wraps random bytes that are not a data key, and discards the
        result. Raises KeyWrapperError if no such version was found and a key wrapper failed."""
        context = {"sealring:ring": self._view.ring, "sealring:purpose": "key-version"}
        known, failure = tuple(known), None
        for wrapper in self.wrappers:
            own = [wrap for wrap in known if _is_own(wrapper, wrap)]
            if not wrapper.supports.key_versions or not own:
                continue
            data_key = self._own_data_key()
            try:
                wrap = self._wrap(wrapper, data_key, context, BACKGROUND)
            finally:
                overwrite(data_key)
            if isinstance(wrap, KeyWrapperError):
                failure = failure or wrap
            elif all(wrap.key_id != one.key_id for one in own):
                return KeyVersion(wrap.provider, wrap.key_id)
        if failure is not None:
            raise failure
        return None

    def _missing(self, entry: RingEntry) -> list[KeyWrapper]:
        return [one for one in self.wrappers if not any(_is_own(one, w) for w in entry.wraps)]

    def _generate(
        self, context: Mapping[str, str], options: CallOptions
    ) -> tuple[bytearray, WrappedKey | None]:
        first = self.wrappers[0]
        # If a service binds no context, this process composes the bytes to wrap, so the service
        # cannot generate them.
        if not isinstance(first, DataKeyGenerator) or not first.supports.context:
            return self._own_data_key(), None
        generate = first.generate
        made = self._call(
            "generate",
            first,
            lambda note: generate(context, on_service_date=note),
            options,
            discard=lambda made: overwrite(made[0]),
        )
        if isinstance(made, KeyWrapperError):
            if self._quorum == len(self.wrappers):
                raise made
            # The other key wrappers may be enough.
            return self._own_data_key(), None
        data_key, wrap = made
        if checked_data_key(data_key) is None:
            raise _corrupt(first.provider, "generate", "the answer is not a data key of 32 bytes")
        return data_key, wrap

    def _own_data_key(self) -> bytearray:
        data_key = bytearray(self._view.random(DATA_KEY_BYTES))
        if len(data_key) != DATA_KEY_BYTES or is_constant(data_key):
            raise ValueError("the random source did not return 32 random bytes for a data key")
        return data_key

    def _wrap_with_all(
        self, data_key: bytearray, named: _Named, first: WrappedKey | None, options: CallOptions
    ) -> list[tuple[WrappedKey, bytes | None]]:
        wraps, failures = [], []
        for index, wrapper in enumerate(self.wrappers):
            ready = first if index == 0 else None
            try:
                wraps.append(self._wrap_one(wrapper, data_key, named, ready, options))
            except KeyWrapperError as error:
                failures.append(error)
        if len(wraps) < self._quorum:
            raise all_of(failures)
        return wraps

    def _wrap_one(
        self,
        wrapper: KeyWrapper,
        data_key: bytearray,
        named: _Named,
        ready: WrappedKey | None,
        options: CallOptions,
    ) -> tuple[WrappedKey, bytes | None]:
        """Wraps the data key, signs the wrap if an unwrap would not authenticate its origin, and
        checks the wrap by unwrapping it."""
        context = wrap_context(self._view.ring, named.times)
        wrap = ready or self._wrap(wrapper, data_key, context, options)
        if isinstance(wrap, KeyWrapperError):
            raise wrap
        signature = self._sign(wrapper, named, wrap, options)
        back = self._retried(lambda: self._ask(wrapper, wrap, context, options), options)
        if isinstance(back, KeyWrapperError):
            raise back
        is_same = hmac.compare_digest(back, data_key)
        overwrite(back)
        if not is_same:
            raise KeyWrapperError("corrupt", wrapper.provider)
        return wrap, signature

    def _wrap(
        self,
        wrapper: KeyWrapper,
        data_key: bytearray,
        context: Mapping[str, str],
        options: CallOptions,
    ) -> WrappedKey | KeyWrapperError:
        has_context = wrapper.supports.context
        plaintext = bytearray(data_key) if has_context else bound_plaintext(data_key, context)
        try:
            return self._call(
                "wrap",
                wrapper,
                lambda note: wrapper.wrap(plaintext, context, on_service_date=note),
                options,
            )
        finally:
            overwrite(plaintext)

    def _sign(
        self, wrapper: KeyWrapper, named: _Named, wrap: WrappedKey, options: CallOptions
    ) -> bytes | None:
        if wrapper.supports.authenticated or not isinstance(wrapper, EntrySigner):
            return None
        entry, sign = signed_bytes(self._view.ring, named.id, named.times, wrap), wrapper.sign
        signature = self._call("sign", wrapper, lambda _: sign(entry), options)
        if isinstance(signature, KeyWrapperError):
            raise signature
        return signature

    def _call(
        self,
        operation: KeyWrapperOperation,
        wrapper: KeyWrapper,
        run: Callable[[Callable[[float], None]], T],
        options: CallOptions,
        discard: Callable[[T], object] = lambda _: None,
    ) -> T | KeyWrapperError:
        """Makes one call, with retries if a caller waits."""
        note = partial(self._view.ring_clock.note, "kms")
        timeout = self._view.policy.kms_timeout_seconds

        def attempt() -> T | KeyWrapperError:
            is_short = self._calls.seconds_left(options.until) < timeout
            answer = self._calls.run(
                # A KMS that hangs must not prevent calls to the other ones.
                f"kms {id(wrapper)}",
                operation,
                lambda: run(note),
                lambda hint: KeyWrapperError(
                    "unavailable", wrapper.provider, operation=operation, hint=hint
                ),
                discard=discard,
                until=options.until,
            )
            # A call that was cut short by the end of a start does not count.
            is_cut = is_short and isinstance(answer, KeyWrapperError) and answer.hint == TOO_LATE
            with self._lock:
                self._last_answers[id(wrapper)].note(
                    answer if isinstance(answer, KeyWrapperError) else None, is_cut=is_cut
                )
            return answer

        return self._retried(attempt, options)

    def _retried(
        self, ask: Callable[[], T | KeyWrapperError], options: CallOptions
    ) -> T | KeyWrapperError:
        attempt = 1
        while True:
            answer = ask()
            if not isinstance(answer, KeyWrapperError):
                return answer
            if not self._calls.wait_to_retry(answer, attempt, options):
                return answer
            attempt += 1

    def _note_corrupt(self, entry: RingEntry, wrap: RingWrap) -> None:
        identity = self._identity(entry, wrap)
        with self._lock:
            self._corrupt.pop(identity, None)
            self._corrupt[identity] = self._view.now()
            if len(self._corrupt) > _MAX_CORRUPT:
                del self._corrupt[next(iter(self._corrupt))]

    def _is_corrupt(self, entry: RingEntry, wrap: RingWrap) -> bool:
        # A wrap whose key is held was unwrapped before: later answers about it do not count.
        return not self._view.holds(entry.id) and self._was_corrupt(entry, wrap)

    def _was_corrupt(self, entry: RingEntry, wrap: RingWrap) -> bool:
        since = self._corrupt.get(self._identity(entry, wrap))
        return since is not None and age_ms(since, self._view.now()) < _CORRUPT_FOR_MS

    def _identity(self, entry: RingEntry, wrap: RingWrap) -> bytes:
        """The identity of the call to the KMS and of the signature, without the MAC of the wrap."""
        question = entry.id, entry.times, wrap.provider, wrap.key_id, wrap.wrapped, wrap.signature
        return hashlib.sha256(repr(question).encode("ascii", "backslashreplace")).digest()

    def _unwrapped(
        self, answer: tuple[bytearray, RingWrap] | KeyWrapperError
    ) -> Unwrapped | KeyWrapperError:
        if isinstance(answer, KeyWrapperError):
            return answer
        data_key, wrap = answer
        held = self._view.hold(HeldKey(data_key, self._view.ring))
        self._view.limits.proved(self._view.now())
        return Unwrapped(held, wrap)

    def _unwrap_any(self, entry: RingEntry, options: CallOptions) -> tuple[bytearray, RingWrap]:
        answer = self._retried(lambda: self._unwrap_with_each(entry, options), options)
        if isinstance(answer, KeyWrapperError):
            raise answer
        return answer

    def _unwrap_with_each(
        self, entry: RingEntry, options: CallOptions
    ) -> tuple[bytearray, RingWrap] | KeyWrapperError:
        failures: list[KeyWrapperError] = []
        asked = [
            (wrapper, wrap)
            for wrapper, wrap in product(self.wrappers, entry.wraps)
            if _is_own(wrapper, wrap) and not self._is_corrupt(entry, wrap)
        ]
        if not asked:
            names = " or ".join(wrapper.provider for wrapper in self.wrappers)
            return _corrupt(names, "unwrap", "the ring holds no wrap by this key wrapper")
        asks = [partial(self._unwrap_entry, *one, entry, options) for one in asked]
        # A single call cannot be overtaken.
        is_hedged = options.is_hedged and len(asks) > 1
        answers = self._hedges.answers(asks) if is_hedged else (ask() for ask in asks)
        for (_, wrap), answer in zip(asked, answers, strict=False):
            if answer is None:
                continue
            if not isinstance(answer, KeyWrapperError):
                return answer, wrap
            failures.append(answer)
            if answer.kind == "corrupt":
                self._note_corrupt(entry, wrap)
        return all_of(failures)

    def _unwrap_entry(
        self, wrapper: KeyWrapper, wrap: RingWrap, entry: RingEntry, options: CallOptions
    ) -> bytearray | KeyWrapperError:
        if not self._proves_origin(wrapper, wrap, entry):
            return _corrupt(wrapper.provider, "unwrap", "the wrap carries no valid signature")
        context = wrap_context(self._view.ring, entry.times)
        data_key = self._ask(wrapper, wrap, context, options)
        # The id is recomputed, so that a document cannot give a key a different id.
        if isinstance(data_key, KeyWrapperError) or (
            base64url.encode(key_id_of(data_key)) == entry.id
        ):
            return data_key
        overwrite(data_key)
        return KeyWrapperError("corrupt", wrapper.provider)

    def _proves_origin(self, wrapper: KeyWrapper, wrap: RingWrap, entry: RingEntry) -> bool:
        """Whether a wrap may be unwrapped. If anyone with the public key could have made it, it
        needs a signature of the KMS, which is checked before any call."""
        if wrapper.supports.authenticated or self._trusts_store:
            return True
        if wrap.signature is None or not isinstance(wrapper, EntrySigner):
            return False
        signed = signed_bytes(self._view.ring, entry.id, entry.times, wrap)
        return wrapper.verify(signed, wrap.signature) is True

    def _ask(
        self,
        wrapper: KeyWrapper,
        wrap: WrappedKey,
        context: Mapping[str, str],
        options: CallOptions,
    ) -> bytearray | KeyWrapperError:
        """Makes one attempt. Returns a failure instead of raising it, so that no stack frame that
        contains a key becomes part of an error."""
        plaintext = self._call(
            "unwrap",
            wrapper,
            lambda note: wrapper.unwrap(wrap, context, on_service_date=note),
            options._replace(is_foreground=False),
            discard=overwrite,
        )
        if isinstance(plaintext, KeyWrapperError):
            return plaintext
        if wrapper.supports.context:
            data_key, hint = checked_data_key(plaintext), "no data key of 32 bytes"
        else:
            data_key, hint = unbound_plaintext(plaintext, context), "the context does not match"
        return _corrupt(wrapper.provider, "unwrap", hint) if data_key is None else data_key


def _discard(answer: tuple[bytearray, RingWrap] | KeyWrapperError) -> None:
    if not isinstance(answer, KeyWrapperError):
        overwrite(answer[0])


def _certified(wrap: WrappedKey, signature: bytes | None, own: HeldKey) -> RingWrap:
    mac = wrap_mac_of(wrap, signature, own)
    return RingWrap(wrap.provider, wrap.key_id, wrap.wrapped, signature, mac, is_proved=True)


def _is_own(wrapper: KeyWrapper, wrap: WrappedKey) -> bool:
    return wrap.provider == wrapper.provider and wrapper.owns(wrap)


def _corrupt(provider: str, operation: KeyWrapperOperation, hint: str) -> KeyWrapperError:
    return KeyWrapperError("corrupt", provider, operation=operation, hint=hint)
