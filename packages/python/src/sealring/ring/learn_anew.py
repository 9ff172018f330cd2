"""What a reader that knows nothing learns of a document."""

from collections.abc import Iterable

from ..errors import KeyWrapperError, RingStoreError, may_pass
from .certificates import birth, is_certified, signers_of
from .document import RingDocument, RingEntry
from .facts import Judgement, learn, lineages_of, unwrapped_key
from .limits import is_refusal
from .snapshot import RingKey, RingSnapshot, create_snapshot
from .view import RingView
from .wraps import CallOptions, KeyWraps


class LineageError(RingStoreError):
    """Two rings in one document. Running members repair that of theirs, so a start waits for it."""


class LearnAnew:
    """The live keys that can be unwrapped and hang together by right vouchers, and the revocations
    that they certify. What was unwrapped by one attempt is not asked again by the next."""

    def __init__(self, view: RingView, wraps: KeyWraps) -> None:
        self._view = view
        self._wraps = wraps
        # By id and times, which no two keys have in common.
        self._unwrapped: dict[tuple[str, ...], RingKey] = {}

    def learn(self, document: RingDocument, options: CallOptions) -> RingSnapshot:
        """At least one key that may be used. KeyWrapperError when a live entry cannot be unwrapped
        now, or all are refused or corrupt; RingStoreError, `corrupt`, for two lineages, and where
        no live key may be used, `unavailable` for keys from the future."""
        entries = sorted(document, key=birth, reverse=True)
        judgement = self._judgement()
        live = [entry for entry in entries if judgement.may_be_used(entry)]
        failures: dict[str, KeyWrapperError] = {}
        # One after the other: a KMS in trouble is not asked for a ringful of keys by every start.
        self._unwrap((entry for entry in live if entry.revocation is None), failures, options)
        # Newest first: whether a claim holds may depend on what became of the newer ones.
        for entry in live:
            signers = signers_of(self._learned(document, live).keys, judgement.past)
            claim = entry.revocation
            if claim is not None and not is_certified(entry, claim, signers):
                self._unwrap([entry], failures, options)
        known = self._learned(document, live)
        if not known.usable_keys(self._view.wall_ms()):
            raise self._why_unusable(document, failures)
        groups = self._lineages(document, known)
        if len(groups) > 1:
            # What has ended or is revoked may be the link.
            self._unwrap(entries, failures, options)
            groups = self._lineages(document, known)
            if len(groups) > 1:
                raise LineageError(
                    "corrupt",
                    f"two lineages of keys, with {groups[0][0]} and {groups[1][0]} as the newest: "
                    "no key of one vouches for the other. Running members repair the ring of "
                    "theirs; without any, import a copy of the ring or use a new ring name",
                )
        # A key of another lineage, revoked as it may be, could vouch for what it came with.
        return create_snapshot(key for key in known.keys if key.is_tombstone or key.id in groups[0])

    def _judgement(self) -> Judgement:
        """What was known of another ring says nothing of one that is learned anew."""
        return self._view.judgement()._replace(past={})

    def _unwrap(
        self,
        entries: Iterable[RingEntry],
        failures: dict[str, KeyWrapperError],
        options: CallOptions,
    ) -> None:
        """What may pass is raised: it is waited for before anything else is asked."""
        for entry in entries:
            if _memory(entry) in self._unwrapped or entry.id in failures:
                continue
            try:
                unwrapped = self._wraps.unwrap(entry, options)
                self._unwrapped[_memory(entry)] = unwrapped_key(entry, *unwrapped, 0)
            except KeyWrapperError as error:
                if may_pass(error):
                    raise
                failures[entry.id] = error

    def _learned(self, document: RingDocument, entries: Iterable[RingEntry]) -> RingSnapshot:
        """What is known by now of these entries, with the revocations that are certified."""
        keys = [self._unwrapped.get(_memory(entry)) for entry in entries]
        known = create_snapshot(key for key in keys if key is not None)
        return learn(known, document, self._judgement())[0]

    def _why_unusable(
        self, document: RingDocument, failures: dict[str, KeyWrapperError]
    ) -> KeyWrapperError | RingStoreError:
        """Corrupt entries teach nothing, but not all of a ring can be so."""
        if failures:
            refused = (error for error in failures.values() if is_refusal(error.kind))
            return next(refused, next(iter(failures.values())))
        if any(map(self._judgement().is_from_the_future, document)):
            return RingStoreError("unavailable", "the ring's keys are from this machine's future")
        return RingStoreError("corrupt", "the ring holds no live key that may be used")

    def _lineages(self, document: RingDocument, known: RingSnapshot) -> list[list[str]]:
        usable = {key.id for key in known.keys if key.held}
        groups = lineages_of(self._learned(document, document).keys)
        return [group for group in groups if not usable.isdisjoint(group)]


def _memory(entry: RingEntry) -> tuple[str, ...]:
    return entry.id, *entry.times
