"""The codec on a server of the MCP Python SDK, with the SDK's own boundary and client."""

import asyncio
import logging
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.server import request_state
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    TextContent,
)
from ring_maker import Fleet

from sealring import InvalidRequestState, KmsCodec

QUESTION = ElicitRequest(
    params=ElicitRequestFormParams(
        message="Refund?", requested_schema={"type": "object", "properties": {}}
    )
)


def server_with(codec: request_state.RequestStateCodec) -> MCPServer:
    security = request_state.RequestStateSecurity(codec=codec)
    server = MCPServer("refunds", request_state_security=security)

    @server.tool()
    async def refund(order: str, ctx: Context) -> str | InputRequiredResult:
        if ctx.request_state is None:
            return InputRequiredResult(
                input_requests={"sure": QUESTION}, request_state=f"order {order}"
            )
        return f"refunded {ctx.request_state}"

    return server


async def answer(*_: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={})


def call(codec: request_state.RequestStateCodec, *, state: str | None = None) -> str:
    """The tool's answer after two rounds, or after one that echoes `state`."""

    async def run() -> str:
        async with Client(server_with(codec), elicitation_callback=answer) as client:
            if state is None:
                result = await client.call_tool("refund", {"order": "7"})
            else:
                result = await client.session.call_tool(
                    "refund", {"order": "7"}, request_state=state
                )
            (content,) = result.content
            assert isinstance(content, TextContent)
            return content.text

    return asyncio.run(run())


class Watched:
    """The codec, and the tokens it made."""

    def __init__(self, codec: KmsCodec) -> None:
        self.codec = codec
        self.tokens: list[str] = []

    def seal(self, payload: bytes) -> str:
        self.tokens.append(self.codec.seal(payload))
        return self.tokens[-1]

    def unseal(self, token: str) -> bytes:
        return self.codec.unseal(token)


def test_the_codec_satisfies_the_protocol_of_the_sdk(fleet: Fleet) -> None:
    codec: request_state.RequestStateCodec = fleet.reader()
    assert request_state.RequestStateSecurity(codec=codec).codec is codec
    with fleet.reader() as started, pytest.raises(request_state.InvalidRequestState) as caught:
        started.unseal("x")
    assert isinstance(caught.value, InvalidRequestState)
    assert (caught.value.reason, str(caught.value)) == ("malformed", "malformed")


@pytest.mark.parametrize("wire", ["sealring", "python"])
def test_a_two_round_call_passes_through_the_boundary(fleet: Fleet, wire: str) -> None:
    with fleet.reader(format=wire) as codec:
        watched = Watched(codec)
        assert call(watched) == "refunded order 7"
        assert [token.split(".")[0] for token in watched.tokens] == [
            "sr1" if wire == "sealring" else "v1"
        ]


def test_two_servers_of_one_ring_unseal_the_states_of_each_other(fleet: Fleet) -> None:
    with fleet.reader() as one, fleet.reader() as other:
        watched = Watched(one)
        call(watched)
        assert call(other, state=watched.tokens[0]) == "refunded order 7"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda token: token[:-1] + "!", "malformed"),
        (lambda token: token[:4] + "A" * 12 + token[16:], "unknown key"),
        (lambda token: token[:80] + ("A" if token[80] != "A" else "B") + token[81:], "seal"),
    ],
)
def test_the_boundary_refuses_and_logs_the_reason(
    fleet: Fleet, caplog: pytest.LogCaptureFixture, change: Any, reason: str
) -> None:
    with fleet.reader() as codec, caplog.at_level(logging.WARNING, request_state.__name__):
        watched = Watched(codec)
        call(watched)
        with pytest.raises(BaseException) as caught:  # noqa: PT011, B017 - an exception group.
            call(codec, state=change(watched.tokens[0]))
        assert "Invalid or expired requestState" in told_by(caught.value)
    assert f"requestState rejected on tools/call: {reason}" in caplog.text


def told_by(error: BaseException) -> str:
    inner = getattr(error, "exceptions", ())
    return str(error) + "".join(map(told_by, inner))


def test_a_codec_that_cannot_seal_is_an_internal_error(fleet: Fleet) -> None:
    fleet.publish([fleet.key(600)])
    with fleet.reader() as codec:
        with pytest.raises(BaseException) as caught:  # noqa: PT011, B017
            call(codec)
        assert "Internal error" in told_by(caught.value)
