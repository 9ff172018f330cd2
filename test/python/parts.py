"""Key wrappers and ring stores of the Python package that a test drives: one JSON object a line on standard input, one answer a
line, in any order. Bytes are `{"bytes": base64}`."""

import base64
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from sealring import (
    FileRing,
    KeyWrapperError,
    LocalKeyWrapper,
    PostgresRing,
    RedisRing,
    RingConflictError,
    RingStoreError,
    WrappedKey,
)

parts = {}
writing = Lock()


MAKES = {
    "file": lambda path: FileRing(path),
    "redis": lambda **more: RedisRing(**more, call_timeout_seconds=2),
    "postgres": lambda **more: PostgresRing(**more),
    "local": lambda master_key: LocalKeyWrapper(master_key=master_key),
}


def python_value(value):
    if isinstance(value, dict) and set(value) == {"bytes"}:
        return base64.b64decode(value["bytes"])
    return value


def json_value(value):
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": base64.b64encode(value).decode()}
    return value


def record(wrapped):
    return {"provider": wrapped.provider, "keyId": wrapped.key_id, "wrapped": json_value(wrapped.wrapped)}


def wrapped_key(value):
    given = value if isinstance(value, dict) else {}
    return WrappedKey(given.get("provider"), given.get("keyId"), python_value(given.get("wrapped")))


def obey(request):
    op, part = request["op"], parts.get(request["part"])
    if op == "create":
        made = MAKES[request["kind"]](**{name: python_value(value) for name, value in request["options"].items()})
        parts[request["part"]] = made
        supports = getattr(made, "supports", None)
        return {
            "kind": getattr(made, "kind", None),
            "provider": getattr(made, "provider", None),
            "keyId": getattr(made, "key_id", None),
            "supports": None if supports is None else supports._asdict(),
        }
    dates = []
    if op == "read":
        stored = part.read(on_service_date=dates.append)
        return {"stored": None if stored is None else stored._asdict(), "dates": dates}
    if op == "write":
        return {"revision": part.write(request.get("document"), expected=request.get("expected"))}
    if op == "wrap":
        return record(part.wrap(python_value(request["dataKey"]), request.get("context")))
    if op == "unwrap":
        return json_value(part.unwrap(wrapped_key(request["wrapped"]), request.get("context")))
    raise ValueError(op)


def answer(request):
    try:
        told = {"value": obey(request)}
    except (RingStoreError, KeyWrapperError) as error:
        told = {"error": type(error).__name__, "kind": error.kind, "revision": getattr(error, "revision", None)}
        told["operation"], told["provider"] = getattr(error, "operation", None), getattr(error, "provider", None)
    except RingConflictError:
        told = {"error": "RingConflictError"}
    except Exception as error:
        told = {"error": type(error).__name__}
    with writing:
        print(json.dumps({"id": request["id"], **told}), flush=True)


with ThreadPoolExecutor(48) as pool:
    for line in sys.stdin:
        pool.submit(answer, json.loads(line))
