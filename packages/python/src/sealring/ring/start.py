"""Brings a reader to where it can work: learns the ring that is there."""

import random
from collections.abc import Callable

from ..clock import Deadline, later
from ..errors import CodecClosedError, KeyWrapperError, RingStoreError
from .calls import Calls
from .learn_anew import LineageError
from .policy import RingPolicy
from .stored_ring import StoredRingDocument
from .sync import RingSync
from .view import RingView
from .wraps import CallOptions

_ABSENT_POLL_SECONDS = 3.0
_BACKOFF_BASE_SECONDS = 0.2
_BACKOFF_CAP_SECONDS = 5.0


def start_ring(
    policy: RingPolicy,
    view: RingView,
    stored: StoredRingDocument,
    sync: RingSync,
    calls: Calls,
    uniform: Callable[[], float] = random.random,
) -> None:
    """Returns when the live keys of the ring are held. A reader never founds a ring: while there is
    none, it waits for a member to do so.

    Raises:
        RingStoreError | KeyWrapperError: a refusal at once; what may pass, after
            `start_timeout_seconds`.
        CodecClosedError: when the codec is closed meanwhile.
    """
    until = later(view.now(), policy.start_timeout_seconds * 1_000)
    failures = 0
    while True:
        try:
            # Nothing that was judged by another time counts.
            view.ring_clock.start_anew(view.now())
            document = stored.read()
            if document is not None:
                known = sync.anew(document, CallOptions(is_foreground=True, until=until))
                if not known.is_dead(view.wall_ms()):
                    sync.begin(known, document)
                    return
                if document.entries:
                    raise RingStoreError("corrupt", "the ring holds no live key that may be used")
            failure: Exception = RingStoreError("unavailable", "there is no ring yet")
            wait = _ABSENT_POLL_SECONDS * (1 + uniform())
        except (KeyWrapperError, RingStoreError) as error:
            may_pass = error.kind in ("throttled", "unavailable")
            if not may_pass and not isinstance(error, LineageError):
                raise
            failure = error
            wait = min(_BACKOFF_CAP_SECONDS, _BACKOFF_BASE_SECONDS * 2**failures) * uniform()
            failures += 1
        _pause(calls, view, until, wait, failure)


def _pause(calls: Calls, view: RingView, until: Deadline, wait: float, failure: Exception) -> None:
    left = until.ms_left(view.now()) / 1_000
    if left <= 0:
        raise failure
    if calls.closing.wait(min(left, wait)):
        raise CodecClosedError
