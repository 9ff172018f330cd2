"""The codec of the Python package, for the conformance kit. Given the format, the
master key and three files: a ring, the same ring after a rotation, and another ring."""

import sys
import time

from sealring_codec import serve

from sealring import FileRing, KmsCodec, LocalKeyWrapper

EMERGENCY_SECONDS = 661
wire, master_key, path, rotated_path, stranger_path = sys.argv[1:]


class LaterClock:
    """A clock after the activation of the successor."""

    def wall_ms(self):
        return time.time_ns() // 1_000_000 + EMERGENCY_SECONDS * 1_000

    def monotonic_ns(self):
        return time.monotonic_ns()


def create(role):
    paths = {"stranger": stranger_path, "rotated": rotated_path}
    codec = KmsCodec(
        key_wrapper=LocalKeyWrapper(master_key=master_key),
        ring=FileRing(paths.get(role, path)),
        role="reader",
        clock=LaterClock() if role == "rotated" else None,
        format=wire,
    )
    codec.start()
    return codec


serve(create)
