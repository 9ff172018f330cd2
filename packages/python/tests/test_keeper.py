"""When the ring is read and the KMS is called, and how often others can cause that."""

import threading

import pytest
from ring_maker import DAY, Fleet, miss, ms_until_next, run_pass

from sealring import KeyWrapperError, RingPolicy, RingStoreError, SealUnavailableError
from sealring.held_key import HeldKey, KeyOverwrittenError
from sealring.ring.calls import BACKGROUND


def test_a_token_of_an_unknown_key_causes_one_read_and_unwraps_of_new_keys(
    fleet: Fleet,
) -> None:
    with fleet.reader() as codec:
        second = fleet.key(4_500)
        fleet.publish([fleet.first, second])
        reads, unwraps = fleet.store.reads, fleet.kms.unwraps
        due = ms_until_next(codec)
        for _ in range(5):
            miss(codec)
        assert (fleet.store.reads, fleet.kms.unwraps) == (reads + 1, unwraps + 1)
        assert all(key.held for key in codec.health().keys)
        assert ms_until_next(codec) == due
        for _ in range(10):
            fleet.clock.advance(10)
            miss(codec)
        assert (fleet.store.reads, fleet.kms.unwraps) == (reads + 11, unwraps + 1)


@pytest.mark.parametrize("kind", ["denied", "unavailable", "corrupt"])
def test_tokens_cause_no_more_calls_in_any_state_of_the_kms(fleet: Fleet, kind: str) -> None:
    with fleet.reader() as codec:
        fleet.publish([fleet.first, fleet.key(4_500)])
        fleet.kms.refuse(kind)
        run_pass(codec, reads=True)
        unwraps = fleet.kms.unwraps
        for _ in range(20):
            fleet.clock.advance(10)
            # Work that is due by the clock is not caused by a token.
            codec._keeper._schedule_next(60_000)
            miss(codec)
        assert fleet.kms.unwraps == unwraps
        assert not codec._view.limits.is_stopped


def test_a_token_does_not_reset_a_backoff(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        fleet.break_store()
        run_pass(codec, reads=True)
        due = ms_until_next(codec)
        assert due >= 1_000
        miss(codec)
        assert ms_until_next(codec) == due
        assert codec.health().last_error is not None


def test_a_token_does_not_hurry_a_pass_while_the_kms_fails(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        fleet.publish([fleet.first, fleet.key(4_500)])
        fleet.kms.refuse("unavailable")
        run_pass(codec, reads=True)
        due = ms_until_next(codec)
        miss(codec)
        assert ms_until_next(codec) == due


def test_a_token_of_a_known_key_causes_no_read(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        reads = fleet.store.reads
        codec._view.note_unknown_key(fleet.first.id, codec._view.now())
        assert codec._keeper._miss_pass is None
        codec._view.note_unknown_key("A" * 12, codec._view.now())
        assert codec._keeper._miss_pass is not None
        codec._keeper._miss_pass.result(10)
        assert fleet.store.reads == reads + 1


def test_tokens_cause_no_second_read_while_one_is_waiting(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        gate, reads = threading.Event(), fleet.store.reads
        codec._keeper.turns.background(gate.wait)
        for _ in range(5):
            caused = codec._keeper.refresh_for_token(codec._view.now(), BACKGROUND)
            fleet.clock.advance(10)
        gate.set()
        assert caused is not None
        caused.result(10)
        # The time between two reads counts from the beginning of the first.
        for seconds, count in ((9, 1), (1, 2)):
            fleet.clock.advance(seconds)
            miss(codec)
            assert fleet.store.reads == reads + count


def test_a_key_that_a_token_revealed_is_unwrapped_by_a_pass_soon(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        fleet.publish([fleet.first, fleet.key(4_500)])
        fleet.kms.refuse("unavailable")
        miss(codec)
        assert ms_until_next(codec) <= 10_000


def test_a_token_after_a_freeze_causes_the_work_that_is_due(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        before = codec.health().last_kms_check
        fleet.clock.advance(1_000)
        miss(codec)
        assert codec.health().last_kms_check != before


def test_a_failed_read_is_repeated_by_the_next_pass(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        fleet.break_store()
        with pytest.raises(RingStoreError):
            codec.refresh()
        fleet.store.failure = None
        reads = fleet.store.reads
        run_pass(codec)
        assert fleet.store.reads == reads + 1


def test_no_pass_follows_another_within_a_second_in_any_state(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        second = fleet.key(4_500)

        def check() -> None:
            for _ in range(3):
                run_pass(codec, reads=True)
                assert ms_until_next(codec) >= 1_000
                fleet.clock.advance(2)

        check()
        for kind in ("denied", "disabled", "unavailable", "corrupt"):
            fleet.kms.refuse(kind)
            fleet.clock.advance(900)
            check()
        fleet.publish([fleet.first, second])
        check()
        fleet.break_store()
        check()
        fleet.store.failure = None
        fleet.store.text = "junk"
        check()
        fleet.publish([])
        check()
        fleet.clock.advance(DAY + 5_000)
        check()
        assert not any(key.held for key in codec.health().keys)


def test_refusals_expire(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        fleet.kms.refuse("denied")
        fleet.clock.advance(900)
        run_pass(codec)
        assert codec.health().status == "degraded"
        fleet.kms.failure = None
        fleet.kms.refuse("unavailable")
        fleet.clock.advance(60)
        run_pass(codec)
        assert codec._view.limits.is_refused(codec._view.now())
        fleet.clock.advance(1)
        assert not codec._view.limits.is_refused(codec._view.now())


def test_only_a_refused_check_of_a_held_key_counts_as_a_refusal(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        fleet.clock.advance(DAY)
        with pytest.raises(SealUnavailableError):
            codec.seal(b"x")
        fleet.clock.advance(5_000)
        run_pass(codec, reads=True)
        fleet.publish([fleet.key(-300)])
        fleet.kms.refuse("disabled")
        for _ in range(4):
            fleet.clock.advance(10)
            with pytest.raises(KeyWrapperError):
                codec.refresh()
        assert not codec._view.limits.is_stopped
        fleet.kms.failure = None
        codec.refresh()
        assert codec.health().status == "ok"


def test_a_start_waits_for_members_to_repair_two_lineages(fleet: Fleet) -> None:
    stranger = fleet.key(-200, by=())
    fleet.publish([fleet.first, stranger])
    fleet.store.on_read = lambda: fleet.publish([fleet.first]) if fleet.store.reads > 2 else None
    with fleet.reader() as codec:
        assert codec.health().sealing_key == fleet.first.id


def test_the_next_attempt_of_a_start_unwraps_no_key_a_second_time(
    fleet: Fleet,
) -> None:
    fleet.publish([fleet.first, fleet.key(-200, by=())])
    fleet.store.on_read = lambda: fleet.clock.advance(40)
    # A read may take 40 seconds here.
    policy = RingPolicy(kms_timeout_seconds=60)
    with pytest.raises(RingStoreError, match="two lineages"):
        fleet.reader(policy=policy).start()
    assert fleet.kms.unwraps == 2


def test_an_overwritten_key_neither_certifies_nor_seals(fleet: Fleet) -> None:
    held = HeldKey(bytearray(fleet.first.data_key), "payments")
    before = held.certify("x")
    held.limit_to_ring()
    assert held.certify("x") == before
    with pytest.raises(KeyOverwrittenError):
        held.token_key(bytes(18), None)
    held.destroy()
    with pytest.raises(KeyOverwrittenError):
        held.certify("x")


def test_2_expired_data_keys_are_overwritten_even_if_no_member_publishes(
    fleet: Fleet,
) -> None:
    with fleet.reader() as codec:
        (key,) = codec._view.snapshot.keys
        held = key.held
        assert held is not None
        left = (key.opens_until - fleet.clock.wall) / 1_000
        fleet.break_store()
        fleet.kms.refuse("unavailable")
        fleet.clock.advance(left - 1)
        run_pass(codec)
        held.python_key()
        fleet.clock.advance(1)
        run_pass(codec)
        with pytest.raises(KeyOverwrittenError):
            held.python_key()
        assert held.certify("key", "what is left certifies")


def test_2_a_pass_is_due_once_when_a_data_key_expires(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        (key,) = codec._view.snapshot.keys
        left = (key.opens_until - fleet.clock.wall) / 1_000
        fleet.clock.advance(left - 2)
        run_pass(codec, reads=True)
        assert ms_until_next(codec) == 2_000
        fleet.clock.advance(2)
        run_pass(codec)
        assert ms_until_next(codec) > 2_000


def test_3_a_reader_whose_only_key_has_expired_is_not_ready_and_cannot_unseal(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        (key,) = codec._view.snapshot.keys
        left = (key.opens_until - fleet.clock.wall) / 1_000
        fleet.clock.advance(left - 1)
        run_pass(codec, reads=True)
        assert codec.health().can_unseal
        fleet.clock.advance(1)
        health = codec.health()
        assert (health.status, health.ready, health.can_unseal) == ("failing", False, False)
