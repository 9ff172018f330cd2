"""How long this process may continue without the KMS and the store."""

from ..clock import Moment, age_ms
from ..errors import KeyWrapperErrorKind, SealUnavailableReason
from .policy import RingPolicy

_MS = 1_000
# A refusal by the KMS means that this fleet may no longer use the key. While a change of
# permissions propagates, answers alternate for some seconds, so three refusals in a row (two if the
# key itself is disabled), each at least 8 s after the one before and all within a window, stop
# sealing. The window is 60 s, or as long as three slow refusals take: between two of them are a
# wait of 10 s and a pass of up to three calls.
LEAST_SPACING_MS = 8_000
_LEAST_WINDOW_MS = 60_000
_CALLS_OF_A_PASS = 3
_REFUSALS_TO_STOP = 3
_DISABLED_TO_STOP = 2

REFUSAL_PROBE_MS = 10_000
"""How long to wait before the next call while refusals are being counted."""


def is_refusal(kind: KeyWrapperErrorKind) -> bool:
    """Whether an answer is about the permission to use the key, not about availability."""
    return kind in ("denied", "not-found", "disabled")


def refusal_window_ms(policy: RingPolicy) -> float:
    """The time within which refusals count together, in milliseconds."""
    between_ms = REFUSAL_PROBE_MS + _CALLS_OF_A_PASS * policy.kms_timeout_seconds * _MS
    return max(_LEAST_WINDOW_MS, (_REFUSALS_TO_STOP - 1) * between_ms)


class Limits:
    """Only an unwrap that returned the right bytes shows that the key may still be used, and only a
    successful read of the ring shows revocations. One thread writes the fields; a call of `seal` or
    `unseal` reads each field once."""

    def __init__(self, policy: RingPolicy) -> None:
        self._policy = policy
        # For each refusal: its time by the clock that never steps, and whether the key was
        # disabled. The tuple is always replaced as a whole.
        self._refusals: tuple[tuple[float, bool], ...] = ()
        # When the refusals stopped sealing.
        self._stopped: Moment | None = None
        self.last_kms_check: Moment | None = None
        self.last_read: Moment | None = None
        """When the ring was last read and had a known key."""
        self.last_complete: Moment | None = None
        """When a refresh last succeeded completely: the ring was read, and every live key was
        held."""

    def proved(self, now: Moment) -> None:
        """The KMS unwrapped the right bytes, so sealing and unsealing may continue."""
        self._refusals, self._stopped = (), None
        self.last_kms_check = now

    def failed(self, kind: KeyWrapperErrorKind, now: Moment) -> None:
        """The KMS answered the check of a held key with an error."""
        if not is_refusal(kind) or self.is_stopped:
            return
        recent, now_ms = self._recent(now), now.steady_ms
        if not recent or now_ms - recent[-1][0] >= LEAST_SPACING_MS:
            recent = (*recent, (now_ms, kind == "disabled"))
        self._refusals = recent
        disabled = sum(is_disabled for _, is_disabled in recent)
        if len(recent) >= _REFUSALS_TO_STOP or disabled >= _DISABLED_TO_STOP:
            self._stopped = now

    def is_refused(self, now: Moment) -> bool:
        """Whether the KMS has refused recently or sealing is stopped. While refusals are being
        counted, the KMS must be called again soon."""
        return self.is_stopped or bool(self._recent(now))

    @property
    def is_stopped(self) -> bool:
        return self._stopped is not None

    def seal_block(self, now: Moment) -> SealUnavailableReason | None:
        """Why sealing is not allowed; None when it is."""
        if self.is_stopped:
            return "key refused by the kms"
        if _is_over(self.last_kms_check, self._policy.seal_outage_seconds, now):
            return "KMS check too old"
        if _is_over(self.last_read, self._policy.store_outage_seconds, now):
            return "ring read too old"
        return None

    def may_open(self, now: Moment) -> bool:
        policy, stopped = self._policy, self._stopped
        after = policy.clock_skew_seconds + policy.refresh_every_seconds
        return not (
            _is_over(self.last_kms_check, policy.seal_outage_seconds + policy.opening_seconds, now)
            or _is_over(self.last_read, policy.store_outage_seconds + policy.opening_seconds, now)
            # A machine that was suspended has used up the time, although its monotonic clock stood
            # still.
            or (stopped is not None and age_ms(stopped, now) >= after * _MS)
        )

    def seal_until_ms(self) -> float | None:
        """The time by the wall clock until which sealing continues if nothing succeeds again."""
        if self.last_kms_check is None or self.last_read is None:
            return None
        by_proof = self.last_kms_check.wall_ms + self._policy.seal_outage_seconds * _MS
        return min(by_proof, self.last_read.wall_ms + self._policy.store_outage_seconds * _MS)

    def is_current(self, now: Moment) -> bool:
        """False if others may already seal with keys that this reader has not read."""
        longest = (self._policy.propagation - self._policy.clock_skew_seconds) * _MS
        return self.last_complete is not None and age_ms(self.last_complete, now) <= longest

    def _recent(self, now: Moment) -> tuple[tuple[float, bool], ...]:
        """The refusals that count: those within the window."""
        window_ms = refusal_window_ms(self._policy)
        return tuple(one for one in self._refusals if now.steady_ms - one[0] <= window_ms)


def _is_over(since: Moment | None, seconds: float, now: Moment) -> bool:
    return since is None or age_ms(since, now) >= seconds * _MS
