"""Brings the view up to date with the store: reads, judges, unwraps, adopts. Absence is not
deletion: a key leaves this reader's memory at its end or by a revocation, never because a document
lacks it."""

import random
from collections.abc import Callable, Iterable
from typing import Literal

from ..clock import Moment, age_ms
from ..errors import KeyWrapperError, RingStoreError
from .authentication import contradicts, is_signed_by, judge
from .document import RingDocument, RingEntry
from .merge import lacks, union
from .policy import RingPolicy
from .schedule import newest
from .stored_ring import StoredRingDocument
from .view import RingView
from .wraps import CallOptions, KeyWraps

Verdict = Literal["adopt", "start", "unite", "refuse"]


class RingSync:
    """Reads and adopts. What a member would heal, a reader leaves to the members."""

    def __init__(
        self,
        policy: RingPolicy,
        wraps: KeyWraps,
        stored: StoredRingDocument,
        view: RingView,
        uniform: Callable[[], float] = random.random,
    ) -> None:
        self._policy = policy
        self._wraps = wraps
        self._stored = stored
        self._view = view
        self._uniform = uniform
        self._jitter_of: Moment | None = None
        self._proof_interval_ms = 0.0

    def read(self, options: CallOptions) -> None:
        """Reads the ring and makes it the view.

        Raises:
            RingStoreError: `unavailable` while the ring is absent, `corrupt` for a document that no
                key of this reader vouches for, or that a member has to heal.
            KeyWrapperError: when a new key could not be unwrapped; the rest is adopted.
        """
        document = self._read()
        if document is self._view.snapshot.document and self._holds_all():
            self._was_read()
        elif not self._adopt_or_start(document, options):
            self._see_damage(options)

    def start(self, document: RingDocument, options: CallOptions) -> None:
        """Adopts a document without live keys of one's own: the newest of its keys must have signed
        it, and all of its live keys must be here, or tokens would be lost.

        Raises:
            RingStoreError | KeyWrapperError: what is wrong with it, or kept a key from opening.
        """
        live = self._live(document.entries)
        first = newest(live)
        if first is None:
            raise RingStoreError("corrupt", "the ring holds no live key that may be used")
        # One first: a KMS in trouble is not asked for a ringful of keys by every start.
        failure = self._unwrap([first], options) or self._unwrap(live, options)
        if failure is not None:
            raise failure
        held = [key for key in map(self._wraps.cached, live) if key is not None]
        is_contradicted = any(contradicts(document, key) for key in held)
        if is_contradicted or not is_signed_by(document, self._wraps.cached(first)):
            raise RingStoreError("corrupt", "not signed by its newest key")
        self._was_read()
        self._view.install(document)

    def ms_until_proof(self) -> float:
        """Milliseconds until the KMS is to be asked for the next proof; 0 when that is due."""
        limits = self._view.limits
        if limits.last_proof is None or limits.is_refused:
            return 0
        # Drawn once per proof: drawn at every look, the shortest of many draws would win.
        if limits.last_proof is not self._jitter_of:
            self._jitter_of = limits.last_proof
            jitter = 1 - 0.2 * self._uniform()
            self._proof_interval_ms = self._policy.prove_every_seconds * 1_000 * jitter
        return max(0, self._proof_interval_ms - age_ms(limits.last_proof, self._view.now()))

    def prove(self, options: CallOptions) -> None:
        """Unwraps the newest live key once more.

        Raises:
            KeyWrapperError: why that failed.
        """
        live = self._view.snapshot.live_keys(self._view.wall_ms())
        key = newest(key for key in live if key.held is not None)
        if key is None or key.held is None:
            return
        try:
            self._wraps.prove(key.entry, key.held, options)
        except KeyWrapperError as error:
            self._view.limits.failed(error.kind, self._view.now())
            raise
        self._view.limits.proved(self._view.now())

    def _read(self) -> RingDocument:
        document = self._stored.read()
        if document is None or document.is_unfounded:
            raise RingStoreError("unavailable", "the ring is absent from its store")
        return document

    def _adopt_or_start(self, document: RingDocument, options: CallOptions) -> bool:
        verdict = self._judge(document)
        if verdict == "start":
            self.start(document, options)
        elif verdict == "adopt":
            self._adopt(document, options)
        return verdict in ("adopt", "start")

    def _judge(self, document: RingDocument) -> Verdict:
        """Raises RingStoreError, `corrupt`, for a document that no key of this reader vouches
        for."""
        current, now_ms = self._view.snapshot.document, self._view.wall_ms()
        own = [key for key in self._view.snapshot.live_keys(now_ms) if key.held is not None]
        if not own:
            return "start"
        live = {key.id for key in own}
        past = [key for key in self._view.past_signers() if key.id not in live]
        authenticity = judge(document, own, past)
        if authenticity == "forged":
            raise RingStoreError("corrupt", "not signed by a key of this ring")
        if authenticity == "ended branch":
            return "refuse"
        # The same first line, stored anew or signed otherwise.
        if document.body == current.body:
            return "adopt"
        if authenticity == "older branch":
            return "unite"
        is_newer = document.epoch > current.epoch and not lacks(document, current, now_ms)
        return "adopt" if is_newer else "unite"

    def _see_damage(self, options: CallOptions) -> None:
        """A document of this ring that lacks something: what it knows beyond ours holds in memory
        at once, revocations above all. Read again first, as somebody may have healed it."""
        document = self._read()
        if self._adopt_or_start(document, options):
            return
        if self._judge(document) == "unite":
            united = union(self._view.snapshot.document, document)
            failure = self._unwrap(self._live(united.entries), options)
            self._view.install(united)
            if failure is not None:
                raise failure
        raise RingStoreError(
            "corrupt", "an older document of this ring, which a member has to heal"
        )

    def _adopt(self, document: RingDocument, options: CallOptions) -> None:
        self._was_read()
        failure = self._unwrap(self._live(document.entries), options)
        # Times and revocations hold also when a key could not be unwrapped.
        self._view.install(document)
        if failure is not None:
            raise failure

    def _live(self, entries: Iterable[RingEntry]) -> list[RingEntry]:
        now_ms = self._view.wall_ms()
        return [
            entry
            for entry in entries
            if now_ms < entry.opens_until and not self._view.is_revoked(entry)
        ]

    def _unwrap(self, live: Iterable[RingEntry], options: CallOptions) -> KeyWrapperError | None:
        """Unwraps what is not held yet, and returns the first failure: the others are still worth
        having."""
        failure: KeyWrapperError | None = None
        for entry in live:
            if self._wraps.cached(entry) is not None:
                continue
            try:
                self._wraps.unwrap(entry, options)
                self._view.limits.proved(self._view.now())
            except KeyWrapperError as error:
                failure = failure or error
        if failure is not None:
            self._view.limits.failed(failure.kind, self._view.now())
        return failure

    def _was_read(self) -> None:
        self._view.limits.was_read(self._view.now())

    def _holds_all(self) -> bool:
        live = self._view.snapshot.live_keys(self._view.wall_ms())
        return all(key.held is not None for key in live)
