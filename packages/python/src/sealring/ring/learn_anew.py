"""What a reader that knows nothing learns of a document."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ..errors import KeyWrapperError, RingStoreError
from .certificates import birth, is_certified
from .document import RingDocument, RingEntry
from .facts import (
    Judgement,
    is_from_the_future,
    learn,
    lineages_of,
    signers_of,
    unwrapped_key,
)
from .kill_switch import is_refusal
from .snapshot import RingSnapshot, create_snapshot
from .wraps import CallOptions, KeyWraps, Unwrapped


class LineageError(RingStoreError):
    """Two rings in one document. Running members repair that of theirs, so a start waits for it."""


@dataclass
class LearnAnew:
    """The live keys that can be unwrapped and hang together by right vouchers, and the revocations
    that they certify."""

    wraps: KeyWraps
    judgement: Callable[[], Judgement]
    on_proof: Callable[[], None]
    """Told of every unwrap that succeeded."""
    unwrapped: dict[tuple[str, ...], Unwrapped] = field(default_factory=dict)
    """By id and times: what was unwrapped by an attempt before is not asked again."""

    def learn(self, document: RingDocument, options: CallOptions) -> RingSnapshot:
        """A ring without a usable key is returned with what it has; it is as good as absent.

        Raises:
            KeyWrapperError: when a live entry cannot be unwrapped now, or all of them are refused
                or corrupt.
            RingStoreError: `corrupt` for two lineages, and for live entries that are all pinned
                out; `unavailable` for keys from the future.
        """
        entries = sorted(document.entries, key=birth, reverse=True)
        live = [entry for entry in entries if self._is_live(entry)]
        failures: dict[str, KeyWrapperError] = {}
        # One after the other: a KMS in trouble is not asked for a ringful of keys by every start.
        self._unwrap((entry for entry in live if entry.revocation is None), failures, options)
        # Newest first: whether a claim holds may depend on what became of the newer ones.
        for entry in live:
            if entry.revocation is not None and not self._is_certified(document, entry):
                self._unwrap([entry], failures, options)
        known = self._learned(document)
        if not any(key.held for key in known.keys):
            self._refuse_unusable(document, live, failures)
        if len(self._lineages(entries, known)) > 1:
            # What has ended or is revoked may be the link.
            self._unwrap(entries, failures, options)
            groups = self._lineages(entries, known)
            if len(groups) > 1:
                raise LineageError(
                    "corrupt",
                    f"two lineages of keys, with {groups[0][0]} and {groups[1][0]} as the newest: "
                    "no key of one vouches for the other. Running members repair the ring of "
                    "theirs; without any, import a copy of the ring or use a new ring name",
                )
        return known

    def _is_live(self, entry: RingEntry) -> bool:
        judgement = self.judgement()
        return judgement.now_ms < entry.opens_until and not judgement.is_pinned_out(entry)

    def _unwrap(
        self,
        entries: Iterable[RingEntry],
        failures: dict[str, KeyWrapperError],
        options: CallOptions,
    ) -> None:
        """What may pass is raised: it is waited for before anything else is asked."""
        for entry in entries:
            if _memory(entry) in self.unwrapped or entry.id in failures:
                continue
            try:
                self.unwrapped[_memory(entry)] = self.wraps.unwrap(entry, options)
            except KeyWrapperError as error:
                if error.kind in ("throttled", "unavailable"):
                    raise
                failures[entry.id] = error
            else:
                self.on_proof()

    def _learned(self, document: RingDocument) -> RingSnapshot:
        """What is known by now, with the revocations that it certifies."""
        judgement = self.judgement()
        keys = [
            unwrapped_key(judgement.ring, entry, *self.unwrapped[_memory(entry)], 0)
            for entry in document.entries
            if _memory(entry) in self.unwrapped
            and self._is_live(entry)
            and not is_from_the_future(entry, judgement)
        ]
        return learn(create_snapshot(keys), document, judgement).known

    def _is_certified(self, document: RingDocument, entry: RingEntry) -> bool:
        judgement = self.judgement()
        signers = signers_of(self._learned(document).keys, judgement.past)
        claim = entry.revocation
        return claim is not None and is_certified(judgement.ring, entry, claim, signers)

    def _refuse_unusable(
        self,
        document: RingDocument,
        live: list[RingEntry],
        failures: dict[str, KeyWrapperError],
    ) -> None:
        """Corrupt entries teach nothing, but not all of a ring can be so."""
        if failures:
            refused = (error for error in failures.values() if is_refusal(error.kind))
            raise next(refused, next(iter(failures.values())))
        judgement = self.judgement()
        if any(is_from_the_future(entry, judgement) for entry in live):
            raise RingStoreError("unavailable", "the ring's keys are from this machine's future")
        if any(judgement.now_ms < entry.opens_until for entry in document.entries) and not live:
            raise RingStoreError("corrupt", "the ring holds no live key that may be used")

    def _lineages(self, entries: list[RingEntry], known: RingSnapshot) -> list[list[str]]:
        usable = {key.id for key in known.keys if key.held}
        found = [
            (entry, self.unwrapped[_memory(entry)].held)
            for entry in entries
            if _memory(entry) in self.unwrapped
        ]
        groups = lineages_of(self.judgement().ring, found)
        return [group for group in groups if not usable.isdisjoint(group)]


def _memory(entry: RingEntry) -> tuple[str, ...]:
    return entry.id, *entry.times
