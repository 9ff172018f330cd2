"""A Python process that a test drives: one JSON object per line on standard input, one answer per line."""

import base64
import json
import sys
import time

from adapters import key_wrapper, ring

from sealring import KmsCodec, RingPolicy


class SteppedClock:
    """The clocks of the machine, plus the number of seconds that the test sets."""

    def __init__(self):
        self.ahead = 0

    def wall_ms(self):
        return time.time_ns() // 1_000_000 + self.ahead * 1_000

    def monotonic_ns(self):
        return time.monotonic_ns() + self.ahead * 1_000_000_000


clock = SteppedClock()


def codec_of(options):
    return KmsCodec(
        key_wrapper=key_wrapper(options["keyWrapper"]),
        ring=ring(options["ring"]),
        ring_name=options["ringName"],
        role=options.get("role", "reader"),
        create=options.get("create", "if-absent"),
        format=options.get("format", "sealring"),
        accept=["sealring", "python"],
        policy=RingPolicy(**options.get("policy", {})),
        clock=clock,
    )


def obey(codec, request):
    op = request["op"]
    of = codec if request.get("purpose") is None else codec.for_purpose(request["purpose"])
    if op == "seal":
        return of.seal(base64.b64decode(request["payload"]))
    if op == "unseal":
        return base64.b64encode(of.unseal(request["token"])).decode()
    if op == "step":
        clock.ahead += request["seconds"]
        return None
    if op == "health":
        health = codec.health()
        keys = {key.id: key.state for key in health.keys}
        error = health.last_error
        return {
            "status": health.status,
            "sealingKey": health.sealing_key,
            "keys": keys,
            "lastError": None if error is None else f"{error.source} {error.kind}",
        }
    if op == "rotate":
        return codec.rotate(emergency=request["emergency"])
    if op == "revoke":
        return codec.revoke(request["keyId"])
    if op == "prepare":
        return codec.prepare(request["token"])
    if op not in ("start", "refresh", "close"):
        raise ValueError(op)
    return getattr(codec, op)()


def main():
    codec = codec_of(json.loads(sys.argv[1]))
    for line in sys.stdin:
        try:
            answer = {"value": obey(codec, json.loads(line))}
        except Exception as error:
            kind = getattr(error, "kind", getattr(error, "reason", str(error)))
            answer = {"error": type(error).__name__, "kind": kind}
        print(json.dumps(answer), flush=True)


main()
