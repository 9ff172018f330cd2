"""The file store of the Python package, for the Sealring conformance kit.

    pip install sealring
    npx sealring-conformance ring-store --exec "python ring_store.py"
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

# Makes the package's sealring_adapter.py importable; not needed if a copy is beside this file.
sys.path.append(str(Path(__file__).resolve().parent / "../../templates/python"))

from sealring import FileRing
from sealring_adapter import serve_ring_store

with TemporaryDirectory() as folder:

    def path(ring: str) -> Path:
        return Path(folder, f"{ring}.ring")

    serve_ring_store(
        lambda ring: FileRing(path(ring)),
        name="FileRing (Python)",
        remove=lambda ring: path(ring).unlink(missing_ok=True),
        plant=lambda ring, document: path(ring).write_bytes(document.encode()),
    )
