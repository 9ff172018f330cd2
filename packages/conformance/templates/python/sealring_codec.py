"""Lets the Sealring conformance kit check a codec that is written in Python.

Pass `serve` a function that creates a codec for a role:

    "self"      a codec with keys A
    "peer"      another one with keys A: another process of your fleet
    "stranger"  one with other keys: another service
    "rotated"   one that seals with keys B and still unseals what keys A sealed

A codec has `seal(payload: bytes) -> str` and `unseal(token: str) -> bytes`. It
refuses a token by raising an exception whose class, or a base class of it, is
called InvalidRequestState; the exception's text is the reason.
"""

import base64
import json
import sys


def serve(create):
    """Answers the requests on standard input, one per line, until it ends."""
    answers = sys.stdout.buffer
    sys.stdout = sys.stderr  # Output of the codec must not mix with the answers.
    codecs = {}
    for line in sys.stdin.buffer:
        answers.write(json.dumps(_answer(create, codecs, line)).encode() + b"\n")
        answers.flush()


def _answer(create, codecs, line):
    request_id = None
    try:
        request = json.loads(line)
        request_id = request["id"]
        return {"id": request_id, **_obey(create, codecs, request)}
    except Exception as error:
        names = [base.__name__ for base in type(error).__mro__]
        if "InvalidRequestState" in names:
            return {"id": request_id, "invalid": str(error)}
        return {"id": request_id, "error": f"{names[0]}: {error}"}


def _obey(create, codecs, request):
    op = request["op"]
    if op == "create":
        codecs[request["instance"]] = create(request["role"])
        return {}
    codec = codecs[request["instance"]]
    if op == "seal":
        token = codec.seal(base64.b64decode(request["payload"], validate=True))
        if not isinstance(token, str):
            raise TypeError(f"seal returned {type(token).__name__}, not str")
        return {"token": token}
    if op == "unseal":
        payload = codec.unseal(request["token"])
        if not isinstance(payload, (bytes, bytearray, memoryview)):
            raise TypeError(f"unseal returned {type(payload).__name__}, not bytes")
        return {"payload": base64.b64encode(payload).decode()}
    raise ValueError("unknown op")
