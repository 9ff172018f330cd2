"""The key wrappers and ring stores of the Python package, for the conformance kit. Arguments: its kind, what it supports, and
its options in JSON; those of a key wrapper for each role, those of a ring store with `{ring}` for the name of the ring."""

import json
import sys

from adapters import key_wrapper, ring
from sealring_adapter import serve_key_wrapper, serve_ring_store

from sealring import WrappedKey

what, supports, options = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]

if what == "key-wrapper":
    roles = json.loads(options)
    serve_key_wrapper(lambda role: key_wrapper(roles[role]), supports=supports, wrapped_key=WrappedKey)
else:
    serve_ring_store(lambda name: ring(json.loads(options.replace("{ring}", name))), supports=supports)
