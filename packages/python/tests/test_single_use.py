"""Single use: the stores without a server, and the guard on a server of the MCP Python SDK with its
own boundary and client. Redis, PostgreSQL, DynamoDB and servers of both languages are in
test/single-use of the repository."""

import asyncio
import json
import logging
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.request_state import AESGCMRequestStateCodec, RequestStateSecurity
from mcp_types import InputRequiredResult, TextContent
from ring_maker import Fleet, StillClock

from sealring import (
    MemorySingleUse,
    PostgresSingleUse,
    RedisSingleUse,
    SingleUse,
    SingleUseStoreError,
    SingleUseStoreFullError,
)

KEY = os.urandom(32)


def end_of(clock: StillClock, seconds: float) -> datetime:
    return datetime.fromtimestamp(clock.wall / 1_000 + seconds, tz=timezone.utc)


class Watched:
    """A codec, and the payloads and tokens that it was given."""

    def __init__(self) -> None:
        self.inner = AESGCMRequestStateCodec([KEY])
        self.payloads: list[bytes] = []
        self.tokens: list[str] = []

    def seal(self, payload: bytes) -> str:
        self.payloads.append(payload)
        self.tokens.append(self.inner.seal(payload))
        return self.tokens[-1]

    def unseal(self, token: str) -> bytes:
        return self.inner.unseal(token)


class Broken:
    """A store that is down."""

    clock_skew_seconds = 300

    def claim(self, id: str, expires_at: datetime) -> bool:
        raise SingleUseStoreError("unavailable", "down")


class Desk:
    """A server whose tool counts its runs with a state."""

    def __init__(self, store: Any = None, *, guarded: bool = True, bound: str = "alice") -> None:
        self.codec = Watched()
        self.guard = SingleUse(self.codec, store=store or MemorySingleUse())
        self.states: list[str] = []
        security = RequestStateSecurity(codec=self.guard, bind_principal=lambda _: self.user)
        self.user = bound
        middleware = [self.guard] if guarded else []
        self.server = MCPServer("desk", request_state_security=security, middleware=middleware)

        @self.server.tool(structured_output=False)
        async def refund(order: str, ctx: Context) -> str | InputRequiredResult:
            if ctx.request_state is None:
                return InputRequiredResult(request_state=f"order {order}")
            self.states.append(ctx.request_state)
            return "refunded"

    def mint(self) -> str:
        self.call(None)
        return self.codec.tokens[-1]

    def call(self, state: str | None, order: str = "7") -> str:
        """The tool's answer, or the error of the server."""

        async def run() -> str:
            async with Client(self.server) as client:
                result = await client.session.call_tool(
                    "refund", {"order": order}, request_state=state, allow_input_required=True
                )
                if isinstance(result, InputRequiredResult):
                    return "asked"
                (content,) = result.content
                assert isinstance(content, TextContent)
                return content.text

        try:
            return asyncio.run(run())
        except BaseException as error:  # An exception group.
            return told_by(error)


def told_by(error: BaseException) -> str:
    inner = getattr(error, "exceptions", ())
    return str(error) + "".join(map(told_by, inner))


REFUSED = "Invalid or expired requestState"


def test_a_token_is_redeemed_once_and_a_replay_is_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = Desk()
    token = desk.mint()
    assert desk.call(token) == "refunded"
    with caplog.at_level(logging.WARNING, "sealring"):
        assert REFUSED in desk.call(token)
    assert desk.states == ["order 7"]
    assert "requestState rejected on tools/call: already used" in caplog.text
    assert token not in caplog.text
    assert desk.call(desk.mint()) == "refunded"


def test_each_token_gets_its_own_identifier_after_the_claims_of_the_boundary() -> None:
    desk = Desk()
    desk.mint()
    desk.mint()
    claims = [json.loads(payload) for payload in desk.codec.payloads]
    assert [list(one)[-1] for one in claims] == ["j", "j"]
    assert claims[0]["j"] != claims[1]["j"]
    assert b" " not in desk.codec.payloads[0].replace(b"order 7", b"")


@pytest.mark.parametrize("attempt", ["other arguments", "another user"])
def test_a_token_that_fails_another_check_is_not_claimed(attempt: str) -> None:
    desk = Desk()
    token = desk.mint()
    if attempt == "another user":
        desk.user = "mallory"
    assert REFUSED in desk.call(token, "8" if attempt == "other arguments" else "7")
    desk.user = "alice"
    assert desk.call(token) == "refunded"


def test_without_the_middleware_no_handler_gets_the_state() -> None:
    desk = Desk(guarded=False)
    token = desk.mint()
    desk.call(token)
    assert desk.states != ["order 7"]
    assert "order 7" not in "".join(desk.states)


def test_every_token_is_refused_while_the_store_is_down(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk(Broken())
    token = desk.mint()
    with caplog.at_level(logging.WARNING, "sealring"):
        assert REFUSED in desk.call(token)
    assert desk.states == []
    assert "already used (SingleUseStoreError)" in caplog.text


def test_a_token_that_was_sealed_without_single_use_is_refused() -> None:
    desk = Desk()
    desk.mint()
    claims = json.loads(desk.codec.payloads[-1])
    without = {name: value for name, value in claims.items() if name != "j"}
    assert REFUSED in desk.call(desk.codec.seal(json.dumps(without).encode()))
    assert desk.states == []
    assert desk.call(desk.codec.seal(json.dumps(claims).encode())) == "refunded"


def test_a_state_that_bypasses_the_boundary_is_refused() -> None:
    desk = Desk()
    # The boundary is not in the chain.
    desk.server.middleware[:] = [desk.guard]
    assert REFUSED in desk.call("forged")
    assert desk.states == []


def test_a_state_that_another_middleware_changed_is_refused() -> None:
    desk = Desk()
    token = desk.mint()

    async def change(ctx: Any, call_next: Any) -> Any:
        return await call_next(replace(ctx, params={**ctx.params, "requestState": "changed"}))

    at = desk.server.middleware.index(desk.guard)
    desk.server.middleware.insert(at, change)
    assert REFUSED in desk.call(token)
    assert desk.states == []


def test_one_of_many_concurrent_redemptions_of_a_token_succeeds() -> None:
    desk = Desk()
    token = desk.mint()
    answers: list[str] = []
    threads = [threading.Thread(target=lambda: answers.append(desk.call(token))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers.count("refunded") == 1
    assert desk.states == ["order 7"]


def test_the_margin_of_the_store_must_be_at_least_that_of_the_codec(fleet: Fleet) -> None:
    codec = fleet.reader()
    SingleUse(codec, store=MemorySingleUse(clock_skew_seconds=300))
    for one in (codec, codec.for_purpose("state")):
        assert (one.clock_skew_seconds, one.token_lifetime_seconds) == (300, 3_600)
        with pytest.raises(ValueError, match="clock_skew_seconds 299 must be at least 300"):
            SingleUse(one, store=MemorySingleUse(clock_skew_seconds=299))


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: SingleUse("codec", store=MemorySingleUse()), "codec must have a method seal"),
        (lambda: SingleUse(Watched(), store=object()), "store must have a method claim"),
        (lambda: MemorySingleUse(max_tokens=0), "max_tokens must be from 1"),
        (lambda: MemorySingleUse(clock_skew_seconds=86_401), "clock_skew_seconds must be from 0"),
        (RedisSingleUse, "give either client or url"),
        (lambda: RedisSingleUse(url="http://user:secret@host"), "url must be a redis://"),
        (PostgresSingleUse, "give either pool or url"),
        (lambda: PostgresSingleUse(url="x", table="A"), "table must be table or schema.table"),
    ],
)
def test_a_wrong_option_is_refused_with_its_name(make: Any, told: str) -> None:
    with pytest.raises((TypeError, ValueError), match=told) as caught:
        make()
    assert "secret" not in str(caught.value)


class TestMemory:
    clock = StillClock()

    @pytest.fixture(autouse=True)
    def fresh(self) -> Iterator[None]:
        self.clock = StillClock()
        yield

    def test_an_id_is_remembered_for_the_margin_beyond_its_end(self) -> None:
        store = MemorySingleUse(clock=self.clock)
        end = end_of(self.clock, 60)
        assert store.claim("a", end)
        self.clock.advance(359)
        assert not store.claim("a", end + timedelta(seconds=600))
        assert store.claim("b", end)

    def test_no_claim_succeeds_after_the_end_and_the_margin(self) -> None:
        store = MemorySingleUse(clock=self.clock)
        assert not store.claim("a", end_of(self.clock, -300))
        assert store.claim("b", end_of(self.clock, -299))

    def test_a_full_store_evicts_nothing_until_tokens_have_expired(self) -> None:
        store = MemorySingleUse(max_tokens=2, clock=self.clock)
        for name in "ab":
            assert store.claim(name, end_of(self.clock, 60))
        with pytest.raises(SingleUseStoreFullError, match="holds 2 tokens"):
            store.claim("c", end_of(self.clock, 60))
        assert not store.claim("a", end_of(self.clock, 60))
        self.clock.advance(361)
        assert store.claim("c", end_of(self.clock, 60))

    @pytest.mark.parametrize(
        ("name", "end"),
        [("", None), ("x" * 257, None), (7, None), ("a", 5), ("a", datetime(2026, 1, 1))],  # noqa: DTZ001
    )
    def test_a_wrong_claim_is_an_error(self, name: Any, end: Any) -> None:
        store = MemorySingleUse(clock=self.clock)
        with pytest.raises((TypeError, ValueError), match="MemorySingleUse: "):
            store.claim(name, end_of(self.clock, 60) if end is None else end)
