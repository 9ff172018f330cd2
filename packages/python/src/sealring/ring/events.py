"""The names of keys in logs. A name does not reveal which tokens the key sealed."""

import hashlib

from .. import base64url


def hashed_key_id(key_id: str) -> str:
    """The name of a key in logs: 12 characters of a hash, the same name as in the events of
    TypeScript members."""
    digest = hashlib.sha256(f"sealring/v1/event/{key_id}".encode("ascii")).digest()
    return base64url.encode(digest)[:12]
