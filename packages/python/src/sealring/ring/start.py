"""Brings a reader to where it can work: learns the ring that is there."""

import random

from ..clock import backoff, later
from ..errors import CodecClosedError, KeyWrapperError, RingStoreError, may_pass
from .calls import Calls
from .learn_anew import LearnAnew, LineageError
from .sync import RingSync
from .view import RingView
from .wraps import CallOptions

_ABSENT_POLL_SECONDS = 3.0
_BACKOFF_BASE_SECONDS = 0.2
_BACKOFF_CAP_SECONDS = 5.0


def start_ring(view: RingView, calls: Calls, sync: RingSync) -> None:
    """Returns when the live keys of the ring are held. A reader never founds a ring: while there is
    none, it waits for a member to do so. Raises a refusal at once, and what may pass after
    `start_timeout_seconds`; CodecClosedError when the codec is closed meanwhile."""
    until = later(view.now(), view.policy.start_timeout_seconds * 1_000)
    anew = LearnAnew(view, sync.wraps)
    failures = 0
    while True:
        failure: Exception = RingStoreError("unavailable", "there is no ring yet")
        wait = _ABSENT_POLL_SECONDS * (1 + random.random())
        try:
            # Nothing that was judged by another time counts.
            view.ring_clock.start_anew(view.now())
            document = sync.fetch()
            if document:
                known = anew.learn(document, CallOptions(is_foreground=True, until=until))
                sync.begin(known, document)
                return
        except (KeyWrapperError, RingStoreError) as error:
            if not may_pass(error) and not isinstance(error, LineageError):
                raise
            failure = error
            wait = backoff(_BACKOFF_BASE_SECONDS, _BACKOFF_CAP_SECONDS, failures)
            failures += 1
        left = calls.seconds_left(until)
        if left <= 0:
            raise failure
        if calls.closing.wait(min(left, wait)):
            raise CodecClosedError
