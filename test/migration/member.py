"""One server of a fleet, in its own process: `member.py MODULE LABEL`.

The guide contains the module: it has `security`.
"""

import importlib
import os
import socket
import sys

import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

path, label = sys.argv[1:]
sys.path.insert(0, os.path.dirname(path))
guide = importlib.import_module(os.path.basename(path).removesuffix(".py"))


class Toy:
    """The bearer token is the user's name."""

    async def verify_token(self, token: str) -> AccessToken:
        return AccessToken(token=token, client_id="shop", scopes=[], subject=token)


server = MCPServer(
    "refund-desk",
    log_level="ERROR",
    request_state_security=guide.security,
    token_verifier=Toy(),
    auth=AuthSettings(
        issuer_url="https://login.example",
        resource_server_url="https://desk.example",
        validate_token_resource=False,
    ),
)
SURE = ElicitRequest(
    params=ElicitRequestFormParams(
        message="Sure?", requested_schema={"type": "object", "properties": {}}
    )
)


@server.tool()
async def refund(ctx: Context) -> str | InputRequiredResult:
    if ctx.request_state is None:
        return InputRequiredResult(input_requests={"sure": SURE}, request_state=f"asked by {label}")
    return f"{ctx.request_state} by {label}"


with socket.create_server(("127.0.0.1", 0)) as listener:
    print("port", listener.getsockname()[1], flush=True)
    app = server.streamable_http_app(json_response=True, stateless_http=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])
