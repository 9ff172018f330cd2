"""The facts that a reader adopts from a ring document: only those that authenticate themselves."""

import os
import threading
import time
from collections.abc import Callable
from datetime import datetime, timezone

import pytest
from ring_maker import (
    DAY,
    Fleet,
    Kms,
    MadeKey,
    document,
    made_key,
    ms_until_next,
    naming,
    revoked,
    run_pass,
    time_text,
)

from sealring import (
    InvalidRequestState,
    KeyWrapperError,
    KmsCodec,
    LocalKeyWrapper,
    RingPolicy,
    RingStoreError,
    SealUnavailableError,
    base64url,
)
from sealring.ring.calls import CallOptions


def states(codec: KmsCodec) -> dict[str, str]:
    """The keys that are held, or known to be revoked."""
    shown = codec.health().keys
    return {key.id: key.state for key in shown if key.held or key.state == "revoked"}


def problems(codec: KmsCodec) -> list[str]:
    return [problem.kind for problem in codec.health().problems]


def teaches_nothing(codec: KmsCodec, kind: str = "corrupt") -> None:
    before = codec.health().keys
    with pytest.raises(RingStoreError) as caught:
        codec.refresh()
    assert caught.value.kind == kind
    assert codec.health().keys == before
    assert codec.health().status == "degraded"
    assert codec.health().last_error is not None
    assert codec.health().last_error[:2] == ("store", kind)


# For a store whose reads take a minute.
SLOW = RingPolicy(kms_timeout_seconds=60)


def start_refused(codec: KmsCodec, kind: str = "corrupt") -> None:
    with pytest.raises((RingStoreError, KeyWrapperError)) as caught:
        codec.start()
    assert caught.value.kind == kind


def refuses(codec: KmsCodec, token: str) -> None:
    with pytest.raises(InvalidRequestState) as caught:
        codec.unseal(token)
    assert caught.value.reason == "unknown key"


def test_a_successor_is_learned_and_seals_when_it_activates(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        old = codec.seal(b"old")
        second = fleet.key(4_500)
        fleet.publish([fleet.first, second])
        codec.refresh()
        assert states(codec) == {fleet.first.id: "active", second.id: "propagating"}
        assert codec.seal(b"x")[4:16] == fleet.first.id
        fleet.clock.advance(4_500)
        codec.refresh()
        assert codec.seal(b"x")[4:16] == second.id
        assert [key.state for key in codec.health().keys] == ["verify-only", "active"]
        assert codec.unseal(old) == b"old"


def test_a_planned_key_that_comes_late_seals_late(fleet: Fleet) -> None:
    fleet.clock.advance(5_000)
    with fleet.reader() as codec:
        late = fleet.key(10, created_ms=fleet.clock.wall - 4_490_000)
        fleet.publish([fleet.first, late])
        codec.refresh()
        fleet.clock.advance(3_599)
        codec.refresh()
        assert codec.seal(b"x")[4:16] == fleet.first.id
        fleet.clock.advance(1)
        assert codec.seal(b"x")[4:16] == late.id


def test_a_planned_key_that_comes_late_after_a_gap_seals_at_once(fleet: Fleet) -> None:
    fleet.clock.advance(5_000)
    with fleet.reader() as codec:
        late = fleet.key(10, created_ms=fleet.clock.wall - 4_490_000)
        fleet.publish([fleet.first, late])
        fleet.clock.advance(601)
        codec.refresh()
        assert codec.seal(b"x")[4:16] == late.id


def test_f26_a_key_without_a_valid_voucher_is_ignored(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        stranger = fleet.key(0, by=())
        self_made = fleet.key(0, by=[MadeKey(os.urandom(32), fleet.first.entry)])
        unwraps = fleet.kms.unwraps
        fleet.publish([fleet.first, stranger, self_made])
        codec.refresh()
        assert states(codec) == {fleet.first.id: "active"}
        assert fleet.kms.unwraps == unwraps
        fleet.publish([stranger])
        teaches_nothing(codec)
        assert codec.unseal(codec.seal(b"x")) == b"x"


def test_f26_a_key_with_edited_times_is_ignored(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        second = fleet.key(4_500)
        fleet.publish([fleet.first, second.edited(activates=time_text(fleet.clock.wall))])
        codec.refresh()
        assert second.id not in states(codec)
    fleet.publish([fleet.first.edited(opensUntil="2029-01-01T00:00:00Z")])
    start_refused(fleet.reader())


def test_the_times_of_a_known_key_do_not_change(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        before = codec.health().keys
        fleet.publish([fleet.first.edited(sealsUntil="2026-11-18T12:00:00Z")])
        codec.refresh()
        assert codec.health().keys == before
        assert codec.health().status == "degraded"


def test_f26_swapped_wraps_are_refused(fleet: Fleet) -> None:
    other = fleet.key(-300)
    fleet.publish([other.edited(wraps=fleet.first.entry["wraps"])])
    start_refused(fleet.reader())
    fleet.publish([fleet.first])
    with fleet.reader() as codec:
        fleet.publish([fleet.first, other.edited(wraps=fleet.first.entry["wraps"])])
        codec.refresh()
        assert states(codec) == {fleet.first.id: "active"}
        assert problems(codec) == ["unreadable-key"]


def test_a_key_vouched_for_by_a_revoked_or_an_expired_key_is_learned(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        successor = fleet.key(-300, by=[fleet.first])
        fleet.publish([revoked(fleet.first, fleet.clock.wall)])
        codec.refresh()
        assert problems(codec) == ["no-sealing-key"]
        assert codec.health().status == "failing"
        fleet.publish([revoked(fleet.first, fleet.clock.wall), successor])
        codec.refresh()
        assert codec.health().sealing_key == successor.id
        assert codec.health().status == "ok"
        fleet.clock.advance(3 * DAY)
        codec.refresh()
        assert codec.health().keys == ()
        third = fleet.key(-300, by=[fleet.first])
        fleet.publish([third])
        codec.refresh()
        assert codec.health().sealing_key == third.id


def test_a_reader_whose_keys_have_expired_joins_no_other_ring_and_does_not_spin(
    fleet: Fleet,
) -> None:
    with fleet.reader() as codec:
        fleet.clock.advance(DAY + 4_200 + 300)
        fleet.publish([fleet.key(-300, by=())])
        unwraps = fleet.kms.unwraps
        for _ in range(3):
            run_pass(codec, reads=True)
            assert ms_until_next(codec) >= 1_000
            fleet.clock.advance(60)
        assert codec.health().keys == ()
        assert "foreign-ring" in problems(codec)
        assert fleet.kms.unwraps == unwraps
        with pytest.raises(SealUnavailableError):
            codec.seal(b"x")


def test_the_mildest_answer_of_several_key_wrappers_counts(fleet: Fleet) -> None:
    other = LocalKeyWrapper(master_key=os.urandom(32))
    twin = made_key(other, fleet.clock.wall - 300_000, data_key=fleet.first.data_key)
    fleet.publish([fleet.first.wrapped_too(twin)])
    second = Kms(other)
    with fleet.reader(key_wrapper=[fleet.kms, second]) as codec:
        fleet.kms.refuse("disabled")
        second.refuse("throttled")
        for seconds in (900, 10, 10, 10):
            fleet.clock.advance(seconds)
            run_pass(codec)
        assert codec.health().last_error is not None
        assert codec.health().last_error[:2] == ("kms", "throttled")
        codec.seal(b"x")


def test_a_wrap_that_was_added_to_a_known_key_is_learned_by_its_mac(fleet: Fleet) -> None:
    other = LocalKeyWrapper(master_key=os.urandom(32))
    twin = made_key(other, fleet.clock.wall - 300_000, data_key=fleet.first.data_key)
    stranger = Kms(other)
    with fleet.reader(key_wrapper=[fleet.kms, stranger]) as codec:
        forged = [{**wrap, "mac": "A" * 43} for wrap in twin.entry["wraps"]]  # type: ignore[attr-defined]
        for entry, proves in ((twin.edited(wraps=forged), False), (twin, True)):
            fleet.publish([fleet.first.wrapped_too(entry)])
            codec.refresh()
            fleet.kms.refuse("unavailable")
            before = codec.health().last_kms_check
            fleet.clock.advance(900)
            run_pass(codec, reads=True)
            assert (codec.health().last_kms_check != before) is proves
            fleet.kms.failure = None
            codec.refresh()


def test_f26_an_older_document_removes_no_key(fleet: Fleet) -> None:
    second = fleet.key(4_500)
    before = fleet.store.text
    fleet.publish([fleet.first, second])
    with fleet.reader() as codec:
        fleet.store.text = before
        codec.refresh()
        assert set(states(codec)) == {fleet.first.id, second.id}
        # A member must write it.
        assert codec.health().status == "degraded"
        fleet.publish([fleet.first, second])
        codec.refresh()
        assert codec.health().status == "ok"


def test_f31_an_absent_ring_removes_no_key(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        fleet.store.text = None
        teaches_nothing(codec, "unavailable")
        fleet.publish([], claim="A" * 22)
        teaches_nothing(codec)
        fleet.store.text = "junk"
        teaches_nothing(codec)
        assert codec.unseal(codec.seal(b"x")) == b"x"


def test_a_revoked_key_no_longer_unseals_and_its_successor_seals(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        old = codec.seal(b"old")
        successor = fleet.key(-300)
        fleet.publish([revoked(fleet.first, fleet.clock.wall), successor])
        codec.refresh()
        refuses(codec, old)
        assert codec.seal(b"new")[4:16] == successor.id
        assert states(codec) == {fleet.first.id: "revoked", successor.id: "active"}


def test_a_revocation_is_permanent(fleet: Fleet) -> None:
    before = fleet.store.text
    with fleet.reader() as codec:
        old = codec.seal(b"old")
        successor = fleet.key(-300)
        fleet.publish([revoked(fleet.first, fleet.clock.wall), successor])
        codec.refresh()
        for text in (before, document([fleet.first, successor])):
            fleet.store.text = text
            codec.refresh()
            refuses(codec, old)
            assert codec.seal(b"x")[4:16] == successor.id
            assert codec.health().status == "degraded"


def test_a_revocation_is_valid_even_if_the_successor_cannot_be_unwrapped(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        old = codec.seal(b"old")
        successor = fleet.key(-300)
        fleet.publish([revoked(fleet.first, fleet.clock.wall), successor])
        for kind in ("unavailable", "denied"):
            fleet.kms.refuse(kind)
            for _ in range(2):
                with pytest.raises(KeyWrapperError):
                    codec.refresh()
                refuses(codec, old)
                assert not codec.health().ready
        # Without a key that could be checked, the refusals show nothing about the successor.
        fleet.kms.failure = None
        codec.refresh()
        assert codec.health().sealing_key == successor.id


def test_a_revocation_is_certified_by_the_revoked_key_or_a_newer_one(fleet: Fleet) -> None:
    second, third = fleet.key(4_500), fleet.key(9_000)
    keys = [fleet.first, second, third]
    stranger = fleet.key(0, by=())
    fleet.publish(keys)
    with fleet.reader() as codec:
        now = fleet.clock.wall
        # No key, an older key, an unknown key, and a revoked key.
        for by in ([], [fleet.first], [stranger], [MadeKey(stranger.data_key, third.entry)]):
            fleet.publish([fleet.first, revoked(second, now, by=by), third])
            codec.refresh()
            assert "revoked" not in states(codec).values()
        gone = revoked(third, now)
        fleet.publish([fleet.first, revoked(second, now, by=[third]), gone])
        codec.refresh()
        assert states(codec)[third.id] == "revoked"
        assert states(codec)[second.id] == "propagating"
        fleet.publish([revoked(fleet.first, now, by=[second]), second, gone])
        codec.refresh()
        assert states(codec)[fleet.first.id] == "revoked"


def test_a_certificate_is_valid_for_one_key_and_one_time(fleet: Fleet) -> None:
    second = fleet.key(4_500)
    fleet.publish([fleet.first, second])
    with fleet.reader() as codec:
        now = fleet.clock.wall
        certified = revoked(fleet.first, now).entry["revoked"]
        moved = {**certified, "at": time_text(now + 1_000)}  # type: ignore[dict-item]
        for claim in (moved, revoked(second, now, by=[second]).entry["revoked"]):
            ordered = revoked(fleet.first, now).edited(revoked=claim)
            fleet.publish([ordered, second])
            codec.refresh()
            assert states(codec)[fleet.first.id] == "active"


def test_a_key_that_a_newer_one_revoked_before_it_was_known_is_a_tombstone(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        second, third = fleet.key(4_500), fleet.key(4_600)
        unwraps = fleet.kms.unwraps
        fleet.publish([fleet.first, revoked(second, fleet.clock.wall, by=[third]), third])
        codec.refresh()
        assert states(codec)[second.id] == "revoked"
        assert fleet.kms.unwraps == unwraps + 1
        # The revocation remains, even if the document no longer has it.
        fleet.publish([fleet.first, second, third])
        codec.refresh()
        assert states(codec)[second.id] == "revoked"
        assert fleet.kms.unwraps == unwraps + 1


def test_a_key_revoked_with_false_times_stays_revoked_with_the_right_ones(
    fleet: Fleet,
) -> None:
    with fleet.reader() as codec:
        second, third = fleet.key(4_500), fleet.key(4_600)
        false = second.edited(opensUntil="2026-12-24T00:00:00Z")
        fleet.publish([fleet.first, revoked(false, fleet.clock.wall, by=[third]), third])
        codec.refresh()
        fleet.publish([fleet.first, second, third])
        codec.refresh()
        assert states(codec)[second.id] == "revoked"


def test_tombstones_while_a_ring_has_room_and_four_carried_entries(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        many = [fleet.key(4_500, by=[fleet.first]) for _ in range(70)]
        newest = fleet.key(4_600, by=[fleet.first])
        gone = [revoked(key, fleet.clock.wall, by=[newest]) for key in many]
        for some in (gone[:40], gone[40:]):
            fleet.publish([fleet.first, *some, newest])
            codec.refresh()
        tombs = [key.id for key in codec._view.snapshot.keys if key.is_tombstone]
        assert set(tombs) == {key.id for key in many[8:]}
        fleet.kms.refuse("unavailable")
        fleet.publish([fleet.first, newest, *(fleet.key(5_000) for _ in range(9))])
        with pytest.raises(KeyWrapperError):
            codec.refresh()
        assert len(codec._view.snapshot.carried) == 4


def test_at_most_64_expired_keys_are_remembered_as_certifiers(fleet: Fleet) -> None:
    keys = [fleet.first]
    with fleet.reader() as codec:
        for _ in range(70):
            keys = [keys[-1], fleet.key(60, seals=3_600)]
            fleet.publish(keys)
            codec.refresh()
            fleet.clock.advance(9_000)
        past = codec._view._past
        assert len(past) <= 64
        assert fleet.first.id not in past


def test_a_corrupt_wrap_is_not_unwrapped_again_for_an_hour(fleet: Fleet) -> None:
    other = LocalKeyWrapper(master_key=os.urandom(32))
    with fleet.reader() as codec:
        second = fleet.key(4_500)
        fleet.publish([fleet.first, second])
        fleet.kms.refuse("corrupt")
        codec.refresh()
        assert second.id not in states(codec)
        assert problems(codec) == ["unreadable-key"]
        fleet.kms.failure = None
        unwraps = fleet.kms.unwraps
        codec.refresh()
        assert fleet.kms.unwraps == unwraps
        # Another wrap of the same key is unwrapped.
        twin = made_key(
            other,
            fleet.clock.wall + 4_500_000,
            created_ms=fleet.created,
            data_key=second.data_key,
        )
        fleet.publish([fleet.first, second.wrapped_too(twin)])
        codec._keeper._wraps.wrappers = (fleet.kms, other)
        codec.refresh()
        assert states(codec)[second.id] == "propagating"


def test_a_wrap_that_was_called_corrupt_is_unwrapped_again_after_an_hour(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        second = fleet.key(4_500)
        fleet.publish([fleet.first, second])
        fleet.kms.refuse("corrupt")
        codec.refresh()
        fleet.kms.failure = None
        fleet.clock.advance(3_599)
        codec.refresh()
        assert second.id not in states(codec)
        fleet.clock.advance(1)
        codec.refresh()
        assert states(codec)[second.id] == "propagating"
        assert codec.health().status == "ok"


class SomeRefused(Kms):
    """Refuses unwraps of one entry."""

    refused = ""

    def unwrap(self, wrapped, context, **more):  # type: ignore[no-untyped-def]
        failure, self.failure = self.failure, None
        try:
            if failure is not None and self.refused in context["sealring:times"]:
                self.unwraps += 1
                raise failure
            return super().unwrap(wrapped, context, **more)
        finally:
            self.failure = failure


def test_an_entry_that_is_refused_while_a_held_key_is_not_counts_as_corrupt(fleet: Fleet) -> None:
    kms = SomeRefused(fleet.wrapper)
    with fleet.reader(key_wrapper=kms) as codec:
        second = fleet.key(4_500)
        fleet.publish([fleet.first, second])
        kms.refused = str(second.entry["activates"])
        kms.refuse("denied")
        for seconds in (10, 7.999):
            fleet.clock.advance(seconds)
            with pytest.raises(KeyWrapperError, match="denied"):
                codec.refresh()
            assert problems(codec) == []
        for _ in range(4):
            fleet.clock.advance(10)
            codec.refresh()
        # The start, and the new entry and the held key at each refusal.
        assert kms.unwraps == 1 + 3 * 2
        assert not codec._view.limits.is_stopped
        assert codec.health().can_seal
        assert problems(codec) == ["unreadable-key"]


def test_a_stray_refusal_of_a_new_entry_has_no_effect_after_the_next_read(fleet: Fleet) -> None:
    kms = SomeRefused(fleet.wrapper)
    with fleet.reader(key_wrapper=kms) as codec:
        second = fleet.key(4_500)
        fleet.publish([fleet.first, second])
        kms.refused = str(second.entry["activates"])
        kms.refuse("denied")
        with pytest.raises(KeyWrapperError, match="denied"):
            codec.refresh()
        kms.failure = None
        fleet.clock.advance(10)
        codec.refresh()
        assert states(codec)[second.id] == "propagating"


def test_the_count_of_refusals_of_an_entry_restarts_if_it_is_no_longer_wanted(fleet: Fleet) -> None:
    kms = SomeRefused(fleet.wrapper)
    with fleet.reader(key_wrapper=kms) as codec:
        second, third = fleet.key(4_500), fleet.key(9_000)
        kms.refused = str(second.entry["activates"])
        for keys in (
            [fleet.first, second],
            [fleet.first, revoked(second, fleet.clock.wall, by=[third]), third],
        ):
            fleet.publish(keys)
            kms.refuse("denied")
            run_pass(codec, reads=True)
            fleet.clock.advance(10)
            run_pass(codec, reads=True)
        assert codec._keeper._sync._refused_at == {}


def test_only_the_wraps_of_the_key_wrapper_that_answered_the_check_count_as_corrupt(
    fleet: Fleet,
) -> None:
    kms, other = SomeRefused(fleet.wrapper), Kms(LocalKeyWrapper(master_key=os.urandom(32)))
    with fleet.reader(key_wrapper=[kms, other]) as codec:
        second = fleet.key(4_500)
        twin = made_key(
            other.wrapper,
            fleet.clock.wall + 4_500_000,
            created_ms=fleet.created,
            data_key=second.data_key,
        )
        fleet.publish([fleet.first, second.wrapped_too(twin)])
        kms.refused = str(second.entry["activates"])
        kms.refuse("denied")
        other.refuse("denied")
        for _ in range(3):
            fleet.clock.advance(10)
            with pytest.raises(KeyWrapperError, match="denied"):
                codec.refresh()
        assert other.unwraps == 3
        # The start, twice the new entry, and three checks.
        assert kms.unwraps == 1 + 2 + 3
        other.failure = None
        codec.refresh()
        assert states(codec)[second.id] == "propagating"


def test_a_start_waits_for_a_key_that_is_briefly_unavailable(fleet: Fleet) -> None:
    second = fleet.key(-200)
    fleet.publish([fleet.first, second])
    kms = SomeRefused(fleet.wrapper)
    kms.refused = str(second.entry["activates"])
    kms.refuse("unavailable")

    def recover() -> None:
        if fleet.store.reads > 1:
            kms.failure = None

    fleet.store.on_read = recover
    with fleet.reader(key_wrapper=kms) as codec:
        assert states(codec)[second.id] == "active"
        assert fleet.store.reads == 2


def test_if_nothing_can_be_unwrapped_a_refusal_is_reported_before_corruption(
    fleet: Fleet,
) -> None:
    second = fleet.key(-200)
    fleet.publish([fleet.first, second.edited(wraps=fleet.first.entry["wraps"])])
    kms = SomeRefused(fleet.wrapper)
    kms.refused = str(fleet.first.entry["activates"])
    kms.refuse("denied")
    start_refused(fleet.reader(key_wrapper=kms), "denied")


def test_a_start_unwraps_no_expired_key(fleet: Fleet) -> None:
    fleet.clock.advance(DAY + 4_200)
    fleet.publish([fleet.first, fleet.key(-300)])
    with fleet.reader():
        assert fleet.kms.unwraps == 1


def test_a_cold_start_learns_keys_that_are_linked(fleet: Fleet) -> None:
    second, third = fleet.key(-200), fleet.key(4_500)
    fleet.publish([revoked(fleet.first, fleet.clock.wall, by=[third]), second, third])
    unwraps = fleet.kms.unwraps
    with fleet.reader() as codec:
        expected = {fleet.first.id: "revoked", second.id: "active", third.id: "propagating"}
        assert states(codec) == expected
        # A newer key certifies the revocation.
        assert fleet.kms.unwraps == unwraps + 2


def test_a_cold_start_unwraps_a_key_that_only_certifies_its_own_revocation(fleet: Fleet) -> None:
    second = fleet.key(-200)
    fleet.publish([fleet.first, revoked(second, fleet.clock.wall)])
    with fleet.reader() as codec:
        assert states(codec) == {fleet.first.id: "active", second.id: "revoked"}
    fleet.publish([fleet.first, revoked(second, fleet.clock.wall, by=[fleet.first])])
    with fleet.reader() as codec:
        assert states(codec) == {fleet.first.id: "verify-only", second.id: "active"}


def test_a_cold_start_refuses_two_lineages_and_names_both(fleet: Fleet) -> None:
    stranger = fleet.key(-200, by=())
    fleet.publish([fleet.first, stranger])
    codec = fleet.reader(policy=SLOW)
    fleet.store.on_read = lambda: fleet.clock.advance(60)
    with pytest.raises(RingStoreError, match="two lineages") as caught:
        codec.start()
    assert fleet.first.id in str(caught.value)
    assert stranger.id in str(caught.value)


def test_linked_keys_need_a_voucher_and_an_ancestor(fleet: Fleet) -> None:
    stranger = fleet.key(-200, by=())
    vouched = fleet.key(-200, by=[fleet.first])
    for apart in (naming(stranger, [fleet.first]), naming(vouched, [])):
        fleet.publish([fleet.first, apart])
        fleet.store.on_read = lambda: fleet.clock.advance(60)
        with pytest.raises(RingStoreError, match="two lineages"):
            fleet.reader(policy=SLOW).start()


def test_an_older_key_is_learned_if_a_known_key_names_it(fleet: Fleet) -> None:
    second = fleet.key(-200)
    other = fleet.key(-200, by=[])
    fleet.publish([second])
    with fleet.reader() as codec:
        fleet.publish([fleet.first, second, naming(other, [])])
        codec.refresh()
        assert states(codec) == {fleet.first.id: "verify-only", second.id: "active"}
        assert codec.health().status == "ok"


def test_the_ancestors_of_a_key_are_authenticated_by_that_key(fleet: Fleet) -> None:
    second = fleet.key(-200)
    told = {**second.entry["ancestors"], "mac": "A" * 43}  # type: ignore[dict-item]
    forged = second.edited(ancestors=told)
    fleet.publish([forged])
    with fleet.reader() as codec:
        fleet.publish([fleet.first, forged])
        codec.refresh()
        assert states(codec) == {second.id: "active"}
        fleet.publish([fleet.first, second])
        codec.refresh()
        assert set(states(codec)) == {fleet.first.id, second.id}


def test_a_document_that_lacks_a_fact_must_be_written_by_a_member(fleet: Fleet) -> None:
    other = LocalKeyWrapper(master_key=os.urandom(32))
    second = fleet.key(-200)
    twin = made_key(other, fleet.clock.wall - 300_000, data_key=fleet.first.data_key)
    first = fleet.first.wrapped_too(twin)
    gone = revoked(fleet.key(-200), fleet.clock.wall)
    fleet.publish([first, second, gone])
    with fleet.reader() as codec:
        assert codec.health().status == "ok"
        without = {name: value for name, value in second.entry.items() if name != "ancestors"}
        newer = revoked(gone, fleet.clock.wall, by=[gone, second])
        for keys, status in (
            ([fleet.first, second, gone], "degraded"),
            ([first, second.edited(vouchers={}), gone], "degraded"),
            ([first, MadeKey(second.data_key, without), gone], "degraded"),
            ([first, second, revoked(gone, fleet.clock.wall, by=[second])], "degraded"),
            ([first, second, newer], "ok"),
        ):
            fleet.publish(keys)
            codec.refresh()
            assert codec.health().status == status


def test_a_revoked_certifier_no_longer_confirms_a_tombstone(
    fleet: Fleet,
) -> None:
    with fleet.reader() as codec:
        second, third = fleet.key(4_500), fleet.key(4_600)
        fleet.publish([fleet.first, revoked(second, fleet.clock.wall, by=[third]), third])
        codec.refresh()
        assert codec._view.snapshot.by_id[second.id].is_tombstone
        gone = revoked(third, fleet.clock.wall)
        fleet.publish([fleet.first, second, gone])
        codec.refresh()
        assert not codec._view.snapshot.by_id[second.id].is_tombstone
        expected = {fleet.first.id: "active", second.id: "revoked", third.id: "revoked"}
        assert states(codec) == expected


def test_a_tombstone_gains_certificates(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        second, third, fourth = (fleet.key(4_500) for _ in range(3))
        now = fleet.clock.wall
        for by in ([third], [fourth]):
            fleet.publish([fleet.first, revoked(second, now, by=by), third, fourth])
            codec.refresh()
        unwraps = fleet.kms.unwraps
        fleet.publish([fleet.first, second, revoked(third, now), fourth])
        codec.refresh()
        assert codec._view.snapshot.by_id[second.id].is_tombstone
        assert fleet.kms.unwraps == unwraps


def test_an_expired_or_revoked_key_may_link_two_others(fleet: Fleet) -> None:
    fleet.clock.advance(DAY + 4_200)
    left, right = (fleet.key(-300, by=[fleet.first]) for _ in range(2))
    fleet.publish([fleet.first, left, right])
    with fleet.reader() as codec:
        assert set(states(codec)) == {left.id, right.id}


def test_a_ring_without_a_live_key_does_not_start(fleet: Fleet) -> None:
    fleet.publish([revoked(fleet.first, fleet.clock.wall)])
    start_refused(fleet.reader())
    fleet.publish([fleet.first])
    fleet.clock.advance(DAY + 4_200)
    start_refused(fleet.reader())


def test_a_key_from_the_future_is_not_used(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        ahead = fleet.clock.wall + 365_000
        fleet.publish([fleet.first, fleet.key(4_500, created_ms=ahead)])
        codec.refresh()
        assert len(codec.health().keys) == 1
        # It is checked again with a later time.
        fleet.clock.advance(3_600)
        codec.refresh()
        assert len(codec.health().keys) == 2


def test_a_start_waits_while_all_keys_are_from_the_future(fleet: Fleet) -> None:
    fleet.publish([fleet.key(4_500, created_ms=fleet.clock.wall + 3_600_000)])
    fleet.store.on_read = lambda: fleet.clock.advance(60)
    start_refused(fleet.reader(policy=SLOW), "unavailable")
    assert fleet.store.reads > 1
    assert fleet.kms.unwraps == 1


def test_a_pin_excludes_older_keys(fleet: Fleet) -> None:
    pin = datetime.fromtimestamp(fleet.clock.wall / 1_000, tz=timezone.utc)
    start_refused(fleet.reader(accept_keys_created_after=pin))
    fresh = fleet.key(-300)
    fleet.publish([fleet.first, fresh])
    with fleet.reader(accept_keys_created_after=pin) as codec:
        assert states(codec) == {fleet.first.id: "revoked", fresh.id: "active"}
        older = fleet.key(60, created_ms=fleet.clock.wall - 1_000, by=[fresh])
        fleet.publish([fleet.first, fresh, older])
        codec.refresh()
        assert states(codec)[older.id] == "revoked"


def test_f25_a_start_refuses_a_ring_with_another_name(fleet: Fleet) -> None:
    start_refused(fleet.reader(ring_name="orders"))
    # An attacker who can write to the store renames the key, but its wraps are bound to the name.
    fleet.store.text = document([fleet.first], ring="orders")
    start_refused(fleet.reader(ring_name="orders"))


def test_f35_a_wrap_without_an_authenticated_origin_is_ignored(fleet: Fleet) -> None:
    wraps = [
        {
            "provider": "azure-key-vault",
            "keyId": "https://v/keys/k/1",
            "wrapped": "AAAA",
            "signature": "AAAA",
            "mac": "A" * 43,
        }
    ]
    fleet.publish([fleet.first.edited(wraps=wraps)])
    start_refused(fleet.reader())
    assert fleet.kms.unwraps == 0


def test_f35_a_key_that_an_attacker_wrapped_is_refused(fleet: Fleet) -> None:
    own = made_key(LocalKeyWrapper(master_key=os.urandom(32)), fleet.clock.wall - 300_000)
    fleet.publish([own])
    start_refused(fleet.reader())


def test_f9_a_key_that_could_not_be_unwrapped_is_retried(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        second = fleet.key(4_500)
        fleet.publish([fleet.first, second])
        fleet.kms.refuse("unavailable")
        with pytest.raises(KeyWrapperError):
            codec.refresh()
        held = {key.id: key.held for key in codec.health().keys}
        assert held == {fleet.first.id: True, second.id: False}
        fleet.kms.failure = None
        codec.refresh()
        assert all(key.held for key in codec.health().keys)


def test_not_ready_while_a_key_that_others_seal_with_is_missing(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        second = fleet.key(600)
        fleet.publish([fleet.first, second])
        fleet.kms.refuse("unavailable")
        with pytest.raises(KeyWrapperError):
            codec.refresh()
        assert codec.health().ready
        fleet.clock.advance(600)
        with pytest.raises(KeyWrapperError):
            codec.refresh()
        assert not codec.health().ready
        fleet.kms.failure = None
        codec.refresh()
        assert codec.health().ready


def test_not_ready_while_tokens_of_a_missing_key_live_even_if_a_newer_key_seals(
    fleet: Fleet,
) -> None:
    with fleet.reader() as codec:
        planned = fleet.key(1_200)
        fleet.publish([fleet.first, planned])
        codec.refresh()
        hasty = fleet.key(600)
        fleet.publish([fleet.first, planned, hasty])
        fleet.kms.refuse("unavailable")
        with pytest.raises(KeyWrapperError):
            codec.refresh()
        fleet.clock.advance(1_200)
        with pytest.raises(KeyWrapperError):
            codec.refresh()
        health = codec.health()
        assert (health.sealing_key, health.ready) == (planned.id, False)
        fleet.kms.failure = None
        codec.refresh()
        assert codec.health().ready


def test_a_start_ignores_a_key_of_another_kms(fleet: Fleet) -> None:
    other = LocalKeyWrapper(master_key=os.urandom(32))
    theirs = made_key(other, fleet.clock.wall - 400_000, by=[fleet.first])
    fleet.publish([theirs, fleet.first])
    with fleet.reader() as codec:
        assert set(states(codec)) == {fleet.first.id}
    with fleet.reader(key_wrapper=[fleet.kms, other]) as codec:
        assert all(key.held for key in codec.health().keys)
        assert len(codec.health().keys) == 2


def test_one_of_several_wraps_is_enough(fleet: Fleet) -> None:
    other = LocalKeyWrapper(master_key=os.urandom(32))
    twin = made_key(other, fleet.clock.wall - 300_000, data_key=fleet.first.data_key)
    fleet.publish([fleet.first.wrapped_too(twin)])
    fleet.kms.refuse("denied")
    with fleet.reader(key_wrapper=[fleet.kms, other]) as codec:
        assert codec.unseal(codec.seal(b"x")) == b"x"


def test_a_reader_of_a_young_ring_switches_to_the_older_one_and_keeps_its_tokens(
    fleet: Fleet,
) -> None:
    old = fleet.key(-400, created_ms=fleet.clock.wall - 3_600_000, by=())
    fleet.publish([naming(fleet.first, ())])
    with fleet.reader() as codec:
        token = codec.seal(b"young")
        fleet.publish([old])
        codec.refresh()
        assert codec.seal(b"x")[4:16] == old.id
        assert codec.unseal(token) == b"young"
        assert codec.health().status == "ok"
        # The ring that was left no longer seals, whatever the store holds.
        fleet.publish([fleet.first])
        codec.refresh()
        assert codec.seal(b"x")[4:16] == old.id


def test_a_reader_of_an_old_ring_does_not_switch_even_if_it_knows_only_young_keys(
    fleet: Fleet,
) -> None:
    second = naming(fleet.key(-300, by=[fleet.first]), [fleet.first])
    fleet.publish([revoked(fleet.first, fleet.clock.wall, by=[second]), second])
    with fleet.reader() as codec:
        fleet.publish([fleet.key(-400, created_ms=fleet.clock.wall - 72_000_000, by=())])
        with pytest.raises(RingStoreError):
            codec.refresh()
        assert codec.seal(b"x")[4:16] == second.id


def test_a_key_of_another_lineage_is_ignored_beside_a_usable_key(fleet: Fleet) -> None:
    other = revoked(fleet.key(-300, by=()), fleet.clock.wall)
    fleet.publish([other, fleet.first])
    with fleet.reader() as codec:
        known = codec._view.snapshot.by_id
        assert known.keys() == {fleet.first.id}


def test_unwraps_a_revoked_key_if_it_is_the_only_link_to_a_new_one(fleet: Fleet) -> None:
    second = fleet.key(-300, by=[fleet.first])
    gone = revoked(fleet.key(-200, by=[fleet.first, second]), fleet.clock.wall, by=[second])
    third = naming(fleet.key(-100, by=[fleet.first, second]), [fleet.first, second])
    fleet.publish([fleet.first, second, revoked(gone, fleet.clock.wall, by=[third]), third])
    with fleet.reader() as codec:
        assert codec._view.snapshot.by_id[gone.id].is_tombstone
        heir = fleet.key(-50, by=[gone])
        tail = revoked(gone, fleet.clock.wall, by=[third])
        fleet.publish([fleet.first, second, tail, third, heir])
        codec.refresh()
        assert states(codec)[gone.id] == "revoked"
        assert codec.seal(b"x")[4:16] == heir.id


def test_a_reader_does_not_switch_to_a_younger_or_dead_ring_or_after_store_outage(
    fleet: Fleet,
) -> None:
    older = fleet.clock.wall - 3_600_000
    fleet.publish([naming(fleet.first, ())])
    with fleet.reader() as codec:
        dead = fleet.key(-300, created_ms=older, by=())
        for keys in ([fleet.key(-300, by=())], [revoked(dead, fleet.clock.wall)]):
            fleet.publish(keys)
            with pytest.raises(RingStoreError):
                codec.refresh()
            assert codec.seal(b"x")[4:16] == fleet.first.id
        # Try again: a key that was unwrapped but not adopted is not reused.
        fleet.publish([revoked(dead, fleet.clock.wall)], claim="A" * 22)
        with pytest.raises(RingStoreError):
            codec.refresh()
        fleet.clock.advance(21_600)
        fleet.publish([fleet.key(-300, created_ms=older, by=())])
        with pytest.raises(RingStoreError):
            codec.refresh()
        assert states(codec) == {fleet.first.id: "active"}


class SlowKms(Kms):
    """Each unwrap takes 4.9 s, also beside others."""

    def __init__(self, fleet: Fleet, *, real_seconds: float = 0.02) -> None:
        super().__init__(fleet.wrapper)
        self.clock = fleet.clock
        self.lock = threading.Lock()
        self.in_flight = self.most_in_flight = 0
        self.real_seconds = real_seconds
        self.on_unwrap: Callable[[], object] = lambda: None

    def unwrap(self, *args: object, **more: object) -> bytearray:
        with self.lock:
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            end = self.clock.wall + 4_900
        # Those that are made at the same time have begun by then.
        time.sleep(self.real_seconds)
        with self.lock:
            self.clock.advance(max(0, end - self.clock.wall) / 1_000)
            self.in_flight -= 1
            self.on_unwrap()
        return super().unwrap(*args, **more)  # type: ignore[arg-type]


def junk_wraps(fleet: Fleet) -> list[dict[str, str]]:
    def text(length: int) -> str:
        return base64url.encode(os.urandom(length))

    names = {"provider": "local", "keyId": fleet.wrapper.key_id}
    return [{**names, "wrapped": text(60), "mac": text(32)} for _ in range(16)]


def junk_ring(fleet: Fleet) -> list[MadeKey]:
    """As many entries and wraps as fit, by an attacker who cannot call the KMS. They seem older
    than the ring."""
    made = fleet.key(-400, created_ms=fleet.clock.wall - 7_200_000, by=())
    return [
        made.edited(id=base64url.encode(os.urandom(9)), wraps=junk_wraps(fleet)) for _ in range(64)
    ]


def test_junk_in_the_place_of_a_young_ring_takes_no_longer_than_other_documents(
    fleet: Fleet,
) -> None:
    kms = SlowKms(fleet)
    fleet.publish([naming(fleet.first, ())])
    with fleet.member(key_wrapper=kms) as codec:
        began, unwraps = fleet.clock.wall, kms.unwraps
        fleet.publish(junk_ring(fleet))
        teaches_nothing(codec)
        # Five calls for the junk, and one for a key that this member holds.
        assert kms.unwraps - unwraps <= 6
        assert fleet.clock.wall - began <= 30_000
        for _ in range(6):
            fleet.clock.advance(4)
            codec._keeper.turns.background(lambda: run_pass(codec, reads=True)).result(60)
        assert fleet.store.text is not None
        assert fleet.first.id in fleet.store.text


def test_a_member_that_was_notified_of_junk_unwraps_none_of_it_at_once(fleet: Fleet) -> None:
    fleet.publish([naming(fleet.first, ())])
    with fleet.member() as codec:
        unwraps = fleet.kms.unwraps
        fleet.publish(junk_ring(fleet))
        with pytest.raises(RingStoreError):
            codec._keeper._pass(CallOptions(defer_unwraps=True), reads=True)
        assert fleet.kms.unwraps == unwraps
        teaches_nothing(codec)
        assert fleet.kms.unwraps > unwraps


def seals_after_980_s(
    fleet: Fleet,
    codec: KmsCodec,
    kms: SlowKms,
    before_pass: Callable[[], object],
) -> bool:
    """Whether a member seals that long after the KMS began to refuse, even within a pass."""
    end, seals = fleet.clock.wall + 980_000, []

    def note() -> None:
        if fleet.clock.wall >= end:
            seals.append(codec.health().can_seal)

    kms.on_unwrap = note
    kms.refuse("denied")
    turns = codec._keeper.turns
    while not seals:
        before_pass()
        # A moment early: a pass that is due begins by itself.
        fleet.clock.advance(max(0, ms_until_next(codec) - 1) / 1_000)
        turns.background(lambda: run_pass(codec)).result(60)
        note()
    return any(seals)


def test_sealing_stops_although_junk_replaces_a_young_ring_while_the_kms_refuses_slowly(
    fleet: Fleet,
) -> None:
    kms = SlowKms(fleet)
    fleet.publish([naming(fleet.first, ())])
    with fleet.member(key_wrapper=kms) as codec:
        assert not seals_after_980_s(fleet, codec, kms, lambda: fleet.publish(junk_ring(fleet)))


def test_sealing_stops_although_the_wraps_of_a_new_key_were_replaced_while_the_kms_refuses_slowly(
    fleet: Fleet,
) -> None:
    kms = SlowKms(fleet)
    with fleet.member(key_wrapper=kms) as codec:
        fleet.publish([fleet.first, fleet.key(4_500).edited(wraps=junk_wraps(fleet))])
        assert not seals_after_980_s(fleet, codec, kms, lambda: None)


def test_four_entries_are_unwrapped_at_once_and_no_more(fleet: Fleet) -> None:
    kms = SlowKms(fleet, real_seconds=0.3)
    with fleet.reader(key_wrapper=kms) as codec:
        keys = [fleet.first, *(fleet.key(4_500) for _ in range(8))]
        fleet.publish(keys)
        began = fleet.clock.wall
        codec.refresh()
        assert states(codec).keys() == {key.id for key in keys}
        assert kms.most_in_flight == 4
        assert fleet.clock.wall - began == 2 * 4_900
    began = fleet.clock.wall
    with fleet.reader(key_wrapper=kms) as codec:
        # One key is unwrapped before the others, as in a start that finds the KMS down.
        assert fleet.clock.wall - began == 3 * 4_900
        assert kms.most_in_flight == 4


def test_all_entries_that_the_kms_refuses_slowly_are_tried_while_refusals_are_counted(
    fleet: Fleet,
) -> None:
    kms = SlowKms(fleet, real_seconds=0.1)
    with fleet.reader(key_wrapper=kms) as codec:
        keys = [fleet.key(4_500) for _ in range(4)]
        fleet.publish([fleet.first, *keys])
        codec._view.limits.failed("denied", codec._view.now())
        kms.refuse("denied")
        unwraps = kms.unwraps
        with pytest.raises(KeyWrapperError):
            codec.refresh()
        # The four, and a check for the entries and one of the pass.
        assert kms.unwraps - unwraps == 4 + 2


def test_sealing_stops_although_the_kms_refuses_several_new_keys_slowly(fleet: Fleet) -> None:
    kms = SlowKms(fleet, real_seconds=0.1)
    with fleet.member(key_wrapper=kms) as codec:
        fleet.publish([fleet.first, *(fleet.key(4_500) for _ in range(4))])
        assert not seals_after_980_s(fleet, codec, kms, lambda: None)


@pytest.mark.parametrize("are_overwritten", [False, True])
def test_goes_over_to_an_older_ring_that_takes_several_reads(
    fleet: Fleet, are_overwritten: bool
) -> None:
    kms, older = SlowKms(fleet), fleet.clock.wall - 3_600_000
    first = fleet.key(-400, created_ms=older, by=())
    keys = [first, *(fleet.key(4_500, created_ms=older + 1_000 * n, by=[first]) for n in range(25))]
    fleet.publish([naming(fleet.first, ())])
    with fleet.member(key_wrapper=kms) as codec:
        unwraps = kms.unwraps
        fleet.publish(keys)
        with pytest.raises(KeyWrapperError):
            codec.refresh()
        assert states(codec) == {fleet.first.id: "active"}
        if are_overwritten:
            codec._view.install(codec._view.snapshot)
        for _ in range(3):
            codec._keeper.turns.background(lambda: run_pass(codec, reads=True)).result(60)
        assert set(states(codec)) == {fleet.first.id, *(key.id for key in keys)}
        # The last calls of the first read are too late, and a pass that is due checks a held key.
        assert (kms.unwraps - unwraps < len(keys) + 10) is not are_overwritten


def test_no_key_is_active_yet(fleet: Fleet) -> None:
    fleet.publish([fleet.key(600)])
    with fleet.reader() as codec:
        with pytest.raises(SealUnavailableError) as caught:
            codec.seal(b"x")
        assert caught.value.reason == "no active key"
        assert not codec.health().ready
        assert problems(codec) == ["no-sealing-key"]


def test_a_ring_that_is_nearly_full_is_reported(fleet: Fleet) -> None:
    fleet.publish([fleet.first, *(fleet.key(4_500) for _ in range(46))])
    with fleet.reader() as codec:
        assert codec.health().status == "ok"
        fleet.publish([fleet.first, *fleet.made[1:], fleet.key(4_500)])
        codec.refresh()
        (problem,) = codec.health().problems
        assert problem.kind == "nearly-full"
        assert "48 of 64" in problem.detail
        assert problem.remedy
