"""The codec of the MCP Python SDK, for the Sealring conformance kit.

    pip install mcp
    npx sealring-conformance codec --exec "python codec.py"
"""

import secrets
import sys
from pathlib import Path

# Makes the package's sealring_codec.py importable; not needed if a copy is beside this file.
sys.path.append(str(Path(__file__).resolve().parent / "../../templates/python"))

from mcp.server.request_state import AESGCMRequestStateCodec
from sealring_codec import serve

A, B, OTHER = (secrets.token_bytes(32) for _ in range(3))
KEYS = {"self": [A], "peer": [A], "stranger": [OTHER], "rotated": [B, A]}

serve(lambda role: AESGCMRequestStateCodec(KEYS[role]))
