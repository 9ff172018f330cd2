"""The codec of the MCP Python SDK, for information only: answers turns as `worker.ts` does."""

import json
import secrets
import sys
import time

from mcp.server.request_state import AESGCMRequestStateCodec

codec = AESGCMRequestStateCodec([secrets.token_bytes(32)])


def take(turn):
    payload = turn["payload"].encode()
    sealed = codec.seal(payload)
    assert codec.unseal(sealed) == payload
    seal = turn["operation"] == "seal"
    call, given = (codec.seal, payload) if seal else (codec.unseal, sealed)
    until = time.perf_counter_ns() + turn["milliseconds"] * 700_000
    count, started = 0, time.perf_counter_ns()
    while time.perf_counter_ns() < until:
        for _ in range(50):
            call(given)
        count += 50
    nanoseconds = (time.perf_counter_ns() - started) / count
    samples = []
    until = time.perf_counter_ns() + turn["milliseconds"] * 300_000
    while time.perf_counter_ns() < until:
        before = time.perf_counter_ns()
        call(given)
        samples.append(time.perf_counter_ns() - before)
    return {
        "nanoseconds": nanoseconds,
        "samples": samples,
        "collecting": 0,
        "tokenLength": len(sealed),
    }


for line in sys.stdin:
    print(json.dumps(take(json.loads(line))), flush=True)
