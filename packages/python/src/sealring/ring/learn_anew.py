"""The facts that a process without known facts adopts from a document."""

from collections.abc import Iterable
from dataclasses import replace

from ..errors import KeyWrapperError, RingStoreError, may_pass
from .calls import CallOptions
from .certificates import birth, is_certified, signers_of
from .document import RingDocument, RingEntry
from .events import hashed_key_id
from .facts import Judgement, learn, lineages_of, unwrapped_key
from .limits import is_refusal
from .snapshot import RingKey, RingSnapshot, create_snapshot
from .view import RingView
from .wraps import KeyWraps, Unwrapped

# How many entries of a document are unwrapped at the same time.
_BATCH = 4


class LineageError(RingStoreError):
    """The document contains two rings. Running members repair their ring, so a start waits for
    that. The error names the newest key of each."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__("corrupt", _two_lineages(one, other))
        self.detail_for_logs = _two_lineages(hashed_key_id(one), hashed_key_id(other))
        """The detail with hashed key ids."""


def _two_lineages(one: str, other: str) -> str:
    return (
        f"two lineages of keys, with {one} and {other} as the newest: no key of one vouches for "
        "the other. Running members repair their ring; if none is running, import a copy of the "
        "ring or use a new ring name"
    )


class LearnAnew:
    """Learns the live keys that can be unwrapped and are linked by valid vouchers, and the
    revocations that they certify. A key that one attempt has unwrapped is not unwrapped again by
    the next."""

    def __init__(self, view: RingView, wraps: KeyWraps) -> None:
        self._view = view
        self._wraps = wraps
        # Keyed by id and times, because an entry whose times changed between two attempts is a
        # different entry.
        self._unwrapped: dict[tuple[str, ...], Unwrapped] = {}

    def learn(self, document: RingDocument, options: CallOptions) -> RingSnapshot:
        """A ring without a usable key is returned unchanged, and treated as absent. Raises
        KeyWrapperError when a live entry cannot be unwrapped now, or all of them are refused;
        RingStoreError `corrupt` for two lineages, or if no live key may be used; RingStoreError
        `unavailable` for keys from the future."""
        attempt = _Attempt(self._view, self._wraps, document, options, self._unwrapped)
        live = [entry for entry in attempt.entries if attempt.is_live(entry)]
        unrevoked = [entry for entry in live if entry.revocation is None]
        # One key is unwrapped first, so that a failing KMS does not receive a call for every key
        # from every start.
        attempt.unwrap(unrevoked[:1])
        attempt.unwrap(unrevoked[1:])
        # Newest first, because the validity of a claim can depend on the state of the newer keys.
        for entry in live:
            if entry.revocation is not None and not attempt.is_certified(entry):
                attempt.unwrap([entry])
        attempt.raise_what_failed(live)
        return attempt.one_lineage()

    def past_signers(self, document: RingDocument, options: CallOptions) -> list[RingKey]:
        """Learns the expired and revoked keys that can certify, so that they can vouch for the next
        key: running members that know those keys accept the next key only then. Raises
        KeyWrapperError when an entry cannot be unwrapped now but may be later, or when no entry can
        be unwrapped and the KMS refuses those of a live key."""
        attempt = _Attempt(self._view, self._wraps, document, options, self._unwrapped)
        attempt.unwrap(attempt.entries)
        attempt.raise_what_may_link()
        return attempt.signers()

    @property
    def has_unwrapped(self) -> bool:
        """Whether an attempt has unwrapped a key that is not forgotten yet."""
        return len(self._unwrapped) > 0

    def forget_overwritten(self) -> None:
        """Forgets the keys that were overwritten since, because a snapshot that was installed does
        not use them."""
        for name in [name for name, one in self._unwrapped.items() if one.held.is_overwritten]:
            del self._unwrapped[name]

    def forget(self) -> None:
        """Forgets the keys that were unwrapped; the next snapshot that is installed overwrites
        those that it does not use."""
        self._unwrapped.clear()


class _Attempt:
    def __init__(
        self,
        view: RingView,
        wraps: KeyWraps,
        document: RingDocument,
        options: CallOptions,
        unwrapped: dict[tuple[str, ...], Unwrapped],
    ) -> None:
        self._view = view
        self._wraps = wraps
        self._document = document
        self._options = options
        self._unwrapped = unwrapped
        self._failures: dict[str, KeyWrapperError] = {}
        self.entries = sorted(document.entries, key=birth, reverse=True)

    def is_live(self, entry: RingEntry) -> bool:
        judgement = self._judgement()
        return judgement.now_ms < entry.opens_until and not judgement.is_pinned_out(entry)

    def unwrap(self, entries: Iterable[RingEntry]) -> None:
        """Unwraps entries in batches. After a failure that may pass, makes no further call in this
        attempt."""
        if any(map(may_pass, self._failures.values())):
            return
        wanted = [
            entry
            for entry in entries
            if _memory(entry) not in self._unwrapped and entry.id not in self._failures
        ]
        for start in range(0, len(wanted), _BATCH):
            batch = wanted[start : start + _BATCH]
            for entry, answer in zip(batch, self._wraps.unwrap(batch, self._options), strict=True):
                if isinstance(answer, KeyWrapperError):
                    self._failures[entry.id] = answer
                else:
                    self._unwrapped[_memory(entry)] = answer
            if any(map(may_pass, self._failures.values())):
                return

    def is_certified(self, entry: RingEntry) -> bool:
        signers = signers_of(self._learned().keys, {})
        return is_certified(entry, entry.revocation, signers)

    def raise_what_failed(self, live: list[RingEntry]) -> None:
        """Entries that are `corrupt` are skipped. Refused entries are skipped as long as other
        entries can be unwrapped. If no entry can be unwrapped, the start fails."""
        failed = [self._failures[entry.id] for entry in live if entry.id in self._failures]
        passing = next(filter(may_pass, failed), None)
        if passing is not None:
            raise passing
        judgement = self._judgement()
        if not any(key.held for key in self._learned().keys):
            if failed:
                raise next((error for error in failed if is_refusal(error.kind)), failed[0])
            if any(
                _memory(entry) in self._unwrapped and judgement.is_from_the_future(entry)
                for entry in live
            ):
                detail = "by this machine's clock, the keys of the ring were created in the future"
                raise RingStoreError("unavailable", detail)
        if not live and any(
            judgement.now_ms < entry.opens_until and judgement.is_pinned_out(entry)
            for entry in self.entries
        ):
            raise RingStoreError("corrupt", "the ring holds no live key that may be used")

    def raise_what_may_link(self) -> None:
        passing = next(filter(may_pass, self._failures.values()), None)
        if passing is not None:
            raise passing
        failed = (self._failures.get(entry.id) for entry in self.entries if self.is_live(entry))
        refusal = next((one for one in failed if one is not None and is_refusal(one.kind)), None)
        if refusal is not None and not any(_memory(one) in self._unwrapped for one in self.entries):
            raise refusal

    def one_lineage(self) -> RingSnapshot:
        """The keys known so far, without those that are not linked to a usable key: with a key from
        another lineage, even a revoked one, this process would vouch for the other keys of that
        lineage. If two lineages have usable keys, raises LineageError, which names the newest key
        of each."""
        if len(self._live_lineages()) > 1:
            # An expired or revoked key can be the link between them, so all entries are unwrapped.
            self.unwrap(self.entries)
        groups = self._live_lineages()
        known = self._learned()
        if not groups:
            return known
        if len(groups) > 1:
            raise LineageError(groups[0][0], groups[1][0])
        return create_snapshot(key for key in known.keys if key.is_tombstone or key.id in groups[0])

    def signers(self) -> list[RingKey]:
        """The keys that were unwrapped, which can certify."""
        known = self._learned().by_id
        keys = []
        for entry in self.entries:
            found = self._unwrapped.get(_memory(entry))
            if found is not None:
                is_revoked = entry.id in known and known[entry.id].is_revoked
                key = unwrapped_key(entry, found.held, found.wrap, 0)
                keys.append(replace(key, is_revoked=is_revoked))
        return keys

    def _judgement(self) -> Judgement:
        """The inputs of a check without expired keys, because facts about another ring do not apply
        to a ring that is learned from scratch."""
        return self._view.judgement()._replace(past={})

    def _learned(self) -> RingSnapshot:
        """The keys known so far, with the revocations that they certify."""
        judgement = self._judgement()
        keys = []
        for entry in self.entries:
            found = self._unwrapped.get(_memory(entry))
            if found and self.is_live(entry) and not judgement.is_from_the_future(entry):
                keys.append(unwrapped_key(entry, found.held, found.wrap, 0))
        return learn(create_snapshot(keys), self._document, judgement)[0]

    def _live_lineages(self) -> list[list[str]]:
        usable = {key.id for key in self._learned().keys if key.held}
        found = ((entry, self._unwrapped.get(_memory(entry))) for entry in self.entries)
        groups = lineages_of([(entry, one.held) for entry, one in found if one is not None])
        return [group for group in groups if not usable.isdisjoint(group)]


def _memory(entry: RingEntry) -> tuple[str, ...]:
    return entry.id, *entry.times


def is_dead(known: RingSnapshot, now_ms: float) -> bool:
    """Whether the ring that was learned has no usable key: every key has expired or is revoked."""
    return not any(
        key.held and not key.is_tombstone and now_ms < key.opens_until for key in known.keys
    )
