"""What is no ring document."""

import json
from collections.abc import Callable

import pytest
from ring_maker import RING, Fleet, document

from sealring import RingStoreError
from sealring.ring.document import MAX_EPOCH, parse_document

Doc = dict[str, object]


def body_of(fleet: Fleet) -> Doc:
    body: Doc = json.loads(document([fleet.first]).split("\n")[0])
    return body


def text_of(body: Doc, macs: object = None) -> str:
    return f"{json.dumps(body)}\n{json.dumps({'macs': {} if macs is None else macs})}"


def entry(body: Doc, **changes: object) -> Doc:
    key = {**body["keys"][0], **changes}  # type: ignore[index]
    return {**body, "keys": [{name: value for name, value in key.items() if value is not ...}]}


def wrap(body: Doc, **changes: object) -> Doc:
    first = body["keys"][0]["wraps"][0]  # type: ignore[index]
    return entry(body, wraps=[{**first, **changes}])


REFUSED: dict[str, Callable[[Doc], Doc]] = {
    "unknown format": lambda body: {**body, "format": "sealring/ring/2"},
    "another name": lambda body: {**body, "ring": "orders"},
    "critical member": lambda body: {**body, "critical": ["x"]},
    "critical is no list": lambda body: {**body, "critical": {}},
    "critical is missing": lambda body: {k: v for k, v in body.items() if k != "critical"},
    "epoch is negative": lambda body: {**body, "epoch": -1},
    "epoch is too large": lambda body: {**body, "epoch": MAX_EPOCH + 1},
    "epoch is true": lambda body: {**body, "epoch": True},
    "epoch is text": lambda body: {**body, "epoch": "1"},
    "epoch is broken": lambda body: {**body, "epoch": 1.5},
    "keys is an object": lambda body: {**body, "keys": {}},
    "two keys with one id": lambda body: {**body, "keys": [body["keys"][0]] * 2},  # type: ignore[index]
    "short id": lambda body: entry(body, id="AAAA"),
    "alias of an id": lambda body: entry(body, id="AAAAAAAAAAA="),
    "no created": lambda body: entry(body, created=...),
    "fraction of a second": lambda body: entry(body, created="2026-11-21T03:00:00.000Z"),
    "other time zone": lambda body: entry(body, created="2026-11-21T03:00:00+00:00"),
    "30th of February": lambda body: entry(body, created="2026-02-30T03:00:00Z"),
    "leap second": lambda body: entry(body, created="2026-06-30T23:59:60Z"),
    "hour 24": lambda body: entry(body, created="2026-06-30T24:00:00Z"),
    "times out of order": lambda body: entry(body, sealsUntil="2000-01-01T00:00:00Z"),
    "revoked is null": lambda body: entry(body, revoked=None),
    "no wraps": lambda body: entry(body, wraps=[]),
    "17 wraps": lambda body: entry(body, wraps=body["keys"][0]["wraps"] * 17),  # type: ignore[index]
    "provider in capitals": lambda body: wrap(body, provider="AWS"),
    "empty KMS key id": lambda body: wrap(body, keyId=""),
    "long KMS key id": lambda body: wrap(body, keyId="\U0001f600" * 1_025),
    "empty wrapped": lambda body: wrap(body, wrapped=""),
    "padded wrapped": lambda body: wrap(body, wrapped="AA=="),
    "wrapped is a number": lambda body: wrap(body, wrapped=5),
    "signature is null": lambda body: wrap(body, signature=None),
    "nested too deeply": lambda body: {**body, "x": json.loads("[" * 512 + "]" * 512)},
}


def kind_of(text: str) -> str:
    with pytest.raises(RingStoreError) as caught:
        parse_document(text, RING)
    return caught.value.kind


@pytest.mark.parametrize("name", REFUSED)
def test_refused(fleet: Fleet, name: str) -> None:
    assert kind_of(text_of(REFUSED[name](body_of(fleet)))) == "corrupt"


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body,
        lambda body: {**body, "epoch": 0},
        lambda body: {**body, "epoch": MAX_EPOCH},
        lambda body: {**body, "x": json.loads("[" * 511 + "]" * 511)},
        lambda body: {**body, "keys": []},
        lambda body: entry(body, revoked="2026-11-21T03:00:00Z"),
        lambda body: wrap(body, keyId="\U0001f600" * 1_024, signature="AAAA", more=1),
    ],
)
def test_accepted(fleet: Fleet, change: Callable[[Doc], Doc]) -> None:
    assert parse_document(text_of(change(body_of(fleet))), RING).ring == RING


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "{}\n",
        "\n{}",
        "{}\n{}\n",
        "{}\r\n{}",
        "[]\n{}",
        "{}\n{}",
        "NaN\n{}",
        "x\ny",
        "é\n{}",
    ],
)
def test_no_two_lines_of_json_objects(text: str) -> None:
    assert kind_of(text) == "corrupt"


@pytest.mark.parametrize("number", ["1e400", "-1e400", "NaN", "Infinity", "9" * 400])
def test_a_number_that_no_member_could_write_again_is_refused(fleet: Fleet, number: str) -> None:
    body = json.dumps({**body_of(fleet), "x": 0}).replace('"x": 0', f'"x": {number}')
    assert kind_of(f'{body}\n{{"macs":{{}}}}') == "corrupt"


@pytest.mark.parametrize("macs", [[], {"a": ""}, {"a": "AAAA"}, {"a": 5}, {"a": "A" * 44}])
def test_macs_have_32_bytes(fleet: Fleet, macs: object) -> None:
    assert kind_of(text_of(body_of(fleet), macs)) == "corrupt"


def test_bounds(fleet: Fleet) -> None:
    body = body_of(fleet)
    assert kind_of(text_of({**body, "x": "x" * 262_144})) == "too-large"
    assert kind_of(text_of({**body, "keys": body["keys"] * 65})) == "too-large"  # type: ignore[operator]
    assert kind_of("[" * 100_000 + "\n{}") == "corrupt"


def test_documents_of_members_that_print_numbers_as_floats_are_read(fleet: Fleet) -> None:
    body = json.dumps(body_of(fleet)).replace('"epoch": 1,', '"epoch": 1.0,')
    assert parse_document(f'{body}\n{{"macs":{{}}}}', RING).epoch == 1
