"""Brings the view up to date with the store: a document is a carrier of facts that prove
themselves. Absence is not deletion: a key leaves this reader's memory at its end or by a
revocation, never because a document lacks it."""

import random
from dataclasses import replace
from functools import partial

from ..clock import age_ms, backoff, later
from ..errors import CodecClosedError, KeyWrapperError, RingStoreError, may_pass
from .calls import Calls
from .certificates import birth
from .document import RingDocument, RingEntry
from .facts import belongs, lacks, learn, unwrapped_key, with_unwrapped
from .learn_anew import LearnAnew, LineageError
from .limits import is_refusal
from .snapshot import RingKey, age, create_snapshot
from .store import RingStore, read_ring
from .view import RingView
from .wraps import CallOptions, KeyWraps

_MS = 1_000
_ABSENT_POLL_SECONDS = 3.0
_BACKOFF_BASE_SECONDS = 0.2
_BACKOFF_CAP_SECONDS = 5.0


class RingSync:
    """Reads and learns. What a member would write, a reader leaves to the members."""

    def __init__(self, view: RingView, calls: Calls, wraps: KeyWraps, store: RingStore) -> None:
        self._view = view
        self._calls = calls
        self._wraps = wraps
        self._fetch = partial(read_ring, view, calls, store)
        # The document that was learned whole, and by which time.
        self._learned: tuple[RingDocument | None, float] = (None, 0)
        self.is_foreign = False
        """Whether what the store holds is no document of this ring."""
        self.is_incomplete = False
        """Whether it lacks something that is known here, which a member has to write."""

    def start(self) -> None:
        """Returns when the live keys of the ring are held. A reader never founds a ring: while
        there is none, it waits for a member to do so. Raises a refusal at once, and what may pass
        after `start_timeout_seconds`; CodecClosedError when the codec is closed meanwhile."""
        view, failures = self._view, 0
        until = later(view.now(), view.policy.start_timeout_seconds * _MS)
        anew = LearnAnew(view, self._wraps)
        while True:
            failure: Exception = RingStoreError("unavailable", "there is no ring yet")
            wait = _ABSENT_POLL_SECONDS * (1 + random.random())
            try:
                # Nothing that was judged by another time counts.
                view.ring_clock.start_anew(view.now())
                document = self._fetch()
                if document:
                    known = anew.learn(document, CallOptions(is_foreground=True, until=until))
                    view.limits.last_read = view.now()
                    view.install(known)
                    self._learned = document, self._shift_ms()
                    return
            except (KeyWrapperError, RingStoreError) as error:
                if not may_pass(error) and not isinstance(error, LineageError):
                    raise
                failure = error
                wait = backoff(_BACKOFF_BASE_SECONDS, _BACKOFF_CAP_SECONDS, failures)
                failures += 1
            left = self._calls.seconds_left(until)
            if left <= 0:
                raise failure
            if self._calls.closing.wait(min(left, wait)):
                raise CodecClosedError

    def read(self, options: CallOptions) -> None:
        """Reads the ring and learns what it says. RingStoreError: `unavailable` while it is absent,
        `corrupt` for what is no document of this ring: that teaches nothing. KeyWrapperError
        when a new key could not be unwrapped; the rest is learned."""
        try:
            document = self._fetch()
        except RingStoreError as error:
            self.is_foreign = error.kind in ("corrupt", "too-large")
            raise
        failure: KeyWrapperError | None = None
        if document is not None and not self._is_learned(document):
            failure = self._learn_from(document, options)
            judgement = self._view.judgement()
            is_whole = not any(map(judgement.is_from_the_future, document))
            self._learned = document if is_whole and failure is None else None, self._shift_ms()
        known = self._view.snapshot
        entries = document or ()
        teaches = any(entry.id in known.by_id for entry in entries)
        if teaches:
            self._view.limits.last_read = self._view.now()
        self.is_foreign = bool(entries) and not teaches
        self.is_incomplete = lacks(entries, known, self._view.judgement())
        if failure is not None:
            raise failure
        if document is None:
            raise RingStoreError("unavailable", "the ring is absent from its store")
        if not teaches:
            raise RingStoreError("corrupt", "the store holds no key of this ring")

    def ms_until_proof(self) -> float:
        """Milliseconds until the KMS is to be asked for the next proof; 0 when that is due."""
        is_checkable = self._provable() is not None
        return self._view.limits.ms_until_proof(self._view.now()) if is_checkable else float("inf")

    def prove(self, options: CallOptions) -> bool:
        """Unwraps the newest live key once more; raises KeyWrapperError when that fails. False when
        there is none."""
        key = self._provable()
        if key is None or key.held is None:
            return False
        self._wraps.prove(key, key.held, options)
        return True

    def _provable(self) -> RingKey | None:
        keys = self._view.snapshot.usable_keys(self._view.wall_ms())
        return max(keys, key=lambda key: (not key.is_left, age(key)), default=None)

    def _is_learned(self, document: RingDocument) -> bool:
        """What was judged by another time is judged again; and what could not be read, or was from
        the future, may be learned now, though the document stays as it is."""
        known, (learned, shift_ms) = self._view.snapshot, self._learned
        is_same_time = abs(self._shift_ms() - shift_ms) <= _MS
        return document == learned and is_same_time and not known.carried + known.unreadable

    def _shift_ms(self) -> float:
        now = self._view.now()
        return self._view.wall_ms(now) - now.steady_ms

    def _learn_from(self, document: RingDocument, options: CallOptions) -> KeyWrapperError | None:
        """Unwraps what is new and vouched for, and swaps the view once: a revocation comes with its
        successor. Returns what kept an entry from being unwrapped."""
        view, began = self._view, self._view.now()
        was_unreadable = {entry.id for entry in view.snapshot.unreadable}
        tried = was_unreadable | {entry.id for entry in view.snapshot.carried}
        failures: dict[str, KeyWrapperError] = {}
        known, wanted = learn(view.snapshot, document, view.judgement())
        if not wanted and not options.for_token and self._go_over(document, options):
            return None
        while age_ms(began, view.now()) <= 4 * self._view.policy.kms_timeout_seconds * _MS:
            untried = [
                entry
                for entry in wanted
                if entry.id not in failures and not (options.for_token and entry.id in tried)
            ]
            if not untried:
                break
            # A claimed revocation may be proved by a newer key, without an unwrap; and what failed
            # before must not keep the others from being tried.
            entry = min(untried, key=lambda one: (one.revocation is not None, one.id in tried))
            try:
                unwrapped = self._wraps.unwrap(entry, options)
            except KeyWrapperError as error:
                failures[entry.id] = error
                continue
            seals_from_ms = view.seals_from_ms(entry, view.now())
            key = unwrapped_key(entry, *unwrapped, seals_from_ms)
            claimed = replace(key, vouchers=entry.vouchers)
            if not belongs(claimed, document, known, view.judgement()):
                failures[entry.id] = KeyWrapperError("corrupt", entry.wraps[0].provider)
                continue
            known = with_unwrapped(known, key, view.judgement())
            known, wanted = learn(known, document, view.judgement())
        if not options.for_token:
            self._judge_refused(wanted, failures, options)
        corrupt = {key_id for key_id, error in failures.items() if error.kind == "corrupt"}
        corrupt |= was_unreadable - failures.keys()
        pending = [entry for entry in wanted if entry.id not in corrupt]
        unreadable = [entry for entry in wanted if entry.id in corrupt]
        view.install(create_snapshot(known.keys, pending, unreadable))
        return next((failures[entry.id] for entry in pending if entry.id in failures), None)

    def _judge_refused(
        self, wanted: list[RingEntry], failures: dict[str, KeyWrapperError], options: CallOptions
    ) -> None:
        """An entry that the KMS refuses while a held key is not refused is no better than a corrupt
        one."""
        tried = [entry for entry in wanted if entry.id in failures]
        refused = [entry for entry in tried if is_refusal(failures[entry.id].kind)]
        try:
            if not refused or not self.prove(options):
                return
        except KeyWrapperError:
            # Counted where it is a refusal; the read fails by what the entry was answered.
            return
        for entry in refused:
            for wrap in entry.wraps:
                self._wraps.note_corrupt(entry, wrap)
            failures[entry.id] = KeyWrapperError("corrupt", failures[entry.id].provider)

    def _go_over(self, document: RingDocument, options: CallOptions) -> bool:
        """The one exception to "who knows a key never starts anew": its ring was created only
        lately, while the store was without an older one, and that is back. Goes over to it; what
        was sealed here is opened to its end."""
        view = self._view
        own = (key for key in view.snapshot.keys if not key.is_left and not key.is_tombstone)
        root = min(own, key=birth, default=None)
        # It says of itself that there was none before it: else some of its ring are gone.
        if root is None or root.ancestors is None or root.ancestors.ids:
            return False
        is_young = root.created > view.wall_ms() - view.policy.store_outage_seconds * _MS
        is_older = any(entry.created < root.created for entry in document)
        if not (is_young and is_older) or any(e.id in view.snapshot.by_id for e in document):
            return False
        try:
            known = LearnAnew(view, self._wraps).learn(document, options)
        except RingStoreError:
            return False
        except KeyWrapperError as error:
            # Neither a ring that may be used, nor one of this reader: junk.
            if error.kind == "corrupt" or is_refusal(error.kind):
                return False
            raise
        view.go_over(known)
        return True
