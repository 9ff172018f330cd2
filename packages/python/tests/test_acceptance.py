"""Which ring documents are adopted: whoever can write the store takes no running reader over."""

import os
from datetime import datetime, timezone

import pytest
from ring_maker import DAY, Fleet, Kms, MadeKey, document, made_key, revoked

from sealring import (
    InvalidRequestState,
    KeyWrapperError,
    KmsCodec,
    LocalKeyWrapper,
    RingStoreError,
    SealUnavailableError,
)

TIMES = ("created", "activates", "sealsUntil", "opensUntil")


def refused(codec: KmsCodec, kind: str = "corrupt") -> None:
    before = codec.health().keys
    with pytest.raises(RingStoreError) as caught:
        codec.refresh()
    assert caught.value.kind == kind
    assert codec.health().keys == before
    assert codec.health().status == "degraded"
    assert codec.health().last_error is not None
    assert codec.health().last_error.kind == f"store {kind}"


def start_refused(codec: KmsCodec) -> None:
    with pytest.raises((RingStoreError, KeyWrapperError)) as caught:
        codec.start()
    assert caught.value.kind == "corrupt"


def test_a_successor_is_adopted_and_seals_when_it_activates(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        old = codec.seal(b"old")
        second = fleet.key(4_500)
        fleet.publish([fleet.first, second], epoch=2)
        codec.refresh()
        states = [(key.id, key.state) for key in codec.health().keys]
        assert states == [(fleet.first.id, "active"), (second.id, "propagating")]
        assert codec.seal(b"x")[4:16] == fleet.first.id
        fleet.clock.advance(4_500)
        codec.refresh()
        assert codec.seal(b"x")[4:16] == second.id
        assert [key.state for key in codec.health().keys] == ["verify-only", "active"]
        assert codec.unseal(old) == b"old"


def test_f26_a_document_signed_by_nobody_or_by_a_stranger_is_refused(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        stranger = fleet.key(0)
        for signers in ([], [stranger]):
            fleet.publish([fleet.first, stranger], epoch=9, signers=signers)
            refused(codec)
        fleet.publish([stranger], epoch=9)
        refused(codec)
        assert codec.unseal(codec.seal(b"x")) == b"x"


def test_f26_one_wrong_mac_among_right_ones_is_refused(fleet: Fleet) -> None:
    second = fleet.key(4_500)
    fleet.publish([fleet.first, second])
    with fleet.reader() as codec:
        impostor = MadeKey(os.urandom(32), fleet.first.entry)
        fleet.publish([fleet.first, second], epoch=2, signers=[second, impostor])
        refused(codec)


def test_f26_an_edited_time_is_refused_by_its_wrap(fleet: Fleet) -> None:
    longer = {**fleet.first.entry, "opensUntil": "2099-01-01T00:00:00Z"}
    fleet.publish([MadeKey(fleet.first.data_key, longer)])
    start_refused(fleet.reader())


def test_f26_swapped_wraps_are_refused(fleet: Fleet) -> None:
    other = fleet.key(-300)
    swapped = MadeKey(other.data_key, {**other.entry, "wraps": fleet.first.entry["wraps"]})
    fleet.publish([swapped])
    with pytest.raises(KeyWrapperError) as caught:
        fleet.reader().start()
    assert caught.value.kind == "corrupt"


def test_f15_a_wrap_that_was_opened_before_is_not_believed_under_another_id(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        other = fleet.key(-300)
        times = {name: fleet.first.entry[name] for name in TIMES}
        alias = {**other.entry, **times, "wraps": fleet.first.entry["wraps"]}
        fleet.publish([fleet.first, MadeKey(other.data_key, alias)], epoch=2)
        with pytest.raises(KeyWrapperError) as caught:
            codec.refresh()
        assert caught.value.kind == "corrupt"
        held = {key.id: key.held for key in codec.health().keys}
        assert held == {fleet.first.id: True, other.id: False}


def test_of_several_key_wrappers_the_mildest_answer_counts(fleet: Fleet) -> None:
    other = LocalKeyWrapper(master_key=os.urandom(32))
    twin = made_key(other, fleet.clock.wall - 300_000, data_key=fleet.first.data_key)
    wraps = [*fleet.first.entry["wraps"], *twin.entry["wraps"]]  # type: ignore[misc]
    fleet.publish([MadeKey(fleet.first.data_key, {**fleet.first.entry, "wraps": wraps})])
    second = Kms(other)
    with fleet.reader(key_wrapper=[fleet.kms, second]) as codec:
        fleet.kms.refuse("disabled")
        second.refuse("throttled")
        for seconds in (900, 10, 10, 10):
            fleet.clock.advance(seconds)
            codec._keeper.run(reads=False, is_foreground=False)
        assert codec.health().last_error is not None
        assert codec.health().last_error.kind == "kms throttled"
        codec.seal(b"x")


def test_f26_a_lower_epoch_is_refused_and_what_it_lacks_is_kept(fleet: Fleet) -> None:
    second = fleet.key(4_500)
    before = fleet.store.text
    fleet.publish([fleet.first, second], epoch=2)
    with fleet.reader() as codec:
        fleet.store.text = before
        refused(codec)
        assert [key.id for key in codec.health().keys] == [fleet.first.id, second.id]


def test_f26_a_lower_epoch_with_all_keys_is_refused_too(fleet: Fleet) -> None:
    fleet.publish([fleet.first], epoch=5)
    with fleet.reader() as codec:
        fleet.publish([fleet.first], epoch=4)
        refused(codec)


def test_f26_an_equal_epoch_with_other_bytes_is_refused(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        fleet.publish([fleet.first], epoch=1, claim="x")
        refused(codec)


def test_the_same_first_line_signed_by_more_keys_is_adopted(fleet: Fleet) -> None:
    second = fleet.key(4_500)
    fleet.publish([fleet.first, second], signers=[second])
    with fleet.reader() as codec:
        fleet.publish([fleet.first, second])
        codec.refresh()
        assert codec.health().status == "ok"


def test_f31_absence_is_not_deletion(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        fleet.store.text = None
        refused(codec, "unavailable")
        fleet.publish([], epoch=0, claim="somebody founds a ring")
        refused(codec, "unavailable")
        assert codec.unseal(codec.seal(b"x")) == b"x"


def test_a_revoked_key_opens_nothing_any_more_and_its_successor_seals(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        old = codec.seal(b"old")
        successor = fleet.key(-300)
        gone = revoked(fleet.first, fleet.clock.wall)
        fleet.publish([gone, successor], epoch=2)
        codec.refresh()
        with pytest.raises(InvalidRequestState) as caught:
            codec.unseal(old)
        assert caught.value.reason == "unknown key"
        assert codec.seal(b"new")[4:16] == successor.id
        assert {key.state for key in codec.health().keys} == {"revoked", "active"}


def test_a_revocation_is_sticky_through_a_rollback(fleet: Fleet) -> None:
    before = fleet.store.text
    with fleet.reader() as codec:
        old = codec.seal(b"old")
        successor = fleet.key(-300)
        fleet.publish([revoked(fleet.first, fleet.clock.wall), successor], epoch=2)
        codec.refresh()
        fleet.store.text = before
        refused(codec)
        with pytest.raises(InvalidRequestState):
            codec.unseal(old)
        assert codec.seal(b"x")[4:16] == successor.id


def test_f26_a_newer_document_that_lacks_a_live_key_is_refused_and_the_key_kept(
    fleet: Fleet,
) -> None:
    second = fleet.key(4_500)
    fleet.publish([fleet.first, second], epoch=2)
    with fleet.reader() as codec:
        fleet.publish([second], epoch=3, signers=[fleet.first, second])
        refused(codec)
        # A key that has ended may be dropped.
        fleet.clock.advance(DAY + 4_200)
        fleet.publish([second], epoch=4)
        codec.refresh()
        assert [key.id for key in codec.health().keys] == [second.id]


def test_f26_a_newer_document_that_lacks_a_revocation_is_refused_and_it_holds(
    fleet: Fleet,
) -> None:
    with fleet.reader() as codec:
        old = codec.seal(b"old")
        successor = fleet.key(-300)
        fleet.publish([revoked(fleet.first, fleet.clock.wall), successor], epoch=2)
        codec.refresh()
        fleet.publish([fleet.first, successor], epoch=3)
        refused(codec)
        with pytest.raises(InvalidRequestState):
            codec.unseal(old)


def test_the_newest_key_that_a_document_does_not_revoke_decides(fleet: Fleet) -> None:
    second = fleet.key(-200)
    fleet.publish([fleet.first, second])
    with fleet.reader() as codec:
        third = fleet.key(-300)
        gone = revoked(second, fleet.clock.wall)
        # From a member that never held the second key.
        fleet.publish([fleet.first, gone, third], epoch=2, signers=[fleet.first, third])
        codec.refresh()
        assert {key.id: key.state for key in codec.health().keys}[second.id] == "revoked"


def test_a_revocation_in_an_older_branch_holds_at_once(fleet: Fleet) -> None:
    second = fleet.key(4_500)
    fleet.publish([fleet.first, second], epoch=2)
    with fleet.reader() as codec:
        third = fleet.key(-300)
        # From a member that never saw the second key.
        fleet.publish([revoked(fleet.first, fleet.clock.wall), third], epoch=3)
        with pytest.raises(RingStoreError):
            codec.refresh()
        states = {key.id: key.state for key in codec.health().keys}
        assert states == {fleet.first.id: "revoked", second.id: "propagating", third.id: "active"}


def test_a_revocation_of_all_keys_needs_the_newest_of_them(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        theirs = fleet.key(-300)
        gone = revoked(fleet.first, fleet.clock.wall)
        fleet.publish([gone, theirs], epoch=2, signers=[theirs])
        refused(codec)
        fleet.publish([gone, theirs], epoch=2)
        codec.refresh()
        assert codec.health().sealing_key == theirs.id


def test_a_document_signed_only_by_an_ended_key_is_refused(fleet: Fleet) -> None:
    before = fleet.store.text
    second = fleet.key(4_500, seals=3 * DAY)
    fleet.publish([fleet.first, second], epoch=2)
    with fleet.reader() as codec:
        fleet.clock.advance(DAY + 4_200)
        codec.refresh()
        fleet.store.text = before
        refused(codec)
        leaked = fleet.key(-300)
        fleet.publish([leaked], epoch=9, signers=[fleet.first])
        refused(codec)


def test_a_cold_start_needs_the_mac_of_the_newest_key(fleet: Fleet) -> None:
    second = fleet.key(4_500)
    fleet.publish([fleet.first, second], signers=[fleet.first])
    start_refused(fleet.reader())


def test_a_cold_start_refuses_one_wrong_mac_among_right_ones(fleet: Fleet) -> None:
    second = fleet.key(4_500)
    impostor = MadeKey(os.urandom(32), fleet.first.entry)
    fleet.publish([fleet.first, second], signers=[second, impostor])
    start_refused(fleet.reader())


def test_a_cold_start_does_not_look_at_macs_of_revoked_keys(fleet: Fleet) -> None:
    successor = fleet.key(-300)
    fleet.publish([revoked(fleet.first, fleet.clock.wall), successor], signers=[successor])
    with fleet.reader() as codec:
        assert codec.health().sealing_key == successor.id


def test_a_ring_without_a_live_key_does_not_start(fleet: Fleet) -> None:
    fleet.publish([revoked(fleet.first, fleet.clock.wall)])
    start_refused(fleet.reader())
    fleet.publish([fleet.first])
    fleet.clock.advance(DAY + 4_200)
    start_refused(fleet.reader())


def test_a_pin_counts_older_keys_as_revoked(fleet: Fleet) -> None:
    pin = datetime.fromtimestamp(fleet.clock.wall / 1_000, tz=timezone.utc)
    start_refused(fleet.reader(accept_keys_created_after=pin))
    fresh = made_key(fleet.wrapper, fleet.clock.wall - 300_000, created_ms=fleet.clock.wall)
    fleet.publish([fleet.first, fresh])
    with fleet.reader(accept_keys_created_after=pin) as codec:
        assert [key.state for key in codec.health().keys] in (
            ["revoked", "active"],
            ["active", "revoked"],
        )


def test_f25_a_ring_of_another_name_does_not_start(fleet: Fleet) -> None:
    start_refused(fleet.reader(ring_name="orders"))
    # Renamed by somebody who can write the store: its wraps are bound to the name.
    fleet.store.text = document([fleet.first], ring="orders")
    start_refused(fleet.reader(ring_name="orders"))


def test_f35_a_wrap_that_proves_no_origin_is_not_looked_at(fleet: Fleet) -> None:
    wraps = [{"provider": "azure-key-vault", "keyId": "https://v/keys/k/1", "wrapped": "AAAA"}]
    fleet.publish([MadeKey(fleet.first.data_key, {**fleet.first.entry, "wraps": wraps})])
    start_refused(fleet.reader())
    assert fleet.kms.unwraps == 0


def test_f35_a_key_that_somebody_wrapped_himself_is_refused(fleet: Fleet) -> None:
    own = made_key(LocalKeyWrapper(master_key=os.urandom(32)), fleet.clock.wall - 300_000)
    fleet.publish([own])
    start_refused(fleet.reader())


def test_f9_a_key_that_could_not_be_unwrapped_is_tried_again(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        second = fleet.key(4_500)
        fleet.publish([fleet.first, second], epoch=2)
        fleet.kms.refuse("unavailable")
        with pytest.raises(KeyWrapperError):
            codec.refresh()
        held = {key.id: key.held for key in codec.health().keys}
        assert held == {fleet.first.id: True, second.id: False}
        fleet.kms.failure = None
        codec.refresh()
        assert all(key.held for key in codec.health().keys)


def test_a_start_needs_all_live_keys(fleet: Fleet) -> None:
    other = LocalKeyWrapper(master_key=os.urandom(32))
    theirs = made_key(other, fleet.clock.wall - 400_000)
    fleet.publish([theirs, fleet.first])
    start_refused(fleet.reader())
    with fleet.reader(key_wrapper=[fleet.kms, other]) as codec:
        assert all(key.held for key in codec.health().keys)


def test_one_of_several_wraps_is_enough(fleet: Fleet) -> None:
    other = LocalKeyWrapper(master_key=os.urandom(32))
    twin = made_key(other, fleet.clock.wall - 300_000, data_key=fleet.first.data_key)
    wraps = [*fleet.first.entry["wraps"], *twin.entry["wraps"]]  # type: ignore[misc]
    fleet.publish([MadeKey(fleet.first.data_key, {**fleet.first.entry, "wraps": wraps})])
    fleet.kms.refuse("denied")
    with fleet.reader(key_wrapper=[fleet.kms, other]) as codec:
        assert codec.unseal(codec.seal(b"x")) == b"x"


def test_members_that_a_newer_version_added_are_ignored(fleet: Fleet) -> None:
    entry = {**fleet.first.entry, "colour": {"deep": [1, 2.5]}}
    fleet.publish([MadeKey(fleet.first.data_key, entry)], weather=None)
    with fleet.reader() as codec:
        assert codec.health().ready


def test_no_key_is_active_yet(fleet: Fleet) -> None:
    fleet.publish([fleet.key(600)])
    with fleet.reader() as codec:
        with pytest.raises(SealUnavailableError) as caught:
            codec.seal(b"x")
        assert caught.value.reason == "no active key"
        assert not codec.health().ready
