"""The one clock of a reader."""

import pytest
from ring_maker import Fleet, StillClock, run_pass

from sealring.clock import Moment, SystemClock, moment_of
from sealring.ring.policy import RingPolicy
from sealring.ring.ring_clock import RingClock


class Machine(StillClock):
    """The clock of a machine that may have been suspended, with dates of services."""

    uptime: float | None = None

    def __init__(self) -> None:
        super().__init__()
        self.ring = RingClock(RingPolicy(), self)

    @property
    def judged(self) -> float:
        return self.ring.time_ms(self.moment)

    @property
    def moment(self) -> Moment:
        return moment_of(self)

    @property
    def trouble(self) -> str | None:
        return self.ring.trouble(self.moment)

    def note(self, service: str, ahead_ms: float = 0) -> None:
        self.ring.note(service, self.wall + ahead_ms)  # type: ignore[arg-type]


def test_a_clock_without_dates_is_trusted_while_it_does_not_step() -> None:
    machine = Machine()
    machine.advance(86_400)
    assert (machine.judged, machine.trouble) == (machine.wall, None)
    machine.wall += 300_000
    assert (machine.judged, machine.trouble) == (machine.wall, None)


@pytest.mark.parametrize("step_ms", [302_000, -302_000])
def test_a_step_is_unconfirmed_until_it_is_reversed(step_ms: int) -> None:
    machine = Machine()
    before = machine.wall
    machine.wall += step_ms
    machine.advance(10)
    assert machine.judged == before + 10_000
    assert "stepped by 302 s" in str(machine.trouble)
    machine.wall -= step_ms
    assert (machine.judged, machine.trouble) == (machine.wall, None)


def test_a_date_confirms_or_contradicts_a_step() -> None:
    machine = Machine()
    machine.note("store")
    right = machine.wall
    machine.wall += 3_600_000
    machine.note("kms", -3_600_000)
    assert machine.judged == right
    assert machine.trouble is not None
    machine.note("kms")
    assert (machine.judged, machine.trouble) == (machine.wall, None)


def test_a_time_that_no_date_has_confirmed_can_be_replaced() -> None:
    machine = Machine()
    machine.note("kms", -3_600_000)
    assert "3600 s ahead of the clock of the KMS" in str(machine.trouble)
    machine.wall -= 3_600_000
    assert (machine.judged, machine.trouble) == (machine.wall, None)


def test_the_wrong_date_of_one_service_does_not_matter_when_the_other_agrees() -> None:
    machine = Machine()
    machine.note("store", 3_600_000)
    assert "3600 s behind the clock of the store" in str(machine.trouble)
    machine.note("kms", 306_000)
    assert machine.trouble is None
    assert machine.ring.disputed_by(machine.moment) == "store"
    machine.note("store")
    assert machine.ring.disputed_by(machine.moment) is None
    machine.note("kms", float("nan"))
    machine.note("kms", float("inf"))
    assert machine.trouble is None


def test_without_dates_a_step_that_matches_the_uptime_is_a_suspension() -> None:
    machine = Machine()
    machine.uptime_ms = lambda: machine.uptime  # type: ignore[attr-defined]
    machine.uptime = 50_000
    machine.ring = RingClock(RingPolicy(), machine)
    machine.wall += 3_600_000
    machine.uptime += 3_600_000
    assert (machine.judged, machine.trouble) == (machine.wall, None)
    machine.wall += 3_600_000
    assert machine.trouble is not None


def test_a_clock_that_is_corrected_slowly_is_followed() -> None:
    machine = Machine()
    for _ in range(100):
        machine.advance(60)
        machine.wall += 30
        machine.ring.tick(machine.moment)
    machine.wall += 300_000
    assert (machine.judged, machine.trouble) == (machine.wall, None)


def test_a_ring_clock_without_a_history_trusts_the_clock() -> None:
    machine = Machine()
    machine.wall += 3_600_000
    machine.ring.start_anew(machine.moment)
    assert (machine.judged, machine.trouble) == (machine.wall, None)


def test_the_system_may_report_its_uptime() -> None:
    uptime = SystemClock().uptime_ms()
    assert uptime is None or uptime > 0


def test_a_reader_continues_from_the_last_trusted_time(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        token = codec.seal(b"x")
        fleet.clock.advance(86_400 + 3_800)
        codec.refresh()
        fleet.clock.wall += 1_000_000
        assert codec.unseal(token) == b"x"
        run_pass(codec, reads=True)
        health = codec.health()
        assert health.problems[0].kind == "clock"
        # It expires no key.
        assert len(health.keys) == 1
        fleet.store.date_ms = fleet.clock.wall
        run_pass(codec, reads=True)
        assert codec.health().keys == ()


def test_a_clock_that_is_ahead_of_the_services_expires_no_key(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        fleet.store.date_ms = fleet.clock.wall
        fleet.clock.advance(86_400 + 4_200 + 301)
        codec._view.ring_clock.note("store", fleet.store.date_ms)
        run_pass(codec)
        assert [key.held is None for key in codec._view.snapshot.keys] == [False]
        fleet.store.date_ms = fleet.clock.wall
        run_pass(codec, reads=True)
        assert codec.health().keys == ()


def test_a_service_with_a_wrong_date_is_reported(fleet: Fleet) -> None:
    fleet.store.date_ms = fleet.clock.wall - 3_600_000
    with fleet.reader() as codec:
        codec._view.ring_clock.note("kms", fleet.clock.wall)
        health = codec.health()
        assert (health.status, health.ready) == ("degraded", True)
        assert [problem.kind for problem in health.problems] == ["service-clock"]


def test_a_key_expired_by_a_wrong_clock_seals_and_unseals_once_it_is_corrected(
    fleet: Fleet,
) -> None:
    with fleet.reader() as codec:
        token, right = codec.seal(b"x"), fleet.clock.wall
        # Wrong by more than the life of the key, and confirmed by an equally wrong date.
        fleet.clock.wall += 86_400_000 + 3_960_000
        fleet.store.date_ms = fleet.clock.wall
        run_pass(codec, reads=True)
        run_pass(codec, reads=True)
        assert [key.held for key in codec.health().keys] in ([], [False])
        fleet.clock.wall = fleet.store.date_ms = right
        for _ in range(2):
            fleet.clock.advance(1)
            run_pass(codec, reads=True)
        assert codec.unseal(token) == b"x"
        assert codec.unseal(codec.seal(b"y")) == b"y"
