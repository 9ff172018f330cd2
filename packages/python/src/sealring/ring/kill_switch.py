"""A KMS that refuses says that this fleet may no longer use the key. Permissions that propagate
flap for seconds, so three refusals in a row (two where the key itself is disabled), each at least
8 s after the one before and all within 60 s, stop sealing."""

from typing import NamedTuple

from ..errors import KeyWrapperErrorKind

_LEAST_SPACING_MS = 8_000
_WINDOW_MS = 60_000
_REFUSALS_TO_STOP = 3
_DISABLED_TO_STOP = 2

REFUSAL_PROBE_MS = 10_000
"""How long to wait before asking again while refusals are being counted."""


class Refusal(NamedTuple):
    at_ms: float
    """Of a clock that never steps back."""
    is_disabled: bool


class KillSwitch(NamedTuple):
    """Counts refusals. Immutable; every answer makes a new one."""

    refusals: tuple[Refusal, ...] = ()
    tripped_at_ms: float | None = None
    """Since when sealing is stopped."""

    def after_refusal(self, kind: KeyWrapperErrorKind, now_ms: float) -> "KillSwitch":
        """The switch after an answer of this kind; only refusals count."""
        if not is_refusal(kind) or self.tripped_at_ms is not None:
            return self
        recent = self.recent(now_ms)
        if recent and now_ms - recent[-1].at_ms < _LEAST_SPACING_MS:
            return KillSwitch(recent)
        refusals = (*recent, Refusal(now_ms, kind == "disabled"))
        disabled = sum(one.is_disabled for one in refusals)
        is_tripped = len(refusals) >= _REFUSALS_TO_STOP or disabled >= _DISABLED_TO_STOP
        return KillSwitch(refusals, now_ms if is_tripped else None)

    def recent(self, now_ms: float) -> tuple[Refusal, ...]:
        """The refusals that count: after a minute without another, one was a stray."""
        return tuple(one for one in self.refusals if now_ms - one.at_ms <= _WINDOW_MS)


ARMED = KillSwitch()


def is_refusal(kind: KeyWrapperErrorKind) -> bool:
    """Whether an answer is about the right to use the key, not about availability."""
    return kind in ("denied", "not-found", "disabled")
