"""How long a reader continues without KMS and store, and when it stops."""

import time

import pytest
from ring_maker import DAY, Fleet, ms_until_next, run_pass

from sealring import InvalidRequestState, SealUnavailableError
from sealring.clock import Moment
from sealring.ring.limits import Limits, refusal_window_ms
from sealring.ring.policy import RingPolicy


def at(seconds: float) -> Moment:
    return Moment(round(seconds * 1_000), round(seconds * 1e9))


def limits_at_0() -> Limits:
    limits = Limits(RingPolicy())
    limits.proved(at(0))
    limits.last_read = at(0)
    limits.last_complete = at(0)
    return limits


def test_f10_sealing_ends_without_a_kms_check_and_unsealing_a_token_life_later() -> None:
    limits = limits_at_0()
    limits.last_read = at(3_599)
    assert limits.seal_block(at(3_599)) is None
    assert limits.seal_block(at(3_600)) == "KMS check too old"
    assert limits.may_open(at(3_600 + 3_600 + 599))
    assert not limits.may_open(at(3_600 + 3_600 + 600))


def test_sealing_ends_without_a_read_and_unsealing_a_token_life_later() -> None:
    limits = limits_at_0()
    for hours in range(1, 8):
        limits.proved(at(hours * 3_600))
    assert limits.seal_block(at(21_599)) is None
    assert limits.seal_block(at(21_600)) == "ring read too old"
    assert limits.may_open(at(21_600 + 4_199))
    assert not limits.may_open(at(21_600 + 4_200))


def test_f13_the_larger_age_by_either_clock_counts() -> None:
    limits = limits_at_0()
    suspended = Moment(3_600_000, 10)
    assert limits.seal_block(suspended) == "KMS check too old"
    stepped_back = Moment(-5_000, 3_600 * 10**9)
    assert limits.seal_block(stepped_back) == "KMS check too old"


def test_not_ready_when_others_may_seal_with_keys_that_it_does_not_know() -> None:
    limits = limits_at_0()
    assert limits.is_current(at(4_200))
    assert not limits.is_current(at(4_201))


def test_a_reader_that_has_not_read_for_that_long_seals_but_is_not_ready(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        fleet.break_store()
        for ready in (True, False):
            for _ in range(3):
                fleet.clock.advance(701 if ready else 700)
                run_pass(codec)
            health = codec.health()
            assert (health.can_seal, health.ready) == (True, ready)


def test_f10_three_refusals_stop_sealing_then_unsealing_until_a_check_passes() -> None:
    limits = limits_at_0()
    for seconds in (10, 20):
        limits.failed("denied", at(seconds))
        assert limits.seal_block(at(seconds)) is None
    limits.failed("not-found", at(30))
    assert limits.seal_block(at(30)) == "key refused by the kms"
    limits.failed("denied", at(45))
    assert limits.may_open(at(30 + 599))
    assert not limits.may_open(at(30 + 600))
    limits.proved(at(700))
    assert limits.seal_block(at(700)) is None
    assert limits.may_open(at(700))


def test_a_machine_that_was_suspended_after_a_stop_unseals_no_longer_than_another_one() -> None:
    limits = limits_at_0()
    for seconds in (10, 20, 30):
        limits.failed("denied", at(seconds))
    assert limits.may_open(Moment(629_999, 30 * 10**9))
    assert not limits.may_open(Moment(630_000, 30 * 10**9))


@pytest.mark.parametrize(("timeout", "seconds"), [(0.1, 60), (5, 60), (10, 80), (30, 200)])
def test_slow_refusals_count_together(timeout: float, seconds: float) -> None:
    policy = RingPolicy(kms_timeout_seconds=timeout)
    assert refusal_window_ms(policy) == seconds * 1_000
    limits = Limits(policy)
    for moment in (0, seconds / 2, seconds):
        assert not limits.is_stopped
        limits.failed("denied", at(moment))
    assert limits.is_stopped


@pytest.mark.parametrize(
    ("answers", "is_stopped"),
    [
        ([(0, "disabled"), (10, "disabled")], True),
        ([(0, "denied"), (10, "denied"), (20, "denied")], True),
        ([(0, "denied"), (10, "denied")], False),
        ([(0, "denied"), (4, "denied"), (7, "denied"), (9, "denied")], False),
        ([(0, "denied"), (40, "denied"), (80, "denied")], False),
        ([(0, "unavailable"), (10, "throttled"), (20, "corrupt"), (30, "unavailable")], False),
    ],
)
def test_only_enough_refusals_stop_sealing(
    answers: list[tuple[float, str]], is_stopped: bool
) -> None:
    limits = limits_at_0()
    for seconds, kind in answers:
        limits.failed(kind, at(seconds))  # type: ignore[arg-type]
    assert limits.is_stopped is is_stopped


def test_f10_a_disabled_key_stops_a_running_reader(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        token = codec.seal(b"x")
        fleet.kms.refuse("disabled")
        fleet.clock.advance(900)
        run_pass(codec)
        assert codec.health().status == "degraded"
        # The KMS is called again soon, but not before a refusal counts.
        assert ms_until_next(codec) == 10_000
        codec.seal(b"x")
        fleet.clock.advance(10)
        run_pass(codec)
        with pytest.raises(SealUnavailableError) as caught:
            codec.seal(b"x")
        assert caught.value.reason == "key refused by the kms"
        assert codec.unseal(token) == b"x"
        assert codec.health().status == "failing"
        fleet.clock.advance(600)
        with pytest.raises(InvalidRequestState):
            codec.unseal(token)
        fleet.kms.failure = None
        codec.refresh()
        assert codec.unseal(codec.seal(b"y")) == b"y"
        assert codec.unseal(token) == b"x"


def test_only_a_verified_unwrap_extends_sealing(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        fleet.kms.refuse("unavailable")
        for _ in range(12):
            assert codec.unseal(codec.seal(b"x")) == b"x"
            fleet.clock.advance(300)
            run_pass(codec)
        with pytest.raises(SealUnavailableError) as caught:
            codec.seal(b"x")
        assert caught.value.reason == "KMS check too old"
        fleet.kms.failure = None
        codec.refresh()
        codec.seal(b"x")


def test_an_unreachable_store_does_not_prevent_kms_checks(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        fleet.break_store()
        before = codec.health().last_kms_check
        fleet.clock.advance(900)
        run_pass(codec)
        assert codec.health().last_kms_check != before
        assert codec.health().status == "degraded"


def test_f28_the_first_call_after_a_suspension_requests_a_read_and_a_check(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        reads, before = fleet.store.reads, codec.health().last_kms_check
        # Only the wall clock advanced.
        fleet.clock.wall += 3_000_000
        codec.seal(b"x")
        deadline = time.monotonic() + 10
        while fleet.store.reads == reads or codec.health().last_kms_check == before:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_f13_a_clock_that_steps_back_does_not_resume_sealing(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        fleet.clock.advance(DAY - 300 + 400)
        codec.refresh()
        for back_ms in (0, 1_000_000):
            fleet.clock.wall -= back_ms
            with pytest.raises(SealUnavailableError) as caught:
                codec.seal(b"x")
            assert caught.value.reason == "no active key"


def test_f13_no_key_older_than_the_last_sealing_key_seals(fleet: Fleet) -> None:
    second = fleet.key(600)
    fleet.publish([fleet.first, second])
    with fleet.reader() as codec:
        assert codec.seal(b"x")[4:16] == fleet.first.id
        fleet.clock.advance(600)
        assert codec.seal(b"x")[4:16] == second.id
        fleet.clock.wall -= 250_000
        assert codec.seal(b"x")[4:16] == second.id
        fleet.clock.wall -= 10_000_000
        assert codec.seal(b"x")[4:16] == second.id


def test_an_older_key_does_not_seal_again_when_the_newer_one_has_expired(fleet: Fleet) -> None:
    long, short = fleet.key(-300, seals=3 * DAY), fleet.key(600, seals=3_600)
    fleet.publish([long, short])
    with fleet.reader() as codec:
        fleet.clock.advance(600)
        assert codec.seal(b"x")[4:16] == short.id
        fleet.clock.advance(3_600)
        codec.refresh()
        with pytest.raises(SealUnavailableError):
            codec.seal(b"x")


def test_f13_a_clock_that_steps_back_does_not_revive_an_expired_key(fleet: Fleet) -> None:
    second = fleet.key(4_500, seals=3 * DAY)
    fleet.publish([fleet.first, second])
    with fleet.reader() as codec:
        token = codec.seal(b"x")
        fleet.clock.advance(DAY + 4_200 + 600)
        codec.refresh()
        with pytest.raises(InvalidRequestState):
            codec.unseal(token)
        fleet.clock.wall -= 3_600_000
        with pytest.raises(InvalidRequestState):
            codec.unseal(token)


def test_a_verify_only_key_unseals_until_it_expires(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        token = codec.seal(b"x")
        # The ring is read, and KMS checks pass, all the time.
        fleet.clock.advance(DAY - 300)
        codec.refresh()
        with pytest.raises(SealUnavailableError) as caught:
            codec.seal(b"x")
        assert caught.value.reason == "no active key"
        assert codec.unseal(token) == b"x"
        fleet.clock.advance(4_199)
        assert codec.unseal(token) == b"x"
        fleet.clock.advance(1)
        with pytest.raises(InvalidRequestState):
            codec.unseal(token)


def test_f13_a_wrong_clock_is_reported(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        fleet.store.date_ms = fleet.clock.wall - 306_000
        codec.refresh()
        assert codec.health().status == "ok"
        fleet.store.date_ms = fleet.clock.wall - 307_000
        codec.refresh()
        health = codec.health()
        assert (health.status, health.ready) == ("failing", False)
        assert health.last_error is not None
        assert health.last_error[:2] == ("clock", "unconfirmed")
        assert codec.unseal(codec.seal(b"x")) == b"x"


@pytest.mark.parametrize(
    "options",
    [
        {"seal_outage_seconds": 899 * 3},
        {"backoff_cap_seconds": 3_600.1},
        {"seal_outage_seconds": 30, "kms_check_every_seconds": 10},
        {"store_outage_seconds": 1_199},
        {"store_outage_seconds": 86_401},
        {"propagation_seconds": 4_499},
        {"propagation_seconds": 30_000},
        {"clock_skew_seconds": float("nan")},
        {"refresh_every_seconds": 0},
        {"kms_timeout_seconds": 301},
        {"token_lifetime_seconds": 86_400 * 60},
    ],
)
def test_times_that_contradict_each_other_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="RingPolicy: [a-z_]+_seconds"):
        RingPolicy(**options)


def test_a_wrong_or_unknown_time_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        RingPolicy(refresh_seconds=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        RingPolicy(clock_skew_seconds="5")  # type: ignore[arg-type]
    assert RingPolicy().propagation == 4_500
