"""The one JSON spelling that is authenticated and digested."""

import json


def canonical_json(value: object) -> str:
    """ASCII, no white space, members ordered by code point."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
