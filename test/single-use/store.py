"""A single-use store of the Python package that a test drives: one JSON object per line on standard input, one answer
per line."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from threading import Lock

from dynamodb_client import dynamodb_client

from sealring import DynamodbSingleUse, MemorySingleUse, PostgresSingleUse, RedisSingleUse

name, address = sys.argv[1:]
STORES = {
    "memory": MemorySingleUse,
    "redis": lambda: RedisSingleUse(url=address),
    "postgres": lambda: PostgresSingleUse(url=address),
    "dynamodb": lambda: DynamodbSingleUse(table="sealring", client=dynamodb_client(address)),
}
stores: dict[int, object] = {}
memory = MemorySingleUse()
writing = Lock()


def store_of(number):
    if name == "memory":
        return memory
    return stores.setdefault(number, STORES[name]())


def obey(request):
    try:
        until = datetime.fromtimestamp(request["expiresAtMs"] / 1_000, tz=timezone.utc)
        answer = {"value": store_of(request["store"]).claim(request.get("claim"), until)}
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    with writing:
        print(json.dumps({"id": request["id"], **answer}), flush=True)


with ThreadPoolExecutor(8) as pool:
    for line in sys.stdin:
        pool.submit(obey, json.loads(line))
