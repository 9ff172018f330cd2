"""Lets the Sealring conformance kit check a key wrapper or a ring store that is written in Python.

A key wrapper has `provider`, `key_id`, `supports` (with `context`, `authenticated` and perhaps
`key_versions`) and these methods (the last five are optional):

    wrap(data_key, context, *, on_service_date)      -> WrappedKey
    unwrap(wrapped_key, context, *, on_service_date) -> bytes
    generate(context, *, on_service_date)            -> (bytes, WrappedKey)
    sign(entry) -> bytes
    verify(entry, signature) -> bool
    owns(wrapped_key) -> bool
    close()

It fails by raising an exception whose class, or a base class of it, is called KeyWrapperError,
with a `kind` and, optionally, a `provider` and an `operation`.

A ring store has `kind`, optionally `location`, and these methods (the last two are optional):

    read(*, on_service_date) -> None, or an object with a `document` and a `revision`
    write(document, *, expected, on_service_date) -> the new revision
    watch(changed) -> a function that ends it
    close()

It fails by raising an exception called RingConflictError, or one called RingStoreError with a `kind`
and optionally a `revision`. Wrong arguments are a TypeError or a ValueError.

Each call runs in a separate thread. A call that the kit aborts is answered at once, as
unavailable, while its thread continues until the method ends.
"""

import base64
import json
import sys
import threading
from typing import NamedTuple


class WrappedKey(NamedTuple):
    """A wrapped data key. Any class with these members can replace it."""

    provider: str
    key_id: str
    wrapped: bytes
    signature: bytes | None = None


def serve_key_wrapper(create, *, supports=None, name=None, wrapped_key=WrappedKey, **control):
    """Serves the key wrappers that `create` returns for each role:

        "self"         on KMS key A: another process of your fleet, each time
        "other"        on KMS key B of the same service
        "unreachable"  on KMS key A, with an unreachable service

    Without a service, pass `supports={"remote": False}`; the kit then omits "unreachable".
    `control` are functions named `disable`, `enable`, `deny`, `allow` and `rotate`, which change
    KMS key A. `wrapped_key` creates the argument of `unwrap`.
    """
    _Program(
        lambda request: _key_wrapper_facts(create(request["role"])),
        {"name": name, "supports": supports, "can": list(control)},
        _key_wrapper_calls(wrapped_key),
        {op: lambda request, function=function: function() for op, function in control.items()},
    ).run()


def serve_ring_store(
    create, *, supports=None, name=None, remove=None, plant=None, break_connection=None
):
    """Serves the ring stores that `create` returns for each ring name.

    `remove(ring)` and `plant(ring, document)` change the stored document without a store;
    `break_connection()` makes the backend unreachable and returns a function that restores it.
    """
    mend = []
    ops = {
        "remove": remove and (lambda request: remove(request["ring"])),
        "plant": plant and (lambda request: plant(request["ring"], request.get("document", ""))),
        "break": break_connection and (lambda _: mend.append(break_connection())),
    }
    ops = {op: function for op, function in ops.items() if function}
    _Program(
        lambda request: _ring_store_facts(create(request["ring"])),
        {"name": name, "supports": supports, "can": list(ops)},
        _RING_STORE_CALLS,
        {**ops, "mend": lambda _: mend.pop()()},
    ).run()


def _methods(made, names):
    return [name for name in names if callable(getattr(made, name, None))]


def _key_wrapper_facts(made):
    facts = {
        "provider": made.provider,
        "keyId": made.key_id,
        "supports": {
            "context": made.supports.context,
            "authenticated": made.supports.authenticated,
            "keyVersions": getattr(made.supports, "key_versions", None),
        },
        "has": _methods(made, ("generate", "sign", "verify", "owns", "close")),
    }
    return made, {"keyWrapper": facts}


def _ring_store_facts(made):
    facts = {
        "kind": made.kind,
        "location": getattr(made, "location", None),
        "has": _methods(made, ("watch", "close")),
    }
    return made, {"store": facts}


def _text(data):
    return base64.b64encode(data).decode()


def _bytes(text):
    return base64.b64decode(text, validate=True)


def _record(wrapped):
    signature = getattr(wrapped, "signature", None)
    return {
        "provider": wrapped.provider,
        "keyId": wrapped.key_id,
        "wrapped": _text(wrapped.wrapped),
        "signature": None if signature is None else _text(signature),
    }


def _key_wrapper_calls(wrapped_key):
    def given(request):
        record = request["wrapped"]
        parts = [record["provider"], record["keyId"], _bytes(record["wrapped"])]
        if record.get("signature") is not None:
            parts.append(_bytes(record["signature"]))
        return wrapped_key(*parts)

    def wrap(made, request, dated):
        data_key = bytearray(_bytes(request["dataKey"]))
        return {"wrapped": _record(made.wrap(data_key, request["context"], **dated))}

    def unwrap(made, request, dated):
        return {"dataKey": _text(made.unwrap(given(request), request["context"], **dated))}

    def generate(made, request, dated):
        data_key, wrapped = made.generate(request["context"], **dated)
        return {"generated": {"dataKey": _text(data_key), "wrapped": _record(wrapped)}}

    def sign(made, request, _):
        return {"signature": _text(made.sign(_bytes(request["entry"])))}

    def verify(made, request, _):
        return {"verified": made.verify(_bytes(request["entry"]), _bytes(request["signature"]))}

    def owns(made, request, _):
        return {"owned": made.owns(given(request))}

    calls = (wrap, unwrap, generate, sign, verify, owns)
    return {call.__name__: call for call in calls}


def _read(store, _, dated):
    stored = store.read(**dated)
    if stored is None:
        return {"absent": True}
    return {"stored": {"document": stored.document, "revision": stored.revision}}


def _write(store, request, dated):
    return {"revision": store.write(request["document"], expected=request["expected"], **dated)}


_RING_STORE_CALLS = {"read": _read, "write": _write}


def _failure(error):
    names = [base.__name__ for base in type(error).__mro__]
    told = {"message": str(error)}
    if "RingConflictError" in names:
        told["kind"] = "conflict"
    elif "KeyWrapperError" in names or "RingStoreError" in names:
        members = ("kind", "provider", "operation", "revision")
        told.update({name: getattr(error, name, None) for name in members})
    elif isinstance(error, (TypeError, ValueError)):
        told["kind"] = "argument"
    else:
        return {"error": f"{names[0]}: {error}"}
    return {"failure": told}


class _Program:
    """Reads requests from standard input, and answers each of them once, in any order."""

    def __init__(self, create, description, calls, ops):
        self._create = create
        self._calls = calls
        self._ops = {"describe": lambda _: {"target": description}, **ops}
        self._answers = sys.stdout.buffer
        self._lock = threading.Lock()
        self._open = {}
        self._made = {}
        self._watchers = {}

    def run(self):
        sys.stdout = sys.stderr  # Output of the adapter must not mix with the answers.
        for line in sys.stdin.buffer:
            request = json.loads(line)
            if "abort" in request:
                self._abort(request["abort"])
                continue
            with self._lock:
                self._open[request["id"]] = request
            if request.get("aborted"):
                self._abort(request["id"])
            else:
                threading.Thread(target=self._obey, args=(request,), daemon=True).start()

    def _abort(self, call):
        with self._lock:
            request = self._open.get(call, {})
        told = {"kind": "unavailable", "message": "aborted", "operation": request.get("op")}
        told["provider"] = getattr(self._made.get(request.get("instance")), "provider", None)
        self._answer(call, {"failure": told})

    def _obey(self, request):
        dates = []
        try:
            answer = self._result(request, {"on_service_date": dates.append}) or {}
        except Exception as error:
            answer = _failure(error)
        self._answer(request["id"], {**answer, "dates": dates})

    def _result(self, request, dated):
        op = request["op"]
        if op in self._ops:
            answer = self._ops[op](request)
            return answer if op == "describe" else None
        if op == "create":
            made, answer = self._create(request)
            self._made[request["instance"]] = made
            return answer
        made = self._made[request["instance"]]
        if op in self._calls:
            return self._calls[op](made, request, dated)
        if op == "watch":
            watcher = request["watcher"]
            self._watchers[watcher] = made.watch(lambda: self._say({"changed": watcher}))
        elif op == "unwatch":
            self._watchers[request["watcher"]]()
        elif op == "close":
            made.close()
        else:
            raise RuntimeError(f"unknown op {op}")
        return None

    def _answer(self, request_id, answer):
        with self._lock:
            if request_id not in self._open:
                return  # The request was aborted or answered before.
            del self._open[request_id]
            self._write({"id": request_id, **answer})

    def _say(self, notice):
        with self._lock:
            self._write(notice)

    def _write(self, message):
        self._answers.write(json.dumps(message).encode() + b"\n")
        self._answers.flush()
