"""The codec of the MCP Python SDK, for the Sealring conformance kit.

    pip install mcp
    npx sealring-conformance codec --exec "python codec.py"

Needs sealring_codec.py beside it, or in PYTHONPATH.
"""

import secrets

from mcp.server.request_state import AESGCMRequestStateCodec
from sealring_codec import serve

A, B, OTHER = (secrets.token_bytes(32) for _ in range(3))
KEYS = {"self": [A], "peer": [A], "stranger": [OTHER], "rotated": [B, A]}

serve(lambda role: AESGCMRequestStateCodec(KEYS[role]))
