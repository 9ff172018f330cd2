"""The canonical form of JSON, which is authenticated and hashed."""

import json


def canonical_json(value: object, *, sort_keys: bool = True) -> str:
    """ASCII without white space; members in code point order or, with `sort_keys=False`, in
    insertion order."""
    return json.dumps(value, sort_keys=sort_keys, separators=(",", ":"))
