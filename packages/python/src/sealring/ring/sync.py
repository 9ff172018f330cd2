"""Updates the view from the store. Only authenticated facts of a document are adopted. Absence is
not deletion: a key leaves this process's memory when it expires or is revoked, never because a
document lacks it."""

from dataclasses import replace

from ..clock import Deadline, Moment, age_ms, earlier, later
from ..errors import KeyWrapperError, RingStoreError
from .calls import BACKGROUND, CallOptions
from .certificates import birth
from .document import RingDocument, RingEntry, RingWrap, encode_document
from .facts import belongs, lacks, learn, unwrapped_key, with_unwrapped
from .learn_anew import LearnAnew, is_dead
from .limits import LEAST_SPACING_MS, is_refusal
from .publication import document_of
from .snapshot import RingKey, RingSnapshot, age, create_snapshot
from .store import StoredDocument
from .view import RingView
from .wraps import KeyWraps

_MS = 1_000
# Entries of a document that are unwrapped at once.
_BATCH = 4
# How long one read unwraps entries, as a multiple of the deadline of one KMS call.
_CALLS_OF_A_READ = 4
# The same while refusals are counted: their number within the window depends on how long a pass
# takes.
_CALLS_WHILE_REFUSED = 1
# The longest random wait before overwriting a document that lacks something. The wait is random
# because it is enough if one of many members does this.
_REPAIR_WAIT_MS = 5_000
# A foreign document is read twice, at least this far apart, before it is overwritten.
_FOREIGN_WAIT_MS = 5_000
_CONTESTED_WINDOW_MS = 3_600_000
# How many foreign documents may be overwritten within the window; more mean that two fleets use the
# same place.
_CONTESTED_AFTER = 3


class RingSync:
    """Reads the ring, and decides when a document is overwritten."""

    def __init__(self, view: RingView, wraps: KeyWraps, stored: StoredDocument) -> None:
        self._view = view
        self._wraps = wraps
        self._stored = stored
        self._anew = LearnAnew(view, wraps)
        # The last document that was learned completely, and the clock offset at that time.
        self._learned: tuple[RingDocument | None, float] = (None, 0)
        # The last document that lacked nothing.
        self._whole: tuple[RingDocument | None, RingSnapshot | None] = (None, None)
        self._repaired_at: Moment | None = None
        self._overwritten: tuple[Moment, ...] = ()
        # When the KMS first refused an entry although it unwrapped a held key, by the id of the
        # entry.
        self._refused_at: dict[str, Moment] = {}
        # The time of a KMS check, and the wait that was drawn after it.
        self._proof_interval: tuple[Moment | None, float] = (None, 0)
        self.was_answered = False
        """Whether the store answered the last read in any way. If so, it can be written."""
        self.is_foreign = False
        """Whether the store holds something other than a document of this ring."""
        self.repair_at: Deadline | None = None
        """The time when a repair is due."""

    def read(self, options: CallOptions) -> None:
        """Reads the ring and learns its facts. Raises RingStoreError: `unavailable` while the ring
        is absent, and `corrupt` if the store holds anything but a document of this ring; then
        nothing is learned. Raises KeyWrapperError if a new key could not be unwrapped; everything
        else is learned."""
        view = self._view
        self.was_answered = False
        stored = self._stored.read()
        self.was_answered = True
        document = None if stored is None else stored.document
        failure: KeyWrapperError | None = None
        if document is not None and not self._is_learned(document):
            failure = self._learn_from(document, options)
            judgement = view.judgement()
            is_whole = (
                failure is None
                # A key that cannot be unwrapped now may be unwrapped later, although the document
                # stays the same.
                and not view.snapshot.unreadable
                and not any(map(judgement.is_from_the_future, document.entries))
                # A read that others caused never makes a process switch to another ring, so the
                # next read checks again.
                and not options.is_caused
            )
            self._note_learned(document if is_whole else None)
        now = view.now()
        view.retire(now)
        known, entries = view.snapshot, () if document is None else document.entries
        # An entry that the pin of this process refuses says nothing about its writer.
        teaches = any(e.id in known.by_id and known.by_id[e.id].signer for e in entries)
        if teaches:
            view.limits.last_read = now
        self.is_foreign = stored is not None and not teaches and (document is None or bool(entries))
        self._consider_repair(document, now)
        if failure is not None:
            raise failure
        # If neither the store nor this process knows a live key, this member creates a key, as it
        # would in a ring that it can read.
        is_readable = stored is None or document is not None
        alive = (e.opens_until > view.wall_ms(now) for e in (*entries, *known.keys, *known.carried))
        if is_readable and not any(alive):
            return
        if stored is None:
            raise RingStoreError("unavailable", "the ring is absent from its store")
        if stored.error is not None:
            raise stored.error
        if not teaches:
            raise RingStoreError("corrupt", "the store holds no key of this ring")

    @property
    def is_repairing(self) -> bool:
        """Whether the store lacks facts that this process knows and has not written yet."""
        return self.repair_at is not None

    def is_contested(self, now: Moment) -> bool:
        """Whether another writer keeps overwriting this ring in the store."""
        recent = (at for at in self._overwritten if age_ms(at, now) < _CONTESTED_WINDOW_MS)
        return sum(1 for _ in recent) > _CONTESTED_AFTER

    def take_repair(self) -> bool:
        """Whether to overwrite now what was just read."""
        now = self._view.now()
        if not self.was_answered or self.repair_at is None or self.repair_at.ms_left(now) > 0:
            return False
        self.repair_at, self._repaired_at = None, now
        if self.is_foreign:
            self._overwritten = (*self._overwritten, now)[-(_CONTESTED_AFTER + 1) :]
        return True

    def repair_was_lost(self) -> None:
        """A write that did not reach the store is repeated after the backoff of a failing store,
        rather than only at the next refresh."""
        self._repaired_at = None

    def anew(self, document: RingDocument, options: CallOptions) -> RingSnapshot:
        """What a process learns from a document if it knows no facts yet: see `LearnAnew`."""
        return self._anew.learn(document, options)

    def remember_past(self, document: RingDocument, options: CallOptions) -> None:
        """Remembers what the expired keys of a dead ring can certify."""
        self._view.remember_past(self._anew.past_signers(document, options))
        self._anew.forget()

    def begin(self, known: RingSnapshot, document: RingDocument | None) -> None:
        """Installs what a start has learned."""
        if any(key.held for key in known.keys):
            self._view.limits.last_read = self._view.now()
        self._view.begin(known)
        # Entries that were refused or corrupt at the start are checked again by their vouchers.
        is_whole = document is not None and all(e.id in known.by_id for e in document.entries)
        self._note_learned(document if is_whole else None)
        self._anew.forget()
        self._consider_repair(document, self._view.now())

    def ms_until_proof(self) -> float:
        """Milliseconds until the next KMS check; 0 when it is due."""
        limits, now = self._view.limits, self._view.now()
        last = limits.last_kms_check
        if self._provable() is None:
            return float("inf")
        if last is None or limits.is_refused(now):
            return 0
        # The wait is drawn once per KMS check: if it were drawn at every pass, the shortest of many
        # draws would win.
        if self._proof_interval[0] is not last:
            jitter = 1 - 0.2 * self._view.uniform()
            self._proof_interval = last, self._view.policy.kms_check_every_seconds * _MS * jitter
        return max(0.0, self._proof_interval[1] - age_ms(last, now))

    def prove(self, options: CallOptions) -> RingWrap | None:
        """Unwraps the newest live key again. Returns the wrap that was unwrapped; None if there is
        no such key. Raises KeyWrapperError if the unwrap fails."""
        key = self._provable()
        if key is None or key.held is None:
            return None
        # While refusals are counted, slow key wrappers must not delay the next check.
        is_hedged = options.is_foreground or self._view.limits.is_refused(self._view.now())
        return self._wraps.prove(key, key.held, options._replace(is_hedged=is_hedged))

    def _provable(self) -> RingKey | None:
        keys = self._view.snapshot.usable_keys(self._view.wall_ms())
        return max(keys, key=lambda key: (not key.is_left, age(key)), default=None)

    def _is_learned(self, document: RingDocument) -> bool:
        """Whether the document was learned completely. False once the clock has been set, so that
        decisions made before then are repeated."""
        learned, shift_ms = self._learned
        is_same_time = abs(self._shift_ms() - shift_ms) <= _MS
        return document is learned and is_same_time and not self._view.snapshot.carried

    def _note_learned(self, document: RingDocument | None) -> None:
        self._learned = document, self._shift_ms()

    def _shift_ms(self) -> float:
        now = self._view.now()
        return self._view.wall_ms(now) - now.steady_ms

    def _consider_repair(self, document: RingDocument | None, now: Moment) -> None:
        known = self._view.snapshot
        whole, whole_known = self._whole
        is_whole = document is not None and document is whole and known is whole_known
        if is_whole or not self._is_worth_writing(document, known, now):
            self.repair_at = None
            self._whole = document, known
            return
        if self.repair_at is not None:
            return
        wait_ms = _REPAIR_WAIT_MS * self._view.uniform()
        wait_ms += _FOREIGN_WAIT_MS if self.is_foreign else 0
        last = self._repaired_at
        since_last_ms = float("inf") if last is None else age_ms(last, now)
        refresh_ms = self._view.policy.refresh_every_seconds * _MS
        self.repair_at = later(now, max(wait_ms, refresh_ms - since_last_ms))

    def _is_worth_writing(
        self, document: RingDocument | None, known: RingSnapshot, now: Moment
    ) -> bool:
        """Whether the document lacks something that this process can write. Entries without a valid
        voucher are not a reason to write, and neither is a document that would not change."""
        view = self._view
        read = document or RingDocument(())
        judgement = view.judgement()
        if not lacks(read, known, judgement):
            return False
        wanted = document_of(known, read, view.publisher(now))
        # A fact that does not fit into a full document would still be missing after the write.
        ids = {entry.id for entry in wanted.entries}
        if not lacks(read, known, judgement, [key for key in known.keys if key.id in ids]):
            return False
        return encode_document(view.ring, wanted) != encode_document(view.ring, read)

    def _learn_from(self, document: RingDocument, options: CallOptions) -> KeyWrapperError | None:
        """Unwraps the new entries that are vouched for, and replaces the view once, so that a
        revocation takes effect together with its successor. Returns the failure of an entry that
        could not be unwrapped."""
        view, limited = self._view, options._replace(until=self._unwraps_until(options))
        was_unreadable = {entry.id for entry in view.snapshot.unreadable}
        tried = was_unreadable | {entry.id for entry in view.snapshot.carried}
        failures: dict[str, KeyWrapperError] = {}
        known, wanted = learn(view.snapshot, document, view.judgement())
        if not wanted and not options.is_caused and self._go_over(document, limited):
            return None
        while True:
            batch = self._next_batch(wanted, failures, tried, options)
            if not batch or self._is_over(limited):
                break
            learned = self._unwrap(batch, document, known, limited, failures)
            if learned:
                known = with_unwrapped(known, learned, view.judgement())
                known, wanted = learn(known, document, view.judgement())
        wanted_ids = {entry.id for entry in wanted}
        self._refused_at = {i: at for i, at in self._refused_at.items() if i in wanted_ids}
        if not options.for_token:
            self._judge_refused(wanted, failures, options)

        def is_unreadable(entry: RingEntry) -> bool:
            failure = failures.get(entry.id)
            return entry.id in was_unreadable if failure is None else failure.kind == "corrupt"

        pending = [entry for entry in wanted if not is_unreadable(entry)]
        view.install(create_snapshot(known.keys, pending, filter(is_unreadable, wanted)))
        return next((failures[entry.id] for entry in pending if entry.id in failures), None)

    def _unwraps_until(self, options: CallOptions) -> Deadline:
        """When this read stops unwrapping, because other work must not wait for a document that an
        attacker wrote."""
        view, now = self._view, self._view.now()
        is_refused = view.limits.is_refused(now)
        calls = _CALLS_WHILE_REFUSED if is_refused else _CALLS_OF_A_READ
        over = later(now, calls * view.policy.kms_timeout_seconds * _MS)
        return over if options.until is None else earlier(options.until, over)

    def _is_over(self, options: CallOptions) -> bool:
        """Whether the time of this read is over."""
        return options.until is not None and options.until.ms_left(self._view.now()) <= 0

    def _next_batch(
        self,
        wanted: list[RingEntry],
        failures: dict[str, KeyWrapperError],
        tried: set[str],
        options: CallOptions,
    ) -> list[RingEntry]:
        # A read that others caused repeats no unwrap; reads by the timer do.
        now_ms = self._view.wall_ms()
        urgent = [
            entry
            for entry in wanted
            if entry.id not in failures
            and not (options.is_caused and entry.id in tried)
            and (not options.defer_unwraps or entry.activates <= now_ms)
        ]

        # Entries with a claimed revocation come last, because a newer key may certify it without an
        # unwrap. Entries that failed before come after new ones, because they must not prevent the
        # others from being tried.
        def rank(entry: RingEntry) -> tuple[bool, bool]:
            return entry.revocation is not None, entry.id in tried

        first = min(map(rank, urgent), default=None)
        return [entry for entry in urgent if rank(entry) == first][:_BATCH]

    def _unwrap(
        self,
        batch: list[RingEntry],
        document: RingDocument,
        known: RingSnapshot,
        options: CallOptions,
        failures: dict[str, KeyWrapperError],
    ) -> list[RingKey]:
        view, learned = self._view, []
        for entry, answer in zip(batch, self._wraps.unwrap(batch, options), strict=True):
            if isinstance(answer, KeyWrapperError):
                failures[entry.id] = answer
                continue
            seals_from_ms = view.seals_from_ms(entry, view.now())
            key = unwrapped_key(entry, answer.held, answer.wrap, seals_from_ms)
            if belongs(key, entry, document, known, view.judgement()):
                learned.append(key)
            else:
                failures[entry.id] = KeyWrapperError(
                    "corrupt", entry.wraps[0].provider, hint="of another ring"
                )
        return learned

    def _judge_refused(
        self, wanted: list[RingEntry], failures: dict[str, KeyWrapperError], options: CallOptions
    ) -> None:
        """Treats an entry as corrupt if the KMS refuses it twice, but does not refuse a held key
        that the same key wrapper unwraps: one refusal can be a stray one."""
        tried = [entry for entry in wanted if entry.id in failures]
        refused = [entry for entry in tried if is_refusal(failures[entry.id].kind)]
        unwrapped = self._proved(options) if refused else None
        if unwrapped is None:
            return
        now = self._view.now()
        for entry in refused:
            first = self._refused_at.setdefault(entry.id, now)
            if age_ms(first, now) < LEAST_SPACING_MS:
                continue
            if self._wraps.note_refused(entry, unwrapped):
                failures[entry.id] = KeyWrapperError("corrupt", failures[entry.id].provider)

    def _proved(self, options: CallOptions) -> RingWrap | None:
        """The wrap of a held key that the KMS unwraps now; None if it does not."""
        try:
            return self.prove(options)
        except KeyWrapperError:
            # If this failure is a refusal, `prove` has counted it. The read fails with the answer
            # for the entry.
            return None

    def _go_over(self, document: RingDocument, options: CallOptions) -> bool:
        """The one exception to "a member that knows a key never learns the ring again": its own
        ring was created recently, while an older one was missing from the store, and the older one
        is back. Switches to the older ring; tokens sealed with the left ring can be unsealed until
        they expire. If the time of this read is not enough, the next read continues."""
        view = self._view
        own = (key for key in view.snapshot.keys if not key.is_left and not key.is_tombstone)
        root = min(own, key=birth, default=None)
        # The oldest key must itself state that no key came before it; otherwise, keys of its ring
        # are missing.
        if root is None or root.ancestors is None or root.ancestors.ids:
            return False
        is_young = root.created > view.wall_ms() - view.policy.store_outage_seconds * _MS
        is_older = any(entry.created < root.created for entry in document.entries)
        is_known = any(entry.id in view.snapshot.by_id for entry in document.entries)
        if not is_young or not is_older or is_known:
            return False
        self._anew.forget_overwritten()
        try:
            known = self._anew.learn(document, options)
        except (RingStoreError, KeyWrapperError) as error:
            if not self._is_no_ring(error, options):
                raise
            self._anew.forget()
            return False
        self._anew.forget()
        if is_dead(known, view.wall_ms()):
            return False
        left = [replace(key, is_left=True) for key in view.snapshot.keys]
        view.begin(create_snapshot([*known.keys, *left]))
        return True

    def _is_no_ring(self, error: RingStoreError | KeyWrapperError, options: CallOptions) -> bool:
        """Whether a document that could not be learned as a whole is neither a usable ring nor the
        ring of this process. If nothing of it was unwrapped before the time was over, although the
        KMS unwraps a held key, it is junk: an attacker who cannot call the KMS can fill a document
        with wraps, so this process does not try all of them."""
        if self._is_over(options):
            return not self._anew.has_unwrapped and self._proved(BACKGROUND) is not None
        return (
            isinstance(error, RingStoreError) or error.kind == "corrupt" or is_refusal(error.kind)
        )
