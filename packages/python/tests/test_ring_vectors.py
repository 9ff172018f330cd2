"""Checks parsing, certificates and adopted facts against the vectors of TypeScript."""

import json
import os
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from sealring import RingStoreError, base64url
from sealring.held_key import HeldKey
from sealring.key_wrapper import WrappedKey
from sealring.ring.certificates import (
    ancestors_mac_of,
    certificate_of,
    voucher_of,
    wrap_mac_of,
)
from sealring.ring.document import RingEntry, encode_document, parse_document
from sealring.ring.facts import Judgement, learn, unwrapped_key
from sealring.ring.snapshot import RingKey, create_snapshot

VECTORS = json.loads((Path(os.environ["SEALRING_VECTORS"]) / "ring-documents.json").read_text())
RING = VECTORS["ring"]
KEYS = {key["name"]: key for key in VECTORS["keys"]}


def cases(name: str) -> pytest.MarkDecorator:
    listed = VECTORS[name]
    return pytest.mark.parametrize("case", listed, ids=[case["name"] for case in listed])


def held(name: str) -> HeldKey:
    return HeldKey(bytearray(data(KEYS[name]["dataKey"])), RING)


def data(text: str) -> bytes:
    decoded = base64url.decode(text)
    assert decoded is not None
    return decoded


def entry(name: str) -> RingEntry:
    document = {"format": "sealring/ring/1", "ring": RING, "keys": [KEYS[name]["entry"]]}
    return parse_document(json.dumps(document, separators=(",", ":")), RING).entries[0]


def ms(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1_000


@cases("documents")
def test_the_documents_of_the_vectors_are_parsed_or_refused(case: dict[str, object]) -> None:
    pieces: list[tuple[str, int]] = case.get("textPieces") or [(case["text"], 1)]  # type: ignore[assignment]
    text = "".join(piece * count for piece, count in pieces)
    if case["expect"] == {"parses": True}:
        parsed = parse_document(text, RING)
        assert parse_document(encode_document(RING, parsed), RING) == parsed
    else:
        with pytest.raises(RingStoreError) as caught:
            parse_document(text, RING)
        assert caught.value.kind in ("corrupt", "too-large")


@cases("certificates")
def test_the_macs_of_the_vectors_are_computed(case: dict[str, str]) -> None:
    signer = held(case["signer"])
    if case["kind"] == "voucher":
        made = voucher_of(entry(case["key"]).id, entry(case["key"]).times, signer)
    elif case["kind"] == "ancestors":
        made = ancestors_mac_of([held(name).id for name in case["keys"]], signer)
    elif case["kind"] == "revocation":
        made = certificate_of(held(case["key"]).id, case["at"], signer)
    else:
        signature = data(case["signature"]) if "signature" in case else None
        wrap = WrappedKey(case["provider"], case["keyId"], data(case["wrapped"]))
        made = wrap_mac_of(wrap, signature, signer)
    assert base64url.encode(made) == case["mac"]


@cases("learn")
def test_the_vectors_of_learning_give_the_expected_keys(case: dict[str, object]) -> None:
    known: list[str] = case["known"]  # type: ignore[assignment]
    revoked: list[str] = case["revoked"]  # type: ignore[assignment]
    past: list[str] = case["past"]  # type: ignore[assignment]
    pin = case.get("acceptKeysCreatedAfter")
    judgement = Judgement(
        ms(str(case["now"])),
        False,
        VECTORS["clockSkewSeconds"] * 1_000,
        {held(name).id: key(name, False) for name in past},
        -float("inf") if pin is None else ms(str(pin)),
    )
    before = create_snapshot([key(name, name in revoked) for name in known])
    document = parse_document(str(case["document"]), RING)
    after, wanted = learn(before, document, judgement)
    expected: dict[str, list[str]] = case["expect"]  # type: ignore[assignment]
    gone = {key.id for key in after.keys if key.is_revoked and not key.is_tombstone}
    assert gone == set(expected["revoked"])
    assert {key.id for key in after.keys if key.is_tombstone} == set(expected["tombstones"])
    assert [entry.id for entry in wanted] == expected["wanted"]
    assert {key.id for key in before.keys} <= {key.id for key in after.keys}


def key(name: str, is_revoked: bool) -> RingKey:
    at = entry(name)
    made = unwrapped_key(at, held(name), at.wraps[0], 0)
    return replace(made, held=None, is_revoked=True) if is_revoked else made
