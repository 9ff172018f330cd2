"""A server on the MCP Python SDK whose tokens are redeemed once, in its own process: as `server.ts`, with the same settings."""

import base64
import json
import sys
import time

settings = json.loads(sys.argv[1])
exact_time, exact_time_ns, ahead = time.time, time.time_ns, settings.get("aheadSeconds", 0)
time.time = lambda: exact_time() + ahead
time.time_ns = lambda: exact_time_ns() + ahead * 1_000_000_000

import socket  # noqa: E402

import uvicorn  # noqa: E402
from mcp.server.mcpserver import Context, MCPServer  # noqa: E402
from mcp.server.request_state import AESGCMRequestStateCodec, RequestStateSecurity  # noqa: E402
from mcp_types import InputRequiredResult  # noqa: E402
from starlette.requests import Request  # noqa: E402
from starlette.responses import PlainTextResponse  # noqa: E402

from dynamodb_client import dynamodb_client  # noqa: E402

from sealring import DynamodbSingleUse, PostgresSingleUse, RedisSingleUse, SingleUse  # noqa: E402

STORES = {
    "redis": lambda url: RedisSingleUse(url=url),
    "postgres": lambda url: PostgresSingleUse(url=url),
    "dynamodb": lambda url: DynamodbSingleUse(table="sealring", client=dynamodb_client(url)),
}

single_use = SingleUse(
    AESGCMRequestStateCodec([base64.b64decode(settings["key"])]),
    store=STORES[settings["store"]](settings["address"]),
)
security = RequestStateSecurity(codec=single_use, ttl=settings.get("ttlSeconds", 600))
server = MCPServer("refund-desk", request_state_security=security, middleware=[single_use], log_level="CRITICAL")
# How often the tool ran with a state.
redeemed = 0


@server.tool(structured_output=False)
async def refund(ctx: Context) -> str | InputRequiredResult:
    global redeemed
    if ctx.request_state is None:
        return InputRequiredResult(request_state="asked")
    redeemed += 1
    return "refunded" if ctx.request_state == "asked" else f"got {ctx.request_state}"


@server.custom_route("/redeemed", methods=["GET"])
async def count(_: Request) -> PlainTextResponse:
    return PlainTextResponse(str(redeemed))


listening = socket.create_server(("127.0.0.1", 0))
app = server.streamable_http_app(stateless_http=True, json_response=True)
print(listening.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="critical")).run(sockets=[listening])
