"""Creates a key for a ring in which no key may seal, or waits for the member that creates it.
Members that start at the same time, or learn at the same time that every key is revoked, must not
each create one."""

from contextlib import suppress
from typing import Literal, NamedTuple

from .. import base64url
from ..clock import Moment, age_ms
from ..errors import CodecClosedError, KeyWrapperError, RingConflictError, RingStoreError
from .calls import Calls
from .store import StoredDocument
from .view import RingView
from .writer import RingWriter

_MS = 1_000
# Enough random bytes that two claims are never equal.
_CLAIM_BYTES = 16
_FIRST_LOOK_MS = 50
_LONGEST_LOOK_MS = 3_000
# The largest number of successive calls to the KMS, including retries, that the first key of a ring
# can need: generate, sign and unwrap.
_CALLS_OF_A_FOUNDER = 12


class _Claim(NamedTuple):
    claim: str
    since: Moment


class Founding:
    """The member that wins the compare-and-swap of a claim creates the key, and the others wait. A
    waiting member takes over a claim after the longest time that its owner could have needed,
    measured by its own clock; if the owner is still alive, its key loses the race. After three
    times as long, the waiting member ignores all claims, because an attacker may have written
    them."""

    def __init__(
        self, view: RingView, calls: Calls, stored: StoredDocument, writer: RingWriter
    ) -> None:
        self._view = view
        self._calls = calls
        self._stored = stored
        self._writer = writer
        self._own_claim: str | None = None
        self._waiting_for: _Claim | None = None
        # The times when a claim of another member was first and last seen.
        self._waiting: tuple[Moment, Moment] | None = None
        self._looks = 0
        # Whether the last call to the KMS failed. If so, the next attempt creates the key before it
        # writes anything to the store.
        self._has_kms_failed = False

    def attempt(self, reason: Literal["initial", "emergency"] = "initial") -> float:
        """One attempt. Returns the milliseconds to wait before the next read of the store if
        another member is creating the key; 0 when the ring has the key. Raises RingConflictError
        when another member claimed first, and RingStoreError or KeyWrapperError if the creation
        failed: the claim is then withdrawn."""
        latest = self._stored.latest
        there = None if latest is None or latest.document is None else latest.document.claim
        wait_ms = self._ms_for_another(there)
        if wait_ms > 0:
            return wait_ms
        # By the right time, the ring may have live keys, so none is created while the clock is in
        # doubt.
        trouble = self._view.ring_clock.trouble(self._view.now())
        if trouble is not None:
            raise RingStoreError("unavailable", f"no key was created: {trouble}")
        # The claim is remembered before the write, so that this member recognizes it as its own
        # even if the answer to the write is lost.
        if self._own_claim is None:
            self._own_claim = base64url.encode(self._view.random(_CLAIM_BYTES))
        made = self._writer.make(reason) if self._has_kms_failed else None
        self._writer.claim(self._own_claim)
        try:
            self._writer.publish(reason, made)
        except (KeyWrapperError, RingStoreError, ValueError) as error:
            self._has_kms_failed = isinstance(error, KeyWrapperError)
            if not self._calls.closing.is_set():
                self._give_back()
            raise
        self._has_kms_failed = False
        self._waiting = None
        return 0

    def _ms_for_another(self, claim: str | None) -> float:
        """How long to wait, in milliseconds, if another member's claim may still lead to a key; 0
        if this member should claim."""
        if claim is None or claim == self._own_claim:
            return 0
        now = self._view.now()
        patience_ms = _CALLS_OF_A_FOUNDER * self._view.policy.kms_timeout_seconds * _MS
        if self._waiting_for is None or self._waiting_for.claim != claim:
            self._waiting_for = _Claim(claim, now)
        since = now
        if self._waiting is not None and age_ms(self._waiting[1], now) <= patience_ms:
            since = self._waiting[0]
        if since is now:
            self._looks = 0
        self._waiting = since, now
        is_heeded = (
            age_ms(self._waiting_for.since, now) < patience_ms
            and age_ms(since, now) < 3 * patience_ms
        )
        if not is_heeded:
            return 0
        longest_ms = min(_LONGEST_LOOK_MS, _FIRST_LOOK_MS * 2.0 ** min(self._looks, 32))
        self._looks += 1
        return longest_ms * (0.5 + self._view.uniform() / 2)

    def _give_back(self) -> None:
        """Withdraws the claim, so that other members need not wait for it. If the write fails, they
        wait; the error that prevented the creation is raised either way."""
        with suppress(RingConflictError, RingStoreError, CodecClosedError):
            self._writer.claim(None)
            self._own_claim = None
