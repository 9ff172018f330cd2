"""Tokens, on both wires."""

import json
import os
import string
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from ring_maker import RING, Fleet

from sealring import InvalidRequestState, SealUnavailableError, base64url
from sealring.clock import Moment
from sealring.derivation import key_id_of, sub_key
from sealring.formats import native, python_sdk
from sealring.formats.sealer import SealingState
from sealring.formats.tokens import format_of
from sealring.held_key import HeldKey

VECTORS = json.loads((Path(os.environ["SEALRING_VECTORS"]) / "python-codec.json").read_text())
SECRETS = {key["name"]: bytes.fromhex(key["hex"]) for key in VECTORS["keys"]}
ALPHABET = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"


def reason_of(codec: object, token: object) -> str:
    with pytest.raises(InvalidRequestState) as caught:
        codec.unseal(token)  # type: ignore[attr-defined]
    assert str(caught.value) == caught.value.reason
    return caught.value.reason


def pieces(vector: dict[str, object], name: str) -> str:
    long = vector.get(f"{name}Pieces")
    return str(vector[name]) if long is None else "".join(t * n for t, n in long)  # type: ignore[attr-defined]


def test_the_vectors_of_the_python_sdk() -> None:
    keys = {name: python_sdk.derive_key(secret) for name, secret in SECRETS.items()}
    counts = {"accept": 0, "reject": 0, "huge": 0}
    for vector in VECTORS["vectors"]:
        token = pieces(vector, "token")
        ring = {keys[name].kid: keys[name] for name in vector["ring"]}
        if len(token) > 262_144:
            counts["huge"] += 1
            continue
        counts[vector["expect"]] += 1
        if vector["expect"] == "accept":
            payload = bytes.fromhex(pieces(vector, "payload"))
            kid, rest = python_sdk.parse(token)
            assert python_sdk.open_token(ring[kid], rest) == payload, vector["name"]
            key = keys[vector["sealedBy"]]
            nonce = bytes.fromhex(vector["nonce"])
            assert python_sdk.seal(key, nonce, payload) == token, vector["name"]
            continue
        with pytest.raises(InvalidRequestState) as caught:
            kid, rest = python_sdk.parse(token)
            if kid not in ring:
                raise InvalidRequestState("unknown key")
            python_sdk.open_token(ring[kid], rest)
        assert caught.value.reason == vector["reason"], vector["name"]
    assert counts["accept"] > 100
    assert counts["reject"] > 400


def test_a_native_token_follows_the_documented_formula() -> None:
    data_key, salt, nonce = bytes(range(32)), bytes(range(18)), bytes(range(12))
    block = sub_key(data_key, "token", RING, salt)
    header = key_id_of(data_key) + salt + block[32:50]
    sealed = AESGCM(block[:32]).encrypt(nonce, b"state", b"sr1." + header)
    held = HeldKey(bytearray(data_key), RING)
    token, tag = native.seal(held.token_key(salt, None), nonce, b"state")
    assert token == "sr1." + base64url.encode(header) + base64url.encode(nonce + sealed)
    assert tag == sealed[-16:]
    assert len(token) == 108


def test_a_codec_accepts_only_the_formats_in_accept(fleet: Fleet) -> None:
    with (
        fleet.reader() as only_native,
        fleet.reader(format="python") as only_python,
        fleet.reader(format="python", accept=["sealring", "python"]) as both,
    ):
        assert only_native.seal(b"x").startswith("sr1.")
        assert only_python.seal(b"x").startswith("v1.")
        for codec in (only_native, only_python):
            assert both.unseal(codec.seal(b"state")) == b"state"
            assert codec.unseal(codec.seal(b"state")) == b"state"
        # F24: an allow-list.
        assert reason_of(only_native, only_python.seal(b"x")) == "malformed"
        assert reason_of(only_python, only_native.seal(b"x")) == "malformed"


def test_a_token_is_valid_only_for_its_purpose(fleet: Fleet) -> None:
    with fleet.reader(accept=["sealring", "python"]) as codec:
        cart = codec.for_purpose("cart")
        token = cart.seal(b"x")
        assert codec.for_purpose("cart").unseal(token) == b"x"
        assert reason_of(codec, token) == "seal"
        assert reason_of(codec.for_purpose("orders"), token) == "seal"
        assert reason_of(cart, codec.seal(b"x")) == "seal"
        assert reason_of(cart, "v1.AAAA") == "malformed"
        for wrong in ("", "a b", "x" * 65, "é"):
            with pytest.raises(ValueError, match="purpose"):
                codec.for_purpose(wrong)


@pytest.mark.parametrize("wire", ["sealring", "python"])
def test_f18_every_other_spelling_of_a_token_is_refused(fleet: Fleet, wire: str) -> None:
    with fleet.reader(format=wire) as codec:
        for payload in (b"", b"x", b"xy"):
            token = codec.seal(payload)
            for letter in ALPHABET.replace(token[-1], ""):
                assert reason_of(codec, token[:-1] + letter) in ("malformed", "seal")
            for other in (token + "=", token + "\n", " " + token, token.upper(), token + "."):
                assert reason_of(codec, other) in ("malformed", "unknown key")
            for other in (
                token.replace("-", "+").replace("_", "/"),
                token[:40] + "\0" + token[40:],
            ):
                if other != token:
                    assert reason_of(codec, other) == "malformed"


@pytest.mark.parametrize("wire", ["sealring", "python"])
def test_every_changed_bit_and_every_cut_is_refused(fleet: Fleet, wire: str) -> None:
    with fleet.reader(format=wire) as codec:
        token = codec.seal(b"state")
        prefix = token.split(".")[0] + "."
        body = base64url.decode(token[len(prefix) :])
        assert body is not None
        for bit in range(len(body) * 8):
            changed = bytearray(body)
            changed[bit // 8] ^= 1 << bit % 8
            reason = reason_of(codec, prefix + base64url.encode(changed))
            assert reason == ("seal" if bit >= 72 or (wire == "python" and bit >= 32) else reason)
        # F19: including shorter tags.
        for length in range(len(body)):
            reason_of(codec, prefix + base64url.encode(body[:length]))
        for length in range(len(token)):
            reason_of(codec, token[:length])


def test_f3_a_ciphertext_that_names_another_key_is_refused_before_decrypting(fleet: Fleet) -> None:
    second = fleet.key(4_500)
    fleet.publish([fleet.first, second])
    with fleet.reader() as codec:
        header = native.parse(codec.seal(b"x"))
        other = HeldKey(bytearray(second.data_key), RING)
        token, _ = native.seal(other.token_key(header.salt, None), header.nonce, b"x")
        relabelled = "sr1." + fleet.first.id + token[16:]
        assert reason_of(codec, relabelled) == "seal"
        assert codec.unseal(token) == b"x"


def test_f25_a_token_of_another_ring_under_the_same_data_key_is_refused() -> None:
    data_key = os.urandom(32)
    ours, theirs = (HeldKey(bytearray(data_key), ring) for ring in (RING, "orders"))
    salt = os.urandom(18)
    token, _ = native.seal(theirs.token_key(salt, None), os.urandom(12), b"x")
    parsed = native.parse(token)
    with pytest.raises(InvalidRequestState):
        native.open_token(ours.token_key(parsed.salt, None), parsed)
    assert ours.python_key().kid != theirs.python_key().kid


@pytest.mark.parametrize(
    "token", [None, 5, b"sr1.", ["x"], "", "sr1.", "v1.", "v2.x", "\ud800", "é"]
)
def test_text_that_is_not_a_token_is_malformed(fleet: Fleet, token: object) -> None:
    with fleet.reader(accept=["sealring", "python"]) as codec:
        assert reason_of(codec, token) == "malformed"


def test_f30_length_is_checked_before_anything_else(fleet: Fleet) -> None:
    with fleet.reader(max_token_length=200) as codec:
        longest = codec.seal(b"x" * 74)
        assert len(longest) == 200
        with pytest.raises(ValueError, match="payload must be at most 74 bytes, got 75"):
            codec.seal(b"x" * 75)
        assert codec.unseal(longest) == b"x" * 74
    with fleet.reader() as codec:
        assert reason_of(codec, "sr1." + "A" * 10_000_000) == "malformed"
        assert reason_of(codec, codec.seal(b"x") + "A" * 262_144) == "malformed"


@pytest.mark.parametrize("wire", ["sealring", "python"])
def test_the_token_of_the_longest_payload_can_be_unsealed(fleet: Fleet, wire: str) -> None:
    module = native if wire == "sealring" else python_sdk
    payload = os.urandom(module.max_payload_bytes(262_144))
    with fleet.reader(format=wire) as codec:
        assert codec.unseal(codec.seal(payload)) == payload
        with pytest.raises(ValueError, match="would be refused"):
            codec.seal(payload + b"x")


@pytest.mark.parametrize("payload", ["text", None, 5, [1]])
def test_a_payload_must_be_bytes(fleet: Fleet, payload: object) -> None:
    with fleet.reader() as codec, pytest.raises(TypeError, match="payload must be bytes"):
        codec.seal(payload)  # type: ignore[arg-type]


def test_a_payload_is_not_changed_and_may_be_any_bytes(fleet: Fleet) -> None:
    with fleet.reader() as codec:
        payload = bytearray(b"state")
        assert codec.unseal(codec.seal(payload)) == b"state"
        assert payload == b"state"
        assert codec.unseal(codec.seal(memoryview(payload))) == b"state"


def test_an_unknown_key_is_reported_at_once(fleet: Fleet) -> None:
    with fleet.reader(accept=["sealring", "python"]) as codec:
        stranger = HeldKey(bytearray(os.urandom(32)), RING)
        token, _ = native.seal(stranger.token_key(os.urandom(18), None), os.urandom(12), b"x")
        assert reason_of(codec, token) == "unknown key"
        python = python_sdk.seal(stranger.python_key(), os.urandom(12), b"x")
        assert reason_of(codec, python) == "unknown key"


def test_formats_are_recognized_by_prefix_and_dots() -> None:
    named = {token: format_of(token) for token in ("sr1.a.b", "v1.a", "v1.a.b", "v1e.a", "x")}
    assert list(named.values()) == ["sealring", "python", None, None, None]


def sealed_nonces(random: object, moments: list[Moment]) -> list[tuple[bytes, bytes]]:
    held = HeldKey(bytearray(range(32)), RING)
    state = SealingState(random)  # type: ignore[arg-type]
    tokens = (native.parse(held.sealer(None).seal(state, b"x", now)) for now in moments)
    return [(token.salt, token.nonce) for token in tokens]


def test_f1_a_stuck_generator_never_repeats_a_nonce_under_a_salt() -> None:
    still = [Moment(1_795_000_000_000, 5_000_000_000)] * 20_000
    seen = sealed_nonces(lambda length: b"\7" * length, still)
    assert len(set(seen)) == len(seen)


def test_time_and_counter_are_in_the_nonce_and_the_last_tag_too() -> None:
    held = HeldKey(bytearray(range(32)), RING)
    state = SealingState(bytes)
    now = Moment(1_795_000_000_000, 5_000_000_000)
    nonces = []
    for count in range(3):
        last = int.from_bytes(state.last_tag[:12], "big")
        token = native.parse(held.sealer(None).seal(state, b"x", now))
        time = (now.monotonic_ns % 2**44 << 52) | (now.wall_ms % 2**32 << 20) | count
        assert int.from_bytes(token.nonce, "big") == time ^ last
        nonces.append(token.nonce)
    assert len(set(nonces)) == 3


def test_a_salt_is_renewed_when_its_counter_is_full() -> None:
    held, state = HeldKey(bytearray(range(32)), RING), SealingState(os.urandom)
    sealer, now = held.sealer(None), Moment(1_795_000_000_000, 5_000_000_000)
    salts = [native.parse(sealer.seal(state, b"x", now)).salt]
    sealer._count = 2**20 - 1
    salts += [native.parse(sealer.seal(state, b"x", now)).salt for _ in range(2)]
    assert salts[0] == salts[1] != salts[2]


def test_f2_instances_with_one_generator_state_and_clocks_a_moment_apart_share_nothing() -> None:
    first = sealed_nonces(lambda length: b"\7" * length, [Moment(9_000, 5_000)] * 50)
    second = sealed_nonces(lambda length: b"\7" * length, [Moment(9_000, 5_001)] * 50)
    assert not set(first) & set(second)


@pytest.mark.parametrize(
    ("gap_ns", "gap_ms", "is_new"),
    [
        (1_000_000_000, 1_000, False),
        (1_000_000_001, 1_000, True),
        (1, 1_001, True),
        (1, -1_001, True),
    ],
)
def test_a_salt_is_renewed_after_a_pause(gap_ns: int, gap_ms: int, is_new: bool) -> None:
    start = Moment(1_795_000_000_000, 5_000_000_000)
    later = Moment(start.wall_ms + gap_ms, start.monotonic_ns + gap_ns)
    (one, _), (two, _) = sealed_nonces(os.urandom, [start, later])
    assert (one != two) is is_new


def test_a_salt_is_used_for_60_seconds() -> None:
    moments = [Moment(1_795_000_000_000 + s * 900, 10**9 * 5 + s * 900_000_000) for s in range(134)]
    salts = [salt for salt, _ in sealed_nonces(os.urandom, moments)]
    assert [salts.count(salt) for salt in dict.fromkeys(salts)] == [67, 67]


def test_the_python_format_has_a_token_limit_per_key(fleet: Fleet) -> None:
    with fleet.reader(format="python") as codec:
        held = codec._view.sealing_key(codec._view.now())
        held._python_sealed = 2**32 - 1
        codec.seal(b"x")
        with pytest.raises(SealUnavailableError) as caught:
            codec.seal(b"x")
        assert caught.value.reason == "token limit of the key reached"
