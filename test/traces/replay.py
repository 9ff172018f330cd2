"""Replays traces of TypeScript members on a Python member: prints a JSON object for each step with another result, and at the end the number of steps."""

import hashlib
import json
import logging
import math
import sys
import threading
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime, timezone
from re import sub

from sealring import KeyWrapperError, KmsCodec, RingConflictError, RingPolicy, RingStoreError, StoredRing
from sealring.key_wrapper import Supports, WrappedKey
from sealring.ring.calls import FOREGROUND

# As for another key of the account, which the fleet may not use.
FORBIDDEN = "forbidden"
LONGEST_OPERATION_MS = 1_000_000
PREPARE_MS = 2_000
DATA_KEY_BYTES = 32


def digest(text):
    return hashlib.sha256(text.encode()).digest()


def decode(text):
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def encode(data):
    return urlsafe_b64encode(data).decode().rstrip("=")


class Clocks:
    """Both clocks of the member, and its timers."""

    def __init__(self, scene):
        self.steady = scene["steadyMs"]
        self.ahead = scene["wallMs"] - scene["steadyMs"]
        self.true_ahead = scene["trueAheadMs"]
        self.dates = {"store": 0, "kms": 0}

    def wall_ms(self):
        return self.steady + self.ahead

    def monotonic_ns(self):
        return self.steady * 1_000_000

    def date_ms(self, service):
        ahead = self.dates[service]
        return None if ahead is None else (self.true_ahead + self.steady + ahead) // 1_000 * 1_000


class Kms:
    def __init__(self, provider, clocks, key_versions):
        self.provider = provider
        self.supports = Supports(key_versions=key_versions)
        self.kept = {}
        self.failing = self.wrap_failing = None
        self.key_id = "key/1"
        self.generated = 0
        self.clocks = clocks

    def owns(self, wrapped):
        return wrapped.provider == self.provider

    def _answer(self, operation, note, key_id=""):
        date = self.clocks.date_ms("kms")
        if note is not None and date is not None:
            note(date)
        kind = self.failing or (None if operation == "unwrap" else self.wrap_failing)
        kind = "denied" if key_id == FORBIDDEN else kind
        if kind is not None:
            raise KeyWrapperError(kind, self.provider, operation=operation)

    def _keep(self, data_key, context):
        wrapped = digest(f"wrap/{self.provider}/{self.key_id}/{encode(data_key)}")[:12]
        self.kept[wrapped] = bytes(data_key), dict(context)
        return WrappedKey(self.provider, self.key_id, wrapped)

    def wrap(self, data_key, context, *, on_service_date=None):
        self._answer("wrap", on_service_date)
        return self._keep(data_key, context)

    def unwrap(self, wrapped, context, *, on_service_date=None):
        self._answer("unwrap", on_service_date, wrapped.key_id)
        data_key, bound = self.kept.get(wrapped.wrapped, (None, None))
        if data_key is None or bound != dict(context):
            raise KeyWrapperError("corrupt", self.provider)
        return bytearray(data_key)

    def generate(self, context, *, on_service_date=None):
        self._answer("generate", on_service_date)
        data_key = digest(f"key/{self.provider}/{self.generated}")
        self.generated += 1
        return bytearray(data_key), self._keep(data_key, context)


class Store:
    kind = "traced"

    def __init__(self, clocks):
        self.clocks = clocks
        self.document = self.failing = self.race = None
        self.loses_answer = False
        self.reads = self.revision = 0
        self.writes = []
        self.changed = lambda: None

    def put(self, document):
        self.document = document
        self.revision += 1

    def _answer(self, note):
        date = self.clocks.date_ms("store")
        if note is not None and date is not None:
            note(date)
        if self.failing is not None:
            raise RingStoreError(self.failing, "as the trace says")

    def read(self, *, on_service_date=None):
        self.reads += 1
        self._answer(on_service_date)
        return None if self.document is None else StoredRing(self.document, str(self.revision))

    def write(self, document, *, expected, on_service_date=None):
        def outcome(name):
            self.writes.append({"document": document, "outcome": name})

        if self.failing is not None:
            outcome("failed")
        self._answer(on_service_date)
        if self.race is not None:
            self.put(self.race)
            self.race = None
        if (None if self.document is None else str(self.revision)) != expected:
            outcome("conflict")
            raise RingConflictError
        self.put(document)
        if self.loses_answer:
            self.loses_answer = False
            outcome("lost")
            raise RingStoreError("unavailable", "the answer got lost")
        outcome("written")
        return str(self.revision)

    def watch(self, changed):
        self.changed = changed
        return lambda: None


class Member:
    """A codec whose jobs run in turn with this thread, so that each step ends where it does in TypeScript."""

    def __init__(self, scene, keys):
        self.clocks = Clocks(scene)
        self.store = Store(self.clocks)
        self.word = self.data_keys = 0
        versions = scene["keyVersions"]
        self.services = [Kms(name, self.clocks, versions) for name in scene["providers"]]
        self.services[0].kept = {
            decode(key["wrapped"]): (decode(key["dataKey"]), key["context"]) for key in keys
        }
        pin = scene["acceptKeysCreatedAfterMs"]
        policy = {
            sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name): value
            for name, value in scene["policy"].items()
        }
        self.codec = KmsCodec(
            key_wrapper=self.services,
            ring=self.store,
            create=scene["create"],
            wrap_quorum=scene["wrapQuorum"],
            policy=RingPolicy(**policy),
            accept_keys_created_after=None
            if pin is None
            else datetime.fromtimestamp(pin / 1_000, timezone.utc),
            clock=self.clocks,
            random=self.random,
        )
        self.keeper = self.codec._keeper
        self.turns = self.keeper.turns
        self.codec._calls.pause = self.pause
        self.is_started = False
        # The jobs run on a separate thread, and only while this one waits for it.
        self.may_run, self.may_go_on = threading.Semaphore(0), threading.Semaphore(0)
        self.paused_until = None
        self.wake = []
        self.run = None
        self.result = None

    def random(self, count):
        # No two data keys are the same; otherwise a member would draw again without an end.
        if count == DATA_KEY_BYTES:
            self.data_keys += 1
            return digest(f"random/{self.data_keys - 1}")
        return bytes(self.word >> (8 * (i % 4)) & 255 for i in range(count))

    # The work of the member's thread.

    def pause(self, seconds):
        if seconds <= 0:
            return
        self.paused_until = math.ceil(self.clocks.steady + seconds * 1_000)
        self.may_go_on.release()
        self.may_run.acquire()

    def loop(self):
        while True:
            self.may_run.acquire()
            if self.run is None:
                return
            self.run()
            self.may_go_on.release()

    # The operations of the steps.

    def settle(self, run=None):
        """Lets the member's thread run until it has nothing to do, or pauses."""
        if self.paused_until is not None:
            if self.paused_until > self.clocks.steady:
                return
            self.paused_until = None
        else:
            self.run = run or self.turns.run_jobs
        self.may_run.release()
        self.may_go_on.acquire()
        # Messages that arrived during the pause.
        if self.paused_until is None and run is not None and self.is_started:
            self.settle()

    def next_due(self):
        dues = [self.paused_until, self.turns.next_timer_ms]
        return min((due for due in dues if due is not None), default=None)

    def fire(self, due):
        self.clocks.steady = max(self.clocks.steady, due)
        if self.paused_until == due:
            self.settle()
            # Jobs that were added during the pause.
            if self.paused_until is None and self.is_started:
                self.settle()
            return
        self.turns.fire_timer()
        self.turns.run_posted()
        self.settle()

    def advance(self, until):
        while (due := self.next_due()) is not None and due <= until:
            self.fire(due)
        self.clocks.steady = until

    def ended(self, future):
        until = self.clocks.steady + LONGEST_OPERATION_MS
        while not future.done():
            due = self.next_due()
            if due is None or due > until:
                raise RuntimeError("an operation does not end")
            self.fire(due)
        error = future.exception()
        return "ok" if error is None else name_of(error)

    def start(self):
        outcome = []

        def run():
            try:
                self.codec._pid = __import__("os").getpid()
                self.keeper.start()
                outcome.append("ok")
            except Exception as error:
                outcome.append(name_of(error))

        self.settle(run)
        until = self.clocks.steady + LONGEST_OPERATION_MS
        while not outcome:
            due = self.next_due()
            if due is None or due > until:
                raise RuntimeError("a start does not end")
            self.fire(due)
        self.is_started = outcome == ["ok"]
        return outcome[0]

    def obey(self, step):
        op, argument, keeper = step["op"], step.get("argument"), self.keeper
        if op == "start":
            return self.start()
        if op == "advance":
            self.advance(self.clocks.steady + argument)
            return "ok"
        if op == "push":
            keeper.pushed()
            self.settle()
            return "ok"
        if op == "seal":
            return self.tried(lambda: self.codec.seal(b"\0")[4:16])
        if op == "unseal":
            return self.tried(lambda: self.codec.unseal(argument) and "ok")
        if op == "prepare":
            now = self.codec._view.now()
            if not keeper.needs_refresh_for(argument[4:16], now):
                return "ok"
            future = keeper.refresh_for_token(now, FOREGROUND)
            if future is None:
                return "ok"
            until = self.clocks.steady + PREPARE_MS
            self.settle()
            while not future.done():
                due = self.next_due()
                if due is None or due > until:
                    self.clocks.steady = until
                    break
                self.fire(due)
            return "ok"
        if op == "refresh":
            future = keeper.refresh()
        elif op == "rotate":
            future = keeper.rotate(argument)
        elif op == "revoke":
            future = keeper.revoke(lambda key: key.id == argument, argument)
        else:
            latest = argument + keeper.view.policy.clock_skew_seconds * 1_000
            future = keeper.revoke(lambda key: key.created <= latest)
        self.settle()
        return self.ended(future)

    def tried(self, run):
        try:
            result = run()
        except Exception as error:
            result = name_of(error)
        self.turns.run_posted()
        self.settle()
        return result

    def set(self, step):
        self.word = step["word"]
        clock, store = step.get("clock", {}), step.get("store", {})
        self.clocks.ahead += clock.get("stepMs", 0) + clock.get("sleptMs", 0)
        self.clocks.true_ahead += clock.get("sleptMs", 0)
        if "document" in store:
            self.store.put(store["document"])
        self.store.failing = store.get("failing", self.store.failing)
        self.store.race = store.get("race", self.store.race)
        self.store.loses_answer = store.get("losesAnswer", self.store.loses_answer)
        self.clocks.dates["store"] = store.get("dateAheadMs", self.clocks.dates["store"])
        for service in self.services:
            told = step.get("kms", {}).get(service.provider, {})
            service.failing = told.get("failing", service.failing)
            service.wrap_failing = told.get("wrapFailing", service.wrap_failing)
            service.key_id = told.get("keyId", service.key_id)
            self.clocks.dates["kms"] = told.get("dateAheadMs", self.clocks.dates["kms"])

    def step(self, step):
        self.set(step)
        self.store.writes = []
        reads, generated = self.store.reads, sum(one.generated for one in self.services)
        result = self.obey(step)
        return {
            "result": result,
            "atMs": self.clocks.steady,
            "reads": self.store.reads - reads,
            "generated": sum(one.generated for one in self.services) - generated,
            "writes": self.store.writes,
            "health": self.health(),
        }

    def health(self):
        if not self.is_started:
            return None
        health = self.keeper.health()
        return {
            "status": health.status,
            "ready": health.ready,
            "canSeal": health.can_seal,
            "canUnseal": health.can_unseal,
            "sealUntil": ms(health.seal_until),
            "sealingKey": health.sealing_key,
            "lastRefresh": ms(health.last_refresh),
            "lastKmsCheck": ms(health.last_kms_check),
            "lastError": None if (last := health.last_error) is None else f"{last.source} {last.kind}",
            "problems": [problem.kind for problem in health.problems],
            "keys": [
                [key.id, key.state, key.held]
                + [ms(t) for t in (key.created, key.activates, key.seals_until, key.unseals_until)]
                for key in health.keys
            ],
        }

    def close(self):
        self.codec.close()


def ms(time):
    return None if time is None else round(time.timestamp() * 1_000)


def name_of(error):
    name = type(error).__name__
    name = {"ValueError": "RangeError", "LineageError": "RingStoreError"}.get(name, name)
    kind = getattr(error, "kind", getattr(error, "reason", ""))
    return f"{name}: {kind}" if kind else name


def differences(expected, seen):
    return {name: [expected[name], seen[name]] for name in expected if expected[name] != seen[name]}


def main(path):
    logging.getLogger("sealring").addHandler(logging.NullHandler())
    logging.getLogger("sealring").propagate = False
    member, scene, at, steps, differing = None, None, 0, 0, 0
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            told = json.loads(line)
            if "scene" in told:
                if member is not None:
                    member.close()
                scene, at = told["scene"]["name"], 0
                member = Member(told["scene"], told["keys"])
                threading.Thread(target=member.loop, daemon=True).start()
                continue
            if member is None:
                continue
            steps, at = steps + 1, at + 1
            try:
                found = differences(told["expected"], member.step(told))
            except Exception as error:
                if "--raise" in sys.argv:
                    raise
                found = {"raised": [None, f"{type(error).__name__}: {error}"]}
            if found:
                differing += 1
                print(json.dumps({"scene": scene, "step": at, "op": told["op"], "differs": found}))
                # The following steps depend on it.
                member.close()
                member = None
    print(json.dumps({"steps": steps, "differing": differing}))


main(sys.argv[1])
