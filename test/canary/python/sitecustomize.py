"""Loaded by every Python process of a canary run (PYTHONPATH): keys drawn by the servers of the tests are marked too."""

import os

_MARK = bytes.fromhex(os.environ.get("SEALRING_CANARY", ""))
_urandom = os.urandom


def _marked(size):
    drawn = _urandom(size)
    return _MARK + drawn[len(_MARK) :] if size == 32 else drawn


if _MARK:
    os.urandom = _marked
