"""The writes of a member: each one contains all known facts, and may add new keys, revocations or
wraps."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal, NamedTuple

from ..clock import Moment, age_ms, later
from ..errors import KeyWrapperError, RingConflictError, RingStoreError
from .calls import FOREGROUND, CallOptions
from .certificates import Signers, signers_of, vouchers_by
from .document import RingDocument, RingEntry, time_ms
from .events import hashed_key_id
from .facts import lacks, unwrapped_key
from .policy import MAX_KEYS_TO_ROTATE, MAX_KEYS_TO_SCHEDULE, MAX_RING_KEYS
from .publication import document_of, revoked_key, written_keys
from .schedule import RotationReason, longest_delay_ms, times_of_new_key
from .snapshot import RingKey, RingSnapshot, with_keys, with_revoked
from .store import StoredDocument
from .view import RingView
from .wraps import KeyWraps

_MS = 1_000
# The number of keys at which the ring gets no further key, by the reason for that key. For an
# urgent key, which is not listed, only keys in use count.
_MOST_KEYS: Mapping[RotationReason, int] = {
    "requested": MAX_KEYS_TO_ROTATE,
    "emergency": MAX_KEYS_TO_ROTATE,
    "scheduled": MAX_KEYS_TO_SCHEDULE,
    "key-version": MAX_KEYS_TO_ROTATE,
}
# How long a revocation waits for a successor, as a number of KMS timeouts.
_CALLS_OF_A_SUCCESSOR = 3
# How long one pass adds missing wraps, as a number of KMS timeouts.
_CALLS_FOR_WRAPS = 4

logger = logging.getLogger("sealring")


class NewKey(NamedTuple):
    """A new key, wrapped and checked, not yet published."""

    began: Moment
    entry: RingEntry
    key: RingKey


class RingWriter:
    """Writes the ring. Every write is one compare-and-swap of the document that was read. After a
    lost race, the ring is read again, and never overwritten."""

    def __init__(self, view: RingView, wraps: KeyWraps, stored: StoredDocument) -> None:
        self._view = view
        self._wraps = wraps
        self._stored = stored

    def claim(self, claim: str | None) -> None:
        """Writes a claim to the store: a note that this member is about to create a key, so that no
        other member creates one meanwhile. None withdraws the claim. The document stays as it was
        read, unless it lacks something that this member knows: if this member dies after its claim,
        it may be the only member that knows a revocation that the store has lost. Raises
        RingConflictError if another writer was first."""
        known, judgement = self._view.snapshot, self._view.judgement()
        there = None if self._stored.latest is None else self._stored.latest.document
        if there is None or lacks(there, known, judgement):
            there = self._document_of(known)
        self._stored.write(RingDocument(there.entries, claim))

    def make(self, reason: RotationReason) -> NewKey:
        """Creates a new key to be published later, but writes nothing. Raises RingStoreError or
        KeyWrapperError."""
        self._check_room(reason)
        self._check_clock()
        return self._new_key(reason, FOREGROUND)

    def publish(self, reason: RotationReason, made: NewKey | None = None) -> None:
        """Publishes `made`, or creates and publishes a new key. Raises RingConflictError,
        RingStoreError or KeyWrapperError."""
        new = made or self.make(reason)
        self._write(with_keys(self._view.snapshot, [new.key]), new)
        self._announce(new, reason)

    def revoke(self, meant: list[RingKey]) -> None:
        """Revokes keys, and activates a successor in the same write if there is room, the KMS
        answers and the clock is confirmed. Otherwise, the revocation is written without a
        successor. Raises RingConflictError or RingStoreError. If neither a newer key nor a
        successor can certify the revocation of a key that has not been unwrapped, this raises
        `unavailable` after the other revocations have been written."""
        view, known = self._view, self._view.snapshot
        ids = {key.id for key in meant}
        # No certificate is made by a key that is revoked in the same write.
        stay: Signers = {key_id: one for key_id, one in view.signers.items() if key_id not in ids}
        at_ms = view.wall_ms()
        certified = _revoked_by(meant, at_ms, stay)
        # Keys that are not unwrapped, and newer than all known keys: only the successor can certify
        # their revocations.
        missed = others = _without(meant, certified)
        if certified or any(key.created <= at_ms - at_ms % _MS for key in others):
            without = with_revoked(known, certified)
            successor = self._successor(without)
            made = {} if successor is None else signers_of([successor.key], {})
            further = _revoked_by(others, at_ms, made)
            missed = _without(others, further)
            revoked = [*certified, *further]
            if revoked:
                self._write_revoked(with_revoked(without, further), revoked, successor)
        if missed:
            detail = (
                f"key {missed[0].id} could not be unwrapped yet, and no newer key certifies its "
                "revocation"
            )
            raise RingStoreError("unavailable", detail)

    def restore(self) -> None:
        """Writes the known facts over the document that was read."""
        self._write(self._view.snapshot, None)
        logger.warning(
            "wrote the ring back: the store lacked keys or revocations that this member knows"
        )

    def add_missing_wraps(self, options: CallOptions) -> None:
        """Adds the wraps that a key wrapper could not make when the keys were published."""
        richer, most_ms = [], _CALLS_FOR_WRAPS * self._view.policy.kms_timeout_seconds * _MS
        until = later(self._view.now(), most_ms)
        for key in self._view.snapshot.usable_keys(self._view.wall_ms()):
            if key.held is None or key.is_left or not self._wraps.lacks_wraps(key):
                continue
            # The next pass continues: the work that follows this one must not wait for a KMS that
            # hangs.
            if until.ms_left(self._view.now()) <= 0:
                break
            added = self._wraps.missing_wraps(key, key.held, options)
            if added:
                richer.append(replace(key, wraps=(*key.wraps, *added)))
        if richer:
            self._write(with_keys(self._view.snapshot, richer), None)

    @property
    def is_dead(self) -> bool:
        """Whether no key may seal, because all are expired, revoked or propagating, and no recent
        entry that is yet to be unwrapped might change that."""
        return self._covered_ms() <= 0

    @property
    def needed_key(self) -> Literal["initial", "emergency"] | None:
        """The key that the ring needs now, if any: an initial key, which is active at once, if no
        key may seal or the last one stops before an emergency key could be active; an emergency key
        if the last one stops soon. A scheduled rotation comes long before that. This is for a ring
        that could not rotate, or that returned to an old key when a newer one was revoked."""
        covered_ms, policy = self._covered_ms(), self._view.policy
        if covered_ms <= 0:
            return "initial"
        read_ms = (policy.refresh_every_seconds + policy.backoff_cap_seconds) * _MS
        emergency_ms = policy.emergency_wait_seconds * _MS
        if covered_ms > emergency_ms + read_ms or self._clock_trouble() is not None:
            return None
        if covered_ms <= emergency_ms:
            return "initial"
        return "emergency" if self.key_count < MAX_KEYS_TO_ROTATE else None

    @property
    def key_count(self) -> int:
        """The number of keys that count against the limits of the ring."""
        return sum(not key.is_tombstone for key in self._kept(self._view.snapshot))

    def _covered_ms(self) -> float:
        """How long keys can seal from now on without a gap, in milliseconds. A new key that this
        member has not unwrapped yet counts only until the emergency wait after its creation is
        over."""
        wall_ms, known = self._view.wall_ms(), self._view.snapshot
        mine = [key for key in known.keys if key.held and not key.is_left]
        wait_ms = self._view.policy.emergency_wait_seconds * _MS
        awaited = [entry for entry in known.carried if entry.created + wait_ms > wall_ms]
        until_ms = wall_ms
        for entry in sorted([*mine, *awaited], key=lambda entry: entry.activates):
            if entry.activates <= until_ms:
                until_ms = max(until_ms, entry.seals_until)
        return until_ms - wall_ms

    def _kept(self, known: RingSnapshot) -> list[RingKey]:
        return written_keys(known, self._view.publisher(self._view.now()))

    def _has_room(self, known: RingSnapshot) -> bool:
        """Whether there is room for a key that nothing else can replace. Revoked keys can be left
        out to make room, once every member that reaches the store has read their revocation."""
        policy, wall_ms = self._view.policy, self._view.wall_ms()
        read_ms = (2 * policy.refresh_every_seconds + policy.clock_skew_seconds) * _MS

        def is_spare(key: RingKey) -> bool:
            claim = key.revocation
            return claim is not None and abs(wall_ms - time_ms(claim.at)) > read_ms

        return sum(not is_spare(key) for key in self._kept(known)) < MAX_RING_KEYS

    def _check_room(self, reason: RotationReason) -> None:
        """Keeps room for urgent writes: a key for a ring that no longer seals, and revocations.
        Raises RingStoreError if there is no room."""
        most, count = _MOST_KEYS.get(reason), self.key_count
        is_full = not self._has_room(self._view.snapshot) if most is None else count >= most
        if is_full:
            detail = f"the ring has {count} keys; wait until the oldest expires"
            raise RingStoreError("too-large", detail)

    def _check_clock(self) -> None:
        """The times of a key come from the clock of this member; if it is wrong, they are wrong for
        every member. Raises RingStoreError if it is not confirmed."""
        trouble = self._clock_trouble()
        if trouble is not None:
            raise RingStoreError("unavailable", f"nothing is published: {trouble}")

    def _clock_trouble(self) -> str | None:
        return self._view.ring_clock.trouble(self._view.now())

    def _successor(self, known: RingSnapshot) -> NewKey | None:
        now = self._view.now()
        if self._view.ring_clock.trouble(now) is not None or not self._has_room(known):
            return None
        until = later(now, _CALLS_OF_A_SUCCESSOR * self._view.policy.kms_timeout_seconds * _MS)
        try:
            new = self._new_key("revocation", CallOptions(is_foreground=True, until=until))
        except KeyWrapperError:
            # Only a failure of the KMS is tolerated: the revocation does not wait for the KMS, and
            # any member that later finds that no key may seal creates a key.
            return None
        return None if self._is_too_old(new) else new

    def _new_key(self, reason: RotationReason, options: CallOptions) -> NewKey:
        view, signers = self._view, self._view.signers
        began, known = view.now(), view.snapshot
        now_ms = view.wall_ms(began)
        made = [key.created for key in (*known.keys, *view.past.values())]
        # Attackers may have written the entries that are not unwrapped: they must not move the
        # creation time of a new key into the future.
        missing = (*known.carried, *known.unreadable)
        claimed = [min(entry.created, now_ms - now_ms % _MS) for entry in missing]
        newest_ms = max([*made, *claimed], default=-float("inf"))
        times = times_of_new_key(reason, now_ms, view.policy, newest_ms)
        latest = self._stored.latest
        entries = () if latest is None or latest.document is None else latest.document.entries
        taken = signers.keys() | {entry.id for entry in entries}
        entry, held = self._wraps.create(
            times,
            lambda key_id: key_id in taken,
            # Every key that this member can sign with vouches for the new key, even if it is
            # revoked or expired.
            lambda key_id, spelt: vouchers_by(key_id, times.created, spelt, signers, {}),
            options,
        )
        view.note_attempt(entry.id)
        key = unwrapped_key(entry, held, None, view.seals_from_ms(entry, view.now()))
        return NewKey(began, entry, replace(key, vouchers=entry.vouchers, wraps=entry.wraps))

    def _is_too_old(self, new: NewKey) -> bool:
        """Whether a new key is too old to be published. If the publisher was delayed, the key would
        become active before the other members can know it."""
        most_ms = longest_delay_ms(new.entry.created, new.entry.activates, self._view.policy)
        return age_ms(new.began, self._view.now()) > most_ms

    def _write(self, known: RingSnapshot, new: NewKey | None) -> None:
        if new is not None and self._is_too_old(new):
            detail = "nothing was published: this member was delayed for too long"
            raise RingStoreError("unavailable", detail)
        try:
            self._stored.write(self._document_of(known))
        except RingConflictError:
            logger.info("another member wrote the ring first")
            raise
        self._view.limits.last_read = self._view.now()
        self._view.install(known)

    def _write_revoked(
        self, known: RingSnapshot, revoked: list[RingKey], successor: NewKey | None
    ) -> None:
        after = known if successor is None else with_keys(known, [successor.key])
        self._write(after, successor)
        for key in revoked:
            logger.warning("revoked a key (%s)", hashed_key_id(key.id))
        if successor is not None:
            self._announce(successor, "revocation")

    def _document_of(self, known: RingSnapshot) -> RingDocument:
        latest = self._stored.latest
        read = None if latest is None else latest.document
        return document_of(known, read, self._view.publisher(self._view.now()))

    def _announce(self, new: NewKey, reason: RotationReason) -> None:
        logger.info("published a key (%s), reason: %s", hashed_key_id(new.entry.id), reason)


def _revoked_by(keys: Iterable[RingKey], at_ms: float, signers: Signers) -> list[RingKey]:
    """Of the keys whose revocation `signers` can certify, the revoked keys."""
    revoked = (revoked_key(key, at_ms, signers) for key in keys)
    return [key for key in revoked if key is not None]


def _without(keys: Iterable[RingKey], some: Iterable[RingKey]) -> list[RingKey]:
    ids = {key.id for key in some}
    return [key for key in keys if key.id not in ids]
