"""The calls to implement."""

from sealring import StoredRing


def find(name: str) -> StoredRing | None:
    """Reads what is stored under a name. None only if the service answered that nothing is stored:
    raise for every other answer, and for none."""
    raise NotImplementedError("implement find")


def swap(name: str, document: str, expected: str | None) -> str | None:
    """Stores a document in one atomic step of the service, if `expected` is still the current
    revision; with None, if nothing is stored. Returns the new revision, or None if another writer
    was first."""
    raise NotImplementedError("implement swap")
