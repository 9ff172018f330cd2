"""Invalid ring documents, in addition to the vectors."""

import json

import pytest
from ring_maker import RING, Fleet, document

from sealring import RingStoreError
from sealring.ring.document import parse_document


def kind_of(text: str) -> str:
    with pytest.raises(RingStoreError) as caught:
        parse_document(text, RING)
    return caught.value.kind


@pytest.mark.parametrize("text", ["", "{}", "[]", "NaN", "x", "é", "{}\n{}", "1" * 5_000])
def test_a_text_that_is_not_one_json_object_on_one_line_is_corrupt(text: str) -> None:
    assert kind_of(text) == "corrupt"


def test_documents_beyond_the_limits_are_refused(fleet: Fleet) -> None:
    assert kind_of("x" * 262_145) == "too-large"
    assert kind_of(document([fleet.first] * 65)) == "too-large"
    assert kind_of(document([fleet.first] * 2)) == "corrupt"
    assert kind_of("[" * 100_000) == "corrupt"


def test_only_the_shortest_text_of_a_document_is_accepted(fleet: Fleet) -> None:
    text = document([fleet.first], claim="A" * 22)
    assert parse_document(text, RING).entries[0].id == fleet.first.id
    assert kind_of(json.dumps(json.loads(text))) == "corrupt"
    ordered = json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    assert parse_document(ordered, RING) == parse_document(text, RING)
    assert kind_of(ordered.replace('"ring":', '"ring":"payments","ring":')) == "corrupt"


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2000-02-29T12:00:00Z", 951_825_600_000),
        ("0000-01-01T00:00:00Z", -62_167_219_200_000),
        ("0000-12-31T23:59:59Z", -62_135_596_801_000),
    ],
)
def test_times_are_parsed_as_in_typescript(fleet: Fleet, text: str, ms: int) -> None:
    ends = {
        "sealsUntil": f"{text[:3]}2-06-01T00:00:00Z",
        "opensUntil": f"{text[:3]}3-01-01T00:00:00Z",
    }
    key = fleet.first.edited(created=text, activates=text, **ends)
    entry = parse_document(document([key]), RING).entries[0]
    assert (entry.created, entry.times[0]) == (ms, text)
