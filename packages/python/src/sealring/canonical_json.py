"""The canonical form of JSON, which is authenticated and hashed."""

import json


def canonical_json(value: object, *, sort_keys: bool = True) -> str:
    """ASCII, no white space, members ordered by code point, or as inserted without `sort_keys`."""
    return json.dumps(value, sort_keys=sort_keys, separators=(",", ":"))
