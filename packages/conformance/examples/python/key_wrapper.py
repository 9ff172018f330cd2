"""The local key wrapper of the Python package, for the Sealring conformance kit.

    pip install sealring
    npx sealring-conformance key-wrapper --exec "python key_wrapper.py"
"""

import secrets
import sys
from pathlib import Path

# Makes the package's sealring_adapter.py importable; not needed if a copy is beside this file.
sys.path.append(str(Path(__file__).resolve().parent / "../../templates/python"))

from sealring import LocalKeyWrapper, WrappedKey
from sealring_adapter import serve_key_wrapper

KEYS = {"self": secrets.token_bytes(32), "other": secrets.token_bytes(32)}

serve_key_wrapper(
    lambda role: LocalKeyWrapper(master_key=KEYS[role]),
    name="LocalKeyWrapper (Python)",
    supports={"remote": False, "versions": False},
    wrapped_key=WrappedKey,
)
