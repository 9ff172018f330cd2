"""A refund server on the MCP Python SDK, in a fleet with TypeScript ones. Settings: JSON, as `settings.ts` describes them."""

import json
import signal
import socket
import sys
from typing import Any

import boto3
import uvicorn
from botocore.config import Config
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.request_state import RequestStateSecurity
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

from sealring import AwsKmsKeyWrapper, KmsCodec, RedisRing, RingPolicy

settings = json.loads(sys.argv[1])
name = settings["name"]

QUESTION = ElicitRequest(
    params=ElicitRequestFormParams(
        message="Refund?",
        requested_schema={"type": "object", "properties": {"ok": {"type": "boolean"}}},
    )
)


class SignedIn:
    """The bearer token is the user's name."""

    async def verify_token(self, token: str) -> AccessToken | None:
        claims = {"iss": settings["issuer"]}
        return AccessToken(token=token, client_id="web", scopes=[], subject=token, claims=claims)


def key_wrapper():
    kms = settings["kms"]
    client = boto3.client(
        "kms",
        endpoint_url=kms["endpoint"],
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(retries={"total_max_attempts": 1}),
    )
    return AwsKmsKeyWrapper(key_id=kms["keyId"], client=client)


def server_with(codec):
    server = MCPServer(
        settings["audience"],
        token_verifier=SignedIn(),
        auth=AuthSettings(
            issuer_url=settings["issuer"],
            resource_server_url=settings["issuer"],
            validate_token_resource=False,
        ),
        request_state_security=RequestStateSecurity(codec=codec, ttl=settings["ttlSeconds"]),
        log_level="ERROR",
    )

    @server.tool(structured_output=False)
    async def refund(order: str, ctx: Context) -> str | InputRequiredResult:
        if ctx.request_state is None:
            state = json.dumps({"order": order, "sealedBy": name})
            return InputRequiredResult(input_requests={"sure": QUESTION}, request_state=state)
        return json.dumps({**json.loads(ctx.request_state), "openedBy": name})

    @server.tool(structured_output=False)
    async def keep(ctx: Context, x: Any = None) -> str | InputRequiredResult:
        if ctx.request_state is None:
            return InputRequiredResult(input_requests={"sure": QUESTION}, request_state="kept")
        return ctx.request_state

    return server


def main():
    ring = RedisRing(url=settings["redis"], key=settings["redisKey"])
    policy = RingPolicy(**settings["pythonPolicy"])
    with KmsCodec(
        key_wrapper=key_wrapper(),
        ring=ring,
        ring_name=settings["ringName"],
        policy=policy,
        role="reader",
    ) as codec:
        listening = socket.create_server(("127.0.0.1", 0))
        app = server_with(codec).streamable_http_app(stateless_http=True, json_response=True)
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        signal.signal(signal.SIGTERM, server.handle_exit)
        print(json.dumps({"port": listening.getsockname()[1]}), flush=True)
        server.run(sockets=[listening])


main()
