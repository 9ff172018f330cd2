"""The calls to implement."""

from sealring import StoredRing


def find(name: str) -> StoredRing | None:
    """Reads the document stored under a name. None only if the service reports that nothing is
    stored; raise for every other response, and for a missing one."""
    raise NotImplementedError("implement find")


def swap(name: str, document: str, expected: str | None) -> str | None:
    """Stores a document in one atomic step of the service, if `expected` is still the current
    revision; with None, if nothing is stored. Returns the new revision, or None if another writer
    was first."""
    raise NotImplementedError("implement swap")
